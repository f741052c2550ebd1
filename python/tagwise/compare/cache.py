"""Results on disk, named by what made them: sentences, parameters, features, the code that trained."""

from __future__ import annotations

import functools
import hashlib
import inspect
import json
import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import tagwise._core as _core
from tagwise.compare.plan import Cell, Data
from tagwise.corpus.sentence import Corpus
from tagwise.estimators.task import TRANSIENT
from tagwise.features.recipe import recipe_for
from tagwise.writing import write_text

FORMAT = 1
CACHE_VARIABLE = "TAGWISE_CACHE"

#: What shows results and does not make them; every other module of the package is part of a key.
SHOWS = ("cli", "report", "compare/table.py")


def default_folder() -> Path:
    """Where results lie: the folder in TAGWISE_CACHE, else tagwise/compare in the user's cache."""
    if given := os.environ.get(CACHE_VARIABLE):
        return Path(given)
    if sys.platform == "darwin":
        base = Path.home() / "Library" / "Caches"
    else:
        base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return base / "tagwise" / "compare"


class Cache:
    """A folder of results, one file each, written whole or not at all. Without a folder: a dictionary."""

    def __init__(self, folder: str | os.PathLike[str] | None) -> None:
        self.folder = None if folder is None else Path(folder)
        self._memory: dict[str, dict[str, Any]] = {}

    def _path(self, key: str) -> Path:
        assert self.folder is not None
        return self.folder / key[:2] / f"{key}.json"

    def get(self, key: str) -> dict[str, Any] | None:
        """What was put there, or None; a damaged file counts as none."""
        if self.folder is None:
            return self._memory.get(key)
        try:
            found = json.loads(self._path(key).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return None
        return found if isinstance(found, dict) and found.get("format") == FORMAT else None

    def put(self, key: str, value: Mapping[str, Any]) -> None:
        """Keep a result."""
        entry = {"format": FORMAT, **value}
        if self.folder is None:
            self._memory[key] = entry
            return
        path = self._path(key)
        path.parent.mkdir(parents=True, exist_ok=True)
        write_text(path, json.dumps(entry, ensure_ascii=False))

    def once(self, key: str, make: Callable[[], Mapping[str, Any]]) -> dict[str, Any]:
        """The result under a key, made where it is not there yet."""
        found = self.get(key)
        if found is None:
            self.put(key, make())
            found = self.get(key)
            assert found is not None
        return found


# --- names --------------------------------------------------------------------------------------------------


def code_files(root: Path) -> list[Path]:
    """The modules of a package that decide what training gives, by their place in it."""
    found = (path.relative_to(root) for path in root.rglob("*.py"))
    return sorted(path for path in found if path.parts[0] not in SHOWS and path.as_posix() not in SHOWS)


def code_digest(root: Path, library: Path) -> str:
    """A digest of these modules, names and texts, and of the native library."""
    digest = hashlib.sha256(library.read_bytes())
    for path in code_files(root):
        text = (root / path).read_bytes()
        digest.update(f"\0{path.as_posix()}\0{len(text)}\0".encode() + text)
    return digest.hexdigest()


@functools.lru_cache(maxsize=1)
def code_version() -> str:
    """The version of tagwise and a digest of the code that trains, so that no result outlives a change of it."""
    digest = code_digest(Path(__file__).parent.parent, Path(str(_core.__file__)))
    return f"{_core.__version__}+{digest[:16]}"


def corpus_digest(corpus: Corpus | None) -> str | None:
    """A digest of all sentences: columns, tokens, labels, where documents begin."""
    if corpus is None:
        return None
    digest = hashlib.sha256(json.dumps([list(corpus.columns), corpus.label]).encode())
    for sentence in corpus:
        digest.update(json.dumps([*sentence.fields.values(), sentence.doc]).encode())
    return digest.hexdigest()


def _plain(value: Any, seen: tuple[int, ...] = ()) -> Any:
    """A parameter as JSON can hold it; a function by its name, its text and the values it holds."""
    if id(value) in seen:
        return "..."
    inside = (*seen, id(value))
    if isinstance(value, functools.partial):
        return ["partial", *(_plain(part, inside) for part in (value.func, value.args, value.keywords))]
    if callable(value):
        made = value if hasattr(value, "__qualname__") else type(value)
        try:
            text = inspect.getsource(made)
        except (OSError, TypeError):
            code = getattr(made, "__code__", None)
            text = repr(code and (code.co_code, code.co_consts, code.co_names))
        held = [
            getattr(value, "__defaults__", None),
            getattr(value, "__kwdefaults__", None),
            [cell.cell_contents for cell in getattr(value, "__closure__", None) or ()],
            {} if made is value else getattr(value, "__dict__", {}),
        ]
        name = f"{made.__module__}.{made.__qualname__}"
        return [name, hashlib.sha256(text.encode()).hexdigest(), _plain(held, inside)]
    if isinstance(value, Mapping):
        return {str(k): _plain(v, inside) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(v, inside) for v in value]
    if isinstance(value, (set, frozenset)):
        return sorted((_plain(v, inside) for v in value), key=repr)
    return value if isinstance(value, (str, int, float, bool, type(None))) else repr(value)


class Names:
    """Keys of cells; digests of corpora are taken once."""

    def __init__(self, data: Mapping[str, Data]) -> None:
        self.data = data
        self._digests: dict[tuple[str, str], str | None] = {}

    def digest(self, corpus: str, part: str) -> str | None:
        """The digest of one part of a corpus."""
        if (corpus, part) not in self._digests:
            self._digests[corpus, part] = corpus_digest(getattr(self.data[corpus], part))
        return self._digests[corpus, part]

    def key(self, cell: Cell, **more: Any) -> str:
        """The key of a cell: equal where everything that decides its result is."""
        tagger = cell.learner.make(**cell.settings())
        params = {k: _plain(v) for k, v in tagger.checked().items() if k not in TRANSIENT and k != "features"}
        recipe = recipe_for(cell.features, self.data[cell.corpus].train)
        content = {
            "format": FORMAT,
            "code": code_version(),
            "train": self.digest(cell.corpus, "train"),
            "test": self.digest(cell.corpus, "test"),
            "dev": self.digest(cell.corpus, "dev") if cell.dev or cell.track else None,
            "size": cell.size,
            "seed": cell.seed,
            "learner": cell.learner.kind,
            "params": params,
            "recipe": _plain(recipe.function) if recipe.kind == "function" else recipe.to_json(),
            "tune": _plain(cell.tune),
            "tune_size": cell.tune_size if cell.tune else None,
            "folds": cell.folds if cell.tune else None,
            "dev_scored": cell.dev,
            "track": cell.track,
            **{k: _plain(v) for k, v in more.items()},
        }
        text = json.dumps(content, sort_keys=True, ensure_ascii=False)
        return hashlib.sha256(text.encode()).hexdigest()


__all__ = ["CACHE_VARIABLE", "Cache", "Names", "code_version", "corpus_digest", "default_folder"]

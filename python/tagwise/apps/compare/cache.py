"""A cache of results on disk, whose keys are digests of sentences, parameters, features and code."""

from __future__ import annotations

import functools
import hashlib
import inspect
import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import platformdirs

import tagwise._core as _core
from tagwise.apps.compare.plan import Cell, Data
from tagwise.base.options import Option
from tagwise.base.parameters import checked_parameters
from tagwise.base.writing import write_text
from tagwise.corpus.sentence import Corpus
from tagwise.estimators.task import TRANSIENT
from tagwise.features.recipe import Recipe
from tagwise.features.resolve import recipe_for
from tagwise.learners.loop import logger

FORMAT = 2
CACHE_VARIABLE = "TAGWISE_CACHE"

#: Returns whether a value has the expected form.
ValueCheck = Callable[[Mapping[str, Any]], bool]

#: Modules that only show results. All other modules of the package are part of a key.
DISPLAY_MODULES = ("cli", "apps/compare/report", "apps/compare/table.py")


def default_folder(kind: str = "compare") -> Path:
    """Return the folder for results: TAGWISE_CACHE if it is set, else `compare` in the user's cache of tagwise.

    Other kinds of results have a subfolder of TAGWISE_CACHE, or one next to `compare`.

    Raises:
        RuntimeError: the user has no home directory.
    """
    if folder := os.environ.get(CACHE_VARIABLE):
        return Path(folder) if kind == "compare" else Path(folder) / kind
    # Without a home directory, older versions of platformdirs return "~/.cache/tagwise".
    return platformdirs.user_cache_path("tagwise", appauthor=False).expanduser() / kind


class Cache:
    """A folder of results with one file each, written atomically, or a dictionary if the folder is None.

    Damaged entries and entries of another key count as missing. If the folder cannot be written, results are kept in
    memory. `warn` is called once for each of these.
    """

    def __init__(
        self, folder: str | os.PathLike[str] | None, warn: Callable[[str], Any] = logger.warning
    ) -> None:
        self.folder = None if folder is None else Path(folder)
        self._memory: dict[str, dict[str, Any]] = {}
        self._writes = folder is not None
        self._warn, self._warned = warn, set[str]()

    def warn_once(self, text: str) -> None:
        """Pass a message to `warn`, unless it was passed before."""
        if text not in self._warned:
            self._warned.add(text)
            self._warn(text)

    def _path(self, key: str) -> Path:
        assert self.folder is not None
        return self.folder / key[:2] / f"{key}.json"

    def get(self, key: str, is_valid: ValueCheck = lambda _: True) -> dict[str, Any] | None:
        """Return the result of a key, or None if the file is missing or damaged, or the value is not valid."""
        if key in self._memory or self.folder is None:
            return self._memory.get(key)
        path = self._path(key)
        try:
            value = opened(path.read_bytes(), key)
            if not is_valid(value):
                raise ValueError("not a result of a comparison")
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            self.warn_once(f"{path}: cannot be read ({error.strerror}). Its result is computed again")
        except (ValueError, RecursionError) as error:
            self.warn_once(
                f"{path}: a damaged or foreign file in the cache ({error}). Its result is computed again"
            )
        else:
            return value
        return None

    def put(self, key: str, value: Mapping[str, Any]) -> dict[str, Any]:
        """Store a result atomically, and return it in the form in which it will be read."""
        text = sealed(key, value)
        stored: dict[str, Any] = json.loads(text.partition("\n")[2])
        if not self._writes:
            self._memory[key] = stored
            return stored
        path = self._path(key)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            write_text(path, text)
        except OSError as error:
            self._writes = False
            self._memory[key] = stored
            self.warn_once(
                f"{self.folder}: results cannot be written ({error.strerror}). Continuing without the cache"
            )
        return stored

    def once(
        self, key: str, make: Callable[[], Mapping[str, Any]], is_valid: ValueCheck = lambda _: True
    ) -> dict[str, Any]:
        """Return the result of a key, after computing and storing it if it is missing."""
        found = self.get(key, is_valid)
        return self.put(key, make()) if found is None else found


def sealed(key: str, value: Mapping[str, Any]) -> str:
    """Return the text of an entry: a header line with a checksum, then a line with the value."""
    body = json.dumps(value)
    head = {"format": FORMAT, "key": key, "sha256": hashlib.sha256(body.encode()).hexdigest()}
    return f"{json.dumps(head)}\n{body}"


def opened(data: bytes, key: str) -> dict[str, Any]:
    """Return the value of an entry, or raise a ValueError with the reason why it is invalid for the key."""
    head, _, body = data.partition(b"\n")
    found = json.loads(head)
    if not isinstance(found, dict) or found.get("format") != FORMAT:
        raise ValueError(f"its format is not {FORMAT}")
    if found.get("key") != key:
        raise ValueError("its key is another one")
    if found.get("sha256") != hashlib.sha256(body).hexdigest():
        raise ValueError("its checksum is wrong")
    value = json.loads(body)
    if not isinstance(value, dict):
        raise ValueError("it has no result")
    return value


# --- keys ---------------------------------------------------------------------------------------------------


def code_files(root: Path) -> list[Path]:
    """Return the modules of a package that influence the result of training, sorted by path."""
    found = (path.relative_to(root) for path in root.rglob("*.py"))
    return sorted(path for path in found if not path.as_posix().startswith(DISPLAY_MODULES))


def code_digest(root: Path, library: Path) -> str:
    """Return a digest of the names and texts of these modules and of the native library."""
    digest = hashlib.sha256(library.read_bytes())
    for path in code_files(root):
        text = (root / path).read_bytes()
        digest.update(f"\0{path.as_posix()}\0{len(text)}\0".encode() + text)
    return digest.hexdigest()


@functools.lru_cache(maxsize=1)
def code_version() -> str:
    """Return the version of tagwise with a digest of its training code, so that a change invalidates results."""
    digest = code_digest(Path(__file__).parents[2], Path(str(_core.__file__)))
    return f"{_core.__version__}+{digest[:16]}"


def corpus_digest(corpus: Corpus | None) -> str | None:
    """Return a digest of all sentences: columns, tokens, labels and document boundaries."""
    if corpus is None:
        return None
    digest = hashlib.sha256(json.dumps([list(corpus.columns), corpus.label]).encode())
    for sentence in corpus:
        digest.update(json.dumps([*sentence.fields.values(), sentence.doc]).encode())
    return digest.hexdigest()


def _plain(value: Any, seen: tuple[int, ...] = ()) -> Any:
    """Return a parameter as a value for JSON. A function becomes its name, its source and the values it captures."""
    if id(value) in seen:
        return "..."
    inside = (*seen, id(value))
    if isinstance(value, functools.partial):
        return ["partial", *(_plain(part, inside) for part in (value.func, value.args, value.keywords))]
    if callable(value):
        code_object = value if hasattr(value, "__qualname__") else type(value)
        try:
            text = inspect.getsource(code_object)
        except (OSError, TypeError):
            code = getattr(code_object, "__code__", None)
            text = repr(code and (code.co_code, code.co_consts, code.co_names))
        captured = [
            getattr(value, "__defaults__", None),
            getattr(value, "__kwdefaults__", None),
            [cell.cell_contents for cell in getattr(value, "__closure__", None) or ()],
            {} if code_object is value else getattr(value, "__dict__", {}),
        ]
        name = f"{code_object.__module__}.{code_object.__qualname__}"
        return [name, hashlib.sha256(text.encode()).hexdigest(), _plain(captured, inside)]
    if isinstance(value, Option):
        return [type(value).__name__, _plain(vars(value), inside)]
    if isinstance(value, Mapping):
        return {str(k): _plain(v, inside) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(v, inside) for v in value]
    if isinstance(value, (set, frozenset)):
        return sorted((_plain(v, inside) for v in value), key=repr)
    return value if isinstance(value, (str, int, float, bool, type(None))) else repr(value)


def _recipe(recipe: Recipe) -> Any:
    """Return features as a value for JSON. Functions are identified by their source, not by their import path."""
    if recipe.kind == "sum":
        return [_recipe(part) for part in recipe.parts]
    return _plain(recipe.function) if recipe.kind == "function" else recipe.to_json()


class Names:
    """Computes keys of cells. Digests of corpora are computed once."""

    def __init__(self, data: Mapping[str, Data]) -> None:
        self.data = data
        self._digests: dict[tuple[str, str], str | None] = {}

    def digest(self, corpus: str, part: str) -> str | None:
        """Return the digest of one part of a corpus."""
        if (corpus, part) not in self._digests:
            self._digests[corpus, part] = corpus_digest(getattr(self.data[corpus], part))
        return self._digests[corpus, part]

    def fold_digest(self, corpus: str, seed: int) -> str | None:
        """Return the digest of the test part of a fold, or None without cross-validation."""
        data, name = self.data[corpus], f"fold {seed}"
        if data.folds and (corpus, name) not in self._digests:
            self._digests[corpus, name] = corpus_digest(data.part(seed).test)
        return self._digests.get((corpus, name))

    def key(self, cell: Cell, **more: Any) -> str:
        """Return the key of a cell, a digest of everything that determines its result."""
        tagger = cell.learner.make(**cell.settings())
        params = {
            k: _plain(v)
            for k, v in checked_parameters(tagger).items()
            if k not in TRANSIENT and k != "features"
        }
        recipe = recipe_for(cell.features, self.data[cell.corpus].train)
        by_dev = bool(cell.tune) and cell.folds == 0
        content = {
            "format": FORMAT,
            "code": code_version(),
            "train": self.digest(cell.corpus, "train"),
            "test": self.digest(cell.corpus, "test"),
            "fold": self.fold_digest(cell.corpus, cell.seed),
            "dev": self.digest(cell.corpus, "dev") if cell.dev or cell.track or by_dev else None,
            "size": cell.size,
            "seed": cell.seed,
            "learner": cell.learner.kind,
            "params": params,
            "recipe": _recipe(recipe),
            "tune": None
            if "trial" in more
            else _plain(cell.tune),  # the key of a trial does not depend on other trials
            "tune_size": cell.tune_size if cell.tune else None,
            "folds": cell.folds if cell.tune else None,
            "dev_scored": cell.dev,
            "track": cell.track,
            "risks": cell.risks,
            **{k: _plain(v) for k, v in more.items()},
        }
        text = json.dumps(content, sort_keys=True, ensure_ascii=False)
        return hashlib.sha256(text.encode()).hexdigest()

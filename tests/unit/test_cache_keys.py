"""Cache keys: everything that decides a result changes its key, and nothing else does."""

from __future__ import annotations

import functools
import shutil
from collections.abc import Callable, Mapping
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import platformdirs
import pytest

import tagwise as tw
from tagwise import _core
from tagwise.apps.compare import Cache, Cell, ComparedLearner, Data, cache, collect, parse, run
from tagwise.apps.compare.cache import Names, code_digest, code_files, code_version, default_folder
from tagwise.apps.compare.table import Comparison
from tagwise.base.domains import Choice, Flag, Real
from tagwise.base.parameters import Param, parameters_of
from tagwise.corpus import Corpus, Sentence
from tagwise.estimators import LEARNERS

PACKAGE = Path(tw.__file__).parent


def corpus(n: int, shift: int = 0, *, docs: Mapping[int, str] | None = None) -> Corpus:
    """Return sentences of two words with a tag and a chunk label each. `docs` says where documents begin."""
    words, labels = ["Rosa", "runs", "to", "Lund"], ["B-PER", "O", "O", "B-LOC"]
    out = []
    for i in range(n):
        a, b = (i + shift) % 4, (i * i + shift) % 4
        columns = {"word": [words[a], words[b]], "pos": ["N", "V"], "label": [labels[a], labels[b]]}
        out.append(Sentence(columns, "label", doc=(docs or {}).get(i)))
    return Corpus(out)


DATA = Data(corpus(10), corpus(4, 1), corpus(5, 2))
BASE = Cell("a", parse("crf"), "S1")


def key(cell: Cell = BASE, data: Data = DATA, **more: Any) -> str:
    """Return the key of a cell, with digests computed again."""
    return Names({cell.corpus: data}).key(cell, **more)


def changed(of: Corpus, index: int, column: str, value: str) -> Corpus:
    """Return the corpus with another value at the first token of a sentence."""
    sentences = list(of)
    old = sentences[index]
    columns = {name: list(values) for name, values in old.fields.items()}
    columns[column][0] = value
    sentences[index] = Sentence(columns, old.label, doc=old.doc)
    return Corpus(sentences)


SCORED = replace(BASE, dev=True)
TUNED = replace(BASE, tune={"l2": [0.1, 1.0], "max_iter": [1, 2]})
# A learner whose parameters do not follow the cell, so that only the cell itself differs.
SETTLED = replace(BASE, learner=parse("crf(random_state=0, patience=0)"))
TRACKED = replace(SETTLED, track=True)
BOTH = replace(TRACKED, dev=True)

#: The field in which two cells differ, and the cells. Their results may differ.
CELLS: dict[str, tuple[str, Cell, Cell]] = {
    "another learner": ("learner", BASE, replace(BASE, learner=parse("perceptron"))),
    "a learner's settled parameter": ("learner", BASE, replace(BASE, learner=parse("crf(l2=0.5)"))),
    "a settled loss": ("learner", BASE, replace(BASE, learner=parse("crf-exp"))),
    "another set": ("features", BASE, replace(BASE, features="S2")),
    "a set's window": ("features", replace(BASE, features="S3"), replace(BASE, features="S3(window=2)")),
    "a template's text": (
        "features",
        replace(BASE, features="word[0]\nword[-1]"),
        replace(BASE, features="word[0]\nword[-2]"),
    ),
    "a size": ("size", BASE, replace(BASE, size=5)),
    "another size": ("size", replace(BASE, size=6), replace(BASE, size=5)),
    "a seed": ("seed", BASE, replace(BASE, seed=1)),
    "a seed of the draw alone": ("seed", SETTLED, replace(SETTLED, seed=1)),
    "a common parameter": ("params", BASE, replace(BASE, params={"max_iter": 7})),
    "its value": ("params", replace(BASE, params={"max_iter": 8}), replace(BASE, params={"max_iter": 7})),
    "a choice": ("tune", BASE, TUNED),
    "values of a choice": ("tune", TUNED, replace(TUNED, tune={**TUNED.tune, "l2": [0.1, 2.0]})),
    "the order of values": ("tune", TUNED, replace(TUNED, tune={**TUNED.tune, "l2": [1.0, 0.1]})),
    "sentences of a choice": ("tune_size", TUNED, replace(TUNED, tune_size=6)),
    "folds of a choice": ("folds", TUNED, replace(TUNED, folds=2)),
    "the dev part for a choice": ("folds", TUNED, replace(TUNED, folds=0)),
    "the dev part scored": ("dev", BASE, SCORED),
    "the dev part scored and tracked": ("dev", TRACKED, BOTH),
    "the dev part tracked": ("track", BASE, replace(BASE, track=True)),
    "gold paths ranked": ("risks", BASE, replace(BASE, risks=5)),
    "the dev part tracked and scored": ("track", replace(BOTH, track=False), BOTH),
}  # fmt: skip

#: The field in which the data differ from DATA, a cell that reads it, and the data.
PARTS: dict[str, tuple[str, Cell, Data]] = {
    "a word of train": ("train", BASE, replace(DATA, train=changed(DATA.train, 3, "word", "Lunds"))),
    "a label of train": ("train", BASE, replace(DATA, train=changed(DATA.train, 3, "label", "I-LOC"))),
    "another column of train": ("train", BASE, replace(DATA, train=changed(DATA.train, 3, "pos", "X"))),
    "a sentence less of train": ("train", BASE, replace(DATA, train=DATA.train[:-1])),
    "sentences of train in another order": ("train", BASE, replace(DATA, train=DATA.train[::-1])),
    "a document in train": ("train", BASE, replace(DATA, train=corpus(10, docs={3: "x"}))),
    "a nameless document in train": ("train", BASE, replace(DATA, train=corpus(10, docs={3: ""}))),
    "a document called None": ("train", BASE, replace(DATA, train=corpus(10, docs={3: "None"}))),
    "a word of test": ("test", BASE, replace(DATA, test=changed(DATA.test, 0, "word", "Lunds"))),
    "a label of test": ("test", BASE, replace(DATA, test=changed(DATA.test, 0, "label", "B-X"))),
    "a document in test": ("test", BASE, replace(DATA, test=corpus(4, 1, docs={1: "x"}))),
    "a scored dev part": ("dev", SCORED, replace(DATA, dev=changed(DATA.dev or DATA.test, 4, "word", "y"))),
    "a tracked dev part": ("dev", TRACKED, replace(DATA, dev=changed(DATA.dev or DATA.test, 4, "label", "O2"))),
    "a document in dev": ("dev", SCORED, replace(DATA, dev=corpus(5, 2, docs={2: "x"}))),
    "a dev part to choose on": (
        "dev", replace(TUNED, folds=0),
        replace(DATA, dev=changed(DATA.dev or DATA.test, 4, "word", "y")),
    ),
    "no dev part to score": ("dev", SCORED, replace(DATA, dev=None)),
    "folds of cross-validation": ("folds", BASE, replace(DATA, folds=2)),
    "no dev part to track": ("dev", TRACKED, replace(DATA, dev=None)),
}  # fmt: skip


def test_every_field_has_a_row() -> None:
    """Every field of a cell and of its data has a row. A corpus is identified by its content, not its name."""
    assert {field for field, *_ in CELLS.values()} == {f.name for f in fields(Cell)} - {"corpus"}
    assert {field for field, *_ in PARTS.values()} == {f.name for f in fields(Data)}


@pytest.mark.parametrize("row", CELLS)
def test_cell_fields_change_the_key(row: str) -> None:
    """Two cells that differ in one field have two keys."""
    field, one, other = CELLS[row]
    assert {f.name for f in fields(Cell) if getattr(one, f.name) != getattr(other, f.name)} == {field}
    assert key(one) != key(other)


@pytest.mark.parametrize("row", PARTS)
def test_corpus_parts_change_the_key(row: str) -> None:
    """One cell has two keys on two corpora if it reads the part that differs."""
    _, cell, data = PARTS[row]
    assert key(cell, data) != key(cell)


def test_column_boundaries_change_the_corpus_digest() -> None:
    """Equal concatenations of other tokens, and columns of another name, are another corpus."""
    one, two, three = (
        Data(Corpus([Sentence({name: words, "label": ["A"] * len(words)}, "label")]), DATA.test)
        for name, words in (("word", ["a\x1fb"]), ("word", ["a", "b"]), ("form", ["a", "b"]))
    )
    assert len({key(BASE, data) for data in (one, two, three)}) == 3


def other_value(param: Param) -> Any:
    """Return a legal value that is not the default."""
    known = {"constraints": "auto", "lookback": (1, 2), "cost": "f1", "kernel": "poly"}
    known |= {
        "class_weight": "balanced",
        "dictionary": 3,
        "partial": True,
        "slack": "sequence",
        "smoothing": 0.5,
    }
    if param.name in known:
        return known[param.name]
    if isinstance(param.domain, Flag):
        return not param.default
    if isinstance(param.domain, Choice):
        return next(name for name in param.domain.names if name != param.default)
    if isinstance(param.domain, Real):
        for value in (1 if param.default is None else param.default + 1, 0.5, 0, 1, 2, 3):
            if value == param.default:
                continue
            try:
                return param.check(value)
            except tw.exceptions.ParameterError:
                continue
    return "?"


@pytest.mark.parametrize("kind", LEARNERS)
def test_every_parameter_changes_the_key(kind: str) -> None:
    """Each declared parameter of each learner is in the key, except threads and logging."""
    base = key(Cell("a", ComparedLearner("x", kind), "S1"))
    for param in parameters_of(LEARNERS[kind]).values():
        if param.name == "features":  # part of the cell
            continue
        learner = ComparedLearner("x", kind, {param.name: other_value(param)})
        same = key(Cell("a", learner, "S1")) == base
        assert same == (param.name in ("n_jobs", "verbose")), (kind, param.name)


def test_learner_name_changes_the_key(monkeypatch: pytest.MonkeyPatch) -> None:
    """The learner is part of the key, even if all its parameters equal those of another."""
    monkeypatch.setitem(LEARNERS, "twin", LEARNERS["crf"])
    assert key(replace(BASE, learner=ComparedLearner("crf", "twin"))) != key()


def test_template_files_are_identified_by_their_text(tmp_path: Path) -> None:
    """An edited feature file changes the key. A copy with equal text elsewhere does not."""
    one, two = tmp_path / "a" / "t.txt", tmp_path / "b" / "t.txt"
    for path in (one, two):
        path.parent.mkdir()
        path.write_text("word[0]\n")
    first = key(replace(BASE, features=str(one)))
    assert key(replace(BASE, features=str(two))) == first
    one.write_text("word[0]\nword[1]\n")
    assert key(replace(BASE, features=str(one))) != first


def test_code_version_and_format_change_the_key(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another build of the library and another result format give other keys."""
    first = key()
    with monkeypatch.context() as patch:
        patch.setattr(cache, "code_version", lambda: "0+other")
        assert key() != first
    with monkeypatch.context() as patch:
        patch.setattr(cache, "FORMAT", cache.FORMAT + 1)
        assert key() != first
    assert key() == first
    assert key(trial={"l2": 1.0}) != first
    assert key(trial={"l2": 1.0}) != key(trial={"l2": 2.0})


def swapped(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return equal entries in another order."""
    return dict(reversed(list(values.items())))


PARAMS = {"max_iter": 3, "l2": 0.5, "average": False}
#: Pairs of cells and data that are equivalent.
SAME: dict[str, tuple[Cell, Data, Cell, Data]] = {
    "name of the corpus": (BASE, DATA, replace(BASE, corpus="z"), DATA),
    "name of the learner": (BASE, DATA, replace(BASE, learner=ComparedLearner("shown otherwise", "crf")), DATA),
    "defaults said": (BASE, DATA, replace(BASE, learner=parse("crf(l2=0.1)")), DATA),
    "a whole number said as a fraction": (
        replace(BASE, params={"max_iter": 3}),
        DATA,
        replace(BASE, params={"max_iter": 3.0}),
        DATA,
    ),
    "order of parameters": (replace(BASE, params=PARAMS), DATA, replace(BASE, params=swapped(PARAMS)), DATA),
    "order of settled parameters": (
        replace(BASE, learner=ComparedLearner("x", "crf", {"l2": 0.5, "max_iter": 3})),
        DATA,
        replace(BASE, learner=ComparedLearner("x", "crf", {"max_iter": 3, "l2": 0.5})),
        DATA,
    ),
    "order of tuned parameters": (TUNED, DATA, replace(TUNED, tune=swapped(TUNED.tune)), DATA),
    "settled or common": (replace(BASE, params={"l2": 0.5}), DATA, replace(BASE, learner=parse("crf(l2=0.5)")), DATA),
    "a parameter that the learner has not": (BASE, DATA, replace(BASE, params={"average": False}), DATA),
    "threads": (BASE, DATA, replace(BASE, params={"n_jobs": 3}), DATA),
    "what is logged": (BASE, DATA, replace(BASE, params={"verbose": 1}), DATA),
    "folds without a choice": (BASE, DATA, replace(BASE, folds=3), DATA),
    "sentences of no choice": (BASE, DATA, replace(BASE, tune_size=3), DATA),
    "an unused dev part": (BASE, DATA, BASE, replace(DATA, dev=None)),
    "comments, lines, sources": (
        BASE, DATA, BASE,
        replace(
            DATA,
            train=Corpus(
                [Sentence(s.fields, s.label, doc=s.doc, comments=("# x",), line=9) for s in DATA.train],
                source="elsewhere",
            ),
        ),
    ),
}  # fmt: skip


def test_trials_have_keys_independent_of_the_grid() -> None:
    """The key of a trial does not depend on the grid and differs from other trials and from the cell."""
    wider = replace(TUNED, tune={**TUNED.tune, "l2": [0.1, 1.0, 10.0]})
    names = Names({"a": DATA})
    trial = {"l2": 0.1, "max_iter": 1}
    assert names.key(TUNED, trial=trial) == names.key(wider, trial=trial)
    assert names.key(TUNED, trial=trial) != names.key(replace(TUNED, folds=5), trial=trial)
    keys = {names.key(TUNED), names.key(TUNED, trial=trial), names.key(TUNED, trial={**trial, "l2": 1.0})}
    assert len(keys) == 3


@pytest.mark.parametrize("row", SAME)
def test_equivalent_cells_share_a_key(row: str) -> None:
    """Equivalent cells have one key."""
    one, data, other, others = SAME[row]
    assert key(one, data) == key(other, others)


# --- functions as parameters --------------------------------------------------------------------------------


def scaled(factor: float, offset: float = 0.0) -> Callable[[float], float]:
    """Return a function that closes over values."""
    return lambda x: factor * x + offset


def grown(x: float, by: float = 1.0) -> float:
    """Return a sum, with a default."""
    return x + by


class Held:
    """A callable with state."""

    def __init__(self, value: float) -> None:
        self.value = value

    def __call__(self, x: float) -> float:
        return self.value * x


def test_functions_are_identified_by_source_and_captured_values() -> None:
    """Functions, partials and callables that compute something else have other keys. Equal ones share a key."""

    def of(function: Any) -> str:
        return key(replace(BASE, learner=ComparedLearner("x", "perceptron", {"kernel": function})))

    made: list[Callable[[], Any]] = [
        lambda: grown,
        lambda: scaled(1.0),
        lambda: scaled(2.0),
        lambda: functools.partial(grown, by=2.0),
        lambda: functools.partial(grown, by=3.0),
        lambda: functools.partial(grown, 3.0),
        lambda: functools.partial(pow, 3.0),
        lambda: Held(1.0),
        lambda: Held(2.0),
        lambda: "poly",
    ]
    first, again = ([of(make()) for make in made] for _ in range(2))
    assert first == again
    assert len(set(first)) == len(made)


# --- the code -----------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Return files named like the package's modules and one in place of the native library.

    All are short, because the digest of the bytes is computed once per module.
    """
    folder = tmp_path_factory.mktemp("code")
    root = folder / "tagwise"
    shutil.copytree(PACKAGE, root, ignore=lambda where, names: [n for n in names if unneeded(Path(where, n))])
    for path in root.rglob("*.py"):
        path.write_bytes(path.name.encode())
    library = folder / "library.so"
    library.write_bytes(b"native")
    return root, library


def unneeded(path: Path) -> bool:
    """Return whether a path is neither a module nor a folder that may contain one."""
    return path.name == "__pycache__" if path.is_dir() else path.suffix != ".py"


def test_digest_covers_every_training_module(copy: tuple[Path, Path]) -> None:
    """All modules are in the digest, with their bytes, except those that only display results."""
    root, library = copy
    first, modules = code_digest(root, library), {path.relative_to(root) for path in root.rglob("*.py")}
    shows = {path for path in modules if path.as_posix().startswith(("cli/", "apps/compare/report/"))}
    covered = code_files(root)
    assert {*covered} == modules - shows - {Path("apps/compare/table.py")}
    assert len(covered) > 50
    for path in (*covered[::20], covered[-1]):
        text = (root / path).read_bytes()
        (root / path).write_bytes(b"#" * len(text))
        assert code_digest(root, library) != first
        (root / path).write_bytes(text)
    for path in shows:
        (root / path).write_bytes(b"#")
    assert code_digest(root, library) == first


def test_digest_covers_the_library_and_module_paths(copy: tuple[Path, Path]) -> None:
    """The native library, a new module and a moved module change the digest. Other files do not."""
    root, library = copy
    first = code_digest(root, library)
    found = [first]
    new = root / "learners" / "new.py"
    new.write_text("")
    found.append(code_digest(root, library))
    new.rename(root / "estimators" / "new.py")
    found.append(code_digest(root, library))
    (root / "estimators" / "new.py").unlink()
    other = library.with_name("other.so")
    other.write_bytes(b"natiVe")
    found.append(code_digest(root, other))
    assert len(set(found)) == 4
    (root / "notes.txt").write_text("x")
    assert code_digest(root, library) == first


def test_digest_covers_the_running_package() -> None:
    """The digest in every key covers the package and the library that are running."""
    version, _, digest = code_version().partition("+")
    assert version == _core.__version__
    assert len(digest) == 16
    assert code_digest(PACKAGE, Path(str(_core.__file__))).startswith(digest)


# --- the folder ---------------------------------------------------------------------------------------------

VALUE = {"row": {"accuracy": 1 / 3, "f1": None, "name": "Łódź \u2028"}, "detail": [[1, 2.5e-300], [], {}]}


@pytest.mark.parametrize("kept", [True, False])
def test_hits_return_the_stored_result(tmp_path: Path, kept: bool) -> None:
    """A result is stored in full precision, under its own key only, and computed once."""
    store = Cache(tmp_path if kept else None)
    a, b = key(), key(SCORED)
    assert store.get(a) is None
    store.put(a, VALUE)
    for reader in (store, Cache(tmp_path)) if kept else (store,):
        found = reader.get(a)
        assert found is not None
        assert found == VALUE
        assert reader.get(b) is None

    def never() -> Mapping[str, Any]:
        raise AssertionError("made again")

    assert store.once(a, never) == store.get(a)
    calls: list[int] = []
    for _ in range(2):
        made = store.once(b, lambda: {"score": 0.25 + len(calls), "n": calls.append(1)})
        assert made["score"] == 0.25
    assert len(calls) == 1
    assert len([p for p in tmp_path.rglob("*") if p.is_file()]) == 2 * kept


def test_unserializable_results_leave_no_file(tmp_path: Path) -> None:
    """A value that JSON cannot represent raises an error and leaves no file behind."""
    store = Cache(tmp_path)
    with pytest.raises(TypeError, match="not JSON serializable"):
        store.put(key(), {"row": object()})
    assert [p for p in tmp_path.rglob("*") if p.is_file()] == []


def test_default_cache_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """TAGWISE_CACHE names the folder. The default is in the user's cache."""
    monkeypatch.setenv("TAGWISE_CACHE", str(tmp_path / "named"))
    assert default_folder() == tmp_path / "named"
    monkeypatch.delenv("TAGWISE_CACHE")
    assert default_folder() == platformdirs.user_cache_path("tagwise", appauthor=False) / "compare"
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert default_folder().is_relative_to(tmp_path)


def test_equivalent_cells_are_shown_under_their_own_names(tmp_path: Path) -> None:
    """Equivalent cells are trained once, and each is shown under its own names."""
    paths = [tmp_path / name / "t.txt" for name in "ab"]
    for path in paths:
        path.parent.mkdir()
        path.write_text("word[0]\n")
    cells = [
        Cell(corpus, ComparedLearner(name, "hmm", {}), str(path))
        for corpus, name, path in (("a", "one", paths[0]), ("a", "two", paths[1]), ("z", "two", paths[0]))
    ]
    data = {"a": DATA, "z": DATA}
    store = Cache(tmp_path / "cache")
    events = list(run(cells, data, cache=store))
    assert [e.kind for e in events] == ["start", "done", "done", "done"]
    for found in (events, run(cells, data, cache=store)):
        table = collect(Comparison(), found, cells)
        assert [(r.corpus, r.learner, r.features) for r in table] == [
            (c.corpus, c.learner.name, c.features) for c in cells
        ]
        assert len({(r.accuracy, r.nonzero, r.seconds) for r in table}) == 1

"""Objects of pandas, datasets, spaCy, NLTK and conllu: real ones, or fakes with the same interface.

A fake's types have the module names of the real ones, by which the package detects them.
"""

from __future__ import annotations

import sys
import types
from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

import pytest


def real(name: str) -> Any:
    """Import a library or skip the test."""
    return pytest.importorskip(name, reason=f"{name} is not installed; its fake is tested")


# --- pandas -------------------------------------------------------------------------------------------------


class FakeColumn:
    """A series or an index: values and level names."""

    def __init__(self, values: Sequence[Any], names: Sequence[Any] = (None,)) -> None:
        self.values, self.names = list(values), list(names)

    def tolist(self) -> list[Any]:
        return list(self.values)

    def get_level_values(self, name: Any) -> FakeColumn:
        level = self.names.index(name)
        return FakeColumn([v[level] if isinstance(v, tuple) else v for v in self.values])

    def __getitem__(self, at: int) -> Any:
        return self.values[at]


class FakeFrame:
    """A data frame."""

    iloc = None

    def __init__(self, data: dict[Any, Sequence[Any]], index: Sequence[Any], names: Sequence[Any]) -> None:
        self.data, self.index = data, FakeColumn(index, names)

    @property
    def columns(self) -> list[Any]:
        return list(self.data)

    def __getitem__(self, name: Any) -> FakeColumn:
        return FakeColumn(self.data[name])

    def __len__(self) -> int:
        return len(self.index.values)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.data)


FakeFrame.__module__ = "pandas.core.frame"


class FakeSeries(FakeColumn):
    def __init__(self, values: Sequence[Any], index: FakeColumn, name: str) -> None:
        super().__init__(values)
        self.index, self.name = index, name


def frame(
    kind: str,
    data: dict[Any, Sequence[Any]],
    index: Sequence[Any] | None = None,
    names: Sequence[Any] = (None,),
) -> Any:
    """Return a frame with these columns."""
    places = list(range(len(next(iter(data.values()))))) if index is None else list(index)
    if kind == "fake":
        return FakeFrame(data, places, names)
    pandas = real("pandas")
    if len(names) > 1:
        return pandas.DataFrame(data, index=pandas.MultiIndex.from_tuples(places, names=names))
    return pandas.DataFrame(data, index=pandas.Index(places, name=names[0]))


def with_pandas(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make `import pandas` return the fake if that is tested."""
    if kind == "fake":
        module: Any = types.ModuleType("pandas")
        module.Series = FakeSeries
        monkeypatch.setitem(sys.modules, "pandas", module)


# --- datasets -----------------------------------------------------------------------------------------------


class FakeNames:
    def __init__(self, names: list[str]) -> None:
        self.names = names


class FakeList:
    def __init__(self, feature: Any) -> None:
        self.feature = feature


class FakeDataset:
    def __init__(self, data: dict[str, list[Any]], features: dict[str, Any]) -> None:
        self.data, self.features, self.column_names = data, features, list(data)

    def __len__(self) -> int:
        return len(next(iter(self.data.values())))

    def __iter__(self) -> Iterator[dict[str, Any]]:
        for i in range(len(self)):
            yield {name: values[i] for name, values in self.data.items()}

    def __getitem__(self, at: Any) -> Any:
        return self.data[at] if isinstance(at, str) else {name: x[at] for name, x in self.data.items()}


class FakeDatasetDict(dict[str, Any]):
    features = None


FakeDataset.__module__ = "datasets.arrow_dataset"
FakeDatasetDict.__module__ = "datasets.dataset_dict"


def dataset(kind: str, data: dict[str, list[Any]], names: dict[str, list[str]]) -> Any:
    """Return a data set with one row per sentence. `names` has the label names of columns."""
    if kind == "fake":
        return FakeDataset(
            data, {c: FakeList(FakeNames(names[c]) if c in names else FakeList(None)) for c in data}
        )
    datasets = real("datasets")
    listed = getattr(datasets, "List", datasets.Sequence)
    inner = {c: datasets.ClassLabel(names=names[c]) if c in names else None for c in data}
    plain = {str: "string", int: "int64"}
    features = {
        c: listed(inner[c] or datasets.Value(plain[type(next(x for row in data[c] for x in row))]))
        for c in data
    }
    return datasets.Dataset.from_dict(data, features=datasets.Features(features))


def dataset_dict(kind: str, found: Any) -> Any:
    """Return a dictionary of data sets."""
    return FakeDatasetDict(train=found) if kind == "fake" else real("datasets").DatasetDict(train=found)


# --- spaCy --------------------------------------------------------------------------------------------------


class FakeToken:
    def __init__(self, text: str, i: int, entity: str) -> None:
        self.text, self.i, self.tag_ = text, i, ""
        self.ent_iob_, _, self.ent_type_ = entity.partition("-")


class FakeSpan:
    def __init__(self, doc: Any, start: int, end: int, label: str = "") -> None:
        self.doc, self.start, self.end, self.label_ = doc, start, end, label

    def __iter__(self) -> Iterator[FakeToken]:
        return iter(self.doc.tokens[self.start : self.end])

    def __len__(self) -> int:
        return self.end - self.start

    def __getitem__(self, i: int) -> FakeToken:
        return list(self)[i]  # type: ignore[no-any-return]


class FakeDoc(FakeSpan):
    def __init__(self, words: list[str], entities: list[str] | None, begins: list[bool] | None) -> None:
        self.tokens = [FakeToken(w, i, entities[i] if entities else "") for i, w in enumerate(words)]
        super().__init__(self, 0, len(words))
        self.known = {"ENT_IOB": entities is not None, "SENT_START": begins is not None}
        starts = [i for i, b in enumerate(begins or ()) if b]
        self.sents = [FakeSpan(self, a, b) for a, b in zip(starts, [*starts[1:], len(words)])]
        self.ents: Any = ()
        self.spans: dict[str, Any] = {}

    def has_annotation(self, name: str) -> bool:
        return self.known[name]


FakeDoc.__module__ = "spacy.tokens.doc"


def document(
    kind: str, words: list[str], entities: list[str] | None = None, begins: list[bool] | None = None
) -> Any:
    """Return a document, with entities and sentence starts if given."""
    if kind == "fake":
        return FakeDoc(words, entities, begins)
    spacy = real("spacy")
    return spacy.tokens.Doc(spacy.blank("en").vocab, words=words, ents=entities, sent_starts=begins)


class FakeLanguage:
    factories: ClassVar[dict[str, Any]] = {}

    def __init__(self) -> None:
        self.pipes: list[tuple[str, Any]] = []

    @classmethod
    def has_factory(cls, name: str) -> bool:
        return name in cls.factories

    @classmethod
    def factory(cls, name: str, default_config: dict[str, Any]) -> Any:
        def enter(make: Any) -> Any:
            cls.factories[name] = make
            return make

        return enter

    def add_pipe(self, factory: str, name: str, config: dict[str, Any], **place: Any) -> Any:
        found = self.factories[factory](self, name, **config)
        self.pipes.append((name, found))
        return found

    def __call__(self, words: list[str]) -> Any:
        doc: Any = FakeDoc(words, None, None)
        for _, pipe in self.pipes:
            doc = pipe(doc)
        return doc


def language(kind: str, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return an empty pipeline that can be called with a document."""
    if kind == "real":
        return real("spacy").blank("en")
    spacy, tokens, lang = (types.ModuleType(n) for n in ("spacy", "spacy.tokens", "spacy.language"))
    tokens.Span = FakeSpan  # type: ignore[attr-defined]
    lang.Language = FakeLanguage  # type: ignore[attr-defined]
    monkeypatch.setattr(FakeLanguage, "factories", {})
    for module in (spacy, tokens, lang):
        monkeypatch.setitem(sys.modules, module.__name__, module)
    return FakeLanguage()


# --- NLTK and conllu ----------------------------------------------------------------------------------------


class FakeView:
    """A lazy list of sentences."""

    def __init__(self, sentences: list[Any]) -> None:
        self.sentences = sentences

    def __iter__(self) -> Iterator[Any]:
        return iter(self.sentences)

    def __len__(self) -> int:
        return len(self.sentences)

    def __getitem__(self, i: Any) -> Any:
        return self.sentences[i]


class FakeTree(list[Any]):
    def __init__(self, label: str, children: list[Any]) -> None:
        super().__init__(children)
        self._label = label

    def label(self) -> str:
        return self._label

    def leaves(self) -> list[Any]:
        return [x for child in self for x in (child.leaves() if isinstance(child, FakeTree) else [child])]


FakeView.__module__ = "nltk.collections"
FakeTree.__module__ = "nltk.tree.tree"


def tree(kind: str, label: str, children: list[Any]) -> Any:
    """Return an NLTK tree."""
    return FakeTree(label, children) if kind == "fake" else real("nltk.tree").Tree(label, children)


def view(kind: str, sentences: list[Any]) -> Any:
    """Return a lazy NLTK list."""
    return FakeView(sentences) if kind == "fake" else real("nltk.collections").LazyMap(list, sentences)


class FakeTokens(list[Any]):
    """A conllu sentence with `serialize`."""

    def __init__(self, text: str) -> None:
        super().__init__(line.split("\t")[1] for line in text.splitlines() if not line.startswith("#"))
        self.text = text

    def serialize(self) -> str:
        return self.text.strip("\n") + "\n\n"


FakeTokens.__module__ = "conllu.models"


def conllu(kind: str, text: str) -> Any:
    """Return the sentences of a CoNLL-U text."""
    if kind == "fake":
        return [FakeTokens(block) for block in text.strip().split("\n\n")]
    return real("conllu").parse(text)

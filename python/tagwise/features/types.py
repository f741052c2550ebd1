"""Type aliases of the sentences and labels that `fit`, `predict` and their relatives accept."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from os import PathLike
from typing import Any, Protocol

from numpy.typing import NDArray

from tagwise.corpus.sentence import Corpus, Sentence
from tagwise.features.derived_columns import DerivedColumn, Features
from tagwise.features.inputs import Inputs
from tagwise.features.vectors import Vectors


class TokenTable(Protocol):
    """A table with one row per token, such as a pandas DataFrame."""

    @property
    def columns(self) -> Any:
        """Names of the columns."""

    @property
    def iloc(self) -> Any:
        """Rows by number."""


class SentenceTable(Protocol):
    """A table with one row per sentence, such as a Hugging Face dataset."""

    @property
    def features(self) -> Any:
        """Types of the columns."""


class SpanDocument(Protocol):
    """A document with sentences and entities, such as a spaCy `Doc`."""

    @property
    def ents(self) -> Any:
        """Entities."""


#: Label of a token. All labels of a training set have one type, and predictions have it too.
Label = str | int | float | bool
#: A token: a string, or its attributes as a collection of names or a mapping of names to values.
Token = str | Collection[str] | Mapping[str, Any]
#: One sentence.
SentenceLike = Sentence | Vectors | Iterable[Token] | Mapping[str, Sequence[str]] | NDArray[Any]
#: Sentences, the type of X.
Sentences = (
    Corpus
    | Inputs
    | Iterable[SentenceLike]
    | TokenTable
    | SentenceTable
    | SpanDocument
    | Iterable[SpanDocument]
)
#: Labelled sentences, the type of X in `fit` and `evaluate`, which also read the corpus file at a path.
LabelledSentences = Sentences | str | PathLike[str]
#: One label per token and sentence, the type of y. For partly labelled sentences also a set of labels, or None for any.
Labels = Iterable[Iterable[Label | Collection[Label] | None]]
#: Feature set, the type of the parameter `features`: a name, a template, a function, or a sum of them.
FeatureSet = str | Features | DerivedColumn | Callable[..., Any] | None

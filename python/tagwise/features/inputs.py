"""Typed view of X: the user's sentences are inspected once, and all later steps use the result.

>>> X = Inputs.of([["The", "dog"], ["barks"]])
>>> X.kind, X.columns, len(X), X.words("an example")
('tokens', ('word',), 2, [['The', 'dog'], ['barks']])
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from tagwise._core import WordSets
from tagwise.base.cached import cached
from tagwise.base.exceptions import CorpusError, ParameterError
from tagwise.corpus import interop
from tagwise.corpus.formats import read
from tagwise.corpus.labels import lists as label_lists
from tagwise.corpus.labels import single
from tagwise.corpus.sentence import Corpus, Sentence
from tagwise.corpus.text import span_jsonl
from tagwise.corpus.text.spans import CONTINUED, TEXT
from tagwise.features.sets import DEFAULT_COLUMN
from tagwise.features.vectors import Vectors, is_vectors, separated

Kind = Literal["columns", "tokens", "attributes"]


def _unlabelled(corpus: Corpus) -> CorpusError:
    """Return the error for a file whose columns include no labels."""
    members = list(dict.fromkeys(key for sentence in corpus[:20] for key in sentence.meta or ()))
    seen = f"The columns are {', '.join(corpus.columns)}"
    if TEXT in members:  # spans with offsets would be labels
        others = ", ".join(key for key in members if key not in (TEXT, CONTINUED)) or "none"
        return CorpusError(
            f"{corpus.source}: no column is the label. {seen}, the other members {others}, but no spans with offsets. "
            f"{span_jsonl.EXAMPLE}."
        )
    return CorpusError(
        f"{corpus.source}: no column is the label. {seen}. Read the file with tw.read(path, label='...')."
    )


@dataclass(frozen=True)
class Inputs:
    """The user's sentences with lazily computed properties.

    Attributes:
        sentences: Sentences of one kind, see `kind_of`.
        source: Original container. A Corpus has columns and labels.
        vectors: Vectors of each sentence, or None.
        word_ids: Word ids that encoding has already computed.
    """

    sentences: Sequence[Any]
    source: Any = field(default=None, repr=False, compare=False)
    vectors: Sequence[Vectors] | None = field(default=None, repr=False, compare=False)
    word_ids: list[tuple[WordSets, NDArray[np.uint32]]] = field(
        default_factory=list, repr=False, compare=False
    )

    @staticmethod
    def of(X: Any) -> Inputs:
        """Convert any X of a user. An `Inputs` is returned unchanged."""
        if isinstance(X, Inputs):
            return X
        if type(X) is list and set(map(type, X)) == {list}:  # fast path: single sentences as lists of tokens
            return Inputs(X, X)
        if not isinstance(X, Corpus) and interop.kind_of(X) is not None:
            X = interop.corpus_of(X)
        if isinstance(X, Mapping) or not hasattr(type(X), "__iter__"):
            X = _read(X)
        sentences = X if isinstance(X, Sequence) else list(X)
        if not isinstance(X, Corpus) and any(isinstance(sentence, Iterator) for sentence in sentences):
            sentences = [list(x) if isinstance(x, Iterator) else x for x in sentences]
        if len(sentences) and is_vectors(sentences[0]):
            bare, vectors = separated(sentences)
            return Inputs(bare, bare, vectors)
        return Inputs(sentences, X)

    @staticmethod
    def of_labelled(X: Any) -> Inputs:
        """Convert any X with labels. The corpus file at a path is read."""
        if isinstance(X, (str, os.PathLike)):
            found = read(X)
            if found.label is None:
                raise _unlabelled(found)
            X = found
        return Inputs.of(X)

    def __len__(self) -> int:
        return len(self.sentences)

    def only(self, s: int) -> Inputs:
        """Return the inputs with a single sentence."""
        single = Inputs.of(self.sentences[s : s + 1])
        return (
            single
            if self.vectors is None
            else Inputs(single.sentences, single.source, self.vectors[s : s + 1])
        )

    @property
    @cached
    def kind(self) -> Kind | None:
        """Kind of the sentences, see `kind_of`."""
        return kind_of(self.sentences)

    @property
    @cached
    def columns(self) -> tuple[str, ...]:
        """Columns for features: those of a Corpus without its label, the keys of mappings, or else only word."""
        if self.all_columns is not None:
            return tuple(c for c in self.all_columns if c != self.label)
        for sentence in self.sentences:
            fields = fields_of(sentence)
            if fields is not None:
                label = getattr(sentence, "label", None)
                return tuple(c for c in fields if c != label)
            break
        return (DEFAULT_COLUMN,)

    @property
    def all_columns(self) -> tuple[str, ...] | None:
        """Columns of a Corpus or a list of Sentences including the label, or None for other inputs."""
        columns = getattr(self.source, "columns", None)
        if columns is None and self._first is not None:
            columns = self._first.fields
        return None if columns is None else tuple(columns)

    @property
    def _first(self) -> Sentence | None:
        """First element of a list of Sentences, or None for other inputs."""
        first = next(iter(self.sentences), None) if isinstance(self.sentences, Sequence) else None
        return first if isinstance(first, Sentence) else None

    @property
    def label(self) -> str | None:
        """Label column of a Corpus or a list of Sentences, or None."""
        label: str | None = getattr(self._first or self.source, "label", None)
        return label

    def gold(self, y: Iterable[Iterable[Any]] | None) -> Sequence[Sequence[Any]]:
        """Return the gold labels: `y`, or else the labels of the corpus."""
        if y is not None:
            return label_lists(y)
        labels: Sequence[Sequence[str]] | None = getattr(self.source, "labels", None)
        if labels is None and self._first is not None:
            labels = [sentence.labels for sentence in self.sentences]
        if labels is None:
            pairs = interop.is_tagged(self.sentences)
            remedy = " For pairs of a word and a label, pass tagwise.corpus.corpus_of(X)." if pairs else ""
            source = getattr(self.source, "source", None)
            place = f"{source}: " if isinstance(source, str) and source else ""
            raise ParameterError(f"{place}no labels: pass y, or a Corpus with a label column.{remedy}")
        return labels

    def words(self, consumer: str) -> list[Sequence[str]]:
        """Return the tokens of each sentence. `consumer` names the caller in the error for sentences of attributes."""
        out: list[Sequence[str]] = []
        for s, sentence in enumerate(self.sentences):
            words = sentence
            if not isinstance(sentence, list):
                fields = getattr(sentence, "fields", sentence)
                words = next(iter(fields.values()), []) if isinstance(fields, (dict, Mapping)) else sentence
            if len(words) and not isinstance(words[0], str):
                raise CorpusError(
                    f"sentence {s} contains attributes, but {consumer} needs words. Pass lists of tokens or a Corpus."
                )
            out.append(words)
        return out

    def shown(self, s: int) -> list[str]:
        """Return the tokens of a sentence for displays. Tokens that are attributes have their numbers, as in #0."""
        if self.kind == "attributes":
            return [f"#{t}" for t in range(len(self.sentences[s]))]
        return [str(word) for word in self.only(s).words("a display")[0]]

    def labelled(self, y: Iterable[Iterable[Any]] | None) -> Corpus:
        """Return the tokens with gold labels as strings: `y`, or else the labels of the corpus."""
        if y is None and isinstance(self.source, Corpus):
            return self.source
        gold, _ = single(self.gold(y))
        if len(gold) != len(self):
            raise CorpusError(
                f"{len(gold)} label sequences for {len(self)} sentences. Give one label sequence per sentence."
            )
        return Corpus(
            Sentence({DEFAULT_COLUMN: self.shown(s), "label": list(labels)}, "label", line=self.line(s))
            for s, labels in enumerate(gold)
        )

    def numbers(self, words: WordSets, consumer: str) -> NDArray[np.uint32]:
        """Return the word id of each token, from encoding if available, else by a new lookup."""
        for known, found in self.word_ids:
            if known is words:
                return found
        return words.of(self.words(consumer))

    @property
    def word_column(self) -> str | None:
        """Column of a Corpus that `words` reads, or None for other inputs."""
        return self.source.columns[0] if isinstance(self.source, Corpus) else None

    @property
    @cached
    def starts(self) -> NDArray[np.uint32]:
        """Index of the first sentence of each document. Without document marks, X is one document."""
        begins = [s for s in range(len(self)) if s == 0 or self.begins_document(s)]
        return np.array(begins, dtype=np.uint32)

    def begins_document(self, s: int) -> bool:
        """Return whether a sentence is marked as the first of a document."""
        return getattr(self.sentences[s], "doc", None) is not None

    @property
    def has_documents(self) -> bool:
        """Whether a Corpus or a list of Sentences marks documents."""
        if self._first is None:
            return bool(getattr(self.source, "has_documents", False))
        return any(map(self.begins_document, range(len(self))))

    def line(self, s: int) -> int | None:
        """Return the line number of a sentence in its file, or None if it is unknown."""
        line: int | None = getattr(self.sentences[s], "line", None)
        return line


_REMEDY = "Put a single sentence into a list."
_TEXT_REMEDY = "Label text with tag(...) of a tagger, or pass each sentence as a list of tokens."


def _read(X: Any) -> list[Any]:
    """Return the sentences of an object with only `__getitem__`. Raise a CorpusError for mappings, numbers and None."""
    if not isinstance(X, Mapping):
        with contextlib.suppress(TypeError):
            return list(X)
    raise CorpusError(
        f"X is {type(X).__name__}, expected a list of sentences. Put a single sentence into a list."
    )


def kind_of(X: Iterable[Any]) -> Kind | None:
    """Return the kind of the sentences of X, by the first one that is not empty, or None if all are empty.

    "columns" means a Corpus, or mappings of column -> values. "tokens" means lists of strings. "attributes" means lists
    of tokens that are lists or dicts of attributes.

    >>> kind_of([["The", "dog"]]), kind_of([[["w=The"], {"w": "dog"}]]), kind_of([])
    ('tokens', 'attributes', None)
    """
    if isinstance(X, (str, bytes, Mapping)):
        raise CorpusError(
            f"X is {type(X).__name__}, expected a list of sentences. {_TEXT_REMEDY if isinstance(X, str) else _REMEDY}"
        )
    for s, sentence in enumerate(X):
        if hasattr(sentence, "fields") or isinstance(sentence, Mapping):
            return "columns"
        if isinstance(sentence, (str, bytes)) or not isinstance(sentence, Iterable):
            raise CorpusError(
                f"sentence {s} (X[{s}]) is {type(sentence).__name__}, expected a list of tokens. "
                f"{_TEXT_REMEDY if isinstance(sentence, str) else _REMEDY}"
            )
        for token in sentence:
            if isinstance(token, bytes) or not isinstance(token, Iterable):
                raise CorpusError(
                    f"sentence {s}, token 0 (X[{s}][0]): {token!r} is {type(token).__name__}, expected a string, or a "
                    "list or dict of attributes. Convert it with "
                    f"{'decode' if isinstance(token, bytes) else 'str'}()."
                )
            return "tokens" if isinstance(token, str) else "attributes"
    return None


def columns_of(X: Any) -> tuple[str, ...]:
    """Return the columns for features: those of a Corpus without its label, the keys of mappings, or else only word."""
    return Inputs.of(X).columns


def fields_of(sentence: Any) -> Mapping[str, Sequence[str]] | None:
    """Return the columns of a sentence by name, or None if it has no named columns."""
    if type(sentence) is Sentence:
        return sentence.fields
    fields = sentence if isinstance(sentence, Mapping) else getattr(sentence, "fields", None)
    return fields if isinstance(fields, Mapping) else None

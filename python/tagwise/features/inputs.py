"""What X is: read once into a typed value, which everything behind it is handed.

>>> X = Inputs.of([["The", "dog"], ["barks"]])
>>> X.kind, X.columns, len(X), X.words("an example")
('tokens', ('word',), 2, [['The', 'dog'], ['barks']])
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from tagwise._core import WordSets
from tagwise.base.exceptions import CorpusError, ParameterError
from tagwise.corpus import interop
from tagwise.corpus.labels import lists as label_lists
from tagwise.corpus.sentence import Corpus, Sentence
from tagwise.features.sets import DEFAULT_COLUMN
from tagwise.features.vectors import Vectors, is_vectors, taken_apart

Kind = Literal["columns", "tokens", "attributes"]
Labels = Sequence[Sequence[str]]


@dataclass(frozen=True)
class Inputs:
    """Sentences as a user gave them, and what there is to ask of them; each question is answered once.

    sentences: of one kind, see `kind_of`; given: what they came in, a Corpus that knows its columns and labels perhaps;
    vectors: of each sentence, where they have some; noted: numbers of words that were found on the way.
    """

    sentences: Sequence[Any]
    given: Any = field(default=None, repr=False, compare=False)
    vectors: Sequence[Vectors] | None = field(default=None, repr=False, compare=False)
    noted: list[tuple[WordSets, NDArray[np.uint32]]] = field(default_factory=list, repr=False, compare=False)

    @staticmethod
    def of(X: Any) -> Inputs:
        """Anything that a user passes as X; what was read before stays as it is."""
        if isinstance(X, Inputs):
            return X
        if type(X) is list and set(map(type, X)) == {list}:  # what is asked for most, one sentence at a time
            return Inputs(X, X)
        if not isinstance(X, Corpus) and interop.kind_of(X) is not None:
            X = interop.corpus_of(X)
        if isinstance(X, Mapping) or not hasattr(type(X), "__iter__"):
            X = _read(X)
        sentences = X if isinstance(X, Sequence) else list(X)
        if not isinstance(X, Corpus) and any(isinstance(sentence, Iterator) for sentence in sentences):
            sentences = [list(x) if isinstance(x, Iterator) else x for x in sentences]
        if len(sentences) and is_vectors(sentences[0]):
            beside, vectors = taken_apart(sentences)
            return Inputs(beside, beside, vectors)
        return Inputs(sentences, X)

    def __len__(self) -> int:
        return len(self.sentences)

    def only(self, s: int) -> Inputs:
        """One of the sentences by itself."""
        alone = Inputs.of(self.sentences[s : s + 1])
        return (
            alone if self.vectors is None else Inputs(alone.sentences, alone.given, self.vectors[s : s + 1])
        )

    @cached_property
    def kind(self) -> Kind | None:
        """What the sentences are; see `kind_of`."""
        return kind_of(self.sentences)

    @cached_property
    def columns(self) -> tuple[str, ...]:
        """Columns that features may look at: a Corpus's but its label, the keys of mappings, else word alone."""
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
        """Columns of a Corpus or a list of Sentences, their label included; None for anything else."""
        columns = getattr(self.given, "columns", None)
        if columns is None and self._first is not None:
            columns = self._first.fields
        return None if columns is None else tuple(columns)

    @property
    def _first(self) -> Sentence | None:
        """The first of a list of Sentences."""
        first = next(iter(self.sentences), None) if isinstance(self.sentences, Sequence) else None
        return first if isinstance(first, Sentence) else None

    @property
    def label(self) -> str | None:
        """The label column of a Corpus, or of a list of Sentences, that has one."""
        label: str | None = getattr(self._first or self.given, "label", None)
        return label

    def gold(self, y: Labels | None) -> Labels:
        """The labels that go with the sentences: those given, or the corpus's own."""
        if y is not None:
            return label_lists(y)
        labels: Labels | None = getattr(self.given, "labels", None)
        if labels is None and self._first is not None:
            labels = [sentence.labels for sentence in self.sentences]
        if labels is None:
            pairs = interop.is_tagged(self.sentences)
            remedy = "; of pairs of a word and a label make one: corpus_of(X)" if pairs else ""
            raise ParameterError(f"no labels: pass y, or a Corpus with a label column{remedy}")
        return labels

    def words(self, what: str) -> list[Sequence[str]]:
        """The tokens of each sentence, for `what` needs words and not attributes."""
        out: list[Sequence[str]] = []
        for s, sentence in enumerate(self.sentences):
            words = sentence
            if not isinstance(sentence, list):
                fields = getattr(sentence, "fields", sentence)
                words = next(iter(fields.values()), []) if isinstance(fields, (dict, Mapping)) else sentence
            if len(words) and not isinstance(words[0], str):
                raise CorpusError(
                    f"sentence {s} holds attributes, but {what} needs its words; pass lists of tokens or a Corpus"
                )
            out.append(words)
        return out

    def numbers(self, words: WordSets, what: str) -> NDArray[np.uint32]:
        """The number of each token's word, for `what` needs it: noted while encoding, or looked up now."""
        for known, found in self.noted:
            if known is words:
                return found
        return words.of(self.words(what))

    @property
    def word_column(self) -> str | None:
        """The column of a Corpus that `words` reads; None for anything else."""
        return self.given.columns[0] if isinstance(self.given, Corpus) else None

    @cached_property
    def starts(self) -> NDArray[np.uint32]:
        """The first sentence of each document; what marks none is one document."""
        begins = [s for s in range(len(self)) if s == 0 or self.begins_document(s)]
        return np.array(begins, dtype=np.uint32)

    def begins_document(self, s: int) -> bool:
        """Whether a sentence is marked as the first of a document."""
        return getattr(self.sentences[s], "doc", None) is not None

    @property
    def has_documents(self) -> bool:
        """Whether a Corpus, or a list of Sentences, marks its documents."""
        if self._first is None:
            return bool(getattr(self.given, "has_documents", False))
        return any(map(self.begins_document, range(len(self))))

    def line(self, s: int) -> int | None:
        """The line of the file that a sentence begins at, where that is known."""
        line: int | None = getattr(self.sentences[s], "line", None)
        return line


def _read(X: Any) -> list[Any]:
    """The sentences of an object that Python can only count through; an error for a mapping, a number, None."""
    if not isinstance(X, Mapping):
        with contextlib.suppress(TypeError):
            return list(X)
    raise CorpusError(
        f"X is {type(X).__name__}, expected a list of sentences; put a single sentence into a list"
    )


def kind_of(X: Iterable[Any]) -> Kind | None:
    """What the sentences of X are, judged by the first that is not empty; None where all are.

    "columns": a Corpus, or mappings of column -> values; "tokens": lists of strings; "attributes": lists of
    tokens that are lists or dicts of attributes.

    >>> kind_of([["The", "dog"]]), kind_of([[["w=The"], {"w": "dog"}]]), kind_of([])
    ('tokens', 'attributes', None)
    """
    if isinstance(X, (str, bytes, Mapping)):
        raise CorpusError(
            f"X is a list of sentences, found {type(X).__name__}; put a single sentence into a list"
        )
    for s, sentence in enumerate(X):
        if hasattr(sentence, "fields") or isinstance(sentence, Mapping):
            return "columns"
        if isinstance(sentence, (str, bytes)) or not isinstance(sentence, Iterable):
            raise CorpusError(
                f"sentence {s} (X[{s}]) is {type(sentence).__name__}, expected a list of tokens; "
                "put a single sentence into a list"
            )
        for token in sentence:
            if isinstance(token, bytes) or not isinstance(token, Iterable):
                raise CorpusError(
                    f"sentence {s}, token 0 (X[{s}][0]): {token!r} is {type(token).__name__}; a token is a string, or "
                    f"a list or dict of attributes; convert it with {'decode' if isinstance(token, bytes) else 'str'}()"
                )
            return "tokens" if isinstance(token, str) else "attributes"
    return None


def columns_of(X: Any) -> tuple[str, ...]:
    """Columns that features may look at: a Corpus's but its label, the keys of mappings, else word alone."""
    return Inputs.of(X).columns


def fields_of(sentence: Any) -> Mapping[str, Sequence[str]] | None:
    """The columns of a sentence that has them by name."""
    if type(sentence) is Sentence:
        return sentence.fields
    fields = sentence if isinstance(sentence, Mapping) else getattr(sentence, "fields", None)
    return fields if isinstance(fields, Mapping) else None

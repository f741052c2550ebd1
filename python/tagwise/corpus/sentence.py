"""Sentences and corpora in memory: named columns of strings with one value per token."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, overload

from tagwise.base.exceptions import CorpusError
from tagwise.base.parameters import meant
from tagwise.corpus.labels import mapped


class Sentence:
    """A sequence of tokens with named columns. Length, iteration and indexing are those of the list of tokens.

    Args:
        fields: dict of str to list of str. One string per token for each column. The first column holds the tokens.
        label: str or None, default=None. Name of the label column. None means an unlabelled sentence.
        comments: tuple of str, default=(). Comment lines before the sentence (``# text = ...``), written back
            unchanged.
        doc: str or None, default=None. Name of the document that begins with this sentence (``""`` if it has no
            name). None means that the sentence continues a document.
        line: int or None, default=None. Line of the first token in its file, counted from 1.
        rows: tuple of (int, str), default=(). CoNLL-U rows that are not tokens (multiword tokens, empty nodes), each
            with the index of the next token.
        meta: mapping or None, default=None. Other keys of a JSONL object, written back unchanged.

    Attributes:
        fields: Columns by name. The attributes label, comments, doc, line, rows and meta also equal the arguments.
        tokens: First column.
        labels: Label column.

    Raises:
        CorpusError: The columns differ in length, there are none, or the label column is not one of them.

    >>> s = Sentence({"word": ["Paris", "sleeps"], "label": ["B-LOC", "O"]}, "label")
    >>> s.tokens, s.labels, len(s), s[0]
    (['Paris', 'sleeps'], ['B-LOC', 'O'], 2, 'Paris')
    """

    __slots__ = ("comments", "doc", "fields", "label", "line", "meta", "rows")

    def __init__(
        self,
        fields: dict[str, list[str]],
        label: str | None = None,
        *,
        comments: tuple[str, ...] = (),
        doc: str | None = None,
        line: int | None = None,
        rows: tuple[tuple[int, str], ...] = (),
        meta: Mapping[str, Any] | None = None,
    ) -> None:
        lengths = set(map(len, fields.values()))
        if len(lengths) != 1:
            sizes = ", ".join(f"{name}: {len(values)}" for name, values in fields.items()) or "no columns"
            raise CorpusError(
                f"the columns of a sentence need one value per token, but their lengths are {sizes}. "
                "Give at least one column, and every column the same number of values."
            )
        if label is not None and label not in fields:
            raise CorpusError(
                f"no column is named {label!r}{meant(label, fields)}. The columns are {', '.join(fields)}."
            )
        self.fields = fields
        self.label = label
        self.comments = comments
        self.doc = doc
        self.line = line
        self.rows = rows
        self.meta = meta

    @property
    def tokens(self) -> list[str]:
        """First column."""
        return next(iter(self.fields.values()))

    @property
    def labels(self) -> list[str]:
        """Label column. Raises a CorpusError if the sentence is unlabelled."""
        if self.label is None:
            raise CorpusError(
                f"a sentence with the columns {', '.join(self.fields)} has no label column. "
                "Name it when reading: label='...' with one of these columns."
            )
        return self.fields[self.label]

    def with_labels(self, labels: Sequence[str], label: str | None = None) -> Sentence:
        """Return a copy with other labels.

        Args:
            labels: sequence of str. One label per token.
            label: str or None, default=None. Name of the column to replace or to append. None means the label
                column, or ``label`` for an unlabelled sentence.

        Returns:
            A new `Sentence`, which shares the other columns.

        Raises:
            CorpusError: The number of labels differs from the number of tokens.

        >>> Sentence({"word": ["Paris"]}).with_labels(["B-LOC"]).labels
        ['B-LOC']
        """
        name, labels = label or self.label or "label", list(labels)
        if len(labels) != len(self):
            where = f" at line {self.line}" if self.line else ""
            raise CorpusError(
                f"{len(labels)} labels for the sentence{where} of {len(self)} tokens "
                f"({' '.join(self.tokens[:6])} ...). Give one label per token."
            )
        fields = {**self.fields, name: labels}
        return Sentence(
            fields, name, comments=self.comments, doc=self.doc, line=self.line, rows=self.rows, meta=self.meta
        )

    def __len__(self) -> int:
        return len(self.tokens)

    def __iter__(self) -> Iterator[str]:
        return iter(self.tokens)

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> list[str]: ...
    def __getitem__(self, index: int | slice) -> str | list[str]:
        try:
            return self.tokens[index]
        except TypeError:
            raise TypeError(
                f"{index!r} is not an index of tokens. Columns are in the attribute fields: {', '.join(self.fields)}"
            ) from None

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Sentence):
            return NotImplemented
        return (
            list(self.fields.items()) == list(other.fields.items())
            and self.label == other.label
            and self.comments == other.comments
            and self.doc == other.doc
            and self.rows == other.rows
            and (self.meta or {}) == (other.meta or {})
        )

    __hash__ = None  # type: ignore[assignment]

    def _repr_html_(self) -> str:
        """Return the tokens with highlighted spans or labels, for notebooks."""
        from tagwise.base.markup import sentence_html
        from tagwise.corpus.schemes import has_chunks, spans

        labels = [] if self.label is None else self.labels
        if has_chunks(labels):
            return sentence_html(self.tokens, [(span.begin, span.end, span.type) for span in spans(labels)])
        return sentence_html(self.tokens, [(t, t + 1, y) for t, y in enumerate(labels) if y != "O"])

    def displacy(self) -> dict[str, Any]:
        """Return text and spans for displaCy: `displacy.render(sentence.displacy(), style="ent", manual=True)`.

        Returns:
            A dict with the tokens joined by spaces and the character offsets of the chunks.

        Raises:
            CorpusError: The sentence is unlabelled, or its labels do not mark chunks.

        >>> Sentence({"word": ["in", "New", "York"], "label": ["O", "B-LOC", "I-LOC"]}, "label").displacy()
        {'text': 'in New York', 'ents': [{'start': 3, 'end': 11, 'label': 'LOC'}], 'title': None}
        """
        from tagwise.corpus.schemes import spans

        begins = [0]
        for token in self.tokens:
            begins.append(begins[-1] + len(token) + 1)
        ents = [
            {"start": begins[span.begin], "end": begins[span.end] - 1, "label": span.type}
            for span in spans(self.labels)
        ]
        return {"text": " ".join(self.tokens), "ents": ents, "title": None}

    def __repr__(self) -> str:
        from tagwise.base.terminal import brief

        words = brief(" ".join(self.tokens[:8])) + (" ..." if len(self) > 8 else "")
        return f"<Sentence of {len(self)} tokens: {words}>"


def _shown(source: str) -> str:
    """Return a source for displays: a part of a bundled corpus by its name, such as wnut17-ner:dev."""
    folder = os.path.join(os.path.dirname(__file__), "data", "")
    if not source.startswith(folder):
        return source
    name, _, file = source[len(folder) :].partition(os.sep)
    return f"{name}:{file.partition('.')[0]}"


class Corpus(Sequence[Sentence]):
    """A sequence of sentences with the same columns. A slice is a Corpus, and ``+`` concatenates two of them.

    Args:
        sentences: iterable of Sentence.
        columns: sequence of str or None, default=None. Columns of an empty corpus. Sentences have their own.
        label: str or None, default=None. Label column of an empty corpus.
        source: str or None, default=None. Name of the file, for messages.

    Attributes:
        columns: Names of the columns. The first one holds the tokens.
        label: Name of the label column, or None.
        source: Name of the file, or None.
        tokens: Tokens of each sentence.
        labels: Labels of each sentence.
        label_set: Sorted distinct labels.
        n_tokens: Total number of tokens.
        documents: Range of sentence indices of each document.
        has_documents: Whether the file marks documents.

    Raises:
        CorpusError: The sentences differ in their columns or their label column.

    >>> c = Corpus.from_lists([["a", "b"], ["c"]], [["X", "Y"], ["X"]])
    >>> len(c), c.n_tokens, c.columns, c.labels
    (2, 3, ('word', 'label'), [['X', 'Y'], ['X']])
    >>> c[:1].tokens
    [['a', 'b']]
    """

    __slots__ = ("_sentences", "columns", "label", "source")

    def __init__(
        self,
        sentences: Iterable[Sentence],
        *,
        columns: Sequence[str] | None = None,
        label: str | None = None,
        source: str | None = None,
    ) -> None:
        self._sentences = list(sentences)
        self.source = source
        if self._sentences:
            first = self._sentences[0]
            self.columns: tuple[str, ...] = tuple(first.fields)
            self.label: str | None = first.label
        else:
            self.columns = tuple(columns or ())
            self.label = label
        expected = list(self.columns)
        for i, s in enumerate(self._sentences):
            if list(s.fields) != expected or s.label != self.label:
                place = f"{source or 'corpus'}:{s.line}" if s.line else f"sentence {i} (from 0)"
                raise CorpusError(
                    f"{place}: columns {', '.join(s.fields)} (label column {s.label}), but the first "
                    f"sentence has {', '.join(expected)} (label column {self.label}). "
                    "Give every sentence the same columns."
                )

    @classmethod
    def from_lists(
        cls, tokens: Sequence[Sequence[str]], labels: Sequence[Sequence[str]] | None = None
    ) -> Corpus:
        """Create a corpus from lists of tokens and labels.

        Args:
            tokens: sequence of sequences of str. Tokens of each sentence.
            labels: sequence of sequences of str or None, default=None. Labels of each sentence. None means an
                unlabelled corpus.

        Returns:
            A `Corpus` with the columns ``word`` and, if there are labels, ``label``.

        Raises:
            CorpusError: The numbers of tokens and labels differ.

        >>> Corpus.from_lists([["a", "b"]], [["X", "Y"]]).columns
        ('word', 'label')
        """
        unlabelled = cls([Sentence({"word": list(words)}) for words in tokens], columns=("word",))
        return unlabelled if labels is None else unlabelled.with_labels(labels)

    def tagged(self) -> list[list[tuple[str, str]]]:
        """Return each sentence as a list of (word, label) pairs, the format of NLTK.

        Returns:
            A list of lists of tuples.

        Raises:
            CorpusError: The corpus is unlabelled.

        >>> Corpus.from_lists([["a", "b"]], [["X", "Y"]]).tagged()
        [[('a', 'X'), ('b', 'Y')]]
        """
        return [list(zip(s.tokens, s.labels)) for s in self._sentences]

    def to_html(self, title: str | None = None) -> str:
        """Return a self-contained HTML page of all sentences with highlighted spans or labels.

        Args:
            title: str or None, default=None. Title of the page. None means the name of the file.

        Returns:
            HTML that needs neither a network connection nor scripts.

        >>> Corpus.from_lists([["Paris"]], [["B-LOC"]]).to_html("one city").count("LOC")
        1
        """
        from tagwise.base.markup import page_html

        return page_html(title or self.source or "sentences", [s._repr_html_() for s in self._sentences])

    @property
    def tokens(self) -> list[list[str]]:
        """Tokens of each sentence."""
        return [s.tokens for s in self._sentences]

    @property
    def labels(self) -> list[list[str]]:
        """Labels of each sentence. Raises a CorpusError if the corpus is unlabelled."""
        if self.label is None and not self._sentences:
            return []
        if self.label is None:
            raise CorpusError(
                f"{self.source or 'this corpus'} has no label column. "
                f"Its columns are {', '.join(self.columns)}. "
                "Name it when reading: label='...' with one of these columns."
            )
        return [s.fields[self.label] for s in self._sentences]

    def column(self, name: str) -> list[list[str]]:
        """Return one column of every sentence.

        Args:
            name: str. Name of the column.

        Returns:
            One list of values per sentence.

        Raises:
            CorpusError: There is no such column.

        >>> Corpus.from_lists([["a", "b"]]).column("word")
        [['a', 'b']]
        """
        if name not in self.columns:
            raise CorpusError(
                f"{self.source or 'this corpus'} has no column {name!r}{meant(name, self.columns)}. "
                f"Its columns are {', '.join(self.columns)}."
            )
        return [s.fields[name] for s in self._sentences]

    @property
    def n_tokens(self) -> int:
        """Total number of tokens."""
        return sum(map(len, self._sentences))

    @property
    def label_set(self) -> list[str]:
        """Sorted distinct labels."""
        return sorted(set().union(*self.labels))

    @property
    def has_documents(self) -> bool:
        """Whether the file marks documents (``-DOCSTART-``, ``# newdoc``)."""
        return any(s.doc is not None for s in self._sentences)

    @property
    def documents(self) -> list[range]:
        """Range of sentence indices of each document. Without document marks, the corpus is one document."""
        n = len(self._sentences)
        begins = [i for i, s in enumerate(self._sentences) if s.doc is not None or i == 0]
        return [range(b, e) for b, e in zip(begins, [*begins[1:], n])]

    def with_labels(self, labels: Sequence[Sequence[str]], label: str | None = None) -> Corpus:
        """Return a copy with other labels, for example predicted ones.

        Args:
            labels: sequence of sequences of str. One label per token of each sentence.
            label: str or None, default=None. Name of the column to replace or to append. None means the label
                column, or ``label`` for an unlabelled corpus.

        Returns:
            A new `Corpus`.

        Raises:
            CorpusError: The numbers of labels and tokens differ.

        >>> Corpus.from_lists([["a", "b"]]).with_labels([["X", "Y"]]).labels
        [['X', 'Y']]
        """
        name, labels = label or self.label or "label", list(labels)
        if len(labels) != len(self):
            raise CorpusError(
                f"{len(labels)} label sequences for {len(self)} sentences. "
                "Give one label sequence per sentence."
            )
        columns = self.columns if name in self.columns else (*self.columns, name)
        made = [s.with_labels(y, name) for s, y in zip(self._sentences, labels)]
        return Corpus(made, columns=columns, label=name, source=self.source)

    def map_labels(self, mapping: Mapping[str, str]) -> Corpus:
        """Return a copy with other names of labels.

        Args:
            mapping: mapping of str to str. New names of labels, or of the types of chunk labels: ``{"person": "PER"}``
                turns B-person into B-PER. The name "O" removes a label.

        Returns:
            A new `Corpus`.

        Raises:
            CorpusError: The corpus has no labels, or none with one of the names.

        >>> Corpus.from_lists([["Anna", "left"]], [["B-person", "O"]]).map_labels({"person": "PER"}).labels
        [['B-PER', 'O']]
        """
        seen: set[str] = set()
        found = [mapped(labels, mapping, seen) for labels in self.labels]
        for name in mapping:
            if name not in seen:
                raise CorpusError(
                    f"no label is named {name!r}{meant(str(name), self.label_set)}. The labels are "
                    f"{', '.join(self.label_set)}."
                )
        return self.with_labels(found)

    @overload
    def __getitem__(self, index: int) -> Sentence: ...
    @overload
    def __getitem__(self, index: slice) -> Corpus: ...
    def __getitem__(self, index: int | slice) -> Sentence | Corpus:
        if isinstance(index, slice):
            return Corpus(self._sentences[index], columns=self.columns, label=self.label, source=self.source)
        return self._sentences[index]

    def __add__(self, other: Corpus) -> Corpus:
        if not isinstance(other, Corpus):
            return NotImplemented
        base = self if self._sentences else other
        source = self.source if self.source == other.source else None
        return Corpus(
            self._sentences + other._sentences, columns=base.columns, label=base.label, source=source
        )

    def __len__(self) -> int:
        return len(self._sentences)

    def __iter__(self) -> Iterator[Sentence]:
        return iter(self._sentences)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Corpus):
            return NotImplemented
        same = self.columns == other.columns and self.label == other.label
        return same and self._sentences == other._sentences

    __hash__ = None  # type: ignore[assignment]

    def _repr_html_(self) -> str:
        """Return a summary and the first five sentences, for notebooks."""
        from tagwise.base.markup import safe

        return f'<p style="overflow-wrap:anywhere">{safe(repr(self))}</p>' + "".join(
            s._repr_html_() for s in self._sentences[:5]
        )

    def __repr__(self) -> str:
        from tagwise.base.terminal import brief

        name = f"{brief(_shown(self.source), 120)}, " if self.source else ""
        columns = brief(", ".join(self.columns))
        return f"<Corpus: {name}{len(self)} sentences, {self.n_tokens} tokens, columns {columns}>"

"""Sentences and corpora in memory: named columns of strings, one value a token."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, overload

from tagwise.base.exceptions import CorpusError


class Sentence:
    """One sequence: columns of equal length, with what its file said about it. It is also the list of its tokens.

    Args:
        fields: column name -> one string a token; the first column holds the tokens.
        label: name of the label column, or None for an unlabelled sentence.
        comments: lines that stood before it (``# text = ...``), written back as they are.
        doc: None inside a document; the document's name (``""`` if it has none) where one begins here.
        line: line of its first token in the file, counted from 1.
        rows: CoNLL-U rows that are no tokens (multiword tokens, empty nodes): (index of the next token, row).
        meta: other keys of a JSONL object, written back as they are.

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
                f"the columns of a sentence need one value a token, but their lengths are {sizes}. "
                "Give at least one column, and every column the same number of values."
            )
        if label is not None and label not in fields:
            raise CorpusError(
                f"there is no column {label!r}. The columns are {', '.join(fields)}; name one of them."
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
        """The first column."""
        return next(iter(self.fields.values()))

    @property
    def labels(self) -> list[str]:
        """The label column; CorpusError where the sentence is unlabelled."""
        if self.label is None:
            raise CorpusError(
                f"a sentence with the columns {', '.join(self.fields)} has no label column. "
                "Name it when reading: label='...' with one of these columns."
            )
        return self.fields[self.label]

    def with_labels(self, labels: Sequence[str], label: str | None = None) -> Sentence:
        """The same sentence with other labels (its label column replaced, or ``label`` added as the last)."""
        name, labels = label or self.label or "label", list(labels)
        if len(labels) != len(self):
            where = f" at line {self.line}" if self.line else ""
            raise CorpusError(
                f"{len(labels)} labels for the sentence{where} of {len(self)} tokens "
                f"({' '.join(self.tokens[:6])} ...). Give one label a token."
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
        return self.tokens[index]

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
        """In a notebook: the tokens, with spans or labels in colours."""
        from tagwise.corpus.markup import sentence_html
        from tagwise.corpus.schemes import has_chunks, spans

        labels = [] if self.label is None else self.labels
        if has_chunks(labels):
            return sentence_html(self.tokens, [(span.begin, span.end, span.type) for span in spans(labels)])
        return sentence_html(self.tokens, [(t, t + 1, y) for t, y in enumerate(labels) if y != "O"])

    def displacy(self) -> dict[str, Any]:
        """Text and spans as displaCy draws them: `displacy.render(sentence.displacy(), style="ent", manual=True)`.

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
        words = " ".join(self.tokens[:8]) + (" ..." if len(self) > 8 else "")
        return f"<Sentence of {len(self)} tokens: {words}>"


class Corpus(Sequence[Sentence]):
    """Sentences with the same columns. A slice is a Corpus again; ``+`` joins two.

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
        """A corpus from token lists, and label lists where there are any."""
        unlabelled = cls([Sentence({"word": list(words)}) for words in tokens], columns=("word",))
        return unlabelled if labels is None else unlabelled.with_labels(labels)

    def tagged(self) -> list[list[tuple[str, str]]]:
        """Pairs of a word and its label, as NLTK has them.

        >>> Corpus.from_lists([["a", "b"]], [["X", "Y"]]).tagged()
        [[('a', 'X'), ('b', 'Y')]]
        """
        return [list(zip(s.tokens, s.labels)) for s in self._sentences]

    def to_html(self, title: str | None = None) -> str:
        """A page of its own with every sentence, spans or labels in colours; it needs no network and no script.

        >>> Corpus.from_lists([["Paris"]], [["B-LOC"]]).to_html("one city").count("LOC")
        1
        """
        from tagwise.corpus.markup import page_html

        return page_html(title or self.source or "sentences", [s._repr_html_() for s in self._sentences])

    @property
    def tokens(self) -> list[list[str]]:
        """The first column of every sentence."""
        return [s.tokens for s in self._sentences]

    @property
    def labels(self) -> list[list[str]]:
        """The label column of every sentence; CorpusError where there is none."""
        if self.label is None and not self._sentences:
            return []
        if self.label is None:
            raise CorpusError(
                f"{self.source or 'this corpus'} has no label column; "
                f"its columns are {', '.join(self.columns)}. "
                "Name it when reading: label='...' with one of these columns."
            )
        return [s.fields[self.label] for s in self._sentences]

    def column(self, name: str) -> list[list[str]]:
        """One column of every sentence."""
        if name not in self.columns:
            raise CorpusError(
                f"{self.source or 'this corpus'} has no column {name!r}. "
                f"Its columns are {', '.join(self.columns)}."
            )
        return [s.fields[name] for s in self._sentences]

    @property
    def n_tokens(self) -> int:
        """Number of tokens in all."""
        return sum(map(len, self._sentences))

    @property
    def label_set(self) -> list[str]:
        """The distinct labels, sorted."""
        return sorted(set().union(*self.labels))

    @property
    def has_documents(self) -> bool:
        """Whether the file marked documents (``-DOCSTART-``, ``# newdoc``)."""
        return any(s.doc is not None for s in self._sentences)

    @property
    def documents(self) -> list[range]:
        """Ranges of sentence indices, one a document. Without any mark the corpus is one document."""
        n = len(self._sentences)
        begins = [i for i, s in enumerate(self._sentences) if s.doc is not None or i == 0]
        return [range(b, e) for b, e in zip(begins, [*begins[1:], n])]

    def with_labels(self, labels: Sequence[Sequence[str]], label: str | None = None) -> Corpus:
        """The same corpus with other labels, for example predicted ones."""
        name, labels = label or self.label or "label", list(labels)
        if len(labels) != len(self):
            raise CorpusError(
                f"{len(labels)} label sequences for {len(self)} sentences. "
                "Give one label sequence a sentence."
            )
        columns = self.columns if name in self.columns else (*self.columns, name)
        made = [s.with_labels(y, name) for s, y in zip(self._sentences, labels)]
        return Corpus(made, columns=columns, label=name, source=self.source)

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
        """In a notebook: what it is, and its first sentences."""
        from tagwise.corpus.markup import safe

        return f'<p style="overflow-wrap:anywhere">{safe(repr(self))}</p>' + "".join(
            s._repr_html_() for s in self._sentences[:5]
        )

    def __repr__(self) -> str:
        name = f"{self.source}, " if self.source else ""
        columns = ", ".join(self.columns)
        return f"<Corpus: {name}{len(self)} sentences, {self.n_tokens} tokens, columns {columns}>"

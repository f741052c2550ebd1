"""Rows with one sentence each, as mappings of lists: lines of JSONL, rows of Parquet files, and lists of dicts."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from tagwise.base.exceptions import CorpusError
from tagwise.base.parameters import meant
from tagwise.corpus.columns import LABELS
from tagwise.corpus.row_blocks import document_of
from tagwise.corpus.sentence import Sentence
from tagwise.corpus.streams import fail, refuse_breaks, shown

EXAMPLE = 'Write {"tokens": ["..."], "labels": ["..."]}, one object per line'
_TO_COLUMN = {"tokens": "word", "words": "word", "labels": "label", "tags": "label"}
TO_KEY = {"word": "tokens", "label": "labels"}


def own_names(columns: Sequence[str] | None, label: str | None) -> tuple[Sequence[str] | None, str | None]:
    """Translate keys of the file, such as ``tokens``, to column names.

    >>> own_names(("tokens", "pos", "tags"), "tags")
    (('word', 'pos', 'label'), 'label')
    """
    if columns is None or isinstance(columns, str):
        return columns, _TO_COLUMN.get(str(label), label)
    names = tuple(_TO_COLUMN.get(name, name) for name in columns)
    return names, label if label in names else _TO_COLUMN.get(str(label), label)


def is_column(value: object, size: int) -> bool:
    """Return whether a value is a list of strings, one per token."""
    return isinstance(value, list) and len(value) == size and all(isinstance(v, str) for v in value)


def is_numbers(value: object, size: int) -> bool:
    """Return whether a value is a list of integers, one per token."""
    return isinstance(value, list) and len(value) == size and all(type(v) is int for v in value)


def names_in(features: Any, column: str) -> list[str] | None:
    """Return the label names of a column in the ``features`` of a Hugging Face dataset, or None.

    >>> names_in({"ner_tags": {"feature": {"names": ["O", "B-PER"], "_type": "ClassLabel"}}}, "ner_tags")
    ['O', 'B-PER']
    """
    found = features.get(column) if isinstance(features, Mapping) else None
    while isinstance(found, Mapping) and "names" not in found:
        found = found.get("feature")
    names = found["names"] if isinstance(found, Mapping) else None
    return names if isinstance(names, list) and all(isinstance(name, str) for name in names) else None


def check_names(names: Any) -> tuple[str, ...] | None:
    """Return the names of numbered labels as a tuple, or raise a CorpusError if they are not valid."""
    if names is None:
        return None
    found = tuple(names.replace(",", " ").split()) if isinstance(names, str) else tuple(names)
    if not found or len(set(found)) != len(found) or not all(isinstance(n, str) and n for n in found):
        raise CorpusError(
            f"label_names={found!r} are not names of labels. Give one distinct name per number, beginning with that "
            "of 0."
        )
    return found


class RowReader:
    """Converter of rows to sentences. The first row determines the columns.

    `call` is the beginning of the call that takes the names of labels, if the user has not called it.
    """

    def __init__(
        self,
        source: str,
        columns: tuple[str, ...] | None,
        label: str | None,
        label_names: Sequence[str] | None = None,
        features: Any = None,
        call: str = "",
    ) -> None:
        self.source = source
        self.names = columns
        self.label = label
        self.label_names = check_names(label_names)
        self.features = features
        self.call = call

    def set_columns(self, found: Mapping[str, Any], line: int) -> tuple[str, ...]:
        """Choose the columns and the label: the requested one, or the only member with a usual name."""
        first = found.get("word")
        size = len(first) if isinstance(first, list) else -1
        label = self.label
        if label is not None and label not in found:
            usual = [
                key
                for key, v in found.items()
                if key.casefold() in LABELS and (is_column(v, size) or is_numbers(v, size))
            ]
            if label != "label":
                others = [key for key in found if key != "word"]
                fail(
                    self.source,
                    line,
                    f"{label!r} is missing{meant(label, others)} among {', '.join(found) or 'no members'}",
                    "Name one of these with label='...'.",
                )
            if len(usual) > 1:
                fail(
                    self.source,
                    line,
                    f"several members may hold the labels: {', '.join(usual)}",
                    f"Name one, as in label={usual[-1]!r}.",
                )
            label = next(iter(usual), None)
        rest = [k for k, v in found.items() if k not in ("word", label) and is_column(v, size)]
        self.label = label
        self.names = ("word", *rest) if label is None else ("word", *rest, label)
        return self.names

    def named(self, values: list[Any], key: str, line: int) -> list[Any]:
        """Return labels with numbers replaced by their names."""
        if not values or type(values[0]) is not int:
            return values
        names = self.label_names or names_in(self.features, key)
        if names is None:
            fail(
                self.source,
                line,
                f"the labels in {key!r} are numbers without names",
                f"Name them with {self.call}label_names=('O', 'B-PER', ...){')' * bool(self.call)}, beginning with the "
                "name of 0.",
            )
        for t, number in enumerate(values):
            if type(number) is not int or not 0 <= number < len(names):
                fail(
                    self.source,
                    line,
                    f"{shown(repr(number))} in {key!r} at token {t} is not the number of a label",
                    f"The {len(names)} labels are numbered from 0. Remove tokens that are marked as ignored.",
                )
        return [names[number] for number in values]

    def sentence(self, line: int, value: Mapping[Any, Any]) -> Sentence:
        """Return the sentence of a row."""
        name = self.source
        found: dict[str, Any] = {_TO_COLUMN.get(str(key), str(key)): v for key, v in value.items()}
        comments = found.pop("comments", ())
        doc = found.pop("newdoc", None)
        names = self.names if self.names is not None else self.set_columns(found, line)
        kept = [n for n in names if n != "_"]
        size = -1
        for column in kept:
            values = found.get(column)
            key = next((str(k) for k in value if _TO_COLUMN.get(str(k), str(k)) == column), None)
            key = key or TO_KEY.get(column, column)
            if not isinstance(values, list):
                keys = ", ".join(map(str, value)) or "no keys"
                given = shown(json.dumps(values, default=repr))
                problem = f"missing among {keys}" if column not in found else f"{given}, not an array"
                fail(
                    name,
                    line,
                    f"{key!r} is {problem}",
                    f"{EXAMPLE}, with the columns {', '.join(kept)} in each.",
                )
            size = len(values) if size < 0 else size
            if len(values) != size:
                fail(
                    name,
                    line,
                    f"{len(values)} values of {key!r} for {size} tokens",
                    "Give one value per token, or name the columns of the file with columns=(...).",
                )
            if column == self.label:
                found[column] = values = self.named(values, key, line)
            for t, v in enumerate(values):
                if not isinstance(v, str) or not v:
                    given = shown(json.dumps(v, default=repr))
                    problem = "an empty label" if v == "" and column == self.label else f"{given} in {key!r}"
                    remedy = "Give a non-empty string."
                    if isinstance(v, list) and v:
                        remedy = (
                            f"Write one object per sentence, not one with the sentences of all. {EXAMPLE}."
                        )
                    fail(name, line, f"{problem} at token {t}", remedy)
        if not (
            isinstance(comments, (list, tuple))
            and all(isinstance(c, str) and "\n" not in c for c in comments)
        ):
            fail(name, line, "'comments' is not an array of lines", "Give strings without line ends.")
        begins = document_of(name, line, doc)
        meta = {k: v for k, v in found.items() if k not in names} or None
        fields = {n: found[n] for n in kept}
        refuse_breaks(name, fields.get(self.label or ""), line)
        return Sentence(fields, self.label, comments=tuple(comments), doc=begins, line=line, meta=meta)

"""What X is: its kind, columns, words, documents."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from tagwise.errors import CorpusError
from tagwise.features.sets import DEFAULT_COLUMN

Kind = Literal["columns", "tokens", "attributes"]


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
            return "tokens" if isinstance(token, str) else "attributes"
    return None


def columns_of(X: Any) -> tuple[str, ...]:
    """Columns that features may look at: a Corpus's but its label, the keys of mappings, else word alone."""
    columns = getattr(X, "columns", None)
    if columns is not None:
        label = getattr(X, "label", None)
        return tuple(c for c in columns if c != label)
    for sentence in X:
        fields = _fields(sentence)
        if fields is not None:
            label = getattr(sentence, "label", None)
            return tuple(c for c in fields if c != label)
        break
    return (DEFAULT_COLUMN,)


def _fields(sentence: Any) -> Mapping[str, Sequence[str]] | None:
    fields = sentence if isinstance(sentence, Mapping) else getattr(sentence, "fields", None)
    return fields if isinstance(fields, Mapping) else None


def tokens_of(X: Any, what: str) -> list[Any]:
    """The tokens of each sentence, for what needs words and not attributes."""
    out = []
    for s, sentence in enumerate(X):
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


def starts_of(X: Any) -> NDArray[np.uint32]:
    """The first sentence of each document; what marks none is one document."""
    begins = [s for s, sentence in enumerate(X) if s == 0 or getattr(sentence, "doc", None) is not None]
    return np.array(begins, dtype=np.uint32)

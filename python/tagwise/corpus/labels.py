"""Conversion of user labels (all strings, all integers, all floats or all booleans) to strings and back.

>>> texts([[3, 0], [3]])
([['3', '0'], ['3']], 'int')
>>> named(["3", "0"], "int")
(3, 0)
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from tagwise._core import count_texts
from tagwise.base.exceptions import CorpusError

#: Parsers of label strings, by the name of the label type in model files.
TYPES: dict[str, Callable[[str], Any]] = {
    "str": str,
    "int": int,
    "float": float,
    "bool": lambda text: text == "True",
}


#: Control characters and line separators, which end a field, a line or a text in files and terminals.
_BREAK = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029]")


def break_in(label: str) -> str | None:
    r"""Return the first character that is not allowed in labels, as in U+000A, or None.

    >>> break_in("B-PER"), break_in("B\tPER"), break_in("a\u2028b")
    (None, 'U+0009', 'U+2028')
    """
    found = None if label.isprintable() else _BREAK.search(label)
    return None if found is None else f"U+{ord(found[0]):04X}"


def first_break(labels: Sequence[str]) -> int | None:
    """Return the index of the first label of a sentence with a character that `break_in` finds, or None."""
    if break_in("".join(labels)) is None:
        return None
    return next(t for t, label in enumerate(labels) if break_in(label))


def broken(label: str) -> str:
    """Return an error message for a label with a character that `break_in` finds."""
    return f"the label {label!a} contains {break_in(label)}, a control character or the end of a line"


def mapped(labels: Sequence[str], mapping: Mapping[str, str], seen: set[str] | None = None) -> list[str]:
    """Return labels with new names for whole labels or for the types of chunks. ``O`` removes a chunk.

    The names of `mapping` that occur are added to `seen`.

    >>> mapped(["B-person", "I-person", "O", "NN"], {"person": "PER", "NN": "N"})
    ['B-PER', 'I-PER', 'O', 'N']
    """
    out = []
    for label in labels:
        prefix, dash, kind = label.partition("-")
        name = label if label in mapping else kind if dash and len(prefix) == 1 and kind in mapping else None
        if name is None:
            out.append(label)
            continue
        if seen is not None:
            seen.add(name)
        new = mapping[name]
        out.append(new if name == label or new == "O" else f"{prefix}-{new}")
    return out


def type_name(kind: type) -> str | None:
    """Return the name of a label type, or None for a type that labels cannot have."""
    if issubclass(kind, str):
        return "str"
    if issubclass(kind, (bool, np.bool_)):
        return "bool"
    if issubclass(kind, (int, np.integer)):
        return "int"
    return "float" if issubclass(kind, (float, np.floating)) else None


def text(label: Any) -> str:
    """Return a label as a string."""
    if isinstance(label, str):
        return str(label)  # np.str_ becomes str
    return repr(label.item() if isinstance(label, np.generic) else label)


def lists(y: Iterable[Any], name: str = "y") -> Sequence[Sequence[Any]]:
    """Return labels as one list per sentence. Generators and other iterables are consumed."""
    if isinstance(y, (str, bytes, Mapping)) or not isinstance(y, Iterable):
        raise CorpusError(
            f"{name} is {type(y).__name__}, expected a list with one list of labels per sentence"
        )
    found = y if isinstance(y, Sequence) else list(y)
    if all(isinstance(sentence, (list, tuple)) for sentence in found):
        return found
    out = []
    for s, sentence in enumerate(found):
        if isinstance(sentence, (str, bytes, Mapping)) or not isinstance(sentence, Iterable):
            raise CorpusError(
                f"sentence {s} ({name}[{s}]) is {_type_phrase(sentence)}, expected a list of labels, one per token"
            )
        out.append(sentence if isinstance(sentence, list) else list(sentence))
    return out


def _type_phrase(value: Any) -> str:
    return "a string" if isinstance(value, str) else type(value).__name__


def texts(y: Sequence[Sequence[Any]]) -> tuple[Sequence[Sequence[Any]], str | None]:
    """Return labels as strings, and the name of their type (None without any labels).

    An entry may also be a collection of labels or None (partial labels, allowed labels). Labels that are already
    strings are returned unchanged.
    """
    counts = count_texts(y)
    if counts is not None:
        return y, "str" if counts else None
    found: dict[str, tuple[int, int, Any]] = {}  # first occurrence of each type

    def one(label: Any, s: int, t: int) -> str:
        name = type_name(type(label))
        if name is None:
            raise CorpusError(
                f"sentence {s}, token {t}: the label {label!r} is {type(label).__name__}, expected a string, an "
                "integer, a float or a boolean. Convert it."
            )
        if name == "float" and label != label:
            raise CorpusError(
                f"sentence {s}, token {t}: the label is nan, as in an empty cell of a table. Fill it."
            )
        if name not in found:
            found[name] = (s, t, label)
            if len(found) > 1:
                (first, (s0, t0, other)), _ = found.items()
                raise CorpusError(
                    f"sentence {s}, token {t}: the label {label!r} is {name}, but {other!r} of sentence {s0}, "
                    f"token {t0} is {first}. Give labels of one type."
                )
        return text(label)

    def of_token(entry: Any, s: int, t: int) -> Any:
        if entry is None:
            return None
        if isinstance(entry, (set, frozenset)):
            return {one(label, s, t) for label in entry}
        if isinstance(entry, (list, tuple)):
            return tuple(one(label, s, t) for label in entry)
        return one(entry, s, t)

    out = [[of_token(entry, s, t) for t, entry in enumerate(sentence)] for s, sentence in enumerate(y)]
    return out, next(iter(found), None)


def single(y: Sequence[Sequence[Any]]) -> tuple[Sequence[Sequence[str]], str | None]:
    """Return labels as strings, and the name of their type. Every token must have exactly one label."""
    out, kind = texts(y)
    for s, sentence in enumerate(() if out is y else out):
        for t, entry in enumerate(sentence):
            if not isinstance(entry, str):
                raise CorpusError(
                    f"sentence {s}, token {t}: expected one label, found {y[s][t]!r}. Sets of labels and None need a "
                    "CRF with partial=True."
                )
    return out, kind


def check_type(found: str | None, expected: str | None, name: str, owner: str) -> None:
    """Raise a CorpusError if two groups of labels have different types."""
    if found is not None and expected is not None and found != expected:
        raise CorpusError(
            f"the labels of {name} are {found}, those of {owner} are {expected}. Give labels of one type."
        )


def reads_as(label: str, kind: str) -> bool:
    """Return whether a string is the canonical form of a label of a type.

    >>> reads_as("-7", "int"), reads_as("07", "int"), reads_as("x", "float")
    (True, False, False)
    """
    try:
        return text(TYPES[kind](label)) == label
    except ValueError:
        return False


def named(labels: Sequence[str], kind: str) -> tuple[Any, ...]:
    """Convert strings to labels of a type."""
    return tuple(labels) if kind == "str" else tuple(map(TYPES[kind], labels))

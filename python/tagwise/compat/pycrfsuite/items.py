"""Features of items: lists and sets of names, or dicts of numbers, strings, lists and nested dicts.

>>> flat({"w": "cat", "n": {"x": 2}, "tags": ["a", "b"], "upper": False})
[('w:cat', 1.0), ('n:x', 2.0), ('tags:a', 1.0), ('tags:b', 1.0), ('upper', 0.0)]
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tagwise.compat.pycrfsuite.errors import ItemError
from tagwise.features.escape import decode_name, encode_name, is_plain

Item = list[tuple[str, float]]
#: Maximum nesting of dicts.
DEEPEST = 64


def name_of(text: Any) -> str:
    """Return the name of a feature or label in the escaped form of the core. Bytes need not be UTF-8."""
    if isinstance(text, str):
        data = text.encode("utf-8")  # rejects lone surrogates
        name = text if is_plain(text) else decode_name(data)
    elif isinstance(text, (bytes, bytearray)):
        name = decode_name(bytes(text))
    else:
        raise ItemError(f"expected a name (str or bytes), found {type(text).__name__} {text!r}")
    if "\0" in name:
        raise ItemError(f"the name {name!r} contains NUL, where CRFsuite would truncate it. Remove the NUL")
    return name


def flat(item: Any, depth: int = 0) -> Item:
    """Return names and values of an item, in order."""
    if isinstance(item, (str, bytes, bytearray)):
        raise ItemError(f"expected an item (a list of names, or a dict), found the string {item!r}")
    if depth > DEEPEST:
        raise ItemError(f"dicts are nested more than {DEEPEST} deep. Flatten them")
    try:
        len(item)
    except TypeError:
        raise ItemError(
            f"expected an item (a list of names, or a dict), found {type(item).__name__}"
        ) from None
    if not isinstance(item, dict):
        return [(name_of(name), 1.0) for name in item]
    out: Item = []
    for key, value in item.items():
        name = name_of(key)
        if isinstance(value, (dict, list, set)):
            out += [(f"{name}:{inner}", number) for inner, number in flat(value, depth + 1)]
        elif isinstance(value, (str, bytes)):
            out.append((f"{name}:{name_of(value)}", 1.0))
        else:
            try:
                out.append((name, float(value)))
            except (TypeError, ValueError, OverflowError):
                kind = type(value).__name__
                raise ItemError(
                    f"feature {name!r}: expected a number, a string or a dict, found {kind}"
                ) from None
    return out


def flat_sequence(sequence: Any) -> list[Item]:
    """Return names and values of every item of a sequence."""
    if isinstance(sequence, ItemSequence):
        return sequence.flat
    if isinstance(sequence, (str, bytes, bytearray)):
        raise ItemError(f"expected a sequence of items, found the string {sequence!r}")
    if not isinstance(sequence, Iterable):
        raise ItemError(f"expected a sequence of items, found {type(sequence).__name__}")
    return [flat(item) for item in sequence]


class ItemSequence:
    """Features of the items of one sequence, prepared once for trainers and taggers.

    >>> ItemSequence([{"foo": 1, "bar": 0}, {"foo": 1.5, "baz": 2}])
    <ItemSequence of size 2>
    """

    def __init__(self, pyseq: Any) -> None:
        self.flat = flat_sequence(pyseq)

    def items(self) -> list[dict[str, float]]:
        """Return a dict of names and values for each item."""
        return [{encode_name(name).decode(): value for name, value in item} for item in self.flat]

    def __len__(self) -> int:
        return len(self.flat)

    def __repr__(self) -> str:
        return f"<ItemSequence of size {len(self)}>"

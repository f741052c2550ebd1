"""Features added up: `"default" + Gazetteer("cities.txt") + Regex("year", "(19|20)[0-9]{2}") + my_function`.

`Features` holds the parts until the columns are known; `resolve` makes a recipe of it. As one text:
`default+gazetteer:cities.txt+regex:year=(19|20)[0-9]{2}`.

>>> from tagwise.features.derived_columns import Gazetteer
>>> "S1" + Gazetteer(["Paris"], name="cities") + "word[-1]"
Features('S1', <Gazetteer cities: 1 entry>, 'word[-1]')
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

from tagwise.base.exceptions import ParameterError
from tagwise.features.derived_columns import Gazetteer, Mark, Regex
from tagwise.features.sets import SETS
from tagwise.base.imports import function_at

_SET = rf"(?:{'|'.join(SETS)})\s*(?:\([^()+]*\))?\s*(?=\+|$)"
_PREFIX = r"(?:gazetteer|regex|template|function):"
#: A + that begins another part: others may belong to a pattern or a file's name.
_PLUS = re.compile(rf"\+(?=\s*(?:{_SET}|{_PREFIX}))")


class Features:
    """Features that are the union of their parts': what an earlier part says of a token, a later one does not repeat.

    Args:
        parts: named sets, templates, paths of template files, functions of a sentence, `Gazetteer`, `Regex`,
            `Features`; a text may itself be a sum.

    >>> Features("S1+regex:year=[0-9]{4}") == Features("S1") + Regex("year", "[0-9]{4}")
    True
    """

    def __init__(self, *parts: Any) -> None:
        found: list[Any] = []
        for part in parts:
            if isinstance(part, Features):
                found += part.parts
            elif isinstance(part, str):
                found += spelled(part) or (part,)
            elif isinstance(part, (Mark, os.PathLike)) or callable(part):
                found.append(part)
            else:
                raise ParameterError(
                    f"{part!r:.60} of type {type(part).__name__} is no part of features; expected {', '.join(SETS)}, "
                    "a template, its path, a function, a Gazetteer or a Regex"
                )
        if not found:
            raise ParameterError("Features: no part; give at least one, such as 'default'")
        self.parts: tuple[Any, ...] = tuple(found)

    def __add__(self, other: Any) -> Features:
        return Features(self, other)

    def __radd__(self, other: Any) -> Features:
        return Features(other, self)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Features) and self.parts == other.parts

    def __hash__(self) -> int:
        return hash(self.parts)

    def __repr__(self) -> str:
        return f"Features({', '.join(map(_shown, self.parts))})"


def _shown(part: Any) -> str:
    if isinstance(part, str) and "\n" in part.strip():
        return f"<template of {len(part.strip().splitlines())} lines>"
    return repr(part) if not hasattr(part, "__qualname__") else str(part.__qualname__)


def title(features: Any) -> str:
    """Features in one short text, for tables: a text as it is, a sum by the names of its parts.

    >>> title("S1" + Regex("year", "[0-9]{4}") + str.split), title("word[0]")
    ('S1+regex:year+str.split', 'word[0]')
    """
    if isinstance(features, Features):
        return "+".join(map(title, features.parts))
    if isinstance(features, Mark):
        return f"{features.kind}:{features.name}"
    if isinstance(features, (str, os.PathLike)):
        return os.fspath(features)
    return str(getattr(features, "__qualname__", type(features).__qualname__))


def pieces(text: str) -> list[str] | None:
    """Return the parts of a sum that is written as one text, as texts; None if a text is not a sum."""
    found = [piece.strip() for piece in _PLUS.split(text)]
    if "\n" in text.strip() or (len(found) == 1 and not re.match(_PREFIX, found[0])):
        return None
    return found


def spelled(text: str, functions: bool = False) -> tuple[Any, ...] | None:
    """The parts of a sum that is written as one text; None where a text is no sum.

    functions: whether `function:module:name` is imported: where a user typed the text, and not where a file says it.

    >>> spelled("S3(window=2)+regex:plus=a+") is None, spelled("default") is None
    (False, True)
    """
    found = pieces(text)
    return None if found is None else tuple(_part(piece, functions) for piece in found)


def _part(piece: str, functions: bool) -> Any:
    """One part of a sum that is written as a text."""
    if not re.match(_PREFIX, piece):
        return piece
    kind, _, rest = piece.partition(":")
    name, equals, behind = rest.partition("=")
    if kind == "template":
        return Path(rest)
    if kind == "gazetteer":
        named = equals and not os.path.exists(rest)
        return Gazetteer(behind, name.strip()) if named else Gazetteer(rest)
    if kind == "regex":
        if not equals:
            raise ParameterError(f"{piece!r}: expected regex:NAME=PATTERN")
        return Regex(name.strip(), behind)
    if not functions:
        raise ParameterError(
            f"{piece!r}: a text may name a function on the command line alone; in Python add the function itself: "
            "Features('default') + function"
        )
    return function_at(rest, "the feature function")


__all__ = ["Features", "pieces", "spelled", "title"]

r"""Derived columns (gazetteers and regular expressions), and sums of features.

A derived column is computed from the tokens. Its value is an empty string for tokens without a match. It provides the
template that turns it into attributes, and other templates can use it like any other column. Derived columns are data,
so a model file contains them completely.

>>> cities = Gazetteer(["New York", "York"], name="cities")
>>> cities.column(["in", "NEW", "York", ",", "York"])
['', 'B', 'I', '', 'B']
>>> Regex("year", r"(19|20)\d\d").column(["in", "1984"])
['', '1']
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import tagwise._core as _core
from tagwise.base.cached import cached
from tagwise.base.domains import is_text
from tagwise.base.exceptions import ParameterError, TemplateError
from tagwise.base.files.regular import read_regular
from tagwise.base.imports import function_at
from tagwise.features.sets import SETS

#: Maximum number of tokens of an entry, and maximum window.
LONGEST, WIDEST = 100, 10
#: Keywords of the template language, which cannot be names of unquoted columns.
RESERVED = ("bias", "first", "last", "edge", "pad", "absent")

Entry = tuple[str, ...]

_SET = rf"(?:{'|'.join(SETS)})\s*(?:\([^()+]*\))?\s*(?=\+|$)"
_PREFIX = r"(?:gazetteer|regex|classes|template|function):"
#: A + between two parts. Any other + belongs to a pattern or a file name.
_PLUS = re.compile(rf"\+(?=\s*(?:{_SET}|{_PREFIX}))")


class Summand:
    """Part of a sum of features."""

    def __add__(self, other: Any) -> Features:
        return Features(self, other)

    def __radd__(self, other: Any) -> Features:
        return Features(other, self)


class DerivedColumn(Summand):
    """Base class of derived columns: a name, values for tokens, and a template that reads them."""

    #: Classes of derived columns by kind. A subclass adds itself.
    kinds: ClassVar[dict[str, type[DerivedColumn]]] = {}
    kind = ""
    #: Attributes that define the column, in a model file. By default they are the arguments of the constructor.
    fields: ClassVar[tuple[str, ...]] = ()
    name: str
    window: int

    def __init_subclass__(cls) -> None:
        DerivedColumn.kinds[cls.kind] = cls

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> DerivedColumn:
        """Create a derived column from the result of `to_json`."""
        return cls(**{name: data[name] for name in cls.fields})

    @classmethod
    def spelled(cls, piece: str, name: str | None, rest: str) -> DerivedColumn | Features:
        """Create a derived column, or several, from the part `kind:NAME=REST` or `kind:REST` of a sum in a string."""
        raise NotImplementedError

    def readable(self, attribute: str) -> str:
        """Return the text of an attribute for explanations, with values of this column in words.

        Args:
            attribute: Text of an attribute, such as `classes[0].cut(32)=0110`.

        Returns:
            The text to show. Columns whose values are words already return it unchanged.
        """
        return attribute

    def column(self, tokens: Sequence[Any]) -> list[str]:
        """Return one value per token, empty for tokens without a match."""
        raise NotImplementedError

    def template(self) -> str:
        """Return the template lines that turn the column into attributes."""
        raise NotImplementedError

    def to_json(self) -> dict[str, Any]:
        """Return the complete definition, for model files.

        Returns:
            A dict of plain values.
        """
        return {"kind": self.kind, **{name: getattr(self, name) for name in self.fields}}

    def _offsets(self) -> str:
        return f"{-self.window}..{self.window}" if self.window else "0"

    def _check(self, name: Any, window: Any) -> None:
        """Check and set name and window. The name must be valid in a template without quotes."""
        what = type(self).__name__
        if not is_text(name) or not re.fullmatch(r"[^\W\d]\w*", name) or name in RESERVED:
            raise ParameterError(
                f"{what}: name={name!r} is not a valid name. Use letters, digits and _ as in my_list, but none of "
                f"{', '.join(RESERVED)}."
            )
        if isinstance(window, bool) or not isinstance(window, int) or not 0 <= window <= WIDEST:
            raise ParameterError(f"{what} {name}: window={window!r}, expected an integer from 0 to {WIDEST}")
        self.name, self.window = name, window

    def __eq__(self, other: object) -> bool:
        return isinstance(other, DerivedColumn) and self.to_json() == other.to_json()

    def __hash__(self) -> int:
        return hash((self.kind, self.name))

    def __reduce__(self) -> tuple[Any, ...]:
        return (derived_column_of, (self.to_json(),))


class Gazetteer(DerivedColumn):
    """A list of names as a feature. Tokens of a match are marked B and I. The leftmost longest match wins.

    Args:
        source: path or iterable. Path of a UTF-8 file with one entry per line, or the entries: strings with tokens
            separated by white space, or lists of tokens.
        name: str or None, default=None. Name of the column and of its attributes. None means the file name without
            its extension. Required for entries.
        ignore_case: bool, default=True. Whether `Paris`, `PARIS` and `paris` are equal. Set it to False for names
            that are common words in lower case.
        window: int, default=1. Also add attributes of the neighbours at most this many tokens away (0 to 10).

    Attributes:
        name: Name of the column.
        entries: Distinct entries as tuples of tokens, casefolded if ``ignore_case``.
        ignore_case: Whether case is ignored.
        window: Window of the attributes.

    Raises:
        ParameterError: A name, an entry or the window is not valid, or there are no entries.
        TemplateError: The file cannot be read, is not UTF-8 or is empty.

    >>> Gazetteer([["New", "York"]], name="cities", window=0).template()
    'cities = cities[0].prefix(1)\\n'
    """

    kind = "gazetteer"
    fields = ("name", "entries", "ignore_case", "window")

    def __init__(
        self,
        source: str | os.PathLike[str] | Iterable[str | Sequence[str]],
        name: str | None = None,
        *,
        ignore_case: bool = True,
        window: int = 1,
    ) -> None:
        if isinstance(source, (str, os.PathLike)):
            path = Path(source)
            name = re.sub(r"\W", "_", re.sub(r"^\d", r"_\g<0>", path.stem)) if name is None else name
            source = _lines(path)
        if name is None:
            raise ParameterError(
                "Gazetteer: entries need a name for their attributes. Give one, such as name='cities'."
            )
        self._check(name, window)
        self.ignore_case = bool(ignore_case)
        self.entries = tuple(dict.fromkeys(self._entry(found, i) for i, found in enumerate(source)))
        if not self.entries:
            raise ParameterError(f"Gazetteer {name}: no entries. Give at least one name.")

    def _entry(self, found: Any, i: int) -> Entry:
        """Return the tokens of an entry, casefolded if case is ignored."""
        tokens = found.split() if isinstance(found, str) else found
        good = isinstance(tokens, Sequence) and not isinstance(tokens, bytes) and all(map(is_text, tokens))
        if not good or not 0 < len(tokens) <= LONGEST or not all(tokens):
            raise ParameterError(
                f"Gazetteer {self.name}, entry {i} (from 0): {found!r:.80} is not a name of 1 to {LONGEST} tokens. "
                "Give a string, or a list of non-empty strings."
            )
        return tuple(map(self._folded, tokens))

    def _folded(self, token: str) -> str:
        return token.casefold() if self.ignore_case else str(token)

    @property
    @cached
    def _tree(self) -> dict[Any, Any]:
        """Trie of the entries: each node maps the next token to a node. The key None marks the end of an entry."""
        tree: dict[Any, Any] = {}
        for entry in self.entries:
            here = tree
            for token in entry:
                here = here.setdefault(token, {})
            here[None] = True
        return tree

    def column(self, tokens: Sequence[Any]) -> list[str]:
        """Mark the tokens of matching entries.

        Args:
            tokens: sequence of str. Tokens of a sentence.

        Returns:
            "B" for the first token of a match, "I" for its other tokens, and an empty string elsewhere.
        """
        words = [self._folded(token) if isinstance(token, str) else "" for token in tokens]
        out, t, tree = [""] * len(words), 0, self._tree
        while t < len(words):
            here, u, end = tree.get(words[t]), t + 1, t
            while here is not None:
                if None in here:
                    end = u
                here = here.get(words[u]) if u < len(words) else None
                u += 1
            if end > t:
                out[t:end] = ["B", *["I"] * (end - t - 1)]
            t = max(end, t + 1)
        return out

    def template(self) -> str:
        """Return the template that reads the column.

        Returns:
            One line of the template language.
        """
        return f"{self.name} = {self.name}[{self._offsets()}].prefix(1)\n"

    def to_json(self) -> dict[str, Any]:
        """Return the complete definition, for model files.

        Returns:
            A dict of plain values.
        """
        return {**super().to_json(), "entries": [list(entry) for entry in self.entries]}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Gazetteer:
        """Create a gazetteer from the result of `to_json`."""
        return cls(data["entries"], data["name"], ignore_case=data["ignore_case"], window=data["window"])

    @classmethod
    def spelled(cls, piece: str, name: str | None, rest: str) -> Gazetteer:
        """Return the gazetteer of `gazetteer:FILE` or `gazetteer:NAME=FILE`."""
        return cls(rest, name)

    def __repr__(self) -> str:
        n = len(self.entries)
        return f"<Gazetteer {self.name}: {n:,} entr{'y' if n == 1 else 'ies'}>"

    def _repr_html_(self) -> str:
        from tagwise.base.markup import object_html

        shown = ", ".join(" ".join(entry) for entry in self.entries[:20])
        more = ", ..." if len(self.entries) > 20 else ""
        rows = [("entries", shown + more), ("ignore_case", self.ignore_case), ("window", self.window)]
        return object_html(self, rows)


class Regex(DerivedColumn):
    r"""A regular expression as a feature. It must match the whole token, in time linear in its length.

    Args:
        name: str. Name of the column and of its attribute.
        pattern: str. The expression, in the syntax of the Rust crate `regex`: that of `re` without look-around and
            backreferences. `\w` also matches combining marks, but not `²` or `½`. `\s` is Unicode's White_Space. A
            literal `{`, or a `[` in a class, needs a backslash.
        ignore_case: bool, default=False. Whether to ignore case, by Unicode's simple case folding.
        window: int, default=1. Also add the attribute of the neighbours at most this many tokens away (0 to 10).

    Attributes:
        name: Name of the column.
        pattern: The expression.
        ignore_case: Whether case is ignored.
        window: Window of the attributes.

    Raises:
        ParameterError: The name, the window or the type of the pattern is not valid.
        TemplateError: The pattern is not a valid expression.

    >>> Regex("code", "[A-Z]{2}-[0-9]+").column(["AB-17", "AB17"])
    ['1', '']
    """

    kind = "regex"
    fields = ("name", "pattern", "ignore_case", "window")

    def __init__(self, name: str, pattern: str, *, ignore_case: bool = False, window: int = 1) -> None:
        self._check(name, window)
        if not is_text(pattern):
            raise ParameterError(f"Regex {name}: {pattern!r:.80} is not a pattern. Give a string.")
        self.pattern, self.ignore_case = str(pattern), bool(ignore_case)
        try:
            self._regex = _core.TokenRegex(self.pattern, self.ignore_case)
        except TemplateError as error:
            raise TemplateError(f"Regex {name}: {error}") from None

    def column(self, tokens: Sequence[Any]) -> list[str]:
        """Mark the tokens that match.

        Args:
            tokens: sequence of str. Tokens of a sentence.

        Returns:
            "1" for each token that matches as a whole, and an empty string for others.
        """
        return self._regex.column(tokens)

    def template(self) -> str:
        """Return the template that reads the column.

        Returns:
            One line of the template language.
        """
        return f'{self.name} = {self.name}[{self._offsets()}].one_of("1")?\n'

    @classmethod
    def spelled(cls, piece: str, name: str | None, rest: str) -> Regex:
        """Return the expression of `regex:NAME=PATTERN`."""
        if name is None:
            raise ParameterError(f"{piece!r}: expected regex:NAME=PATTERN")
        return cls(name, rest)

    def __repr__(self) -> str:
        from tagwise.base.terminal import brief

        return f"<Regex {self.name}: {brief(self.pattern)}>"

    def _repr_html_(self) -> str:
        from tagwise.base.markup import object_html

        rows = [("pattern", self.pattern), ("ignore_case", self.ignore_case), ("window", self.window)]
        return object_html(self, rows)


#: Maximum size of a file of names in bytes.
MOST_NAMES = 1 << 28


def _lines(path: Path) -> list[str]:
    """Return the non-blank lines of a file of names."""
    remedy = "Give a UTF-8 text file with one name per line."
    try:
        text = read_regular(path, MOST_NAMES, TemplateError, remedy).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise TemplateError(f"{path}: cannot read the gazetteer ({error}). {remedy}") from error
    found = [line for line in text.splitlines() if line.strip()]
    if not found:
        raise TemplateError(f"{path}: the gazetteer has no entries. {remedy}")
    return found


def derived_column_of(data: Mapping[str, Any]) -> DerivedColumn:
    """Create a derived column from the result of `to_json`."""
    if data["kind"] not in DerivedColumn.kinds:
        raise ParameterError(
            f"unknown kind of derived column {data['kind']!r}. The model is from a newer tagwise, or damaged."
        )
    return DerivedColumn.kinds[data["kind"]].from_json(data)


class Features(Summand):
    """A sum of several features. An attribute that two parts assign to a token counts once.

    `"default" + Gazetteer("cities.txt") + Regex("year", "(19|20)[0-9]{2}") + my_function` also creates a sum, and
    `default+gazetteer:cities.txt+regex:year=(19|20)[0-9]{2}` is a sum as a string.

    Args:
        parts: str, path, callable, Gazetteer, Regex, WordClasses or Features. Named sets, templates, paths of template
            files, functions of a sentence, or other sums. A string may itself be a sum.

    Attributes:
        parts: The parts as a tuple. Nested sums are flattened.

    Raises:
        ParameterError: There are no parts, or a part has another type.
        TemplateError: A file of a gazetteer cannot be read, or a regular expression is not valid.
        ModelFileError: A file of word classes cannot be read.

    >>> Features("S1+regex:year=[0-9]{4}") == Features("S1") + Regex("year", "[0-9]{4}")
    True
    """

    def __init__(self, *parts: Any) -> None:
        found: list[Any] = []
        for part in parts:
            if isinstance(part, Features):
                found += part.parts
            elif isinstance(part, str):
                found += parse_sum(part) or (part,)
            elif isinstance(part, (DerivedColumn, os.PathLike)) or callable(part):
                found.append(part)
            else:
                raise ParameterError(
                    f"{part!r:.60} of type {type(part).__name__} cannot be part of features. Use {', '.join(SETS)}, "
                    "a template, its path, a function, a Gazetteer, a Regex or WordClasses."
                )
        if not found:
            raise ParameterError("Features: no parts. Give at least one, such as 'default'.")
        self.parts: tuple[Any, ...] = tuple(found)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Features) and self.parts == other.parts

    def __hash__(self) -> int:
        return hash(self.parts)

    def __repr__(self) -> str:
        return f"Features({', '.join(map(_shown, self.parts))})"

    def _repr_html_(self) -> str:
        from tagwise.base.markup import object_html

        return object_html(self, [(i, _shown(part)) for i, part in enumerate(self.parts, 1)])


def _shown(part: Any) -> str:
    if isinstance(part, str) and "\n" in part.strip():
        return f"<template of {len(part.strip().splitlines())} lines>"
    return repr(part) if not hasattr(part, "__qualname__") else str(part.__qualname__)


def title(features: Any) -> str:
    """Return a short name of features for tables: a string unchanged, a sum by the names of its parts.

    >>> title("S1" + Regex("year", "[0-9]{4}") + str.split), title("word[0]")
    ('S1+regex:year+str.split', 'word[0]')
    """
    if isinstance(features, Features):
        return "+".join(map(title, features.parts))
    if isinstance(features, DerivedColumn):
        return f"{features.kind}:{features.name}"
    if isinstance(features, (str, os.PathLike)):
        return os.fspath(features)
    return str(getattr(features, "__qualname__", type(features).__qualname__))


def split_sum(text: str) -> list[str] | None:
    """Split a sum in a string into strings. Return None if the string is not a sum."""
    found = [piece.strip() for piece in _PLUS.split(text)]
    if "\n" in text.strip() or (len(found) == 1 and not re.match(_PREFIX, found[0])):
        return None
    return found


def parse_sum(text: str, functions: bool = False) -> tuple[Any, ...] | None:
    """Parse a sum in a string into its parts. Return None if the string is not a sum.

    `functions` allows `function:module:name`, which imports the module. Allow it for user input, never for files.

    >>> parse_sum("S3(window=2)+regex:plus=a+") is None, parse_sum("default") is None
    (False, True)
    """
    found = split_sum(text)
    if found is None:
        return None
    parts = (_part(piece, functions) for piece in found)
    return tuple(one for part in parts for one in (part.parts if isinstance(part, Features) else (part,)))


def parse_features(text: str) -> str | Features:
    """Return the features that a user typed: the text itself, or the sum that it spells."""
    parts = parse_sum(text, functions=True)
    return text if parts is None else Features(*parts)


def _part(piece: str, functions: bool) -> Any:
    """Parse one part of a sum."""
    if not re.match(_PREFIX, piece):
        return piece
    kind, _, rest = piece.partition(":")
    name, equals, value = rest.partition("=")
    if kind == "template":
        return Path(rest)
    if kind in DerivedColumn.kinds:
        named = equals and (kind == "regex" or not os.path.exists(rest))
        own, value = (name.strip(), value) if named else (None, rest)
        return DerivedColumn.kinds[kind].spelled(piece, own, value)
    if not functions:
        raise ParameterError(
            f"{piece!r}: a string can name a function only on the command line. In Python, add the function itself: "
            "Features('default') + function"
        )
    return function_at(rest, "the feature function")

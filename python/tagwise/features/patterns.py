"""Pattern languages of Wapiti and CRF++, rendered exactly as those programs do, for their models and for training.

A line such as `U00:%x[-1,0]/%x[0,0]` makes one observation per token. Its first letter determines the weights: u for
labels, b for pairs of labels, * for both. A b line without a command is the plain label pair, which every model has
anyway. Wapiti supports `%x`, `%t` and `%m` (with its own regular expressions), offsets from either end of the sentence
(`@1`, `@-1`), and capital letters that convert the result to lower case. CRF++ supports only `%x` with rows -8 to 8.

>>> Patterns.of("wapiti", 'u:%x[-1,0]\\nu:%m[0,0,"\\\\u"]\\nb').node([["The", "dog"]])
[['u:_x-1', 'u:T'], ['u:The', 'u:']]
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import tagwise._core as _core
from tagwise.base.cached import cached
from tagwise.base.exceptions import CorpusError, TemplateError
from tagwise.features.escape import decode_name, encode_name, is_plain

DIALECTS = ("wapiti", "wapiti-auto", "crfpp")
#: Limits of offsets and columns. Larger numbers are errors, because they would overflow in Wapiti's C code.
FARTHEST, MOST_COLUMNS = 2**31 - 1, 2**16

Columns = Sequence[Sequence[str]]
_WAPITI = re.compile(r"%([xtmXTM])\[(@?)\s*([+-]?\d{1,12})\s*,\s*\+?(\d{1,6})")
_CRFPP = re.compile(r"%x\[([+-]?\d{1,6}),(\d{1,6})\]")


@dataclass(frozen=True)
class PatternCommand:
    """A command `%c[offset,column,"regex"]`. `lower` converts its result to lower case."""

    kind: str
    lower: bool
    absolute: bool
    offset: int
    column: int
    regex: _core.WapitiRegex | None = None

    def place(self, t: int, length: int) -> int:
        """Return the index of the token to read, which may be outside the sentence."""
        if not self.absolute:
            return t + self.offset
        return self.offset + length if self.offset < 0 else self.offset - 1


@dataclass(frozen=True)
class Pattern:
    """A line: a sequence of strings and commands."""

    source: str
    items: tuple[str | PatternCommand, ...]

    @property
    def letter(self) -> str:
        """First letter in lower case: u, b or *."""
        return self.source[:1].lower()

    @property
    def is_bare(self) -> bool:
        """Whether the pattern is the plain label pair: a b line without commands."""
        return self.letter == "b" and not any(isinstance(item, PatternCommand) for item in self.items)

    @property
    @cached
    def reads_bytes(self) -> bool:
        """Whether a command works on bytes: a regular expression or lower case."""
        return any(isinstance(item, PatternCommand) and (item.lower or item.regex) for item in self.items)

    @property
    def columns(self) -> int:
        """Number of columns that the pattern needs."""
        return max((item.column + 1 for item in self.items if isinstance(item, PatternCommand)), default=0)


def _outside(dialect: str, at: int, length: int) -> str:
    """Return the value of a position before or after the sentence."""
    far, sign = (-at, "-") if at < 0 else (at - length + 1, "+")
    if dialect == "crfpp":
        return f"_B{sign}{far}"
    return f"_x{sign}{far if far <= 4 else '#'}"


def wapiti_pattern(line: str) -> Pattern:
    """Parse a line of Wapiti without its comment."""

    def wrong(problem: str) -> TemplateError:
        return TemplateError(f"the pattern {line!r}: {problem}")

    items: list[str | PatternCommand] = []
    at = 0
    while at < len(line):
        if line[at] != "%":
            end = line.find("%", at)
            end = len(line) if end < 0 else end
            items.append(line[at:end])
            at = end
            continue
        found = _WAPITI.match(line, at)
        if found is None:
            raise wrong('expected %x[offset,column], %t[offset,column,"regex"] or %m at ' + repr(line[at:]))
        kind, offset, column = found[1].lower(), int(found[3]), int(found[4])
        if abs(offset) > FARTHEST or column >= MOST_COLUMNS:
            raise wrong(f"{found[0]} is out of range")
        at, regex = found.end(), None
        if kind != "x":
            if line[at : at + 2] != ',"':
                raise wrong(f'{found[0]} lacks a regular expression: ,"..."')
            end = at + 2
            while end < len(line) and line[end] != '"':
                end += 2 if line[end] == "\\" and end + 1 < len(line) else 1
            if end >= len(line):
                raise wrong("a quote is not closed")
            regex, at = _core.WapitiRegex(encode_name(line[at + 2 : end])), end + 1
        if line[at : at + 1] != "]":
            raise wrong(f"{found[0]} is not closed by ]")
        at += 1
        items.append(PatternCommand(kind, found[1].isupper(), found[2] == "@", offset, column, regex))
    return Pattern(line, tuple(items))


def crfpp_pattern(line: str) -> Pattern:
    """Parse a line of CRF++."""
    items: list[str | PatternCommand] = []
    at = 0
    for found in _CRFPP.finditer(line):
        items += [line[at : found.start()], PatternCommand("x", False, False, int(found[1]), int(found[2]))]
        if abs(int(found[1])) > 8:
            raise TemplateError(f"the template {line!r}: {found[0]} is outside the rows -8 to 8")
        at = found.end()
    items.append(line[at:])
    if any(isinstance(item, str) and "%" in item for item in items):
        raise TemplateError(f"the template {line!r}: expected %x[row,column], the only macro of CRF++")
    return Pattern(line, tuple(item for item in items if item != ""))


@dataclass(frozen=True)
class Patterns:
    """The patterns of a file, for node attributes (`node`) and edge attributes (`edge`)."""

    dialect: str
    lines: tuple[Pattern, ...]

    @staticmethod
    @functools.lru_cache(maxsize=64)
    def of(dialect: str, text: str) -> Patterns:
        """Parse a text with one pattern per line. Comments and blank lines are skipped as in the original program."""
        out = []
        for number, raw in enumerate(text.split("\n"), 1):
            line = raw if dialect == "crfpp" else raw.split("#")[0]
            line = line.rstrip(" \t\r\f\v")
            if not line or (dialect == "crfpp" and line[0] == "#"):
                continue
            if line[0] not in ("UB" if dialect == "crfpp" else "uUbB*"):
                expected = "U or B" if dialect == "crfpp" else "u, b or *"
                raise TemplateError(
                    f"line {number}: {line!r}: expected a pattern that begins with {expected}"
                )
            try:
                if dialect == "crfpp":
                    out.append(crfpp_pattern(line))
                else:
                    out.append(wapiti_pattern(line[0].lower() + line[1:]))
            except TemplateError as error:
                raise TemplateError(f"line {number}: {error}") from None
        return Patterns(dialect, tuple(out))

    @property
    def text(self) -> str:
        """Source text of the patterns."""
        return "\n".join(pattern.source for pattern in self.lines)

    @property
    def n_columns(self) -> int:
        """Number of columns that the patterns need."""
        return max((pattern.columns for pattern in self.lines), default=0)

    @property
    def bare(self) -> str | None:
        """Text of the plain label pair if exactly one line defines it, else None."""
        found = [pattern.source for pattern in self.lines if pattern.is_bare]
        return found[0] if len(found) == 1 else None

    @property
    def has_edges(self) -> bool:
        """Whether a line other than the plain label pair makes edge attributes."""
        return any(p.letter in "b*" and p.source != self.bare for p in self.lines) or not self.lines

    def node(self, columns: Columns) -> list[list[str]]:
        """Return the node attributes of each token of a sentence, given its columns."""
        return self._rendered(columns, "u*", 0)

    def edge(self, columns: Columns) -> list[list[str]]:
        """Return the edge attributes of each token. The first token has none. The plain label pair is excluded."""
        return self._rendered(columns, "b*", 1)

    def _rendered(self, columns: Columns, letters: str, first: int) -> list[list[str]]:
        length = len(columns[0]) if columns else 0
        bare = self.bare
        wanted = [p for p in self.lines if p.letter in letters and p.source != bare]
        if any(p.columns > len(columns) for p in wanted):
            need = max(p.columns for p in wanted)
            raise CorpusError(
                f"the patterns need {need} columns, but a token has {len(columns)}. Pass a Corpus with these columns."
            )
        render = self._reader(columns, length)
        out: list[list[str]] = []
        for t in range(length):
            _core.Stop.check()
            out.append([render(p, t) for p in wanted] if t >= first else [])
        return out

    def _reader(self, columns: Columns, length: int) -> Callable[[Pattern, int], str]:
        """Return a function that renders a pattern at a token, on strings if the result equals that on bytes."""
        plain = all(is_plain(token) for column in columns for token in column)
        encoded: list[list[bytes]] = []

        def render(pattern: Pattern, t: int) -> str:
            if plain and not pattern.reads_bytes:
                return self._text(pattern, columns, t, length)
            if not encoded:
                encoded.extend([encode_name(token) for token in column] for column in columns)
            return self._bytes(pattern, encoded, t, length)

        return render

    def _text(self, pattern: Pattern, columns: Columns, t: int, length: int) -> str:
        out = []
        for item in pattern.items:
            if isinstance(item, str):
                out.append(item)
                continue
            at = item.place(t, length)
            out.append(columns[item.column][at] if 0 <= at < length else _outside(self.dialect, at, length))
        return "".join(out)

    def _bytes(self, pattern: Pattern, columns: Sequence[Sequence[bytes]], t: int, length: int) -> str:
        """Render a pattern on bytes.

        A match that extends beyond its token ends the observation, because Wapiti stops at the NUL there.
        """
        out = b""
        for item in pattern.items:
            if isinstance(item, str):
                out += encode_name(item)
                continue
            at = item.place(t, length)
            inside = 0 <= at < length
            value = columns[item.column][at] if inside else _outside(self.dialect, at, length).encode()
            over = False
            if item.regex is not None:
                found = item.regex.find(value)
                if item.kind == "t":
                    value = b"false" if found is None else b"true"
                elif found is None:
                    value = b""
                else:
                    begin, end = found[0], sum(found)
                    value, over = value[begin:end], end > len(value)
            out += value.lower() if item.lower else value
            if over:
                break
        return decode_name(out)

    def split_observations(self, token: Sequence[str], t: int) -> tuple[list[str], list[str]]:
        """Return the node and edge attributes of a token whose columns are observations (file without patterns)."""
        if self.dialect == "wapiti-auto":
            return [f"u{text}" for text in token], []
        for text in token:
            if text[:1].lower() not in ("u", "b", "*"):
                raise CorpusError(f"the observation {text!r}: expected one that begins with u, b or *")
        node = [text for text in token if text[0] in "uU*"]
        return node, [text for text in token if t and text[0] in "bB*"]


def is_wapiti(text: str) -> bool:
    """Return whether a text consists of Wapiti patterns: lines that begin with u, b or *, some with a command."""
    lines = [line.split("#")[0].strip() for line in text.splitlines()]
    return bool(_WAPITI.search(text)) and all(re.match(r"[uUbB*]|$", line) for line in lines)

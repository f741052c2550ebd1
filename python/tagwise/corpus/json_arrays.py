"""JSON arrays of objects as lines of objects, so that every format of JSON lines also reads an array."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

from tagwise.corpus.streams import check_size, fail, limit, shown

_ARRAY = re.compile(r'\s*\[\s*(?:\{\s*["}]|\]\s*$)')
_SPACE = re.compile(r"\s*")
_REMEDY = "Write an array of objects, or one object per line."


def is_array(head: str) -> bool:
    """Return whether a text begins like a JSON array of objects, or is an empty array.

    >>> is_array('[\\n  {"text": "a"},'), is_array('["a", "b"]'), is_array("[]\\n")
    (True, False, True)
    """
    return _ARRAY.match(head) is not None


class _Array:
    """Incremental reader of the elements of an array."""

    def __init__(self, name: str, chunks: Iterator[str]) -> None:
        self.name, self.chunks = name, chunks
        self.text, self.at = "", 0  # unread text begins at `at`
        self.line = 1  # line number of the character at `at`
        self.most = limit("TAGWISE_MAX_SENTENCE")
        self.decoder = json.JSONDecoder()

    def advance(self, end: int) -> None:
        """Move to a position."""
        self.line += self.text.count("\n", self.at, end)
        self.at = end

    def more(self, least: int) -> bool:
        """Append text until `least` characters are unread. Return False at the end of the file."""
        parts = [self.text[self.at :]]
        size = len(parts[0])
        before = size
        for chunk in self.chunks:
            parts.append(chunk)
            size += len(chunk)
            if size >= least:
                break
        self.text, self.at = "".join(parts), 0
        return size > before

    def mark(self) -> str:
        """Skip white space, and return the next character or an empty string at the end of the file."""
        while True:
            found = _SPACE.match(self.text, self.at)
            self.advance(found.end() if found else self.at)
            if self.at < len(self.text):
                return self.text[self.at]
            if not self.more(1):
                return ""

    def element(self) -> str:
        """Return the text of the next element.

        Text is parsed again only when it has doubled, so that the time is linear in the size of the element.
        """
        while True:
            try:
                _, end = self.decoder.raw_decode(self.text, self.at)
            except (ValueError, RecursionError) as e:
                unread = len(self.text) - self.at
                check_size(self.name, self.line, unread, self.most)
                line = self.line + self.text.count("\n", self.at, getattr(e, "pos", self.at))
                if not isinstance(e, RecursionError) and self.more(2 * unread + 1):
                    continue
                fail(self.name, line, f"not valid JSON ({str(e)[:80]})", _REMEDY, e)
            check_size(self.name, self.line, end - self.at, self.most)
            found = self.text[self.at : end]
            self.advance(end)
            return found


def array_lines(name: str, chunks: Iterator[str]) -> Iterator[str]:
    """Yield the elements of an array as lines of text, without holding the array in memory.

    Blank lines keep the line numbers of elements that begin on their own lines.

    >>> "".join(array_lines("a.json", iter(['[\\n{"a":\\n1},\\n', '{"a": 2}]\\n'])))
    '\\n{"a": 1}\\n\\n{"a": 2}\\n'
    """
    array = _Array(name, chunks)
    if array.mark() != "[":
        fail(name, array.line, "the file does not begin with '['", _REMEDY)
    array.advance(array.at + 1)
    written = 0  # lines
    out: list[str] = []
    mark = array.mark()
    while mark != "]":
        blank = max(array.line - 1 - written, 0)
        out.append("\n" * blank + array.element().replace("\n", " ") + "\n")
        written += blank + 1
        # Many elements per chunk, so that texts are tokenized together.
        if array.at + 4096 > len(array.text):
            yield "".join(out)
            out = []
        mark = array.mark()
        if mark == ",":
            array.advance(array.at + 1)
            array.mark()
        elif mark != "]":
            problem = (
                f"{shown(mark)} after an element, expected ',' or ']'" if mark else "the array has no end"
            )
            fail(name, array.line, problem, _REMEDY)
    if out:
        yield "".join(out)
    array.advance(array.at + 1)
    rest = array.mark()
    if rest:
        fail(name, array.line, f"{shown(rest)} after the end of the array", _REMEDY)

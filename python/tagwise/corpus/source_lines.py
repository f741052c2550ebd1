"""Buffer of unmodified lines of a file, for output that preserves its input."""

from __future__ import annotations

from collections import deque


class Raw:
    """Queue of lines between a reader and a writer, which may be different threads.

    The reader appends text in whole lines (all but the last end in ``\\n``) and sets `separator` and `columns`. The
    writer takes lines in order. Taken lines are dropped, so memory is proportional to the lines read ahead.

    >>> raw = Raw()
    >>> raw.append("a\\n\\n")
    >>> raw.append("b")
    >>> raw.lines_before(3), raw.ending, raw.take(1), raw.ending
    (['a', ''], '\\n', ['b'], '')
    """

    def __init__(self) -> None:
        self.separator = " "  # column separator, in formats with more than one
        self.columns = 0  # columns per row, including '_' (0: not determined yet)
        self._chunks: deque[str] = deque()
        self._lines: list[str] = []
        self._at = 0  # index of the next line in _lines
        self._number = 1  # number of the next line in the file
        self._closed = True  # whether the last of _lines ends in \n

    def append(self, text: str) -> None:
        """Add text of the file."""
        self._chunks.append(text)

    def forget(self) -> None:
        """Drop all lines, now and in the future. No writer needs them."""
        self._chunks = deque(maxlen=0)

    def _pull(self) -> bool:
        """Split the next piece of text into lines. Return False if there is none."""
        if not self._chunks:
            return False
        lines = self._chunks.popleft().split("\n")
        self._closed = lines[-1] == ""
        if self._closed:
            lines.pop()
        self._lines = self._lines[self._at :] + lines if self._at < len(self._lines) else lines
        self._at = 0
        return True

    def take(self, n: int) -> list[str]:
        """Return the next n lines without ``\\n``, or fewer at the end of the text."""
        while len(self._lines) - self._at < n and self._pull():
            pass
        found = self._lines[self._at : self._at + n]
        self._at += len(found)
        self._number += len(found)
        return found

    def lines_before(self, number: int) -> list[str]:
        """Return the remaining lines before a line number, counted from 1."""
        return self.take(number - self._number)

    def blank(self) -> list[str]:
        """Return the blank lines that come next and have already been read."""
        n = 0
        while self._at + n < len(self._lines) and not self._lines[self._at + n].strip(" \t\r"):
            n += 1
        return self.take(n)

    def rest(self) -> list[str]:
        """Return all remaining lines."""
        while self._pull():
            pass
        return self.take(len(self._lines) - self._at)

    @property
    def ending(self) -> str:
        """Terminator of the most recent line: empty for the last line of a file that does not end in ``\\n``."""
        last = self._at == len(self._lines) and not self._chunks
        return "" if last and not self._closed else "\n"

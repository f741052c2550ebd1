"""The lines of a file as they stood, kept beside the sentences that were read from them."""

from __future__ import annotations

from collections import deque


class Raw:
    """Lines that a reader has seen and a writer has not taken yet.

    A reader appends text in whole lines (all but the last end in ``\\n``) and settles `separator` and `columns`; a
    writer, in another thread perhaps, takes lines in their order. What was taken is forgotten, so that memory is
    that of what was read ahead.

    >>> raw = Raw()
    >>> raw.append("a\\n\\n")
    >>> raw.append("b")
    >>> raw.upto(3), raw.ending, raw.take(1), raw.ending
    (['a', ''], '\\n', ['b'], '')
    """

    def __init__(self) -> None:
        self.separator = " "  # between columns, where the format leaves that open
        self.columns = 0  # that a row has, '_' included; 0: not known yet
        self._chunks: deque[str] = deque()
        self._lines: list[str] = []
        self._at = 0  # of the next line in _lines
        self._number = 1  # of the next line in the file
        self._closed = True  # whether the last of _lines ends in \n

    def append(self, text: str) -> None:
        """More text of the file."""
        self._chunks.append(text)

    def forget(self) -> None:
        """Keep no lines, now and from here on: nobody is going to take them."""
        self._chunks = deque(maxlen=0)

    def _pull(self) -> bool:
        """Split one more piece of text into lines; False where there is none."""
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
        """The next n lines, without their ``\\n``; fewer where the text ends."""
        while len(self._lines) - self._at < n and self._pull():
            pass
        found = self._lines[self._at : self._at + n]
        self._at += len(found)
        self._number += len(found)
        return found

    def upto(self, number: int) -> list[str]:
        """The lines before that of this number, counted from 1."""
        return self.take(number - self._number)

    def blank(self) -> list[str]:
        """The blank lines that follow, as far as they have arrived."""
        n = 0
        while self._at + n < len(self._lines) and not self._lines[self._at + n].strip(" \t\r"):
            n += 1
        return self.take(n)

    def rest(self) -> list[str]:
        """All lines that are left."""
        while self._pull():
            pass
        return self.take(len(self._lines) - self._at)

    @property
    def ending(self) -> str:
        """What ends the line that was taken last: nothing, if it is the last of a file that does not end in ``\\n``."""
        last = self._at == len(self._lines) and not self._chunks
        return "" if last and not self._closed else "\n"


__all__ = ["Raw"]

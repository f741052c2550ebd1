"""The regular expressions of Wapiti's patterns, byte by byte, with the lengths that its matcher counts.

Items are `.`, classes (`\\a \\d \\l \\u \\p \\s \\w`, a capital is the complement), escaped bytes, bytes themselves;
after one, `*` is any number, shortest first, and `?` none or one, longest first. `^` first and `$` last are the ends.
What a match is long is counted on the way and not taken back where an item fails (only `?` takes back one, and `*`
begins anew), so a match may come out too long: models were trained with those texts.

>>> Regex(rb"a?ab").match(b"abX"), Regex(rb"\\d").match(b"no")
((0, 3), (-1, 0))
"""

from __future__ import annotations

import string

from tagwise.errors import TemplateError

_ALPHA, _DIGIT = string.ascii_letters.encode(), string.digits.encode()
_CLASSES = {
    b"a": _ALPHA,
    b"d": _DIGIT,
    b"l": string.ascii_lowercase.encode(),
    b"u": string.ascii_uppercase.encode(),
    b"p": string.punctuation.encode(),
    b"s": b" \t\n\v\f\r",
    b"w": _ALPHA + _DIGIT,
}
_EVERY = frozenset(range(1, 256))


def _class(name: bytes) -> frozenset[int]:
    """The bytes of `\\x`."""
    if name.lower() not in _CLASSES:
        return frozenset(name)
    found = frozenset(_CLASSES[name.lower()])
    return found if name.islower() else _EVERY - found


class Regex:
    """A compiled expression: items as (bytes that fit, "", "*" or "?"), and whether it is tied to the ends."""

    def __init__(self, source: bytes) -> None:
        self.source = source
        self.anchored = source[:1] == b"^"
        at = int(self.anchored)
        self.items: list[tuple[frozenset[int], str]] = []
        self.at_end = False
        while at < len(source):
            if source[at:] == b"$":
                self.at_end = True
                break
            if source[at : at + 1] in (b"*", b"?"):
                raise TemplateError(
                    f"the expression {source!a} has nothing before {chr(source[at])} to repeat"
                )
            if source[at : at + 1] == b"\\" and at + 1 < len(source):
                fits, at = _class(source[at + 1 : at + 2]), at + 2
            else:
                fits = _EVERY if source[at : at + 1] == b"." else frozenset(source[at : at + 1])
                at += 1
            times = chr(source[at]) if source[at : at + 1] in (b"*", b"?") else ""
            self.items.append((fits, times))
            at += len(times)

    def match(self, text: bytes) -> tuple[int, int]:
        """Where the leftmost match begins, -1 for none, and the length that the matcher counts."""
        text = text.split(b"\0", 1)[0]
        known: dict[tuple[int, int], tuple[bool, int]] = {}
        for begin in range(1 if self.anchored else len(text) + 1):
            matched, length = self._from(0, begin, text, known)
            if matched:
                return begin, length
        return -1, 0

    def _from(
        self, i: int, at: int, text: bytes, known: dict[tuple[int, int], tuple[bool, int]]
    ) -> tuple[bool, int]:
        """Whether items from i on match from `at` on, and what was added to the length, whether or not they do.

        Both depend on (i, at) alone, so each is found once: no expression takes longer than items x bytes^2.
        """
        if i == len(self.items):
            return (at == len(text) or not self.at_end), 0
        if (i, at) in known:
            return known[i, at]
        fits, times = self.items[i]
        here = at < len(text) and text[at] in fits
        if times == "*":
            matched, length = False, 0
            for n in range(len(text) - at + 1):
                matched, more = self._from(i + 1, at + n, text, known)
                length = n + more
                if matched or at + n >= len(text) or text[at + n] not in fits:
                    break
        elif times == "?":
            matched, length = False, 0
            if here:
                matched, length = self._from(i + 1, at + 1, text, known)
                length += 1
            if not matched:
                length -= int(here)
                matched, more = self._from(i + 1, at, text, known)
                length += more
        else:
            matched, length = (self._from(i + 1, at + 1, text, known)) if here else (False, 0)
            length += 1
        known[i, at] = matched, length
        return known[i, at]


__all__ = ["Regex"]

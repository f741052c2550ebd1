r"""Regular expressions that cannot hang: automata, in time that grows with the text, whatever the pattern.

The syntax is that of `re` as far as it is regular: letters, `.`, classes, `\d \w \s`, alternatives, groups, repeats.
What needs a search with backtracking (references, looking ahead or behind, boundaries) is refused. A pattern is turned
into an automaton of at most `MOST` states (Thompson 1968), whose sets of states are followed one character after the
other and remembered.

>>> year = Automaton(r"(19|20)\d\d")
>>> year.matches("1984"), year.matches("1984a")
(True, False)
>>> Automaton("(a*)*b").matches("a" * 100_000)
False
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from threading import Lock
from typing import NoReturn

from tagwise.base.exceptions import TemplateError

#: States of an automaton, characters of a pattern, the largest number of a repeat, groups within groups.
MOST, LONGEST, REPEATS, DEEPEST = 1000, 1000, 200, 50
#: Steps and sets of states that are remembered before all are forgotten: memory stays bounded whatever the text is.
REMEMBERED, SETS = 20_000, 1000

CLASSES: dict[str, Callable[[str], bool]] = {
    "d": str.isdecimal,
    "w": lambda c: c.isalnum() or c == "_",
    "s": str.isspace,
}
ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "f": "\f", "v": "\v", "a": "\a"}
#: Escape of a character by its number: digits that follow.
HEX = {"x": 2, "u": 4, "U": 8}


@dataclass(frozen=True)
class Chars:
    """A set of characters: ranges, and classes that may be complements; `complement` of all of it."""

    ranges: tuple[tuple[str, str], ...] = ()
    classes: tuple[tuple[str, bool], ...] = ()  # name, whether what is not in it is meant
    complement: bool = False

    def has(self, c: str, ignore_case: bool) -> bool:
        """Whether a character is in the set, in either case where that does not matter."""
        forms = {c, c.lower(), c.upper()} if ignore_case else (c,)
        found = any(
            any(low <= form <= high for low, high in self.ranges)
            or any(CLASSES[name](form) != inverse for name, inverse in self.classes)
            for form in forms
            if len(form) == 1
        )
        return found != self.complement


@dataclass(frozen=True)
class Row:
    """Parts one after the other."""

    parts: tuple[Part, ...]


@dataclass(frozen=True)
class Choice:
    """One part of several."""

    parts: tuple[Part, ...]


@dataclass(frozen=True)
class Repeat:
    """A part at least `low` times and at most `high` times; None for any number."""

    part: Part
    low: int
    high: int | None


Part = Chars | Row | Choice | Repeat


class _Reader:
    """The parts of a pattern, read from left to right."""

    def __init__(self, pattern: str) -> None:
        self.text = pattern
        self.at = 0
        self.depth = 0

    def refuse(self, what: str) -> NoReturn:
        raise TemplateError(f"regular expression {self.text!r}, at character {self.at}: {what}")

    def peek(self, text: str) -> bool:
        return self.text.startswith(text, self.at)

    def take(self, text: str) -> bool:
        """Step over a text, where it comes next."""
        found = self.peek(text)
        self.at += len(text) * found
        return found

    def next(self) -> str:
        if self.at >= len(self.text):
            self.refuse("it ends too early; close brackets, and write a backslash as \\\\")
        self.at += 1
        return self.text[self.at - 1]

    def whole(self) -> Part:
        """The pattern; ^ and $ at its ends say what holds anyway, since a token is matched as a whole."""
        self.take("^")
        found = self.alternatives()
        if self.at < len(self.text):
            self.refuse("a bracket ) that was not opened; write \\) for the character")
        return found

    def alternatives(self) -> Part:
        self.depth += 1
        if self.depth > DEEPEST:
            self.refuse(f"groups lie more than {DEEPEST} deep; write fewer")
        found = [self.sequence()]
        while self.take("|"):
            found.append(self.sequence())
        self.depth -= 1
        return found[0] if len(found) == 1 else Choice(tuple(found))

    def sequence(self) -> Part:
        parts: list[Part] = []
        while self.at < len(self.text) and not self.peek("|") and not self.peek(")"):
            if self.peek("$") and self.at == len(self.text) - 1:
                self.at += 1
                break
            parts.append(self.repeated(self.atom()))
        return Row(tuple(parts))

    def repeated(self, part: Part) -> Part:
        low, high = self.bounds()
        if low < 0:
            return part
        if self.take("+"):
            self.refuse("repeats that give nothing back (possessive) are not regular; leave the second + out")
        self.take("?")  # a lazy repeat matches the same tokens
        if self.bounds()[0] >= 0:
            self.refuse("a repeat of a repeat; put brackets around the first")
        return Repeat(part, low, high)

    def bounds(self) -> tuple[int, int | None]:
        """The numbers of a repeat that comes next; -1 where none does, as for a { that stands for itself."""
        for sign, bounds in (("*", (0, None)), ("+", (1, None)), ("?", (0, 1))):
            if self.take(sign):
                return bounds
        close = self.text.find("}", self.at)
        if not self.peek("{") or close < 0:
            return -1, None
        low, comma, high = self.text[self.at + 1 : close].partition(",")
        digits = [x for x in (low, high) if x]
        if not (digits or comma) or not all(x.isascii() and x.isdecimal() for x in digits):
            return -1, None
        if any(len(x) > 4 or int(x) > REPEATS for x in digits):
            self.refuse(f"a repeat of more than {REPEATS} times; write fewer, or * for any number")
        self.at = close + 1
        least, most = int(low or 0), int(high) if high else None if comma else int(low)
        if most is not None and most < least:
            self.refuse("a repeat of at most fewer than at least; write the smaller number first")
        return least, most

    def atom(self) -> Part:
        if self.take("("):
            return self.group()
        if self.take("["):
            return self.bracket()
        if self.take("."):
            return Chars((("\n", "\n"),), complement=True)
        if self.take("\\"):
            return self.escape()
        if self.bounds()[0] >= 0:
            self.refuse("nothing before it to repeat; write \\*, \\+, \\?, \\{ for the characters")
        c = self.next()
        if c in "^$":
            self.refuse(f"{c} stands inside; a token is matched as a whole, write \\{c} for the character")
        return Chars(((c, c),))

    def group(self) -> Part:
        if self.take("?"):
            if self.take("P<"):
                name = self.text[self.at : self.text.find(">", self.at)]
                if not name.isidentifier() or not self.take(f"{name}>"):
                    self.refuse("a name of a group such as (?P<name>...) was expected")
            elif not self.take(":"):
                self.refuse(
                    "only (...), (?:...) and (?P<name>...) are regular; flags are parameters (ignore_case), and "
                    "looking ahead or behind, conditions and references are not offered"
                )
        found = self.alternatives()
        if not self.take(")"):
            self.refuse("the bracket ( is not closed; write \\( for the character")
        return found

    def escape(self) -> Chars:
        c = self.next()
        if c.lower() in CLASSES:
            return Chars(classes=((c.lower(), c.isupper()),))
        if c in HEX:
            digits = "".join(self.next() for _ in range(HEX[c]))
            try:
                found = chr(int(digits, 16))
            except (ValueError, OverflowError):
                self.refuse(f"\\{c} wants the {HEX[c]} digits of a character's number, found {digits!r}")
            return Chars(((found, found),))
        if c in ESCAPES:
            return Chars(((ESCAPES[c],) * 2,))
        if c.isascii() and c.isalnum():
            self.refuse(
                f"\\{c} is not offered; there are \\d \\w \\s, \\D \\W \\S, \\n \\t \\r \\f \\v \\x \\u"
            )
        return Chars(((c, c),))

    def bracket(self) -> Chars:
        complement = self.take("^")
        ranges: list[tuple[str, str]] = []
        classes: list[tuple[str, bool]] = []
        first = True
        while first or not self.peek("]"):
            first = False
            low = self.member()
            to = self.peek("-") and self.text[self.at + 1 : self.at + 2] not in ("]", "")
            if low.classes:
                if to:
                    self.refuse("a range goes from a character to a later one, as a-z")
                classes += low.classes
                continue
            low_char = high_char = low.ranges[0][0]
            if to:
                self.at += 1
                high = self.member()
                if high.classes or high.ranges[0][0] < low_char:
                    self.refuse("a range goes from a character to a later one, as a-z")
                high_char = high.ranges[0][0]
            ranges.append((low_char, high_char))
        self.at += 1
        return Chars(tuple(ranges), tuple(classes), complement)

    def member(self) -> Chars:
        """A character of a class in square brackets, or \\d and the like; \\b is a backspace there."""
        if self.take("\\b"):
            return Chars((("\b", "\b"),))
        if self.take("\\"):
            return self.escape()
        c = self.next()
        return Chars(((c, c),))


class _Steps:
    """What is remembered of an automaton: sets of its states, as bits, by number; where a character leads from each."""

    def __init__(self, begin: int) -> None:
        self.number = {begin: 0}
        self.sets = [begin]
        self.moves: list[dict[str, int]] = [{}]
        self.size = 0

    def numbered(self, states: int) -> int:
        """The number of a set, perhaps a new one."""
        if states not in self.number:
            self.sets.append(states)
            self.moves.append({})
            self.number[states] = len(self.sets) - 1
        return self.number[states]


class Automaton:
    """A pattern, ready to match texts as a whole."""

    def __init__(self, pattern: str, ignore_case: bool = False) -> None:
        if len(pattern) > LONGEST:
            raise TemplateError(
                f"regular expression {pattern[:60]!r}...: {len(pattern):,} characters, at most {LONGEST:,} are taken; "
                "put lists of words into a gazetteer"
            )
        self.pattern, self.ignore_case = pattern, ignore_case
        self._sets: list[tuple[Chars, int] | None] = []  # of a state: what it reads and where that leads
        self._free: list[list[int]] = []  # of a state: where it leads without reading
        self._end = self._state()
        self._closures: dict[int, int] = {}
        self._readers: dict[str, int] = {}
        self._begin = self._closed(self._build(_Reader(pattern).whole(), self._end))
        self._steps = _Steps(self._begin)
        self._lock = Lock()

    def _state(self) -> int:
        """One more state. Every part has one, if only to pass: or empty repeats of repeats would be built for ever."""
        if len(self._sets) >= MOST:
            raise TemplateError(
                f"regular expression {self.pattern[:60]!r} needs more than {MOST} states; repeat less, and put lists "
                "of words into a gazetteer"
            )
        self._sets.append(None)
        self._free.append([])
        return len(self._sets) - 1

    def _build(self, part: Part, then: int) -> int:
        """The state from which a part leads to the state `then`."""
        here = self._state()
        if isinstance(part, Chars):
            self._sets[here] = (part, then)
        elif isinstance(part, Row):
            for inner in reversed(part.parts):
                then = self._build(inner, then)
            self._free[here].append(then)
        elif isinstance(part, Choice):
            self._free[here] += [self._build(inner, then) for inner in part.parts]
        else:
            last = then
            if part.high is None:
                then = self._state()
                self._free[then] += [last, self._build(part.part, then)]
            for _ in range((part.high or part.low) - part.low):
                skip = self._state()
                self._free[skip] += [last, self._build(part.part, then)]
                then = skip
            for _ in range(part.low):
                then = self._build(part.part, then)
            self._free[here].append(then)
        return here

    def _closed(self, state: int) -> int:
        """The states that are reached from one without reading, itself included, as bits of a number.

        Those that neither read nor end are left out.
        """
        if state not in self._closures:
            seen, open_ = {state}, [state]
            while open_:
                for after in self._free[open_.pop()]:
                    if after not in seen:
                        seen.add(after)
                        open_.append(after)
            found = sum(1 << s for s in seen if self._sets[s] is not None or s == self._end)
            self._closures[state] = found
        return self._closures[state]

    def _reading(self, c: str) -> int:
        """The states that read a character, as bits: asked once a character, not once a set of states."""
        found = self._readers.get(c)
        if found is None:
            if len(self._readers) >= REMEMBERED:
                self._readers = {}
            reads = [s for s, read in enumerate(self._sets) if read and read[0].has(c, self.ignore_case)]
            found = self._readers[c] = sum(1 << s for s in reads)
        return found

    def _step(self, states: int, c: str) -> int:
        """The states that reading a character leads to."""
        left, reached = states & self._reading(c), 0
        while left:
            first = left & -left
            left ^= first
            reads = self._sets[first.bit_length() - 1]
            reached |= self._closed(reads[1]) if reads else 0
        return reached

    def _after(self, here: _Steps, at: int, c: str) -> tuple[_Steps, int]:
        """What a character leads to from a set of states; what is remembered stays bounded."""
        states = self._step(here.sets[at], c)
        with self._lock:
            if here.size < REMEMBERED and len(here.sets) < SETS:
                here.size += 1
                found = here.moves[at][c] = here.numbered(states)
                return here, found
            self._steps = here = _Steps(self._begin)
            return here, here.numbered(states)

    def matches(self, text: str) -> bool:
        """Whether the whole text is one that the pattern describes."""
        here, at = self._steps, 0
        for c in text:
            after = here.moves[at].get(c, -1)
            if after < 0:
                here, at = self._after(here, at, c)
            else:
                at = after
            if not here.sets[at]:
                return False
        return bool(here.sets[at] >> self._end & 1)


__all__ = ["Automaton"]

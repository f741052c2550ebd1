"""Domains of JSON values and arrays: what a field of a header, a file or a request may hold.

A value outside its domain is a DomainError that names the field. Readers turn it into the error of their file.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from tagwise.base.exceptions import TagwiseError

#: Levels of lists and objects that a value without a schema may have.
DEPTH = 16
#: Characters of a wrong value that a message shows.
SHOWN = 60
#: The largest number of float32.
LARGEST = float(np.finfo(np.float32).max)


class DomainError(TagwiseError, ValueError):
    """A value is outside its domain, or a file is not what its checksum says."""


def refuse(at: str, expected: str, value: Any) -> DomainError:
    """The error of a wrong value: its place, what was expected, what is there."""
    if isinstance(value, (list, dict)):
        shown = f"{type(value).__name__} of {len(value)}"
    elif (
        isinstance(value, int) and abs(value) >= 10**SHOWN
    ):  # Python does not print numbers of thousands of digits
        shown = f"a number of {value.bit_length()} bits"
    else:
        shown = ascii(value)
    return DomainError(f"{at}: expected {expected}, found {shown[:SHOWN]}")


class Domain(Protocol):
    """The values that a field may hold."""

    def check(self, value: Any, at: str) -> None:
        """Refuse what is outside; `at` is the field's place."""


@dataclass(frozen=True)
class Text:
    """A text; `inside`: characters it must have, as the colon of an import path; `most`: its maximum length."""

    inside: str = ""
    most: int | None = None

    def check(self, value: Any, at: str) -> None:
        if type(value) is not str or self.inside not in value:
            raise refuse(at, f"a text with {self.inside!r} in it" if self.inside else "a text", value)
        if self.most is not None and len(value) > self.most:
            raise refuse(at, f"a text of at most {self.most} characters", value)


@dataclass(frozen=True)
class Truth:
    """true or false."""

    def check(self, value: Any, at: str) -> None:
        if type(value) is not bool:
            raise refuse(at, "true or false", value)


@dataclass(frozen=True)
class Whole:
    """A whole number in [low, high]."""

    low: int
    high: int

    def check(self, value: Any, at: str) -> None:
        if type(value) is not int or not self.low <= value <= self.high:
            raise refuse(at, f"a whole number from {self.low} to {self.high}", value)


@dataclass(frozen=True)
class Real:
    """A number that a float64 can hold, in [low, high]; `any_`: NaN and the infinities too."""

    low: float = -math.inf
    high: float = math.inf
    any_: bool = False

    def check(self, value: Any, at: str) -> None:
        if type(value) in (int, float):
            if isinstance(value, float) and self.any_ and not math.isfinite(value):
                return
            if abs(value) <= 1.7e308 and self.low <= value <= self.high:
                return
        bound = f" from {self.low:g}" * (self.low > -math.inf) + f" to {self.high:g}" * (self.high < math.inf)
        raise refuse(at, f"a number{bound}", value)


@dataclass(frozen=True)
class OneOf:
    """One of a few constants: texts, or null."""

    values: tuple[str | None, ...]

    def check(self, value: Any, at: str) -> None:
        if not isinstance(value, (str, type(None))) or value not in self.values:
            raise refuse(at, "one of " + ", ".join(map(repr, self.values)), value)


@dataclass(frozen=True)
class Either:
    """One domain or another; the last one speaks where none fits."""

    domains: tuple[Domain, ...]

    def check(self, value: Any, at: str) -> None:
        for domain in self.domains[:-1]:
            try:
                domain.check(value, at)
            except DomainError:
                continue
            return
        self.domains[-1].check(value, at)


@dataclass(frozen=True)
class Listed:
    """A list of `low` to `high` values of one domain, perhaps all distinct."""

    of: Domain
    low: int = 0
    high: int = 2**32
    distinct: bool = False

    def check(self, value: Any, at: str) -> None:
        if type(value) is not list or not self.low <= len(value) <= self.high:
            raise refuse(at, f"a list of {self.low} to {self.high} entries", value)
        for i, entry in enumerate(value):
            self.of.check(entry, f"{at}[{i}]")
        if self.distinct and len(set(value)) < len(value):
            twice = next(x for i, x in enumerate(value) if x in value[:i])
            raise refuse(at, "entries that differ", twice)


@dataclass(frozen=True)
class Tupled:
    """A list of exactly these domains."""

    domains: tuple[Domain, ...]

    def check(self, value: Any, at: str) -> None:
        if type(value) is not list or len(value) != len(self.domains):
            raise refuse(at, f"a list of {len(self.domains)} entries", value)
        for i, (entry, domain) in enumerate(zip(value, self.domains)):
            domain.check(entry, f"{at}[{i}]")


@dataclass(frozen=True)
class Open:
    """Any JSON, not too deep."""

    def check(self, value: Any, at: str) -> None:
        level = [value]
        for _ in range(DEPTH + 1):
            level = [
                inner
                for outer in level
                if isinstance(outer, (list, dict))
                for inner in (outer.values() if isinstance(outer, dict) else outer)
            ]
            if not level:
                return
        raise refuse(at, f"{DEPTH} levels of lists and objects or fewer", value)


@dataclass(frozen=True)
class Record:
    """An object with fields that must be there, fields that may be, and others where `more` is their domain."""

    must: Mapping[str, Domain] = field(default_factory=dict)
    may: Mapping[str, Domain] = field(default_factory=dict)
    more: Domain | None = None

    def check(self, value: Any, at: str) -> None:
        if type(value) is not dict:
            raise refuse(at, "an object", value)
        for name in self.must:
            if name not in value:
                raise DomainError(f"{at} lacks {name!r}; the file was written by another program or version")
        for name, entry in value.items():
            domain = self.must.get(name) or self.may.get(name) or self.more
            place = f"{at}.{name}"[:SHOWN]
            if domain is None:
                known = ", ".join((*self.must, *self.may))
                raise DomainError(f"{place!a}: an unknown field; expected {known or 'none'}")
            domain.check(entry, place)


@dataclass(frozen=True)
class Variant:
    """An object whose field `key` says what else it has."""

    key: str
    kinds: Mapping[str, Record]

    def check(self, value: Any, at: str) -> None:
        if type(value) is not dict:
            raise refuse(at, "an object", value)
        kind = value.get(self.key)
        if type(kind) is not str or kind not in self.kinds:
            raise refuse(
                f"{at}.{self.key}",
                f"one of {', '.join(self.kinds)} (the file is from a newer tagwise, or damaged)",
                kind,
            )
        self.kinds[kind].check({name: x for name, x in value.items() if name != self.key}, at)


def name_of(dtype: Any) -> str:
    """Return the name of a type of numbers in files.

    >>> name_of(np.uint32), name_of(np.float64)
    ('u32', 'f64')
    """
    found = np.dtype(dtype)
    return f"{found.kind}{8 * found.itemsize}"


@dataclass(frozen=True)
class Numbers:
    """An array of one dimension: its type, its length if that is known, and whether its numbers must be finite.

    Finite means within float32, which is what models hold their weights in.
    An array that was not read yet (`arrays.Placed`) is checked by its type and length alone.
    """

    dtype: str
    length: int | None = None
    finite: bool = True

    def check(self, value: Any, at: str) -> None:
        name, length = getattr(value, "dtype", None), getattr(value, "length", None)
        if isinstance(value, np.ndarray):
            name, length = name_of(value.dtype), value.size
        if name is None or length is None:
            raise refuse(at, f"an array of {self.dtype}", value)
        if name != self.dtype or (self.length is not None and length != self.length):
            wanted = "" if self.length is None else f"{self.length:,} numbers of "
            raise DomainError(f"{at}: expected {wanted}{self.dtype}, found {length:,} of {name!a}")
        if self.finite and isinstance(value, np.ndarray) and value.dtype.kind == "f":
            check_finite(at, value)
            if value.dtype.itemsize > 4 and value.size and np.abs(value).max() > LARGEST:
                raise DomainError(f"{at}: a number beyond {LARGEST:.3g}, the largest one of float32")


def check_finite(name: str, array: NDArray[Any]) -> None:
    """Refuse NaN and infinite numbers: no training leaves them, and no search is right with them.

    A sum of finite numbers is finite unless it overflows, so the second, slower look is rare.
    """
    with np.errstate(all="ignore"):
        if np.isfinite(array.sum()) or np.isfinite(array).all():
            return
    at = int(np.flatnonzero(~np.isfinite(array))[0])
    raise DomainError(f"{name}[{at}] is {array[at]}; expected finite numbers")

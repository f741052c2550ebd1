"""Domains of parameters, of fields of files and of members of requests.

`check` accepts exactly the types of JSON. Arguments of Python calls go through `convert` first, which accepts NumPy
numbers, and 3.0 for 3. Strings of the command line go through `parse`. A value outside its domain raises a DomainError
that names its place. Callers turn it into their own error: ParameterError, ModelFileError, HTTP 400.

>>> Record({"k": Integer(1, 100)}).check({"k": 0}, "the request")
Traceback (most recent call last):
tagwise.base.domains.DomainError: the request.k: expected integer >= 1 and <= 100, found 0
"""

from __future__ import annotations

import json
import math
import numbers
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from tagwise.base.exceptions import TagwiseError

#: Maximum depth of lists and objects in a value without a schema.
DEPTH = 16
#: Largest integer that the core accepts.
LARGEST = 2**63 - 1
#: Largest number of float32.
LARGEST_FLOAT32 = float(np.finfo(np.float32).max)
_FLAGS = {
    **dict.fromkeys(("true", "yes", "on", "1"), True),
    **dict.fromkeys(("false", "no", "off", "0"), False),
}


def is_text(value: Any) -> bool:
    """Return whether a value is a string that a file can hold, without lone surrogates."""
    if not isinstance(value, str):
        return False
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def plain(value: Any) -> Any:
    """Return a value as a file can hold it. NumPy scalars and arrays become Python objects, in collections too.

    Functions, paths and other objects are returned unchanged and checked by their receivers.

    Raises:
        ValueError: If the value contains bytes or a lone surrogate.
    """
    if value is None or type(value) in (bool, int, float):
        return value
    if isinstance(value, str):
        if not is_text(value):
            raise ValueError(f"expected Unicode text, found a lone surrogate in {value!a:.60}")
        return str(value)
    if isinstance(value, (bytes, bytearray)):
        raise ValueError("expected text, found bytes. Decode it with .decode()")
    if hasattr(value, "dtype") and getattr(value, "ndim", None) == 0:
        return plain(value.item())
    if hasattr(value, "dtype") and hasattr(value, "tolist"):
        return plain(value.tolist())
    if isinstance(value, Mapping):
        return {plain(key): plain(entry) for key, entry in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(map(plain, value)) if type(value) in (list, tuple) else value
    return value


def shown(value: Any, width: int = 80) -> str:
    """Return a short text for a value of any kind in a message.

    >>> shown("x"), shown(10**5000), shown([0] * 1000)
    ("'x'", 'a number of 16610 bits', 'list of 1000')
    """
    if isinstance(value, int) and value.bit_length() > 256:  # Python does not print thousands of digits
        return f"a number of {value.bit_length()} bits"
    if isinstance(value, (list, dict)) and len(value) > 8:
        return f"{type(value).__name__} of {len(value)}"
    try:
        text = repr(value)
    except Exception:
        text = f"a value of type {type(value).__name__}"
    return text if len(text) <= width else text[: width - 3] + "..."


class DomainError(TagwiseError, ValueError):
    """A value is outside its domain, or a file does not match its checksum.

    Attributes:
        at: The place of the value.
        as_argument: The message in the form of a keyword argument, `name=value: expected ...`.
    """

    def __init__(self, problem: str, at: str = "", found: str = "") -> None:
        super().__init__(f"{at}: " * bool(at) + problem + f", found {found}" * bool(found))
        self.at = at
        self.as_argument = f"{at}={found}: {problem}" if found else str(self)


def domain_error(at: str, expected: str, value: Any) -> DomainError:
    """Return the error for a value outside its domain: place, expected values, and the value found."""
    return DomainError(f"expected {expected}", at, shown(value))


@dataclass(frozen=True)
class Domain:
    """Set of valid values of a parameter or a field, including None if `optional`."""

    optional: bool = field(default=False, kw_only=True)
    TYPE: ClassVar[type] = object  # type of the values, `object` for any
    NOUN: ClassVar[str] = ""

    def noun(self) -> str:
        """Return the domain in a few words, without None."""
        return self.NOUN

    def describe(self) -> str:
        """Return the domain in a few words."""
        return self.noun() + ", or None" * self.optional

    def holds(self, value: Any) -> bool:
        """Return whether a value other than None is of the right type and size."""
        return self.TYPE is object or type(value) is self.TYPE

    def check_inside(self, value: Any, at: str) -> None:
        """Check the members of a value that `holds` accepts, and conditions that have a message of their own."""

    def check(self, value: Any, at: str) -> None:
        """Raise a DomainError if a value is outside the domain. `at` is its place in messages."""
        if value is None and self.optional:
            return
        if not self.holds(value):
            raise domain_error(at, self.describe(), value)
        self.check_inside(value, at)

    def convert(self, value: Any) -> Any:
        """Convert an argument of a Python call to a type that `check` accepts, if the value stays equal."""
        return plain(value)

    def read(self, text: str) -> Any:
        """Return the value of a text other than "none"."""
        return text

    def parse(self, text: str) -> Any:
        """Return the value of a text of the command line.

        Raises:
            ValueError: The text does not express a value of this type.
        """
        if self.optional and text.lower() in ("none", ""):
            return None
        try:
            return self.read(text)
        except (ValueError, KeyError):
            raise ValueError(f"expected {self.describe()}") from None


Domains = Mapping[str, Domain]


@dataclass(frozen=True)
class Text(Domain):
    """String. `inside` has required characters, such as the colon of an import path. `most` is the maximum length."""

    inside: str = ""
    most: int | None = None

    def noun(self) -> str:
        most = "" if self.most is None else f" of at most {self.most} characters"
        return "text" + f" with {self.inside!r} in it" * bool(self.inside) + most

    def holds(self, value: Any) -> bool:
        return type(value) is str and self.inside in value and (self.most is None or len(value) <= self.most)


_TEXT = Text()


@dataclass(frozen=True)
class Flag(Domain):
    """True or False."""

    TYPE, NOUN = bool, "true or false"

    def convert(self, value: Any) -> Any:
        value = plain(value)
        return bool(value) if type(value) is int and value in (0, 1) else value

    def read(self, text: str) -> Any:
        return _FLAGS[text.lower()]


@dataclass(frozen=True)
class Real(Domain):
    """Finite number in [low, high]. `open_low` excludes `low`. `any_` includes NaN and the infinities."""

    NOUN = "number"
    low: float = -math.inf
    high: float = math.inf
    open_low: bool = False
    any_: bool = False

    def noun(self) -> str:
        shown = [f"{'>' if self.open_low else '>='} {self.low:.15g}"] if self.low > -math.inf else []
        shown += [f"<= {self.high:.15g}"] if self.high < math.inf else []
        return " ".join([self.NOUN, " and ".join(shown)]).strip()

    def holds(self, value: Any) -> bool:
        if type(value) not in (int, float):
            return False
        if self.any_ and type(value) is float and not math.isfinite(value):
            return True
        return bool((self.low < value if self.open_low else self.low <= value) and value <= self.high)

    def check_inside(self, value: Any, at: str) -> None:
        if abs(value) > sys.float_info.max and not (self.any_ and type(value) is float):
            raise domain_error(at, f"finite {self.describe()}", value)

    def convert(self, value: Any) -> Any:
        value = plain(value)
        if type(value) is not bool and isinstance(value, numbers.Number):
            with suppress(OverflowError, TypeError, ValueError):  # too large, complex, Decimal("sNaN")
                return float(value)  # type: ignore[arg-type]
        return value

    def read(self, text: str) -> Any:
        return float(text)


@dataclass(frozen=True)
class Integer(Real):
    """Integer in [low, high]."""

    NOUN = "integer"

    def holds(self, value: Any) -> bool:
        return type(value) is int and super().holds(value)

    def check_inside(self, value: Any, at: str) -> None:
        if abs(value) > LARGEST:
            raise domain_error(at, f"{self.describe()}, below 2**63", value)

    def convert(self, value: Any) -> Any:
        value = plain(value)
        if type(value) is not bool and isinstance(value, numbers.Number):
            with suppress(OverflowError, TypeError, ValueError):
                if (whole := int(value)) == value:  # type: ignore[call-overload]
                    return whole
        return value

    def read(self, text: str) -> Any:
        return int(text)


@dataclass(frozen=True)
class Choice(Domain):
    """One of several names."""

    names: tuple[str, ...]

    def noun(self) -> str:
        return "one of " + ", ".join(self.names)

    def holds(self, value: Any) -> bool:
        return type(value) is str and value in self.names


@dataclass(frozen=True)
class Anything(Domain):
    """Any JSON of limited depth, or a Python object, which its receiver checks.

    named: whether a text with a colon is the import path of a function.
    function: converts arguments to their canonical form, or raises a ValueError. On the command line it receives JSON.
    """

    description: str = f"at most {DEPTH} levels of lists and objects"
    named: bool = False
    function: Callable[[Any], Any] | None = None

    def noun(self) -> str:
        return self.description

    def holds(self, value: Any) -> bool:
        level = [value]
        for _ in range(DEPTH + 1):
            inner = [x.values() if isinstance(x, dict) else x for x in level if isinstance(x, (list, dict))]
            if not (level := [x for members in inner for x in members]):
                return True
        return False

    def convert(self, value: Any) -> Any:
        value = plain(value)
        return value if self.function is None or (value is None and self.optional) else self.function(value)

    def parse(self, text: str) -> Any:
        if self.optional and text.lower() in ("none", ""):
            return None
        try:
            return self.convert(json.loads(text) if self.function and text.lstrip().startswith("{") else text)
        except json.JSONDecodeError as error:
            raise ValueError(f"expected {self.describe()}, a mapping as JSON ({error})") from None


@dataclass(frozen=True)
class AnyOf(Domain):
    """Union of domains. The error is that of the domain that accepts most of the value."""

    domains: tuple[Domain, ...]

    def noun(self) -> str:
        return " or ".join(domain.describe() for domain in self.domains)

    def check_inside(self, value: Any, at: str) -> None:
        errors = []
        for domain in self.domains:
            try:
                return domain.check(value, at)
            except DomainError as error:
                errors.append(error)
        deepest = max(errors, key=lambda error: len(error.at))
        raise deepest if len(deepest.at) > len(at) else domain_error(at, self.describe(), value)

    def convert(self, value: Any) -> Any:
        for domain in self.domains:
            if domain.holds(found := domain.convert(value)):
                return found
        return plain(value)

    def read(self, text: str) -> Any:
        for domain in self.domains:
            with suppress(ValueError):
                if domain.holds(found := domain.parse(text)):
                    return found
        raise ValueError(text)


@dataclass(frozen=True)
class ListOf(Domain):
    """List of `low` to `high` values of one domain, optionally all distinct."""

    of: Domain
    low: int = 0
    high: int = 2**32
    distinct: bool = False

    def noun(self) -> str:
        size = f" of {self.low} to {self.high} entries" if (self.low, self.high) != (0, 2**32) else ""
        return f"list{size}"

    def holds(self, value: Any) -> bool:
        return type(value) is list and self.low <= len(value) <= self.high

    def check_inside(self, value: Any, at: str) -> None:
        # Fast path: nearly all values of requests are strings.
        if self.of != _TEXT or not {str}.issuperset(map(type, value)):
            for i, entry in enumerate(value):
                self.of.check(entry, f"{at}[{i}]")
        if self.distinct and len(set(value)) < len(value):
            twice = next(x for i, x in enumerate(value) if x in value[:i])
            raise DomainError(f"expected distinct entries, but {shown(twice)} occurs twice", at)


@dataclass(frozen=True)
class TupleOf(Domain):
    """List of exactly these domains."""

    domains: tuple[Domain, ...]

    def noun(self) -> str:
        return f"list of {len(self.domains)} entries"

    def holds(self, value: Any) -> bool:
        return type(value) is list and len(value) == len(self.domains)

    def check_inside(self, value: Any, at: str) -> None:
        for i, (entry, domain) in enumerate(zip(value, self.domains)):
            domain.check(entry, f"{at}[{i}]")


@dataclass(frozen=True)
class Record(Domain):
    """Object with required and optional members, others of the domain `more`, and exactly one of `one`, if any."""

    must: Domains = field(default_factory=dict)
    may: Domains = field(default_factory=dict)
    more: Domain | None = None
    one: tuple[str, ...] = ()

    TYPE, NOUN = dict, "object"

    def check_inside(self, value: Any, at: str) -> None:
        for name in self.must:
            if name not in value:
                raise DomainError(f"the member {name!r} is missing", at)
        for name, entry in value.items():
            domain = self.must.get(name) or self.may.get(name) or self.more
            place = f"{at}.{name}"[:80]
            if domain is None:
                known = ", ".join((*self.must, *self.may))
                raise DomainError(f"unknown member {name[:80]!a}, expected {known or 'none'}", at)
            domain.check(entry, place)
        if self.one and len(present := [name for name in self.one if name in value]) != 1:
            raise DomainError(
                f"expected exactly one of {', '.join(self.one)}, found {' and '.join(present) or 'none'}", at
            )


@dataclass(frozen=True)
class Variant(Domain):
    """Object whose member `key` determines its other members."""

    key: str
    kinds: Mapping[str, Record]

    TYPE, NOUN = dict, "object"

    def check_inside(self, value: Any, at: str) -> None:
        Choice(tuple(self.kinds)).check(value.get(self.key), f"{at}.{self.key}")
        self.kinds[value[self.key]].check({name: x for name, x in value.items() if name != self.key}, at)


def name_of(dtype: Any) -> str:
    """Return the name of a type of numbers in files.

    >>> name_of(np.uint32), name_of(np.float64)
    ('u32', 'f64')
    """
    found = np.dtype(dtype)
    return f"{found.kind}{8 * found.itemsize}"


@dataclass(frozen=True)
class Numbers(Domain):
    """An array of one dimension: its type, its length if that is known, and whether its numbers must be finite.

    Finite means within float32, the precision of model weights.
    Of an array that has not been read (`arrays.ArrayInfo`), only type and length are checked.
    """

    dtype: str
    length: int | None = None
    finite: bool = True

    def noun(self) -> str:
        return f"an array of {self.dtype}"

    def holds(self, value: Any) -> bool:
        return isinstance(value, np.ndarray) or (hasattr(value, "dtype") and hasattr(value, "length"))

    def check_inside(self, value: Any, at: str) -> None:
        read = isinstance(value, np.ndarray)
        name, length = (name_of(value.dtype), value.size) if read else (value.dtype, value.length)
        if name != self.dtype or (self.length is not None and length != self.length):
            expected = "" if self.length is None else f"{self.length:,} numbers of "
            raise DomainError(f"{at}: expected {expected}{self.dtype}, found {length:,} of {name!a}")
        if self.finite and read and value.dtype.kind == "f":
            check_finite(at, value)
            if value.dtype.itemsize > 4 and value.size and np.abs(value).max() > LARGEST_FLOAT32:
                raise DomainError(
                    f"{at}: expected numbers within float32 (up to {LARGEST_FLOAT32:.3g}), found a larger one"
                )


def check_finite(name: str, array: NDArray[Any]) -> None:
    """Raise a DomainError if an array contains NaN or an infinity.

    The sum is checked first: it is finite unless an element is not, or the sum overflows.
    """
    with np.errstate(all="ignore"):
        if np.isfinite(array.sum()) or np.isfinite(array).all():
            return
    at = int(np.flatnonzero(~np.isfinite(array))[0])
    raise DomainError(f"{name}[{at}] is {array[at]}, expected a finite number")

"""Parameters, declared once: name, default, domain, help. They feed estimators, the command line and the docs.

>>> l2 = Param("l2", 1.0, Number(low=0.0), "strength of the Gaussian prior")
>>> l2.parse("0.5"), l2.domain.describe()
(0.5, 'number >= 0')
"""

from __future__ import annotations

import difflib
import math
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from tagwise.base.exceptions import ParameterError

#: Whole numbers as the core takes them.
LARGEST = 2**63 - 1


def cores() -> int:
    """Cores that this process may use, which in a container or under `taskset` are fewer than the machine has."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def is_text(value: Any) -> bool:
    """Whether a value is a text that a file can hold: without lone surrogates."""
    if not isinstance(value, str):
        return False
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def plain(value: Any) -> Any:
    """A value as a file can hold it: NumPy's scalars and arrays as Python's, in collections too; ValueError for what it
    cannot.

    Functions, paths and other objects stay as they are: who takes them knows what they are.
    """
    if isinstance(value, str):
        if not is_text(value):
            raise ValueError(f"expected Unicode text, found a lone surrogate in {value!a:.60}")
        return str(value)
    if isinstance(value, (bytes, bytearray)):
        raise ValueError("expected a text, found bytes; decode them")
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
    """A value of any kind as it can stand in a message.

    >>> shown("x"), shown(10**5000)
    ("'x'", 'a number of 16610 bits')
    """
    if (
        isinstance(value, int) and value.bit_length() > 4096
    ):  # Python does not print numbers of thousands of digits
        return f"a number of {value.bit_length()} bits"
    try:
        text = repr(value)
    except Exception:
        text = f"a value of type {type(value).__name__}"
    return text if len(text) <= width else text[: width - 3] + "..."


class Domain(Protocol):
    """The values that a parameter may take."""

    def check(self, value: Any) -> Any:
        """The value, made canonical; ValueError with what was expected where it is outside."""

    def parse(self, text: str) -> Any:
        """The value that a text stands for."""

    def describe(self) -> str:
        """The domain in a few words."""


@dataclass(frozen=True)
class Number:
    """A number in [low, high], open at the ends named; an integer if so declared; None if optional."""

    low: float = -math.inf
    high: float = math.inf
    integer: bool = False
    optional: bool = False
    open_low: bool = False

    def check(self, value: Any) -> Any:
        if value is None and self.optional:
            return None
        if isinstance(value, bool) or (
            not isinstance(value, (int, float)) and not hasattr(value, "__float__")
        ):
            raise ValueError(f"expected {self.describe()}")
        try:
            number = float(value)
        except (
            TypeError,
            ValueError,
            OverflowError,
        ):  # an array, a text that says no number, too many digits
            raise ValueError(f"expected {self.describe()}") from None
        if self.integer:
            if not math.isfinite(number) or number != int(number):
                raise ValueError(f"expected {self.describe()}")
            value = int(value)
            if abs(value) > LARGEST:
                raise ValueError(f"expected {self.describe()}, of 63 bits at most")
        else:
            value = number
        below = number <= self.low if self.open_low else number < self.low
        if math.isnan(number) or below or number > self.high:
            raise ValueError(f"expected {self.describe()}")
        return value

    def parse(self, text: str) -> Any:
        if self.optional and text.lower() in ("none", ""):
            return None
        try:
            return self.check(int(text) if self.integer else float(text))
        except ValueError:
            raise ValueError(f"expected {self.describe()}") from None

    def describe(self) -> str:
        parts = ["integer" if self.integer else "number"]
        if self.low > -math.inf:
            parts.append(f"{'>' if self.open_low else '>='} {self.low:g}")
        if self.high < math.inf:
            parts.append(f"{'and ' if len(parts) > 1 else ''}<= {self.high:g}")
        return " ".join(parts) + (", or None" if self.optional else "")


@dataclass(frozen=True)
class Choice:
    """One of a few names; None if optional."""

    names: tuple[str, ...]
    optional: bool = False

    def check(self, value: Any) -> Any:
        if value is None and self.optional:
            return None
        if not isinstance(value, str) or value not in self.names:
            raise ValueError(f"expected {self.describe()}")
        return str(value)

    def parse(self, text: str) -> Any:
        return self.check(None if self.optional and text.lower() in ("none", "") else text)

    def describe(self) -> str:
        return "one of " + ", ".join(self.names) + (", or None" if self.optional else "")


@dataclass(frozen=True)
class Flag:
    """True or False."""

    def check(self, value: Any) -> Any:
        value = value.item() if hasattr(value, "dtype") and value.ndim == 0 else value  # NumPy's True
        if not isinstance(value, (bool, int)) or value not in (0, 1):
            raise ValueError(f"expected {self.describe()}")
        return bool(value)

    def parse(self, text: str) -> Any:
        known = {
            "true": True,
            "yes": True,
            "on": True,
            "1": True,
            "false": False,
            "no": False,
            "off": False,
            "0": False,
        }
        if text.lower() not in known:
            raise ValueError(f"expected {self.describe()}")
        return known[text.lower()]

    def describe(self) -> str:
        return "true or false"


@dataclass(frozen=True)
class Anything:
    """Whatever the receiver understands; it checks for itself.

    named: whether a text with a colon is the import path of a function.
    """

    what: str
    named: bool = False

    def check(self, value: Any) -> Any:
        return plain(value)

    def parse(self, text: str) -> Any:
        return text

    def describe(self) -> str:
        return self.what


@dataclass(frozen=True)
class Text:
    """A text."""

    def check(self, value: Any) -> Any:
        value = plain(value)
        if not isinstance(value, str):
            raise ValueError(f"expected {self.describe()}")
        return value

    def parse(self, text: str) -> Any:
        return self.check(text)

    def describe(self) -> str:
        return "text"


@dataclass(frozen=True)
class Param:
    """One parameter of a learner."""

    name: str
    default: Any
    domain: Domain
    help: str

    def check(self, value: Any) -> Any:
        """The value, or a ParameterError that names parameter, value and domain."""
        try:
            return self.domain.check(value)
        except ValueError as error:
            raise ParameterError(f"{self.name}={shown(value)}: {error} ({self.help})") from None

    def parse(self, text: str) -> Any:
        """The value of a text from the command line."""
        try:
            return self.domain.parse(text)
        except ValueError as error:
            raise ParameterError(f"{self.name}={text!r}: {error} ({self.help})") from None


def checked(name: str, value: Any, domain: Domain) -> Any:
    """The value of an argument, or a ParameterError that names argument, value and domain.

    >>> checked("k", 3, Number(1, integer=True))
    3
    """
    try:
        return domain.check(value)
    except ValueError as error:
        raise ParameterError(f"{name}={shown(value)}: {error}") from None


def checked_path(value: Any) -> str | os.PathLike[str]:
    """A path, or a ParameterError for what is none."""
    if not isinstance(value, (str, os.PathLike)):
        raise ParameterError(f"path={shown(value)}: expected a text or a path")
    return value


def lookup(params: Sequence[Param], name: str, owner: str) -> Param:
    """The parameter of that name, or a ParameterError that lists those there are."""
    for param in params:
        if param.name == name:
            return param
    names = [param.name for param in params]
    raise ParameterError(f"{owner} has no parameter {name!r}{meant(name, names)}; it has: {', '.join(names)}")


def meant(name: str, known: Iterable[str]) -> str:
    """What is said of the nearest of the known names, to stand behind a name that is none of them; often nothing.

    >>> meant("sufix", ["prefix", "suffix"]), meant("nonsense", ["l2"])
    (" (did you mean 'suffix'?)", '')
    """
    found = difflib.get_close_matches(name, known, n=1)
    return f" (did you mean {found[0]!r}?)" if found else ""

"""Parameters, declared once: name, default, domain, help. They feed estimators, the command line and the docs.

>>> l2 = Param("l2", 1.0, Number(low=0.0), "strength of the Gaussian prior")
>>> l2.parse("0.5"), l2.domain.describe()
(0.5, 'number >= 0')
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from tagwise.errors import ParameterError


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
        number = float(value)
        if self.integer:
            if not math.isfinite(number) or number != int(number):
                raise ValueError(f"expected {self.describe()}")
            value = int(value)
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
        if value not in self.names and not (value is None and self.optional):
            raise ValueError(f"expected {self.describe()}")
        return value

    def parse(self, text: str) -> Any:
        return self.check(None if self.optional and text.lower() in ("none", "") else text)

    def describe(self) -> str:
        return "one of " + ", ".join(self.names) + (", or None" if self.optional else "")


@dataclass(frozen=True)
class Flag:
    """True or False."""

    def check(self, value: Any) -> Any:
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
    """Whatever the receiver understands; it checks for itself."""

    what: str

    def check(self, value: Any) -> Any:
        return value

    def parse(self, text: str) -> Any:
        return text

    def describe(self) -> str:
        return self.what


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
            raise ParameterError(f"{self.name}={value!r}: {error} ({self.help})") from None

    def parse(self, text: str) -> Any:
        """The value of a text from the command line."""
        try:
            return self.domain.parse(text)
        except ValueError as error:
            raise ParameterError(f"{self.name}={text!r}: {error} ({self.help})") from None


def lookup(params: Sequence[Param], name: str, owner: str) -> Param:
    """The parameter of that name, or a ParameterError that lists those there are."""
    for param in params:
        if param.name == name:
            return param
    known = ", ".join(param.name for param in params)
    raise ParameterError(f"{owner} has no parameter {name!r}; it has: {known}")

"""Domains: `check` requires exact types, `convert` does not. Errors name the innermost wrong value."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import numpy as np
import pytest

from tagwise.base.domains import (
    AnyOf,
    Choice,
    Domain,
    DomainError,
    Flag,
    Integer,
    ListOf,
    Numbers,
    Real,
    Record,
    Text,
)


@pytest.mark.parametrize(
    ("domain", "given", "value"),
    [
        (Integer(1), 3.0, 3), (Integer(1), np.int64(3), 3), (Integer(1), Decimal(3), 3),
        (Real(), np.float32(0.5), 0.5), (Real(), Decimal("0.5"), 0.5), (Flag(), 1, True),
        (Flag(), np.bool_(False), False), (Text(), np.str_("a"), "a"), (Choice(("a",)), np.str_("a"), "a"),
    ],
)  # fmt: skip
def test_convert_accepts_equal_values_and_check_does_not(domain: Domain, given: Any, value: Any) -> None:
    """A file with 3.0 for 3 or 1 for true is refused, but a caller may pass these."""
    with pytest.raises(DomainError, match=r"^x: expected"):
        domain.check(given, "x")
    found = domain.convert(given)
    assert (found, type(found)) == (value, type(value))
    domain.check(found, "x")


@pytest.mark.parametrize("value", [True, "1", 1j, [1], None, float("nan"), float("inf"), 2.5])
def test_lossy_integer_conversions_are_rejected(value: Any) -> None:
    """Conversion is lossless: a value without an equal integer is refused."""
    with pytest.raises(DomainError, match=r"^x: expected integer >= 0, found"):
        Integer(0).check(Integer(0).convert(value), "x")


def test_errors_name_the_innermost_value() -> None:
    """Of two domains, the error is that of the one that accepts more of the value."""
    words = ListOf(Text())
    domain = Record({"x": AnyOf((words, Record(more=words)))})
    for value, message in (
        ({"x": ["a", 1]}, r"request\.x\[1\]: expected text, found 1"),
        ({"x": {"w": ["a", 1]}}, r"request\.x\.w\[1\]: expected text, found 1"),
        ({"x": 1}, r"request\.x: expected list or object, found 1"),
        ({}, "request: the member 'x' is missing"),
        ({"x": [], "y": 1}, "request: unknown member 'y', expected x"),
    ):
        with pytest.raises(DomainError, match=f"^{message}$"):
            domain.check(value, "request")


def test_none_requires_an_optional_domain() -> None:
    for domain in (
        Text(),
        Flag(),
        Real(),
        Integer(),
        Choice(("a",)),
        ListOf(Text()),
        Record(),
        Numbers("f64"),
    ):
        with pytest.raises(DomainError, match=r"^x: expected .*, found None$"):
            domain.check(None, "x")
    for kind in (Text, Flag, Real, Integer, Record):
        kind(optional=True).check(None, "x")
        assert kind(optional=True).parse("none") is None

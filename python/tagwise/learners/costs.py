"""Costs of wrong paths: by name, with numbers, or of one's own."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

import tagwise._core as _core
from tagwise.base.exceptions import ParameterError
from tagwise.base.imports import function_at, present

#: What messages call a cost of one's own.
COST_FUNCTION = "the cost function"


#: Sequence costs by name, and the numbers each takes with their defaults.
COSTS = dict(_core.COSTS)


def parse_cost(cost: Any) -> tuple[Any, list[float]]:
    """A cost and its numbers: a name, a name with numbers such as "precision_recall(0.25)", or a function.

    A function may be named by its import path, module:function, as models name it.

    >>> parse_cost("weighted_accuracy(1, 1.4, 1)")
    ('weighted_accuracy', [1.0, 1.4, 1.0])
    """
    if callable(cost):
        return present(cost), []
    if isinstance(cost, str) and ":" in cost:
        return function_at(cost, COST_FUNCTION), []
    match = re.fullmatch(r"\s*(\w+)\s*(?:\(([^()]*)\))?\s*", str(cost))
    if match is None or match[1] not in COSTS:
        raise ParameterError(
            f"cost={cost!r}: expected one of {', '.join(COSTS)}, or a function of (gold, guess)"
        )
    default = COSTS[match[1]]
    try:
        given = [float(part) for part in (match[2] or "").split(",") if part.strip()]
    except ValueError:
        raise ParameterError(f"cost={cost!r}: what stands in brackets must be numbers") from None
    if len(given) > len(default):
        raise ParameterError(f"cost={cost!r}: {match[1]} takes {len(default)} numbers, got {len(given)}")
    return match[1], [*given, *default[len(given) :]]


def named(function: Callable[[list[Any], list[Any]], float], labels: Sequence[Any]) -> Callable[..., float]:
    """A cost of label names as one of label ids."""
    return lambda gold, guess: float(function([labels[y] for y in gold], [labels[y] for y in guess]))

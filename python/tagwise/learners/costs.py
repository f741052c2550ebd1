"""Costs of wrong paths, by name with parameters or as functions."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

import tagwise._core as _core
from tagwise.base.exceptions import ParameterError
from tagwise.base.imports import function_at, require_function
from tagwise.base.parameters import meant

#: Name of a cost function in messages.
COST_FUNCTION = "the cost function"


#: Defaults of the parameters of each cost, by name.
COSTS = dict(_core.COSTS)


def parse_cost(cost: Any) -> tuple[Any, list[float]]:
    """Parse a cost: a name, a name with numbers such as "precision_recall(0.25)", or a function.

    A function may be given by its import path, module:function, as in model files.

    >>> parse_cost("weighted_accuracy(1, 1.4, 1)")
    ('weighted_accuracy', [1.0, 1.4, 1.0])
    """
    if callable(cost):
        return require_function(cost), []
    if isinstance(cost, str) and ":" in cost:
        return function_at(cost, COST_FUNCTION), []
    match = re.fullmatch(r"\s*(\w+)\s*(?:\(([^()]*)\))?\s*", str(cost))
    if match is None or match[1] not in COSTS:
        raise ParameterError(
            f"cost={cost!r}: expected one of {', '.join(COSTS)}, or a function of (gold, guess)"
            f"{meant(str(cost), COSTS)}"
        )
    default = COSTS[match[1]]
    try:
        numbers = [float(part) for part in (match[2] or "").split(",") if part.strip()]
    except ValueError:
        raise ParameterError(f"cost={cost!r}: expected numbers in the brackets") from None
    if len(numbers) > len(default):
        raise ParameterError(f"cost={cost!r}: {match[1]} takes {len(default)} numbers, found {len(numbers)}")
    return match[1], [*numbers, *default[len(numbers) :]]


def named(function: Callable[[list[Any], list[Any]], float], labels: Sequence[Any]) -> Callable[..., float]:
    """Convert a cost of labels into a cost of label ids."""
    return lambda gold, guess: float(function([labels[y] for y in gold], [labels[y] for y in guess]))

"""How much each label counts: weights of labels, given or from how often they occur."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tagwise.base.exceptions import ParameterError
from tagwise.base.parameters import Param, plain
from tagwise.corpus.labels import text

BALANCED = "balanced"


class Domain:
    """Weights of labels: None, "balanced", or a mapping of label -> number > 0.

    >>> Domain().parse('{"B-person": 5}')
    {'B-person': 5.0}
    """

    def check(self, value: Any) -> Any:
        if value is None or (isinstance(value, str) and value == BALANCED):
            return value
        if not isinstance(value, Mapping):
            raise ValueError(f"expected {self.describe()}")
        out = {}
        for label, weight in plain(value).items():
            if isinstance(weight, bool) or not isinstance(weight, (int, float)):
                raise ValueError(f"expected {self.describe()}; the weight of {label!r} is none")
            if not (math.isfinite(weight) and weight > 0):
                raise ValueError(f"expected {self.describe()}; the weight of {label!r} is {weight}")
            out[label] = float(weight)
        return out

    def parse(self, given: str) -> Any:
        if given.lower() in ("none", ""):
            return None
        if given == BALANCED:
            return given
        try:
            return self.check(json.loads(given))
        except json.JSONDecodeError:
            raise ValueError(f"expected {self.describe()}, the mapping as JSON") from None

    def describe(self) -> str:
        return "balanced, a mapping of label -> number > 0, or None"


def label_counts(gold: NDArray[np.uint16], n: int) -> NDArray[np.int64]:
    """How many tokens have each of n labels; tokens without a label have none of them."""
    return np.bincount(gold[gold < n], minlength=n)


def label_weights(given: Any, labels: Sequence[str], counts: NDArray[Any]) -> NDArray[np.float64] | None:
    """The weight of each label, [L], given how often each occurs; None where all count the same.

    Labels that are not named have 1. "balanced" is N / (L n) for a label that n of the N tokens have, where L labels
    occur, as scikit-learn's: each of them has the same part of the whole. A label without a token has 1.
    """
    if given is None:
        return None
    if given == BALANCED:
        counts = counts.astype(np.float64)
        present = np.count_nonzero(counts)
        out: NDArray[np.float64] = np.where(
            counts > 0, counts.sum() / (max(present, 1) * np.maximum(counts, 1)), 1.0
        )
        return out
    named = {text(label): weight for label, weight in given.items()}
    unknown = [label for label in named if label not in labels]
    if unknown:
        raise ParameterError(f"class_weight: there is no label {unknown[0]!r}; there are: {' '.join(labels)}")
    return np.array([named.get(label, 1.0) for label in labels])


def class_weight(help_: str) -> Param:
    """The parameter of a learner that can weigh labels."""
    return Param("class_weight", None, Domain(), help_)


__all__ = ["Domain", "class_weight", "label_counts", "label_weights"]

"""Class weights, given explicitly or computed from label frequencies."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from tagwise.base.domains import Anything
from tagwise.base.exceptions import ParameterError
from tagwise.base.parameters import meant
from tagwise.corpus.labels import text

BALANCED = "balanced"


def _checked(class_weight: Any) -> Any:
    """Return class weights as floats. Raise a ValueError if one is not a finite number > 0."""
    if class_weight == BALANCED:
        return class_weight
    if _is_weight(class_weight):
        return float(class_weight)
    if not isinstance(class_weight, Mapping):
        raise ValueError(f"expected {CLASS_WEIGHT.describe()}")
    for label, weight in class_weight.items():
        if not _is_weight(weight):
            raise ValueError(f"expected {CLASS_WEIGHT.describe()}, but the weight of {label!r} is {weight!r}")
    return {label: float(weight) for label, weight in class_weight.items()}


def _is_weight(given: Any) -> bool:
    return type(given) in (int, float) and 0 < given <= sys.float_info.max


@dataclass(frozen=True)
class ClassWeight(Anything):
    """Domain of class weights. On the command line a number is one weight for all labels."""

    def parse(self, text: str) -> Any:
        try:
            return self.convert(float(text))
        except ValueError:
            return super().parse(text)


#: Type of the parameter `class_weight`.
LabelWeights = float | Literal["balanced"] | Mapping[Any, float] | None

CLASS_WEIGHT = ClassWeight(
    "balanced, a number > 0 for all labels, a mapping of label -> number > 0",
    function=_checked,
    optional=True,
)


def label_counts(gold: NDArray[np.uint16], n: int) -> NDArray[np.int64]:
    """Return the number of tokens with each of n labels. Tokens without a label are not counted."""
    return np.bincount(gold[gold < n], minlength=n)


def label_weights(
    class_weight: Any, labels: Sequence[str], counts: NDArray[Any]
) -> NDArray[np.float64] | None:
    """Return the weight of each label, [L], or None if no weights are given.

    A number is the weight of all labels. Labels that are not in a mapping have weight 1. "balanced" is N / (L n), as in
    scikit-learn, for a label of n of the N tokens if L labels occur, so that each label has the same total weight. A
    label without tokens has weight 1.
    """
    if class_weight is None:
        return None
    if class_weight == BALANCED:
        counts = counts.astype(np.float64)
        present = np.count_nonzero(counts)
        out: NDArray[np.float64] = np.where(
            counts > 0, counts.sum() / (max(present, 1) * np.maximum(counts, 1)), 1.0
        )
        return out
    if isinstance(class_weight, float):
        return np.full(len(labels), class_weight)
    named = {text(label): weight for label, weight in class_weight.items()}
    unknown = [label for label in named if label not in labels]
    if unknown:
        raise ParameterError(
            f"class_weight: unknown label {unknown[0]!r}{meant(unknown[0], labels)}. The labels are: "
            f"{' '.join(labels)}"
        )
    return np.array([named.get(label, 1.0) for label in labels])

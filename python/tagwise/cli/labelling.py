"""What is written for a sentence: one way to label it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple


class Labelling(NamedTuple):
    """One way to label a sentence, with what was asked for besides."""

    labels: Sequence[str]
    probabilities: Sequence[float] | None = None  # of each label at its token
    score: float | None = None  # of the whole path
    probability: float | None = None  # of the whole path, where the model has one

    @property
    def notes(self) -> list[str]:
        """Score and probability of the path as comment lines."""
        named = (("score", self.score), ("probability", self.probability))
        return [f"# {name} = {value:.6f}" for name, value in named if value is not None]

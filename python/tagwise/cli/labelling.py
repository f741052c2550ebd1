"""A label sequence of a sentence with its scores, as ``tag`` writes it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple


class Labelling(NamedTuple):
    """A label sequence of a sentence, with probabilities and scores on request."""

    labels: Sequence[str]
    probabilities: Sequence[float] | None = None  # of each label at its token
    score: float | None = None  # of the whole path
    probability: float | None = None  # of the whole path, if the model is probabilistic

    @property
    def notes(self) -> list[str]:
        """Comment lines with the score and the probability of the path."""
        named = (("score", self.score), ("probability", self.probability))
        return [f"# {name} = {value:.6f}" for name, value in named if value is not None]

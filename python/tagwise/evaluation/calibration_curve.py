"""Calibration curves: accuracy of predictions by confidence."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tagwise.base.exceptions import CorpusError


@dataclass(frozen=True)
class Calibration:
    """Calibration curve: accuracy of predictions by confidence, without empty bins.

    Attributes:
        confidence: Mean confidence of each bin.
        accuracy: Fraction of correct predictions in each bin.
        count: Number of predictions in each bin.

    >>> found = calibration([0.9, 0.95, 0.6, 0.55], [True, True, True, False])
    >>> round(found.ece, 3)
    0.275
    """

    confidence: tuple[float, ...]
    accuracy: tuple[float, ...]
    count: tuple[int, ...]

    @property
    def ece(self) -> float:
        """Expected calibration error, the mean of |accuracy - confidence| over bins, weighted by their counts.

        It is between 0 and 1 (Naeini, Cooper and Hauskrecht 2015).
        """
        total = sum(self.count)
        gaps = zip(self.confidence, self.accuracy, self.count)
        return sum(n * abs(a - c) for c, a, n in gaps) / total if total else 0.0

    @property
    def worst(self) -> float:
        """Largest |accuracy - confidence| of a bin."""
        return max((abs(a - c) for c, a in zip(self.confidence, self.accuracy)), default=0.0)

    def __repr__(self) -> str:
        return (
            f"<Calibration: expected error {100 * self.ece:.2f} %, largest {100 * self.worst:.2f} %, "
            f"{sum(self.count)} predictions in {len(self.count)} bins>"
        )

    def _repr_html_(self) -> str:
        """Return the calibration curve and a table of its bins, for notebooks."""
        from tagwise.base.markup import curve_html, line_html, table_html

        bins = list(zip(self.confidence, self.accuracy, self.count))
        rows = [(f"{100 * c:.2f} %", f"{100 * a:.2f} %", f"{n:,}") for c, a, n in bins]
        curve = curve_html([(c, a) for c, a, _ in bins], "mean confidence", "accuracy") if bins else ""
        return (
            line_html(repr(self))
            + curve
            + table_html(("mean confidence", "accuracy", "predictions"), rows, left=0)
        )

    def __str__(self) -> str:
        lines = [f"expected calibration error {100 * self.ece:.2f}%, {sum(self.count)} predictions"]
        bins = zip(self.confidence, self.accuracy, self.count)
        lines += [f"{100 * c:8.2f}% sure: {100 * a:6.2f}% right of {n}" for c, a, n in bins]
        return "\n".join(lines)


def calibration(confidence: Sequence[float], correct: Sequence[bool], bins: int = 10) -> Calibration:
    """Compute the calibration curve of predictions.

    Args:
        confidence: sequence of float. Probability of each prediction.
        correct: sequence of bool. Whether each prediction is correct.
        bins: int, default=10. Number of bins of equal width. Use fewer for small samples.

    Returns:
        A `Calibration`.

    Raises:
        CorpusError: The lengths differ, a confidence is not a probability, or ``bins`` is below 1.

    >>> found = calibration([0.9, 0.8, 0.3, 0.2], [True, True, False, True], bins=2)
    >>> found.count, found.accuracy, round(found.ece, 3)
    ((2, 2), (0.5, 1.0), 0.2)
    """
    confidence, correct = list(confidence), list(correct)
    if len(confidence) != len(correct):
        raise CorpusError(f"{len(confidence)} confidences for {len(correct)} answers. Give one per answer.")
    if bins < 1:
        raise CorpusError(f"bins={bins}: expected 1 or more.")
    sums: dict[int, list[float]] = {}
    for c, right in zip(confidence, correct):
        c = float(c)
        if not -1e-6 <= c <= 1 + 1e-6:
            raise CorpusError(f"a confidence of {c} is not a probability, expected 0 to 1.")
        entry = sums.setdefault(max(0, min(bins - 1, int(c * bins))), [0.0, 0, 0])
        entry[0] += c
        entry[1] += bool(right)
        entry[2] += 1
    kept = [sums[i] for i in sorted(sums)]
    return Calibration(
        tuple(c / n for c, _, n in kept), tuple(a / n for _, a, n in kept), tuple(int(n) for *_, n in kept)
    )

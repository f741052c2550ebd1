"""Probability thresholds for spans, and how to choose one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from tagwise.base.domains import Real
from tagwise.base.exceptions import CorpusError, ParameterError
from tagwise.base.parameters import checked
from tagwise.corpus.schemes import Span, spans

#: A span and its probability.
ScoredSpan = tuple[Span, float]


@dataclass(frozen=True)
class Threshold:
    """A probability threshold for spans.

    Attributes:
        min_probability: Spans with a lower probability are dropped.
        precision: Precision on the data of the choice.
        recall: Recall on the data of the choice.
    """

    min_probability: float
    precision: float
    recall: float

    def _repr_html_(self) -> str:
        from tagwise.base.markup import object_html

        return object_html(self, [(name, f"{value:.4f}") for name, value in vars(self).items()])

    def f(self, beta: float = 1.0) -> float:
        """Return F-beta = (1 + beta^2) P R / (beta^2 P + R), in which recall counts beta times as much as precision.

        >>> round(Threshold(0.5, 0.9, 0.6).f(0.5), 4)
        0.8182
        """
        below = beta * beta * self.precision + self.recall
        return (1.0 + beta * beta) * self.precision * self.recall / below if below else 0.0


def check_probability(value: float) -> float:
    """Return a threshold, or raise a ParameterError if it is not between 0 and 1."""
    found: float = checked("min_probability", value, Real(0.0, 1.0))
    return found


def without(labels: Sequence[str], chunks: Iterable[ScoredSpan], least: float) -> list[str]:
    """Return labels in which spans with a probability below `least` are replaced by O.

    >>> without(["B-A", "I-A", "B-B"], [(Span("A", 0, 2), 0.4), (Span("B", 2, 3), 0.7)], 0.5)
    ['O', 'O', 'B-B']
    """
    out = list(labels)
    for span, p in chunks:
        if p < least:
            out[span.begin : span.end] = ["O"] * (span.end - span.begin)
    return out


def span_curve(
    found: Sequence[Sequence[ScoredSpan]], gold: Sequence[Sequence[str]]
) -> list[tuple[float, float, float]]:
    """Return (threshold, precision, recall) for every distinct probability of a span as the threshold.

    >>> span_curve([[(Span("A", 0, 1), 0.9), (Span("A", 1, 2), 0.5)]], [["B-A", "O"]])
    [(0.9, 1.0, 1.0), (0.5, 0.5, 1.0)]
    """
    right = [set(spans(labels)) for labels in gold]
    total = sum(map(len, right))
    if not total:
        raise CorpusError("the gold labels do not mark spans. Give labels such as B-PER, I-PER, O.")
    marked = sorted(
        ((p, span in right[s]) for s, chunks in enumerate(found) for span, p in chunks), reverse=True
    )
    out: list[tuple[float, float, float]] = []
    correct = 0
    for n, (p, is_right) in enumerate(marked, 1):
        correct += is_right
        if n == len(marked) or marked[n][0] != p:
            out.append((p, correct / n, correct / total))
    return out


def choose(
    curve: Sequence[tuple[float, float, float]], *, precision: float | None = None, beta: float = 1.0
) -> Threshold:
    """Return the threshold with the best F-beta, or with the best recall at a minimum precision.

    Ties are resolved in favour of the lowest probability. If the precision cannot be reached, a ParameterError reports
    the highest precision of any threshold.

    >>> curve = [(0.9, 1.0, 0.3), (0.6, 0.8, 0.5), (0.2, 0.5, 0.6)]
    >>> choose(curve).min_probability, choose(curve, precision=0.7).recall, choose(curve, beta=0.2).precision
    (0.6, 0.5, 1.0)
    """
    beta = checked("beta", beta, Real(0.0, open_low=True))
    points = [Threshold(*point) for point in curve]
    if not points:
        raise ParameterError(
            "no spans were predicted, so no threshold can be chosen. Give more sentences, or train further."
        )
    if precision is None:
        return max(points, key=lambda point: (point.f(beta), -point.min_probability))
    precision = checked("precision", precision, Real(0.0, 1.0, open_low=True))
    candidates = [point for point in points if point.precision >= precision]
    if not candidates:
        best = max(points, key=lambda point: point.precision)
        raise ParameterError(
            f"no threshold has a precision of {precision:g}. The highest precision is {best.precision:.4f}, at "
            f"{best.min_probability:.4g}."
        )
    return max(candidates, key=lambda point: (point.recall, -point.min_probability))

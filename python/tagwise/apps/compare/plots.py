"""Plots with matplotlib, which is imported when a plot is drawn: ``pip install 'tagwise[plot]'``.

Each function draws into `ax` or into a new figure, and returns the axes:

    tw.plot.confusion(tagger.evaluate(test))
    tw.plot.precision_recall(tagger, test)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tagwise.apps.compare.table import Comparison
from tagwise.base.exceptions import CorpusError, ParameterError, TagwiseError
from tagwise.corpus.sentence import Corpus
from tagwise.evaluation.calibration_curve import Calibration
from tagwise.evaluation.metrics import Report
from tagwise.evaluation.thresholds import span_curve


def axes(ax: Any, width: float = 6.0, height: float = 4.2) -> Any:
    """Return the axes to draw into: `ax`, or those of a new figure.

    Args:
        ax: Axes, or None for a new figure.
        width: Width of a new figure in inches.
        height: Height of a new figure in inches.

    Returns:
        The axes.

    Raises:
        TagwiseError: If matplotlib is not installed.
    """
    if ax is not None:
        return ax
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise TagwiseError(
            "tw.plot needs matplotlib, which is not installed. Run pip install 'tagwise[plot]'"
        ) from error
    return plt.subplots(figsize=(width, height), layout="constrained")[1]


def learning_curve(comparison: Comparison, *, ax: Any = None) -> Any:
    """Plot the scores of a comparison by the number of training sentences.

    There is a line for each learner, feature set and corpus. With several seeds it shows the mean, and a band shows the
    standard deviation.

    Args:
        comparison: Result of `compare` with several `sizes`.
        ax: Axes to draw into. None creates a figure.

    Returns:
        The axes.

    Raises:
        ParameterError: If the comparison has only one size.
    """
    entries = comparison.summary()
    lines: dict[str, list[tuple[int, float, float]]] = {}
    many = len({entry["corpus"] for entry in entries}) > 1
    key = "f1" if entries and all(entry["f1"] is not None for entry in entries) else "accuracy"
    for entry in entries:
        name = f"{entry['learner']}, {entry['features']}" + (f", {entry['corpus']}" if many else "")
        point = (entry["sentences"], 100 * entry[key], 100 * (entry[f"{key}_sd"] or 0.0))
        lines.setdefault(name, []).append(point)
    if not any(len(points) > 1 for points in lines.values()):
        raise ParameterError(
            "a learning curve needs several training sizes. Use tw.compare(..., sizes=[100, 300, 1000])"
        )
    ax = axes(ax)
    for name, points in lines.items():
        n, score, deviation = map(np.array, zip(*sorted(points)))
        (line,) = ax.plot(n, score, marker="o", label=name)
        if deviation.any():
            ax.fill_between(n, score - deviation, score + deviation, color=line.get_color(), alpha=0.15)
    ax.set_xscale("log")
    sizes = sorted({n for points in lines.values() for n, _, _ in points})
    ax.set_xticks(sizes, [f"{n:,}" for n in sizes])
    ax.set_xticks([], minor=True)
    ax.set(xlabel="training sentences", ylabel="F1, %" if key == "f1" else "accuracy, %")
    ax.grid(alpha=0.25)
    ax.legend(frameon=False)
    return ax


def confusion(report: Report, *, top: int = 20, ax: Any = None) -> Any:
    """Plot a confusion matrix, with gold labels as rows and predicted labels as columns.

    Each cell has the fraction of the tokens with that gold label.

    Args:
        report: Result of `evaluate`.
        top: Number of labels to show, the most frequent ones. Reduce it if the figure is crowded.
        ax: Axes to draw into. None creates a figure.

    Returns:
        The axes.
    """
    weight: dict[str, int] = {}
    for (gold, predicted), n in report.confusion.items():
        weight[gold] = weight.get(gold, 0) + n
        weight[predicted] = weight.get(predicted, 0) + (n if gold != predicted else 0)
    labels = sorted(weight, key=lambda label: (-weight[label], label))[:top]
    counts = np.array([[report.confusion.get((g, p), 0) for p in labels] for g in labels], dtype=float)
    totals = np.array([sum(n for (g, _), n in report.confusion.items() if g == label) for label in labels])
    shares = counts / np.maximum(totals, 1)[:, None]
    size = 2.2 + 0.34 * len(labels)
    ax = axes(ax, size + 0.6, size)
    ax.imshow(shares, cmap="Blues", vmin=0, vmax=1)
    for (i, j), n in np.ndenumerate(counts):
        if n:
            colour = "white" if shares[i, j] > 0.55 else "black"
            ax.text(j, i, f"{n:.0f}", ha="center", va="center", fontsize=7, color=colour)
    ax.set_xticks(range(len(labels)), labels, rotation=90)
    ax.set_yticks(range(len(labels)), labels)
    ax.set(xlabel="predicted", ylabel="gold")
    return ax


def calibration(found: Calibration, *, ax: Any = None) -> Any:
    """Plot a reliability diagram: the accuracy of predictions by confidence, and the diagonal of perfect calibration.

    Args:
        found: Result of `calibration`.
        ax: Axes to draw into. None creates a figure.

    Returns:
        The axes.
    """
    ax = axes(ax, 4.6, 4.4)
    ax.plot([0, 1], [0, 1], color="gray", linestyle=":", linewidth=1)
    ax.plot(found.confidence, found.accuracy, marker="o")
    most = max(found.count, default=1)
    ax.bar(found.confidence, [0.25 * n / most for n in found.count], width=0.03, color="gray", alpha=0.35)
    ax.set(xlabel="confidence", ylabel="fraction correct", xlim=(0, 1.01), ylim=(0, 1.01))
    ax.set_title(f"expected calibration error {100 * found.ece:.2f} %", fontsize=10)
    ax.grid(alpha=0.25)
    return ax


def precision_recall(
    tagger: Any,
    X: Any,
    y: Sequence[Sequence[str]] | None = None,
    *,
    mark: float | None = None,
    ax: Any = None,
) -> Any:
    """Plot precision against recall of spans for all thresholds on their probability.

    Args:
        tagger: Fitted tagger with probabilities.
        X: Corpus or sentences to score.
        y: Labels of X, if it is not a corpus.
        mark: A `min_probability` to mark on the curve. None marks nothing.
        ax: Axes to draw into. None creates a figure.

    Returns:
        The axes.

    Raises:
        CorpusError: If there are no labels.
    """
    labels = X.labels if y is None and isinstance(X, Corpus) else y
    if labels is None:
        raise CorpusError("there are no labels. Pass y, or a Corpus with a label column")
    found = [confidence.chunks for confidence in tagger.predict_confidence(X)]
    points = span_curve(found, labels)
    ax = axes(ax, 4.8, 4.2)
    ax.step([recall for _, _, recall in points], [precision for _, precision, _ in points], where="post")
    right_end = min(1.01, 1.1 * max((recall for _, _, recall in points), default=1.0) or 1.01)
    selected = [] if mark is None else [point for point in points if point[0] >= mark]
    if selected:
        _, precision, recall = selected[-1]
        ax.plot([recall], [precision], marker="o", color="tab:red")
        left_label = recall > 0.5 * right_end
        ax.annotate(
            f"p ≥ {mark:.2f}: {100 * precision:.0f} % precision, {100 * recall:.0f} % recall",
            (recall, precision),
            xytext=(-8, -14) if left_label else (8, 8),
            textcoords="offset points",
            ha="right" if left_label else "left",
            fontsize=8,
        )
    ax.set(xlabel="recall of spans", ylabel="precision of spans", xlim=(0, right_end), ylim=(0, 1.01))
    ax.grid(alpha=0.25)
    return ax

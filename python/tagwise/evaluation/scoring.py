"""Metrics of `score` and of development scores, by the names that the parameter `scoring` takes."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Literal

from tagwise.corpus.schemes import has_chunks
from tagwise.evaluation.metrics import Report

#: Names of the metrics.
Metric = Literal["f1", "accuracy", "sequence_accuracy", "f1_macro", "f1_weighted"]

#: Metrics by name. Averages are over the types of spans, or over labels if they do not mark spans.
METRICS: dict[str, Callable[[Report], float]] = {
    "f1": lambda report: report.micro.f1,
    "accuracy": lambda report: report.accuracy,
    "sequence_accuracy": lambda report: report.sequence_accuracy,
    "f1_macro": lambda report: report.macro.f1,
    "f1_weighted": lambda report: report.weighted.f1,
}


def default_metric(labels: Iterable[str]) -> str:
    """Return the metric for a set of labels: F1 if they mark spans, else accuracy.

    >>> default_metric(["B-PER", "O"]), default_metric(["NN", "VB"])
    ('f1', 'accuracy')
    """
    return "f1" if has_chunks(labels) else "accuracy"

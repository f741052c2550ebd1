"""Metrics of label sequences: scikit-learn's metrics over the labels of all items, and sequence accuracy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tagwise.compat.sklearn_crfsuite.utils import flatten


def _scored(name: str, y_true: Any, y_pred: Any, **kwargs: Any) -> Any:
    from sklearn import metrics

    return getattr(metrics, name)(flatten(y_true), flatten(y_pred), **kwargs)


def flat_accuracy_score(y_true: Any, y_pred: Any) -> Any:
    """Return the accuracy over labels."""
    return _scored("accuracy_score", y_true, y_pred)


def flat_precision_score(y_true: Any, y_pred: Any, **kwargs: Any) -> Any:
    """Return the precision over labels."""
    return _scored("precision_score", y_true, y_pred, **kwargs)


def flat_recall_score(y_true: Any, y_pred: Any, **kwargs: Any) -> Any:
    """Return the recall over labels."""
    return _scored("recall_score", y_true, y_pred, **kwargs)


def flat_f1_score(y_true: Any, y_pred: Any, **kwargs: Any) -> Any:
    """Return F1 over labels."""
    return _scored("f1_score", y_true, y_pred, **kwargs)


def flat_fbeta_score(y_true: Any, y_pred: Any, beta: float, **kwargs: Any) -> Any:
    """Return F-beta over labels."""
    return _scored("fbeta_score", y_true, y_pred, beta=beta, **kwargs)


def flat_classification_report(y_true: Any, y_pred: Any, labels: Any = None, **kwargs: Any) -> Any:
    """Return scikit-learn's classification report over labels."""
    return _scored("classification_report", y_true, y_pred, labels=labels, **kwargs)


def sequence_accuracy_score(y_true: Sequence[Any], y_pred: Sequence[Any]) -> float:
    """Return the fraction of sequences with all labels right, 0 for an empty input.

    >>> sequence_accuracy_score([["a", "b"], ["a", "a"]], [["a", "b"], ["a", "b"]])
    0.5
    """
    if not len(y_true):
        return 0
    if len(y_true) != len(y_pred):
        raise ValueError(
            f"y_true has {len(y_true)} sequences, y_pred has {len(y_pred)}: expected equal numbers"
        )
    return sum(list(a) == list(b) for a, b in zip(y_true, y_pred)) / len(y_true)

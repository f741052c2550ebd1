"""Scorers with the interface of scikit-learn: functions of a fitted tagger, sentences and gold labels."""

from __future__ import annotations

from typing import Any

from tagwise.corpus import labels
from tagwise.corpus.schemes import has_chunks
from tagwise.estimators.predicting import Predicting
from tagwise.evaluation.metrics import Report, compared
from tagwise.evaluation.scoring import METRICS
from tagwise.features.inputs import Inputs
from tagwise.features.types import Labels


def accuracy(tagger: Any, X: Any, y: Labels | None = None) -> float:
    """Return the fraction of the tokens with the correct label.

    Args:
        tagger: Fitted tagger, or a pipeline or search of scikit-learn that ends with one.
        X: Labelled corpus, or sentences.
        y: Gold labels, if X has none.

    Returns:
        A number from 0 to 1.

    >>> import tagwise as tw
    >>> accuracy(tw.CRF(features="S1").fit([["a", "dog"]], [["DT", "NN"]]), [["a", "dog"]], [["DT", "VB"]])
    0.5
    """
    return METRICS["accuracy"](_report(tagger, X, y))


def sequence_accuracy(tagger: Any, X: Any, y: Labels | None = None) -> float:
    """Return the fraction of the sentences without an error.

    Args:
        tagger: Fitted tagger, or a pipeline or search of scikit-learn that ends with one.
        X: Labelled corpus, or sentences.
        y: Gold labels, if X has none.

    Returns:
        A number from 0 to 1.

    >>> import tagwise as tw
    >>> sequence_accuracy(tw.CRF(features="S1").fit([["a", "dog"]], [["DT", "NN"]]), [["a", "dog"]], [["DT", "VB"]])
    0.0
    """
    return METRICS["sequence_accuracy"](_report(tagger, X, y))


def f1(tagger: Any, X: Any, y: Labels | None = None) -> float:
    """Return F1 over all spans. For labels that mark no spans it equals the accuracy.

    Args:
        tagger: Fitted tagger, or a pipeline or search of scikit-learn that ends with one.
        X: Labelled corpus, or sentences.
        y: Gold labels, if X has none.

    Returns:
        A number from 0 to 1.

    >>> import tagwise as tw
    >>> f1(tw.CRF(features="S1").fit([["in", "Oslo"]], [["O", "B-LOC"]]), [["in", "Oslo"]], [["O", "B-LOC"]])
    1.0
    """
    return METRICS["f1"](_report(tagger, X, y))


def f1_macro(tagger: Any, X: Any, y: Labels | None = None) -> float:
    """Return the mean of F1 over the types of spans, or over the labels if they mark no spans.

    Args:
        tagger: Fitted tagger, or a pipeline or search of scikit-learn that ends with one.
        X: Labelled corpus, or sentences.
        y: Gold labels, if X has none.

    Returns:
        A number from 0 to 1. Every type counts equally. Use it if rare types matter as much as frequent ones.

    >>> import tagwise as tw
    >>> f1_macro(tw.CRF(features="S1").fit([["a", "dog"]], [["DT", "NN"]]), [["a", "dog"]], [["DT", "NN"]])
    1.0
    """
    return METRICS["f1_macro"](_report(tagger, X, y))


def f1_weighted(tagger: Any, X: Any, y: Labels | None = None) -> float:
    """Return the mean of F1 over the types of spans, or over the labels, weighted by their number in the gold labels.

    Args:
        tagger: Fitted tagger, or a pipeline or search of scikit-learn that ends with one.
        X: Labelled corpus, or sentences.
        y: Gold labels, if X has none.

    Returns:
        A number from 0 to 1.

    >>> import tagwise as tw
    >>> f1_weighted(tw.CRF(features="S1").fit([["a", "dog"]], [["DT", "NN"]]), [["a", "dog"]], [["DT", "NN"]])
    1.0
    """
    return METRICS["f1_weighted"](_report(tagger, X, y))


def _report(tagger: Any, X: Any, y: Labels | None) -> Report:
    """Return the report on a tagger, or on a pipeline or search whose `classes_` are those of its tagger."""
    if isinstance(tagger, Predicting):
        return tagger.evaluate(X, y)
    gold = Inputs.of_labelled(X).gold(None) if y is None else labels.lists(y)
    found = labels.texts(tagger.predict(X))[0]
    return compared(labels.texts(gold)[0], found, has_chunks(map(str, tagger.classes_)))

"""Scorers with the interface of scikit-learn: functions of a fitted tagger, sentences and gold labels."""

from __future__ import annotations

from tagwise.estimators.predicting import Predicting
from tagwise.evaluation.scoring import METRICS
from tagwise.features.types import Labels, Sentences


def accuracy(tagger: Predicting, X: Sentences, y: Labels | None = None) -> float:
    """Return the fraction of the tokens with the correct label.

    Args:
        tagger: Fitted tagger.
        X: Labelled corpus, or sentences.
        y: Gold labels, if X has none.

    Returns:
        A number from 0 to 1.

    >>> import tagwise as tw
    >>> accuracy(tw.CRF(features="S1").fit([["a", "dog"]], [["DT", "NN"]]), [["a", "dog"]], [["DT", "VB"]])
    0.5
    """
    return METRICS["accuracy"](tagger.evaluate(X, y))


def sequence_accuracy(tagger: Predicting, X: Sentences, y: Labels | None = None) -> float:
    """Return the fraction of the sentences without an error.

    Args:
        tagger: Fitted tagger.
        X: Labelled corpus, or sentences.
        y: Gold labels, if X has none.

    Returns:
        A number from 0 to 1.

    >>> import tagwise as tw
    >>> sequence_accuracy(tw.CRF(features="S1").fit([["a", "dog"]], [["DT", "NN"]]), [["a", "dog"]], [["DT", "VB"]])
    0.0
    """
    return METRICS["sequence_accuracy"](tagger.evaluate(X, y))


def f1(tagger: Predicting, X: Sentences, y: Labels | None = None) -> float:
    """Return F1 over all spans. For labels that mark no spans it equals the accuracy.

    Args:
        tagger: Fitted tagger.
        X: Labelled corpus, or sentences.
        y: Gold labels, if X has none.

    Returns:
        A number from 0 to 1.

    >>> import tagwise as tw
    >>> f1(tw.CRF(features="S1").fit([["in", "Oslo"]], [["O", "B-LOC"]]), [["in", "Oslo"]], [["O", "B-LOC"]])
    1.0
    """
    return METRICS["f1"](tagger.evaluate(X, y))


def f1_macro(tagger: Predicting, X: Sentences, y: Labels | None = None) -> float:
    """Return the mean of F1 over the types of spans, or over the labels if they mark no spans.

    Args:
        tagger: Fitted tagger.
        X: Labelled corpus, or sentences.
        y: Gold labels, if X has none.

    Returns:
        A number from 0 to 1. Every type counts equally. Use it if rare types matter as much as frequent ones.

    >>> import tagwise as tw
    >>> f1_macro(tw.CRF(features="S1").fit([["a", "dog"]], [["DT", "NN"]]), [["a", "dog"]], [["DT", "NN"]])
    1.0
    """
    return METRICS["f1_macro"](tagger.evaluate(X, y))


def f1_weighted(tagger: Predicting, X: Sentences, y: Labels | None = None) -> float:
    """Return the mean of F1 over the types of spans, or over the labels, weighted by their number in the gold labels.

    Args:
        tagger: Fitted tagger.
        X: Labelled corpus, or sentences.
        y: Gold labels, if X has none.

    Returns:
        A number from 0 to 1.

    >>> import tagwise as tw
    >>> f1_weighted(tw.CRF(features="S1").fit([["a", "dog"]], [["DT", "NN"]]), [["a", "dog"]], [["DT", "NN"]])
    1.0
    """
    return METRICS["f1_weighted"](tagger.evaluate(X, y))

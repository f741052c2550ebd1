"""Scorers with the interface of scikit-learn: functions of a fitted tagger, sentences and gold labels."""

from __future__ import annotations

from tagwise.corpus.schemes import has_chunks
from tagwise.estimators.predicting import Predicting
from tagwise.evaluation.metrics import Report, Score
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
    return tagger.evaluate(X, y).accuracy


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
    return tagger.evaluate(X, y).sequence_accuracy


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
    report = tagger.evaluate(X, y)
    return report.f1 if _marks_spans(tagger) else report.accuracy


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
    scores = _scores(tagger, tagger.evaluate(X, y))
    return sum(score.f1 for score in scores) / len(scores) if scores else 0.0


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
    scores = _scores(tagger, tagger.evaluate(X, y))
    total = sum(score.gold for score in scores)
    return sum(score.gold * score.f1 for score in scores) / total if total else 0.0


def _marks_spans(tagger: Predicting) -> bool:
    return has_chunks(map(str, tagger.classes_))


def _scores(tagger: Predicting, report: Report) -> list[Score]:
    """Return the scores to average: those of types of spans, or of labels."""
    return list((report.per_type if _marks_spans(tagger) else report.per_label).values())

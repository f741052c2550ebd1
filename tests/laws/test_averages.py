"""Averages of a report agree with scikit-learn on single labels, and with their definition on spans."""

from __future__ import annotations

from itertools import chain

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tagwise as tw
from tagwise.evaluation.metrics import compared
from tagwise.evaluation.scoring import METRICS, default_metric

pytest.importorskip("sklearn")

from sklearn.metrics import precision_recall_fscore_support

WORDS = st.sampled_from(["NN", "VB", "DT", "JJ"])
SPANS = st.sampled_from(["O", "B-PER", "I-PER", "B-LOC", "I-LOC"])


def sequences(labels: st.SearchStrategy[str]) -> st.SearchStrategy[list[list[tuple[str, str]]]]:
    """Draw sentences of pairs (gold, predicted)."""
    return st.lists(st.lists(st.tuples(labels, labels), min_size=1, max_size=6), min_size=1, max_size=5)


def split(pairs: list[list[tuple[str, str]]]) -> tuple[list[list[str]], list[list[str]]]:
    return [[g for g, _ in s] for s in pairs], [[p for _, p in s] for s in pairs]


@pytest.mark.parametrize("average", ["micro", "macro", "weighted"])
@given(pairs=sequences(WORDS))
def test_averages_of_labels_are_those_of_scikit_learn(
    average: str, pairs: list[list[tuple[str, str]]]
) -> None:
    gold, predicted = split(pairs)
    found = getattr(tw.evaluate(gold, predicted), average)
    wanted = precision_recall_fscore_support(
        list(chain.from_iterable(gold)),
        list(chain.from_iterable(predicted)),
        average=average,
        zero_division=0.0,
    )
    np.testing.assert_allclose((found.precision, found.recall, found.f1), wanted[:3])


@given(pairs=sequences(SPANS))
def test_averages_of_spans_are_over_types(pairs: list[list[tuple[str, str]]]) -> None:
    """Micro counts all spans together, macro weighs types equally, weighted by their gold spans."""
    report = compared(*split(pairs), chunked=True)
    types = list(report.per_type.values())
    assert (report.micro.precision, report.micro.recall, report.micro.f1) == (
        report.precision,
        report.recall,
        report.f1,
    )
    for average, weights in ((report.macro, [1] * len(types)), (report.weighted, [t.gold for t in types])):
        for name in ("precision", "recall", "f1"):
            values = [getattr(t, name) for t in types]
            wanted = np.average(values, weights=weights) if sum(weights) else 0.0
            assert getattr(average, name) == pytest.approx(wanted)


def test_metrics_are_fields_of_the_report() -> None:
    """Each metric has its own value where they differ."""
    gold = [["B-PER", "O"], ["B-LOC", "O"], ["B-PER", "B-PER"], ["O"]]
    predicted = [["B-PER", "O"], ["B-PER", "B-LOC"], ["B-PER", "O"], ["O"]]
    report = tw.evaluate(gold, predicted)
    found = {name: metric(report) for name, metric in METRICS.items()}
    per, loc = 2 * 2 / (3 + 3), 0.0
    assert found == pytest.approx(
        {
            "f1": 2 * 2 / (4 + 4),
            "accuracy": 4 / 7,
            "sequence_accuracy": 2 / 4,
            "f1_macro": (per + loc) / 2,
            "f1_weighted": (3 * per + 1 * loc) / 4,
        }
    )


def test_default_metric_is_decided_by_the_labels() -> None:
    assert default_metric(["O", "B-PER"]) == "f1"
    assert default_metric(["O", "NN"]) == "accuracy"
    assert default_metric(["O"]) == "accuracy"


def test_metric_does_not_change_with_the_scored_sentences(tmp_path: object) -> None:
    """A tagger of spans is scored by F1 on sentences without spans, a tagger of words by accuracy on any."""
    X, spans, words = [["a", "b"], ["b"]], [["B-X", "O"], ["O"]], [["NN", "VB"], ["VB"]]
    tagger = tw.CRF(features="S1", max_iter=20).fit(X, spans)
    assert tagger.metric_ == "f1"
    assert tagger.score([["b"]], [["O"]]) == 0.0
    assert tagger.evaluate([["b"]], [["O"]]).chunked
    plain = tw.CRF(features="S1", max_iter=20).fit(X, words)
    assert plain.metric_ == "accuracy"
    assert plain.score([["b"]], [["B-X"]]) == 0.0
    assert plain.score([["b"]], [["VB"]]) == 1.0
    tagger.save(f"{tmp_path}/m")
    assert tw.load(f"{tmp_path}/m").metric_ == "f1"
    named = tw.CRF(features="S1", max_iter=20, scoring="sequence_accuracy").fit(X, spans)
    named.save(f"{tmp_path}/n")
    again = tw.load(f"{tmp_path}/n")
    assert (again.scoring, again.metric_) == ("sequence_accuracy", "sequence_accuracy")
    assert again.score(X, [["B-X", "O"], ["B-X"]]) == 0.5

"""Estimators: interrupted training, costs, pieces of sentences, rejected arguments."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import tagwise as tw
from tagwise.estimators import LEARNERS
from tagwise.learners.loop import Iteration

from ..corpora import X, Y


def small(**params: object) -> tw.CRF:
    return tw.CRF(**{"features": "S2", "l2": 0.1, "max_iter": 60, **params})


def test_interrupt_keeps_a_usable_model() -> None:
    def interrupt(entry: Iteration) -> None:
        if entry.iteration == 2:
            raise KeyboardInterrupt

    for tagger in (
        small(),
        tw.Perceptron(features="S2"),
        tw.HMSVM(features="S2", tol=0.0),
        tw.MEMM(features="S2"),
    ):
        with pytest.raises(
            KeyboardInterrupt,
            match=r"interrupted after iteration 2\. The tagger has the model of that iteration",
        ):
            tagger.fit(X, Y, callbacks=[interrupt])
        assert "interrupted" in tagger.stopped_
        stop = LEARNERS[tagger.name](**tagger.get_params()).fit(X, Y, callbacks=[lambda e: e.iteration == 2])
        np.testing.assert_array_equal(tagger.model_.scorer.weights, stop.model_.scorer.weights)
        assert len(tagger.predict(X)) == len(X)
    going = tw.Perceptron(features="S2", max_iter=1).fit(X, Y)
    with pytest.raises(KeyboardInterrupt, match="after iteration 3"):
        going.partial_fit(X, Y, max_iter=9, callbacks=[interrupt])
    assert len(going.history_) == 3
    with pytest.raises(KeyboardInterrupt):  # nothing to keep before the first iteration
        (fresh := small()).fit(X, Y, dev=X, dev_y=unreadable())
    assert not hasattr(fresh, "model_")


def unreadable() -> Iterator[list[str]]:
    """Raise KeyboardInterrupt when the labels are read."""
    raise KeyboardInterrupt
    yield []


def test_ctrl_c_ends_a_grid_search() -> None:
    """scikit-learn does not continue with an interrupted model."""
    model_selection = pytest.importorskip("sklearn.model_selection")
    fits = 0

    def interrupt(entry: Iteration) -> None:
        nonlocal fits
        fits += 1
        raise KeyboardInterrupt

    search = model_selection.GridSearchCV(small(), {"l2": [0.1, 1.0]}, cv=2)
    with pytest.raises(KeyboardInterrupt):
        search.fit(X, Y, callbacks=[interrupt])
    assert fits == 1


def best_gap(verbs: float, nouns: float, cost: tuple[float, float], l2: float) -> tuple[float, float]:
    """Minimise verbs log(1 + e^{cost[0] - d}) + nouns log(1 + e^{cost[1] + d}) + l2 d^2 / 2. Return d and the value.

    This is the loss of `verbs` tokens VERB and `nouns` tokens NOUN with one attribute each, whose weights differ by d.
    """

    def slope(d: float) -> float:
        return l2 * d - verbs / (1 + np.exp(d - cost[0])) + nouns / (1 + np.exp(-d - cost[1]))

    low, high = -30.0, 30.0
    for _ in range(80):
        middle = (low + high) / 2
        low, high = (low, middle) if slope(middle) > 0 else (middle, high)
    value = (
        verbs * np.logaddexp(0, cost[0] - low) + nouns * np.logaddexp(0, cost[1] + low) + l2 * low * low / 2
    )
    return low, float(value)


@pytest.mark.parametrize(
    ("parameters", "verbs", "nouns", "cost"),
    [
        ({}, 3, 5, (0.0, 0.0)),
        ({"class_weight": {"VERB": np.exp(3.0)}}, 3, 5, (3.0, 0.0)),
        ({"class_weight": {"NOUN": np.exp(0.7), "VERB": np.exp(2.0)}}, 3, 5, (2.0, 0.7)),
        ({"class_weight": np.exp(1.5)}, 3, 5, (1.5, 1.5)),
        ({"pi": 0.5}, 3, 5, (0.0, 0.0)),
        ({"max_length": 1}, 3, 10, (0.0, 0.0)),
        ({"max_length": 1, "pi": 0.25}, 3, 10, (0.0, 0.0)),
        ({"max_length": 1, "pi": 0.5, "class_weight": {"NOUN": np.exp(2.0)}}, 3, 10, (0.0, 2.0)),
    ],
    ids=str,
)
def test_class_weights_pieces_and_length_weights(
    parameters: dict[str, Any], verbs: float, nouns: float, cost: tuple[float, float]
) -> None:
    """The optimum of a problem with one unknown, found by bisection. Class weights and pieces move it.

    Weights pi^T do not if all lengths are equal. The data are three sentences VERB and five NOUN of one token each.
    With `max_length` the latter have two tokens and are cut.
    """
    nouns_long = 2 if "max_length" in parameters else 1
    tokens = [[["a"]]] * 3 + [[["a"]] * nouns_long] * 5
    labels = [["VERB"]] * 3 + [["NOUN"] * nouns_long] * 5
    given = {"features": None, "start_end": False, "l2": 0.3, "max_iter": 300, "tol": 1e-10}
    tagger = tw.CRF(**given, **parameters).fit(tokens, labels)
    gap, value = best_gap(verbs, nouns, cost, 0.3)
    (p,) = tagger.predict_marginals([[["a"]]])
    assert p[0, tagger.classes_.index("VERB")] == pytest.approx(1 / (1 + np.exp(-gap)), abs=2e-4)
    assert tagger.objective_ == pytest.approx(value, rel=1e-5)


def test_invalid_class_weights_are_rejected() -> None:
    """Class weights with another loss than log, or for a label that does not occur."""
    with pytest.raises(
        tw.exceptions.ParameterError, match=r"class_weight requires loss='log', found loss='exp'"
    ):
        small(class_weight=2.0, loss="exp").fit(X, Y)
    with pytest.raises(
        tw.exceptions.ParameterError,
        match=r"class_weight: unknown label 'XX'\. The labels are: NOUN DET VERB",
    ):
        small(class_weight={"XX": 1.0}).fit(X, Y)


def test_l1_without_support_and_empty_corpora_are_rejected() -> None:
    with pytest.raises(tw.exceptions.ParameterError, match="owlqn"):
        small(l1=1.0, optimizer="lbfgs").fit(X, Y)
    with pytest.raises(tw.exceptions.CorpusError, match="no token"):
        tw.CRF().fit([], [])


def test_history_seconds_count_from_the_start() -> None:
    """Every iteration records the time since the start of training, which increases and is within the call's time."""
    begin = time.perf_counter()
    tagger = tw.CRF(features="S1", max_iter=3).fit([["a", "b"], ["b"]], [["X", "Y"], ["X"]])
    noted = [entry["seconds"] for entry in tagger.history_]
    assert noted == sorted(noted)
    assert 0.0 <= noted[0] <= noted[-1] <= time.perf_counter() - begin

"""Estimators: interrupted training, costs, pieces of sentences, rejected arguments."""

from __future__ import annotations

import time
from collections.abc import Iterator

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

"""The boosting estimator: rounds report their loss, the model has the chosen features, training resumes."""

from __future__ import annotations

from typing import Any

import pytest

import tagwise as tw
from tagwise.base.exceptions import ParameterError

from ..corpora import X, Y

#: One feature per round, on whole sentences.
PAPER: dict[str, Any] = {"features_per_round": 1, "overlap": False, "max_length": None}


def test_model_contains_only_the_chosen_features() -> None:
    tagger = tw.Boosting(features="S2", max_iter=15, **PAPER).fit(X, Y)
    chosen = {(r.kind, r.attribute, r.label) for r in tagger.rounds_}
    assert tagger.n_features_ == len(chosen) <= 15
    assert tagger.model_.meta["metrics"]["features"] > tagger.n_features_
    weights: dict[tuple[str, str], float] = {}
    for r in tagger.rounds_:
        if r.kind == "node":
            weights[r.label, r.attribute] = weights.get((r.label, r.attribute), 0.0) + r.step
    explained = tagger.inspect(top=1000)
    found = {(label, a): w for label, pairs in explained.labels.items() for a, w in pairs}
    assert found == pytest.approx(weights, abs=1e-6)


def test_warm_start_continues_training() -> None:
    first = tw.Boosting(features="S2", max_iter=10, epsilon=0.01, **PAPER).fit(X, Y)
    second = tw.Boosting(features="S2", max_iter=10, epsilon=0.01, **PAPER).fit(X, Y, warm_start=first)
    whole = tw.Boosting(features="S2", max_iter=20, epsilon=0.01, **PAPER).fit(X, Y)
    assert second.objective_ == pytest.approx(
        whole.objective_, abs=1e-3
    )  # weights are stored in single precision
    assert second.n_features_ >= first.n_features_


def test_single_label_needs_no_rounds() -> None:
    tagger = tw.Boosting(max_iter=5).fit([["a", "b"]], [["O", "O"]])
    assert tagger.rounds_ == []
    assert tagger.predict([["c"]]) == [["O"]]


def test_edge_attributes_are_refused() -> None:
    with pytest.raises(ParameterError, match="edge attributes"):
        tw.Boosting(features="word[0]\nedge: word[0]", max_iter=3).fit(X, Y)


def test_draw_without_a_gain_falls_back_to_all_features() -> None:
    """If none of the drawn features gains, all features are considered: every seed has its round."""
    sentences, labels = [["a", "b"], ["b", "c"], ["c", "a"]], [["X", "Y"], ["Y", "Z"], ["Z", "X"]]
    for seed in range(20):
        tagger = tw.Boosting(features="S1", max_iter=1, candidates=0.02, random_state=seed, **PAPER).fit(
            sentences, labels
        )
        assert tagger.n_nonzero_ == 1, seed

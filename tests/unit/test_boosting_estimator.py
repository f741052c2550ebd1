"""The boosting estimator: rounds report their loss, the model has the chosen features, training resumes."""

from __future__ import annotations

import math
from itertools import pairwise, product
from typing import Any

import pytest

import tagwise as tw
from tagwise.base.exceptions import ParameterError
from tagwise.estimators.boosting import Round

from ..corpora import X, Y

# Explicit attributes: the word and the previous word.
A = [[[f"w={w}", f"p={p}"] for p, w in pairwise(["", *x])] for x in X]


def loss_of(chosen: list[Round], pi: float = 1.0, max_length: int = 10**9) -> float:
    """Return log sum_i c pi^T (1 / P(y_i) - 1) for these rounds' weights, over all sequences of each sentence piece.

    The mean of c pi^T is 1.
    """
    weights: dict[tuple[str, str, str], float] = {}
    for r in chosen:
        key = r.kind, r.attribute, r.label
        weights[key] = weights.get(key, 0.0) + r.step
    total, mass, count = 0.0, 0.0, 0
    for x, y in zip(A, Y):
        pieces = -(-len(y) // max_length)
        for at, end in pairwise(len(y) * piece // pieces for piece in range(pieces + 1)):
            tokens, gold, first, last = x[at:end], tuple(y[at:end]), at == 0, end == len(y)
            paths = list(product(("DET", "NOUN", "VERB"), repeat=len(gold)))
            scores = []
            for path in paths:
                keys = [("node", a, label) for token, label in zip(tokens, path) for a in token]
                keys += [("edge", *pair) for pair in pairwise(path)]
                keys += [("start", "", path[0])] * first + [("end", "", path[-1])] * last
                scores.append(sum(weights.get(key, 0.0) for key in keys))
            wrong = [
                math.exp(s - scores[paths.index(gold)]) for s, path in zip(scores, paths) if path != gold
            ]
            total += pi ** len(gold) * sum(wrong)
            mass, count = mass + pi ** len(gold), count + 1
    return math.log(total * count / mass)


#: One feature per round, on whole sentences.
PAPER: dict[str, Any] = {"features_per_round": 1, "overlap": False, "max_length": None}


@pytest.mark.parametrize(
    "parameters",
    [
        {"bound": "loose"},
        {"bound": "tight"},
        {"bound": "exact"},
        {"step": "line_search"},
        {"features_per_round": 3},
        {"features_per_round": 4, "overlap": True},
        {"candidates": 0.5, "random_state": 3},
        {"pi": 0.5},
        {"max_length": 2},
        {"max_length": 1, "pi": 0.8},
        {"start_end": False},
    ],
    ids=str,
)
def test_rounds_report_the_loss_of_their_weights(parameters: dict[str, Any]) -> None:
    """The loss after each round is that of the steps so far, summed over all sequences. It decreases and repeats."""
    weighting = {k: v for k, v in parameters.items() if k in ("pi", "max_length")}
    tagger = tw.Boosting(**{"features": None, "max_iter": 12, **PAPER, **parameters}).fit(A, Y)
    chosen = tagger.rounds_
    assert {r.round for r in chosen} == set(range(12))
    before = loss_of([], **weighting)
    for number in range(12):
        done = [r for r in chosen if r.round <= number]
        after = loss_of(done, **weighting)
        assert done[-1].log_loss == pytest.approx(after, abs=1e-6)
        assert after < before
        this = [r for r in done if r.round == number]
        if "features_per_round" not in parameters:
            assert len(this) == 1
            assert after - before <= math.log(this[0].bound) + 1e-6  # the promised bound
        before = after
    assert tagger.history_[-1]["objective"] == tagger.objective_ == chosen[-1].log_loss
    assert tagger.predict(A) == Y
    kinds = {r.kind for r in chosen}
    assert (
        kinds <= {"node", "edge"}
        if parameters.get("start_end") is False
        else kinds <= {"node", "edge", "start", "end"}
    )
    assert len(chosen) > 12 if "features_per_round" in parameters else len(chosen) == 12
    again = tw.Boosting(**{"features": None, "max_iter": 12, **PAPER, **parameters}).fit(A, Y)
    assert again.rounds_ == chosen


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

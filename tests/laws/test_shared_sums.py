"""Tests of sums shared by tokens: a corpus large enough for them is scored like its single sentences."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tagwise as tw


def sentences(n: int, labels: int, seed: int) -> tuple[list[list[str]], list[list[str]]]:
    """Return words of a Zipf distribution, some of them seen once, and labels that depend on them."""
    rng = np.random.default_rng(seed)
    X, y = [], []
    for _ in range(n):
        ranks = np.minimum(rng.zipf(1.3, size=rng.integers(0, 12)), 5000)
        X.append([f"{chr(97 + r % 26)}{r * 7919 % 10007:x}{'-' if r % 5 == 0 else ''}{r % 3}" for r in ranks])
        y.append([f"L{(r + t % 2) % labels}" for t, r in enumerate(ranks)])
    return X, y


# One, two and four lanes of labels, and more than the cached sums support.
@pytest.mark.parametrize("labels", [5, 20, 50, 70])
@pytest.mark.parametrize("learner", [tw.Perceptron(max_iter=2, start_end=True), tw.CRF(max_iter=8, l1=0.05)])
def test_large_corpora_are_scored_like_single_sentences(learner: Any, labels: int) -> None:
    X, y = sentences(400, labels, 0)
    tagger = learner.set_params(features="default", n_jobs=2).fit(X, y)
    X, _ = sentences(1500, labels, 1)
    assert sum(map(len, X)) > 4000
    parts = range(0, len(X), 100)
    assert tagger.predict(X) == [path for i in parts for path in tagger.predict(X[i : i + 100])]
    if isinstance(tagger, tw.CRF):
        small = [p for i in parts for p in tagger.predict_marginals(X[i : i + 100])]
        for ours, slow in zip(tagger.predict_marginals(X), small):
            np.testing.assert_allclose(ours, slow, atol=2e-5)


def test_reading_attributes_twice_gives_equal_results() -> None:
    """Reading a dataset twice does not change the first result, with any number of threads."""
    X, y = sentences(1500, 5, 2)
    tagger = tw.Perceptron(features="default", max_iter=1).fit(X[:300], y[:300])
    model = tagger.model_
    whole = [model.encode(X, n).node() for n in (1, 2)]
    for one, two in zip(*whole):
        np.testing.assert_array_equal(one, two)
    parts = [model.encode(X[i : i + 100], 1).node() for i in range(0, len(X), 100)]
    np.testing.assert_array_equal(whole[0][1], np.concatenate([ids for _, ids, _ in parts]))

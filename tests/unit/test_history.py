"""History and documents in the public interface: parameters, models, files, streams."""

from __future__ import annotations

import math

import numpy as np
import pytest

import tagwise as tw

from ..corpora import documents


@pytest.mark.parametrize("learner", [tw.Perceptron, tw.MIRA])
def test_document_features_resolve_ambiguous_words(learner: type[tw.Tagger]) -> None:
    train, test = documents(), documents(seed=1)
    template = "word[0]\nword[-1]"
    plain = learner(features=template, max_iter=10).fit(train)
    document = learner(features=template, max_iter=10, lookback=tw.Lookback(document=True)).fit(train)
    assert plain.score(test) < 0.9
    assert document.score(test) == 1.0


@pytest.mark.parametrize("learner", [tw.Perceptron, tw.MIRA])
def test_endless_history_has_a_feature_for_every_distance(learner: type[tw.Tagger]) -> None:
    """p = inf equals p = the longest distance in the data. Pooling distances needs an explicit `pool`."""
    rng = np.random.default_rng(3)
    X = [[str(w) for w in rng.integers(0, 6, n)] for n in (19, 14, 20, 17, 11)]
    y = [[str(y) for y in rng.integers(0, 3, len(x))] for x in X]
    params = {"features": "S1", "max_iter": 3, "average": False}
    endless = learner(lookback=(1, math.inf), **params).fit(X, y)
    known = learner(lookback=(1, 19), **params).fit(X, y)
    assert endless.predict(X) == known.predict(X)
    assert endless.model_.lookback is not None
    assert known.model_.lookback is not None
    far, near = endless.model_.lookback.weights, known.model_.lookback.weights
    assert near.reshape(18, -1).any(axis=1).all()
    np.testing.assert_array_equal(far[: len(near)], near)
    assert len(far) == 127 * 9
    assert not far[len(near) :].any()
    pooled = learner(lookback=tw.Lookback(1, math.inf, pool=8), **params).fit(X, y)
    assert pooled.model_.lookback is not None
    assert len(pooled.model_.lookback.weights) == 7 * 9


def test_history_values_and_their_errors() -> None:
    for wrong in ((4, 1), (1, 0), "x", (1,), (1, 2, 3), "m=1,p=none"):
        with pytest.raises(tw.exceptions.ParameterError, match="lookback"):
            tw.MIRA(lookback=wrong).fit([["a"]], [["X"]])
    with pytest.raises(tw.exceptions.ParameterError, match="marks its documents"):
        tw.MIRA(lookback=tw.Lookback(document=True)).fit([["a"]], [["X"]])
    with pytest.raises(ValueError, match="lookback requires parts=1"):
        tw.MIRA(lookback=(1, 2), parts=2).fit([["a"]], [["X"]])
    tagger = tw.MIRA(lookback=(1, 2), features="S1").fit([["a", "b"]], [["X", "Y"]])
    with pytest.raises(tw.exceptions.ParameterError, match="not probabilities"):
        tagger.predict_marginals([["a"]])
    with pytest.raises(tw.exceptions.ParameterError, match="decoder"):
        tagger.predict([["a"]], beam=3)


def test_history_beyond_the_memory_limit_is_rejected() -> None:
    with pytest.raises(
        tw.exceptions.ParameterError, match="with 2 labels makes too many weights; use a smaller p, or inf"
    ):
        tw.MIRA(features="S1", lookback=(1, 2**40)).fit([["a", "b"]], [["X", "Y"]])

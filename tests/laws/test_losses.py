"""Tests of the four native losses: special cases, bounds, log domain, partial labels. Values are in test_paths."""

from __future__ import annotations

import numpy as np
import pytest

from tagwise import _core

from .corpora import TWINS, random_corpus
from .reference import losses


def test_every_loss_has_a_reference() -> None:
    assert list(TWINS) == list(_core.LOSSES)


@pytest.mark.parametrize("longest", [400, 3])
def test_log_domain_of_the_exponential_loss(longest: int) -> None:
    """log sum_i w_i e^{l_i} and its gradient are right for weights at which e^l overflows, and for small ones."""
    c = random_corpus(11, 9, n=20, longest=longest)
    rng = np.random.default_rng(0)
    weight = rng.uniform(0.5, 2, len(c.X))
    objective = _core.Objective(c.data, c.layout, loss="exp", sample_weight=weight)
    w = 0.3 * rng.standard_normal(len(c.layout))
    gradient = np.empty_like(w)
    value, largest = objective.log_value(w, gradient)
    parts = [
        (np.log(weight[i]) + losses.minus_log_p(s, y)) for i, (s, y) in enumerate(zip(c.scores(w), c.gold))
    ]
    assert largest == pytest.approx(max(parts), rel=1e-5)
    assert value == pytest.approx(np.logaddexp.reduce(parts), rel=1e-5)
    slow = np.zeros_like(w)
    for i, (s, y) in enumerate(zip(c.scores(w), c.gold)):
        slow += c.pull_back(i, losses.log_loss(s, y, float(np.exp(parts[i] - np.logaddexp.reduce(parts))))[1])
    np.testing.assert_allclose(gradient, slow, atol=2e-3)


@pytest.mark.parametrize("name", TWINS)
def test_long_sentences_have_finite_losses_at_zero_weights(name: str) -> None:
    """1,000 tokens and 50 labels."""
    rng = np.random.default_rng(0)
    X = [[[f"w{rng.integers(200)}"] for _ in range(T)] for T in (1000, 3)]
    vocabulary = _core.Vocabulary()
    data = _core.encode_attributes(vocabulary, X)
    data = data.with_gold(rng.permutation(np.arange(data.n_tokens) % 50).astype(np.uint16))
    layout = _core.Layout.build(data, len(vocabulary), 50)
    objective = _core.Objective(data, layout, loss=name)
    w, gradient = np.zeros(len(layout)), np.empty(len(layout))
    value, _ = objective.log_value(w, gradient)
    assert np.isfinite(value)
    assert np.isfinite(gradient).all()

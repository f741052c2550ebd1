"""Tests of the four native losses: special cases, bounds, log domain, partial labels. Values are in test_paths."""

from __future__ import annotations

import numpy as np
import pytest

from tagwise import _core

from .corpora import TWINS, random_corpus
from .reference import chain, losses


def close(value: float, gradient: np.ndarray, slow: float, slow_gradient: np.ndarray) -> None:
    assert value == pytest.approx(slow, rel=1e-5, abs=1e-3)
    scale = max(1.0, float(np.abs(slow_gradient).max()))
    np.testing.assert_allclose(gradient, slow_gradient, atol=3e-5 * scale)


def test_every_loss_has_a_reference() -> None:
    assert list(TWINS) == list(_core.LOSSES)


def test_losses_coincide_for_single_tokens() -> None:
    """For T = 1, F1 = F3 and F2 = F4 - T."""
    c = random_corpus(1, 5, n=30, longest=1)
    w = np.random.default_rng(4).standard_normal(len(c.layout))
    value = {}
    for name in TWINS:
        gradient = np.empty_like(w)
        value[name] = (_core.Objective(c.data, c.layout, loss=name).evaluate(w, gradient), gradient)
    assert value["log"][0] == pytest.approx(value["pointwise_log"][0], rel=1e-5)
    assert value["exp"][0] == pytest.approx(value["pointwise_exp"][0] - c.data.n_tokens, rel=1e-5)
    np.testing.assert_allclose(value["log"][1], value["pointwise_log"][1], atol=1e-4)
    np.testing.assert_allclose(value["exp"][1], value["pointwise_exp"][1], atol=1e-3)


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


@pytest.mark.parametrize("labels", [2, 5])
def test_partial_labels(labels: int) -> None:
    """The loss is log Z - log Z under the known labels. With every label known it is the log loss."""
    c = random_corpus(13, labels, n=40, longest=6)
    rng = np.random.default_rng(7)
    sets = [rng.random((len(y), labels)) < 0.5 for y in c.gold]
    for allowed, y in zip(sets, c.gold):
        allowed[np.arange(len(y)), list(y)] = True
    flat = np.concatenate(sets)
    support = (np.ascontiguousarray(flat), np.arange(len(flat), dtype=np.uint32))
    w = rng.standard_normal(len(c.layout))
    gradient = np.empty_like(w)
    weight = rng.uniform(0.5, 2, len(c.X))
    value = _core.Objective(c.data, c.layout, partial=support, sample_weight=weight).evaluate(w, gradient)
    total, slow = 0.0, np.zeros_like(w)
    for i, s in enumerate(c.scores(w)):
        v, g = losses.partial_log_loss(s, sets[i], float(weight[i]))
        total += v
        slow += c.pull_back(i, g)
    close(value, gradient, total, slow)
    whole = (np.eye(labels, dtype=np.bool_), c.data.gold.astype(np.uint32))
    known, plain = np.empty_like(w), np.empty_like(w)
    assert _core.Objective(c.data, c.layout, partial=whole).evaluate(w, known) == pytest.approx(
        _core.Objective(c.data, c.layout).evaluate(w, plain), rel=1e-5
    )
    np.testing.assert_allclose(known, plain, atol=1e-3)


def test_losses_bound_the_risks() -> None:
    """F1 >= log 2 * zero-one risk, F3 >= log 2 * Hamming errors of pointwise decoding, F2 >= rank loss."""
    c = random_corpus(21, 3, n=60, longest=4)
    w = np.random.default_rng(8).standard_normal(len(c.layout))
    gradient = np.empty_like(w)
    value = {name: _core.Objective(c.data, c.layout, loss=name).evaluate(w, gradient) for name in TWINS}
    wrong = hamming = rank = 0
    for s, y in zip(c.scores(w), c.gold):
        wrong += chain.viterbi(s) != tuple(y)
        hamming += sum(a != b for a, b in zip(chain.pointwise(s), y))
        best = chain.kbest(s, 3 ** len(y))
        mine = chain.score(s, y)
        rank += sum(score >= mine for score, path in best if tuple(path) != tuple(y))
    assert value["log"] >= np.log(2) * wrong
    assert value["pointwise_log"] >= np.log(2) * hamming
    assert value["exp"] >= rank - 1e-6

"""Tests of the reference implementations against enumeration and finite differences."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from .reference import Scores, chain, enumeration, losses, model
from .strategies import Chain, Problem, chains, paths, problems, reals, weights, wholes


def close(a: Scores, b: Scores, tol: float = 1e-9) -> None:
    """Every part of two gradients agrees."""
    for x, y in zip(a, b):
        np.testing.assert_allclose(x, y, rtol=tol, atol=tol)


def finite_difference(f, s: Scores, h: float = 1e-6) -> Scores:
    """Return central differences of f(scores) in every finite score."""
    gradient = Scores(*(np.zeros_like(part) for part in s))
    for part, g in enumerate(gradient):
        for cell in np.ndindex(g.shape):
            if np.isfinite(s[part][cell]):
                moved = [Scores(*(p.copy() for p in s)) for _ in range(2)]
                moved[0][part][cell] += h
                moved[1][part][cell] -= h
                g[cell] = (f(moved[0]) - f(moved[1])) / (2 * h)
    return gradient


# -- chain ------------------------------------------------------------------------------------------------


@given(chains())
def test_log_partition_and_marginals_match_enumeration(c: Chain) -> None:
    assert chain.log_partition(c.scores) == pytest.approx(enumeration.log_partition(c.scores), abs=1e-9)
    for fast, slow in zip(chain.marginals(c.scores), enumeration.marginals(c.scores)):
        np.testing.assert_allclose(fast, slow, atol=1e-9)
    close(chain.expectations(c.scores), enumeration.expectations(c.scores))


@given(chains())
def test_forward_and_backward_agree_at_every_token(c: Chain) -> None:
    meet = chain.log_sum_exp(chain.forward(c.scores) + chain.backward(c.scores), axis=1)
    np.testing.assert_allclose(meet, chain.log_partition(c.scores), atol=1e-9)


@given(chains(), st.data())
def test_conditional_expectations_match_enumeration(c: Chain, data: st.DataObject) -> None:
    omega = np.array([data.draw(st.floats(0.1, 3)) for _ in c.gold])
    given_each = [enumeration.expectations(c.scores, given=(t, y)) for t, y in enumerate(c.gold)]
    total = Scores(*(sum(o * part for o, part in zip(omega, parts)) for parts in zip(*given_each)))
    close(chain.conditional_expectations(c.scores, c.gold, omega), total)


@given(chains(elements=wholes()), st.integers(1, 30))
def test_viterbi_and_kbest_with_ties(c: Chain, k: int) -> None:
    assert chain.viterbi(c.scores) == enumeration.viterbi(c.scores)
    assert chain.kbest(c.scores, k) == enumeration.kbest(c.scores, k)


@given(chains(elements=wholes(), max_tokens=3, max_labels=3))
def test_full_kbest_list_has_every_path_once(c: Chain) -> None:
    found = [y for _, y in chain.kbest(c.scores, 1000)]
    assert len(found) == len(set(found))
    assert set(found) == set(enumeration.paths(c.scores))


@given(chains(constrained=True))
def test_every_path_satisfies_the_constraints(c: Chain) -> None:
    assert c.allowed is not None
    assert c.forbidden is not None
    for y in [chain.viterbi(c.scores)] + [p for _, p in chain.kbest(c.scores, 5)]:
        assert all(c.allowed[t, a] for t, a in enumerate(y))
        assert not any(c.forbidden[a, b] for a, b in pairwise(y))
    assert all(c.allowed[t, a] for t, a in enumerate(chain.pointwise(c.scores)))


@given(chains())
def test_score_is_linear_in_its_counts(c: Chain) -> None:
    s = chain.counts(c.scores, c.gold)
    total = sum(np.sum(h[n > 0] * n[n > 0]) for h, n in zip(c.scores, s))
    assert chain.score(c.scores, c.gold) == pytest.approx(total)


@given(chains())
def test_entropy(c: Chain) -> None:
    p = np.array(list(enumeration.distribution(c.scores).values()))
    p = p[p > 0]
    assert chain.entropy(c.scores) == pytest.approx(-(p * np.log(p)).sum(), abs=1e-8)


# -- losses -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", losses.LOSSES)
@given(c=chains(elements=reals(2.0)), weight=st.floats(0.1, 3))
def test_losses_match_enumeration(name: str, c: Chain, weight: float) -> None:
    value, _ = losses.LOSSES[name](c.scores, c.gold, weight)
    assert value == pytest.approx(weight * enumeration.losses(c.scores, c.gold)[name], rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("name", losses.LOSSES)
@settings(max_examples=15)
@given(c=chains(elements=reals(1.0), max_tokens=4, max_labels=3), weight=st.floats(0.1, 3))
def test_gradients_match_finite_differences(name: str, c: Chain, weight: float) -> None:
    value, gradient = losses.LOSSES[name](c.scores, c.gold, weight)
    slope = finite_difference(lambda s: losses.LOSSES[name](s, c.gold, weight)[0], c.scores)
    close(gradient, slope, tol=1e-6 * (1 + abs(value)))


@settings(max_examples=15)
@given(c=chains(elements=reals(2.0), max_tokens=4, max_labels=3), data=st.data())
def test_softmax_margin(c: Chain, data: st.DataObject) -> None:
    L = c.scores.node.shape[1]
    cost = np.array([data.draw(st.floats(0, 2)) for _ in range(L * L)]).reshape(L, L)
    np.fill_diagonal(cost, 0.0)
    value, gradient = losses.softmax_margin(c.scores, c.gold, cost)
    h = {y: chain.score(c.scores, y) for y in enumeration.paths(c.scores)}
    total = sum(np.exp(h[y] + sum(cost[g, a] for g, a in zip(c.gold, y))) for y in h)
    assert value == pytest.approx(np.log(total) - h[c.gold], abs=1e-9)
    assert value >= losses.log_loss(c.scores, c.gold)[0] - 1e-9
    close(
        gradient,
        finite_difference(lambda s: losses.softmax_margin(s, c.gold, cost)[0], c.scores),
        tol=1e-6,
    )


@settings(max_examples=15)
@given(c=chains(elements=reals(2.0), constrained=False, max_tokens=4, max_labels=3), data=st.data())
def test_partial_labels(c: Chain, data: st.DataObject) -> None:
    T, L = c.scores.node.shape
    allowed = np.array([[data.draw(st.booleans()) for _ in range(L)] for _ in range(T)])
    allowed[np.arange(T), list(c.gold)] = True
    value, gradient = losses.partial_log_loss(c.scores, allowed)
    inside = sum(
        p
        for y, p in enumeration.distribution(c.scores).items()
        if all(allowed[t, a] for t, a in enumerate(y))
    )
    assert value == pytest.approx(-np.log(inside), abs=1e-9)
    close(gradient, finite_difference(lambda s: losses.partial_log_loss(s, allowed)[0], c.scores), tol=1e-6)
    alone = np.zeros((T, L), dtype=bool)
    alone[np.arange(T), list(c.gold)] = True
    assert losses.partial_log_loss(c.scores, alone)[0] == pytest.approx(
        losses.log_loss(c.scores, c.gold)[0], abs=1e-9
    )
    assert losses.partial_log_loss(c.scores, np.ones((T, L)))[0] == pytest.approx(0, abs=1e-9)


@given(chains(elements=reals(2.0)))
def test_losses_bound_the_risks(c: Chain) -> None:
    """F2 >= rank loss, F1 >= log 2 [gold is not best], F3 >= log 2 * Hamming errors of pointwise decoding."""
    value = {name: loss(c.scores, c.gold, 1.0)[0] for name, loss in losses.LOSSES.items()}
    assert value["exp"] >= enumeration.rank(c.scores, c.gold) - 1e-7
    wrong = chain.viterbi(c.scores) != c.gold
    assert value["log"] >= np.log(2) * wrong - 1e-9
    errors = sum(a != b for a, b in zip(chain.pointwise(c.scores), c.gold))
    assert value["pointwise_log"] >= np.log(2) * errors - 1e-9


@given(chains(max_tokens=1))
def test_pointwise_and_sequential_losses_agree_for_one_token(c: Chain) -> None:
    value = {name: loss(c.scores, c.gold, 1.0)[0] for name, loss in losses.LOSSES.items()}
    assert value["log"] == pytest.approx(value["pointwise_log"], abs=1e-9)
    assert value["exp"] == pytest.approx(value["pointwise_exp"] - 1, rel=1e-9, abs=1e-9)


@settings(max_examples=15)
@given(st.lists(chains(elements=reals(2.0), max_tokens=3, max_labels=3), min_size=1, max_size=3))
def test_log_of_exp_losses(batch: list[Chain]) -> None:
    pairs, w = [(c.scores, c.gold) for c in batch], [1.0 + i for i in range(len(batch))]
    value, gradients = losses.log_of_exp_losses(pairs, w)
    total = sum(losses.exp_loss(s, y, a)[0] + a for (s, y), a in zip(pairs, w))
    assert value == pytest.approx(np.log(total), abs=1e-9)
    for (s, y), a, g in zip(pairs, w, gradients):
        close(g, Scores(*(p / total for p in losses.exp_loss(s, y, a)[1])), tol=1e-8)


def test_log_domain_losses_are_finite_on_long_sentences() -> None:
    s = chain.scores(np.zeros((1000, 50)), np.zeros((50, 50)))
    value, (gradient,) = losses.log_of_exp_losses([(s, [0] * 1000)], [1.0])
    assert value == pytest.approx(1000 * np.log(50))
    assert all(np.isfinite(part).all() for part in gradient)


# -- model ------------------------------------------------------------------------------------------------


@given(st.booleans().flatmap(lambda e: problems(values=reals(2.0), edge_attributes=e)), st.data())
def test_score_is_weights_times_features(p: Problem, data: st.DataObject) -> None:
    w = data.draw(weights(p.shape))
    for X, y in zip(p.X, p.y):
        s = model.score_sentence(w, X, p.shape)
        other = data.draw(paths(len(y), p.shape.labels))
        for path in (y, other):
            assert chain.score(s, path) == pytest.approx(w @ model.features(X, path, p.shape), abs=1e-9)


@pytest.mark.parametrize("name", losses.LOSSES)
@settings(max_examples=10)
@given(p=st.booleans().flatmap(lambda e: problems(1, 3, 2, 2, reals(1.0), e)), data=st.data())
def test_weight_gradients_match_finite_differences(name: str, p: Problem, data: st.DataObject) -> None:
    w, (X,), (y,) = data.draw(weights(p.shape, reals(1.0))), p.X, p.y

    def value(v: np.ndarray) -> float:
        return losses.LOSSES[name](model.score_sentence(v, X, p.shape), y, 1.0)[0]

    g = model.pull_back(losses.LOSSES[name](model.score_sentence(w, X, p.shape), y, 1.0)[1], X, p.shape)
    steps = 1e-6 * np.eye(len(w))
    slope = np.array([(value(w + h) - value(w - h)) / 2e-6 for h in steps])
    np.testing.assert_allclose(g, slope, atol=1e-6 * (1 + value(w)))

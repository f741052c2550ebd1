"""Tests of the learners' reference implementations: optimality conditions, bounds, enumeration, primal and dual."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from .reference import (
    Scores,
    boosting,
    chain,
    costs,
    generative,
    history,
    losses,
    mira,
    model,
    perceptron,
    qp,
    svm,
)
from .strategies import Chain, Problem, chains, problems, reals, weights, wholes

small = problems(max_sentences=2, max_tokens=3, max_labels=2, max_attributes=2)


# -- perceptron -------------------------------------------------------------------------------------------


@settings(max_examples=20)
@given(problems(max_sentences=2, max_tokens=3))
def test_polynomial_kernel_equals_its_expansion(p: Problem) -> None:
    """(1 + <x,x'>)^2 = <f(x), f(x')> with f(x) = all products of two of (1, x)."""
    one = [np.hstack([np.ones((len(x), 1)), x]) for x in p.X]
    wide = [np.einsum("ta,tb->tab", x, x).reshape(len(x), -1) for x in one]
    order = [list(range(len(p.X)))] * 3
    a, _ = perceptron.dual_perceptron(p.X, p.y, p.shape.labels, order, perceptron.polynomial(1.0, 2))
    b, _ = perceptron.dual_perceptron(wide, p.y, p.shape.labels, order, perceptron.linear)
    np.testing.assert_allclose(a.beta, b.beta)


@settings(max_examples=20)
@given(problems())
def test_masked_features_stay_at_zero(p: Problem) -> None:
    mask = model.observed(list(zip(p.X, p.y)), p.shape)
    last, mean = perceptron.perceptron(p.X, p.y, p.shape, [range(len(p.X))] * 3, mask)
    assert not last[~mask].any()
    assert not mean[~mask].any()


# -- quadratic programs, MIRA -----------------------------------------------------------------------------


@given(arrays(float, (4, 3), elements=wholes(1)), arrays(float, 4, elements=reals(3.0)), st.floats(0.1, 2))
def test_quadratic_programs_satisfy_optimality_conditions(d: np.ndarray, b: np.ndarray, C: float) -> None:
    """Integer rows are equal, parallel or well apart. With nearly parallel rows the steps would not converge."""
    d, b = d[d.any(axis=1)], b[d.any(axis=1)]  # a row of zeros makes the program unbounded
    assume(len(d) > 0)
    G = d @ d.T
    tau = qp.box(G, b, C)
    g = b - G @ tau
    assert np.all((tau >= 0) & (tau <= C))
    assert np.all(g[tau < C] <= 1e-6)
    assert np.all(g[tau > 0] >= -1e-6)
    group = np.arange(len(b)) % 2
    tau = qp.groups(G, b, group, C)
    g = b - G @ tau
    assert np.all(tau >= 0)
    for name in set(group.tolist()):
        rows = group == name
        used = tau[rows].sum()
        price = max(0.0, g[rows].max())  # multiplier of the sum constraint
        assert used <= C + 1e-9
        assert price <= 1e-6 or used >= C - 1e-9
        assert np.all(np.abs(g[rows][tau[rows] > 1e-9] - price) <= 1e-6)
    one = qp.groups(G, b, np.zeros(len(b), dtype=int), C)
    np.testing.assert_allclose(qp.vertices(G, b, C) @ d, one @ d, atol=1e-5)


@given(arrays(float, 4, elements=reals(2.0)), arrays(float, 4, elements=reals(2.0)), st.floats(0, 5))
def test_one_constraint_in_closed_form(w: np.ndarray, d: np.ndarray, cost: float) -> None:
    assume(d @ d > 0.1)
    for C in (None, 0.3):
        np.testing.assert_allclose(
            mira.closest(w, d[None, :], np.array([cost]), C), mira.closest_to_one(w, d, cost, C), atol=1e-9
        )
    assert mira.closest_to_one(w, d, cost) @ d >= cost - 1e-9


@settings(max_examples=20)
@given(problems(max_sentences=1, max_tokens=3), st.integers(1, 4), st.data())
def test_mira_step_satisfies_its_margins(p: Problem, k: int, data: st.DataObject) -> None:
    w, (X,), (y,) = data.draw(weights(p.shape)), p.X, p.y
    guesses = [g for _, g in chain.kbest(model.score_sentence(w, X, p.shape), k) if g != y]
    assume(guesses)
    d = np.array([model.features(X, y, p.shape) - model.features(X, g, p.shape) for g in guesses])
    cost = np.array([float(svm.hamming(y, g)) for g in guesses])
    moved = mira.closest(w, d, cost)
    assert np.all(d @ moved >= cost - 1e-6)
    # no nearer point satisfies them: the step is a non-negative combination of the tight constraints
    tight = d @ moved <= cost + 1e-6
    if np.abs(moved - w).max() > 1e-6:
        tau = np.linalg.lstsq(d[tight].T, moved - w, rcond=None)[0]
        np.testing.assert_allclose(d[tight].T @ tau, moved - w, atol=1e-5)


def test_mira_learns_and_starts_in_the_perceptron_direction() -> None:
    X, y, shape = [np.eye(2)[[0, 1]]], [(1, 0)], model.Shape(2, 2)
    w, mean = mira.mira(X, y, shape, [[0]], lambda a, b: float(svm.hamming(a, b)))
    step = perceptron.update(np.zeros(shape.size), X[0], y[0], shape)
    np.testing.assert_allclose(w, step * (w @ step) / (step @ step))
    np.testing.assert_allclose(w, mean)


NAMES = ["O", "B-A", "I-A", "B-B", "I-B"]


@given(st.lists(st.tuples(st.sampled_from(NAMES), st.sampled_from(NAMES)), min_size=1, max_size=6))
def test_costs(pairs: list[tuple[str, str]]) -> None:
    gold, guess = [a for a, _ in pairs], [b for _, b in pairs]
    for cost in (costs.accuracy, costs.f1, costs.precision_recall, costs.weighted_accuracy):
        assert cost(gold, guess) >= 0
        assert cost(gold, gold) == 0
    assert costs.weighted_accuracy(gold, guess) == costs.accuracy(gold, guess)
    if gold != guess:
        assert costs.f1(gold, guess) >= 1
    missed = costs.precision_recall(gold, guess, 0.0)
    spurious = costs.precision_recall(gold, guess, 1.0)
    assert costs.precision_recall(gold, guess, 0.25) == 0.25 * spurious + 0.75 * missed
    assert spurious - missed == len(costs.spans(guess)) - len(costs.spans(gold))


def test_spans_match_conlleval() -> None:
    assert costs.spans(["B-A", "I-A", "B-A", "O"]) == {("A", 0, 2), ("A", 2, 3)}
    assert costs.spans(["I-A", "I-B", "O", "I-B"]) == {("A", 0, 1), ("B", 1, 2), ("B", 3, 4)}


# -- Hidden Markov SVM ------------------------------------------------------------------------------------


@pytest.mark.parametrize("slack", ["instance", "sequence"])
@pytest.mark.parametrize("margin", [False, True])
@settings(max_examples=8)
@given(p=small, C=st.sampled_from([0.3, 1.0]))
def test_svm_working_sets_close_the_duality_gap(slack: str, margin: bool, p: Problem, C: float) -> None:
    best = svm.solve(p.X, p.y, p.shape, C, slack, margin)
    assert best.primal == pytest.approx(best.dual, abs=1e-6)
    assert best.primal == pytest.approx(svm.primal(best.w, p.X, p.y, p.shape, C, slack, margin), abs=1e-9)
    found = svm.working_set(p.X, p.y, p.shape, C, slack, margin)
    assert found.primal == pytest.approx(best.primal, abs=1e-4)
    assert found.dual <= best.dual + 1e-9
    np.testing.assert_allclose(found.w, best.w, atol=1e-2)


@settings(max_examples=15)
@given(small)
def test_linear_gram_matrix_equals_feature_products(p: Problem) -> None:
    G, pairs = svm.gram(p.X, p.y, p.shape.labels, perceptron.linear)
    d = np.array(
        [model.features(p.X[i], p.y[i], p.shape) - model.features(p.X[i], q, p.shape) for i, q in pairs]
    )
    np.testing.assert_allclose(G, d @ d.T, atol=1e-9)


# -- boosting ---------------------------------------------------------------------------------------------


@settings(max_examples=15)
@given(problems(max_sentences=2, max_tokens=3, max_labels=2, max_attributes=2, values=wholes(1)), st.data())
def test_boosting_bounds_are_ordered(p: Problem, data: st.DataObject) -> None:
    """loose >= tight at its own best step, and both >= the exact Z_k, which is the ratio of the losses."""
    w = data.draw(weights(p.shape, reals(1.0)))
    pi = np.array([0.9 ** len(y) for y in p.y])
    q = boosting.quantities(w, p.X, p.y, p.shape, pi)

    def loss(v: np.ndarray) -> float:
        pairs = zip(p.X, p.y, pi)
        return sum(losses.exp_loss(model.score_sentence(v, x, p.shape), y, a)[0] for x, y, a in pairs)

    assert q.loss == pytest.approx(loss(w))
    assert q.D.sum() == pytest.approx(1)
    for k in range(p.shape.size):
        loose_step, loose_bound = boosting.loose(q, k, cap=5.0)
        tight_step, tight_bound = boosting.tight(q, k, cap=5.0)
        assert tight_bound <= loose_bound + 1e-9
        assert tight_bound <= 1 + 1e-9
        for step, bound in ((loose_step, loose_bound), (tight_step, tight_bound)):
            ratio = boosting.exact(w, p.X, p.y, p.shape, pi, k, step)
            assert ratio <= bound + 1e-9
            moved = w.copy()
            moved[k] += step
            assert ratio == pytest.approx(loss(moved) / loss(w), rel=1e-6)
            assert boosting.tight_bound(q, k, step)[0] >= ratio - 1e-9


@settings(max_examples=15)
@given(problems(max_sentences=2, max_tokens=3, values=reals(1.5)))
def test_ranges_contain_the_feature_values_of_all_paths(p: Problem) -> None:
    for X, y in zip(p.X, p.y):
        low, high = boosting.ranges(X, y, p.shape)
        gold = model.features(X, y, p.shape)
        u = [model.features(X, g, p.shape) - gold for g in product(range(p.shape.labels), repeat=len(y))]
        assert np.all(np.min(u, axis=0) >= low - 1e-9)
        assert np.all(np.max(u, axis=0) <= high + 1e-9)
        ends = slice(p.shape.attributes * p.shape.labels, p.shape.size)  # transitions, starts, ends: attained
        np.testing.assert_allclose(np.max(u, axis=0)[ends], high[ends])


# -- history ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("m", [2, 3])
@settings(max_examples=20)
@given(c=chains(elements=wholes(), constrained=False, min_labels=2, max_labels=3), seed=st.integers(0, 99))
def test_search_is_exact_if_cells_cover_the_history(m: int, c: Chain, seed: int) -> None:
    T, L = c.scores.node.shape
    rng = np.random.default_rng(seed)
    far = {q: rng.integers(-3, 4, (L, L)).astype(float) for q in range(2, m + 1)}
    local = history.local_score(c.scores, far)
    best = history.enumerate_best(local, T, L)
    assert history.decode(local, T, L, m)[0][0] == best
    greedy = history.decode(local, T, L, 1)[0]
    assert greedy[0] <= best
    assert greedy[0] == history.total(local, greedy[1])
    assert history.beam(local, T, L, L**T)[0][0] == best


@settings(max_examples=20)
@given(c=chains(elements=wholes(), constrained=False, min_labels=2, max_labels=2), seed=st.integers(0, 99))
def test_document_features_read_current_and_earlier_labels(c: Chain, seed: int) -> None:
    T, L = c.scores.node.shape
    rng = np.random.default_rng(seed)
    words = ["ab"[i] for i in rng.integers(0, 2, T)]
    repeated = rng.integers(-2, 3, (L, L)).astype(float)
    local = history.local_score(c.scores, None, repeated, words, [("a", 1), ("a", 0)])
    best = history.enumerate_best(local, T, L)
    assert history.decode(local, T, L, max(T, 1))[0][0] == best
    past = sum(repeated[1, y] + repeated[0, y] for y, w in zip(c.gold, words) if w == "a")
    inside = sum(repeated[c.gold[u], c.gold[t]] for t in range(T) for u in range(t) if words[u] == words[t])
    assert history.total(local, c.gold) == pytest.approx(chain.score(c.scores, c.gold) + past + inside)


# -- generative and local baselines -----------------------------------------------------------------------


@given(arrays(float, (3, 4), elements=st.integers(0, 3).map(float)))
def test_smoothing_gives_distributions(n: np.ndarray) -> None:
    for p in (generative.additive(n, 0.5), generative.witten_bell(n)):
        np.testing.assert_allclose(p.sum(axis=1), 1)
        assert np.all(p > 0)
    p = generative.additive(n, 0.5)
    assert np.all(np.diff(p, axis=1)[np.diff(n, axis=1) > 0] > 0)  # more frequent events are more probable


@settings(max_examples=20)
@given(
    st.lists(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 1)), min_size=1, max_size=4), min_size=1)
)
def test_hmm_scores_are_log_joint_probabilities(data: list[list[tuple[int, int]]]) -> None:
    words, y = [[w for w, _ in s] for s in data], [tuple(a for _, a in s) for s in data]
    emit, move, start = (generative.additive(n) for n in generative.hmm_counts(words, y, 2, 3))
    s = generative.hmm_scores(words[0], emit, move, start)
    p = start[y[0][0]] * move[y[0][-1], -1]
    p *= np.prod([emit[a, w] for w, a in zip(words[0], y[0])])
    p *= np.prod([move[a, b] for a, b in zip(y[0], y[0][1:])])
    assert chain.score(s, y[0]) == pytest.approx(np.log(p))
    each = np.eye(3)[words[0]]
    np.testing.assert_allclose(generative.overlapping_scores(each, emit, move, start).node, s.node)
    # Over all words and lengths the probabilities sum to one, over all words of one length to P(length) <= 1.
    total = sum(
        np.exp(chain.log_partition(generative.hmm_scores(w, emit, move, start)))
        for w in product(range(3), repeat=2)
    )
    assert 0 < total < 1


@settings(max_examples=15)
@given(chains(elements=reals(1.5), constrained=False, max_tokens=3, max_labels=3))
def test_memm_is_normalised_per_token(c: Chain) -> None:
    local = generative.memm_scores(c.scores)
    assert chain.log_partition(local) == pytest.approx(0, abs=1e-9)
    value, gradient = generative.memm_loss(c.scores, c.gold)
    assert value == pytest.approx(-chain.score(local, c.gold), abs=1e-9)
    for part, g in enumerate(gradient):
        for cell in np.ndindex(g.shape):
            moved = []
            for h in (1e-6, -1e-6):
                s = Scores(*(a.copy() for a in c.scores))
                s[part][cell] += h
                moved.append(generative.memm_loss(s, c.gold)[0])
            assert g[cell] == pytest.approx((moved[0] - moved[1]) / 2e-6, abs=1e-6)

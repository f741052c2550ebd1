"""Tests of labels that form at most one contiguous span, in training and decoding, against all valid paths."""

from __future__ import annotations

import itertools
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tagwise as tw
from tagwise import _core

from . import constructors
from .corpora import Corpus, constraints, random_corpus
from .online import native, orders, run
from .reference import chain, costs, mira, model, once, scores
from .strategies import Problem, problems, wholes

Groups = tuple[np.ndarray, np.ndarray]


def groups_of(labels: int, free: int = 1) -> Groups:
    """All labels except the last `free` ones occur once. With four or more labels, the first two share a group."""
    group = np.full(labels, once.NONE, dtype=np.uint32)
    group[: labels - free] = np.arange(labels - free)
    begins = np.vstack([~np.eye(labels, dtype=bool), np.ones((1, labels), dtype=bool)])
    if labels >= 4:  # the second continues the first, as I continues B
        group[:2] = 0
        begins[0, 1] = False
    return group, begins


def arranged(gold: list[chain.Path], groups: Groups, seed: int) -> list[chain.Path]:
    """Return the labels sorted so that each group is contiguous, with groups in a random order."""
    rng = np.random.default_rng(seed)
    out = []
    for path in gold:
        rank = rng.permutation(len(groups[0]) + 1)
        out.append(tuple(sorted(path, key=lambda y: (rank[min(int(groups[0][y]), len(groups[0]))], y))))
    assert all(once.is_valid(path, *groups) for path in out)
    return out


def valid_corpus(seed: int, labels: int, groups: Groups, **shape: Any) -> Corpus:
    """Return a random corpus in which the gold labels of a group form one span, in a random order per sentence."""
    c = random_corpus(seed, labels, **shape)
    gold = arranged(c.gold, groups, seed)
    data = c.data.with_gold(np.array([y for path in gold for y in path], dtype=np.uint16))
    layout = _core.Layout.build(data, c.layout.n_attributes, labels, all_pairs=True)
    return c._replace(data=data, layout=layout, gold=gold)


def limited(c: Corpus, w: np.ndarray, sets: np.ndarray, forbidden: np.ndarray) -> list[chain.Scores]:
    bounds = pairwise(c.data.offsets.astype(int))
    return [
        scores(s.node, s.edge, s.start, s.end, sets[a:b], forbidden) for s, (a, b) in zip(c.scores(w), bounds)
    ]


# -- training -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("labels", "size"), [(2, 1.0), (3, 0.0), (4, 1.0), (4, 30.0), (5, 1.0)])
@pytest.mark.parametrize("edge_attributes", [False, True])
def test_log_loss_and_gradient_sum_over_valid_paths(labels: int, edge_attributes: bool, size: float) -> None:
    groups = groups_of(labels)
    shape = {"n": 20, "longest": 5, "edge_attributes": edge_attributes}
    c = valid_corpus(labels, labels, groups, **shape)
    sets, of, forbidden = constraints(c, 3)
    rng = np.random.default_rng(labels)
    weight, w = rng.uniform(0.2, 2, len(c.X)), size * rng.standard_normal(len(c.layout))
    for bound in (False, True):
        edges = np.flatnonzero(forbidden.ravel()).astype(np.uint32) if bound else None
        allowed = (sets, of) if bound else None
        objective = constructors.objective(
            c.data, c.layout, sample_weight=weight, forbidden=edges, allowed=allowed, once=groups
        )
        gradient = np.empty_like(w)
        value = objective.evaluate(w, gradient)
        total, want = 0.0, np.zeros(len(c.layout))
        for i, s in enumerate(limited(c, w, sets, forbidden) if bound else c.scores(w)):
            loss, g = once.log_loss(s, c.gold[i], *groups)
            total += weight[i] * loss
            want += weight[i] * c.pull_back(i, g)
        assert value == pytest.approx(total, rel=1e-6, abs=1e-6)
        np.testing.assert_allclose(gradient, want, atol=1e-4)
        if size == 1.0:  # compare with finite differences of the value
            for k in rng.integers(0, len(w), 5):
                step = np.zeros_like(w)
                step[k] = 1e-5
                ahead, behind = (objective.evaluate(w + d, np.empty_like(w)) for d in (step, -step))
                assert (ahead - behind) / 2e-5 == pytest.approx(gradient[k], abs=1e-3)


def valid_problem(p: Problem, seed: int) -> tuple[Problem, Groups]:
    groups = groups_of(p.shape.labels)
    return p._replace(y=arranged(p.y, groups, seed)), groups


def trajectory(p: Problem, order: list[list[int]], groups: Groups, k: int, cost: Any = None) -> np.ndarray:
    """Reference: a perceptron step against the best valid path, or a MIRA step against the k best ones."""
    w, mask = np.zeros(p.shape.size), model.observed(list(zip(p.X, p.y)), p.shape)
    for i in itertools.chain.from_iterable(order):
        x, y = p.X[i], p.y[i]
        paths = [path for _, path in once.kbest(model.score_sentence(w, x, p.shape), k, *groups)]
        d = np.array([model.features(x, y, p.shape) - model.features(x, g, p.shape) for g in paths if g != y])
        if cost is None:
            w = w + (mask * d[0] if len(d) else 0.0)
        elif len(d):
            w = mira.closest(w, d * mask, np.array([cost(y, g) for g in paths if g != y]))
    return w


@given(
    st.booleans().flatmap(lambda e: problems(values=wholes(), min_labels=2, edge_attributes=e)),
    st.integers(0, 99),
)
def test_perceptron_steps_against_the_best_valid_path(p: Problem, seed: int) -> None:
    p, groups = valid_problem(p, seed)
    order, n = orders(p, 3, seed), native(p)
    online = n.online("perceptron", once=groups)
    run(online, order)
    np.testing.assert_array_equal(online.weights(averaged=False), trajectory(p, order, groups, 1)[n.at])


def test_batch_epochs_decode_valid_paths() -> None:
    groups = groups_of(4)
    c = valid_corpus(1, 4, groups, n=30, longest=5)
    plain, bound = (
        constructors.online(c.data, c.layout, "perceptron", batch=True, once=g) for g in (None, groups)
    )
    w = np.zeros(len(c.layout))
    for _ in range(3):
        paths = [once.kbest(s, 1, *groups)[0][1] for s in c.scores(w)]
        for i, (s, path) in enumerate(zip(c.scores(w), paths)):
            right, guess = chain.counts(s, c.gold[i]), chain.counts(s, path)
            w = w + c.pull_back(i, chain.Scores(*(a - b for a, b in zip(right, guess))))
        bound.epoch()
        plain.epoch()
    np.testing.assert_array_equal(bound.weights(averaged=False), w)
    assert not np.array_equal(plain.weights(averaged=False), w)


@settings(max_examples=15)
@given(problems(values=wholes(), max_sentences=3, min_labels=3), st.integers(1, 6), st.integers(0, 99))
def test_mira_satisfies_margins_of_the_k_best_valid_paths(p: Problem, k: int, seed: int) -> None:
    """One step from zero, where ties are broken alike, satisfies every margin."""
    p, groups = valid_problem(p, seed)
    n = native(p)
    order = [[seed % len(p.X)]]
    online = n.online("mira", k=k, once=groups)
    run(online, order)
    slow = trajectory(p, order, groups, k, costs.accuracy)
    np.testing.assert_allclose(online.weights(averaged=False), slow[n.at], atol=1e-5)


# -- decoding -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("labels", [2, 3, 4, 6])
@pytest.mark.parametrize("k", [1, 4, 40])
@pytest.mark.parametrize("edge_attributes", [False, True])
def test_kbest_lists_are_the_best_valid_paths(labels: int, k: int, edge_attributes: bool) -> None:
    groups = groups_of(labels)
    c = valid_corpus(labels, labels, groups, n=15, longest=5, edge_attributes=edge_attributes)
    w = np.random.default_rng(k).integers(-2, 3, len(c.layout)).astype(np.float32)
    sets, of, forbidden = constraints(c, 3)
    edges = np.flatnonzero(forbidden.ravel()).astype(np.uint32)
    for bound in (False, True):
        scorer = _core.Scorer(c.layout, w, edges if bound else None)
        allowed = (sets, of) if bound else None
        found = _core.once_kbest(scorer, c.data, groups, k, allowed=allowed, n_jobs=1)
        for a, b in zip(found, _core.once_kbest(scorer, c.data, groups, k, allowed=allowed, n_jobs=3)):
            np.testing.assert_array_equal(a, b)
        counts, values, flat = found
        at = score_at = 0
        for i, s in enumerate(
            limited(c, w.astype(float), sets, forbidden) if bound else c.scores(w.astype(float))
        ):
            want = once.kbest(s, k, *groups)
            n, length = int(counts[i]), len(c.gold[i])
            ours = flat[at : at + n * length].reshape(n, length)
            assert [tuple(path) for path in ours.tolist()] == [path for _, path in want]
            np.testing.assert_allclose(values[score_at : score_at + n], [h for h, _ in want], atol=1e-4)
            at, score_at = at + n * length, score_at + n


def test_without_once_labels_results_are_those_of_the_chain() -> None:
    c = random_corpus(5, 5, n=40)
    w = np.random.default_rng(1).standard_normal(len(c.layout)).astype(np.float32)
    scorer = _core.Scorer(c.layout, w)
    none = np.full(5, once.NONE, dtype=np.uint32), np.ones((6, 5), dtype=bool)
    np.testing.assert_array_equal(_core.once_kbest(scorer, c.data, none)[2], scorer.viterbi(c.data))
    for ours, plain in zip(_core.once_marginals(scorer, c.data, none), scorer.marginals(c.data)):
        np.testing.assert_allclose(ours, plain, atol=1e-4)


@pytest.mark.parametrize("labels", [2, 4, 6])
@pytest.mark.parametrize("size", [1.0, 200.0])
def test_marginals_sum_over_valid_paths(labels: int, size: float) -> None:
    groups = groups_of(labels)
    c = valid_corpus(labels, labels, groups, n=15, longest=5)
    w = (size * np.random.default_rng(1).standard_normal(len(c.layout))).astype(np.float32)
    sets, of, forbidden = constraints(c, 5)
    edges = np.flatnonzero(forbidden.ravel()).astype(np.uint32)
    p, log_z = _core.once_marginals(_core.Scorer(c.layout, w, edges), c.data, groups, allowed=(sets, of))
    at = 0
    for i, s in enumerate(limited(c, w.astype(float), sets, forbidden)):
        want_z, paths = once.distribution(s, *groups)
        assert log_z[i] == pytest.approx(want_z, rel=1e-6, abs=1e-6)
        want = np.zeros_like(s.node)
        for path, q in paths.items():
            want[np.arange(len(path)), path] += q
        np.testing.assert_allclose(p[at : at + len(want)], want, atol=1e-5)
        at += len(want)


# -- errors --------------------------------------------------------------------------------------------------


def test_too_many_once_labels_are_rejected() -> None:
    names = [f"L{i}" for i in range(14)]
    X, y = [[f"w{i}" for i in range(14)]], [names]
    with pytest.raises(ValueError, match=r"14 labels may occur once.*12.*predict"):
        tw.CRF(features="S1", max_iter=2, constraints={"once": names}).fit(X, y)
    tagger = tw.CRF(features="S1", max_iter=20).fit(X, y)
    assert tagger.predict(X, constraints={"once": names}) == y

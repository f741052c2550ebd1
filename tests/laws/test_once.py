"""Tests of labels that form at most one contiguous span, in training and decoding, against all valid paths."""

from __future__ import annotations

import itertools
import math
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tagwise as tw
from tagwise import _core
from tagwise.corpus import schemes
from tagwise.scores.constraints import Constraints

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


def test_exponential_loss_sums_over_valid_paths() -> None:
    groups = groups_of(4)
    c = valid_corpus(1, 4, groups, n=15, longest=4)
    w = np.random.default_rng(2).standard_normal(len(c.layout))
    gradient = np.empty_like(w)
    value = constructors.objective(c.data, c.layout, loss="exp", once=groups).evaluate(w, gradient)
    total, want = 0.0, np.zeros(len(c.layout))
    for i, s in enumerate(c.scores(w)):
        loss, g = once.log_loss(s, c.gold[i], *groups)
        total += np.exp(loss) - 1
        want += np.exp(loss) * c.pull_back(i, g)
    assert value == pytest.approx(total, rel=1e-5)
    np.testing.assert_allclose(gradient, want, rtol=1e-4, atol=1e-4 * max(1.0, np.abs(want).max()))


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


@given(problems(values=wholes(), max_sentences=4, min_labels=2), st.integers(0, 99))
def test_perceptron_steps_against_the_best_valid_path(p: Problem, seed: int) -> None:
    p, groups = valid_problem(p, seed)
    order, n = orders(p, 3, seed), native(p)
    online = n.online("perceptron", once=groups)
    run(online, order)
    np.testing.assert_array_equal(online.weights(averaged=False), trajectory(p, order, groups, 1)[n.at])


@settings(max_examples=15)
@given(problems(values=wholes(), max_sentences=3, min_labels=2, edge_attributes=True), st.integers(0, 99))
def test_perceptron_with_edge_attributes(p: Problem, seed: int) -> None:
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


# -- learners -------------------------------------------------------------------------------------------------


def addresses(n: int = 60, seed: int = 0) -> tuple[list[list[str]], list[list[str]]]:
    """Return a number, a street and a town, each once, with words that carry little information."""
    rng = np.random.default_rng(seed)
    X, y = [], []
    for _ in range(n):
        fields = [["NUM"], ["STREET"] * int(rng.integers(1, 3)), ["TOWN"] * int(rng.integers(1, 3))]
        labels = [z for i in rng.permutation(3) for z in fields[i]]
        labels = [*labels, *["O"] * int(rng.integers(0, 3))]
        X.append(
            [f"{z[:1]}{rng.integers(3)}" if rng.random() < 0.5 else f"x{rng.integers(3)}" for z in labels]
        )
        y.append(labels)
    return X, y


RULE: dict[str, Any] = {"once": ["NUM", "STREET", "TOWN"]}
LEARNERS = [
    lambda **p: tw.CRF(features="S1", max_iter=25, **p),
    lambda **p: tw.CRF(features="S1", max_iter=15, loss="exp", **p),
    lambda **p: tw.CRF(features="S1", max_iter=25, class_weight=math.e, **p),
    lambda **p: tw.Perceptron(features="S1", max_iter=4, **p),
    lambda **p: tw.Perceptron(features="S1", max_iter=4, mode="batch", **p),
    lambda **p: tw.Perceptron(features="S1", max_iter=4, parts=2, **p),
    lambda **p: tw.MIRA(features="S1", max_iter=4, **p),
    lambda **p: tw.MIRA(features="S1", max_iter=4, augment=True, **p),
    lambda **p: tw.MIRA(features="S1", max_iter=4, lookback=(1, 2), **p),
    lambda **p: tw.PassiveAggressive(features="S1", max_iter=4, **p),
    lambda **p: tw.AROW(features="S1", max_iter=4, **p),
]


def repeats(labels: list[str]) -> bool:
    begun = [y for a, y in zip([None, *labels], labels) if y != a and y != "O"]
    return len(set(begun)) < len(begun)


@pytest.mark.parametrize("make", LEARNERS)
def test_learners_obey_and_benefit_from_the_constraint(make: Any) -> None:
    train, (test, gold) = addresses(), addresses(seed=1)
    plain, bound = make().fit(*train), make(constraints=RULE).fit(*train)
    assert any(map(repeats, plain.predict(test)))
    assert not any(map(repeats, bound.predict(test)))
    assert not any(map(repeats, plain.predict(test, constraints=RULE)))
    assert not np.array_equal(plain.model_.scorer.weights, bound.model_.scorer.weights)
    assert bound.score(test, gold) > plain.score(test, gold)


def test_probabilities_sum_over_valid_paths() -> None:
    """P of a chunk, of its tokens and of the path, by summing over all valid label sequences."""
    y = [["B-A", "I-A", "O", "B-B"], ["B-B", "O", "B-A", "I-A"], ["O", "B-B", "I-B", "O"]]
    X = [["a", "x", "x", "b"], ["x", "x", "a", "x"], ["x", "b", "x", "x"]]
    crf = tw.CRF(features="S1", l2=0.05, constraints={"scheme": "bio", "once": ["A", "B"]}).fit(X, y)
    rules = Constraints.parse(crf.constraints).rules(crf.classes_)
    sentence = ["x", "a", "b", "x"]
    valid_paths = [
        path
        for path in itertools.product(range(len(crf.classes_)), repeat=4)
        if once.is_valid(path, rules.group, rules.begins)
        and rules.start[path[0]]
        and all(rules.pairs[a, b] for a, b in pairwise(path))
    ]
    lists = crf.predict_kbest([sentence], k=len(valid_paths) + 5, probability=True)[0]
    assert len(lists) == len(valid_paths)
    assert sum(p for _, p in lists) == pytest.approx(1.0, abs=1e-6)
    marginal = crf.predict_marginals([sentence])[0]
    want = np.zeros_like(marginal)
    for labels, p in lists:
        want[np.arange(4), [crf.classes_.index(z) for z in labels]] += p
    np.testing.assert_allclose(marginal, want, atol=1e-5)
    for chunk in [("A", 1, 2), ("A", 1, 3), ("B", 0, 4), ("B", 2, 3), ("A", 0, 1), ("B", 3, 4)]:
        p = sum(p for labels, p in lists if schemes.Span(*chunk) in schemes.spans(labels))
        assert crf.chunk_probability([sentence], [[chunk]])[0][0] == pytest.approx(p, abs=1e-6)
    for labels, p in lists[:3]:
        assert crf.sequence_probability([sentence], [labels])[0] == pytest.approx(p, abs=1e-6)
    twice = ["B-A", "O", "B-A", "O"]
    assert crf.sequence_probability([sentence], [twice])[0] == 0.0
    assert crf.sequence_probability([sentence], [twice], constraints=False)[0] > 0.0
    sure = crf.predict_confidence([sentence])[0]
    assert (sure.labels, sure.probability) == (lists[0][0], pytest.approx(lists[0][1], abs=1e-6))


# -- errors --------------------------------------------------------------------------------------------------


def test_gold_labels_that_repeat_are_reported() -> None:
    X, y = addresses(6)
    y[4] = ["NUM", "O", "NUM", *["O"] * (len(y[4]) - 3)]
    for make in (LEARNERS[0], LEARNERS[3], LEARNERS[8]):
        with pytest.raises(tw.exceptions.TrainingError, match=r"sentence 4.*occur once.*predict"):
            make(constraints=RULE).fit(X, y)


@pytest.mark.parametrize(
    ("params", "what"),
    [
        ({"order": 2}, "order=1"),
        ({"loss": "pointwise_log"}, "loss='log'"),
        ({"loss": "pointwise_exp"}, "loss='log'"),
        ({"optimizer": "sgd"}, "optimizer='auto'"),
    ],
)
def test_losses_without_a_once_recursion_are_rejected(params: dict[str, Any], what: str) -> None:
    X, y = addresses(6)
    with pytest.raises(tw.exceptions.ParameterError, match=f"{what}.*predict"):
        tw.CRF(features="S1", max_iter=2, constraints=RULE, **params).fit(X, y)
    later = tw.CRF(features="S1", max_iter=5, **params).fit(X, y)
    if "order" not in params:
        assert not any(map(repeats, later.predict(X, constraints=RULE)))


def test_too_many_once_labels_are_rejected() -> None:
    names = [f"L{i}" for i in range(14)]
    X, y = [[f"w{i}" for i in range(14)]], [names]
    with pytest.raises(ValueError, match=r"14 labels may occur once.*12.*predict"):
        tw.CRF(features="S1", max_iter=2, constraints={"once": names}).fit(X, y)
    tagger = tw.CRF(features="S1", max_iter=20).fit(X, y)
    assert tagger.predict(X, constraints={"once": names}) == y

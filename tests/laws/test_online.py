"""Tests of online learners against the reference implementations: steps, averages, projections, costs, mixing."""

from __future__ import annotations

import functools
import operator
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from tagwise import _core
from tagwise.corpus import schemes

from .online import (
    EXACT_WEIGHTS,
    KINDS,
    ambiguous,
    corpus,
    learner,
    native,
    orders,
    permutation,
    reference_step,
    run,
    weights_of,
)
from .reference import chain, costs, model, perceptron, qp
from .strategies import Problem, problems, reals, wholes

LABELS = ["O", "B-PER", "I-PER", "B-LOC", "I-LOC"]
#: A program with curvatures below 1 that has too few positive coordinates after eight sweeps.
FLAT = np.array(
    [
        [0.29, -0.21, -0.30, 0.40],
        [-0.42, 0.36, -0.10, 0.13],
        [0.11, 0.39, 0.02, -0.43],
        [0.09, 0.12, 0.31, -0.37],
        [-0.26, -0.15, 0.01, -0.01],
    ]
)
#: Constraints that nearly contradict each other, the first of them twice. Sweeps need some 100,000 rounds.
NARROW = np.array(
    [[2.0, 0, 0, 0], [-2.0, 1 / 64, 0, 0], [2.0, 0, 0, 0], [-2.0, 1 / 64, 0, 0], [1.0, 1.0, 0, 0]]
)


# -- perceptron -------------------------------------------------------------------------------------------


def agree(p: Problem, order: list[list[int]]) -> None:
    """With integers the weights are equal to the bit, and so is the average."""
    mask = model.observed(list(zip(p.X, p.y)), p.shape)
    last, mean = perceptron.perceptron(p.X, p.y, p.shape, order, mask)
    n = native(p)
    online = n.online("perceptron")
    run(online, order)
    np.testing.assert_array_equal(online.weights(averaged=False), last[n.at])
    np.testing.assert_allclose(online.weights(), mean[n.at], rtol=1e-12, atol=1e-12)


@given(problems(values=wholes(), max_sentences=4), st.integers(0, 99))
def test_perceptron_matches_the_reference(p: Problem, seed: int) -> None:
    agree(p, orders(p, 4, seed))


@settings(max_examples=20)
@given(problems(values=wholes(), edge_attributes=True), st.integers(0, 99))
def test_perceptron_with_edge_attributes(p: Problem, seed: int) -> None:
    agree(p, orders(p, 4, seed))


@pytest.mark.parametrize("labels", [2, 9, 16, 17, 45, 70])
def test_perceptron_on_a_corpus(labels: int) -> None:
    p = corpus(labels, labels)
    agree(p, orders(p, 3, labels))


# -- averages, orders, state ------------------------------------------------------------------------------


@pytest.mark.parametrize("name", KINDS)
def test_shuffling_follows_the_documented_generator(name: str) -> None:
    p = corpus(4, 5)
    n = native(p)
    whole, replayed = learner(n, name, seed=7), learner(n, name)
    for epoch in range(4):
        whole.epoch()
        run(replayed, [permutation(len(p.X), 7, epoch)])
        if epoch == 1:
            saved = whole.state()
    resumed = learner(n, name, seed=7)
    resumed.restore(saved)
    assert resumed.epochs == 2
    resumed.epoch()
    resumed.epoch()
    for other in (replayed, resumed):
        for averaged in (True, False):
            assert other.weights(averaged).tobytes() == whole.weights(averaged).tobytes()
    elsewhere = learner(n, name, seed=8)
    for _ in range(4):
        elsewhere.epoch()
    assert elsewhere.weights().tobytes() != whole.weights().tobytes()


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("name", ["perceptron", "mira-5", "pa-1", "arow"])
def test_parameter_mixing(name: str, weighted: bool) -> None:
    """Each shard trains alone from the mean of the last epoch. The average is over all steps of all shards.

    Sentences of a shard keep their weights.
    """
    p = corpus(6, 4)
    n = native(p)
    given = {"sample_weight": weights_of(30)[::-1].copy()} if weighted else {}
    loose = 10 if weighted else 1
    mixed = learner(n, name, shards=3, seed=2, **given)
    parts = [np.arange(s, len(p.X), 3) for s in range(3)]
    state: dict[str, Any] = {"weights": np.zeros(len(n.layout))}
    total = np.zeros(len(n.layout))
    for epoch in range(3):
        mixed.epoch()
        after = []
        for s, part in enumerate(parts):
            alone = learner(n, name, **given)
            alone.restore({k: v for k, v in state.items() if k in ("weights", "variance")})
            alone.epoch(part[permutation(len(part), 2, epoch, s)].astype(np.uint32))
            after.append(alone.state())
            total += alone.steps * alone.weights()
        state = {k: np.mean([a[k] for a in after], axis=0) for k in ("weights", "variance")}
        np.testing.assert_allclose(
            mixed.weights(averaged=False), state["weights"], rtol=loose * 1e-6, atol=loose * 1e-7
        )
        np.testing.assert_allclose(mixed.weights(), total / mixed.steps, rtol=loose * 1e-5, atol=loose * 1e-6)
        state = mixed.state()  # to the bit, so that ties are broken alike in the next epoch
    again = learner(n, name, shards=3, seed=2, **given)
    for _ in range(3):
        again.epoch()
    assert again.weights().tobytes() == mixed.weights().tobytes()


# -- margins ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [k for k in KINDS if k != "perceptron"])
@pytest.mark.parametrize(
    ("augment", "labels", "weighted"),
    [(False, 3, False), (True, 3, False), (True, 17, False), (False, 3, True), (True, 3, True)],
)
def test_every_mira_step_is_the_projection(name: str, augment: bool, labels: int, weighted: bool) -> None:
    """Single steps from equal weights agree. Whole runs cannot be compared, since margins make exact ties.

    Seventeen labels exceed the lanes of a row of costs. A sentence of weight c moves c times as far as one of
    weight 1: w + c (w' - w). C bounds the step before that.
    """
    p = corpus(9, labels, n=10 if labels > 3 else 18 if weighted else 25, longest=5 if labels == 3 else 4)
    n, weight = native(p), weights_of(len(p.X))
    given = {"sample_weight": weight} if weighted else {}
    kind = KINDS[name].get("cost", "accuracy")
    if augment and kind != "accuracy":
        pytest.skip("this cost is no sum over tokens")
    k = KINDS[name].get("k", 1)
    cost = {
        "accuracy": costs.accuracy,
        "root": lambda a, b: costs.accuracy(a, b) ** 0.5,
        "zero_one": lambda a, b: 1.0,
    }[kind]
    mask = model.observed(list(zip(p.X, p.y)), p.shape)
    online, compared, moved = learner(n, name, augment=augment, **given), 0, 0
    seen: set[float] = set()
    for i in functools.reduce(operator.iadd, orders(p, 4 if labels > 3 else 6 if weighted else 5, 1), []):
        w, v = np.zeros(p.shape.size), np.ones(p.shape.size)
        before = online.state()
        w[n.at] = before["weights"]
        if len(before["variance"]):
            v[n.at] = before["variance"]
        tally = online.epoch(np.array([i], dtype=np.uint32))
        x, y = p.X[i], p.y[i]
        s = model.score_sentence(w, x, p.shape)
        if augment:
            s = s._replace(node=s.node + 1 - np.eye(labels)[list(y)])
        ranked = chain.kbest(s, k + 1)
        if ambiguous(ranked, k):
            continue
        guesses = [g for _, g in ranked[:k] if g != y]
        if guesses:
            d = np.array(
                [mask * (model.features(x, y, p.shape) - model.features(x, g, p.shape)) for g in guesses]
            )
            aim, after = reference_step(name, w, d, np.array([cost(y, g) for g in guesses]), v)
            moved += 1
            if weighted:
                far = np.abs(aim - w).max() > 1e-3
                assert tally["updates"] == (far and weight[i] > 0)
                seen |= {float(weight[i])} if far else set()
                aim = w + float(weight[i]) * (aim - w)
                after = 1 / (1 / v + float(weight[i]) * (1 / after - 1 / v))
            w, v = aim, after
        np.testing.assert_allclose(online.weights(averaged=False), w[n.at], atol=1e-4 if weighted else 2e-5)
        if len(before["variance"]):
            np.testing.assert_allclose(online.state()["variance"], v[n.at], rtol=1e-6)
        compared += 1
    assert compared > (40 if labels == 3 else 15)
    assert moved > 10
    assert not weighted or seen == set(EXACT_WEIGHTS)


@given(
    arrays(float, (5, 4), elements=reals(2.0)),
    arrays(float, 5, elements=reals(3.0)),
    st.one_of(st.none(), st.floats(0.1, 2)),
)
@example(FLAT, np.array([0.18, -0.03, -0.09, 0.15, -0.41]), None)
@example(NARROW, np.full(5, 2.0), None)
@example(NARROW, np.full(5, 2.0), 2.0)
def test_small_quadratic_programs_are_solved(d: np.ndarray, b: np.ndarray, limit: float | None) -> None:
    """The optimality conditions hold, and the primal point w is as close to the exact one as they imply.

    Each unit of tau is off by at most eps, so that ||w - w*||^2 <= 2 (D* - D) <= 2 eps (sum tau + sum tau*).
    """
    norm = np.linalg.norm(d, axis=1)
    d, b = d[norm > 0.3], b[norm > 0.3]
    assume(len(d) > 0)
    if limit is None:
        b = np.minimum(b, d @ np.ones(4))  # some point meets every constraint
    G = d @ d.T
    tau = _core.small_program(G, b, limit)
    g, eps = b - G @ tau, 2 * _core.PROGRAM_TOLERANCE * max(1.0, np.abs(b).max())
    used = tau.sum()
    price = max(0.0, g.max()) if limit is not None and used >= limit - 1e-9 else 0.0
    assert np.all(tau >= 0)
    assert limit is None or used <= limit + 1e-9
    assert np.all(g <= price + eps)
    assert np.all(g[tau > 1e-9] >= price - eps)
    exact = qp.vertices(G, b, np.inf if limit is None else limit)
    assert np.linalg.norm((tau - exact) @ d) <= np.sqrt(2 * eps * (used + exact.sum())) + 1e-9


def test_one_constraint_has_the_closed_form() -> None:
    p = corpus(12, 4)
    n = native(p)
    one, many = n.online("mira", limit=0.2), n.online("pa", variant=1, limit=0.2)
    run(one, orders(p, 3, 1))
    run(many, orders(p, 3, 1))
    assert one.weights().tobytes() == many.weights().tobytes()


# -- costs ------------------------------------------------------------------------------------------------


def entities(labels: list[str]) -> tuple[np.ndarray, np.ndarray]:
    """Return the core's table of a label set."""
    types = sorted({schemes.split_label(y)[1] for y in labels if y != "O"})
    kind = [_core.OUTSIDE if y == "O" else types.index(schemes.split_label(y)[1]) for y in labels]
    between = [
        [sum(bit << i for i, bit in enumerate(schemes.boundary(a, b))) for b in labels]
        for a in [*labels, "O"]
    ]
    return np.array(kind, dtype=np.uint16), np.array(between, dtype=np.uint8)


@given(
    st.integers(1, 8).flatmap(lambda T: st.tuples(*[st.lists(st.integers(0, 4), min_size=T, max_size=T)] * 2))
)
def test_costs(pair: tuple[list[int], list[int]]) -> None:
    gold, guess = ([LABELS[y] for y in path] for path in pair)
    table = entities(LABELS)

    def native_cost(name: str, *numbers: float) -> float:
        cost = _core.Cost(name, numbers, table)
        return _core.sequence_cost(cost, *(np.array(p, dtype=np.uint16) for p in pair))

    assert native_cost("accuracy") == costs.accuracy(gold, guess)
    assert native_cost("root") == costs.accuracy(gold, guess) ** 0.5
    assert native_cost("zero_one") == float(gold != guess)
    assert native_cost("f1", 7.0) == pytest.approx(costs.f1(gold, guess, 7.0))
    assert native_cost("precision_recall", 0.3) == pytest.approx(costs.precision_recall(gold, guess, 0.3))
    assert native_cost("weighted_accuracy", 0.5, 2.0, 1.5) == pytest.approx(
        costs.weighted_accuracy(gold, guess, 0.5, 2.0, 1.5)
    )


@given(
    st.lists(
        st.sampled_from(["O", "B-A", "I-A", "E-A", "S-A", "B-B", "I-B", "E-B", "S-B"]), min_size=1, max_size=8
    )
)
def test_entity_costs_equal_those_of_the_metrics(labels: list[str]) -> None:
    names = ["O", "B-A", "I-A", "E-A", "S-A", "B-B", "I-B", "E-B", "S-B"]
    path = np.array([names.index(y) for y in labels], dtype=np.uint16)
    cost = _core.Cost("precision_recall", [0.0], entities(names))
    missed = _core.sequence_cost(cost, path, np.zeros_like(path))
    assert missed == len(schemes.spans(labels))


def test_cost_functions_in_python() -> None:
    p = corpus(20, 4)
    n = native(p)
    seen = []

    def wrong(gold: list[int], guess: list[int]) -> float:
        seen.append((gold, guess))
        return float(sum(a != b for a, b in zip(gold, guess)))

    ours, theirs = n.online("mira", k=3), n.online("mira", k=3, cost=wrong)
    ours.epoch()
    theirs.epoch()
    assert ours.weights().tobytes() == theirs.weights().tobytes()
    assert all(tuple(gold) in p.y and gold != guess for gold, guess in seen)

    def broken(gold: list[int], guess: list[int]) -> float:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        n.online("mira", cost=broken).epoch()
    with pytest.raises(ValueError, match="negative"):
        n.online("mira", cost=lambda gold, guess: -1.0).epoch()


# -- reports of an epoch, weights of sentences, errors ----------------------------------------------------


def test_epochs_report_errors_and_updates() -> None:
    p = corpus(30, 3)
    n = native(p)
    online = n.online("perceptron", batch=True)
    first = online.epoch()
    guess = [(0,) * len(y) for y in p.y]  # all weights are 0: the lowest label everywhere
    assert first["sentences"] == len(p.y)
    assert first["tokens"] == sum(map(len, p.y))
    assert first["wrong_tokens"] == sum(a != b for y, g in zip(p.y, guess) for a, b in zip(y, g))
    assert first["wrong_sentences"] == first["updates"] == sum(y != g for y, g in zip(p.y, guess))
    assert first["loss"] == 0.0
    assert online.epoch()["loss"] > 0.0


def test_values_outside_their_domain_are_rejected() -> None:
    p = corpus(32, 3, n=3)
    n = native(p)
    for parameters in (
        {"kind": "winnow"},
        {"kind": "mira", "k": 0},
        {"kind": "mira", "limit": -1.0},
        {"kind": "arow", "gamma": 0.0},
        {"kind": "mira", "batch": True},
        {"kind": "mira", "cost": "f1", "numbers": [10.0]},
        {"kind": "mira", "cost": "hinge"},
        {"kind": "mira", "cost": "root", "augment": True},
        {"kind": "perceptron", "sample_weight": np.ones(2, dtype=np.float32)},
        {"kind": "perceptron", "forbidden": np.array([99], dtype=np.uint32)},
    ):
        with pytest.raises(ValueError, match=r"\w+"):
            n.online(**parameters)  # type: ignore[arg-type]
    online = n.online("perceptron", average=False)
    with pytest.raises(ValueError, match="average"):
        online.weights()
    with pytest.raises(ValueError, match="sentence 9"):
        online.epoch(np.array([9], dtype=np.uint32))
    with pytest.raises(ValueError, match="weights"):
        online.restore({"weights": np.zeros(3)})
    n_weights = len(online.state()["weights"])
    for part in ("weights", "sums", "variance"):  # weights alone are enough, but all of them
        for size in (0, n_weights - 1, n_weights + 1):
            state = {"weights": np.zeros(n_weights), part: np.ones(size)}
            if size or part == "weights":
                with pytest.raises(
                    ValueError, match=f"{part} of a state need {n_weights} finite numbers, got {size}"
                ):
                    online.restore(state)
            else:
                online.restore(state)


@pytest.mark.parametrize(
    ("part", "value", "good"),
    [
        ("variance", 0.0, False), ("variance", -1.0, False), ("variance", 1e-300, True), ("variance", np.inf, False),
        ("sums", np.nan, False), ("weights", np.inf, False), ("steps", -1.0, False), ("steps", np.inf, False),
        ("steps", 0.0, True),
    ],
)  # fmt: skip
def test_invalid_training_states_are_rejected(part: str, value: float, good: bool) -> None:
    """Numbers must be finite, steps at least 0, variances above 0."""
    n = native(corpus(1, 3, n=5))
    online = n.online("arow")
    state = online.state()
    if part == "steps":
        state[part] = value
    else:
        state[part] = np.full(len(n.layout), 0.5)
        state[part][2] = value
    if good:
        online.restore(state)
        np.testing.assert_array_equal(online.state()[part], state[part])
    else:
        with pytest.raises(ValueError, match=r"finite numbers|steps >= 0 and variances > 0"):
            online.restore(state)

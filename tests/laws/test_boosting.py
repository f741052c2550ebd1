"""Tests of boosting against its reference implementation and brute force: bounds, steps, losses, cached sums."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

from tagwise import _core

from . import constructors
from .online import Native, corpus, native
from .reference import boosting, chain, enumeration, losses, model
from .strategies import Problem, problems, reals

BOUNDS = ["loose", "tight", "exact"]
values = st.one_of(
    st.just(0.0), st.sampled_from([1.0, -1.0, 0.5, 2.0]), reals(2.0).filter(lambda v: abs(v) > 0.1)
)
gentle = st.one_of(st.just(0.0), st.sampled_from([1.0, -1.0, 0.5]), reals(1.0).filter(lambda v: abs(v) > 0.1))


def booster(n: Native, **parameters: Any) -> _core.Boosting:
    return constructors.boosting(n.data, n.layout, **parameters)


def reference_round(p: Problem, n: Native, w: np.ndarray, weight: np.ndarray | None = None) -> boosting.Round:
    """Return the reference quantities at the native weights."""
    return boosting.quantities(
        n.dense(p, w), as_float32(p.X), p.y, p.shape, np.ones(len(p.X)) if weight is None else weight
    )


def as_float32(X: list[np.ndarray]) -> list[np.ndarray]:
    """Round attribute values to single precision, as the core stores them."""
    return [x.astype(np.float32).astype(float) for x in X]


def learnable(b: _core.Boosting, least: float = -12.0) -> bool:
    return bool(np.isfinite(b.log_loss)) and b.log_loss > least


# -- one state ------------------------------------------------------------------------------------------------


@given(problems(values=values), st.integers(0, 9))
def test_cached_quantities_match_the_reference(p: Problem, seed: int) -> None:
    n, rng = native(p), np.random.default_rng(seed)
    w, weight = rng.normal(size=len(n.layout)), rng.uniform(0.1, 2.0, len(p.X))
    b = booster(n, start=w, sample_weight=weight)
    q = reference_round(p, n, w, weight)
    assert b.log_loss == pytest.approx(np.log(q.loss), abs=1e-6)
    np.testing.assert_allclose(b.slopes(), q.m.sum(axis=0)[n.at], rtol=1e-6, atol=1e-9)
    full = n.dense(p, w)
    want = [
        losses.minus_log_p(model.score_sentence(full, x, p.shape), y) for x, y in zip(as_float32(p.X), p.y)
    ]
    np.testing.assert_allclose(b.losses(), want, rtol=1e-9, atol=1e-9)


@given(problems(values=values), st.integers(0, 9), st.sampled_from([0.0, 0.01]))
def test_loose_and_tight_bounds_match_the_reference(p: Problem, seed: int, eps: float) -> None:
    n = native(p)
    w = np.random.default_rng(seed).normal(size=len(n.layout))
    b = booster(n, start=w, bound="tight", max_step=5.0, smoothing=eps)
    q = reference_round(p, n, w)
    step, z = b.bounds("loose")
    for i, k in enumerate(n.at):
        want_step, want = boosting.loose(q, int(k), eps, 5.0)
        assert z[i] == pytest.approx(want, rel=1e-6, abs=1e-8)
        if want < 1 - 1e-6:
            assert step[i] == pytest.approx(want_step, rel=1e-4, abs=1e-4)
    if eps == 0:
        step, z = b.bounds("tight")
        for i, k in enumerate(n.at):
            want_step, want = boosting.tight(q, int(k), 5.0)
            assert z[i] == pytest.approx(want, rel=1e-6, abs=1e-8)
            assert boosting.tight_bound(q, int(k), step[i])[0] == pytest.approx(want, rel=1e-6, abs=1e-8)


@pytest.mark.parametrize("cap", [0.05, 0.13, 0.4, 0.7, 1.3, 2.6])
def test_steps_are_at_most_the_maximum(cap: float) -> None:
    """No bound gives longer steps, and longer ones are cut to the maximum, from any start of the search."""
    n = native(corpus(3, 4, n=30, longest=6))
    w = np.random.default_rng(1).normal(size=len(n.layout))
    for bound in ("loose", "tight", "exact"):
        step, _ = booster(n, start=w, bound=bound, max_step=cap, smoothing=0.0).bounds(bound)
        assert np.abs(step).max() == pytest.approx(cap, rel=1e-12)


@settings(max_examples=20)
@given(problems(max_tokens=3, max_sentences=2, values=values), st.integers(0, 9))
def test_exact_z_matches_enumeration(p: Problem, seed: int) -> None:
    """Z of the exact bound equals the sum over all label sequences, before and after the step."""
    n = native(p)
    w = np.random.default_rng(seed).normal(size=len(n.layout))
    b = booster(n, start=w, bound="exact", max_step=3.0)
    step, z = b.bounds("exact")

    def loss(weights: np.ndarray) -> float:
        full, total = n.dense(p, weights), 0.0
        for x, y in zip(as_float32(p.X), p.y):
            s = model.score_sentence(full, x, p.shape)
            total += np.exp(enumeration.log_partition(s) - chain.score(s, y)) - 1
        return total

    before = loss(w)
    assert np.log(before) == pytest.approx(b.log_loss, abs=1e-7)
    for i in range(len(w)):
        moved = w.copy()
        moved[i] += step[i]
        assert loss(moved) / before == pytest.approx(z[i], rel=1e-6, abs=1e-7)


# -- rounds ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("bound", ["loose", "tight"])
@given(p=problems(values=gentle), eps=st.sampled_from([0.0, 0.02]))
def test_rounds_choose_the_smallest_bound(bound: str, p: Problem, eps: float) -> None:
    """Round by round, the chosen feature has the smallest reference bound, up to rounding.

    The reference implementation computes the share of wrong sequences at an end of the range as a difference
    of sums, with an error of rounding / loss, and multiplies it by e^{step * range}. Steps, values and the
    decrease of the loss are therefore kept small.
    """
    n = native(p)
    b = booster(n, bound=bound, smoothing=eps if bound == "loose" else 0.0, max_step=1.0)
    for _ in range(6):
        if not learnable(b, -6.0):
            break
        q = reference_round(p, n, b.weights())
        if bound == "loose":
            z = [boosting.loose(q, int(k), eps, 1.0)[1] for k in n.at]
        else:
            z = [boosting.tight(q, int(k), 1.0)[1] for k in n.at]
        done = b.run(1)
        if len(done["feature"]) == 0:
            assert min(z) > 1 - 1e-9
            break
        assert done["bound"][0] == pytest.approx(min(z), rel=1e-6, abs=1e-8)
        assert z[int(done["feature"][0])] == pytest.approx(min(z), rel=1e-6, abs=1e-8)


@pytest.mark.parametrize("bound", ["tight", "exact"])
@pytest.mark.parametrize("value", [1.0, -1.0])
def test_features_absent_from_or_on_all_wrong_paths(bound: str, value: float) -> None:
    """With sentences of one token, two labels and an attribute each, every wrong path is at one end of the range.

    A step of 1 leaves e^-1 of the initial loss w_i of sentence i: the heaviest sentence comes first, then the
    next.
    """
    weight = np.linspace(1.0, 0.6, 12)
    n = native(
        Problem(model.Shape(12, 2), [value * row[None] for row in np.eye(12)], [(i % 2,) for i in range(12)])
    )
    b = booster(n, bound=bound, smoothing=0.0, max_step=1.0, sample_weight=weight)
    left = weight.sum()
    for i, w in enumerate(weight):
        done = b.run(1)
        assert n.at[done["feature"][0]] == 2 * i + i % 2
        assert done["step"][0] == pytest.approx(value)
        assert done["bound"][0] == pytest.approx(1 - w * (1 - np.exp(-1)) / left)
        left -= w * (1 - np.exp(-1))
    assert b.log_loss == pytest.approx(np.log(left))


@pytest.mark.parametrize("bound", ["loose", "tight"])
@pytest.mark.parametrize("smoothing", [0.0, 0.01])
def test_cached_gains_choose_like_a_full_scan(bound: str, smoothing: float) -> None:
    """Round by round the choice is that of a full scan, though only some gains are recomputed."""
    b = booster(native(corpus(3, 5, n=60, longest=9)), bound=bound, smoothing=smoothing, max_step=5.0)
    for _ in range(200):
        if not learnable(b):
            break
        (_, z), slopes = b.bounds(bound), b.slopes()
        done = b.run(1)
        assert done["bound"][0] == pytest.approx(z.min(), rel=1e-9)
        assert done["slope"][0] == pytest.approx(abs(slopes[done["feature"][0]]), rel=1e-9)
    assert b.rounds > 50
    assert b.selection[0] < 0.5 * b.rounds * len(z)


@pytest.mark.parametrize("bound", BOUNDS)
@pytest.mark.parametrize("line_search", [False, True])
@pytest.mark.parametrize(
    ("several", "overlap", "joint"), [(1, False, False), (4, False, False), (4, True, False), (4, True, True)]
)
@settings(max_examples=8)
@given(p=problems(values=values, max_sentences=4), eps=st.sampled_from([0.0, 0.02]))
def test_loss_never_rises_and_stays_below_the_bounds(
    bound: str, line_search: bool, several: int, overlap: bool, joint: bool, p: Problem, eps: float
) -> None:
    b = booster(
        native(p),
        bound=bound,
        line_search=line_search,
        smoothing=eps,
        max_step=4.0,
        features_per_round=several,
        overlap=overlap,
        joint=joint,
    )
    before = b.log_loss
    done = b.run(12)
    assert np.all(np.abs(done["step"]) <= 4.0)
    log_loss = np.concatenate([[before], done["log_loss"]])
    assert np.all(np.diff(log_loss[log_loss > -25]) <= 1e-9)  # below, moments of edges are rounding errors
    # N after the steps of a round <= N before it times (1 - sum of (1 - Z)): the product over rounds
    # dominates the loss.
    product = before
    for r in np.unique(done["round"]):
        of = done["round"] == r
        product += np.log(max(1 - np.sum(1 - done["bound"][of]), 1e-300))
        if log_loss[1:][of][-1] > -12:  # beyond, 1 - Z has too few digits
            assert log_loss[1:][of][-1] <= product + 1e-6


@pytest.mark.parametrize("bound", ["loose", "tight"])
@pytest.mark.parametrize("line_search", [False, True])
@pytest.mark.parametrize(
    ("overlap", "joint", "valued"),
    [(False, False, True), (True, False, True), (True, True, True), (True, True, False)],
)
def test_cached_sums_equal_a_recomputation(
    bound: str, line_search: bool, overlap: bool, joint: bool, valued: bool
) -> None:
    p = corpus(3, 5, n=60, longest=9)
    rng = np.random.default_rng(0)
    if valued:
        p = Problem(p.shape, [x * rng.choice([1.0, -0.5, 2.0], x.shape) for x in p.X], p.y)
    n = native(p)
    options = {
        "bound": bound,
        "line_search": line_search,
        "smoothing": 1e-3,
        "features_per_round": 3,
        "overlap": overlap,
        "joint": joint,
    }
    b = booster(n, **options)
    done = b.run(400 if valued else 60)
    assert len(np.unique(done["feature"])) > 50
    again = booster(n, start=b.weights(), **options)
    assert b.log_loss == pytest.approx(again.log_loss, abs=1e-10)
    np.testing.assert_allclose(b.losses(), again.losses(), atol=1e-10)
    np.testing.assert_allclose(b.slopes(), again.slopes(), atol=1e-9)
    for bound_ in ["loose"] if bound == "loose" else BOUNDS[:2]:
        np.testing.assert_allclose(b.bounds(bound_)[1], again.bounds(bound_)[1], atol=1e-9)
    # Both continue alike. Joint steps are computed in single precision.
    ours, theirs = (other.run(20)["log_loss"] for other in (b, again))
    if joint:
        assert ours[-1] == pytest.approx(theirs[-1], abs=1e-3)
    else:
        np.testing.assert_allclose(ours, theirs, atol=1e-6)


@pytest.mark.parametrize("loss", ["exp", "pointwise_exp"])
def test_joint_steps_reach_the_minimum(loss: str) -> None:
    """With all features in every round, rounds minimise the loss, whose minimum SciPy finds."""
    rng = np.random.default_rng(3)
    X = [rng.integers(0, 2, (T, 3)).astype(float) for T in (1, 2, 2, 3) * 6]
    y = [tuple(rng.integers(0, 2, len(x)).tolist()) for x in X]  # random labels, which cannot be learnt
    p = Problem(model.Shape(3, 2), X, y)
    n = native(p)
    b = booster(
        n,
        bound="tight",
        loss=loss,
        joint=True,
        overlap=True,
        features_per_round=len(n.layout),
        smoothing=1e-3,
        max_step=2.0,
    )
    losses_of = {"exp": losses.exp_loss, "pointwise_exp": losses.pointwise_exp_loss}[loss]

    def objective(w: np.ndarray) -> tuple[float, np.ndarray]:
        full, total, gradient = n.dense(p, w), 0.0, np.zeros(p.shape.size)
        for x, y in zip(as_float32(p.X), p.y):
            value, of_scores = losses_of(model.score_sentence(full, x, p.shape), y)
            total += value - (len(y) if loss == "pointwise_exp" else 0)
            gradient += model.pull_back(of_scores, x, p.shape)
        return np.log(total), gradient[n.at] / total

    least = minimize(objective, np.zeros(len(n.layout)), jac=True, method="L-BFGS-B").fun
    first = b.log_loss
    assert first == pytest.approx(objective(np.zeros(len(n.layout)))[0], abs=1e-9)
    b.run(15)
    assert b.log_loss == pytest.approx(objective(b.weights())[0], abs=1e-9)
    assert b.log_loss >= least - 1e-6
    assert b.log_loss - least < 0.01 * (first - least)


def test_features_of_one_round_share_no_sentence() -> None:
    p = corpus(2, 4, n=80)
    n = native(p)
    b = booster(n, bound="tight", features_per_round=5)
    done = b.run(30)
    a = n.layout.arrays()
    owner = np.repeat(np.arange(n.layout.n_attributes), np.diff(a["node_ptr"].astype(int)))
    ptr, ids, _ = n.data.node()
    offsets = n.data.offsets.astype(int)
    has = np.zeros((len(p.X), n.layout.n_attributes), dtype=bool)
    for s in range(len(p.X)):
        has[s, ids[int(ptr[offsets[s]]) : int(ptr[offsets[s + 1]])]] = True
    several = 0
    for r in np.unique(done["round"]):
        features = done["feature"][done["round"] == r]
        several += len(features) > 1
        times = np.zeros(len(p.X), dtype=int)
        for k in features:
            times += has[:, owner[k]] if k < n.layout.n_node else 1
        assert times.max() <= 1
    assert several > 5


# -- invariances ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("bound", ["loose", "tight"])
@pytest.mark.parametrize(
    ("rounds", "options"),
    [(150, {"features_per_round": 2}), (30, {"features_per_round": 9, "overlap": True, "joint": True})],
)
def test_results_do_not_depend_on_threads_or_block_sizes(
    bound: str, rounds: int, options: dict[str, Any]
) -> None:
    p = corpus(5, 6, n=300, longest=12)
    n = native(p)
    runs = []
    for jobs, parts in ((1, [rounds]), (2, [rounds]), (4, [1, 9, rounds - 10])):
        b = booster(n, bound=bound, n_jobs=jobs, smoothing=1e-3, candidates=0.5, seed=3, **options)
        done = [b.run(part) for part in parts]
        runs.append((np.concatenate([d["feature"] for d in done]), b.weights(), b.log_loss, b.slopes()))
    for run in runs[1:]:
        for x, y in zip(runs[0], run):
            np.testing.assert_array_equal(x, y)


@pytest.mark.parametrize("bound", ["loose", "tight"])
@pytest.mark.parametrize("several", [1, 6])
def test_long_sentences_stay_finite_and_are_learnt(bound: str, several: int) -> None:
    """400 tokens of 6 labels: e^l = e^716 at zero weights overflows a float."""
    rng = np.random.default_rng(0)
    lengths = [400, 380, 3, 2, 30]
    y = [tuple(rng.integers(0, 6, T).tolist()) for T in lengths]
    X = [np.eye(6)[list(path)] for path in y]
    n = native(Problem(model.Shape(6, 6), X, y))
    b = booster(n, bound=bound, features_per_round=several, overlap=True)
    assert b.log_loss == pytest.approx(400 * np.log(6), rel=1e-6)
    done = b.run(300)
    assert np.all(np.isfinite(done["log_loss"]))
    assert np.all(np.diff(done["log_loss"]) <= 1e-9)
    again = booster(n, bound=bound, start=b.weights())
    assert b.log_loss == pytest.approx(again.log_loss, abs=1e-8)
    np.testing.assert_allclose(b.slopes(), again.slopes(), atol=1e-7)
    assert done["log_loss"][-1] < 0.7 * 400 * np.log(6)


def test_huge_values_fall_back_to_log_space() -> None:
    """With scores of thousands the scaled recursions underflow, but the sums must not."""
    X = [np.array([[1000.0, 0.0], [0.0, -1000.0], [3.0, 1.0]]), np.array([[-500.0, 700.0]])]
    p = Problem(model.Shape(2, 3), X, [(0, 1, 2), (1,)])
    n = native(p)
    rng = np.random.default_rng(1)
    b = booster(n, bound="tight", start=rng.normal(size=len(n.layout)) * 0.5, max_step=0.5)
    before = b.log_loss
    done = b.run(50)
    assert np.isfinite(before)
    assert np.all(np.isfinite(done["log_loss"]) | (done["log_loss"] == -np.inf))
    assert np.all(np.diff(np.concatenate([[before], done["log_loss"]])) <= 1e-9)


def test_invalid_input_is_rejected() -> None:
    n = native(corpus(1, 3, n=5))
    with pytest.raises(ValueError, match="bound"):
        booster(n, bound="none")
    with pytest.raises(ValueError, match="sample_weight"):
        booster(n, sample_weight=np.array([1.0, -1.0, 1.0, 1.0, 1.0]))
    with pytest.raises(ValueError, match="weights"):
        booster(n, start=np.zeros(3))
    with pytest.raises(ValueError, match="candidates"):
        booster(n, candidates=0.0)
    with pytest.raises(ValueError, match="tight"):
        booster(n).bounds("tight")

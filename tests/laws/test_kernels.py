"""Tests of kernel learners and models against the reference implementations, the primal, and each other."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tagwise as tw
from tagwise import _core
from tagwise.scores.kernels import KernelFunction, KernelScorer, TokenMatrix

from . import constructors
from .kernel_learners import TWIN, KernelProblem, random_sparse
from .online import close_the_gap, corpus, orders, run
from .reference import chain, perceptron, svm
from .strategies import Problem, problems, wholes

LINEAR, POLY, RBF = KernelFunction("linear"), KernelFunction("poly", 2, 1.0), KernelFunction("rbf", gamma=0.3)
CUBIC, FLAT = KernelFunction("poly", 3, 0.5), KernelFunction("poly", 2, 1.0, 0.05)
BIG = 1 << 24


class Rules:
    """Random constraints that every gold path satisfies."""

    def __init__(self, p: Problem, seed: int) -> None:
        rng, L = np.random.default_rng(seed), p.shape.labels
        gold = [label for path in p.y for label in path]
        self.offsets = np.cumsum([0, *map(len, p.y)])
        self.pairs = rng.random((L, L)) < 0.6
        for path in p.y:
            self.pairs[path[:-1], path[1:]] = True
        self.sets = rng.random((len(gold), L)) < 0.7
        self.sets[np.arange(len(gold)), gold] = True

    def native(self) -> dict[str, Any]:
        forbidden = np.flatnonzero(~self.pairs.ravel()).astype(np.uint32)
        return {
            "forbidden": forbidden,
            "allowed": (self.sets, np.arange(len(self.sets), dtype=np.uint32)),
        }

    def is_valid(self, i: int, path: chain.Path) -> bool:
        at = self.offsets[i] + np.arange(len(path))
        return bool(self.sets[at, list(path)].all() and self.pairs[list(path[:-1]), list(path[1:])].all())


# -- the dual perceptron ----------------------------------------------------------------------------------


@pytest.mark.parametrize("kernel", [LINEAR, POLY], ids=lambda k: k.name)
@pytest.mark.parametrize("form", ["rows", "expanded"])
@given(p=problems(values=wholes(), max_sentences=4), seed=st.integers(0, 99))
def test_dual_perceptron_matches_the_reference(
    kernel: KernelFunction, form: str, p: Problem, seed: int
) -> None:
    """With integers the betas are equal to the bit, and so are the averages."""
    order = orders(p, 4, seed)
    twins = perceptron.dual_perceptron(p.X, p.y, p.shape.labels, order, TWIN[kernel.name])
    k = KernelProblem(p)
    learner = k.perceptron(kernel, form=form)
    run(learner, order)  # type: ignore[arg-type]
    for twin, averaged in zip(twins, (False, True)):
        beta, transition, start, end = k.split(learner.weights(averaged))
        np.testing.assert_allclose(beta, k.shared(twin.beta), atol=1e-12)
        np.testing.assert_allclose(transition, twin.transition, atol=1e-12)
        np.testing.assert_allclose(start, twin.start, atol=1e-12)
        np.testing.assert_allclose(end, twin.end, atol=1e-12)


@pytest.mark.parametrize("form", ["rows", "expanded"])
@pytest.mark.parametrize("labels", [3, 17])
def test_linear_kernel_equals_the_primal(form: str, labels: int) -> None:
    """The steps are equal, and sum_s beta_s x_s is the primal's weight of every attribute, last and averaged."""
    p = corpus(labels, labels)
    k = KernelProblem(p)
    primal = constructors.online(
        k.data, _core.Layout.build(k.data, k.n, labels, all_pairs=True), "perceptron", seed=3
    )
    dual = k.perceptron(LINEAR, form=form, seed=3)
    for _ in range(4):
        a, b = primal.epoch(), dual.epoch()
        assert (a["updates"], a["wrong_tokens"]) == (b["updates"], b["wrong_tokens"])
    x = np.array(k.distinct)[:, [int(k.vocabulary.text(a)) for a in range(k.n)]]  # [U, A]
    for averaged in (False, True):
        w = primal.weights(averaged)
        beta, transition, start, end = k.split(dual.weights(averaged))
        tail = np.concatenate([transition.ravel(), start, end])
        np.testing.assert_allclose((x.T @ beta).ravel(), w[: k.n * labels], atol=1e-9)
        np.testing.assert_allclose(tail, w[k.n * labels :], atol=1e-9)
    assert dual.n_support == np.count_nonzero(k.split(dual.weights(False))[0].any(axis=1))


def test_cache_size_does_not_change_results() -> None:
    k = KernelProblem(random_sparse(1))
    found = []
    for size in (1, 1 << 12, BIG):
        learner = k.perceptron(RBF, form="rows", cache_bytes=size)
        for _ in range(3):
            learner.epoch()
        found.append(learner.weights())
    np.testing.assert_array_equal(found[0], found[1])
    np.testing.assert_array_equal(found[0], found[2])


def test_budget_limits_the_support_and_a_large_one_has_no_effect() -> None:
    k = KernelProblem(random_sparse(2))
    free = k.perceptron(POLY)
    wide = k.perceptron(POLY, budget=len(k.distinct))
    tight = k.perceptron(POLY, budget=7)
    for _ in range(3):
        for learner in (free, wide, tight):
            learner.epoch()
        assert tight.n_support <= 7 < free.n_support
    np.testing.assert_array_equal(free.weights(), wide.weights())
    for averaged in (False, True):
        beta = k.split(tight.weights(averaged))[0]
        assert 0 < np.count_nonzero(beta.any(axis=1)) <= 7
    with pytest.raises(ValueError, match="budget"):
        k.perceptron(POLY, budget=0)


# -- the kernel SVM ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("kernel", [LINEAR, POLY, RBF], ids=lambda k: k.name)
@pytest.mark.parametrize("slack", ["instance", "sequence"])
@settings(max_examples=8)
@given(
    p=problems(max_sentences=2, max_tokens=3, max_labels=3, max_attributes=3), seed=st.integers(0, 1 << 16)
)
def test_constrained_svm_solves_the_program_over_valid_paths(
    kernel: KernelFunction, slack: str, p: Problem, seed: int
) -> None:
    """With forbidden transitions and allowed labels the optimum is over the valid paths, without other alphas."""
    limits = Rules(p, seed)
    G, pairs = svm.gram(p.X, p.y, p.shape.labels, TWIN[kernel.name])
    keep = np.array([limits.is_valid(i, path) for i, path in pairs], dtype=bool)
    best = 0.0
    if keep.any():
        G, sentence = G[np.ix_(keep, keep)], np.array([i for i, _ in pairs])[keep]
        alpha = svm._dual(G / 4, np.ones(len(sentence)), sentence, 0.6, slack)
        best = float(alpha.sum() - alpha @ G @ alpha / 8)
    k = KernelProblem(p)
    common: dict[str, Any] = {"c": 0.6, "slack": slack, "tolerance": 1e-6, **limits.native()}
    solvers: list[Any] = [
        k.svm(kernel, form=form, **common) for form in (("rows",) if kernel is RBF else ("rows", "expanded"))
    ]
    if kernel is LINEAR:
        layout = _core.Layout.build(k.data, k.n, k.labels, all_pairs=True)
        solvers.append(constructors.svm(k.data, layout, **common))
    for solver in solvers:
        state = close_the_gap(solver, 1e-5)
        assert state["dual"] == pytest.approx(best, abs=1e-4)
        assert state["primal"] == pytest.approx(best, abs=1e-4)
    if kernel is LINEAR:
        for i, path, _ in solvers[-1].alphas():
            assert limits.is_valid(i, tuple(path.tolist()))


def test_svm_results_do_not_depend_on_threads_or_cache() -> None:
    k = KernelProblem(random_sparse(6))
    found = []
    for n_jobs, size in ((1, BIG), (3, BIG), (2, 1)):
        solver = k.svm(RBF, n_jobs=n_jobs, cache_bytes=size)
        states = [solver.epoch() for _ in range(3)]
        found.append((states, solver.weights().tolist()))
    assert found[0] == found[1] == found[2]


# -- models of support tokens -----------------------------------------------------------------------------


def value(kernel: KernelFunction, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    if kernel.name == "rbf":
        return perceptron.rbf(kernel.gamma)(a, b)
    return a @ b.T if kernel.name == "linear" else (kernel.coef + kernel.gamma * a @ b.T) ** kernel.degree


def random_model(
    k: KernelProblem, kernel: KernelFunction, seed: int, form: str = "auto"
) -> tuple[np.ndarray, KernelScorer]:
    rng = np.random.default_rng(seed)
    beta = rng.normal(size=(len(k.distinct), k.labels)) * (rng.random((len(k.distinct), k.labels)) < 0.3)
    w = np.concatenate([rng.normal(size=len(k.layout)), beta.ravel()])
    base = _core.Scorer(k.layout, w[: len(k.layout)].astype(np.float32))
    native = _core.KernelScorer.of_training(base, kernel.spec(k.n, form), k.data, beta.ravel())
    return w, KernelScorer(base, native, kernel)


@pytest.mark.parametrize("kernel", [LINEAR, POLY, CUBIC, FLAT, RBF], ids=lambda k: f"{k.name}{k.degree}")
@pytest.mark.parametrize("values", [False, True])
@pytest.mark.parametrize("form", ["rows", "expanded"])
def test_scores_are_sums_over_support_tokens(kernel: KernelFunction, values: bool, form: str) -> None:
    if form == "expanded" and kernel in (CUBIC, RBF):
        with pytest.raises(ValueError, match="written out"):
            random_model(KernelProblem(random_sparse(3)), kernel, 0, form)
        return
    p, q = random_sparse(3, values=values), random_sparse(4, values=values)
    k = KernelProblem(p)
    w, scorer = random_model(k, kernel, 0, form)
    beta, transition, start, end = k.split(w)
    assert scorer.n_support == np.count_nonzero(beta.any(axis=1))
    X = [[{str(a): float(v) for a, v in enumerate(x) if v} for x in sentence] for sentence in q.X]
    k.vocabulary.lock()
    data = _core.encode_attributes(k.vocabulary, X)
    known = sorted(int(k.vocabulary.text(a)) for a in range(k.n))
    support = np.array(k.distinct)[:, known]
    nodes = scorer.native.node_scores(data)
    counts, best, labels = scorer.kbest(data, 3)
    path, at, first = scorer.viterbi(data), 0, 0
    for x, count in zip(q.X, counts):
        T = len(x)
        s = chain.scores(value(kernel, x[:, known], support) @ beta, transition, start, end)
        want = s.node.copy()
        want[0] += start
        want[-1] += end
        np.testing.assert_allclose(nodes[at : at + T], want, rtol=1e-4, atol=2e-3)
        ranked = chain.kbest(s, 3)
        np.testing.assert_allclose(
            best[first : first + count], [score for score, _ in ranked], rtol=1e-4, atol=1e-2
        )
        assert chain.score(s, path[at : at + T].tolist()) == pytest.approx(ranked[0][0], rel=1e-4, abs=1e-2)
        at, first = at + T, first + count
    assert len(labels) == sum(int(c) * len(x) for c, x in zip(counts, q.X))


@pytest.mark.parametrize("kernel", [LINEAR, POLY, RBF], ids=lambda k: k.name)
def test_prediction_obeys_support_and_ignores_threads(kernel: KernelFunction) -> None:
    k = KernelProblem(random_sparse(7))
    _, scorer = random_model(k, kernel, 1)
    free = scorer.viterbi(k.data, n_jobs=1)
    np.testing.assert_array_equal(free, scorer.viterbi(k.data, n_jobs=3))
    sets = np.ones((2, k.labels), dtype=bool)
    sets[1, [0, 2]] = False
    of = np.arange(k.data.n_tokens, dtype=np.uint32) % 2
    path = scorer.viterbi(k.data, allowed=(sets, of))
    assert sets[of, path].all()
    assert not sets[of, free].all()  # otherwise the test would show nothing
    _, _, labels = scorer.kbest(k.data, 1, allowed=(sets, of))
    np.testing.assert_array_equal(labels, path)
    with pytest.raises(ValueError, match="no label sequence"):
        scorer.viterbi(k.data, allowed=(np.zeros((1, k.labels), dtype=bool), np.zeros_like(of)))


def test_models_round_trip_through_arrays() -> None:
    k = KernelProblem(random_sparse(8, values=True))
    _, scorer = random_model(k, POLY, 2)
    again = KernelScorer.of_arrays(scorer.base, POLY, scorer.arrays())
    np.testing.assert_array_equal(again.native.node_scores(k.data), scorer.native.node_scores(k.data))
    for name in ("beta.label", "support.ids", "support.ptr", "beta.ptr"):
        damaged = scorer.arrays()
        damaged[name] = damaged[name] + np.uint32(1_000_000)
        with pytest.raises(ValueError, match="inconsistent"):
            KernelScorer.of_arrays(scorer.base, POLY, damaged)


# -- user-defined kernels ---------------------------------------------------------------------------------


def polynomial_function(a: TokenMatrix, b: TokenMatrix) -> np.ndarray:
    return (1.0 + a.dots(b)) ** 2


@pytest.mark.parametrize("values", [False, True])
def test_kernel_functions_equal_the_native_kernel(values: bool) -> None:
    k = KernelProblem(random_sparse(9, n=12, values=values))
    mine = KernelFunction("function", function=polynomial_function)
    a, b = k.perceptron(mine), k.perceptron(POLY, form="rows")
    for _ in range(2):
        a.epoch()
        b.epoch()
    np.testing.assert_allclose(a.weights(), b.weights(), atol=1e-9)
    assert a.weights(False).any()
    w, scorer = random_model(k, POLY, 3, "rows")
    mine_scorer = KernelScorer.of_training(k.layout, w, mine, k.data)
    np.testing.assert_allclose(
        mine_scorer.native.node_scores(k.data), scorer.native.node_scores(k.data), rtol=1e-4, atol=1e-4
    )


@pytest.mark.parametrize("learner", [tw.Perceptron, tw.HMSVM])
@pytest.mark.parametrize("kernel", ["linear", "poly", "rbf"])
def test_repeated_attributes_count_twice(learner: Any, kernel: str) -> None:
    """Lists with repeated attributes are the same tokens as their counts: <x, x> is a sum of squares."""
    lists = [[["a", "a", "b"], ["c", "b"]], [["b", "c", "c"], ["a"]], [["a"], ["c", "a", "c", "c"]]]
    counts = [[{name: float(token.count(name)) for name in token} for token in x] for x in lists]
    y = [["X", "Y"], ["Y", "X"], ["X", "Y"]]
    given, counted = (learner(features="attributes", kernel=kernel).fit(X, y) for X in (lists, counts))
    for X in (lists, counts):
        for mine, theirs in zip(given.predict_kbest(X, 4), counted.predict_kbest(X, 4)):
            assert [path for path, _ in mine] == [path for path, _ in theirs]
            np.testing.assert_allclose([h for _, h in mine], [h for _, h in theirs], rtol=1e-5, atol=1e-6)
    once = learner(features="attributes", kernel=kernel).fit([[sorted(set(t)) for t in x] for x in lists], y)
    scores = [[h for _, h in one.predict_kbest(counts, 4)[0]] for one in (counted, once)]
    assert not np.allclose(*scores)


def test_errors_of_kernel_functions_propagate() -> None:
    k = KernelProblem(random_sparse(1, n=4))

    def broken(a: TokenMatrix, b: TokenMatrix) -> np.ndarray:
        raise KeyError("mine")

    shape = r"the kernel function gave an array of shape \(1, 1\) for \d+ and \d+ tokens"
    for bad, error, message in (
        (broken, KeyError, "mine"),
        (lambda a, b: np.zeros((1, 1)), ValueError, shape),
    ):
        kernel = KernelFunction("function", function=bad)
        with pytest.raises(error, match=message):
            k.perceptron(kernel).epoch()
        with pytest.raises(error, match=message):
            k.svm(kernel).epoch()
        _, scorer = random_model(k, LINEAR, 0)
        with pytest.raises(error, match=message):
            KernelScorer.of_arrays(scorer.base, kernel, scorer.arrays()).viterbi(k.data)


def test_invalid_kernels_are_rejected() -> None:
    k = KernelProblem(random_sparse(1, n=4))
    for bad, message in (
        (KernelFunction("poly", 0), "degree from 1 to 64 .* got degree 0 and coef 1"),
        (KernelFunction("poly", 65), "degree from 1 to 64 .* got degree 65 and coef 1"),
        (KernelFunction("poly", 2, -1.0), "finite coef >= 0, got degree 2 and coef -1"),
        (KernelFunction("poly", gamma=0.0), "polynomial kernel needs a finite gamma > 0, got 0"),
        (KernelFunction("rbf", gamma=0.0), "rbf kernel needs a finite gamma > 0, got 0"),
        (KernelFunction("rbf", gamma=np.nan), "rbf kernel needs a finite gamma > 0, got NaN"),
        (KernelFunction("other"), 'no kernel "other"; there are: linear, poly, rbf'),
    ):
        with pytest.raises(ValueError, match=message):
            k.perceptron(bad)
    full = _core.Layout.build(k.data, k.n, 5, all_pairs=True)
    with pytest.raises(ValueError, match="node features"):
        _core.KernelPerceptron(k.data, full, LINEAR.spec(k.n))

"""Rows of the Hidden Markov SVM and of kernels: the optimum of the quadratic program, scores of the reference dual."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tagwise as tw
from tagwise import _core
from tagwise.scores.kernels import TokenMatrix

from ..online import permutation
from ..reference import chain, perceptron, qp, svm
from ..reference.perceptron import Kernel
from .rows import NAMES, Bench, bits, by_length, dense, exact, problem, row, tokens

KERNELISED = ("perceptron", "hmsvm")

P = problem(6, [2, 3, 1, 2], labels=3, attributes=3)
TIGHT: dict[str, Any] = {"tol": 1e-6, "max_iter": 2000}


def assert_optimum(b: Bench, **params: Any) -> tw.Tagger:
    """Primal, dual and weights are those of the program over all wrong paths."""
    reference_params = {"C": 1.0, "slack": "instance", "rescale": None, **params}
    slack = reference_params["slack"]
    best = svm.solve(
        P.X,
        P.y,
        P.shape,
        reference_params["C"],
        slack if isinstance(slack, str) else slack[0],
        reference_params["rescale"] == "margin",
    )
    tagger = b.fit(P, **{**TIGHT, **params})
    assert tagger.objective_ == pytest.approx(best.primal, rel=1e-3)
    assert tagger.history_[-1]["dual"] == pytest.approx(best.dual, rel=1e-3)
    np.testing.assert_allclose(dense(tagger, P), best.w, atol=2e-2)
    return tagger


@row("C", "hmsvm")
def C(b: Bench) -> None:
    """C is the price of a violated margin."""
    found = [assert_optimum(b, C=given).objective_ for given in (0.1, 0.5, 2.0)]
    assert found == sorted(set(found))


@row("pi", "hmsvm")
def pi(b: Bench) -> None:
    """The price of a sentence of T tokens is C c pi^T, C on average."""
    lengths = np.array([len(y) for y in P.y], dtype=float)
    for rate in (0.3, 0.8):
        ours = b.fit(P, pi=rate, C=0.2, **TIGHT)
        priced = b.fit(P, C=0.2, **TIGHT, keywords={"sample_weight": by_length(rate, lengths)})
        assert ours.objective_ == pytest.approx(priced.objective_, rel=1e-5)
        np.testing.assert_allclose(dense(ours, P), dense(priced, P), atol=1e-4)
        assert ours.objective_ != pytest.approx(b.fit(P, C=0.2, **TIGHT).objective_, rel=1e-3)


@row("slack", "hmsvm")
def slack(b: Bench) -> None:
    """There is one slack per sentence, or one per wrong path."""
    found = {given: assert_optimum(b, slack=given, C=0.3).objective_ for given in ("instance", "sequence")}
    assert found["instance"] < found["sequence"]
    assert_paths(b)


@row("rescale", "hmsvm")
def rescale(b: Bench) -> None:
    """The margin is 1, or the number of wrong labels."""
    found = {given: assert_optimum(b, rescale=given, C=0.3).objective_ for given in (None, "margin")}
    assert found[None] < found["margin"]


def assert_paths(b: Bench) -> None:
    """With slack=("sequence", n) only the n largest of a sentence count, and the gap closes. With enough, all count."""
    found = []
    for most in (1, 2, 3):
        tagger = b.fit(P, slack=("sequence", most), C=0.05, **TIGHT)
        assert tagger.stopped_.startswith("tol=")
        assert all(entry["truncated"] for entry in tagger.history_)
        exact = svm.primal(dense(tagger, P), P.X, P.y, P.shape, 0.05, "sequence", False, most)
        assert tagger.objective_ == pytest.approx(exact, rel=1e-4)
        found.append(tagger.objective_)
    assert found == sorted(set(found))
    whole = assert_optimum(b, slack=("sequence", 3**3), C=0.05)
    assert not whole.history_[-1]["truncated"]
    assert whole.objective_ > found[-1]


@row("tol", "hmsvm")
def tol(b: Bench) -> None:
    """Training stops at the first epoch whose relative duality gap is at most tol. The solver receives tol too."""
    seen = collected_options(b, "Margins", "Svm", "KernelSvm")
    for kernel in (None, "rbf"):
        b.fit(P, tol=0.07, kernel=kernel)
    assert [keywords["tolerance"] for keywords in seen] == [0.07, 0.07]
    for given in (0.3, 0.05, 0.001):
        tagger = b.fit(P, tol=given)
        gaps = [entry["gap"] for entry in tagger.history_]
        assert gaps[-1] <= given
        assert all(gap > given for gap in gaps[:-1])
        for entry in tagger.history_:
            primal = entry["objective"]
            assert entry["gap"] == pytest.approx((primal - entry["dual"]) / primal, abs=1e-12)
        assert tagger.stopped_ == f"tol={given:g}: certified within {gaps[-1]:.1e} of the optimum"
    lengths = [len(b.fit(P, tol=given).history_) for given in (0.3, 0.05, 0.001)]
    assert lengths == sorted(set(lengths))


@row("max_iter", "hmsvm")
def max_iter(b: Bench) -> None:
    """Training runs at most max_iter epochs."""
    for n in (1, 2, 4):
        assert len(b.fit(P, tol=0.0, max_iter=n).history_) == n


@row("shuffle", "hmsvm")
def shuffle(b: Bench) -> None:
    """Every epoch has a new order, or that of the sentences for any seed."""
    first = {"tol": 0.0, "max_iter": 1}
    plain = [b.fit(P, shuffle=False, random_state=seed, **first) for seed in (0, 1, 2)]
    mixed = [b.fit(P, shuffle=True, random_state=seed, **first) for seed in (0, 1, 2)]
    assert len({bits(tagger) for tagger in plain}) == 1
    assert len({bits(tagger) for tagger in mixed}) > 1
    # one sentence has one order
    alone = type(P)(P.shape, P.X[1:2], P.y[1:2])
    assert bits(b.fit(alone, shuffle=False, **first)) == bits(b.fit(alone, shuffle=True, **first))


@row("random_state", "hmsvm")
def seed(b: Bench) -> None:
    """Other seeds take other paths to the same optimum. Equal seeds give equal bits."""
    first = {"tol": 0.0, "max_iter": 1}
    again = [b.fit(P, random_state=given, **first) for given in (0, 1, 2, 3)]
    assert len({bits(tagger) for tagger in again}) > 1
    for given, tagger in enumerate(again):
        assert bits(b.fit(P, random_state=given, **first)) == bits(tagger)
        assert b.fit(P, random_state=given, **TIGHT).objective_ == pytest.approx(
            b.fit(P, **TIGHT).objective_, rel=1e-3
        )


# -- kernels ----------------------------------------------------------------------------------------------

#: Real values, and labels that are not trivial to learn.
K = problem(3, [2, 2, 1, 2], labels=3, attributes=4, real=True)


def power(coef: float, gamma: float, degree: int) -> Kernel:
    return lambda a, c: (coef + gamma * (a @ c.T)) ** degree


def squares() -> float:
    """Return the mean of ||x||^2 over the tokens."""
    return float(np.mean(np.sum(np.concatenate(exact(K)) ** 2, axis=1)))


def assert_kernel(b: Bench, similarity: Kernel, **params: Any) -> None:
    """Scores of all paths match the dual perceptron, or the optimum matches the kernel's quadratic program."""
    if b.kind is tw.HMSVM:
        G, pairs = svm.gram(exact(K), K.y, K.shape.labels, similarity)
        sentence = np.array([i for i, _ in pairs])
        alpha = qp.groups(G / 4, np.ones(len(pairs)), sentence, 0.2, tol=1e-7)
        dual = alpha.sum() - alpha @ G @ alpha / 8
        tagger = b.fit(K, C=0.2, tol=1e-4, max_iter=2000, **params)
        assert tagger.history_[-1]["dual"] == pytest.approx(dual, rel=2e-3)
        return
    order = [permutation(len(K.X), 0, epoch) for epoch in range(2)]
    for average, model in zip(
        (False, True), perceptron.dual_perceptron(exact(K), K.y, K.shape.labels, order, similarity)
    ):
        tagger = b.fit(K, max_iter=2, average=average, all_pairs=True, **params)
        for x, sentence_ in zip(exact(K)[:2], tokens(K)[:2]):
            wanted = {
                tuple(NAMES[y] for y in path): chain.score(model.score(x), path)
                for path in itertools.product(range(3), repeat=len(x))
            }
            found = {tuple(path): score for path, score in tagger.predict_kbest([sentence_], 99)[0]}
            assert found == pytest.approx(wanted, rel=1e-3, abs=1e-3)


def cubed(a: TokenMatrix, c: TokenMatrix) -> Any:
    return (0.5 + a.dots(c)) ** 3


@row("kernel", *KERNELISED)
def kernel(b: Bench) -> None:
    """The similarity of two tokens follows the kernel's formula, or a user's function of two blocks."""
    assert_kernel(b, perceptron.linear, kernel="linear")
    assert_kernel(b, power(1.0, 1.0, 2), kernel="poly")
    assert_kernel(b, perceptron.rbf(1 / squares()), kernel="rbf")
    assert_kernel(b, power(0.5, 1.0, 3), kernel=cubed)
    for check in (assert_degree, assert_coef, assert_gamma, assert_form, assert_cache, assert_budget):
        check(b)
    explicit = b.fit(K, kernel=None)
    assert isinstance(explicit.model_.scorer, _core.Scorer)
    assert explicit.n_support_ == 0  # type: ignore[attr-defined]


def assert_degree(b: Bench) -> None:
    """(coef + gamma <x, x'>)^degree."""
    for given in (1, 2, 3):
        assert_kernel(b, power(1.0, 1.0, given), kernel=tw.Poly(degree=given))


def assert_coef(b: Bench) -> None:
    """(coef + gamma <x, x'>)^degree."""
    for given in (0.0, 0.5):
        assert_kernel(b, power(given, 1.0, 2), kernel=tw.Poly(coef=given))


def assert_gamma(b: Bench) -> None:
    """gamma multiplies <x, x'> or ||x - x'||^2. None means 1, or 1 over the mean of ||x||^2."""
    assert_kernel(b, power(1.0, 0.5, 2), kernel=tw.Poly(gamma=0.5))
    assert_kernel(b, power(1.0, 1.0, 2), kernel=tw.Poly(gamma=None))
    assert_kernel(b, perceptron.rbf(0.7), kernel=tw.RBF(gamma=0.7))
    assert_kernel(b, perceptron.rbf(1 / squares()), kernel=tw.RBF(gamma=None))


def collected_options(b: Bench, options_class: str, *learners: str) -> list[dict[str, Any]]:
    """Return a list that collects the keywords of these options, as passed to learners of the core."""
    made: list[tuple[Any, dict[str, Any]]] = []
    seen: list[dict[str, Any]] = []
    options: Callable[..., Any] = getattr(_core, options_class)

    def make(*args: Any, **keywords: Any) -> Any:
        made.append((options(*args, **keywords), keywords))
        return made[-1][0]

    b.monkeypatch.setattr(_core, options_class, make)
    for name in learners:
        learner: Callable[..., Any] = getattr(_core, name)

        def hand(*args: Any, learner: Callable[..., Any] = learner, **keywords: Any) -> Any:
            seen.extend(known for given, known in made if any(given is x for x in args))
            return learner(*args, **keywords)

        b.monkeypatch.setattr(_core, name, hand)
    return seen


def learner_of(b: Bench) -> str:
    return "KernelSvm" if b.kind is tw.HMSVM else "KernelPerceptron"


def assert_form(b: Bench) -> None:
    """Rows of kernel values and products of attributes give the same scores, each from the selected form."""
    made: list[Any] = []
    original: Callable[..., Any] = getattr(_core, learner_of(b))

    def make(*args: Any, **keywords: Any) -> Any:
        made.append(original(*args, **keywords))
        return made[-1]

    b.monkeypatch.setattr(_core, learner_of(b), make)
    for given, expanded in (("rows", False), ("expanded", True)):
        assert_kernel(b, power(1.0, 1.0, 2), kernel=tw.Poly(form=given))
        assert {learner.expanded for learner in made} == {expanded}
        made.clear()


def assert_cache(b: Bench) -> None:
    """The learner receives the number of megabytes. The bits do not depend on it."""
    seen = collected_options(b, "Kernel", learner_of(b))
    runs = [b.fit(K, kernel=tw.RBF(cache_mb=given)) for given in (1, 3)]
    assert bits(runs[0]) == bits(runs[1])
    assert [keywords["cache_bytes"] for keywords in seen] == [1 << 20, 3 << 20]


def assert_budget(b: Bench) -> None:
    """The model has at most `budget` support tokens, after training and after every epoch."""
    many = problem(7, [3, 4, 2, 4, 3, 4], labels=4, attributes=6, real=True)
    if b.kind is tw.HMSVM:
        with pytest.raises(tw.exceptions.ParameterError, match="HMSVM keeps all support tokens"):
            b.fit(many, kernel=tw.RBF(budget=5))
        return
    free = b.fit(many, kernel="rbf", average=False).n_support_  # type: ignore[attr-defined]
    assert free > 5
    for given in (1, 3, 5):
        tagger = b.fit(many, kernel=tw.RBF(budget=given), average=False)
        assert tagger.n_support_ == given  # type: ignore[attr-defined]
    enough = [b.fit(many, kernel=tw.RBF(budget=given)) for given in (99, None)]
    assert bits(enough[0]) == bits(enough[1])

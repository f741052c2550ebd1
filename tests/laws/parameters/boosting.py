"""Rows of boosting: the rounds match the reference implementation, and each reports the loss at its weights."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import pytest

from ..reference import boosting
from ..reference.chain import Array
from ..reference.losses import exp_loss, minus_log_p, pointwise_exp_loss
from ..reference.model import pull_back, score_sentence
from ..strategies import Problem
from .crf import cut
from .rows import NAMES, Bench, bits, by_length, exact, mask, problem, row

P = problem(9, [3, 4, 2, 5, 1], labels=3, attributes=4, real=True)
WEIGHT = np.array([0.5, 2.0, 1.0, 0.25, 3.0])


def index(r: Any, p: Problem) -> int:
    """Return the index of a chosen feature in the reference implementation's vector."""
    A, L, _ = p.shape
    y = NAMES.index(r.label)
    if r.kind == "node":
        return int(r.attribute) * L + y
    if r.kind == "edge":
        return A * L + NAMES.index(r.attribute) * L + y
    return A * L + L * L + (L if r.kind == "end" else 0) + y


def boosted(b: Bench, p: Problem = P, *, keywords: Any = None, **params: Any) -> Any:
    """Fit with the paper's settings by default: one feature per round, whole sentences."""
    paper = {"features_per_round": 1, "overlap": False, "max_length": None}
    return b.fit(p, keywords=keywords, **{"max_iter": 8, "every": 1, "epsilon": 0.0, **paper, **params})


def log_loss(
    w: Array, p: Problem, weight: Array, ends: Any = None, over: str = "wrong", loss: str = "exp"
) -> float:
    """Return log sum_i w_i (e^{l_i} - 1), or of e^{l_i}.

    `ends` marks the sentences with a true begin and a true end. The pointwise loss is log sum_i w_i sum_t (1
    / p_t - 1), or of 1 / p_t.
    """
    total = 0.0
    for i, (x, y) in enumerate(zip(exact(p), p.y)):
        s = score_sentence(w, x, p.shape)
        if ends is not None:
            s = s._replace(start=s.start * ends[i][0], end=s.end * ends[i][1])
        if loss == "pointwise_exp":
            total += pointwise_exp_loss(s, y, weight[i])[0] - (over == "wrong") * weight[i] * len(y)
            continue
        total += weight[i] * float((np.expm1 if over == "wrong" else np.exp)(minus_log_p(s, y)))
    return float(np.log(total))


def assert_losses(
    tagger: Any, p: Problem, weight: Array, ends: Any = None, over: str = "wrong", loss: str = "exp"
) -> None:
    """The loss reported after every round is the loss at the sum of the steps so far."""
    w = np.zeros(p.shape.size)
    for r in tagger.rounds_:
        w[index(r, p)] += r.step
        assert r.log_loss == pytest.approx(log_loss(w, p, weight, ends, over, loss), abs=1e-6)
    assert len(tagger.rounds_) > 3


@functools.cache
def reference_rounds(
    n: int, bound: str, eps: float, cap: float, whole: bool = False, pointwise: bool = False
) -> list[tuple[int, float, float]]:
    """Return (feature, step, bound) of the first n rounds."""
    settings = {"mask": mask(P), "eps": eps, "cap": cap, "whole": whole, "pointwise": pointwise}
    return boosting.boost(exact(P), P.y, P.shape, n, bound, **settings)[1]


def assert_matches_reference(b: Bench, bound: str, eps: float, cap: float, **params: Any) -> None:
    """The rounds choose the same features, steps and bounds as the reference implementation."""
    n = 6 if bound == "loose" else 2  # the tight bound is slow in the reference implementation
    wanted = reference_rounds(
        n, bound, eps, cap, params.get("over") == "all", params.get("loss") == "pointwise_exp"
    )
    found = boosted(b, max_iter=n, bound=bound, max_step=cap, epsilon=eps, **params).rounds_
    assert [index(r, P) for r in found] == [feature for feature, _, _ in wanted]
    assert [r.step for r in found] == pytest.approx([step for _, step, _ in wanted], rel=1e-4)
    assert [r.bound for r in found] == pytest.approx([bound for _, _, bound in wanted], rel=1e-6)
    assert [r.round for r in found] == list(range(n))


@row("bound", "boosting")
def bound(b: Bench) -> None:
    """Features are chosen by the selected bound. The exact bound is the loss."""
    assert_matches_reference(b, "loose", 0.0, 3.0)
    assert_matches_reference(b, "tight", 0.0, 3.0)
    losses = {}
    for name in ("loose", "tight", "exact"):
        (first,) = boosted(b, max_iter=1, bound=name).rounds_
        before = log_loss(np.zeros(P.shape.size), P, np.ones(5))
        losses[name] = np.log(first.bound) + before
        assert first.log_loss <= losses[name] + 1e-9
        if name == "exact":
            assert first.log_loss == pytest.approx(losses[name], abs=1e-6)
    assert losses["loose"] > losses["tight"] > losses["exact"]


@row("over", "boosting")
def over(b: Bench) -> None:
    """Both sums match the reference implementation, as do bounds and rounds.

    The sums differ by a constant, so their minimisers are equal.
    """
    for given in ("wrong", "all"):
        assert_matches_reference(b, "loose", 0.0, 3.0, over=given)
        assert_matches_reference(b, "tight", 0.0, 3.0, over=given)
        assert_losses(boosted(b, over=given, keywords={"sample_weight": WEIGHT}), P, WEIGHT, over=given)
    # In a long sentence e^l is so large that the gold sequence hardly contributes, so both choose alike.
    long = problem(4, [12, 12], labels=3, attributes=4)
    first = [boosted(b, long, over=given, max_iter=4).rounds_ for given in ("wrong", "all")]
    assert [r[:4] for r in first[0]] == [r[:4] for r in first[1]]
    assert [r.step for r in first[0]] == pytest.approx([r.step for r in first[1]], rel=1e-3)
    # If no feature separates the labels, both converge to the same unique minimum.
    plain = problem(2, [2, 2, 2, 2, 1, 1], labels=2, attributes=1)
    ends = {
        given: boosted(b, plain, over=given, max_iter=3000, step="line_search", start_end=False)
        for given in ("wrong", "all")
    }
    losses = {
        given: sum(
            np.exp(minus_log_p(score_sentence(weights(t, plain), x, plain.shape), y))
            for x, y in zip(exact(plain), plain.y)
        )
        for given, t in ends.items()
    }
    assert losses["wrong"] == pytest.approx(losses["all"], rel=1e-6)
    assert losses["all"] > len(plain.y) + 0.1


@row("loss", "boosting")
def loss(b: Bench) -> None:
    """Rounds of the pointwise loss match the reference implementation.

    On sentences of one token the two losses are equal.
    """
    name = "pointwise_exp"
    for given in ("wrong", "all"):
        assert_matches_reference(b, "loose", 0.0, 3.0, over=given, loss=name)
        assert_matches_reference(b, "tight", 0.0, 3.0, over=given, loss=name)
        weighted = boosted(b, over=given, loss=name, keywords={"sample_weight": WEIGHT})
        assert_losses(weighted, P, WEIGHT, over=given, loss=name)
    pieces, of, ends = cut(P, 2)
    searched = boosted(b, loss=name, max_length=2, step="line_search", keywords={"sample_weight": WEIGHT})
    assert_losses(searched, pieces, WEIGHT[of], ends, loss=name)
    assert bits(searched) != bits(boosted(b, max_length=2, step="line_search"))
    alone, of, ends = cut(P, 1)
    for given in ("exp", name):
        assert_losses(boosted(b, max_length=1, loss=given), alone, np.ones(len(of)), ends)
    length = np.array([len(y) for y in P.y], dtype=float)
    balanced = boosted(b, loss=name, balance=True)  # T (L - 1) of its labels are wrong
    assert_losses(balanced, P, len(length) / (1 / length).sum() / length, loss=name)


def weights(tagger: Any, p: Problem) -> Array:
    """Return the sum of the steps in the reference implementation's order of weights."""
    w = np.zeros(p.shape.size)
    for r in tagger.rounds_:
        w[index(r, p)] += r.step
    return w


@row("epsilon", "boosting")
def smoothing(b: Bench) -> None:
    """Smoothing is added to both sides of a step's ratio. None means 1 / number of sentences after splitting."""
    for eps in (0.0, 0.05, 0.5):
        assert_matches_reference(b, "loose", eps, 3.0)
    for params, n in (({}, 5), ({"max_length": 2}, 9)):
        for step in ("bound", "line_search"):
            usual = boosted(b, epsilon=None, step=step, **params)
            assert bits(usual) == bits(boosted(b, epsilon=1 / n, step=step, **params))
            assert bits(usual) != bits(boosted(b, epsilon=0.0, step=step, **params))


@row("max_step", "boosting")
def max_step(b: Bench) -> None:
    """No step is longer than max_step, and longer steps are cut to it."""
    for cap in (0.1, 0.4, 3.0):
        assert_matches_reference(b, "loose", 0.0, cap)
        steps = [abs(r.step) for r in boosted(b, max_step=cap).rounds_]
        assert max(steps) <= cap + 1e-12
        assert (max(steps) == pytest.approx(cap)) is (cap < 0.5)
        assert max(abs(r.step) for r in boosted(b, max_step=cap, step="line_search").rounds_) <= cap + 1e-12


def slope(w: Array, k: int, p: Problem) -> float:
    """Return d/dw_k of sum_i (e^{l_i} - 1)."""
    return float(
        sum(
            pull_back(exp_loss(score_sentence(w, x, p.shape), y)[1], x, p.shape)[k]
            for x, y in zip(exact(p), p.y)
        )
    )


#: An attribute that fires several times in a sentence and always has the same label: no step is long enough.
SURE = Problem(
    type(P.shape)(2, 2),
    [np.array([[1.0, 0.0]] * 3 + [[0.0, 1.0]]), np.array([[1.0, 0.0], [0.0, 1.0]])],
    [(0, 0, 0, 1), (0, 1)],
)


@row("step", "boosting")
def step(b: Bench) -> None:
    """Steps come from the bound, or from a line search for a zero of the loss's slope.

    Beyond the bound's own step the slope has the term 2 smoothing N sinh(step), where N is the loss before
    the round.
    """
    searched = 0
    for p, name in ((P, "loose"), (P, "tight"), (SURE, "tight")):
        for eps in (0.0, 0.02, 0.1):
            params: dict[str, Any] = {"max_iter": 1, "max_step": 4.0, "epsilon": eps, "bound": name}
            params["start_end"] = p is P
            guess = boosted(b, p, step="bound", **params).rounds_[0]
            found = boosted(b, p, step="line_search", **params).rounds_[0]
            k, before = index(found, p), np.zeros(p.shape.size)
            assert k == index(guess, p)
            n, at_zero = np.exp(log_loss(before, p, np.ones(len(p.X)))), slope(before, k, p)
            after = before.copy()
            after[k] = found.step
            left = slope(after, k, p)
            if abs(found.step) > abs(guess.step):
                left += 2 * eps * n * np.sinh(found.step)
            assert abs(left) <= 0.1 * abs(at_zero) or abs(found.step) == pytest.approx(4.0)
            searched += found.step != guess.step
    assert searched >= 8
    # With one feature per round, or features without a common sentence, joint steps equal single steps.
    for params in ({}, {"features_per_round": 3}, {"overlap": True}):
        assert bits(boosted(b, step="joint", **params)) == bits(boosted(b, step="bound", **params))
    together = {"features_per_round": 4, "overlap": True}
    found = {given: boosted(b, step=given, **together) for given in ("joint", "bound")}
    ends = log_loss(weights(found["joint"], P), P, np.ones(len(P.X)))
    assert found["joint"].objective_ == pytest.approx(ends, abs=1e-6)
    assert found["joint"].objective_ < found["bound"].objective_


@row("max_iter", "boosting")
def rounds(b: Bench) -> None:
    """At most `max_iter` rounds are run, and a longer run begins with the rounds of a shorter one."""
    long = boosted(b, max_iter=9).rounds_
    for n in (0, 1, 4):
        tagger = boosted(b, max_iter=n)
        assert tagger.rounds_ == long[:n]
        assert tagger.stopped_ == f"max_iter={n} reached"
    tagger = boosted(b, max_iter=9)
    assert {r.round for r in tagger.rounds_} == set(range(9))
    words, labels = [["a", "b", "b"], ["b", "a"]], [["x", "y", "x"], ["x", "y"]]  # never learnt
    for several, most in ((1, 2000), (64, 384), (4096, 6), (10**6, 6)):
        usual = b.kind(features="S1", features_per_round=several, epsilon=0.0).fit(words, labels)
        assert usual.stopped_ in (f"max_iter={most} reached", "no feature lowers the loss any further")
        assert usual.history_[-1]["rounds"] <= most


@row("every", "boosting")
def every(b: Bench) -> None:
    """The history has an entry per `every` rounds and one for the rest. None means a 200th of all rounds."""
    for n, wanted in ((1, list(range(1, 9))), (None, list(range(1, 9))), (3, [3, 6, 8]), (8, [8]), (50, [8])):
        tagger = boosted(b, every=n)
        assert [entry["rounds"] for entry in tagger.history_] == wanted
        assert [entry["objective"] for entry in tagger.history_] == [
            tagger.rounds_[r - 1].log_loss for r in wanted
        ]
        assert bits(tagger) == bits(boosted(b, every=1))
    tagger = boosted(b, every=None, max_iter=450, epsilon=0.5)
    assert [entry["rounds"] for entry in tagger.history_][:3] == [2, 4, 6]


#: Sentences without common attributes.
APART = Problem(
    type(P.shape)(4, 2),
    [np.eye(4)[[0, 0]], np.eye(4)[[1, 1]], np.eye(4)[[2, 2]], np.eye(4)[[3, 3]]],
    [(0, 0), (1, 1), (0, 0), (1, 1)],
)


def widths(tagger: Any) -> list[int]:
    """Return the number of features of each round."""
    return np.bincount([r.round for r in tagger.rounds_]).tolist()


@row("features_per_round", "boosting")
def features_per_round(b: Bench) -> None:
    """A round takes at most this many features that share no sentence, and their gains add up."""
    for n in (1, 2, 3):
        tagger = boosted(b, APART, max_iter=2, features_per_round=n)
        assert max(widths(tagger)) == n
        assert_losses(boosted(b, APART, max_iter=4, features_per_round=n), APART, np.ones(4))
        for number in range(2):
            node = [r.attribute for r in tagger.rounds_ if r.round == number and r.kind == "node"]
            assert len(set(node)) == len(node)


@row("overlap", "boosting")
def overlap(b: Bench) -> None:
    """Features of a round may share sentences, in which case their steps are damped. A single feature is not damped."""
    apart, together = (boosted(b, features_per_round=3, max_iter=4, overlap=flag) for flag in (False, True))
    assert min(widths(together)) == 3
    assert max(widths(apart)) < 3
    w, before = np.zeros(P.shape.size), log_loss(np.zeros(P.shape.size), P, np.ones(5))
    for number in range(4):
        chosen = [r for r in together.rounds_ if r.round == number]
        for r in chosen:
            w[index(r, P)] += r.step
        assert {r.log_loss for r in chosen} == {chosen[0].log_loss}
        assert chosen[0].log_loss == pytest.approx(log_loss(w, P, np.ones(5)), abs=1e-6)
        assert chosen[0].log_loss < before
        before = chosen[0].log_loss
    assert bits(boosted(b, overlap=True)) == bits(boosted(b, overlap=False))


@row("candidates", "boosting")
def candidates(b: Bench) -> None:
    """Each round draws a share of the features and takes the best of them, which may not be the best of all."""
    best = boosted(b, max_iter=1).rounds_[0].bound
    assert best == pytest.approx(reference_rounds(2, "tight", 0.0, 3.0)[0][2], rel=1e-6)
    means = [best]
    for share in (0.7, 0.3):
        bounds = [
            boosted(b, max_iter=1, candidates=share, random_state=seed).rounds_[0].bound for seed in range(20)
        ]
        assert min(bounds) >= best - 1e-9
        means.append(float(np.mean(bounds)))
    assert means[0] < means[1] < means[2]
    again = boosted(b, candidates=0.3).rounds_
    assert len({index(r, P) for r in again}) > 3  # drawn again in each round


@row("random_state", "boosting")
def seed(b: Bench) -> None:
    """The seed draws the candidates: equal seeds give equal bits. With all features as candidates it has no effect."""
    drawn = [boosted(b, candidates=0.3, random_state=given) for given in (0, 1, 2)]
    assert len({bits(tagger) for tagger in drawn}) == 3
    assert bits(boosted(b, candidates=0.3, random_state=1)) == bits(drawn[1])
    assert bits(boosted(b, random_state=1)) == bits(boosted(b, random_state=2))


@row("pi", "boosting")
def pi(b: Bench) -> None:
    """A sentence of T tokens weighs c pi^T times its own weight, 1 on average. A piece weighs by its own length."""
    long = np.array([len(y) for y in P.y], dtype=float)
    for rate in (0.5, 0.9):
        ours = boosted(b, pi=rate)
        assert_losses(ours, P, by_length(rate, long))
        alike = boosted(b, keywords={"sample_weight": by_length(rate, long)})
        assert [r[:4] for r in ours.rounds_] == [r[:4] for r in alike.rounds_]
        assert_losses(
            boosted(b, pi=rate, keywords={"sample_weight": WEIGHT}), P, by_length(rate, long, WEIGHT)
        )
    pieces, of, ends = cut(P, 2)
    short = np.array([len(y) for y in pieces.y], dtype=float)
    tagger = boosted(b, pi=0.5, max_length=2, keywords={"sample_weight": WEIGHT})
    assert_losses(tagger, pieces, by_length(0.5, short, WEIGHT[of]), ends)


@row("balance", "boosting")
def balance(b: Bench) -> None:
    """At weights of 0 the share of a sentence in the loss is its own weight, for any length: D_0 of the paper."""
    length = np.array([len(y) for y in P.y], dtype=float)
    for pi, given in ((1.0, np.ones(5)), (1.0, WEIGHT), (0.5, WEIGHT)):
        wanted = given * pi**length  # of each in N before the first round, up to a factor
        weight = wanted / (3.0**length - 1)
        weight *= given.sum() / weight.sum()
        assert_losses(boosted(b, balance=True, pi=pi, keywords={"sample_weight": given}), P, weight)
    assert bits(boosted(b, balance=True)) != bits(boosted(b))
    long = [["a"] * 300, ["b"]]
    found = b.kind(features="S1", balance=True, max_iter=5).fit(long, [["x", "y"] * 150, ["y"]])
    assert np.isfinite(found.objective_)


@row("max_length", "boosting")
def max_length(b: Bench) -> None:
    """Longer sentences are cut into pieces, and start and end features fire at the true ends only."""
    for most in (1, 2, 3):
        pieces, of, ends = cut(P, most)
        assert_losses(boosted(b, max_length=most, max_iter=20), pieces, np.ones(len(of)), ends)
        weighted = boosted(b, max_length=most, keywords={"sample_weight": WEIGHT})
        assert_losses(weighted, pieces, WEIGHT[of], ends)
    assert bits(boosted(b, max_length=5)) == bits(boosted(b))
    assert bits(boosted(b, max_length=4)) != bits(boosted(b))

"""Rows of the baselines: probabilities counted by hand, and the optimum of the local classifier."""

from __future__ import annotations

import functools
import itertools
import math
from typing import Any

import numpy as np
import pytest

import tagwise as tw
from tagwise import _core
from tagwise.dataset import encode
from tagwise.dataset.layout import step_layout
from tagwise.learners import gradient

from ..reference.chain import Array
from ..reference.generative import memm_loss
from ..reference.model import pull_back, score_sentence
from ..strategies import Problem
from .crf import P, assert_optimizers, assert_sparse_optimum
from .rows import NAMES, Bench, bits, dense, exact, names, problem, row, tokens

# -- MEMM -------------------------------------------------------------------------------------------------


def total(w: Array, p: Problem) -> tuple[float, Array]:
    """Return -sum_t log P(y_t | y_{t-1}, x_t) and its gradient, by the reference implementation."""
    value, out = 0.0, np.zeros(p.shape.size)
    for x, y in zip(exact(p), p.y):
        v, g = memm_loss(score_sentence(w, x, p.shape), y)
        value, out = value + v, out + pull_back(g, x, p.shape)
    return value, out


@functools.cache
def start() -> tw.Tagger:
    """Return weights at which to evaluate the objective."""
    return tw.CRF(all_pairs=True, l2=0.3, max_iter=4).fit(tokens(P), names(P))


def objective(b: Bench, **params: Any) -> float:
    given = {"l2": 0.0, "max_iter": 0, "all_pairs": True, **params}
    return b.fit(P, keywords={"warm_start": start()}, **given).objective_


@row("l2", "memm")
def l2(b: Bench) -> None:
    """l2 ||w||^2 is added to the sum over tokens."""
    w = dense(start(), P)
    for strength in (0.0, 0.5, 3.0):
        assert objective(b, l2=strength) == pytest.approx(total(w, P)[0] + strength * w @ w, rel=1e-5)
    for strength in (0.05, 2.0):
        v = dense(b.fit(P, l2=strength, tol=0.0, max_iter=300, all_pairs=True), P)
        slope = total(v, P)[1]
        assert np.linalg.norm(slope + 2 * strength * v) < 5e-3 * np.linalg.norm(slope)


@row("l1", "memm")
def l1(b: Bench) -> None:
    """l1 ||w||_1 is added: fewer weights remain, and the subgradient vanishes."""
    w = dense(start(), P)
    for strength in (0.25, 1.0):
        wanted = total(w, P)[0] + 0.5 * w @ w + strength * np.abs(w).sum()
        assert objective(b, l1=strength, l2=0.5) == pytest.approx(wanted, rel=1e-5)
    full = b.fit(P, l1=0.0, l2=0.1, tol=0.0, max_iter=400)
    assert full.n_nonzero_ == full.n_features_
    few = [b.fit(P, l1=strength, l2=0.1, tol=1e-9, max_iter=400) for strength in (0.4, 0.8)]
    assert full.n_nonzero_ > few[0].n_nonzero_ > few[1].n_nonzero_ > 0
    for tagger, strength in zip(few, (0.4, 0.8)):
        assert_sparse_optimum(tagger, total(dense(tagger, P), P)[1], P, strength, 0.1)


@row("optimizer", "memm")
def optimizer(b: Bench) -> None:
    """Each name runs its own optimiser."""
    vocabulary, data = encode.build(tokens(P))
    data = encode.with_labels(data, names(P), encode.collect_labels(names(P)))
    layout = _core.Layout.build(data, len(vocabulary), P.shape.labels)
    steps = data.steps(len(vocabulary), P.shape.labels)
    evaluate = gradient.Evaluation(_core.Objective(steps, step_layout(layout)), 0.2, 0)
    assert_optimizers(b, evaluate, len(layout))


@row("class_weight", "memm")
def class_weight(b: Bench) -> None:
    """The loss of a token is multiplied by its label's weight: a weight of 2 equals the sentence given twice."""
    w, L = dense(start(), P), P.shape.labels
    gold = np.concatenate([np.array(y) for y in P.y])
    balanced = len(gold) / (L * np.bincount(gold, minlength=L))
    assert len(set(balanced)) > 1
    for given, weights in (
        ("balanced", balanced),
        ({NAMES[0]: 4.0, NAMES[2]: 0.25}, np.array([4.0, 1.0, 0.25])),
        (None, np.ones(L)),
    ):
        wanted = 0.0
        for x, y in zip(exact(P), P.y):
            s, last = score_sentence(w, x, P.shape), len(y) - 1
            for t, label in enumerate(y):
                local = s.node[t] + (s.start if t == 0 else s.edge[y[t - 1]]) + (s.end if t == last else 0.0)
                wanted += weights[label] * (np.log(np.exp(local).sum()) - local[label])
        assert objective(b, class_weight=given) == pytest.approx(wanted, rel=1e-5)
    sentence, labels = [["a"], ["b"]], [["A"], ["B"]]
    plain = {"features": "S1", "max_iter": 50, "l2": 0.3, "tol": 1e-10}
    twice = b.kind(**plain).fit([*sentence, ["a"]], [*labels, ["A"]])
    weighed = b.kind(**plain, class_weight={"A": 2.0}).fit(sentence, labels)
    np.testing.assert_allclose(weighed.model_.scorer.weights, twice.model_.scorer.weights, atol=1e-5)
    halves = b.kind(**plain, class_weight={"A": 2.0}).fit(sentence, labels, sample_weight=[0.5, 1.0])
    np.testing.assert_allclose(
        halves.model_.scorer.weights, b.kind(**plain).fit(sentence, labels).model_.scorer.weights, atol=1e-5
    )
    with pytest.raises(tw.exceptions.ParameterError, match=r"class_weight: unknown label 'X'"):
        b.fit(P, class_weight={"X": 2.0})


@row("random_state", "memm")
def seed(b: Bench) -> None:
    """The seed orders sgd, and from 200 sentences on the stochastic start. Equal seeds give equal bits."""
    many = problem(1, [2] * 200)
    runs = {s: [b.fit(many, random_state=s, max_iter=7) for _ in range(2)] for s in (0, 1)}
    for again in runs.values():
        assert bits(again[0]) == bits(again[1])
    assert bits(runs[0][0]) != bits(runs[1][0])
    wide = [b.fit(many, random_state=s, max_iter=3, optimizer="sgd") for s in (0, 1)]
    assert bits(wide[0]) != bits(wide[1])
    few = problem(1, [2] * 199)
    small = [b.fit(few, random_state=s, max_iter=7) for s in (0, 1)]
    assert bits(small[0]) == bits(small[1])


# -- HMM --------------------------------------------------------------------------------------------------

X = [["the", "Dog"], ["the", "cat", "runs"], ["Dog", "the"]]
Y = [["D", "N"], ["D", "N", "V"], ["N", "D"]]
#: Words seen twice or more: the, Dog. Emissions: D has the 3, N has Dog 2 and rare 1, V has rare 1.


def scores(tagger: tw.Tagger, word: str) -> dict[str, float]:
    """Return scores of the labels of a sentence of one word."""
    return {path[0]: score for path, score in tagger.predict_kbest([[word]], 9)[0]}


def emissions(tagger: tw.Tagger, word: str) -> dict[str, float]:
    """Return P(word | label), without start and end."""
    return {label: math.exp(score) for label, score in scores(tagger, word).items()}


def hmm(b: Bench, **params: Any) -> tw.Tagger:
    return b.kind(**{"unknown_words": "one", "start_end": False, "smoothing": 0.1, **params}).fit(X, Y)


def assert_additive(b: Bench) -> None:
    """(n + d) / (N + d V) with V = 3 symbols: the words the and Dog, and the unknown one."""
    for d in (0.1, 0.5, 2.0):
        tagger = hmm(b, smoothing=d)
        wanted = {"D": (3 + d) / (3 + 3 * d), "N": d / (3 + 3 * d), "V": d / (1 + 3 * d)}
        assert emissions(tagger, "the") == pytest.approx(wanted, rel=1e-5)
        new = {"D": d / (3 + 3 * d), "N": (1 + d) / (3 + 3 * d), "V": (1 + d) / (1 + 3 * d)}
        assert emissions(tagger, "never") == pytest.approx(new, rel=1e-5)


@row("smoothing", "hmm")
def smoothing(b: Bench) -> None:
    """witten_bell is n / (N + K), with K / (N + K) shared equally by the unseen. A number is added to all counts."""
    assert_additive(b)
    tagger = hmm(b, smoothing="witten_bell")
    wanted = {"D": 3 / 4, "N": 2 / 5, "V": 1 / 2 / 2}  # N has seen two kinds of three, V one
    assert emissions(tagger, "the")["D"] == pytest.approx(wanted["D"], rel=1e-5)
    assert emissions(tagger, "Dog") == pytest.approx(
        {"D": 1 / 4 / 2, "N": wanted["N"], "V": wanted["V"]}, rel=1e-5
    )
    assert emissions(hmm(b, smoothing=1.0), "the")["D"] == pytest.approx(4 / 6, rel=1e-5)
    # Transitions are smoothed too: D to N twice and no other. The step is the pair's score minus its words' scores.
    pair = {tuple(path): score for path, score in tagger.predict_kbest([["the", "Dog"]], 9)[0]}
    step = pair["D", "N"] - scores(tagger, "the")["D"] - scores(tagger, "Dog")["N"]
    assert math.exp(step) == pytest.approx(2 / 3, rel=1e-5)


@row("start_end", "hmm")
def start_end(b: Bench) -> None:
    """First labels and ends have probabilities only with start_end=True."""
    plain, ended = hmm(b, smoothing=1.0), hmm(b, smoothing=1.0, start_end=True)
    assert len(plain.model_.scorer.layout.arrays()["starts"]) == 0
    # D begins 2 of 3 sentences. N follows it twice and the end once: 3 steps of 4 kinds.
    start, end = (2 + 1) / (3 + 3), (1 + 1) / (3 + 4)
    both = scores(ended, "the")["D"] - scores(plain, "the")["D"]
    assert math.exp(both) == pytest.approx(start * end, rel=1e-5)
    # without ends only the two steps from D to N count
    pair = [
        {tuple(path): score for path, score in t.predict_kbest([["the", "the"]], 9)[0]}
        for t in (plain, ended)
    ]
    step = pair[0]["D", "D"] - 2 * scores(plain, "the")["D"]
    assert math.exp(step) == pytest.approx(1 / (2 + 3), rel=1e-5)


@row("rare", "hmm")
def rare(b: Bench) -> None:
    """Words seen fewer than `rare` times count as unknown."""
    for least, known in ((1, {"the", "Dog", "cat", "runs"}), (2, {"the", "Dog"}), (3, {"the"}), (4, set())):
        tagger = hmm(b, rare=least, smoothing=0.3)
        strange = scores(tagger, "never")
        for word in ("the", "Dog", "cat", "runs"):
            assert (scores(tagger, word) != pytest.approx(strange)) is (word in known)


@row("unknown_words", "hmm")
def unknown_words(b: Bench) -> None:
    """Unknown words are one class, or are distinguished by shape, or by shape and last three letters."""
    words = [["going"], ["doing"], ["Oslo"], ["Rome"], ["x7"], ["often"], ["often"]]
    labels = [["V"], ["V"], ["N"], ["N"], ["C"], ["A"], ["A"]]
    alike = {
        "one": [{"swing", "table", "Kiel", "y8", "Tusla"}],
        "shape": [{"swing", "table"}, {"Kiel", "Tusla"}, {"y8"}],
        "suffix": [{"swing"}, {"y8", "table", "Kiel", "Tusla"}],
    }
    for given, classes in alike.items():
        tagger = b.kind(features="S1", unknown_words=given, start_end=False, smoothing=0.1).fit(words, labels)
        found = [{word: scores(tagger, word) for word in sorted(group)} for group in classes]
        for group in found:
            first, *rest = group.values()
            assert all(other == pytest.approx(first, abs=1e-6) for other in rest)
        for one, other in itertools.pairwise(found):
            assert next(iter(one.values())) != pytest.approx(next(iter(other.values())), abs=1e-3)


@row("overlapping", "hmm")
def overlapping(b: Bench) -> None:
    """Every attribute is a separate emission. Without `overlapping` a token with several attributes is an error."""
    sentences = [[{"a": 1.0, "b": 1.0}], [{"a": 1.0}], [{"b": 2.0}]]
    labels = [["x"], ["y"], ["y"]]
    params: dict[str, Any] = {
        "features": "attributes",
        "smoothing": 1.0,
        "start_end": False,
    }
    tagger = b.kind(overlapping=True, **params).fit(sentences, labels)
    # x emits a and b once each, y emits a once and b twice: (n + 1) / (N + 2)
    found = {path[0]: math.exp(score) for path, score in tagger.predict_kbest([[{"a": 1.0, "b": 1.0}]], 9)[0]}
    assert found == pytest.approx({"x": 2 / 4 * 2 / 4, "y": 2 / 5 * 3 / 5}, rel=1e-5)
    with pytest.raises(tw.exceptions.ParameterError, match="overlapping=True"):
        b.kind(overlapping=False, **params).fit(sentences, labels)

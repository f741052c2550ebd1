"""Rows of the online learners: whole runs match the reference implementation, in the order given by the seed."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
import pytest

import tagwise as tw

from ..online import permutation
from ..reference import chain, costs, history, mira, perceptron
from ..reference.chain import Array, Path, Scores
from ..reference.model import Shape, features, score_sentence
from ..strategies import Problem
from .rows import NAMES, Bench, bits, dense, exact, mask, problem, row, tokens

ONLINE = ("perceptron", "mira", "pa", "arow")
MARGIN = ONLINE[1:]
#: Real values from a seed for which rounding decides none of the runs below.
P = problem(7, [3, 4, 2, 4, 3, 4], labels=4, attributes=6, real=True)
NOISE = 1e-5

Cost = Callable[[Sequence[str], Sequence[str]], float]


def orders(n: int, epochs: int, seed: int, shuffle: bool = True) -> list[list[int]]:
    return [permutation(n, seed, epoch) if shuffle else list(range(n)) for epoch in range(epochs)]


def step(kind: str, w: Array, v: Array, d: Array, cost: Array, params: dict[str, Any]) -> tuple[Array, Array]:
    """Return weights and variances after one sentence, by the papers' formulas. Rows of d are the constraints."""
    if kind == "perceptron":
        return w + d[0], v
    if kind == "mira":
        return mira.closest(w, d, cost, params.get("C")), v
    d, shortfall = d[0], max(0.0, cost[0] - w @ d[0])
    if kind == "pa":
        C, square = params.get("C", 1.0), d @ d
        tau = {0: shortfall / square, 1: min(C, shortfall / square), 2: shortfall / (square + 1 / (2 * C))}
        return w + tau[params.get("variant", 1)] * d, v
    r = params.get("r", 1.0)
    if shortfall == 0.0:
        return w, v
    return w + shortfall / (r + d**2 @ v) * v * d, 1 / (1 / v + d**2 / r)


def reference_weights(
    kind: str, p: Problem, order: Iterable[Iterable[int]], cost: Cost = costs.accuracy, **params: Any
) -> tuple[Array, Array]:
    """Return last and average weights. Reject runs in which rounding could decide."""
    exists, X, rng = mask(p), exact(p), np.random.default_rng(0)
    w, total, steps = np.zeros(p.shape.size), np.zeros(p.shape.size), 0
    v = np.full(p.shape.size, float(params.get("variance", 1.0)))
    k = params.get("k", 4) if kind == "mira" else 1
    for epoch in order:
        for i in epoch:
            x, y = X[i], p.y[i]
            s = score_sentence(w, x, p.shape)
            extra = np.zeros(s.node.shape)
            if params.get("augment"):
                extra += [[cost([NAMES[a]], [NAMES[c]]) for c in range(p.shape.labels)] for a in y]
            found = [path for _, path in chain.kbest(s._replace(node=s.node + extra), k)]
            for _ in range(3):
                noisy = Scores(*(part * (1 + NOISE * rng.standard_normal(part.shape)) for part in s))
                noisy = noisy._replace(node=noisy.node + extra)
                assert [path for _, path in chain.kbest(noisy, k)] == found, "rounding could decide this run"
            guesses = [path for path in found if path != y]
            if guesses:
                d = np.array([exists * (features(x, y, p.shape) - features(x, g, p.shape)) for g in guesses])
                lost = [cost([NAMES[a] for a in y], [NAMES[a] for a in g]) for g in guesses]
                w, v = step(kind, w, v, d, np.array(lost), params)
            total, steps = total + w, steps + 1
    return w, total / steps


def assert_matches_reference(
    b: Bench, cost: Cost = costs.accuracy, given: Any = "accuracy", **params: Any
) -> tw.Tagger:
    """The estimator's weights match the reference implementation, in a run that learns something."""
    p = P
    usual: dict[str, Any] = {"max_iter": 2, "random_state": 0, "shuffle": True, "average": True}
    all_params = {**usual, **params, **b.some(cost=given)}
    order = orders(len(p.X), *(all_params[name] for name in ("max_iter", "random_state", "shuffle")))
    last, mean = reference_weights(b.kind.name, p, order, cost, **params)
    tagger = b.fit(p, **{name: value for name, value in all_params.items() if b.has(name)})
    wanted = mean if all_params["average"] else last
    assert np.abs(wanted).max() > 1e-2
    np.testing.assert_allclose(dense(tagger, p), wanted, rtol=1e-4, atol=1e-4)
    return tagger


@row("max_iter", *ONLINE)
def max_iter(b: Bench) -> None:
    """Training makes `max_iter` passes, with one history entry each."""
    for n in (1, 2, 3):
        assert len(assert_matches_reference(b, max_iter=n).history_) == n


@row("average", *ONLINE)
def average(b: Bench) -> None:
    """The weights are the mean over all sentences, or the last ones."""
    assert_matches_reference(b, average=True)
    assert_matches_reference(b, average=False)


@row("shuffle", *ONLINE)
def shuffle(b: Bench) -> None:
    """The order is the given one, or a new one in every epoch."""
    assert_matches_reference(b, shuffle=False)
    assert_matches_reference(b, shuffle=True)


@row("random_state", *ONLINE)
def random_state(b: Bench) -> None:
    """The seed determines the order of the sentences. Without shuffling it has no effect."""
    for given in (0, 1, 77):
        assert_matches_reference(b, random_state=given)
    assert bits(b.fit(P, max_iter=2, random_state=1)) == bits(b.fit(P, max_iter=2, random_state=1))
    plain = [b.fit(P, max_iter=2, shuffle=False, random_state=given) for given in (0, 1)]
    assert bits(plain[0]) == bits(plain[1])


@row("parts", *ONLINE)
def parts(b: Bench) -> None:
    """Each part trains alone, part s on the sentences s, s + n, s + 2 n, and the weights are averaged."""
    for n in (2, 3):
        ends, totals = [], []
        for s in range(n):
            part = np.arange(s, len(P.X), n)
            last, mean = reference_weights(b.kind.name, P, [part[permutation(len(part), 0, 0, s)].tolist()])
            ends.append(last)
            totals.append(mean * len(part))
        for flag, wanted in ((False, np.mean(ends, axis=0)), (True, np.sum(totals, axis=0) / len(P.X))):
            tagger = b.fit(P, max_iter=1, parts=n, average=flag)
            np.testing.assert_allclose(dense(tagger, P), wanted, rtol=1e-4, atol=1e-4)


@row("mode", "perceptron")
def mode(b: Bench) -> None:
    """In batch mode the updates of an epoch are summed before they are applied."""
    assert_matches_reference(b)
    for flag in (True, False):
        last, mean = perceptron.batch_perceptron(exact(P), P.y, P.shape, 3, mask(P))
        tagger = b.fit(P, mode="batch", max_iter=3, average=flag)
        np.testing.assert_allclose(dense(tagger, P), mean if flag else last, rtol=1e-5, atol=1e-5)


@row("voters", "perceptron")
def voters(b: Bench) -> None:
    """The majority of training's weight vectors decides: all of them, or evenly spaced ones weighted by their steps."""
    n, epochs, X = len(P.X), 3, exact(P)
    steps = perceptron.after_each_step(X, P.y, P.shape, orders(n, epochs, 0), mask(P))
    assert bits(b.fit(P, max_iter=epochs, voters=0)) == bits(b.fit(P, max_iter=epochs))
    differ = set()
    for given, stride in ((n * epochs, 1), (99, 1), (9, 2), (6, 3), (5, 6), (3, 6)):
        tagger = b.fit(P, max_iter=epochs, voters=given)
        np.testing.assert_allclose(dense(tagger, P), np.mean(steps, axis=0), rtol=1e-5, atol=1e-5)
        evaluated = [(e, at) for e in range(epochs) for at in range(stride, n + 1, stride)]
        chosen = [steps[e * n + at - 1] for e, at in evaluated]
        assert len(tagger.model_.arrays["voters.counts"]) <= min(given, len(chosen))
        assert tagger.model_.arrays["voters.counts"].sum() == n * epochs
        for decoder, place in (("viterbi", 0), ("pointwise", 1)):
            wanted = [perceptron.voted(chosen, [stride] * len(chosen), x, P.shape)[place] for x in X]
            found = tagger.predict(tokens(P), decoder=decoder)
            assert found == [[NAMES[y] for y in path] for path in wanted]
            differ.add(str(found))
    assert len(differ) > 1


@row("k", "mira")
def k(b: Bench) -> None:
    """The k best paths must be beaten by their cost."""
    for given in (1, 2, 4, 6):
        assert_matches_reference(b, k=given, max_iter=1)


@row("C", "mira")
def C_of_mira(b: Bench) -> None:
    """The multipliers of a sentence sum to at most C. None means unbounded."""
    for given in (0.02, 0.2, None):
        assert_matches_reference(b, C=given, max_iter=1)


@row("C", "pa")
def C_of_pa(b: Bench) -> None:
    """C caps the step of variant 1 and dampens that of variant 2. Variant 0 ignores it."""
    for variant in (1, 2):
        for given in (0.05, 0.5):
            assert_matches_reference(b, variant=variant, C=given)
    pair = [b.fit(P, variant=0, C=given) for given in (0.05, 0.5)]
    assert bits(pair[0]) == bits(pair[1])


@row("variant", "pa")
def variant(b: Bench) -> None:
    """Variant 0 has no slack, 1 a linear one, 2 a squared one."""
    for given in (0, 1, 2):
        assert_matches_reference(b, variant=given, C=0.1)


@row("r", "arow")
def r(b: Bench) -> None:
    """With a larger r weights move less and variances shrink more slowly."""
    for given in (0.3, 1.0, 5.0):
        assert_matches_reference(b, r=given)


@row("variance", "arow")
def variance(b: Bench) -> None:
    """The initial variance of every feature."""
    for given in (0.2, 1.0, 4.0):
        assert_matches_reference(b, variance=given)


def root(gold: Sequence[str], guess: Sequence[str]) -> float:
    return math.sqrt(costs.accuracy(gold, guess))


def zero_one(gold: Sequence[str], guess: Sequence[str]) -> float:
    return float(gold != guess)


#: Values of `cost` and the functions that they select.
COSTS: list[tuple[Any, Cost]] = [
    ("accuracy", costs.accuracy),
    ("root", root),
    ("zero_one", zero_one),
    ("f1", costs.f1),
    ("f1(3)", lambda a, b: costs.f1(a, b, 3.0)),
    ("precision_recall", costs.precision_recall),
    ("precision_recall(0.2)", lambda a, b: costs.precision_recall(a, b, 0.2)),
    ("weighted_accuracy", costs.weighted_accuracy),
    ("weighted_accuracy(0.5, 2)", lambda a, b: costs.weighted_accuracy(a, b, 0.5, 2.0)),
    ("weighted_accuracy(0.5, 2, 3)", lambda a, b: costs.weighted_accuracy(a, b, 0.5, 2.0, 3.0)),
    (lambda gold, guess: 0.5 * (gold[0] != guess[0]) + 0.25, lambda a, b: 0.5 * (a[0] != b[0]) + 0.25),
]


@row("cost", *MARGIN)
def cost(b: Bench) -> None:
    """The required margin is the named cost with its numbers, or a user's function of label names."""
    params = {"k": 2} if b.kind is tw.MIRA else {"variant": 0} if b.kind is tw.PassiveAggressive else {}
    for given, meaning in COSTS:
        assert_matches_reference(b, cost=meaning, given=given, max_iter=1, average=False, **params)


@row("augment", "mira")
def augment(b: Bench) -> None:
    """The cost is added to the scores in the search for rivals. A cost that is not a sum over tokens is an error."""
    assert_matches_reference(b, augment=False, k=2, max_iter=1)
    assert_matches_reference(b, augment=True, k=2, max_iter=1)

    def weighted(gold: Sequence[str], guess: Sequence[str]) -> float:
        return costs.weighted_accuracy(gold, guess, 2.0, 1.0, 0.5)

    assert_matches_reference(
        b, augment=True, k=2, max_iter=1, cost=weighted, given="weighted_accuracy(2, 1, 0.5)"
    )
    with pytest.raises(ValueError, match="augment"):
        b.fit(P, augment=True, cost="f1")


# -- labels further back ----------------------------------------------------------------------------------

WORDS = [["a", "b", "a"], ["b", "a"], ["c", "c", "a", "c"], ["b", "a", "c"], ["c", "a"]]
GOLD: list[Path] = [(1, 2, 2), (1, 2), (2, 0, 0, 0), (1, 0, 0), (0, 1)]
DOCUMENTS = [[0, 1], [2, 3, 4]]


def one_hot() -> Problem:
    rows = np.eye(3)
    return Problem(Shape(3, 3), [rows[["abc".index(w) for w in s]] for s in WORDS], GOLD)


def corpus() -> tw.Corpus:
    begins = {document[0] for document in DOCUMENTS}
    return tw.Corpus(
        tw.Sentence(
            {"word": words, "label": [NAMES[y] for y in path]}, "label", doc=str(i) if i in begins else None
        )
        for i, (words, path) in enumerate(zip(WORDS, GOLD))
    )


def assert_history(
    b: Bench, m: int, p: int, document: bool, given: Any, pool: int = 128, endless: bool = False
) -> None:
    """The weights of all terms match the reference implementation, whose labels have the model's order."""
    epochs = 1 if b.kind is tw.MIRA else 2  # margins make exact ties from the second on
    tagger = b.kind(
        features="S1",
        lookback=tw.Lookback(*given, pool=pool, document=document),
        max_iter=epochs,
        shuffle=False,
        average=False,
        **b.some(k=1),
    ).fit(corpus())
    order = [NAMES.index(name) for name in tagger.classes_]
    plain = one_hot()
    own = Problem(plain.shape, plain.X, [tuple(order.index(y) for y in path) for path in GOLD])
    terms = history.Terms(3, p, document, endless)
    documents = DOCUMENTS if document else [[i] for i in range(len(GOLD))]
    last, _ = history.train(
        own.X, own.y, WORDS, documents, own.shape, terms, m, epochs, mask(own), k=2 - epochs
    )
    text = tagger.model_.vocabulary.texts()
    assert text == ["word[0]=a", "word[0]=b", "word[0]=c"]
    n = own.shape.size
    assert tagger.model_.lookback is not None
    found = tagger.model_.lookback.weights
    np.testing.assert_allclose(found[: terms.size], last[n:], atol=1e-5)
    assert not found[terms.size :].any()  # tables of distances that no sentence has
    np.testing.assert_allclose(tagger.model_.scorer.weights, last[:n][mask(own)], atol=1e-5)
    assert np.any(last[n:])


@row("lookback", "perceptron", "mira")
def lookback(b: Bench) -> None:
    """Lookback (m, p) has cells of m labels and features on labels up to p back. None has neither."""
    for given, m, p in (((1, 2), 1, 2), ((1, 3), 1, 3), ((2, 2), 2, 2)):
        assert_history(b, m, p, False, given)
    assert b.kind(features="S1", max_iter=1).fit(corpus()).model_.lookback is None
    short, long = (
        b.kind(features="S1", max_iter=1, lookback=given).fit(corpus())
        for given in ((1, 2), tw.Lookback(1, 2))
    )
    assert bits(short) == bits(long)
    assert_pool(b)
    assert_documents(b)


def assert_pool(b: Bench) -> None:
    """With p = inf every distance below `pool` has a table and the others share one."""
    for shared in (2, 3):
        assert_history(b, 1, shared, False, (1, math.inf), shared, endless=True)
    assert_history(b, 1, 3, False, (1, math.inf))  # no label is further back than three


def assert_documents(b: Bench) -> None:
    """Documents add features on labels of earlier tokens with the same word. They need marked documents."""
    assert_history(b, 1, 1, True, (1, 1))
    assert_history(b, 1, 2, True, (1, 2))
    with pytest.raises(tw.exceptions.ParameterError, match="document=True needs a corpus that marks"):
        b.kind(features="S1", lookback=tw.Lookback(document=True)).fit(
            WORDS, [[NAMES[y] for y in path] for path in GOLD]
        )

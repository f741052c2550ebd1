"""Rows of the CRF: the objective at given weights matches its formula, and training ends at the optimum."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tagwise as tw
from tagwise import _core
from tagwise.dataset import encode
from tagwise.learners import gradient, stochastic
from tagwise.learners.backends import BACKENDS, Backend
from tagwise.learners.problem import WORTH_WARMING, curvature_scale
from tagwise.optimizers import OPTIMIZERS, lbfgs

from .. import constructors
from ..reference import losses, scores
from ..reference.chain import Array, Path, Scores
from ..reference.model import pull_back, score_sentence
from ..strategies import Problem
from .rows import NAMES, Bench, bits, by_length, dense, exact, mask, names, problem, row, tokens

Loss = Callable[[Scores, Path], tuple[float, Scores]]

P = problem(3, [4, 1, 3, 5, 2, 4])
OPTIMUM: dict[str, Any] = {"tol": 0.0, "max_iter": 400, "optimizer": "lbfgs"}


@functools.cache
def start() -> tw.Tagger:
    """Return weights at which to evaluate the objective: neither zero nor an optimum of anything below."""
    return tw.CRF(all_pairs=True, l2=0.3, max_iter=4).fit(tokens(P), names(P))


def total(w: Array, p: Problem, loss: Loss, weight: Any = None, ends: Any = None) -> tuple[float, Array]:
    """Return sum_i w_i loss_i and its gradient, by the reference implementation.

    `ends` marks the sentences with a true begin and a true end.
    """
    value, out = 0.0, np.zeros(p.shape.size)
    for i, (x, y) in enumerate(zip(exact(p), p.y)):
        begins, closes = (True, True) if ends is None else ends[i]
        s = score_sentence(w, x, p.shape)
        v, g = loss(s._replace(start=s.start * begins, end=s.end * closes), y)
        g = g._replace(start=g.start * begins, end=g.end * closes)
        factor = 1.0 if weight is None else float(weight[i])
        value, out = value + factor * v, out + factor * pull_back(g, x, p.shape)
    return value, out


def objective(b: Bench, p: Problem = P, y: Any = None, keywords: Any = None, **params: Any) -> float:
    """Return the learner's objective at the weights of `start`."""
    given = {"l2": 0.0, "max_iter": 0, "all_pairs": True, **params}
    tagger = b.kind(**given).fit(
        tokens(p), names(p) if y is None else y, warm_start=start(), **(keywords or {})
    )
    np.testing.assert_array_equal(dense(tagger, p), dense(start(), P))
    return tagger.objective_


def assert_optimal(
    b: Bench, reference_loss: Loss, p: Problem = P, weight: Any = None, cut_to: Any = None, **params: Any
) -> None:
    """The gradient of the reference objective vanishes at the trained weights. `cut_to` has pieces and their ends."""
    given = {"l2": 0.2, "all_pairs": True, **OPTIMUM, **params}
    w = dense(b.fit(p, **given), p)
    pieces, ends = (p, None) if cut_to is None else cut_to
    slope = total(w, pieces, reference_loss, weight, ends)[1]
    assert np.linalg.norm(slope) > 1e-2
    assert np.linalg.norm(slope + 2 * given["l2"] * w) < 5e-3 * np.linalg.norm(slope)


@row("loss", "crf")
def loss(b: Bench) -> None:
    """Each of the four losses is the sum of its formula, and training finds its optimum."""
    w = dense(start(), P)
    for name, reference_loss in losses.LOSSES.items():
        assert objective(b, loss=name) == pytest.approx(total(w, P, reference_loss)[0], rel=1e-5)
        assert_optimal(b, reference_loss, loss=name)


@row("l2", "crf")
def l2(b: Bench) -> None:
    """l2 ||w||^2 is added to the sum over sentences."""
    w = dense(start(), P)
    value = total(w, P, losses.log_loss)[0]
    for strength in (0.0, 0.5, 3.0):
        assert objective(b, l2=strength) == pytest.approx(value + strength * w @ w, rel=1e-5)
    for strength in (0.05, 2.0):
        assert_optimal(b, losses.log_loss, l2=strength)


@row("prior", "crf")
def prior(b: Bench) -> None:
    """prior ||w - w_0||^2 is added: it is 0 at w_0, and the gradient of the sum vanishes at the optimum."""
    before = dense(start(), P)
    value = total(before, P, losses.log_loss)[0]
    assert objective(b, prior=5.0) == pytest.approx(value, rel=1e-5)
    moved = []
    for strength in (0.02, 0.5, 20.0):
        given = {"l2": 0.2, "all_pairs": True, "prior": strength, **OPTIMUM}
        w = dense(b.fit(P, keywords={"warm_start": start()}, **given), P)
        data = total(w, P, losses.log_loss)[1] + 0.4 * w
        assert np.linalg.norm(data) > 1e-2
        assert np.linalg.norm(data + 2 * strength * (w - before)) < 5e-3 * np.linalg.norm(data)
        moved.append(np.linalg.norm(w - before))
    assert moved[0] > moved[1] > moved[2] > 0.0
    with pytest.raises(tw.exceptions.ParameterError, match="prior=1 needs a model to start from"):
        b.fit(P, prior=1.0)
    with pytest.raises(tw.exceptions.ParameterError, match=r"optimizer='sgd' does not support a prior"):
        b.fit(P, prior=1.0, optimizer="sgd", keywords={"warm_start": start()})


def assert_sparse_optimum(tagger: tw.Tagger, slope: Array, p: Problem, l1: float, l2: float) -> None:
    """Zero is in the subdifferential of f + l2 ||w||^2 + l1 ||w||_1, over the features that exist."""
    w, exists = dense(tagger, p), mask(p)
    smooth = slope + 2 * l2 * w
    assert np.abs(smooth + l1 * np.sign(w))[(w != 0) & exists].max() < 2e-3
    at_zero = np.abs(smooth)[(w == 0) & exists]
    assert len(at_zero) > 2
    assert at_zero.max() < l1 + 2e-3
    assert tagger.n_nonzero_ == np.count_nonzero(w)


@row("l1", "crf")
def l1(b: Bench) -> None:
    """l1 ||w||_1 is added: fewer weights remain, and the subgradient vanishes."""
    w = dense(start(), P)
    value = total(w, P, losses.log_loss)[0]
    for strength in (0.25, 1.0):
        found = objective(b, l1=strength, l2=0.5)
        assert found == pytest.approx(value + 0.5 * w @ w + strength * np.abs(w).sum(), rel=1e-5)
    full = b.fit(P, l1=0.0, l2=0.1, max_iter=400)
    assert full.n_nonzero_ == full.n_features_
    few = [b.fit(P, l1=strength, l2=0.1, tol=1e-9, max_iter=400) for strength in (0.4, 0.8)]
    assert full.n_nonzero_ > few[0].n_nonzero_ > few[1].n_nonzero_ > 0
    for tagger, strength in zip(few, (0.4, 0.8)):
        slope = total(dense(tagger, P), P, losses.log_loss)[1]
        assert_sparse_optimum(tagger, slope, P, strength, 0.1)


def assert_optimizers(b: Bench, evaluate: Callable[..., float], size: int) -> None:
    """Each name runs its own optimiser, and "auto" the documented ones."""
    plain: dict[str, Any] = {"l2": 0.2, "tol": 0.0, "max_iter": 4}
    for name in ("lbfgs", "cg", "owlqn"):
        extra = {"l1": 0.0} if name == "owlqn" else {}
        steps = [s.value for s, _ in zip(OPTIMIZERS[name].run(evaluate, np.zeros(size), **extra), range(5))]
        history = b.fit(P, optimizer=name, **plain).history_
        assert [entry["objective"] for entry in history] == pytest.approx(steps[1:], rel=1e-6)
    curves = {
        name: tuple(entry["objective"] for entry in b.fit(P, optimizer=name, **plain).history_)
        for name in ("auto", *OPTIMIZERS)
    }
    assert len(set(curves.values())) == len(curves)
    for name in OPTIMIZERS:
        optimum = b.fit(P, optimizer=name, l2=0.2, tol=1e-9, max_iter=2000).objective_
        best = b.fit(P, optimizer="lbfgs", l2=0.2, tol=0.0, max_iter=400).objective_
        assert optimum == pytest.approx(best, rel=2e-2 if name == "sgd" else 1e-5)
    # With l1 "auto" is OWL-QN to the bit, and optimisers without l1 raise an error.
    both = [b.fit(P, optimizer=name, l1=0.5, max_iter=20) for name in ("auto", "owlqn")]
    assert bits(both[0]) == bits(both[1])
    for name in ("lbfgs", "cg", "sgd", "dual"):
        with pytest.raises(tw.exceptions.ParameterError, match=f"optimizer='{name}' does not support l1=0.5"):
            b.fit(P, optimizer=name, l1=0.5)


@row("optimizer", "crf")
def optimizer(b: Bench) -> None:
    """Each name runs its own optimiser."""
    vocabulary, data = encode.build(tokens(P))
    data = encode.with_labels(data, names(P), encode.collect_labels(names(P)))
    layout = _core.Layout.build(data, len(vocabulary), P.shape.labels)
    evaluate = gradient.Evaluation(_core.Objective(data, layout), 0.2, 0)
    assert_optimizers(b, evaluate, len(layout))
    core = _core.Stochastic(data, layout)
    descent = stochastic.Descent(core, np.zeros(len(layout)), 0.2, len(data), 5)
    steps = [s.value for s, _ in zip(stochastic.sgd(evaluate, descent), range(5))]
    history = b.fit(P, optimizer="sgd", l2=0.2, tol=0.0, max_iter=4, random_state=5).history_
    assert [entry["objective"] for entry in history] == pytest.approx(steps[1:], rel=1e-6)


@row("device", "crf")
def device(b: Bench) -> None:
    """The engine of that name builds objective and scorer."""
    made: list[str] = []

    def noted(engine: str, make: Any) -> Any:
        def note(*given: Any) -> Any:
            made.append(engine)
            return make(*given)

        return note

    cpu = BACKENDS["cpu"]
    other = Backend("cuda", noted("objective", cpu.objective), noted("scorer", cpu.scorer))
    b.monkeypatch.setitem(BACKENDS, "cuda", other)
    there, here = (b.fit(P, device=name, optimizer="lbfgs", max_iter=5) for name in ("cuda", "cpu"))
    assert {"objective", "scorer"} == set(made)
    assert bits(there) == bits(here)


@row("class_weight", "crf")
def class_weight(b: Bench) -> None:
    """The log of the gold label's weight is added to the cost of wrong labels inside log Z."""
    w, L = dense(start(), P), P.shape.labels
    wrong, gold = 1 - np.eye(L), np.concatenate([np.array(y) for y in P.y])
    counts = np.array([(gold == y).sum() for y in range(L)])
    assert counts.min() > 0
    assert len(set(counts)) > 1
    balanced = len(gold) / (L * counts)
    for given, weights in (
        ("balanced", balanced),
        ({"O": 4.0, "I-p": 0.25}, np.array([4.0, 1.0, 0.25])),
        (None, np.ones(L)),
        ({}, np.ones(L)),
        (4.5, np.full(L, 4.5)),
    ):
        matrix = np.diag(np.log(weights)) @ wrong
        loss = functools.partial(losses.softmax_margin, cost=matrix)
        assert objective(b, class_weight=given) == pytest.approx(total(w, P, loss)[0], rel=1e-5)
        assert_optimal(b, loss, class_weight=given)
    one = tw.CRF(features="S1", l2=0.0, max_iter=0, all_pairs=True, class_weight={"A": 5.0})
    one.fit(
        [["a"]],
        [["A"]],
        warm_start=tw.CRF(features="S1", l2=0.1, max_iter=3).fit([["a"], ["b"]], [["A"], ["B"]]),
    )
    p = dict(zip(one.classes_, one.predict_marginals([["a"]])[0][0]))["A"]
    assert one.objective_ == pytest.approx(np.log(1 + 5 * (1 - p) / p), rel=1e-5)
    with pytest.raises(
        tw.exceptions.ParameterError, match=r"class_weight: unknown label 'X'\. The labels are: "
    ):
        b.fit(P, class_weight={"X": 2.0})
    for odd in (
        {"loss": "exp"},
        {"loss": "pointwise_log"},
        {"order": 2},
        {"optimizer": "sgd"},
        {"partial": True},
    ):
        with pytest.raises(tw.exceptions.ParameterError, match="class_weight"):
            b.fit(P, class_weight="balanced", **odd)


LENGTHS = np.array([len(y) for y in P.y], dtype=float)
WEIGHT = np.array([0.5, 2.0, 1.0, 0.25, 3.0, 1.5])


@row("pi", "crf")
def pi(b: Bench) -> None:
    """A sentence of T tokens weighs c pi^T times its own weight, 1 on average. A piece weighs by its own length."""
    w = dense(start(), P)
    for rate in (0.5, 0.9):
        value = total(w, P, losses.log_loss, by_length(rate, LENGTHS))[0]
        assert objective(b, pi=rate) == pytest.approx(value, rel=1e-5)
        given = {"sample_weight": by_length(rate, LENGTHS)}
        alike = [b.fit(P, pi=rate, max_iter=20), b.fit(P, max_iter=20, keywords=given)]
        np.testing.assert_allclose(*(dense(tagger, P) for tagger in alike), atol=1e-4)
        both = total(w, P, losses.log_loss, by_length(rate, LENGTHS, WEIGHT))[0]
        assert objective(b, pi=rate, keywords={"sample_weight": WEIGHT}) == pytest.approx(both, rel=1e-5)
    pieces, of, ends = cut(P, 2)
    long = np.array([len(y) for y in pieces.y], dtype=float)
    value = total(w, pieces, losses.log_loss, by_length(0.5, long, WEIGHT[of]), ends)[0]
    found = objective(b, pi=0.5, max_length=2, keywords={"sample_weight": WEIGHT})
    assert found == pytest.approx(value, rel=1e-5)


def cut(p: Problem, most: int) -> tuple[Problem, np.ndarray, list[tuple[bool, bool]]]:
    """Cut sentences into the fewest pieces of at most `most` tokens, of nearly equal length, the longer last.

    Also return the sentence of each piece, and whether it begins and ends the sentence.
    """
    X, y, of, borders = [], [], [], []
    for i, (x, path) in enumerate(zip(p.X, p.y)):
        n = -(-len(path) // most)
        ends = [len(path) * j // n for j in range(1, n + 1)]
        for begin, end in zip([0, *ends], ends):
            X.append(x[begin:end])
            y.append(path[begin:end])
            of.append(i)
            borders.append((begin == 0, end == len(path)))
    return Problem(p.shape, X, y), np.array(of), borders


@row("max_length", "crf")
def max_length(b: Bench) -> None:
    """Longer sentences are cut into pieces of similar length. Start and end features fire at the true ends only."""
    w = dense(start(), P)
    for most in (1, 2, 3):
        pieces, of, ends = cut(P, most)
        weight = {"sample_weight": WEIGHT}
        inner = {"all_pairs": True, "max_iter": 20, "start_end": False}
        ours = b.fit(P, max_length=most, keywords=weight, **inner)
        theirs = b.fit(pieces, keywords={"sample_weight": WEIGHT[of]}, **inner)
        np.testing.assert_array_equal(dense(ours, P), dense(theirs, P))
        for name, reference_loss in losses.LOSSES.items():
            value = total(w, pieces, reference_loss, ends=ends)[0]
            assert objective(b, loss=name, max_length=most) == pytest.approx(value, rel=1e-5)
            assert_optimal(b, reference_loss, cut_to=(pieces, ends), loss=name, max_length=most)
        value = total(w, pieces, losses.log_loss, ends=ends)[0]
        assert objective(b, order=2, max_length=most) == pytest.approx(value, rel=1e-5)
    # For single tokens label tuples carry no information, so the optimum is that of the first order.
    assert_optimal(b, losses.log_loss, cut_to=cut(P, 1)[::2], order=2, max_length=1)
    same = [b.fit(P, max_length=most, max_iter=20) for most in (5, None)]
    assert bits(same[0]) == bits(same[1])
    assert bits(b.fit(P, max_length=4, max_iter=20)) != bits(same[0])


@row("order", "crf")
def order(b: Bench) -> None:
    """Labels of period n + 1 with all words alike need the n labels before."""
    period = {2: ["x", "x", "y"], 3: ["x", "x", "x", "y"]}
    for needed, pattern in period.items():
        gold = (pattern * 5)[:15]
        for given in (1, 2, 3):
            tagger = b.kind(features="S1", order=given, l2=0.001, max_iter=200)
            tagger.fit([["a"] * 15] * 3, [gold] * 3)
            assert (tagger.predict([["a"] * 15]) == [gold]) == (given >= needed)


SETS = [["O|B-p", "B-p", "_", "O"], ["I-p"], ["_", "O|I-p", "B-p"], *names(P)[3:]]


def partial_loss(p: Problem, y: list[list[str]], w: Array) -> float:
    """Return the reference loss of sets of labels written "A|B" and "_"."""
    value = 0.0
    for x, labels in zip(exact(p), y):
        allowed = [[name in label.split("|") or label == "_" for name in NAMES[:3]] for label in labels]
        value += losses.partial_log_loss(score_sentence(w, x, p.shape), allowed)[0]
    return value


@row("partial", "crf")
def partial(b: Bench) -> None:
    """The loss of a set of labels is -log of its total probability. Without `partial` its text is a label."""
    w = dense(start(), P)
    assert objective(b, partial=True, y=SETS) == pytest.approx(partial_loss(P, SETS, w), rel=1e-5)
    plain = b.kind(max_iter=2).fit(tokens(P), SETS)
    assert set(plain.classes_) == {label for path in SETS for label in path}
    collections = [[None if y == "_" else y.split("|") for y in path] for path in SETS]
    ours = b.kind(partial=True, max_iter=9).fit(tokens(P), SETS)
    assert bits(ours) == bits(b.kind(partial=True, max_iter=9).fit(tokens(P), collections))
    assert b.kind(partial=True, max_iter=2).fit(tokens(P), names(P)).classes_ == b.fit(P, max_iter=2).classes_
    assert_separator(b)
    assert_unknown(b)


def written(separator: str, unknown: str) -> list[list[str]]:
    return [[unknown if y == "_" else y.replace("|", separator) for y in path] for path in SETS]


def assert_separator(b: Bench) -> None:
    """Sets written with another separator are equal, and "|" then has no special meaning."""
    usual = b.kind(partial=True, max_iter=9).fit(tokens(P), SETS)
    other = b.kind(partial=tw.Partial(separator="/"), max_iter=9).fit(tokens(P), written("/", "_"))
    assert bits(usual) == bits(other)
    assert "O|B-p" in b.kind(partial=tw.Partial(separator="/"), max_iter=2).fit(tokens(P), SETS).classes_


def assert_unknown(b: Bench) -> None:
    """Another sign for any label gives equal models, and "_" is then a label."""
    usual = b.kind(partial=True, max_iter=9).fit(tokens(P), SETS)
    other = b.kind(partial=tw.Partial(unknown="?"), max_iter=9).fit(tokens(P), written("|", "?"))
    assert bits(usual) == bits(other)
    assert "_" in b.kind(partial=tw.Partial(unknown="?"), max_iter=2).fit(tokens(P), SETS).classes_


#: Valid BIO with "I-p" as the most frequent label.
BIO = Problem(P.shape, P.X, [(1, 2, 2, 0), (0,), (1, 2, 2), (0, 1, 2, 2, 2), (1, 2), (1, 2, 2, 0)])


@row("constraints", "crf")
def constraints(b: Bench) -> None:
    """Forbidden paths do not count in log Z, and are never predicted."""
    w = dense(start(), P)
    forbidden = np.zeros((3, 3), dtype=bool)
    forbidden[0, 2] = True  # I-p after O

    def valid_log_loss(s: Scores, y: Path) -> tuple[float, Scores]:
        allowed = np.ones(s.node.shape, dtype=bool)
        allowed[0, 2] = False  # I-p at the beginning
        return losses.log_loss(scores(s.node, s.edge, s.start, s.end, allowed, forbidden), y)

    assert objective(b, BIO, constraints="bio") == pytest.approx(total(w, BIO, valid_log_loss)[0], rel=1e-5)
    assert objective(b, BIO) == pytest.approx(total(w, BIO, losses.log_loss)[0], rel=1e-5)
    tagger = b.fit(BIO, constraints="bio", max_iter=5)
    for path, _ in tagger.predict_kbest(tokens(BIO)[:1], 99)[0]:
        assert all(y != "I-p" or before in ("B-p", "I-p") for before, y in zip(["O", *path], path))


def assert_replayed(b: Bench) -> None:
    """Six weighted, constrained and penalised epochs on the log loss come first, then scaled L-BFGS on the loss."""
    many = Problem(BIO.shape, BIO.X * 34, BIO.y * 34)
    weight = np.resize(WEIGHT, len(many.X))
    vocabulary, data = encode.build(tokens(many))
    labels = encode.collect_labels(names(many))
    data = encode.with_labels(data, names(many), labels)
    layout = _core.Layout.build(data, len(vocabulary), len(labels))
    inside, outside = labels.index("I-p"), labels.index("O")
    sets = np.ones((2, len(labels)), dtype=bool)
    sets[1, inside] = False
    of = np.zeros(data.n_tokens, dtype=np.uint32)
    of[data.offsets[:-1].astype(int)] = 1
    rules = {"forbidden": np.array([outside * len(labels) + inside], dtype=np.uint32), "allowed": (sets, of)}
    common: dict[str, Any] = {"sample_weight": weight, **rules}
    params = {"l2": 3.0, "random_state": 1, "max_iter": 7, "constraints": "bio", "tol": 0.0}
    ascent = constructors.dual(data, layout, 3.0, **common)
    values = [ascent.primal()]  # after each epoch, of which an iteration has one to four
    for _ in range(4 * 7):
        ascent.epoch(1)
        values.append(ascent.primal())
    history = b.fit(many, keywords={"sample_weight": weight}, **params).history_
    epochs = [entry["evaluations"] - 1 for entry in history]
    assert len(epochs) == 7
    assert epochs[0] == 1
    assert [entry["objective"] for entry in history] == pytest.approx([values[n] for n in epochs], rel=1e-6)
    for name in ("pointwise_log", "pointwise_exp"):
        core = constructors.stochastic(data, layout, loss="log", **common)
        descent = stochastic.Descent(core, np.zeros(len(layout)), 3.0, len(data), 1)
        for _ in range(6):
            w = descent.epoch()
        evaluate = gradient.Evaluation(constructors.objective(data, layout, loss=name, **common), 3.0, 0)
        scale = curvature_scale(data, layout)
        steps = [s.value for s, _ in zip(lbfgs(evaluate, w, scale=scale), range(3))]
        history = b.fit(many, keywords={"sample_weight": weight}, loss=name, **params).history_
        assert [entry["objective"] for entry in history[:2]] == pytest.approx(steps[1:], rel=1e-9)


@row("random_state", "crf")
def seed(b: Bench) -> None:
    """The seed orders sgd, and from 200 sentences on dual ascent and the stochastic start.

    Equal seeds give equal bits.
    """
    many = Problem(P.shape, P.X * 34, P.y * 34)
    assert len(many.X) >= WORTH_WARMING > len(P.X)
    for loss in ("log", "pointwise_log"):
        runs = {s: [b.fit(many, random_state=s, max_iter=7, loss=loss) for _ in range(2)] for s in (0, 1)}
        for again in runs.values():
            assert bits(again[0]) == bits(again[1])
        assert bits(runs[0][0]) != bits(runs[1][0])
        assert bits(b.fit(many, max_iter=7, loss=loss)) == bits(runs[0][0])
    slow = [b.fit(many, random_state=s, max_iter=3, optimizer="sgd") for s in (0, 1)]
    assert bits(slow[0]) != bits(slow[1])
    assert_replayed(b)
    small = [b.fit(P, random_state=s, max_iter=7) for s in (0, 1)]
    assert bits(small[0]) == bits(small[1])
    # the stochastic start beats L-BFGS from zero after as many iterations
    warm = {"loss": "pointwise_log", "max_iter": 7}
    first = b.fit(many, **warm).history_[0]["objective"]
    assert first < b.fit(many, **warm, optimizer="lbfgs").history_[2]["objective"]
    # no stochastic start with max_iter=WARMUP or a warm start
    for params, keywords in (
        ({**warm, "max_iter": gradient.WARMUP}, {}),
        (warm, {"warm_start": start()}),
        ({"max_iter": 7}, {"warm_start": start()}),  # dual ascent cannot start from weights either
    ):
        pair = [b.fit(many, random_state=s, keywords=keywords, **params) for s in (0, 1)]
        assert bits(pair[0]) == bits(pair[1])

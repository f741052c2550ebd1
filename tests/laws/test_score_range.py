"""Tests that any finite scores are safe: sums over paths are right for spans from 0 to 10,000, on every code path.

Edges, nodes or both span the range, with and without forbidden transitions and allowed labels, few labels as
matrices and many as lists, with every instruction set. The recursions in single precision must hand over the
sentences that they cannot compute, and no result may be wrong without a report.
"""

from __future__ import annotations

from functools import cache
from itertools import product
from typing import NamedTuple

import numpy as np
import pytest

import tagwise as tw
from tagwise import _core

from . import constructors
from .paths import DOUBLE, SINGLE, edges_of, forced, grid
from .ranges import KINDS, RULES, SPANS, Batch, Exact, draw, exact
from .reference import losses, scores

#: Spans around the thresholds, for code paths other than the default.
SOME = (20, 44, 50, 56, 64, 68, 76, 90)
CODE_PATHS = tuple(dict.fromkeys(("", "avx2", "baseline", "sparse", *SINGLE, *DOUBLE)))
#: Number of labels, and share of nonzero transitions. The last size uses lists.
SIZES = ((3, 1.0), (9, 1.0), (60, 0.1))


class Problem(NamedTuple):
    """A batch in the core's form. Token t of sentence b has its own attribute, whose weights are its scores."""

    data: _core.Dataset
    layout: _core.Layout
    w: np.ndarray
    kept: np.ndarray  # [edge features] label' * L + label


def support(batch: Batch) -> tuple[np.ndarray, np.ndarray] | None:
    """Return allowed labels in the core's form."""
    sets = batch.sets
    return None if sets.all() else (sets, np.arange(len(sets), dtype=np.uint32))


@cache
def problem(labels: int, kind: str, span: float, rule: str, listed: float) -> Problem:
    batch = draw(labels, kind, span, rule, 0, listed)
    vocabulary = _core.Vocabulary()
    X = [[[f"{b} {t}"] for t in range(n)] for b, n in enumerate(batch.lengths)]
    data = _core.encode_attributes(vocabulary, X).with_gold(batch.gold[batch.inside].astype(np.uint16))
    layout = _core.Layout.build(data, len(vocabulary), labels, all_pairs=True, start_end=False)
    arrays = layout.arrays()
    edge = np.where(batch.forbidden, 0.0, batch.edge).ravel()
    kept = np.flatnonzero((edge != 0.0) | (listed == 1.0))
    arrays["edges"] = kept.astype(arrays["edges"].dtype)
    layout = _core.Layout.from_arrays(len(vocabulary), labels, arrays)
    return Problem(data, layout, np.concatenate([batch.free[batch.inside].ravel(), edge[kept]]), kept)


def cases(labels: int, listed: float, spans: tuple[float, ...]) -> list[tuple[int, str, float, str, float]]:
    """Return arguments of `problem`: all for few labels and all spans, else each kind with the rules in turn."""
    if spans == SPANS and labels < 5:
        return [(labels, kind, span, rule, listed) for kind, span, rule in product(KINDS, spans, RULES)]
    turns = [(i + k, kind, span) for i, span in enumerate(spans) for k, kind in enumerate(KINDS)]
    return [(labels, kind, span, RULES[turn % len(RULES)], listed) for turn, kind, span in turns]


def truth(case: tuple[int, str, float, str, float]) -> tuple[Batch, Exact]:
    labels, kind, span, rule, listed = case
    return draw(labels, kind, span, rule, 0, listed), exact(labels, kind, span, rule, 0, listed)


def close(found: np.ndarray, want: np.ndarray, tolerance: float, *context: object) -> None:
    """The arrays are equal up to rounding, relative for large numbers."""
    np.testing.assert_allclose(found, want, rtol=tolerance, atol=tolerance, err_msg=str(context))


def spans_of(code_path: str, labels: int) -> tuple[float, ...]:
    return SPANS if code_path == "" else SOME


# -- training --------------------------------------------------------------------------------------------------


def gradient_of(batch: Batch, kept: np.ndarray, node: np.ndarray, pairs: np.ndarray) -> np.ndarray:
    """Return the gradient by features, from residuals [B, T, L] and those of pairs [L, L]."""
    return np.concatenate([node[batch.inside].ravel(), pairs.ravel()[kept]])


@pytest.mark.parametrize(
    ("labels", "listed", "code_path"),
    [
        (*size, code_path)
        for code_path in CODE_PATHS
        for size in (SIZES[:1] if code_path in DOUBLE else SIZES)
    ],
)
def test_sequential_losses(labels: int, listed: float, code_path: str) -> None:
    """Value and gradient of the log loss for any gold paths, and of the exponential loss for the best ones."""
    for case in cases(labels, listed, spans_of(code_path, labels)):
        (batch, right), p = truth(case), problem(*case)
        rows, columns = np.indices(batch.gold.shape)
        gold = np.zeros_like(right.p)
        gold[rows, columns, batch.gold] = batch.inside
        steps = np.zeros_like(right.pairs)
        for t in range(1, gold.shape[1]):
            np.add.at(
                steps, (np.arange(len(gold)), batch.gold[:, t - 1], batch.gold[:, t]), batch.inside[:, t]
            )
        large = right.log_z - right.score
        for loss in ("log", "exp"):
            weight = np.ones(len(large)) if loss == "log" else np.where(large < 20, 1.0, 0.0)
            factor = weight if loss == "log" else weight * np.exp(np.minimum(large, 20))
            terms = {"loss": loss, "sample_weight": weight, "allowed": support(batch)}
            gradient = np.full(len(p.w), np.nan)
            with forced(code_path):
                target = constructors.objective(
                    p.data, p.layout, forbidden=edges_of(batch.forbidden), **terms
                )
                value = target.evaluate(p.w, gradient, 1)
            want = float(weight @ large if loss == "log" else (factor - weight).sum())
            node = factor[:, None, None] * (right.p - gold)
            pairs = (factor[:, None, None] * (right.pairs - steps)).sum(0)
            close(np.array(value), np.array(want), 2e-5 * max(1.0, factor.max(), weight.sum()), case, loss)
            close(
                gradient, gradient_of(batch, p.kept, node, pairs), 2e-5 * max(1.0, factor.max()), case, loss
            )


@pytest.mark.parametrize(("labels", "listed"), SIZES[:2])
@pytest.mark.parametrize("loss", ["pointwise_log", "pointwise_exp"])
def test_pointwise_losses(labels: int, listed: float, loss: str) -> None:
    """Sentences are short, since the slow reference is computed once per case for all code paths."""
    for case in cases(labels, listed, SOME):
        (batch, right), p = truth(case), problem(*case)
        p_gold = np.take_along_axis(right.p, batch.gold[:, :, None], 2)[:, :, 0]
        weight = ((batch.lengths < 8) & (np.where(batch.inside, p_gold, 1.0).min(1) > 1e-9)).astype(float)
        want, node, pairs = 0.0, np.zeros_like(right.p), np.zeros((labels, labels))
        for b in np.flatnonzero(weight):
            n = batch.lengths[b]
            s = scores(batch.node[b, :n], batch.edge)
            value, g = losses.LOSSES[loss](s, batch.gold[b, :n].tolist())
            want, pairs = want + value, pairs + (g.edge.sum(0) if g.edge.ndim == 3 else g.edge)
            node[b, :n] = g.node
        terms = {"loss": loss, "sample_weight": weight, "allowed": support(batch)}
        size = max(1.0, np.abs(node).max(), np.abs(pairs).max())
        for code_path in ("", "avx2", "baseline", "sparse"):
            gradient = np.full(len(p.w), np.nan)
            with forced(code_path):
                target = constructors.objective(
                    p.data, p.layout, forbidden=edges_of(batch.forbidden), **terms
                )
                value = target.evaluate(p.w, gradient, 1)
            close(np.array(value), np.array(want), 1e-4, case, code_path)
            close(gradient, gradient_of(batch, p.kept, node, pairs), 1e-4 * size, case, code_path)


@pytest.mark.parametrize(("labels", "listed"), SIZES)
@pytest.mark.parametrize("code_path", ["", "avx2", "baseline"])
def test_dual_ascent(labels: int, listed: float, code_path: str) -> None:
    """The primal at given weights is right, or NaN if a sentence is beyond single precision."""
    right_ones = 0
    for case in cases(labels, listed, spans_of("", labels)):
        (batch, right), p = truth(case), problem(*case)
        if case[3] in ("labels", "both"):
            continue
        with forced(code_path):
            ascent = constructors.dual(p.data, p.layout, 0.5, forbidden=edges_of(batch.forbidden))
            ascent.set_weights(p.w)
            primal, (certified, _) = ascent.primal(1), ascent.certificate(1)
        want = float((right.log_z - right.score).sum()) + 0.5 * float(p.w @ p.w)
        for found in (primal, certified):
            right_ones += np.isfinite(found)
            if np.isfinite(found):
                close(np.array(found), np.array(want), 2e-5 * len(batch.lengths), case)
    assert right_ones >= 4


# -- decoding --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("labels", "listed"), SIZES)
@pytest.mark.parametrize(
    "code_path", ["", "sparse", "alone", "table", "avx2", "baseline", "sparse,baseline", "log", "log,slow"]
)
def test_marginals(labels: int, listed: float, code_path: str) -> None:
    for case in cases(labels, listed, spans_of(code_path, labels)):
        (batch, right), p = truth(case), problem(*case)
        with forced(code_path):
            model = _core.Scorer(p.layout, p.w.astype(np.float32), edges_of(batch.forbidden))
            found, log_z = model.marginals(p.data, allowed=support(batch), n_jobs=1)
        close(log_z, right.log_z, 2e-5, case)
        close(found, right.p[batch.inside], 2e-5, case)


def test_batches_use_every_precision() -> None:
    """Sentences use single precision, double precision and log space, so that every code path is really tested."""
    taken = {"lanes": 0, "wide": 0, "log": 0}
    for case in cases(3, 1.0, SPANS):
        p, batch = problem(*case), truth(case)[0]
        with forced(""):
            target = constructors.objective(
                p.data, p.layout, forbidden=edges_of(batch.forbidden), allowed=support(batch)
            )
            target.evaluate(p.w, np.empty(len(p.w)), 1)
            for name, n in _core.path_counts().items():
                if name in taken:
                    taken[name] += n
    assert all(n > 200 for n in taken.values()), taken


@pytest.mark.parametrize("rule", RULES)
def test_exact_sums_equal_those_of_the_lattice(rule: str) -> None:
    for span in SPANS:
        batch, right = truth((3, "both", span, rule, 1.0))
        for b, n in enumerate(batch.lengths):
            lattice = tw.lattice.Lattice(batch.node[b, :n], batch.edge)
            assert np.isclose(lattice.log_partition(), right.log_z[b], rtol=1e-12, atol=1e-9)
            assert np.allclose(lattice.marginals(), right.p[b, :n], atol=1e-9)


# -- known cases ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("code_path", ["", "avx2", "baseline"])
@pytest.mark.parametrize(
    ("lead", "later"), [(60, 40), (80, 60), (88, 60), (90, 50), (95, 60), (110, 65), (120, 68)]
)
def test_only_valid_path_begins_with_an_unlikely_label(lead: float, later: float, code_path: str) -> None:
    """O is far ahead at the first token, then I twice, and only B leads to I. All edges score 0."""
    node = np.array([[lead, 0, -np.inf], [0, -200, later], [0, 0, later]])
    edge = np.zeros((3, 3))
    edge[0, 2] = -np.inf
    right = tw.lattice.Lattice(node, edge)
    gold = (1, 2, 2)
    c, w = grid(np.where(np.isfinite(node), node, 0.0), np.zeros((3, 3)), gold)
    rules = {
        "allowed": (np.isfinite(node), np.arange(3, dtype=np.uint32)),
        "forbidden": np.array([2], dtype=np.uint32),
    }
    with forced(code_path):
        model = _core.Scorer(c.layout, w.astype(np.float32), rules["forbidden"])
        p, log_z = model.marginals(c.data, allowed=rules["allowed"], n_jobs=1)
        value = constructors.objective(c.data, c.layout, **rules).evaluate(w, np.empty(len(w)), 1)
    assert np.isclose(log_z[0], right.log_partition(), atol=1e-5)
    assert np.allclose(p, right.marginals(), atol=1e-5)
    assert np.isclose(value, right.log_partition() - right.score(gold), atol=1e-5)


def test_four_paths_that_tie() -> None:
    """Three tokens, two labels, scores of 50: three quarters of the probability go through entries of e^-100."""
    node, edge = np.array([[50.0, 0.0], [50.0, 0.0], [0.0, 0.0]]), np.array([[0.0, 0.0], [0.0, 50.0]])
    right = tw.lattice.Lattice(node, edge)
    c, w = grid(node, edge, (1, 1, 1))
    p, log_z = _core.Scorer(c.layout, w.astype(np.float32)).marginals(c.data, n_jobs=1)
    value = constructors.objective(c.data, c.layout).evaluate(w, np.empty(len(w)), 1)
    assert np.isclose(log_z[0], right.log_partition(), atol=1e-5)
    assert np.allclose(p, right.marginals(), atol=1e-5)
    assert np.isclose(value, right.log_partition() - right.score((1, 1, 1)), atol=1e-5)

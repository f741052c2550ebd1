"""Tests that every code path of training, forced one by one, computes the value of the reference implementation.

Float32 in lanes and alone, double precision, log space, folded and plain rows, frequent and rare attributes,
pair sums of some edges or all, each instruction set. Each path hands over what it cannot compute.
"""

from __future__ import annotations

import os
import subprocess
import sys
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from tagwise import _core

from .corpora import Corpus
from .paths import (
    COUNTS,
    DOUBLE,
    KINDS,
    LABELS,
    RAGGED,
    SINGLE,
    Terms,
    corpus,
    evaluate,
    forced,
    grid,
    reference_loss,
    rules,
)
from .reference import chain, losses, once

# -- the switch -------------------------------------------------------------------------------------------------


def test_force_returns_the_previous_setting() -> None:
    before = _core.force("log,avx2")
    assert _core.force("wide") == "log,avx2"
    assert _core.force() == "wide"
    assert _core.force(before) == ""
    with pytest.raises(ValueError, match='no code path "fast" to force; there are: log, wide'):
        _core.force("fast")


def test_environment_variables_force_code_paths() -> None:
    """Environment variables force code paths, and a lesser instruction set, before the first use."""
    environment = {**os.environ, "TAGWISE_PATH": "log, chunks", "TAGWISE_SIMD": "baseline"}
    code = "from tagwise import _core; print(_core.SIMD, _core.force())"
    out = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
    )
    assert out.stdout.split() == ["baseline", "log,chunks"]


# -- training ---------------------------------------------------------------------------------------------------


def close(
    c: Corpus,
    found: tuple[float, np.ndarray, Any],
    want: tuple[float, np.ndarray],
    code_path: str,
    double: bool,
) -> None:
    """Value and gradient agree within the precision of the code path.

    Errors of float32 add up along a sentence. With doubles only the node gradients go through float32.
    """
    scale = max(1.0, float(np.abs(want[1]).max(initial=0.0)))
    longest = max(1, *map(len, c.gold))
    relative, absolute = (1e-11 * longest, 1e-9) if double else (2e-6 * max(1.0, longest / 100), 1e-4)
    assert found[0] == pytest.approx(want[0], rel=relative, abs=absolute), code_path
    atol = scale * (1e-5 if double else 3e-5) * max(1.0, longest / 100)
    np.testing.assert_allclose(found[1], want[1], rtol=0, atol=atol, err_msg=code_path)
    if double:
        edges = slice(c.layout.n_node, c.layout.n_node + c.layout.n_edge)
        np.testing.assert_allclose(
            found[1][edges], want[1][edges], rtol=0, atol=1e-11 * scale * (10 + longest**2), err_msg=code_path
        )


def check(c: Corpus, w: np.ndarray, terms: Terms, also: tuple[str, ...] = ()) -> None:
    """All code paths match the reference implementation, and each forced path is the one taken."""
    want = reference_loss(c, w, terms)
    weight = np.ones(len(c.gold)) if terms.weight is None else terms.weight
    n, some = sum(map(bool, c.gold)), sum(bool(y) and x > 0 for y, x in zip(c.gold, weight))
    alone = c.data.n_edge_attributes > 0 or terms.once is not None
    for code_path in (*SINGLE, *DOUBLE, *also):
        double = alone or "log" in code_path or "wide" in code_path
        found = evaluate(c, w, terms, code_path)
        close(c, found, want, code_path, double)
        scaled = "wide" in code_path and terms.scaled and not alone
        expected_path = ("wide" if scaled else "log") if double else "lanes"
        went = {k: found[2][k] for k in ("lanes", "wide", "log") if k in found[2]}
        times = some if double else n
        again = found[2]["chunks"] // (
            4 if "chunks" in code_path else 1
        )  # twice, relative to the largest loss
        assert again == 1 or terms.loss == "exp", code_path
        assert went == ({expected_path: times * again} if times else {}), code_path


EXTRAS = [
    (loss, extra) for loss in losses.LOSSES for extra in ("", "weight rules", "weight cost", "cost rules")
]
EXTRAS += [("log", "partial weight"), ("log", "partial weight rules"), ("log", "once weight rules")]
EXTRAS += [
    ("exp", "once weight"),
    ("log", "once cost weight"),
    ("log", "allowed weight"),
    ("exp", "allowed weight"),
]


def terms_of(c: Corpus, loss: str, extra: str) -> Terms:
    """Return the terms that the words of ``extra`` name."""
    rng = np.random.default_rng(5)
    terms = Terms(loss)
    if "weight" in extra:
        terms = terms._replace(weight=rng.choice([0.0, 0.3, 1.0, 2.5], len(c.gold), p=[0.1, 0.4, 0.1, 0.4]))
    if "rules" in extra:
        sets, forbidden = rules(c, 6)
        terms = terms._replace(sets=sets, forbidden=forbidden)
    if "allowed" in extra:
        terms = terms._replace(sets=rules(c, 6)[0])
    if "cost" in extra:
        cost = rng.uniform(-1, 2, (c.labels, c.labels))
        np.fill_diagonal(cost, 0.0)
        terms = terms._replace(cost=cost)
    if "partial" in extra:
        terms = terms._replace(partial=rules(c, 7)[0])
    if "once" in extra:
        group = np.array([0, 0, *[once.NONE] * (c.labels - 2)], dtype=np.uint32)
        begins = np.vstack([~np.eye(c.labels, dtype=bool), np.ones((1, c.labels), dtype=bool)])
        begins[0, 1] = False
        terms = terms._replace(once=(group, begins))
    return terms


@pytest.mark.parametrize(("loss", "extra"), EXTRAS)
@pytest.mark.parametrize("kind", KINDS)
def test_every_training_code_path_matches_the_reference(kind: str, loss: str, extra: str) -> None:
    """Losses, weights, costs, partial labels, allowed labels, forbidden steps, spans that occur once."""
    lengths = [min(length, 3) for length in RAGGED[:18]] if "once" in extra else RAGGED
    gold = [([0, 1, 1] if i % 2 else [2, 0, 1])[:length] for i, length in enumerate(lengths)]
    c = corpus(1, 4, lengths, kind, gold if "once" in extra else None)
    w = 0.7 * np.random.default_rng(2).standard_normal(len(c.layout))
    check(c, w, terms_of(c, loss, extra))


@pytest.mark.parametrize(
    ("labels", "n"), [(L, COUNTS[i % 5]) for i, L in enumerate(LABELS)] + [(5, n) for n in COUNTS]
)
@pytest.mark.parametrize("loss", ["log", "pointwise_log"])
def test_label_and_sentence_counts_around_block_sizes(labels: int, n: int, loss: str) -> None:
    """Counts around every block size of labels and of sentences in lanes."""
    c = corpus(labels, labels, RAGGED[:n], ("lists", "values")[labels % 2], all_pairs=labels % 3 == 0)
    w = 0.7 * np.random.default_rng(n).standard_normal(len(c.layout))
    also = ("whole", "whole,baseline") if labels >= 48 else ()  # lists are chosen automatically
    check(c, w, terms_of(c, loss, "weight rules" if labels % 2 else "weight"), also)


VERY_MANY = (
    "",
    "alone",
    "plain,rows",
    "rare",
    "whole,rows",
    "whole,baseline",
    "avx2,rows,chunks",
    "baseline,rows",
)


@pytest.mark.parametrize(
    ("kind", "labels", "loss", "extra"),
    [
        ("lists", 257, "log", "weight"),
        ("values", 272, "log", "weight rules"),
        ("lists", 275, "exp", "weight cost"),
        ("lists", 259, "log", "partial weight"),
        ("values", 263, "pointwise_log", "weight"),
    ],
)
def test_very_many_labels(kind: str, labels: int, loss: str, extra: str) -> None:
    """With very many labels, scores and gradient are computed within the recursions, position by position."""
    c = corpus(labels, labels, RAGGED[:20], kind)
    w = 0.7 * np.random.default_rng(labels).standard_normal(len(c.layout))
    terms = terms_of(c, loss, extra)
    want = reference_loss(c, w, terms)
    for code_path in VERY_MANY:
        close(c, evaluate(c, w, terms, code_path), want, code_path, False)


@pytest.mark.parametrize(
    "lengths", [[1], [2], [0], [0, 0, 1], [1] * 17, [1300, 1, 2, 40], [1] + [2] * 16 + [33]]
)
@pytest.mark.parametrize("loss", list(losses.LOSSES))
def test_short_and_long_sentences(lengths: list[int], loss: str) -> None:
    """Sentences of no, one, two, and more than a thousand tokens."""
    rng = np.random.default_rng(0)
    gold = [rng.choice(3, length, p=[0.98, 0.01, 0.01]).tolist() for length in lengths]
    c = corpus(2, 3, lengths, gold=gold, all_pairs=True)
    w = 0.1 * rng.standard_normal(len(c.layout))
    w[: c.layout.n_node : 3] += 3.0  # a trained model: even a long sentence is likely
    check(c, w, Terms(loss, weight=rng.uniform(0.5, 2, len(lengths))))


def test_frequent_joint_and_batched_rows() -> None:
    """Rows of thousands of tokens, neighbours frequent enough for joint rows, many batches, chunks."""
    c = corpus(3, 5, [1 + i % 7 for i in range(1040)])
    assert c.data.n_tokens > 4000
    w = 0.5 * np.random.default_rng(4).standard_normal(len(c.layout))
    terms = Terms("log", weight=np.random.default_rng(5).uniform(0.1, 2, len(c.gold)))
    want = reference_loss(c, w, terms)
    for code_path in ("", "plain", "rows", "rare", "alone", "dense", "avx2", "baseline", "wide", "log,plain"):
        found = evaluate(c, w, terms, code_path)
        assert found[2]["chunks"] == 4
        close(c, found, want, code_path, code_path in ("wide", "log,plain"))
    folded, plain = (evaluate(c, w, terms, code_path)[2]["rows"] for code_path in ("", "plain"))
    assert folded < 0.6 * plain


@pytest.mark.parametrize("code_path", ["", "wide", "log", "chunks,rare", "plain,rows,baseline"])
def test_every_code_path_is_bit_identical_for_any_threads(code_path: str) -> None:
    c = corpus(4, 9, RAGGED * 4, "values")
    w = np.random.default_rng(6).standard_normal(len(c.layout))
    for loss in ("log", "pointwise_exp"):
        found = [evaluate(c, w, Terms(loss), code_path + ",chunks", n) for n in (1, 2, 4)]
        assert len({(value, gradient.tobytes()) for value, gradient, _ in found}) == 1
    scorer = _core.Scorer(c.layout, w.astype(np.float32))
    with forced(code_path):
        assert (
            len({b"".join(x.tobytes() for x in scorer.marginals(c.data, n_jobs=n)) for n in (1, 2, 4)}) == 1
        )
        assert len({b"".join(x.tobytes() for x in scorer.kbest(c.data, 3, n_jobs=n)) for n in (1, 2, 4)}) == 1


# -- scores of any size -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("scale", [0.0, 1e-40, 1e-30, 1e-3, 1e3, 2.0**100])
@pytest.mark.parametrize("extra", ["", "weight rules", "weight cost", "partial weight rules"])
def test_scores_of_any_size(scale: float, extra: str) -> None:
    """Scores are integer multiples, so sums are exact in float32 too and paths differ by their recursions alone.

    At 2^100 the number of best paths is below the precision, so the multiples vary enough for a unique best
    path.
    """
    c = corpus(5, 4, RAGGED[:20])
    rng = np.random.default_rng(7)
    w = scale * (
        rng.integers(-2, 3, len(c.layout)) if scale < 1e20 else rng.integers(-1000, 1000, len(c.layout))
    )
    terms = terms_of(c, "log", extra)
    want = reference_loss(c, w, terms)
    for code_path in (*SINGLE, *DOUBLE):
        value, gradient, _ = evaluate(c, w, terms, code_path)
        assert value == pytest.approx(want[0], rel=2e-6, abs=1e-4), code_path
        np.testing.assert_allclose(gradient, want[1], atol=5e-5, err_msg=code_path)


@pytest.mark.parametrize("loss", ["exp", "pointwise_log", "pointwise_exp"])
@pytest.mark.parametrize("scale", [3.0, 8.0])
def test_large_losses(loss: str, scale: float) -> None:
    """Value and gradient are accurate relative to their size if gold labels are nearly impossible."""
    c = corpus(6, 4, RAGGED[:20])
    w = scale * np.random.default_rng(8).integers(-2, 3, len(c.layout))
    terms = Terms(loss, weight=np.random.default_rng(9).uniform(0.2, 2, 20))
    want = reference_loss(c, w, terms)
    for code_path in (*SINGLE, *DOUBLE):
        value, gradient, _ = evaluate(c, w, terms, code_path)
        assert value == pytest.approx(want[0], rel=2e-5), code_path
        np.testing.assert_allclose(gradient, want[1], atol=5e-5 * np.abs(want[1]).max(), err_msg=code_path)


# -- limits of each code path --------------------------------------------------------------------------------


def chain_of(span: float) -> tuple[list[list[float]], list[list[float]], list[int]]:
    """Return a chain whose edge scores span `span`. No node score forces the worst edge."""
    node = [[0.3, -0.2], [0.1, 0.4], [-0.5, 0.2], [0.0, 0.1]]
    return node, [[0.0, -1.0], [-span, -0.5]], [0, 1, 1, 1]


def forced_step(x: float) -> tuple[list[list[float]], list[list[float]], list[int]]:
    """Return a chain whose scale at the second token is e^-x."""
    return [[0.0, -79.0], [-79.0, 0.0], [0.0, 0.0]], [[0.0, -x], [0.0, 0.0]], [0, 1, 1]


def unlikely(x: float) -> tuple[list[list[float]], list[list[float]], list[int]]:
    """Return a chain whose first gold label has a marginal of about e^-x."""
    return [[x, 0.0], [0.2, 0.1], [0.0, 0.3]], [[0.0, 0.1], [-0.2, 0.0]], [1, 0, 1]


up, down = (lambda x: float(np.nextafter(x, np.inf))), (lambda x: float(np.nextafter(x, -np.inf)))
BOUNDS = {
    "edges that span 56 are done in float32": ("log", chain_of(56.0), "lanes"),
    "a bit more are not": ("log", chain_of(up(56.0)), "wide"),
    "edges that span 230 are done scaled": ("log", chain_of(230.0), "wide"),
    "a bit more in log space": ("log", chain_of(up(230.0)), "log"),
    "a scale of e^(R - 69.7) is large enough": ("log", forced_step(34.7), "lanes"),
    "under it is not": ("log", forced_step(35.0), "wide"),
    "the exponential loss alike": ("exp", chain_of(up(56.0)), "wide"),
    "a gold marginal above 1e-12 is large enough": ("pointwise_log", unlikely(27.4), "lanes"),
    "one under it is not": ("pointwise_log", unlikely(27.9), "wide"),
    "nor with the exponential loss": ("pointwise_exp", unlikely(27.9), "wide"),
    "but it is within": ("pointwise_exp", unlikely(27.4), "lanes"),
    "nor are wider edges": ("pointwise_log", chain_of(up(56.0)), "wide"),
    "a gold marginal above 1e-200 is scaled": ("pointwise_log", unlikely(458.0), "wide"),
    "one under it is done in log space": ("pointwise_log", unlikely(463.0), "log"),
}


@pytest.mark.parametrize("name", BOUNDS)
@pytest.mark.parametrize("copies", [1, 17])
def test_code_paths_are_chosen_by_score_range(name: str, copies: int) -> None:
    loss, (node, edge, gold), expected_path = BOUNDS[name]
    c, w = grid(node, edge, gold, copies)
    terms = Terms(loss, weight=np.linspace(0.5, 2.0, copies))
    want = reference_loss(c, w, terms)
    value, gradient, done = evaluate(c, w, terms, "")
    assert {k: done[k] for k in ("lanes", "wide", "log") if k in done} == {expected_path: copies}
    for code_path in ("", "baseline", "wide", "log", "log,slow"):
        value, gradient, _ = evaluate(c, w, terms, code_path)
        assert value == pytest.approx(want[0], rel=1e-5, abs=1e-4), code_path
        np.testing.assert_allclose(
            gradient, want[1], atol=1e-5 * max(1.0, np.abs(want[1]).max()), err_msg=code_path
        )


@pytest.mark.parametrize(("low", "expected_path"), [(69.5, "lanes"), (69.9, "wide"), (200.0, "wide")])
@pytest.mark.parametrize("allowed", [True, False])
def test_underflow_is_detected_under_forbidden_edges(low: float, expected_path: str, allowed: bool) -> None:
    """A label that is not allowed may be small: -infinity is not an underflow."""
    forbidden = np.array([[False, True], [False, False]])
    c, w = grid([[0.0, -low], [0.0, 0.0], [0.0, 0.0]], np.zeros((2, 2)), [0, 0, 0], 5)
    sets = None if allowed else np.tile([[True, False], [True, True], [True, True]], (5, 1))
    terms = Terms(forbidden=forbidden, sets=sets)
    want = reference_loss(c, w, terms)
    value, gradient, done = evaluate(c, w, terms, "")
    assert done[expected_path if allowed else "lanes"] == 5
    assert value == pytest.approx(want[0], rel=1e-5, abs=1e-4)
    np.testing.assert_allclose(gradient, want[1], atol=1e-4)


@pytest.mark.parametrize(
    ("top", "expected_path"), [(2.0**99, "lanes"), (2.0**100, "wide"), (-(2.0**100), "wide")]
)
def test_constant_edge_scores_have_no_effect(top: float, expected_path: str) -> None:
    """A constant added to all edges has no effect, since every path has equally many edges."""
    node, _, gold = chain_of(0.0)
    c, w = grid(node, np.zeros((2, 2)), gold, 3)
    want = reference_loss(c, w, Terms())
    w[c.layout.n_node :] = top
    for code_path in ("", "baseline", "alone", "wide"):
        _, gradient, done = evaluate(c, w, Terms(), code_path)
        assert done[code_path if code_path == "wide" else expected_path] == 3
        np.testing.assert_allclose(gradient, want[1], atol=1e-5, err_msg=code_path)


@pytest.mark.parametrize("extra", ["cost", "partial", "cost rules", "partial rules"])
def test_log_space_fallback_keeps_every_option(extra: str) -> None:
    """Edges too wide for float32, with costs, rules, partial labels and weights: the fallback drops none of them."""
    c = corpus(8, 4, RAGGED[:17])
    rng = np.random.default_rng(3)
    w = rng.standard_normal(len(c.layout))
    w[c.layout.n_node] -= 100.0
    terms = terms_of(c, "log", extra + " weight")
    plain = reference_loss(c, w, terms_of(c, "log", ""))
    want = reference_loss(c, w, terms)
    assert abs(want[0] - plain[0]) > 1.0
    found = evaluate(c, w, terms, "")
    assert "lanes" not in found[2]
    assert "wide" not in found[2]
    close(c, found, want, extra, True)


@pytest.mark.parametrize("span", [100.0, 300.0])
@pytest.mark.parametrize("loss", list(losses.LOSSES))
def test_weights_reach_every_fallback(span: float, loss: str) -> None:
    """Unforced fallbacks for edges too wide for float32, and for scaled doubles, use the sentence weights."""
    c = corpus(9, 3, RAGGED[:17])
    w = 0.5 * np.random.default_rng(4).standard_normal(len(c.layout))
    w[c.layout.n_node] -= span
    gold = c.layout.arrays()["edges"][0]
    terms = Terms(loss, weight=np.random.default_rng(5).uniform(0.2, 3, 17))
    weight = terms.weight
    assert weight is not None
    for i, path in enumerate(c.gold):  # sentences with this edge would be out of range
        weight[i] *= all(a * 3 + b != gold for a, b in pairwise(path))
    found = evaluate(c, w, terms, "")
    assert "lanes" not in found[2]
    close(c, found, reference_loss(c, w, terms), loss, True)


@pytest.mark.parametrize("code_path", ["", "wide", "log", "baseline"])
@pytest.mark.parametrize("far", [28.0, 29.9, 30.1, 31.5, 300.0, 800.0, 5000.0])
def test_exponential_loss_beyond_its_range(code_path: str, far: float) -> None:
    """The value is relative to the largest sentence. If it overflows, the logarithm of the sum is returned."""
    c, w = grid([[far, 0.0], [0.3, 0.1]], [[0.0, 0.2], [0.1, 0.0]], [1, 0], 3)
    weight = np.array([0.5, 1.0, 2.0])
    with forced(code_path):
        objective = _core.Objective(c.data, c.layout, loss="exp", sample_weight=weight)
        gradient = np.empty_like(w)
        value, largest = objective.log_value(w, gradient, 1)
    batch = list(zip(c.scores(w), c.gold))
    want, parts = losses.log_of_exp_losses(batch, weight)
    assert value == pytest.approx(want, rel=1e-6)
    assert largest == pytest.approx(losses.minus_log_p(*batch[0]) + np.log(2.0), rel=1e-6)
    slow = sum(c.pull_back(i, g) for i, g in enumerate(parts))
    np.testing.assert_allclose(gradient, slow, atol=1e-5)
    if far < 600:
        with forced(code_path):
            value = objective.evaluate(w, gradient, 1)
        want, slow = reference_loss(c, w, Terms("exp", weight=weight))
        assert value == pytest.approx(want, rel=1e-4)
        np.testing.assert_allclose(gradient, slow, rtol=1e-4, atol=1e-4 * np.abs(slow).max())


@pytest.mark.parametrize("code_path", ["", "wide", "log", "baseline"])
@pytest.mark.parametrize("loss", list(losses.LOSSES))
def test_largest_loss_is_equal_on_every_code_path(code_path: str, loss: str) -> None:
    """The largest loss measures the distance to overflow: l + log w of a sentence, -log p of a token."""
    c = corpus(10, 3, RAGGED[:17])
    w = np.random.default_rng(6).standard_normal(len(c.layout))
    weight = np.random.default_rng(7).uniform(0.2, 3, 17)
    with forced(code_path):
        largest = _core.Objective(c.data, c.layout, loss=loss, sample_weight=weight).value(
            w, np.empty_like(w), 1
        )[1]
    want = -np.inf
    for s, y, x in zip(c.scores(w), c.gold, weight):
        if y and loss.startswith("pointwise"):
            want = max(want, *(-np.log(chain.marginals(s)[0][np.arange(len(y)), list(y)])))
        elif y:
            want = max(want, losses.minus_log_p(s, y) + np.log(x))
    assert largest == pytest.approx(want, rel=1e-5)


@pytest.mark.parametrize("code_path", ["", "alone", "baseline"])
def test_values_beyond_float32_fall_back_to_doubles(code_path: str) -> None:
    """A weight of 1e30 times a value of 1e10 makes a label as certain as a score of 50 does."""
    vocabulary = _core.Vocabulary()
    X = [[{"a": 1e10}, {"b": 1.0}], [{"b": 1.0}, {"b": -1.0}]]
    big, gold = float(np.float32(1e10)), [(0, 1), (1, 0)]
    data = _core.encode_attributes(vocabulary, X).with_gold(np.array([0, 1, 1, 0], dtype=np.uint16))
    layout = _core.Layout.build(data, 2, 2, all_pairs=True, start_end=False)
    dense = [np.array([[big, 0.0], [0.0, 1.0]]), np.array([[0.0, 1.0], [0.0, -1.0]])]
    c = Corpus(data, layout, dense, [np.zeros((2, 2))] * 2, gold, 2)
    w = np.array([5e-9, -5e-9, 0.5, -0.25, 0.1, 0.0, 0.0, 0.2])
    want = reference_loss(c, w, Terms())[1]
    paths = [y for s in c.scores(w) for y in chain.viterbi(s)]
    w[:2] = 1e30, -1e30
    with forced(code_path):
        gradient = np.empty(8)
        _core.Objective(data, layout).evaluate(w, gradient, 1)
        assert {k: v for k, v in _core.path_counts().items() if k in ("lanes", "wide", "log")} == {
            "lanes": 1,
            "wide": 1,
        }
        found = _core.Scorer(layout, w.astype(np.float32)).viterbi(data).tolist()
        assert _core.path_counts()["log"] == 1
    np.testing.assert_allclose(gradient, want, atol=1e-5)
    assert found == paths

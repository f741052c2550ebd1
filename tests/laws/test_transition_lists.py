"""Tests with many labels: lists of the transitions that differ compute the same function as whole matrices.

The lists are compared with enumeration and the reference implementations, with weights that cancel all digits
of a difference, with transitions forbidden one by one, by rows and by columns, and with ties. Lists are
chosen only if they pay.
"""

from __future__ import annotations

import numpy as np
import pytest

import tagwise as tw
from tagwise import _core
from tagwise.learners import problem

from .corpora import Corpus
from .paths import RAGGED, Terms, corpus, edges_of, evaluate, forced, grid, limited, reference_loss
from .reference import chain, enumeration, listed, losses, scores

LISTS = ("sparse", "sparse,avx2", "sparse,baseline")


def chains(seed: int) -> tuple[np.ndarray, dict[tuple[int, int], float]]:
    """Return node scores [T, L] and listed transitions of any size, some of them forbidden."""
    rng = np.random.default_rng(seed)
    L, T = int(rng.integers(1, 5)), int(rng.integers(1, 5))
    node = rng.integers(-2, 3, (T, L)) * rng.choice([1.0, 0.37, 5.0])
    chosen = [(int(a), int(y)) for a in range(L) for y in range(L) if rng.random() < 0.4]
    sizes = [0.0, 1.0, -1.0, -3.0, 4.0, *([-np.inf] if L > 2 else [])]
    moves = {pair: float(rng.choice(sizes)) for pair in chosen}
    for a in range(L):  # at least one path is possible
        moves.pop((a, a), None)
    return node, moves


def whole(node: np.ndarray, moves: dict[tuple[int, int], float]) -> chain.Scores:
    """Return the chain with its transitions as a matrix."""
    edge = np.zeros((node.shape[1],) * 2)
    for pair, w in moves.items():
        edge[pair] = w
    return scores(node, edge)


@pytest.mark.parametrize("seed", range(25))
def test_reference_matches_enumeration(seed: int) -> None:
    node, moves = chains(seed)
    s = whole(node, moves)
    log_z, p, pairs = listed.marginals(node, moves)
    assert log_z == pytest.approx(enumeration.log_partition(s), rel=1e-12, abs=1e-12)
    want = enumeration.expectations(s)
    np.testing.assert_allclose(p, want.node, atol=1e-12)
    for pair, number in pairs.items():
        assert number == pytest.approx(want.edge[pair], abs=1e-12)
    path = listed.viterbi(node, moves)
    assert path == enumeration.viterbi(s)


def scored(node: np.ndarray, edge: np.ndarray) -> tuple[Corpus, np.ndarray]:
    """Return seventeen copies of a sentence with these scores, one of them in a batch of its own."""
    return grid(node, edge, [0] * len(node), 17)


@pytest.mark.parametrize("small", [-1.0, -2.7, -2.8, -8.0, -20.0, -45.0, -77.0])
@pytest.mark.parametrize("code_path", LISTS)
def test_cancellation_keeps_six_digits(small: float, code_path: str) -> None:
    """Subtraction that cancels nearly all digits still gives six correct ones.

    All of the sum before a token is on one or two labels whose transitions are nearly impossible. The path
    continues in the remainder after their factors are subtracted from the total.
    """
    L = 7
    rng = np.random.default_rng(3)
    edge = np.zeros((L, L))
    edge[0, 1:4] = small
    edge[1, 1:3] = small
    edge[2, 0] = 2.0
    node = 0.3 * rng.standard_normal((4, L))
    node[0, 0] += 14.0
    node[1, 1] += 30.0
    node[2, :2] += 14.0
    node[3, 2] += 33.0
    c, w = scored(node, edge)
    s = scores(node, edge)
    with forced(code_path):
        p, log_z = _core.Scorer(c.layout, w.astype(np.float32)).marginals(c.data, n_jobs=1)
        assert (_core.path_counts().get("log", 0) == 0) == (small > -50)  # beyond that in double precision
    log_p = chain.log_partition(s)
    np.testing.assert_allclose(log_z, log_p, rtol=1e-6)
    np.testing.assert_allclose(p.reshape(17, 4, L)[16], chain.marginals(s)[0], rtol=2e-5, atol=1e-7)
    value, gradient, _ = evaluate(c, w, Terms(), code_path)
    want = reference_loss(c, w, Terms())
    assert value == pytest.approx(want[0], rel=1e-5)
    np.testing.assert_allclose(gradient, want[1], rtol=1e-5, atol=17 * 3e-6)


def spans(kinds: int, scheme: str) -> tuple[np.ndarray, int]:
    """Return forbidden transitions [L, L] of `kinds` kinds of spans: I follows B or I of its kind (IOB2), or IOBES."""
    parts = ["B", "I"] if scheme == "bio" else ["B", "I", "E", "S"]
    names = ["O"] + [f"{part}-{kind}" for kind in range(kinds) for part in parts]
    forbidden = np.zeros((len(names), len(names)), dtype=bool)
    for i, a in enumerate(names):
        for j, b in enumerate(names):
            inside = b[0] in ("IE" if scheme == "bioes" else "I")
            open_ = a[0] in "BI"
            if inside:
                forbidden[i, j] = not (open_ and a[2:] == b[2:])
            else:
                forbidden[i, j] = scheme == "bioes" and open_
    return forbidden, len(names)


def valid_path(rng: np.random.Generator, forbidden: np.ndarray, length: int) -> list[int]:
    """Return a path from O without a forbidden step."""
    path = [0]
    while len(path) < length:
        path.append(int(rng.choice(np.flatnonzero(~forbidden[path[-1]]))))
    return path[:length]


@pytest.mark.parametrize("scheme", ["bio", "bioes"])
@pytest.mark.parametrize("loss", list(losses.LOSSES))
def test_constraints_of_many_span_types(scheme: str, loss: str) -> None:
    """Most transitions to an inside label are forbidden, and in IOBES most from one, so allowed ones are listed."""
    forbidden, L = spans(25 if scheme == "bio" else 12, scheme)
    rng = np.random.default_rng(1)
    lengths = RAGGED[:20]
    c = corpus(1, L, lengths, gold=[valid_path(rng, forbidden, n) for n in lengths])
    w = rng.standard_normal(len(c.layout))
    terms = Terms(loss, forbidden=forbidden)
    want = reference_loss(c, w, terms)
    for code_path in ("", "whole", "baseline"):
        value, gradient, done = evaluate(c, w, terms, code_path)
        assert (done.get("sparse", 0) > 0) == (code_path != "whole")
        assert value == pytest.approx(want[0], rel=1e-5)
        np.testing.assert_allclose(gradient, want[1], atol=3e-5 * max(1.0, float(np.abs(want[1]).max())))
    slow = [s for s, y in zip(limited(c, w, None, forbidden), c.gold) if y]
    scorer = _core.Scorer(c.layout, w.astype(np.float32), edges_of(forbidden))
    assert scorer.viterbi(c.data).tolist() == [y for s in slow for y in chain.viterbi(s)]
    np.testing.assert_allclose(
        scorer.marginals(c.data)[0], np.concatenate([chain.marginals(s)[0] for s in slow]), atol=1e-5
    )


@pytest.mark.parametrize("labels", [60, 130])
@pytest.mark.parametrize("seed", [0, 1])
def test_lists_and_matrices_agree(labels: int, seed: int) -> None:
    """Integer weights have ties everywhere and must give equal paths. Real weights give sums to six digits.

    Half of the seen transitions have negative weights, so the best previous label is often one that must not
    count.
    """
    c = corpus(seed, labels, RAGGED * 3)
    rng = np.random.default_rng(seed)
    ties = rng.integers(-2, 3, len(c.layout)).astype(np.float32)
    real = rng.standard_normal(len(c.layout)).astype(np.float32)
    peaked = real.copy()
    peaked[: c.layout.n_node] *= 8
    for w in (ties, real, peaked):
        found = {}
        for code_path in ("whole", "", "alone", "avx2", "baseline"):
            with forced(code_path):
                scorer = _core.Scorer(c.layout, w)
                paths, (p, z) = scorer.viterbi(c.data, n_jobs=1), scorer.marginals(c.data, n_jobs=1)
                assert (_core.path_counts().get("sparse", 0) > 0) == (code_path != "whole")
            found[code_path] = paths, p, z
        for paths, p, z in found.values():
            np.testing.assert_array_equal(paths, found["whole"][0])
            np.testing.assert_allclose(p, found["whole"][1], atol=1e-5)
            np.testing.assert_allclose(z, found["whole"][2], rtol=1e-6)


def test_lists_are_used_with_many_labels_and_few_transitions() -> None:
    """Lists are used with many labels and few transitions, not with few labels or all transitions."""
    for labels, choice, lists in ((130, {}, True), (20, {}, False), (60, {"all_pairs": True}, False)):
        c = corpus(0, labels, RAGGED, **choice)
        w = np.zeros(len(c.layout))
        assert ("sparse" in evaluate(c, w, Terms(), "")[2]) is lists
        with forced(""):
            _core.Scorer(c.layout, w.astype(np.float32)).viterbi(c.data)
            assert ("sparse" in _core.path_counts()) is lists


@pytest.mark.parametrize("loss", ["log", "pointwise_exp"])
def test_results_are_bit_identical_for_any_threads(loss: str) -> None:
    c = corpus(4, 70, RAGGED * 4)
    w = np.random.default_rng(6).standard_normal(len(c.layout))
    found = [evaluate(c, w, Terms(loss), "sparse,chunks", n) for n in (1, 2, 4)]
    assert len({(value, gradient.tobytes()) for value, gradient, _ in found}) == 1


@pytest.mark.parametrize("labels", [70, 260])
def test_stochastic_steps_with_lists_equal_matrices(labels: int) -> None:
    """A step of sixteen sentences moves every weight as with matrices."""
    c = corpus(5, labels, [5] * 16)
    moved = {}
    for code_path in ("sparse", "whole"):
        with forced(code_path):
            descent = _core.Stochastic(c.data, c.layout)
            descent.set(0.1 * np.random.default_rng(0).standard_normal(len(c.layout)))
            value = descent.run(np.zeros(1, dtype=np.uint32), 0.1, 0.5, 0.0)
            moved[code_path] = value, descent.weights()
    assert moved["sparse"][0] == pytest.approx(moved["whole"][0], rel=1e-6)
    np.testing.assert_allclose(moved["sparse"][1], moved["whole"][1], atol=1e-6)


def test_auto_uses_dual_ascent_only_with_few_labels(monkeypatch: pytest.MonkeyPatch) -> None:
    """With many labels and few seen transitions `auto` uses passes over lists.

    optimizer="dual" still selects dual ascent.
    """
    gold = [[(7 * i + t) % 200 for t in range(4)] for i in range(60)]
    X = [[[f"w{y}"] for y in path] for path in gold]
    Y = [[f"l{y}" for y in path] for path in gold]
    monkeypatch.setattr(problem, "WORTH_WARMING", 10)
    many, few = tw.CRF(features=None, max_iter=3), tw.CRF(features=None, max_iter=3)
    many.fit(X, Y)
    few.fit(X, [[f"l{y % 20}" for y in path] for path in gold])
    dual = tw.CRF(features=None, max_iter=3, optimizer="dual").fit(X, Y)
    assert ["gradient_norm" not in tagger.history_[-1] for tagger in (many, few, dual)] == [False, True, True]

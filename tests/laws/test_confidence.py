"""Tests of probabilities of sequences and chunks by enumeration, of entropy and of calibration."""

from __future__ import annotations

from itertools import pairwise, product
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tagwise as tw
from tagwise import _core
from tagwise.base.exceptions import InternalError
from tagwise.corpus import schemes
from tagwise.decoding import paths
from tagwise.evaluation import calibration
from tagwise.scores.entities import entity_table

from .corpora import constraints, random_corpus
from .reference import chain, scores

CHUNKS = {
    "IOB1": ["O", "I-A", "B-A", "I-B", "B-B"],
    "IOB2": ["O", "B-A", "I-A"],
    "IOBES": ["O", "S-A", "B-A", "I-A", "E-A"],
}


@pytest.mark.parametrize("scheme", CHUNKS)
@pytest.mark.parametrize("held", [False, True])
def test_chunk_probabilities_match_enumeration(scheme: str, held: bool) -> None:
    labels = CHUNKS[scheme]
    L = len(labels)
    c = random_corpus(L, L, n=8, longest=4)
    w = np.random.default_rng(L).normal(size=len(c.layout)).astype(np.float32)
    sets, of, forbidden = constraints(c, 3)
    scorer = _core.Scorer(c.layout, w, np.flatnonzero(forbidden.ravel()).astype(np.uint32) if held else None)
    kinds, table = entity_table(labels)
    rows, want = [], []
    offsets = c.data.offsets.astype(int)
    for i, (s, (a, b)) in enumerate(zip(c.scores(w.astype(float)), pairwise(offsets))):
        if held:
            s = scores(s.node, s.edge, s.start, s.end, (sets[of])[a:b], forbidden)
        path_scores = {p: chain.score(s, p) for p in product(range(L), repeat=int(b - a))}
        z = np.logaddexp.reduce(list(path_scores.values()))
        for kind in sorted(set(kinds.tolist()) - {_core.OUTSIDE}):
            name = next(y for y, k in zip(labels, kinds) if k == kind)[2:]
            for begin in range(b - a):
                for end in range(begin + 1, b - a + 1):
                    rows.append((i, begin, end, kind))
                    has = [
                        h - z
                        for p, h in path_scores.items()
                        if schemes.Span(name, begin, end) in schemes.spans([labels[y] for y in p])
                    ]
                    want.append(np.exp(np.logaddexp.reduce(has)) if has else 0.0)
    order = np.random.default_rng(0).permutation(len(rows))
    columns = np.array(rows)[order].T
    parts = [columns[i].astype(np.uint32) for i in range(3)]
    found = _core.chunk_probabilities(
        scorer,
        c.data,
        (*parts, columns[3].astype(np.uint16)),
        (kinds, table),
        allowed=(sets, of) if held else None,
    )
    np.testing.assert_allclose(found, np.array(want)[order], atol=1e-9)


@given(st.lists(st.tuples(st.floats(0, 1), st.booleans()), max_size=60), st.integers(1, 12))
def test_calibration_error_of_bins(pairs: list[tuple[float, bool]], bins: int) -> None:
    confidence, correct = [c for c, _ in pairs], [r for _, r in pairs]
    found = calibration(confidence, correct, bins)
    assert sum(found.count) == len(pairs)
    which = np.minimum((np.array(confidence) * bins).astype(int), bins - 1)
    ece = 0.0
    for b in range(bins):
        mine = which == b
        if mine.any():
            gap = abs(np.array(correct)[mine].mean() - np.array(confidence)[mine].mean())
            ece += gap * mine.sum() / len(pairs)
    assert found.ece == pytest.approx(ece, abs=1e-9)
    assert found.ece <= found.worst + 1e-12


def test_true_probabilities_are_calibrated() -> None:
    rng = np.random.default_rng(0)
    p = rng.uniform(size=20_000)
    assert calibration(p, rng.uniform(size=20_000) < p).ece < 0.02
    assert calibration([1.0] * 100, [False] * 100).ece == 1.0
    with pytest.raises(tw.exceptions.CorpusError, match="not a probability"):
        calibration([1.5], [True])


def test_path_score_above_log_z_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rounding may lift a score slightly above log Z, which counts as a probability of 1. More is an error."""
    crf = tw.CRF(features="attributes").fit([[["a"], ["b"]]], [["x", "y"]])
    X, y = [[["a"], ["b"]]], [["x", "y"]]
    before = paths.marginals

    def lowered(by: float) -> None:
        def marginals(*given: Any, **options: Any) -> tuple[np.ndarray, np.ndarray]:
            p, log_z = before(*given, **options)
            return p, log_z - by

        monkeypatch.setattr(paths, "marginals", marginals)

    sure = crf.predict_confidence(X)[0].probability
    lowered(1e-3 - np.log(sure))
    assert crf.predict_confidence(X)[0].probability == 1.0
    lowered(1.0 - np.log(sure))
    with pytest.raises(InternalError, match="sentence 0"):
        crf.predict_confidence(X)
    assert crf.predict(X) == y

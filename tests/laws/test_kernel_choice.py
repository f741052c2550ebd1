"""Tests that decoding single sentences, with labels in lanes, gives the bits of decoding sixteen in lanes."""

from __future__ import annotations

import numpy as np
import pytest

from tagwise import _core

from .corpora import random_corpus
from .paths import forced


def found(scorer: _core.Scorer, data: _core.Dataset, allowed: object, code_path: str) -> tuple[bytes, ...]:
    """Return paths, marginals and log Z of a call as bytes."""
    with forced(code_path):
        paths = scorer.viterbi(data, allowed=allowed, n_jobs=1)
        p, log_z = scorer.marginals(data, allowed=allowed, n_jobs=1)
    return paths.tobytes(), p.tobytes(), log_z.tobytes()


@pytest.mark.parametrize("level", ["", "avx2", "baseline"])
@pytest.mark.parametrize("labels", [1, 9, 16, 17, 70])
def test_chart_and_lane_kernels_are_bit_identical(labels: int, level: str) -> None:
    """Bits are equal with ties, forbidden labels and edges, scores far apart, and renormalised long sentences."""
    c = random_corpus(labels, labels, n=20, longest=300 if labels < 17 else 200)
    rng = np.random.default_rng(labels)
    n = c.data.n_tokens
    sets = rng.random((n, labels)) < 0.7
    sets[np.arange(n), rng.integers(0, labels, n)] = True
    edges = np.flatnonzero(rng.random(labels * labels) < 0.05).astype(np.uint32)
    few = (sets, np.arange(n, dtype=np.uint32))
    cases = [(edges[:0], None), (edges[:0], few)] + ([(edges, None)] if labels > 9 else [])
    for w in (rng.integers(-2, 3, len(c.layout)), 9.0 * rng.standard_normal(len(c.layout))):
        for forbidden, allowed in cases:
            with forced("whole"):
                scorer = _core.Scorer(c.layout, w.astype(np.float32), forbidden)
            batch, single = (
                found(scorer, c.data, allowed, f"{code_path},{level}") for code_path in ("alone", "sentence")
            )
            assert batch == single


def test_kernels_are_chosen_by_filled_lanes() -> None:
    """A single sentence uses the chart kernel, and enough sentences to fill the lanes use the lane kernel."""
    for sentences, kernel in ((1, "chart"), (32, "lanes")):
        c = random_corpus(3, 45, n=sentences, longest=1)
        with forced("whole"):
            scorer = _core.Scorer(c.layout, np.zeros(len(c.layout), np.float32))
        _core.path_counts()
        scorer.viterbi(c.data)
        scorer.marginals(c.data)
        assert _core.path_counts().get(kernel) == 2 * sentences

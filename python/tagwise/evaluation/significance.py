"""Significance test of two learners: paired approximate randomization over sentences (Noreen 1989, Yeh 2000)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

TRIALS = 10_000
_BLOCK = 500

#: Columns of `metrics.count_by_sentence`.
TOKENS, RIGHT, GOLD, PREDICTED, CORRECT = range(5)


def _score(total: NDArray[np.float64], chunked: bool) -> NDArray[np.float64]:
    """Return the score of summed counts [..., 5]: F1 of chunks, or accuracy."""
    part, whole = 2.0 * total[..., CORRECT], total[..., GOLD] + total[..., PREDICTED]
    if not chunked:
        part, whole = total[..., RIGHT], total[..., TOKENS]
    out: NDArray[np.float64] = np.divide(part, whole, out=np.zeros_like(part), where=whole > 0)
    return out


def p_value(
    one: Sequence[Sequence[int]], other: Sequence[Sequence[int]], *, trials: int = TRIALS, seed: int = 0
) -> float:
    """Return the p-value of the difference between two taggers, by random swaps of their outputs for sentences.

    The statistic is the absolute difference of F1, or of accuracy for labels without chunks. The result is
    (1 + hits) / (1 + trials), which is never zero.

    Args:
        one: Counts of each sentence of a test set, from `metrics.count_by_sentence`.
        other: Counts of the other tagger on the same test set.
        trials: Number of random trials.
        seed: Random seed.
    """
    a, b = np.asarray(one, dtype=np.float64), np.asarray(other, dtype=np.float64)
    if a.shape != b.shape:
        raise ValueError(f"counts of {len(a)} and {len(b)} sentences, expected counts of the same test set")
    chunked = bool(a[:, GOLD].any() or a[:, PREDICTED].any() or b[:, PREDICTED].any())
    total_a, total_b, difference = a.sum(axis=0), b.sum(axis=0), b - a
    observed = abs(float(_score(total_a, chunked) - _score(total_b, chunked)))
    changed = np.flatnonzero(difference.any(axis=1))  # swapping equal counts has no effect
    difference = difference[changed]
    rng, hits = np.random.default_rng(seed), 0
    for begin in range(0, trials, _BLOCK):
        coins = rng.integers(0, 256, (min(_BLOCK, trials - begin), len(changed) // 8 + 1), dtype=np.uint8)
        swap = np.unpackbits(coins, axis=1)[:, : len(changed)].astype(np.float32)
        moved: Any = (swap @ difference.astype(np.float32)).astype(np.float64)  # exact for integers
        found = np.abs(_score(total_a + moved, chunked) - _score(total_b - moved, chunked))
        hits += int(np.count_nonzero(found >= observed - 1e-12))
    return (1 + hits) / (1 + trials)

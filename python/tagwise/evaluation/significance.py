"""Uncertainty of scores over sentences: intervals by the bootstrap, tests by paired approximate randomization.

The bootstrap is that of Efron (1979) with percentile intervals, the test that of Noreen (1989) and Yeh (2000), the
correction for several tests that of Holm (1979).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

TRIALS = 10_000
RESAMPLES = 2_000
LEVEL = 0.95
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


def adjusted(p_values: Sequence[float]) -> list[float]:
    """Return p-values that are corrected for their number by Holm's step-down method.

    Args:
        p_values: p-values of all tests that one statement rests on.

    Returns:
        The corrected p-values in the same order. The chance that any of them is below a level without a real difference
        is at most that level.

    >>> adjusted([0.04, 0.01, 0.03])
    [0.06, 0.03, 0.06]
    """
    out, largest = [0.0] * len(p_values), 0.0
    for rank, i in enumerate(sorted(range(len(p_values)), key=p_values.__getitem__)):
        largest = max(largest, min(1.0, (len(p_values) - rank) * p_values[i]))
        out[i] = largest
    return out


def intervals(
    counts: Sequence[Sequence[Sequence[int]]],
    *,
    level: float = LEVEL,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> dict[str, tuple[float, float]]:
    """Return bootstrap intervals of the scores of a tagger: draw sentences with replacement and score each sample.

    Sentences with equal counts are drawn together, by the multinomial distribution of how often each kind occurs. The
    cost therefore depends on the number of different counts, not on the number of sentences.

    Args:
        counts: Counts of each sentence of a test set, from `metrics.count_by_sentence`, for each of the runs whose mean
            score is reported. All runs use the same test set.
        level: Probability of the interval, from 0 to 1.
        resamples: Number of samples.
        seed: Random seed.

    Returns:
        Lower and upper end for "accuracy", "sequence_accuracy", "f1", "precision" and "recall" as fractions. Empty for
        an empty test set.
    """
    if not any(map(len, counts)):
        return {}
    runs = np.asarray(counts, dtype=np.int64)  # [runs, sentences, 5]
    if runs.ndim != 3 or runs.shape[2] != 5:
        raise ValueError(f"counts of shape {runs.shape}, expected (runs, sentences, 5) for one test set")
    n_runs, n, _ = runs.shape
    whole = runs[..., RIGHT] == runs[..., TOKENS]
    table = np.concatenate([runs, whole[..., None], np.ones_like(whole)[..., None]], axis=2)  # [runs, n, 7]
    kinds, often = np.unique(table.transpose(1, 0, 2).reshape(n, -1), axis=0, return_counts=True)
    rng, found = np.random.default_rng(seed), []
    for begin in range(0, resamples, _BLOCK):
        drawn = rng.multinomial(n, often / n, min(_BLOCK, resamples - begin))
        sums = drawn.astype(np.float64) @ kinds.astype(np.float64)  # exact for integers below 2**53
        found.append(sums.reshape(-1, n_runs, table.shape[2]))
    total = np.concatenate(found)  # [resamples, runs, 7]
    shares = {
        "accuracy": (total[..., RIGHT], total[..., TOKENS]),
        "sequence_accuracy": (total[..., 5], total[..., 6]),
        "f1": (2 * total[..., CORRECT], total[..., GOLD] + total[..., PREDICTED]),
        "precision": (total[..., CORRECT], total[..., PREDICTED]),
        "recall": (total[..., CORRECT], total[..., GOLD]),
    }
    ends = [(1 - level) / 2, (1 + level) / 2]
    out = {}
    for name, (part, all_) in shares.items():
        scores = np.divide(part, all_, out=np.zeros_like(part), where=all_ > 0).mean(axis=1)
        low, high = np.quantile(scores, ends)
        out[name] = (float(low), float(high))
    return out

"""The bootstrap (Efron 1979) over sentences, and Holm's correction (1979), as in the papers."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

Counts = Sequence[Sequence[int]]  # tokens, correct tokens, gold chunks, predicted chunks, correct chunks


def _ratio(part: float, whole: float) -> float:
    return part / whole if whole else 0.0


#: Scores of the counts of some sentences, an array [sentences, 5].
SCORES: dict[str, Callable[[NDArray[np.int64]], float]] = {
    "accuracy": lambda c: _ratio(c[:, 1].sum(), c[:, 0].sum()),
    "sequence_accuracy": lambda c: float(np.mean(c[:, 0] == c[:, 1])),
    "precision": lambda c: _ratio(c[:, 4].sum(), c[:, 3].sum()),
    "recall": lambda c: _ratio(c[:, 4].sum(), c[:, 2].sum()),
    "f1": lambda c: _ratio(2 * c[:, 4].sum(), c[:, 2].sum() + c[:, 3].sum()),
}


def bootstrap(runs: Sequence[Counts], name: str, resamples: int, seed: int) -> list[float]:
    """Return the mean score over runs for each sample of n sentences, drawn with replacement."""
    rng = np.random.default_rng(seed)
    arrays = [np.asarray(run) for run in runs]
    out = []
    for _ in range(resamples):
        drawn = rng.integers(0, len(arrays[0]), len(arrays[0]))
        out.append(float(np.mean([SCORES[name](array[drawn]) for array in arrays])))
    return out


def holm(p_values: Sequence[float]) -> list[float]:
    """Return for each test the smallest level at which Holm's procedure rejects its hypothesis.

    The procedure walks through the p-values in ascending order and rejects while the one at position k of m, from 0, is
    at most level / (m - k). The levels at which a decision changes are therefore (m - k) p_k, and 1.
    """
    ordered = sorted(p_values)
    levels = sorted({min(1.0, (len(ordered) - k) * p) for k, p in enumerate(ordered)} | {1.0})

    def rejected(level: float) -> int:
        """Return the number of rejected hypotheses."""
        for k, p in enumerate(ordered):
            if (len(ordered) - k) * p > level:
                return k
        return len(ordered)

    found = []
    for p in p_values:
        first = ordered.index(p)
        found.append(next((level for level in levels if rejected(level) > first), 1.0))
    return found

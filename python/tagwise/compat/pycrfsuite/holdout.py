"""Evaluation on held-out instances, and its lines of the log."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

import tagwise._core as _core


def performance(
    labels: Sequence[str], offsets: NDArray[np.uint64], gold: NDArray[np.uint16], found: NDArray[np.uint16]
) -> Iterator[str]:
    """Yield the lines for each label, then averages and accuracies. offsets is [N + 1], gold and found are [tokens]."""
    n = len(labels)
    right = gold == found
    match = np.bincount(gold[right], minlength=n)
    model, ref = np.bincount(found, minlength=n), np.bincount(gold, minlength=n)
    yield "Performance by label (#match, #model, #ref) (precision, recall, F1):\n"
    sums = np.zeros(3)
    for y, label in enumerate(labels):
        m, k, r = int(match[y]), int(model[y]), int(ref[y])
        head = f"    {label}: ({m}, {k}, {r}) "
        if not r:
            yield head + "(******, ******, ******)\n"
            continue
        precision = m / k if k else 0.0
        recall = m / r
        f1 = 2.0 * precision * recall / (precision + recall) if precision + recall else 0.0
        sums += (precision, recall, f1)
        yield head + f"({precision:1.4f}, {recall:1.4f}, {f1:1.4f})\n"
    p, r_, f = (sums / max(1, n)).tolist()
    yield f"Macro-average precision, recall, F1: ({p:f}, {r_:f}, {f:f})\n"
    tokens, whole = len(gold), len(offsets) - 1
    hits = int(right.sum())
    yield f"Item accuracy: {hits} / {tokens} ({hits / tokens if tokens else 0.0:1.4f})\n"
    wrong = np.concatenate([[0], np.cumsum(~right)])
    ends = offsets.astype(np.int64)
    good = int((wrong[ends[1:]] == wrong[ends[:-1]]).sum())
    yield f"Instance accuracy: {good} / {whole} ({good / whole if whole else 0.0:1.4f})\n"


def tagged(layout: _core.Layout, weights: NDArray[np.float64], data: _core.Dataset) -> NDArray[np.uint16]:
    """Return the Viterbi paths of instances, concatenated [tokens]."""
    return _core.Scorer(layout, weights.astype(np.float32)).viterbi(data)

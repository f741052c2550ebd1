"""Weights of training sentences by their length.

    w_i = c pi^{T_i},   c such that sum_i s_i w_i = sum_i s_i   (s_i: the sample weights)

With `labels` also divided by L^T - 1, the number of wrong label sequences: D_0 of Altun and Hofmann (2003), Algorithm
2, in which every sentence begins with its w_i whatever its length; for a `pointwise` loss by T (L - 1), wrong labels.

The mean weight is 1: a penalty is as strong beside the data as without `pi`, and the minimiser is that of pi^T with the
penalty times the same c. For lack of a penalty c changes nothing. Computed from logarithms, for pi^T itself leaves the
range of floats at a few hundred tokens.
"""

from __future__ import annotations

import logging
import math

import numpy as np
from numpy.typing import NDArray

from tagwise._core import Dataset
from tagwise.base.exceptions import ParameterError
from tagwise.dataset.check import lengths_of

logger = logging.getLogger("tagwise")

#: Least weight beside the largest: what is less is no number any more. Around 1 there is room for its square.
LEAST = 1e-290


def length_weights(
    data: Dataset,
    pi: float,
    sample_weight: NDArray[np.float64] | None,
    *,
    exponential: bool,
    penalised: bool = True,
    labels: int | None = None,
    pointwise: bool = False,
) -> NDArray[np.float64] | None:
    """Sample weights times c pi^T, [N]; None where all are 1.

    `exponential`: the loss of a sentence may grow like e^T. Where it does, a weight too small for a float may not be
    taken for 0; other losses lose nothing by it and a word in the log will do. Without a penalty c is free, and where a
    mean of 1 leaves no room for the least weight, the largest is as far above 1 as the least is below.
    """
    if pi >= 1.0 and (labels or 1) < 2:
        return sample_weight
    given = np.ones(len(data)) if sample_weight is None else sample_weight
    counts = given > 0.0
    if not counts.any():
        return sample_weight
    lengths = lengths_of(data)
    logs = lengths * math.log(pi)
    if labels is not None and labels > 1:
        spread = np.maximum(lengths, 1) * math.log(labels)
        wrong = np.log(np.maximum(lengths, 1)) if pointwise else spread + np.log(-np.expm1(-spread))
        logs = logs - wrong
    with np.errstate(under="ignore", over="ignore"):
        top, low = float(logs[counts].max()), float(logs[counts].min())
        if not penalised and math.log(LEAST) > low - top > 2.0 * math.log(LEAST):
            centred: NDArray[np.float64] = given * np.where(counts, np.exp(logs - (top + low) / 2.0), 0.0)
            return centred
        weight = np.exp(np.minimum(logs - top, 0.0))
        lost = np.flatnonzero(counts & (weight < LEAST))
        if len(lost):
            told = f"pi={pi:g}" if labels is None else f"pi={pi:g}, balance=True, {labels} labels"
            _report(lengths, counts, lost, told, exponential)
        weight *= float(given.sum()) / float((given * weight).sum())
        product: NDArray[np.float64] = given * weight
    return product


def _report(
    lengths: NDArray[np.int64],
    counts: NDArray[np.bool_],
    lost: NDArray[np.int64],
    told: str,
    exponential: bool,
) -> None:
    """Refuse, or say, that sentences weigh nothing beside the shortest one."""
    longest = int(lost[np.argmax(lengths[lost])])
    shortest = int(lengths[counts].min())
    text = (
        f"{told}: sentence {longest} of {lengths[longest]} tokens weighs too little for a number beside one of "
        f"{shortest}"
    )
    if exponential:
        raise ParameterError(f"{text}; cut long sentences (max_length), or take a larger pi")
    logger.warning("%s; so do %d sentences in all, which count for nothing", text, len(lost))


__all__ = ["length_weights"]

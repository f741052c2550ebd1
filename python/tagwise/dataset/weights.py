"""Weights of training sentences that depend on their length.

    w_i = c pi^{T_i},   c such that sum_i s_i w_i = sum_i s_i   (s_i: the sample weights)

If `labels` is given, weights are also divided by L^T - 1, the number of wrong label sequences. This is D_0 of Altun and
Hofmann (2003), Algorithm 2, in which the initial weight of a sentence is w_i at any length. For a `pointwise` loss the
divisor is T (L - 1), the number of wrong labels.

The mean weight is 1, so that a penalty has the same strength relative to the data as without `pi`. The minimizer is
that of pi^T with the penalty multiplied by the same c. Without a penalty, c has no effect. Weights are computed from
logarithms, because pi^T underflows at a few hundred tokens.
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

#: Minimum ratio of a weight to the largest one, close to the smallest float. Centred around 1, its square is possible.
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
    """Return sample weights times c pi^T, [N], or None if all are 1.

    `exponential` means that the loss of a sentence may grow like e^T. A weight that underflows is then an error,
    because it cannot be treated as 0. With other losses it is negligible and only logged. Without a penalty, c is
    arbitrary. If a mean of 1 would make the smallest weight underflow, weights are then centred around 1 in log space.
    """
    if pi >= 1.0 and (labels or 1) < 2:
        return sample_weight
    base = np.ones(len(data)) if sample_weight is None else sample_weight
    counts = base > 0.0
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
            centred: NDArray[np.float64] = base * np.where(counts, np.exp(logs - (top + low) / 2.0), 0.0)
            return centred
        weight = np.exp(np.minimum(logs - top, 0.0))
        lost = np.flatnonzero(counts & (weight < LEAST))
        if len(lost):
            setting = f"pi={pi:g}" if labels is None else f"pi={pi:g}, balance=True, {labels} labels"
            _report(lengths, counts, lost, setting, exponential)
        weight *= float(base.sum()) / float((base * weight).sum())
        product: NDArray[np.float64] = base * weight
    return product


def _report(
    lengths: NDArray[np.int64],
    counts: NDArray[np.bool_],
    lost: NDArray[np.int64],
    setting: str,
    exponential: bool,
) -> None:
    """Raise an error or log a warning that weights of sentences underflow relative to the shortest sentence."""
    longest = int(lost[np.argmax(lengths[lost])])
    shortest = int(lengths[counts].min())
    text = (
        f"{setting}: the weight of sentence {longest} ({lengths[longest]} tokens) underflows relative to a sentence of "
        f"{shortest} tokens"
    )
    if exponential:
        raise ParameterError(f"{text}. Cut long sentences with max_length=..., or increase pi.")
    logger.warning("%s. In total, %d sentences have weight 0", text, len(lost))

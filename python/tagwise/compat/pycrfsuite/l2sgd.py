"""Stochastic gradient descent with an L2 penalty: lambda = 2 c2 / N, eta_t = 1 / (lambda (t0 + t)).

The weights are a scalar decay times a table, so that the penalty of a step costs O(1). Training returns the weights of
the epoch with the smallest loss. The first eta is calibrated by trial epochs on a sample of instances.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

import tagwise._core as _core
from tagwise.compat.pycrfsuite.data import FeatureCodes, Ids
from tagwise.compat.pycrfsuite.parameters import Parameters
from tagwise.compat.pycrfsuite.rand import Rand

Log = Callable[[str], None]


class SgdEpoch(NamedTuple):
    """State after an epoch."""

    weights: NDArray[np.float64]
    loss: float
    norm: float
    eta: float
    updates: int
    improvement: float | None


class TrainingSequences(NamedTuple):
    """Instances to train on, and their features."""

    data: _core.CrfsuiteInstances
    holdout: int
    features: FeatureCodes

    def descent(self, penalty: float, eta: float) -> _core.CrfsuiteOnline:
        """Return a descent that starts at zero with this learning rate."""
        codes, numbers = (self.features.node, self.features.edge), [penalty, 1.0 / (penalty * eta)]
        return _core.CrfsuiteOnline(self.data, self.holdout, *codes, "l2sgd", numbers)


def _trial(sequences: TrainingSequences, sample: Ids, penalty: float, eta: float) -> float:
    """Return the loss of one epoch over a sample with this initial learning rate."""
    descent = sequences.descent(penalty, eta)
    loss = descent.steps(sample)
    return loss + 0.5 * penalty * descent.apply_decay() * len(sample)


def calibrated(
    sequences: TrainingSequences, sample: Ids, params: Parameters, penalty: float, log: Log
) -> float:
    """Return the learning rate whose trial epoch has the smallest loss.

    Candidates grow by the factor calibration.rate while that helps, then shrink by it.
    """
    names = ("eta", "rate", "samples", "candidates", "max_trials")
    eta0, rate, _, candidates, most = (params[f"calibration.{name}"] for name in names)
    log("Calibrating the learning rate (eta)\n")
    for name in names:
        value = len(sample) if name == "samples" else params[f"calibration.{name}"]
        log(
            f"calibration.{name}: {value:f}\n"
            if isinstance(value, float)
            else f"calibration.{name}: {value}\n"
        )
    lengths = sequences.data.lengths(sequences.holdout, False)[sample]
    begin = float(lengths.sum()) * math.log(max(1, sequences.features.n_labels))
    log(f"Initial loss: {begin:f}\n")
    left, down, eta = candidates, False, eta0
    best, best_loss = float(eta0), math.inf
    trials = 1
    while left > 0 or not down:
        log(f"Trial #{trials} (eta = {eta:f}): ")
        loss = _trial(sequences, sample, penalty, eta)
        good = math.isfinite(loss) and loss < begin
        log(f"{loss:f}\n" if good else f"{loss:f} (worse)\n")
        left -= int(good)
        if math.isfinite(loss) and loss < best_loss:
            best_loss, best = loss, eta
        if down:
            eta /= rate
        elif good and left > 0:
            eta *= rate
        else:
            down, left, eta = True, candidates, eta0 / rate
        trials += 1
        if trials > most:
            break
    return best


def epochs(
    sequences: TrainingSequences, params: Parameters, log: Log, seconds: Callable[[], str]
) -> Iterator[SgdEpoch]:
    """Calibrate the learning rate, then yield the epochs."""
    n = len(sequences.data.lengths(sequences.holdout, False))
    stream, order = Rand(), list(range(n))
    penalty = 2.0 * params["c2"] / max(1, n)
    stream.shuffle(order)
    sample = np.array(order[: params["calibration.samples"]], np.int64)
    eta = calibrated(sequences, sample, params, penalty, log)
    log(f"Best learning rate (eta): {eta:f}\n")
    log(f"Seconds required: {seconds()}\n")
    log("\n")
    descent = sequences.descent(penalty, eta)
    past: list[float] = []
    period = params["period"]
    for epoch in range(1, params["max_iterations"] + 1):
        stream.shuffle(order)
        loss = descent.steps(np.array(order, np.int64))
        norm2 = descent.apply_decay()
        loss += 0.5 * penalty * norm2 * n
        improvement = (past[-period] - loss) / loss if period < epoch else None
        past.append(loss)
        rate, steps = descent.rate
        yield SgdEpoch(descent.weights(), loss, math.sqrt(norm2), rate, int(steps), improvement)
        if not math.isfinite(loss) or (improvement is not None and improvement < params["delta"]):
            return

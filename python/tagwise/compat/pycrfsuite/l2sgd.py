"""Stochastic gradient descent with an L2 penalty: lambda = 2 c2 / N, eta_t = 1 / (lambda (t0 + t)).

The weights are decay times a table, so that the penalty of a step costs nothing; those of the epoch with the smallest
loss are kept. The first eta is found by trials of one epoch on some instances.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

import tagwise._core as _core
from tagwise.compat.pycrfsuite.chains import Table, Weights, path_score
from tagwise.compat.pycrfsuite.data import Features, Instance
from tagwise.compat.pycrfsuite.parameters import Parameters
from tagwise.compat.pycrfsuite.rand import Rand

Say = Callable[[str], None]


class Epoch(NamedTuple):
    """Where training stands after an epoch."""

    weights: Table
    loss: float
    norm: float
    eta: float
    updates: int
    improvement: float | None


class Descent:
    """Steps on a table of weights."""

    def __init__(self, features: Features, penalty: float, t0: float) -> None:
        self.weights, self.penalty, self.t0 = Weights(features), penalty, t0
        self.steps, self.decay, self.eta = 0, 1.0, 0.0

    def step(self, row: Instance) -> float:
        """One step; the loss of the instance before it."""
        self.eta = 1.0 / (self.penalty * (self.t0 + self.steps))
        self.decay *= 1.0 - self.eta * self.penalty
        gain = self.eta / self.decay
        weights, n = self.weights, self.weights.n
        node, edge = weights.scores(row, self.decay)
        log_z, p, pair = _core.chain_marginals(np.ascontiguousarray(node), np.ascontiguousarray(edge))
        loss = log_z - path_score(node, edge, row.labels)
        slope = -p
        slope[np.arange(len(row)), row.labels] += 1.0
        spread = np.repeat(slope, np.diff(row.ptr), axis=0)
        if row.values is not None:
            spread *= row.values[:, None]
        codes = row.ids[:, None] * n + np.arange(n)
        table = weights.node
        np.add.at(table, codes.ravel(), gain * (spread * weights.is_node[codes]).ravel())
        pairs = -pair[1:].sum(axis=0).ravel()
        np.add.at(pairs, row.labels[:-1] * n + row.labels[1:], 1.0)
        weights.edge += gain * pairs * weights.is_edge
        self.steps += 1
        return loss

    def settle(self) -> float:
        """The decay taken into the table; the square of its norm."""
        self.weights.node *= self.decay
        self.weights.edge *= self.decay
        self.decay = 1.0
        return float(self.weights.node @ self.weights.node) + float(self.weights.edge @ self.weights.edge)


def _trial(rows: Sequence[Instance], features: Features, penalty: float, eta: float) -> float:
    """The loss of one epoch over instances with this learning rate at first."""
    with np.errstate(all="ignore"):
        descent = Descent(features, penalty, 1.0 / (penalty * eta))
        try:
            loss = math.fsum([descent.step(row) for row in rows]) if len(rows) else 0.0
        except ValueError:  # scores beyond any number
            return math.inf
        return loss + 0.5 * penalty * descent.settle() * len(rows)


def calibrated(
    rows: Sequence[Instance], features: Features, params: Parameters, penalty: float, say: Say
) -> float:
    """The learning rate whose epoch has the smallest loss: doubled while that helps, then halved."""
    names = ("eta", "rate", "samples", "candidates", "max_trials")
    eta0, rate, _, candidates, most = (params[f"calibration.{name}"] for name in names)
    say("Calibrating the learning rate (eta)\n")
    for name in names:
        value = len(rows) if name == "samples" else params[f"calibration.{name}"]
        say(
            f"calibration.{name}: {value:f}\n"
            if isinstance(value, float)
            else f"calibration.{name}: {value}\n"
        )
    zero = Weights(features)
    begin = 0.0
    for row in rows:
        node, edge = zero.scores(row)
        begin += _core.chain_log_partition(node, np.ascontiguousarray(edge))
    say(f"Initial loss: {begin:f}\n")
    left, down, eta = candidates, False, eta0
    best, best_loss = float(eta0), math.inf
    trials = 1
    while left > 0 or not down:
        say(f"Trial #{trials} (eta = {eta:f}): ")
        loss = _trial(rows, features, penalty, eta)
        good = math.isfinite(loss) and loss < begin
        say(f"{loss:f}\n" if good else f"{loss:f} (worse)\n")
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
    rows: Sequence[Instance], features: Features, params: Parameters, say: Say, seconds: Callable[[], str]
) -> Iterator[Epoch]:
    """Calibration, then one epoch after the other."""
    stream, order = Rand(), list(range(len(rows)))
    penalty = 2.0 * params["c2"] / max(1, len(rows))
    stream.shuffle(order)
    sample = [rows[i] for i in order[: params["calibration.samples"]]]
    eta = calibrated(sample, features, params, penalty, say)
    say(f"Best learning rate (eta): {eta:f}\n")
    say(f"Seconds required: {seconds()}\n")
    say("\n")
    descent = Descent(features, penalty, 1.0 / (penalty * eta))
    past: list[float] = []
    period = params["period"]
    for epoch in range(1, params["max_iterations"] + 1):
        stream.shuffle(order)
        loss = 0.0
        for i in order:
            loss += descent.step(rows[i])
        norm2 = descent.settle()
        loss += 0.5 * penalty * norm2 * len(rows)
        improvement = (past[-period] - loss) / loss if period < epoch else None
        past.append(loss)
        vector = descent.weights.vector()
        yield Epoch(vector, loss, math.sqrt(norm2), descent.eta, descent.steps, improvement)
        if not math.isfinite(loss) or (improvement is not None and improvement < params["delta"]):
            return

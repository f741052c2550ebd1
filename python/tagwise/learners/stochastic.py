"""Stochastic gradient descent on the batch losses. Epochs run in the core, and a sample determines the step size.

    w <- w - eta_t (d loss of sixteen sentences + their share of d l2 ||w||^2),   eta_t = eta / (1 + eta 2 l2 t / N)

The schedule is that of l2sgd in CRFsuite (Bottou 2010): t counts sentences, and eta is the value of a geometric grid
with the lowest loss of a tenth of the corpus after a pass over it. Frequent features take shorter steps, see
`descent.rs`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

import tagwise._core as _core
from tagwise.base.domains import Domain, Integer, Numbers, Real, Record
from tagwise.base.exceptions import TrainingError
from tagwise.optimizers.base import Evaluate, State, Step, Vector

FIRST, FACTOR, MOST_TRIALS = 0.1, 2.0, 12
LEAST_GAIN = 1e-4
#: The largest step size whose loss is within this factor of the lowest is taken, as an epoch is longer than the sample.
CLOSE = 1.1
#: Epoch number of the order of the sample, which training never reaches.
SAMPLE_EPOCH = 1 << 40


def sgd_domain(n: int) -> Domain:
    """Return the domain of the state of a `Descent` with n weights."""
    return Record({"w": Numbers("f64", n), "eta": Real(0.0), "epochs": Integer(0, SAMPLE_EPOCH - 1)})


def calibrate(descent: _core.Stochastic, start: Vector, l2: float, seed: int) -> float:
    """Return the step size that gives the smallest loss of a tenth of the batches after one pass over them."""
    order = descent.order(seed, SAMPLE_EPOCH)
    order = order[: max(16, len(order) // 10)]

    def loss(eta: float) -> float:
        descent.set(start)
        value = descent.run(order, eta, l2, 0.0)
        # A step size of 0 evaluates without stepping.
        value = descent.run(order, 0.0, 0.0, 0.0) if math.isfinite(value) else math.inf
        return value if math.isfinite(value) else math.inf

    # Losses above that of the start are from diverged descents, and their order has no meaning.
    diverged = CLOSE * loss(0.0)
    losses = {FIRST: loss(FIRST)}
    for factor in (FACTOR, 1.0 / FACTOR):
        eta = FIRST
        for _ in range(MOST_TRIALS):
            least = min(losses.values())
            eta *= factor
            losses[eta] = loss(eta)
            if losses[eta] > least and least < math.inf and (factor > 1.0 or least <= diverged):
                break
    least = min(losses.values())
    if least == math.inf:
        raise TrainingError(
            "stochastic descent overflows with every step size. Scale real-valued attributes down, or use "
            "optimizer='lbfgs'"
        )
    # Rounding may make a loss of 0 slightly negative.
    return max(eta for eta, value in losses.items() if value <= max(CLOSE * least, least))


class Descent:
    """Epochs of stochastic descent from `start` or from a state. `eta` is the current step size."""

    def __init__(
        self,
        core: _core.Stochastic,
        start: Vector,
        l2: float,
        n_sentences: int,
        seed: int,
        resume: State | None = None,
    ) -> None:
        self.core, self.w, self.l2, self.n, self.seed = core, start, l2, n_sentences, seed
        if resume is None:
            self.eta, self.epochs = calibrate(core, start, l2, seed), 0
        else:
            self.w, self.eta, self.epochs = resume["w"], resume["eta"], resume["epochs"]
        core.set(self.w)

    def epoch(self) -> Vector:
        """Return the weights after one more epoch. If steps are too long, they are halved and the epoch is repeated."""
        for _ in range(MOST_TRIALS):
            order = self.core.order(self.seed, self.epochs)
            value = self.core.run(order, self.eta, self.l2, float(self.epochs * self.n))
            if math.isfinite(value):
                self.epochs += 1
                self.w = self.core.weights()
                return self.w
            self.eta /= 2.0
            self.core.set(self.w)
        raise TrainingError("stochastic descent overflows. Use optimizer='lbfgs', or increase l2")


def _norm(gradient: Vector) -> float:
    """Return the norm, which is infinite if the exponential loss makes its square overflow."""
    return math.sqrt(_core.dot(gradient, gradient, 1))


def sgd(objective: Evaluate, descent: Descent, *, keep: bool = False) -> Iterator[Step]:
    """Yield the starting point, then one step per epoch with the value of the whole objective.

    If an epoch does not decrease it, the noise of the steps is too large, and they are halved. Every epoch starts from
    the weights that were yielded, not from those of the core (rows times a scale, which round differently). So these
    weights and the step size are the complete state.
    """
    gradient = np.empty_like(descent.w)
    before = objective(descent.w, gradient)

    def state() -> State:
        return {"w": descent.w, "eta": descent.eta, "epochs": descent.epochs}

    kept = state if keep else None
    yield Step(descent.w, before, _norm(gradient), descent.epochs + 1, kept)
    while True:
        descent.core.set(descent.w)
        value = objective(descent.epoch(), gradient)
        if value > (1.0 - LEAST_GAIN) * before:
            descent.eta /= 2.0
        before = value
        yield Step(descent.w, value, _norm(gradient), descent.epochs + 1, kept)

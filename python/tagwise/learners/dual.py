"""Dual block ascent for the log loss with l2 > 0: weights that are certified to be within `tol` of the optimum.

    primal  P(w) = sum_i s_i loss_i(w) + l2 ||w||^2  >=  P*  >=  D(q) = sum_i s_i entropy(q_i) - l2 ||w(q)||^2

The core runs the epochs (`learners/dual` describes the algorithm). The number of visits of an epoch is six tenths of
the number of sentences, and sentences far from their optimum are visited more often. D at any dual point is a lower
bound of the optimum, so that (P - D) / P bounds the relative distance from it. `tol` is compared with this gap.

The certificate is computed in double precision, with bounds of its rounding, and its P is that of the stored weights.
Objectives between certificates are sums in single precision and certify nothing.

Dual ascent is fast if l2 is not small. L-BFGS continues from its weights if the gap falls too slowly, if a sentence is
out of the range of float32, and for gaps that steps in float32 cannot reach.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np

from tagwise.base.domains import (
    AnyOf,
    Domain,
    DomainError,
    Integer,
    ListOf,
    Numbers,
    Real,
    Record,
    TupleOf,
)
from tagwise.optimizers.base import State, Step, relative_gap
from tagwise.scores.protocols import Vector

#: Smallest relative gap that steps in float32 aim at.
FINEST = 3e-6
#: Number of epochs over which the decrease of the noisy gap is measured, and the most further epochs to accept.
LOOK_BACK, TOO_MANY = 8, 60
#: Estimated ratio of the gap to the chi-square distances of the visits, until a certificate gives the true one.
SHARE = 0.25
#: A certificate costs a pass or more, so it is computed when the estimated gap is below this factor of `tol`.
NEAR = 0.9
#: The objective is evaluated when the gap has fallen to this share, and after this many epochs at the latest.
FALL, MOST = 0.5, 4
#: While the gap is more than FAR times `tol`, this share applies. An evaluation costs a third of an epoch.
FAR, FALL_FAR = 300.0, 0.1

#: With several parts, L-BFGS continues when OVER epochs decrease the objective by less than this share.
OVER, FLAT = 4, 0.01

NAMES = ("weights", "nodes", "pairs", "blocks", "epochs")


def _points(dtype: str) -> Domain:
    """Return the domain of an array, or of one per part of the shards. The core checks their lengths."""
    return AnyOf((ListOf(Numbers(dtype), low=1), Numbers(dtype)))


#: State of an `Ascent`.
DUAL: Domain = Record(
    {
        "bound": Real(),
        "share": Real(),
        "gaps": ListOf(Real(any_=True), high=1 + LOOK_BACK),
        "value": Real(any_=True),
        "values": ListOf(TupleOf((Integer(0, 2**53), Real())), high=1 + OVER),
        "weights": AnyOf((Numbers("f32"), Numbers("f64"))),
        "nodes": _points("f32"),
        "pairs": _points("f32"),
        "blocks": _points("f64"),
        "epochs": Integer(0, 2**53),
    }
)


class Core(Protocol):
    """Implementation of the ascent: `_core.Dual` for a dataset, `DualShards` for shards."""

    @property
    def epochs(self) -> int: ...

    def epoch(self, seed: int = 0, n_jobs: int = 0) -> tuple[int, int, float]:
        """Return the tokens visited, the visits that failed in float32, and the sum of the distances of the visits."""

    def primal(self, n_jobs: int = 0) -> float:
        """Return P of the current weights in single precision, or NaN if a sentence is out of range."""

    def certificate(self, n_jobs: int = 0) -> tuple[float, float]:
        """Return P of the current weights in double precision, and a D that is below the optimum despite rounding."""

    def weights(self) -> Vector:
        """Return the current weights."""

    def state(self) -> tuple[Any, ...]:
        """Return the state from which the ascent resumes exactly, in the order of `NAMES`."""

    def restore(self, weights: Any, nodes: Any, pairs: Any, blocks: Any, epochs: int) -> None:
        """Resume from a state."""


def _check_like(found: State, own: State) -> None:
    """Raise a DomainError for a state whose arrays differ from those of this ascent in type or length."""
    for name in NAMES[:-1]:
        theirs, ours = (x[name] if isinstance(x[name], list) else [x[name]] for x in (found, own))
        if [(x.dtype, len(x)) for x in theirs] != [(x.dtype, len(x)) for x in ours] or isinstance(
            found[name], list
        ) != isinstance(own[name], list):
            raise DomainError(f"{name}: expected {sum(map(len, ours)):,} numbers in {len(ours)} parts")


class Ascent:
    """Epochs of dual ascent, from the dual point of the gold labels or from a state.

    Attributes:
        bound: Largest D so far, 0 at the start.
        share: Gap over distances at the last certificate.
        gaps: Estimated absolute gap after each epoch.
        value: Last evaluated objective.
        values: Epoch and objective of each evaluation.
        switches_early: Whether L-BFGS continues as soon as it is as fast.
    """

    def __init__(
        self, core: Core, n_jobs: int, seed: int, resume: State | None = None, *, switches_early: bool = False
    ) -> None:
        self.core, self.n_jobs, self.seed, self.switches_early = core, n_jobs, seed, switches_early
        self.values: list[list[float]] = []
        self.bound, self.share, self.gaps, self.value = 0.0, SHARE, list[float](), math.inf
        if resume is not None:
            self.bound, self.share, self.gaps = resume["bound"], resume["share"], list(resume["gaps"])
            self.value = resume.get("value", math.inf)
            self.values = list(resume.get("values", []))
            _check_like(resume, dict(zip(NAMES, core.state())))
            core.restore(*(resume[name] for name in NAMES))

    def state(self) -> State:
        """Return the state from which the ascent resumes exactly."""
        known = {
            "bound": self.bound,
            "share": self.share,
            "gaps": self.gaps[-1 - LOOK_BACK :],
            "value": self.value,
            "values": self.values[-1 - OVER :],
        }
        return {**known, **dict(zip(NAMES, self.core.state()))}

    def certify(self, distance: float) -> float:
        """Return the current P, and raise the bound to D if that is larger.

        Earlier estimates of the gap are rescaled with the ratio found here, so that their decrease stays comparable.
        """
        primal, dual = self.core.certificate(self.n_jobs)
        self.bound = max(self.bound, dual)
        before = self.share
        self.share = (primal - self.bound) / distance if distance > 0.0 else SHARE
        self.gaps[:] = [gap * (self.share / before) for gap in self.gaps] if before > 0.0 else []
        return primal

    @property
    def is_flat(self) -> bool:
        """Whether L-BFGS would be faster from here on. One of its evaluations costs about as much as an epoch.

        An evaluation reduces the distance from the optimum by about the same share over a long range. Epochs reduce it
        by more at first, and by less near the optimum, the earlier the more parts there are.
        """
        if not self.switches_early or not self.values:
            return False
        epochs, value = self.values[-1]
        for then, before in reversed(self.values):
            if epochs - then >= OVER:
                return (before - value) * OVER < FLAT * value * (epochs - then)
        return False

    @property
    def is_at_the_end(self) -> bool:
        """Whether the gap is as small as float32 can resolve."""
        return relative_gap(self.value, self.bound) <= FINEST

    def step(self, value: float, *, keep: bool, exact: bool) -> Step:
        """Return the current step. The gradient is not computed."""
        state = self.state if keep else None
        step = Step(self.core.weights(), value, None, self.core.epochs + 1, state)
        return replace(step, dual=self.bound, exact=exact, fresh=True)


@dataclass
class DualPoint:
    """Dual point that training with one penalty passes on to training with the next, on the same data.

    w(q) = 1/(2 l2) sum_i s_i (F(y_i) - E_{q_i} F), so that the q of l2 has the weights (l2 / l2') w at l2'. Distances
    and step lengths are computed again, because those of the old penalty slow the ascent down (two to three times the
    passes).
    """

    digest: str = ""  # of the data
    l2: float = 0.0
    state: State | None = None

    def keep(self, digest: str, l2: float, ascent: Ascent) -> None:
        """Store the current point of an ascent."""
        self.digest, self.l2, self.state = digest, l2, ascent.state()

    def at(self, digest: str, l2: float, core: Core) -> State | None:
        """Return the initial state for l2, or None without a point for this data."""
        if self.state is None or self.digest != digest:
            return None
        fresh = dict(zip(NAMES, core.state()))
        moved = {"weights": (self.state["weights"] * (self.l2 / l2)).astype(np.float32)}
        kept = {name: self.state[name] for name in ("nodes", "pairs")}
        return {"bound": 0.0, "share": SHARE, "gaps": [], **fresh, **kept, **moved}


def steps(ascent: Ascent, tol: float, *, keep: bool = False, frequent_steps: bool = False) -> Iterator[Step]:
    """Yield the starting point, then a step for every one to four epochs, until L-BFGS should continue.

    This is the case if float32 fails or reaches its limit, if the rate of the last epochs would need too many more of
    them, or if the ascent `switches_early` and L-BFGS would be faster. `frequent_steps` yields as many steps far from
    the optimum as near it, for callers that choose the best step by a dev score.
    """
    core, n_jobs, gaps, wanted = ascent.core, ascent.n_jobs, ascent.gaps, max(tol, FINEST)
    value, exact = core.primal(n_jobs), False
    # A certified state: single precision may not reproduce the certificate.
    if relative_gap(value, ascent.bound) <= tol:
        (value, _), exact = core.certificate(n_jobs), True
    if not math.isfinite(value):
        return
    if not math.isfinite(ascent.value):
        ascent.value = value
    yield ascent.step(value, keep=keep, exact=exact)
    while not (is_slow(gaps, wanted * ascent.value) or ascent.is_flat or ascent.is_at_the_end):
        before = gaps[-1] if gaps else math.inf
        is_far = before > FAR * wanted * ascent.value and not (frequent_steps or ascent.switches_early)
        enough = (FALL_FAR if is_far else FALL) * before
        for _ in range(MOST):
            _, failed, distance = core.epoch(ascent.seed, n_jobs)
            if failed:
                return
            gaps.append(ascent.share * distance)
            near = gaps[-1] <= NEAR * wanted * ascent.value
            if near or gaps[-1] <= enough or is_slow(gaps, wanted * ascent.value):
                break
        value = math.nan if near else core.primal(n_jobs)
        near = near or relative_gap(value, ascent.bound) <= wanted
        ascent.value = ascent.certify(distance) if near else value
        if not math.isfinite(ascent.value):
            return
        ascent.values.append([core.epochs, ascent.value])
        yield ascent.step(ascent.value, keep=keep, exact=near)


def is_slow(gaps: list[float], wanted: float) -> bool:
    """Return whether the gap, at the rate of the last epochs, needs too many more of them."""
    if len(gaps) <= LOOK_BACK:
        return False
    before, now = gaps[-1 - LOOK_BACK], gaps[-1]
    rate = math.log(before / now) / LOOK_BACK if 0.0 < now < before else 0.0
    return rate * TOO_MANY <= math.log(max(now / wanted, 1.0))

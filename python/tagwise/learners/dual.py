"""Dual block ascent for the log loss with l2 > 0: weights that are certified to be within `tol` of the optimum.

    primal  P(w) = sum_i s_i loss_i(w) + l2 ||w||^2  >=  P*  >=  D(q) = sum_i s_i entropy(q_i) - l2 ||w(q)||^2

The epochs are native (`learners/dual` of the core has the algorithm). An epoch visits six tenths of the sentences,
those farthest from their optimum more often than others. D at any dual point bounds the optimum from below, so that
(P - D) / P bounds how far the weights are from it, whatever it is: that is what `tol` asks for.

The certificate is in double precision, with bounds of its rounding, and its P is that of the weights as they are kept.
Objectives between certificates are sums in single precision: they are shown, and nothing is certified by them.

It is fast where l2 is not small. Where the gap falls too slowly, where a sentence is beyond float32, and for gaps that
steps in float32 cannot reach, L-BFGS goes on from its weights.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np

from tagwise.base.domains import (
    Domain,
    DomainError,
    Either,
    Integer,
    Listed,
    Numbers,
    Real,
    Record,
    Tupled,
)
from tagwise.optimizers.base import State, Step, relative_gap
from tagwise.scores.protocols import Vector

#: Smallest relative gap that steps in float32 are asked for.
FINEST = 3e-6
#: Epochs that the fall of the gap is measured over, since it wavers, and how many more of them are too many.
LOOK_BACK, TOO_MANY = 8, 60
#: A gap is about this share of the chi-square distances that the visits met; what a certificate says replaces it.
SHARE = 0.25
#: A certificate costs a pass or more, so it is taken when the gap should be within this factor of `tol`.
NEAR = 0.9
#: Epochs until the objective is evaluated: as many as bring the gap to this share, and at most so many.
FALL, MOST = 0.5, 4
#: ... to this share while the gap is more than so many times `tol`: an evaluation costs a third of an epoch.
FAR, FALL_FAR = 300.0, 0.1

#: Where parts ascend at once: L-BFGS goes on once so many epochs lower the objective by less than this share of it.
OVER, FLAT = 4, 0.01

NAMES = ("weights", "nodes", "pairs", "blocks", "epochs")


def _points(dtype: str) -> Domain:
    """An array, or one for each part of the shards. The core checks their lengths."""
    return Either((Listed(Numbers(dtype), low=1), Numbers(dtype)))


#: The state of an `Ascent`.
DUAL: Domain = Record(
    {
        "bound": Real(),
        "share": Real(),
        "gaps": Listed(Real(any_=True), high=1 + LOOK_BACK),
        "value": Real(any_=True),
        "values": Listed(Tupled((Integer(0, 2**53), Real())), high=1 + OVER),
        "weights": Either((Numbers("f32"), Numbers("f64"))),
        "nodes": _points("f32"),
        "pairs": _points("f32"),
        "blocks": _points("f64"),
        "epochs": Integer(0, 2**53),
    }
)


class Core(Protocol):
    """What ascends: `_core.Dual` of a dataset, `rounds.DualShards` of shards. `epochs`: so far."""

    @property
    def epochs(self) -> int: ...

    def epoch(self, seed: int = 0, n_jobs: int = 0) -> tuple[int, int, float]:
        """Tokens visited, visits that float32 could not do, sum of the distances that the visits found."""

    def primal(self, n_jobs: int = 0) -> float:
        """P of the weights now in single precision; NaN if a sentence is out of range."""

    def certificate(self, n_jobs: int = 0) -> tuple[float, float]:
        """P of the weights now in double precision, and a D that rounding cannot have put above the optimum."""

    def weights(self) -> Vector:
        """The weights now."""

    def state(self) -> tuple[Any, ...]:
        """What to go on from, to the bit, as `NAMES` says."""

    def restore(self, weights: Any, nodes: Any, pairs: Any, blocks: Any, epochs: int) -> None:
        """Go on from a state."""


def _check_like(found: State, own: State) -> None:
    """Refuse a state whose arrays are not those of this ascent, in type and length."""
    for name in NAMES[:-1]:
        theirs, ours = (x[name] if isinstance(x[name], list) else [x[name]] for x in (found, own))
        if [(x.dtype, len(x)) for x in theirs] != [(x.dtype, len(x)) for x in ours] or isinstance(
            found[name], list
        ) != isinstance(own[name], list):
            raise DomainError(f"{name}: expected {sum(map(len, ours)):,} numbers in {len(ours)} parts")


class Ascent:
    """Epochs of dual ascent, from the dual point of the gold labels or from a state of one.

    bound: the largest D so far, 0 at the start; share: gap over distances at the last certificate; gaps: what they say
    after each epoch, not relative; value: the objective where it was evaluated last; values: epochs and objective where
    it was evaluated. hasty: L-BFGS is to go on as soon as it is as fast.
    """

    def __init__(
        self, core: Core, n_jobs: int, seed: int, resume: State | None = None, *, hasty: bool = False
    ) -> None:
        self.core, self.n_jobs, self.seed, self.hasty = core, n_jobs, seed, hasty
        self.values: list[list[float]] = []
        self.bound, self.share, self.gaps, self.value = 0.0, SHARE, list[float](), math.inf
        if resume is not None:
            self.bound, self.share, self.gaps = resume["bound"], resume["share"], list(resume["gaps"])
            self.value = resume.get("value", math.inf)
            self.values = list(resume.get("values", []))
            _check_like(resume, dict(zip(NAMES, core.state())))
            core.restore(*(resume[name] for name in NAMES))

    def state(self) -> State:
        """What to go on from, to the bit."""
        known = {
            "bound": self.bound,
            "share": self.share,
            "gaps": self.gaps[-1 - LOOK_BACK :],
            "value": self.value,
            "values": self.values[-1 - OVER :],
        }
        return {**known, **dict(zip(NAMES, self.core.state()))}

    def certify(self, distance: float) -> float:
        """P now; the bound is raised to D where that is larger.

        What was said after earlier epochs is said anew by the share found here, so that their fall is not mistaken.
        """
        primal, dual = self.core.certificate(self.n_jobs)
        self.bound = max(self.bound, dual)
        before = self.share
        self.share = (primal - self.bound) / distance if distance > 0.0 else SHARE
        self.gaps[:] = [gap * (self.share / before) for gap in self.gaps] if before > 0.0 else []
        return primal

    @property
    def is_flat(self) -> bool:
        """Whether L-BFGS, of which an evaluation costs about as much as an epoch, would be faster from here on.

        Its evaluations lower what is above the optimum by some 9 % each, over a long way (conll2000, from 13 % to 1e-3
        in 59, from 2 % in 34). Epochs of two parts do more down to 2 %, of five down to 4 %.
        """
        if not self.hasty or not self.values:
            return False
        epochs, value = self.values[-1]
        for then, before in reversed(self.values):
            if epochs - then >= OVER:
                return (before - value) * OVER < FLAT * value * (epochs - then)
        return False

    @property
    def is_at_the_end(self) -> bool:
        """Whether the gap is as small as float32 can show."""
        return relative_gap(self.value, self.bound) <= FINEST

    def step(self, value: float, *, keep: bool, exact: bool) -> Step:
        """Where the weights stand now; in place of the gradient's norm, which nobody computes, the relative gap."""
        gap, state = relative_gap(value, self.bound), self.state if keep else None
        step = Step(self.core.weights(), value, gap, self.core.epochs + 1, state)
        return replace(step, dual=self.bound, exact=exact, fresh=True)


@dataclass
class Point:
    """A dual point that training with one penalty leaves to training with the next, on the same data.

    w(q) = 1/(2 l2) sum_i s_i (F(y_i) - E_{q_i} F): the q of one l2 has the weights (l2 / l2') w at another. Distances
    and lengths of steps are found anew: those of the old penalty hold the ascent back (two and three times the passes).
    """

    of: str = ""  # a digest of the data
    l2: float = 0.0
    state: State | None = None

    def keep(self, of: str, l2: float, ascent: Ascent) -> None:
        """Take the point where an ascent stands."""
        self.of, self.l2, self.state = of, l2, ascent.state()

    def at(self, of: str, l2: float, core: Core) -> State | None:
        """The state to begin with at l2; None where there is no point of this data."""
        if self.state is None or self.of != of:
            return None
        fresh = dict(zip(NAMES, core.state()))
        moved = {"weights": (self.state["weights"] * (self.l2 / l2)).astype(np.float32)}
        kept = {name: self.state[name] for name in ("nodes", "pairs")}
        return {"bound": 0.0, "share": SHARE, "gaps": [], **fresh, **kept, **moved}


def steps(ascent: Ascent, tol: float, *, keep: bool = False, often: bool = False) -> Iterator[Step]:
    """The starting point, then a state for each one to four epochs; ends where L-BFGS should go on.

    That is: where float32 fails or is at its end, where the last epochs' rate needs too many more of them, or where
    they do less than L-BFGS would and the ascent is hasty.

    often: as many states far from the optimum as near it, for who chooses among them.
    """
    core, n_jobs, gaps, wanted = ascent.core, ascent.n_jobs, ascent.gaps, max(tol, FINEST)
    value, exact = core.primal(n_jobs), False
    if (
        relative_gap(value, ascent.bound) <= tol
    ):  # a state that was certified: single precision may not say so
        (value, _), exact = core.certificate(n_jobs), True
    if not math.isfinite(value):
        return
    if not math.isfinite(ascent.value):
        ascent.value = value
    yield ascent.step(value, keep=keep, exact=exact)
    while not (is_slow(gaps, wanted * ascent.value) or ascent.is_flat or ascent.is_at_the_end):
        before = gaps[-1] if gaps else math.inf
        is_far = before > FAR * wanted * ascent.value and not (often or ascent.hasty)
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
    """Whether the gap, at the rate of the last epochs, needs too many more of them."""
    if len(gaps) <= LOOK_BACK:
        return False
    before, now = gaps[-1 - LOOK_BACK], gaps[-1]
    rate = math.log(before / now) / LOOK_BACK if 0.0 < now < before else 0.0
    return rate * TOO_MANY <= math.log(max(now / wanted, 1.0))

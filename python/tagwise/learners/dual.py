"""Dual block ascent for the log loss with l2 > 0: weights that are certified to be within `tol` of the optimum.

    primal  P(w) = sum_i s_i loss_i(w) + l2 ||w||^2  >=  P*  >=  D(q) = sum_i s_i entropy(q_i) - l2 ||w(q)||^2

The epochs are native (`learners/dual` of the core has the algorithm). An epoch visits about six tenths of the sentences,
those farthest from their optimum more often than others; P and D at its end are the certificate: (P - D) / P bounds how
far the weights are from the optimum, whatever the optimum is.

It is fast where l2 is not small. Where its gap falls too slowly, where a sentence is beyond float32, and for gaps that
float32 cannot show, L-BFGS goes on from its weights.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import tagwise._core as _core
from tagwise.optimizers.base import State, Step

#: Smallest relative gap that sums in float32 can show.
FINEST = 2e-6
#: Epochs that the gap is measured over, and how many more of them are too many.
LOOK_BACK, TOO_MANY = 4, 60
#: A certificate costs a third of a pass: it is taken where the visits' own gaps, in units of `tol`, say it may be met.
WORTH = 3.0
#: ... and every so many epochs in any case.
AT_LEAST = 4

NAMES = ("weights", "nodes", "pairs", "blocks", "epochs")


class Ascent:
    """Epochs of dual ascent, from the dual point of the gold labels or from a state of one."""

    def __init__(self, core: _core.Dual, n_jobs: int, seed: int, resume: State | None = None) -> None:
        self.core, self.n_jobs, self.seed = core, n_jobs, seed
        if resume is not None:
            core.restore(*(resume[name] for name in NAMES))

    def state(self) -> State:
        """What to go on from, to the bit."""
        return dict(zip(NAMES, self.core.state()))

    def step(self, evaluations: int, *, keep: bool) -> Step:
        """Where the weights stand now."""
        primal, dual = self.core.certificate(self.n_jobs)
        return Step(
            self.core.weights(),
            primal,
            math.nan,
            evaluations,
            self.state if keep else None,
            dual=dual,
        )


def steps(ascent: Ascent, tol: float, *, keep: bool = False) -> Iterator[Step]:
    """The starting point, then a state an epoch, each with its certificate; ends where L-BFGS should go on.

    That is: where float32 fails or is at its end, or where the last epochs' rate needs too many more of them.
    """
    gaps: list[float] = []
    evaluations = 1
    first = ascent.step(evaluations, keep=keep)
    yield first
    while True:
        _, failed, _ = ascent.core.epoch(ascent.seed, ascent.n_jobs)
        evaluations += 1
        step = ascent.step(evaluations, keep=keep)
        if not math.isfinite(step.value):
            return
        yield step
        gaps.append(step.gap)
        if step.gap <= FINEST or failed:
            return
        if len(gaps) > LOOK_BACK:
            rate = math.log(gaps[-1 - LOOK_BACK] / gaps[-1]) / LOOK_BACK
            if rate <= 0.0 or math.log(gaps[-1] / max(tol, FINEST)) / rate > TOO_MANY:
                return

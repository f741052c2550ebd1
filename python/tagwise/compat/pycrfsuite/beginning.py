"""Where L-BFGS begins: at zero as CRFsuite does, or close to the optimum where a run ends there anyway.

A run that nobody cuts short (all that ends it at the defaults, no c1, no group held out) is about its optimum alone.
Dual ascent is there in a tenth of the passes; L-BFGS goes on from its weights, with the curvature of its last epochs,
until CRFsuite's own test ends it. A run that is told when to end keeps its path from zero: that is its result.
"""

from __future__ import annotations

from collections import deque

import tagwise._core as _core
from tagwise.compat.pycrfsuite.parameters import Parameters
from tagwise.learners import dual
from tagwise.learners.problem import WORTH_WARMING
from tagwise.optimizers.base import Vector

#: What the ascent is to certify; its objective is closer to the optimum than that, and L-BFGS brings it closer.
GAP = 3e-5
#: Epochs whose steps L-BFGS begins with as curvature pairs, at an evaluation each.
EPOCHS = 2
_ENDS = ("max_iterations", "epsilon", "period", "delta")


def runs_to_the_end(params: Parameters) -> bool:
    """Whether nothing but CRFsuite's own test ends a run of lbfgs."""
    known = Parameters("lbfgs")
    return params["c1"] == 0.0 and params["c2"] > 0.0 and all(params[name] == known[name] for name in _ENDS)


def near(data: _core.Dataset, layout: _core.Layout, c2: float) -> list[Vector]:
    """The last points of dual ascent, closer and closer to the optimum; none where L-BFGS begins at zero.

    That is where sentences are few, where the dual point is beyond the memory, and where a sentence is beyond float32.
    """
    if len(data) < WORTH_WARMING:
        return []
    try:
        ascent = dual.Ascent(_core.Dual(data, layout, c2), 0, 0)
    except MemoryError:
        return []
    last: deque[Vector] = deque(maxlen=EPOCHS + 1)
    for step in dual.steps(ascent, GAP):
        last.append(step.w)
        if step.gap <= GAP:
            break
    return list(last) if len(last) > EPOCHS else []


__all__ = ["near", "runs_to_the_end"]

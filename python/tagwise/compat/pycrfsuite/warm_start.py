"""Starting point of L-BFGS: zero as in CRFsuite, or close to the optimum for runs that converge anyway.

The result of a run with default stopping criteria, no c1 and no held-out group is its optimum. Dual ascent gets close
to it in a tenth of the passes. L-BFGS continues from its weights, with the curvature of its last epochs, until
CRFsuite's own test stops it. With other stopping criteria the result depends on the path, so these runs start at zero.
"""

from __future__ import annotations

from collections import deque

import tagwise._core as _core
from tagwise.compat.pycrfsuite.parameters import Parameters
from tagwise.learners import dual
from tagwise.learners.problem import WORTH_WARMING
from tagwise.optimizers.base import Vector

#: Certified gap at which the ascent stops. The objective is closer to the optimum than that, and L-BFGS improves it.
GAP = 3e-5
#: Number of last epochs whose steps are the first curvature pairs of L-BFGS, at one evaluation each.
EPOCHS = 2
_ENDS = ("max_iterations", "epsilon", "period", "delta")


def has_default_stopping(params: Parameters) -> bool:
    """Return whether a run of lbfgs has no c1 and CRFsuite's default stopping criteria."""
    defaults = Parameters("lbfgs")
    return (
        params["c1"] == 0.0 and params["c2"] > 0.0 and all(params[name] == defaults[name] for name in _ENDS)
    )


def ascent_points(data: _core.Dataset, layout: _core.Layout, c2: float) -> list[Vector]:
    """Return the last points of dual ascent, in order, or none if L-BFGS should start at zero.

    This is the case for few sentences, if the dual point does not fit into memory, and if the scores of a sentence
    exceed the range of float32.
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

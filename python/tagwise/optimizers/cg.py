"""Nonlinear conjugate gradient (Polak and Ribiere 1969, restarted if their beta is negative: Powell 1984)."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from tagwise._core import dot
from tagwise.base.domains import Domain, Flag, Numbers, Real, Record
from tagwise.optimizers.base import Evaluate, HostVectors, State, Step, Vector
from tagwise.optimizers.lbfgs import CURVATURE, MOST_IDLE, NOISE, SEARCH, LineSearch

#: Share of the slope that a search may leave. Directions are conjugate only if it is small.
EXACT = 0.1


def cg_domain(n: int) -> Domain:
    """Return the domain of the state of `conjugate_gradient` with n weights."""
    vectors = dict.fromkeys(("w", "gradient", "direction"), Numbers("f64", n))
    numbers = dict.fromkeys(("value", "square", "slope", "first"), Real())
    return Record({**vectors, **numbers, "fresh": Flag(), "search": SEARCH})


def conjugate_gradient(
    objective: Evaluate,
    w: Vector,
    *,
    n_jobs: int = 0,
    keep: bool = False,
    resume: State | None = None,
    noise: float = NOISE,
) -> Iterator[Step]:
    """Minimise from w. The iteration ends only if no step along the gradient decreases the objective.

    Args:
        objective: Value and gradient at a point.
        w: Start weights.
        n_jobs: Number of threads for vector arithmetic, 0 for all cores. Results do not depend on it.
        keep: Give each step its `state`.
        resume: State to resume from. The first step is the one of the state, and `w` is ignored.
        noise: Relative rounding error of a value.

    Yields:
        The starting point, then one step per iteration.
    """
    w = np.array(w, dtype=np.float64)
    gradient = np.empty_like(w)
    search = LineSearch(objective, w, HostVectors(n_jobs), curvature=EXACT, noise=noise)
    if resume is None:
        value = objective(w, gradient)
        search.evaluations += 1
        square = dot(gradient, gradient, n_jobs)
        direction = -gradient
        # Fresh: along the gradient, with a step that is independent of the last one.
        slope, fresh = -square, True
        step = min(1.0, 1.0 / math.sqrt(square)) if square else 1.0
    else:
        w[:], gradient[:], value = resume["w"], resume["gradient"], resume["value"]
        square, slope, fresh, step = (resume[name] for name in ("square", "slope", "fresh", "first"))
        direction = np.array(resume["direction"])
        search.restore(resume["search"])

    def state() -> State:
        vectors = {"w": w, "gradient": gradient, "direction": direction}
        numbers = {"value": value, "square": square, "slope": slope, "fresh": fresh, "first": step}
        return {**vectors, **numbers, "search": search.state()}

    kept = state if keep else None
    yield Step(w, value, math.sqrt(square), search.evaluations, kept)
    while square > 0.0 and search.idle < MOST_IDLE:
        found = search.run(w, value, direction, slope, step)
        if found is None:
            if fresh and not search.raise_noise(value):
                return
            np.negative(gradient, out=direction)
            slope, fresh, step = -square, True, min(1.0, 1.0 / math.sqrt(square))
            search.curvature = CURVATURE  # slopes are rounded too, and a restart need not be exact
            continue
        search.curvature = EXACT
        new_square = dot(search.gradient, search.gradient, n_jobs)
        beta = max(0.0, (new_square - dot(search.gradient, gradient, n_jobs)) / square)
        w, search.w = search.w, w
        gradient, search.gradient = search.gradient, gradient
        value, square = found, new_square
        taken, old_slope = search.step, slope
        direction *= beta
        direction -= gradient
        slope = dot(gradient, direction, n_jobs)
        if not slope < 0.0:
            np.negative(gradient, out=direction)
            slope = -square
        # The change of the last step, carried over to the new direction (Nocedal and Wright 2006, eq. 3.60).
        step, fresh = min(10.0 * taken, taken * old_slope / slope) if slope else taken, False
        yield Step(w, value, math.sqrt(square), search.evaluations, kept)

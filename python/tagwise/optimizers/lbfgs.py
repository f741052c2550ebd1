"""L-BFGS (Nocedal 1980; Liu and Nocedal 1989) with a strong Wolfe line search (Nocedal and Wright 2006, 3.5-3.6)."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tagwise.base.domains import Domain, Integer, Numbers, Real, Record
from tagwise.optimizers.base import Evaluate, HostVectors, State, Step, Vector, VectorSpace
from tagwise.optimizers.pairs import pairs_domain

SUFFICIENT = 1e-4  # decrease: f(a) <= f(0) + SUFFICIENT a f'(0)
CURVATURE = 0.9  # |f'(a)| <= CURVATURE |f'(0)|, smaller if directions must be conjugate
MOST_TRIALS = 25
#: Relative rounding error of values: assumed in single and in double precision, and the most that a search may assume.
NOISE, FINE_NOISE, MOST_NOISE = 1e-7, 1e-14, 1e-4
#: A search whose slope promises a smaller relative decrease is idle. After MOST_IDLE in a row the iteration ends.
IDLE, MOST_IDLE = 1e-11, 5


_SEARCHED = ("curvature", "noise", "lowest", "idle", "step", "evaluations")
#: Domain of `LineSearch.state`.
SEARCH: Domain = Record(
    {
        **{name: Real() for name in ("curvature", "noise", "step")},
        "lowest": Real(any_=True),
        "idle": Integer(0, 2**53),
        "evaluations": Integer(0, 2**53),
    }
)


def lbfgs_domain(n: int) -> Domain:
    """Return the domain of the state of `lbfgs` with n weights."""
    vector = Numbers("f64", n)
    return Record(
        {"w": vector, "gradient": vector, "value": Real(), "search": SEARCH, "pairs": pairs_domain(n)}
    )


class LineSearch:
    """Line search on phi(a) = f(w + a d), with the trial point and its gradient in two buffers.

    Values are rounded by an unknown amount: the exponential loss multiplies the rounding of scores by e^l. A difference
    below `noise` has no meaning. Slopes then decide, since they keep their digits when values have lost theirs. A
    failed search is repeated with more noise before the optimiser ends (`raise_noise`).
    """

    def __init__(
        self,
        objective: Evaluate,
        w: Any,
        vectors: VectorSpace,
        curvature: float = CURVATURE,
        noise: float = NOISE,
    ) -> None:
        self.objective = objective
        self.vectors = vectors
        self.curvature = curvature
        self.noise = noise
        # Lowest value so far, so that tolerated noise does not accumulate over searches.
        self.lowest = math.inf
        self.idle = 0  # number of idle searches in a row
        self.step = 0.0  # step of the last successful search
        self.w = vectors.like(w)
        self.gradient = vectors.like(w)
        self.evaluations = 0

    def state(self) -> State:
        """Return the state that the next search depends on, apart from its point."""
        return {name: getattr(self, name) for name in _SEARCHED}

    def restore(self, state: State) -> None:
        """Resume from a state."""
        for name in _SEARCHED:
            setattr(self, name, state[name])

    def raise_noise(self, value: float) -> bool:
        """Multiply the assumed noise by ten. Return False if the value is 0 or the noise exceeds its limit."""
        self.noise *= 10.0
        return value != 0.0 and self.noise <= MOST_NOISE * (1.0 + 1e-9)

    def at(self, w: Any, direction: Any, step: float) -> tuple[float, float]:
        """Return value and slope at a step. NaN counts as infinitely high."""
        self.vectors.add_scaled(w, step, direction, self.w)
        self.evaluations += 1
        value = self.objective(self.w, self.gradient)
        if not math.isfinite(value):
            return math.inf, math.inf
        return value, self.vectors.dot(self.gradient, direction)

    def run(self, w: Any, value: float, direction: Any, slope: float, first: float) -> float | None:
        """Return the value at a step that satisfies the strong Wolfe conditions, or None if none is found.

        The search brackets a step and then zooms by cubic interpolation. If rounding hides the decrease (late in
        training), a step that satisfies the approximate Wolfe conditions is accepted (Hager and Zhang 2005, eq. 4.1).
        Of points that are equal up to rounding, the slopes determine the end of the bracket (their U1 and U2). So a
        first step whose decrease is below the rounding is made longer, not shorter.
        """
        noise = self.noise * abs(value)
        self.lowest = min(self.lowest, value)
        ceiling = min(value, self.lowest + noise) + noise
        low, low_value, low_slope = 0.0, value, slope
        high = math.inf
        high_value = high_slope = math.inf
        step = first
        for _ in range(MOST_TRIALS):
            here, here_slope = self.at(w, direction, step)
            decreased = here <= value + SUFFICIENT * step * slope
            flat = abs(here_slope) <= -self.curvature * slope
            almost = here <= ceiling and (2 * SUFFICIENT - 1) * slope >= here_slope >= self.curvature * slope
            if (decreased and flat) or almost:
                self.step = step
                self.idle = self.idle + 1 if -slope * step <= IDLE * abs(value) else 0
                return here
            if here <= ceiling and abs(here - low_value) <= noise:
                # Equal up to rounding: replace the end whose slope has the same sign.
                if here_slope * low_slope > 0.0:
                    low, low_value, low_slope = step, here, here_slope
                else:
                    high, high_value, high_slope = step, here, here_slope
            elif not decreased or (here >= low_value and low > 0.0):
                high, high_value, high_slope = step, here, here_slope
            elif here_slope >= 0.0:
                high, high_value, high_slope = low, low_value, low_slope
                low, low_value, low_slope = step, here, here_slope
            else:
                low, low_value, low_slope = step, here, here_slope
            if math.isinf(high):
                step *= 4.0
                continue
            if abs(high - low) * -slope <= 1e-16 * max(1.0, abs(value)):
                break
            step = _between(low, low_value, low_slope, high, high_value, high_slope, noise)
        return None


def _between(a: float, fa: float, ga: float, b: float, fb: float, gb: float, noise: float = 0.0) -> float:
    """Return the minimiser of the cubic through two values and slopes, away from the ends, or the middle without one.

    If the slopes promise no more than noise between the ends, the parabola of the slopes is used.
    """
    middle = 0.5 * (a + b)
    if not (math.isfinite(fb) and math.isfinite(gb)):
        return a + 0.1 * (b - a)
    if abs(b - a) * max(abs(ga), abs(gb)) <= 10.0 * noise and ga * gb < 0.0:
        step = a + (b - a) * ga / (ga - gb)
    else:
        d1 = ga + gb - 3.0 * (fa - fb) / (a - b)
        square = d1 * d1 - ga * gb
        if square < 0.0:
            return middle
        d2 = math.copysign(math.sqrt(square), b - a)
        below = gb - ga + 2.0 * d2
        if below == 0.0:
            return middle
        step = b - (b - a) * (gb + d2 - d1) / below
    margin = 0.1 * abs(b - a)
    inside = min(a, b) + margin <= step <= max(a, b) - margin
    return step if inside else middle


def state_from_points(objective: Evaluate, points: Sequence[Vector]) -> State:
    """Return a state for `lbfgs` at the last of these points, with the steps between them as curvature pairs.

    Weights of another optimiser have no curvature. The first search would need ten trials to find a step length, and
    the next directions would be poor. The gradients of the last points cost less.
    """
    gradients = [np.empty(len(w)) for w in points]
    values = [objective(w, gradient) for w, gradient in zip(points, gradients)]
    search = dict(zip(_SEARCHED, (CURVATURE, NOISE, math.inf, 0, 0.0, len(points))))

    def change(arrays: Sequence[Vector], k: int) -> NDArray[np.float32]:
        found: NDArray[np.float32] = (arrays[k] - arrays[k - 1]).astype(np.float32)
        return found

    return {
        "w": points[-1],
        "gradient": gradients[-1],
        "value": values[-1],
        "search": search,
        "pairs": [[change(points, k), change(gradients, k)] for k in range(1, len(points))],
    }


def lbfgs(
    objective: Evaluate,
    w: Vector,
    *,
    memory: int = 6,
    n_jobs: int = 0,
    scale: NDArray[np.float32] | None = None,
    keep: bool = False,
    resume: State | None = None,
    vectors: VectorSpace | None = None,
    noise: float = NOISE,
) -> Iterator[Step]:
    """Minimise from w. The iteration ends only if no step decreases the objective, which is a minimum up to rounding.

    Args:
        objective: Value and gradient at a point.
        w: Start weights.
        memory: Number of curvature pairs.
        n_jobs: Number of threads for vector arithmetic, 0 for all cores. Results do not depend on it.
        scale: d, small if the curvature is large. Directions are those of the variables w / d.
        keep: Give each step its `state`.
        resume: State to resume from. The first step is the one of the state, and `w` is ignored.
        vectors: Storage of the vectors that the objective is called with. The default is NumPy with the core.
        noise: Relative rounding error of a value.

    Yields:
        The starting point, then one step per iteration.
    """
    on = HostVectors(n_jobs) if vectors is None else vectors
    w = on.held(w)
    gradient, direction = on.like(w), on.like(w)
    search = LineSearch(objective, w, on, noise=noise)
    pairs = on.pairs(memory, scale, keep=keep)
    if resume is None:
        value = objective(w, gradient)
        search.evaluations += 1
    else:
        w, gradient, value = on.held(resume["w"]), on.held(resume["gradient"]), resume["value"]
        search.restore(resume["search"])
        pairs.restore(resume["pairs"])
    norm = math.sqrt(on.dot(gradient, gradient))

    def state() -> State:
        found = {"w": on.host(w).copy(), "gradient": on.host(gradient).copy(), "value": value}
        return {**found, "search": search.state(), "pairs": pairs.state()}

    def smallest_gradient() -> tuple[Vector, float]:
        found: tuple[Vector, float] = pairs.smallest_gradient(w, gradient, norm)
        return found

    kept = state if keep else None
    start = Step(on.host(w), value, norm, search.evaluations, kept)
    yield (
        replace(start, smallest_gradient=smallest_gradient)
        if len(pairs) and isinstance(on, HostVectors)
        else start
    )
    while norm > 0.0 and search.idle < MOST_IDLE:
        slope = pairs.direction(gradient, direction)
        if not slope < 0.0:
            pairs.clear()
            slope = pairs.direction(gradient, direction)
        first = 1.0 if len(pairs) else min(1.0, 1.0 / norm)
        found = search.run(w, value, direction, slope, first)
        if found is None:
            if len(pairs) == 0 and not search.raise_noise(value):
                return
            pairs.clear()  # stale curvature: retry along the gradient
            continue
        pairs.push(w, search.w, gradient, search.gradient)
        w, search.w = search.w, w
        gradient, search.gradient = search.gradient, gradient
        value, norm = found, math.sqrt(on.dot(gradient, gradient))
        step = Step(on.host(w), value, norm, search.evaluations, kept, search.step)
        yield replace(step, smallest_gradient=smallest_gradient) if isinstance(on, HostVectors) else step

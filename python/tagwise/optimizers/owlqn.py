"""OWL-QN (Andrew and Gao 2007): L-BFGS for f(w) + c ||w||_1, one orthant at a time."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from tagwise._core import dot
from tagwise.base.domains import Domain, Integer, Numbers, Real, Record
from tagwise.optimizers.base import Evaluate, State, Step, Vector
from tagwise.optimizers.lbfgs import NOISE, SUFFICIENT
from tagwise.optimizers.pairs import Pairs, pairs_domain

#: Maximum change of a weight by a first trial.
LONGEST = 16.0


def owlqn_domain(n: int) -> Domain:
    """Return the domain of the state of `owlqn` with n weights."""
    vector, number = Numbers("f64", n), Real()
    return Record(
        {
            "w": vector,
            "gradient": vector,
            "value": number,
            "lowest": number,
            "evaluations": Integer(0, 2**53),
            "pairs": pairs_domain(n),
        }
    )


def pseudo_gradient(w: Vector, gradient: Vector, l1: float) -> Vector:
    """Return the element of the subdifferential of f + l1 ||.||_1 nearest to zero (Andrew and Gao 2007, eq. 4)."""
    signed = gradient + l1 * np.sign(w)
    at_zero = np.sign(gradient) * np.maximum(np.abs(gradient) - l1, 0.0)
    return np.where(w == 0.0, at_zero, signed)


def owlqn(
    objective: Evaluate,
    w: Vector,
    *,
    l1: float,
    memory: int = 6,
    n_jobs: int = 0,
    keep: bool = False,
    resume: State | None = None,
    noise: float = NOISE,
) -> Iterator[Step]:
    """Minimise objective(w) + l1 ||w||_1 from w. The values and norms of steps include the penalty.

    Args:
        objective: Value and gradient of the smooth part.
        w: Start weights.
        l1: Strength of the penalty.
        memory: Number of curvature pairs.
        n_jobs: Number of threads for vector arithmetic, 0 for all cores. Results do not depend on it.
        keep: Give each step its `state`.
        resume: State to resume from. The first step is the one of the state, and `w` is ignored.
        noise: Relative rounding error of a value.

    Yields:
        The starting point, then one step per iteration.
    """
    w = np.array(w, dtype=np.float64)
    gradient, trial_gradient, direction = np.empty_like(w), np.empty_like(w), np.empty_like(w)
    pairs = Pairs(memory, n_jobs, keep=keep)
    if resume is None:
        value = objective(w, gradient) + l1 * float(np.abs(w).sum())
        evaluations, lowest = 1, value
    else:
        w[:], gradient[:], value = resume["w"], resume["gradient"], resume["value"]
        evaluations, lowest = resume["evaluations"], resume["lowest"]
        pairs.restore(resume["pairs"])
    pseudo = pseudo_gradient(w, gradient, l1)
    norm = math.sqrt(dot(pseudo, pseudo, n_jobs))

    def state() -> State:
        found = {"w": w, "gradient": gradient, "value": value, "evaluations": evaluations, "lowest": lowest}
        return {**found, "pairs": pairs.state()}

    kept = state if keep else None
    yield Step(w, value, norm, evaluations, kept)
    while norm > 0.0:
        pairs.direction(pseudo, direction)
        direction[direction * pseudo >= 0.0] = 0.0  # stay a descent direction in every coordinate
        if not dot(pseudo, direction, n_jobs) < 0.0:
            pairs.clear()
            np.negative(pseudo, out=direction)
        orthant = np.where(w != 0.0, np.sign(w), -np.sign(pseudo))
        step = 1.0 if len(pairs) else min(1.0, 1.0 / norm)
        # Without an L2 penalty, early curvatures can be almost 0 and suggest huge steps.
        step = min(step, LONGEST / float(np.abs(direction).max()))
        accepted = False
        for _ in range(40):
            trial = w + step * direction
            trial[trial * orthant < 0.0] = 0.0  # a coordinate that leaves its orthant stops at zero
            evaluations += 1
            trial_value = objective(trial, trial_gradient) + l1 * float(np.abs(trial).sum())
            # Armijo along the projected step. If rounding hides the decrease, the slope at its end decides:
            # sufficiently short steps do not climb (Hager and Zhang 2005, eq. 4.1).
            moved = trial - w
            promised = dot(pseudo, moved, n_jobs)
            if math.isfinite(trial_value) and trial_value <= value + SUFFICIENT * promised:
                accepted = True
                break
            level = trial_value <= min(value, lowest + noise * abs(value)) + noise * abs(value)
            if level and dot(trial_gradient + l1 * orthant, moved, n_jobs) <= (2 * SUFFICIENT - 1) * promised:
                accepted = True
                break
            step *= 0.5
        if not accepted or np.array_equal(trial, w):
            if len(pairs) == 0:
                return
            pairs.clear()
            continue
        pairs.push(w, trial, gradient, trial_gradient)
        w, value, lowest = trial, trial_value, min(lowest, trial_value)
        gradient, trial_gradient = trial_gradient, gradient
        pseudo = pseudo_gradient(w, gradient, l1)
        norm = math.sqrt(dot(pseudo, pseudo, n_jobs))
        yield Step(w, value, norm, evaluations, kept, step)

"""Batch learners, which minimise a penalised loss over the whole training set.

    minimise  sum_i w_i loss(x_i, y_i) + l2 ||w||^2 + l1 ||w||_1 + prior ||w - w_0||^2

With a prior, w_0 are the start weights. The penalties are added to the sum over sentences, not to the mean: l2 and l1
are c2 and c1 of CRFsuite.

Evaluations are in single precision until it cannot resolve steps (`refined`), then in double precision. The objective
of the result is that of the weights rounded to single precision, as models store them, to a tenth of `tol`.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

import tagwise._core as _core
from tagwise.base.domains import AnyOf, Domain, Flag, Integer, ListOf, Real, Record
from tagwise.base.exceptions import ParameterError, TrainingError
from tagwise.learners import dual, stochastic
from tagwise.learners.backends import Backend, current, exponential
from tagwise.learners.checkpoint import Checkpointer
from tagwise.learners.loop import Callback, Result, Stopping, run
from tagwise.learners.problem import Problem
from tagwise.optimizers import OPTIMIZERS, Optimizer, State, Step
from tagwise.optimizers.base import HostVectors, VectorSpace, relative_gap
from tagwise.optimizers.lbfgs import FINE_NOISE, NOISE
from tagwise.scores.protocols import Objective, Precise, Vector

#: Number of stochastic epochs before L-BFGS.
WARMUP = 6
#: Number of tokens from which on a sum in double precision is skipped if it changes nothing.
LARGE = 30_000
#: A certificate is tried when the estimated gap is below NEAR times `tol`, and again when it has halved. The estimate
#: is computed if the gradient itself bounds the gap by REACH times `tol`.
NEAR, REACH = 0.8, 1000.0
#: Single precision is left before a certificate if the last SLOW_STEPS steps gain less than SLOW times `tol`: rounding
#: errors of the gradient are then larger than a certificate allows.
SLOW, SLOW_STEPS = 0.03, 10
#: Relative rounding error of sums in double precision, subtracted from lower bounds.
ROUNDING64 = 1e-11
#: Largest l_i at which the exponential loss replaces its logarithm, and above which it cannot.
IN_RANGE, BEYOND = 20.0, 600.0


def choose_optimizer(name: str, l1: float, no_dual: str | None = "") -> Optimizer:
    """Return the optimiser of that name, or the default for "auto". Raise a ParameterError for a mismatch.

    `no_dual` is the reason why dual ascent is not possible, or None if it is.
    """
    if name == "auto":
        return OPTIMIZERS["owlqn" if l1 > 0.0 else "lbfgs" if no_dual is not None else "dual"]
    if name == "dual" and no_dual is not None:
        raise ParameterError(f"optimizer='dual' does not support {no_dual}. Use optimizer='auto' or 'lbfgs'")
    optimizer = OPTIMIZERS[name]
    if l1 > 0.0 and not optimizer.l1:
        supported = " or ".join(repr(o.name) for o in OPTIMIZERS.values() if o.l1)
        raise ParameterError(
            f"optimizer={name!r} does not support l1={l1:g}. Use optimizer={supported}, or l1=0"
        )
    return optimizer


@dataclass(frozen=True)
class Prior:
    """Gaussian prior around weights w_0: strength ||w - w_0||^2 with strength = 1 / (2 sigma^2)."""

    center: Vector
    strength: float

    def add(self, w: Any, gradient: Any, vectors: VectorSpace) -> float:
        """Return the value at w, and add the derivative 2 strength (w - w_0) to the gradient."""
        off = vectors.like(w)
        vectors.add_scaled(w, -1.0, vectors.held(self.center), off)
        return vectors.add_ridge(off, self.strength, gradient)


class Evaluation:
    """Loss of the training set plus l2 ||w||^2 and a prior, as a function for optimisers.

    `log_domain` replaces the exponential loss by log sum_i w_i e^{l_i}. `largest` is the largest l_i + log w_i at the
    last point, or the largest -log p of a token. `precise` evaluates in double precision.
    """

    def __init__(
        self,
        objective: Objective,
        l2: float,
        n_jobs: int,
        prior: Prior | None = None,
        vectors: VectorSpace | None = None,
        *,
        precise: bool = False,
    ) -> None:
        self.objective = objective
        self.precise = precise
        self.l2 = l2
        self.prior = prior
        self.n_jobs = n_jobs
        self.vectors = HostVectors(n_jobs) if vectors is None else vectors
        self.log_domain = False
        self.largest = math.inf

    def __call__(self, w: Any, gradient: Any) -> float:
        if self.precise:
            assert isinstance(self.objective, Precise)
            evaluate = self.objective.precise_value
        else:
            evaluate = exponential(self.objective).log_value if self.log_domain else self.objective.value
        value, self.largest = evaluate(w, gradient, self.n_jobs)
        if self.l2:
            value += self.vectors.add_ridge(w, self.l2, gradient)
        return value + self.prior.add(w, gradient, self.vectors) if self.prior else value


def into_range(
    evaluate: Evaluation, states: Callable[[Vector], Iterator[Step]], start: Vector, max_iter: int
) -> tuple[Vector, int]:
    """Return weights at which the exponential loss of every sentence is of a workable size, and the iterations used.

    At zero weights l_i = T log L, and e^l overflows for a hundred tokens. log sum_i w_i e^{l_i} has the same minima
    without the penalty and grows only like l, so it is minimised first, until the largest l_i is small. The penalty is
    left out meanwhile, because it would outweigh a logarithm and keep long sentences out of range.
    """
    l2, prior = evaluate.l2, evaluate.prior
    evaluate.log_domain, evaluate.l2, evaluate.prior = True, 0.0, None
    try:
        for iteration, state in enumerate(states(start)):
            start = state.w
            if evaluate.largest <= IN_RANGE:
                return start.copy(), iteration
            if iteration >= max_iter:
                break
    finally:
        evaluate.log_domain, evaluate.l2, evaluate.prior = False, l2, prior
    if evaluate.largest > BEYOND:
        raise TrainingError(
            f"the exponential loss stays out of range: a sentence has log loss {evaluate.largest:.0f}. "
            "Give long sentences less weight with pi < 1, cut them with max_length=..., or regularise less"
        )
    return start.copy(), iteration


def train(
    problem: Problem,
    start: Vector,
    stopping: Stopping,
    *,
    optimizer: str = "auto",
    l1: float = 0.0,
    l2: float = 0.0,
    prior: Prior | None = None,
    n_jobs: int = 0,
    seed: int = 0,
    dev_score: Callable[[Vector], float] | None = None,
    callbacks: Iterable[Callback] = (),
    checkpointer: Checkpointer | None = None,
    point: dual.DualPoint | None = None,
) -> Result:
    """Minimise the penalised loss from `start`.

    "auto" is dual ascent from the dual point of the gold labels, if it is possible and the corpus is large enough.
    L-BFGS continues if that is slow or not exact enough. Otherwise, without l1, training starts with a few stochastic
    epochs, if `start` is zero and the corpus is large enough, and continues with L-BFGS in scaled variables. A run that
    `checkpointer` resumes continues after those epochs. Dual ascent starts at `point` if that is of the same data, and
    stores its own point there if it is close enough. Without a point, start weights lead to L-BFGS.
    """
    start = np.asarray(start, dtype=np.float64)
    n, backend = len(problem.data), current()
    other_start = start.any() and (point is None or point.state is None or point.digest != problem.digest)
    no_dual = "other weights to start from, or a prior" if other_start or prior else problem.why_no_dual(l2)
    no_dual = no_dual if backend.descends else f"backend {backend.name!r}"
    if optimizer == "auto" and not problem.large:
        no_dual = "few sentences"  # L-BFGS is as fast, and does not depend on a random order
    if optimizer == "auto" and problem.many_labels:
        no_dual = "that number of labels"  # a visit takes all pairs of labels, a pass only the seen ones
    chosen = choose_optimizer(optimizer, l1, no_dual)
    found = None if checkpointer is None else checkpointer.learner(_state_domain(chosen, len(start)))
    known: State | None = None if found is None else found["optimizer"]
    options: dict[str, Any] = {"dev_score": dev_score, "callbacks": callbacks, "checkpointer": checkpointer}
    keep = checkpointer is not None
    if chosen.name == "sgd":
        if prior is not None:
            raise ParameterError("optimizer='sgd' does not support a prior. Use optimizer='lbfgs'")
        if not backend.descends:
            raise ParameterError(
                f"backend {backend.name!r} does not support stochastic descent. Use optimizer='lbfgs'"
            )
        evaluate = Evaluation(problem.objective(backend), l2, n_jobs)
        descent = stochastic.Descent(problem.descent(), start, l2, n, seed, known)
        result = run(_kept(stochastic.sgd(evaluate, descent, keep=keep), 0), stopping, **options)
        return valued(problem, result, stopping.tol, l1, l2, prior, n_jobs)
    if chosen.name == "dual":
        frequent_steps = dev_score is not None
        ascending = _certified(
            problem,
            backend,
            l2,
            stopping.tol,
            n_jobs,
            seed,
            known,
            keep,
            point,
            frequent_steps=frequent_steps,
            restoring=None if checkpointer is None else checkpointer.restoring,
        )
        return valued(
            problem, run(_kept(ascending, 0), stopping, **options), stopping.tol, l1, l2, prior, n_jobs
        )
    extra: dict[str, Any] = {"l1": l1} if chosen.l1 else {}
    warm = 0
    if optimizer == "auto" and not chosen.l1 and problem.order is None:
        extra["scale"] = problem.scale()
        cold = found is None and not start.any() and prior is None and stopping.max_iter > WARMUP
        if cold and backend.descends and problem.warms_up:
            warm = WARMUP
    with ThreadPoolExecutor(1) as other:
        # Prepare the objective in a second thread during the warm-up.
        ready = other.submit(problem.objective, backend) if n_jobs != 1 else None
        if warm:
            # Always on the log loss: the pointwise losses are not convex, and their own steps lead to poor minima. The
            # exponential losses start out of range.
            descent = stochastic.Descent(problem.descent("log"), start, l2, n, seed)
            for _ in range(warm):
                start = descent.epoch()
            del descent  # frees its copy of the training set
        vectors = backend.vectors(n_jobs) if chosen.name == "lbfgs" else None
        objective = ready.result() if ready else problem.objective(backend)
        evaluate = Evaluation(objective, l2, n_jobs, prior, vectors)

    def states(w: Vector, on: Evaluation = evaluate, **more: Any) -> Iterator[Step]:
        if vectors is not None:
            more["vectors"] = on.vectors  # on the GPU, or on the host in double precision
        return chosen.run(on, w, n_jobs=n_jobs, **extra, **more)

    if found is not None:
        warm = found["warmup"]
    elif problem.loss in _core.EXPONENTIAL_LOSSES:
        start, warm = into_range(evaluate, states, start, stopping.max_iter)
    convexity = (l2 + (prior.strength if prior else 0.0)) if problem.is_convex and not l1 else 0.0
    bound = (
        0.0 if convexity and chosen.name == "lbfgs" and isinstance(evaluate.vectors, HostVectors) else None
    )
    steps = refined(
        problem,
        evaluate,
        states,
        start,
        stopping.tol,
        keep=keep,
        resume=known,
        bound=bound,
        convexity=convexity,
    )
    result = run(_kept(steps, warm), stopping, **options)
    result.warmup = warm
    return valued(problem, result, stopping.tol, l1, l2, prior, n_jobs)


def valued(
    problem: Problem, result: Result, tol: float, l1: float, l2: float, prior: Prior | None, n_jobs: int
) -> Result:
    """Return the result with the objective of its weights in single precision, as a model stores them.

    It is summed in double precision, which costs as much as several evaluations. It is skipped for a large corpus if
    rounding in single precision is less than a tenth of `tol`.
    """
    rounds = problem.rounding(result.objective) > 0.1 * tol * abs(result.objective)
    if not result.exact and (rounds or problem.data.n_tokens < LARGE):
        w: Vector = result.weights.astype(np.float32).astype(np.float64)
        value = problem.total_loss(w, n_jobs) + l2 * _core.dot(w, w, n_jobs) + l1 * float(np.abs(w).sum())
        if prior is not None:
            value += prior.add(w, np.zeros_like(w), HostVectors(n_jobs))
        result.objective, result.exact = value, True
        for entry in result.history:
            if entry["iteration"] == result.best_iteration:
                entry["objective"] = value
                if "dual" in entry:
                    entry["gap"] = relative_gap(value, entry["dual"])
    return result


def _state_domain(optimizer: Optimizer, n: int) -> Domain:
    """Return the domain of the state of an optimiser with n weights. L-BFGS may have continued dual ascent."""
    if optimizer.name == "dual":
        domain: Domain = AnyOf((_refined_domain(OPTIMIZERS["lbfgs"], n), dual.DUAL))
    else:
        domain = stochastic.sgd_domain(n) if optimizer.name == "sgd" else _refined_domain(optimizer, n)
    return Record({"optimizer": domain, "warmup": Integer(0, 2**53)})


def _refined_domain(optimizer: Optimizer, n: int) -> Domain:
    """Return the domain of the state of `refined`."""
    bound = Real(optional=True)
    return Record(
        {
            "run": optimizer.domain(n),
            "precise": Flag(),
            "recent": ListOf(Real(any_=True), high=SLOW_STEPS),
            "bound": bound,
            "threshold": Real(0.0),
        }
    )


def refined(
    problem: Problem,
    evaluate: Evaluation,
    states: Callable[..., Iterator[Step]],
    start: Vector,
    tol: float,
    *,
    keep: bool = False,
    resume: State | None = None,
    bound: float | None = None,
    convexity: float = 0.0,
) -> Iterator[Step]:
    """Yield the steps of an optimiser from `start`, in double precision after single precision reaches its limit.

    This is the case if the optimiser finds no further step, if a step gains less than rounding may hide and `tol` is
    too small to ignore it, or if steps have become slow without a certificate. The optimiser then starts again at the
    same weights.

    Near the optimum a step is replaced by one with a certificate. P - c ||w||^2 is convex, with c = `convexity`, so
    that P(w) - P* <= ||grad P(w)||^2 / (4 c) for all w. The curvature pairs of L-BFGS give weights near the iterate
    whose gradient is much smaller (`Pairs.smallest_gradient`). P and its gradient are evaluated there in double
    precision.

    `states` returns the steps of the optimiser from weights, for an evaluation and its noise. `bound` is a known lower
    bound of the optimum, None if there are no certificates. A state has the state of the optimiser as `run`, and the
    `recent` values before it.
    """
    recent: list[float] = []
    known = None
    threshold = NEAR * tol  # estimate of the gap at which the next certificate is tried
    if resume is not None:
        recent, bound, known = resume["recent"], resume["bound"], resume["run"]
        threshold = resume["threshold"]

    def in_double_precision() -> Evaluation:
        objective = problem.precise(evaluate.objective)
        return Evaluation(objective, evaluate.l2, evaluate.n_jobs, evaluate.prior, precise=True)

    def certified(step: Step) -> Step:
        """Return the step, or one near it with a certificate of `tol`."""
        nonlocal bound, threshold
        scale, norm = 4.0 * convexity * abs(step.value), step.gradient_norm
        if (
            bound is None
            or step.smallest_gradient is None
            or norm is None
            or not norm**2 <= REACH * tol * scale
        ):
            return step
        w, square = step.smallest_gradient()
        if not square <= threshold * scale:
            return step
        w = w.astype(np.float32).astype(np.float64)
        gradient = np.empty_like(w)
        value = in_double_precision()(w, gradient)
        square = _core.dot(gradient, gradient, evaluate.n_jobs)
        lower = value - square / (4.0 * convexity) - ROUNDING64 * abs(value)
        bound, threshold = max(bound, lower) if math.isfinite(lower) else bound, 0.5 * threshold
        if not 0.0 <= relative_gap(value, bound) <= tol:
            return step
        return replace(step, w=w, value=value, gradient_norm=math.sqrt(square), exact=True)

    def kept(step: Step, precise: bool) -> Step:
        state = step.state
        noted = {"precise": precise, "recent": recent, "bound": bound, "threshold": threshold}
        step = replace(certified(step), dual=bound)
        return step if state is None else replace(step, state=lambda: {"run": state(), **noted})

    fresh = resume is None or not resume["precise"]
    if fresh:
        for step in states(start, evaluate, keep=keep, resume=known, noise=NOISE):
            yield kept(step, False)
            start, noise = step.w, problem.rounding(step.value)
            wanted = tol * abs(step.value)
            if recent and recent[-1] - step.value <= noise and 2.0 * noise > wanted:
                break
            if bound is not None and len(recent) == SLOW_STEPS and recent[0] - step.value <= SLOW * wanted:
                break
            recent = [*recent[1 - SLOW_STEPS :], step.value]
        start, known = np.array(start), None
    steps = states(start, in_double_precision(), keep=keep, resume=known, noise=FINE_NOISE)
    if fresh:
        next(steps, None)  # skip the point where single precision ended
    for step in steps:
        yield kept(replace(step, fresh=fresh), True)
        fresh = False


def _certified(
    problem: Problem,
    backend: Backend,
    l2: float,
    tol: float,
    n_jobs: int,
    seed: int,
    known: State | None,
    keep: bool,
    point: dual.DualPoint | None,
    *,
    frequent_steps: bool,
    restoring: Callable[[], contextlib.AbstractContextManager[None]] | None = None,
) -> Iterator[Step]:
    """Yield the steps of dual ascent, then those of L-BFGS from its weights if it has to continue."""
    step: Step | None = None
    bound: float | None = None
    if known is None or "epochs" in known:
        of = "" if point is None else problem.digest
        with problem.ascending(l2) as core:
            if point is not None and known is None:
                known = point.at(of, l2, core)
            with contextlib.nullcontext() if restoring is None else restoring():
                ascent = dual.Ascent(core, n_jobs, seed, known, switches_early=problem.switches_early)
            if point is not None:
                point.state = None
            for step in dual.steps(ascent, tol, keep=keep, frequent_steps=frequent_steps):
                if point is not None and step.gap <= tol:
                    point.keep(of, l2, ascent)
                yield step
        known, bound = None, ascent.bound
        del ascent, core  # frees their copy of the training set
    start = np.zeros(len(problem.layout)) if step is None else step.w
    scale = problem.scale()

    def states(w: Vector, on: Evaluation, **more: Any) -> Iterator[Step]:
        return OPTIMIZERS["lbfgs"].run(on, w, n_jobs=n_jobs, scale=scale, **more)

    evaluate = Evaluation(problem.objective(backend), l2, n_jobs)
    rest = refined(problem, evaluate, states, start, tol, keep=keep, resume=known, bound=bound, convexity=l2)
    if step is not None:
        next(rest, None)  # skip the point where the ascent ended
    yield from rest


def _kept(states: Iterator[Step], warm: int) -> Iterator[Step]:
    """Yield the steps of an optimiser, with the number of warm-up iterations in their states."""
    for step in states:
        yield step if step.state is None else replace(step, state=_with_warmup(step.state, warm))


def _with_warmup(state: Callable[[], State], warm: int) -> Callable[[], State]:
    return lambda: {"optimizer": state(), "warmup": warm}

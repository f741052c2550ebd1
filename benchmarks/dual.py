"""Dual ascent compared with L-BFGS: passes over the tokens and seconds to gaps, certified or not, on five corpora.

An evaluation of the objective is one pass, and so is an epoch of stochastic descent. Epochs of dual ascent count the
tokens visited, and a certificate counts as the passes that fit into its time. The optimum is the lowest objective of
all methods. The seconds include preparation but not encoding. Curves of one workload are drawn for the pages.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

import tagwise as tw
from tagwise.learners import dual, gradient, stochastic
from tagwise.learners.problem import Problem, curvature_scale
from tagwise.optimizers import OPTIMIZERS

from .harness import Context, Result
from .losses import Encoded

GOALS = (1e-2, 1e-3, 1e-4, 1e-5)
LAST, MOST = 1e-5, 400
CERTIFIED = (1e-4, 1e-5)
#: Workload and l2 of the pictures.
DRAWN = ("chunk", 1.0)
METHODS = ("lbfgs", "descent, lbfgs", "dual")


class Point(NamedTuple):
    """State of a method."""

    passes: float
    seconds: float
    value: float
    gap: float = math.inf  # certified


class Tokens(NamedTuple):
    """Corpus with the `default` features of tagwise."""

    data: Any
    layout: Any


def cases(context: Context) -> Iterator[tuple[str, Any]]:
    """Yield the workloads and two bundled corpora."""
    for name in context.workloads:
        yield name, Encoded(name)
    for name in () if context.quick else ("ewt-pos", "wnut17-ner"):
        found: list[Problem] = []

        class Caught(Exception):
            """Raised instead of training."""

        def catch(problem: Problem, *_: Any, found: list[Problem] = found, **__: Any) -> None:
            found.append(problem)
            raise Caught

        train, gradient.train = gradient.train, catch  # type: ignore[assignment]
        try:
            tw.CRF().fit(tw.load_corpus(name)[0])
        except Caught:
            pass
        finally:
            gradient.train = train
        yield name, Tokens(found[0].data, found[0].layout)


def points(method: str, case: Any, l2: float, threads: int) -> Iterator[Point]:
    """Yield the states of a method."""
    begin = time.perf_counter()
    problem = Problem(case.data, case.layout)
    if method == "dual":
        core = problem.dual(l2)
        ascent, tokens, passes, reached = dual.Ascent(core, threads, 0), case.data.n_tokens, 0.0, math.inf
        while True:
            start = time.perf_counter()
            seen, _, distance = core.epoch(0, threads)
            passes += seen / tokens
            a_pass = (time.perf_counter() - start) * tokens / seen
            value, gap = core.primal(threads), math.inf
            wanted = next((goal for goal in CERTIFIED if goal < reached), LAST)
            if ascent.share * distance <= dual.NEAR * wanted * value:
                start = time.perf_counter()
                value = ascent.certify(distance)
                passes += (time.perf_counter() - start) / a_pass
                gap = (value - ascent.bound) / value
                reached = min(reached, gap)
            yield Point(passes, time.perf_counter() - begin, value, gap)
    start_at, spent, extra = np.zeros(len(case.layout)), 0, {}
    if method != "lbfgs":
        descent = stochastic.Descent(problem.descent(), start_at, l2, len(case.data), 0)
        for _ in range(gradient.WARMUP):
            start_at, spent = descent.epoch(), spent + 1
        extra["scale"] = curvature_scale(case.data, case.layout)
    evaluate = gradient.Evaluation(problem.objective(), l2, threads)
    for step in OPTIMIZERS["lbfgs"].run(evaluate, start_at, n_jobs=threads, **extra):
        yield Point(spent + step.evaluations, time.perf_counter() - begin, step.value)


def trajectory(method: str, case: Any, l2: float, threads: int) -> list[Point]:
    """Run a method until it makes no more progress or is certified."""
    found: list[Point] = []
    for point in points(method, case, l2, threads):
        found.append(point)
        still = len(found) > 12 and found[-12].value - point.value < LAST / 4 * point.value
        if point.gap <= LAST or len(found) >= MOST or (method != "dual" and still):
            break
    return found


def run(context: Context) -> Result:
    """Run all methods with two threads, l2 = 1 and, on chunk, also 0.1."""
    result = Result(
        "dual", "Passes and seconds to a gap: L-BFGS, descent and L-BFGS, dual ascent (two threads)"
    )
    threads = max(context.threads)
    for name, case in cases(context):
        for l2 in (1.0, 0.1) if name == "chunk" else (1.0,):
            trajectories = {method: trajectory(method, case, l2, threads) for method in METHODS}
            best = min(point.value for found in trajectories.values() for point in found)
            for method, found in trajectories.items():
                cells = {}
                for goal in GOALS:
                    reached = [p for p in found if p.value / best - 1.0 <= goal]
                    cells[f"{goal:g}"] = (
                        f"{reached[0].passes:.1f} ({reached[0].seconds:.2f} s)" if reached else "-"
                    )
                for goal in CERTIFIED:
                    reached = [p for p in found if p.gap <= goal]
                    cells[f"certified {goal:g}"] = (
                        f"{reached[0].passes:.1f} ({reached[0].seconds:.2f} s)" if reached else "-"
                    )
                result.add(f"{name}, l2 = {l2:g}, {method}", cells)
                result.raw[f"{name} {l2} {method}"] = [point._asdict() for point in found]
            for axis in ("passes", "seconds") if (name, l2) == DRAWN else ():
                curves = {
                    method: [
                        (getattr(p, axis), math.log10(max(p.value / best - 1.0, 1e-6)))
                        for p in found
                        if p.value / best < 2.0
                    ]
                    for method, found in trajectories.items()
                }
                title = f"{name}, l2 = {l2:g}: distance from the optimum"
                result.draw(f"dual-{name}-{axis}", title, axis, "log10 (f - f*) / f*", curves)
    return result

"""One loss+gradient evaluation against one CRFsuite L-BFGS iteration, taking turns.

CRFsuite runs its own training; after each of its iterations ours evaluates once per thread count, off its
clock. Only iterations with one line-search trial count: one evaluation and CRFsuite's vector work.
"""

from __future__ import annotations

import statistics
import tempfile
from pathlib import Path

import numpy as np

from . import ours, peer
from .harness import Context, Ratio, Result, milliseconds, stopwatch
from .workloads import workload

DEMAND = {1: 12.0, 2: 20.0}
GOAL = {1: 18.0, 2: 30.0}


def run(context: Context) -> Result:
    """At least ``repeat`` single-trial iterations of CRFsuite, each followed by ours."""
    result = Result("evaluation", "One loss+gradient evaluation against one CRFsuite iteration")
    iterations = context.rounds + 4  # the first few take more than one trial
    for name in context.workloads:
        X, y = workload(name)
        evaluate = ours.Evaluation(X, y)
        w = 0.1 * np.random.default_rng(0).standard_normal(evaluate.size)
        times: dict[int, list[tuple[float, float]]] = {n: [] for n in context.threads}  # wall, CPU
        for n in context.threads:
            evaluate(w, n)  # first touch of memory

        def turn(_: int, evaluate=evaluate, times=times, w=w) -> None:  # type: ignore[no-untyped-def]
            for n, each in times.items():
                each.append(stopwatch(lambda n=n: evaluate(w, n)))

        with tempfile.TemporaryDirectory() as folder:
            theirs = peer.train(X, y, Path(folder) / "model", iterations, turn)
        keep = [i for i in range(1, len(theirs.seconds)) if theirs.trials[i] == 1]
        slow = [theirs.seconds[i] for i in keep]
        cells = {"CRFsuite iteration": milliseconds(slow)}
        for n in context.threads:
            fast = [times[n][i][0] for i in keep]
            ratio = Ratio.of(slow, fast)
            by_cpu = Ratio.of([theirs.cpu[i] for i in keep], [times[n][i][1] for i in keep])
            result.add(
                f"{name}, {n} thread{'s' if n > 1 else ''}",
                {**cells, "ours": milliseconds(fast), "ratio": str(ratio), "by CPU time": str(by_cpu)},
                f">= {DEMAND[n]:.0f}x (goal {GOAL[n]:.0f}x)" if n in DEMAND else "",
                ratio.median >= DEMAND[n] if n in DEMAND else None,
            )
            result.raw[f"{name}-{n}"] = {
                "crfsuite": slow,
                "ours": fast,
                "ratio": ratio.median,
                "cpu": by_cpu.median,
            }
        result.raw[f"{name}-crfsuite"] = {"median": statistics.median(slow), "trials": theirs.trials}
    result.notes.append("by CPU time: of all threads together; on a busy machine the steadier figure")
    return result

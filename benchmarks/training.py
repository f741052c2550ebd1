"""Training from attribute lists to CRFsuite's final objective, encoding included.

Ours stops at the first iteration whose objective is CRFsuite's final one or lower. With --quick CRFsuite runs
a few iterations only and its time is scaled to the number of iterations it is known to need.
"""

from __future__ import annotations

import statistics
import tempfile
from pathlib import Path

from . import ours, peer
from .harness import Context, Ratio, Result, duration, seconds
from .workloads import PEER, Attributes, workload

DEMAND, GOAL = 15.0, 25.0
QUICK_ITERATIONS = 12


def theirs(X: list[Attributes], y: list[list[str]], name: str, quick: bool) -> float:
    """CRFsuite's wall time: handing over the lists, preparing, iterating, writing the model."""
    with tempfile.TemporaryDirectory() as folder:
        run = peer.train(X, y, Path(folder) / "model", QUICK_ITERATIONS if quick else 1000)
    if not quick:
        return run.total_seconds
    missing = PEER[name].iterations - len(run.seconds)
    return run.total_seconds + missing * statistics.median(run.single)


def run(context: Context) -> Result:
    """Alternated whole trainings."""
    result = Result("training", "Training to CRFsuite's final objective, encoding included")
    threads = max(context.threads)
    for name in context.workloads:
        X, y = workload(name)
        target = PEER[name].loss * (1 + 1e-5)
        slow, fast, steps = [], [], 0
        for _ in range(1 if context.quick else context.rounds):
            slow.append(theirs(X, y, name, context.quick))
            tagger = ours.crf(n_jobs=threads, max_iter=1000)
            fast.append(seconds(lambda t=tagger, X=X, y=y, g=target: ours.fit_to(t, X, y, g)))  # type: ignore[misc]
            steps = len(tagger.history_)
            reached = tagger.objective_ <= target
        ratio = Ratio.of(slow, fast)
        result.add(
            f"{name}, {threads} threads",
            {
                "CRFsuite": duration(slow) + (" scaled" if context.quick else ""),
                "ours": duration(fast),
                "iterations": str(steps),
                "ratio": str(ratio),
            },
            f">= {DEMAND:.0f}x (goal {GOAL:.0f}x)",
            ratio.median >= DEMAND and reached,
        )
        result.raw[name] = {"crfsuite": slow, "ours": fast, "scaled": context.quick, "reached": reached}
    return result

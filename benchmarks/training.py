"""Training from attribute lists to the final objective of CRFsuite, including encoding.

Ours is timed to the first iteration whose objective is that of CRFsuite (within 1e-4), and with default settings until
an optimum is certified. Iterations of CRFsuite have a constant cost, so that each round runs a few of them and
extrapolates to the known number. To validate this, one training of CRFsuite on the first workload is run in full (not
with --quick).
"""

from __future__ import annotations

import statistics
import tempfile
from pathlib import Path

from . import ours, peer
from .harness import Context, Ratio, Result, duration, seconds
from .workloads import PEER, Attributes, workload

DEMAND = 15.0
GOAL = {"chunk": 100.0}
NEAR = 1e-4
FEW = 8  # iterations of CRFsuite per round


def scaled(X: list[Attributes], y: list[list[str]], name: str) -> float:
    """Return the wall time of CRFsuite: append of the lists, preparation, iterations, writing the model."""
    with tempfile.TemporaryDirectory() as folder:
        run = peer.train(X, y, Path(folder) / "model", FEW)
    missing = PEER[name].iterations - len(run.seconds)
    return run.total_seconds + missing * statistics.median(run.single)


def whole(X: list[Attributes], y: list[list[str]]) -> float:
    """Return the wall time of a full training of CRFsuite."""
    with tempfile.TemporaryDirectory() as folder:
        return peer.train(X, y, Path(folder) / "model").total_seconds


def run(context: Context) -> Result:
    """Alternate trainings."""
    result = Result("training", "Training to CRFsuite's optimum, encoding included")
    threads = max(context.threads)
    for name in context.workloads:
        X, y = workload(name)
        target = PEER[name].loss * (1 + NEAR)
        slow: list[float] = []
        fast: dict[str, list[float]] = {"within 1e-4": [], "certified": []}
        for _ in range(context.rounds):
            slow.append(scaled(X, y, name))
            first, second = (ours.crf(n_jobs=threads, max_iter=1000) for _ in fast)
            fast["within 1e-4"].append(seconds(lambda t=first, X=X, y=y, g=target: ours.fit_to(t, X, y, g)))  # type: ignore[misc]
            fast["certified"].append(seconds(lambda t=second, X=X, y=y: t.fit(X, y)))  # type: ignore[misc]
        demand = f">= {DEMAND:.0f}x" + (f" (goal {GOAL[name]:.0f}x)" if name in GOAL else "")
        for (way, times), tagger in zip(fast.items(), (first, second)):
            ratio = Ratio.of(slow, times)
            cells = {
                "CRFsuite": duration(slow) + " scaled",
                "ours": duration(times),
                "above CRFsuite's": f"{tagger.objective_ / PEER[name].loss - 1:+.1e}",
                "iterations": str(len(tagger.history_)),
                "ratio": str(ratio),
            }
            reached = tagger.objective_ <= target
            result.add(f"{name}, {way}, {threads} threads", cells, demand, ratio.median >= DEMAND and reached)
        result.raw[name] = {"crfsuite": slow, "ours": fast}
    if not context.quick and context.workloads:
        name = context.workloads[0]
        taken, extrapolated = whole(*workload(name)), statistics.median(result.raw[name]["crfsuite"])
        result.add(f"{name}, CRFsuite in full", {"CRFsuite": f"{taken:.1f} s, scaled {extrapolated:.1f} s"})
        result.raw["whole"] = taken
    return result

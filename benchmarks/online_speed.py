"""Epochs of the online learners compared with CRFsuite's `ap` and `pa`, alternated, k-best MIRA, MIRA and L-BFGS.

CRFsuite trains with its own shuffling and averaging. After each of its epochs ours runs one epoch, including the
averaged weights, while the clock of CRFsuite is stopped. Both have the same attribute lists and features.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pycrfsuite

import tagwise as tw
from tagwise.features import resolve

from . import ours, peer
from .harness import (
    Context,
    Ratio,
    Result,
    Times,
    alternate,
    clock,
    duration,
    milliseconds,
    seconds,
    stopwatch,
)
from .workloads import Attributes, NoData, workload

DEMAND, GOAL = 12.0, 20.0
MOST_OF_K = 3.0  # time of an epoch with k = 5 relative to k = 1
TENTH = 10.0
QUICK_ITERATIONS = 12
# our name and parameters, CRFsuite's algorithm and its parameters
PAIRS: tuple[tuple[str, dict[str, Any], str, dict[str, Any]], ...] = (
    ("perceptron", {"kind": "perceptron"}, "ap", {}),
    ("mira, k=1", {"kind": "mira", "k": 1, "limit": 1.0}, "pa", {"type": 1, "c": 1.0, "averaging": True}),
)


class _Epochs(pycrfsuite.Trainer):  # type: ignore[misc]
    """CRFsuite trainer that times its epochs, with the clock stopped while ``between`` runs."""

    def __init__(self, algorithm: str, between: Callable[[], object]) -> None:
        super().__init__(algorithm=algorithm, verbose=True)
        self.times = Times()
        self.between = between
        self.mark, self.cpu_mark = clock()

    def on_featgen_end(self, log: str) -> None:
        """Start the clock after CRFsuite's preparation."""
        self.mark, self.cpu_mark = clock()

    def on_iteration(self, log: str, info: dict[str, Any]) -> None:
        """Record the time of an epoch."""
        now, cpu = clock()
        self.times.wall.append(now - self.mark)
        self.times.cpu.append(cpu - self.cpu_mark)
        self.between()
        self.mark, self.cpu_mark = clock()

    def _silent(self, *_: object) -> None:
        """Suppress the output of the base class."""

    on_start = on_featgen_progress = on_prepared = on_prepare_error = on_optimization_end = on_end = _silent


def epochs(
    X: list[Attributes],
    y: list[list[str]],
    params: dict[str, Any],
    algorithm: str,
    more: dict[str, Any],
    n: int,
) -> tuple[Times, Times]:
    """Return the times of n epochs of CRFsuite and of ours, alternated."""
    online = ours.online(X, y, **params)
    fast = Times()

    def turn() -> None:
        wall, cpu = stopwatch(lambda: (online.epoch(), online.weights(True)))
        fast.wall.append(wall)
        fast.cpu.append(cpu)

    trainer = _Epochs(algorithm, turn)
    trainer.set_params({"max_iterations": n, "epsilon": 0.0, **more})
    for sentence, labels in zip(X, y):
        trainer.append(sentence, labels)
    with tempfile.TemporaryDirectory() as folder:
        trainer.train(str(Path(folder) / "model"))
    return trainer.times, fast


def against_peer(context: Context, result: Result) -> None:
    """Time one epoch of each learner on each workload."""
    for name in context.workloads:
        X, y = workload(name)
        for title, params, algorithm, more in PAIRS:
            slow, fast = epochs(X, y, params, algorithm, more, context.rounds)
            ratio = Ratio.of(slow.wall, fast.wall)
            cells = {
                "CRFsuite": f"{algorithm} {milliseconds(slow.wall)}",
                "ours": milliseconds(fast.wall),
                "ratio": str(ratio),
                "by CPU time": str(Ratio.of(slow.cpu, fast.cpu)),
            }
            demand = f">= {DEMAND:.0f}x (goal {GOAL:.0f}x)"
            result.add(f"{name}, {title}, an epoch", cells, demand, ratio.median >= DEMAND)
            result.raw[f"{name}, {title}"] = {"crfsuite": asdict(slow), "ours": asdict(fast)}


def of_k(context: Context, result: Result) -> None:
    """Time epochs of k = 5 and k = 1, alternated."""
    for name in context.workloads:
        X, y = workload(name)
        learners = {k: ours.online(X, y, kind="mira", k=k) for k in (1, 5)}
        times = alternate({str(k): online.epoch for k, online in learners.items()}, context.rounds)
        five, one = times["5"], times["1"]
        ratio = Ratio.of(five.wall, one.wall)
        cells = {
            "ours": f"{milliseconds(five.wall)} against {milliseconds(one.wall)}",
            "ratio": str(ratio),
            "by CPU time": str(Ratio.of(five.cpu, one.cpu)),
        }
        holds = ratio.median <= MOST_OF_K
        result.add(f"{name}, mira, k=5 against k=1", cells, f"<= {MOST_OF_K:.0f}x", holds)
        result.raw[f"{name}, k"] = {k: asdict(t) for k, t in times.items()}


def against_batch(context: Context, result: Result) -> None:
    """Compare 40 epochs of MIRA, k = 4, on conll2003-en, from tokens to model, with L-BFGS of CRFsuite."""
    train, _, _ = ours.corpus("conll2003-en")
    recipe = resolve("ner", ["word", "pos"])
    X = [recipe.render(sentence) for sentence in train]
    y = train.labels
    rounds = [
        seconds(lambda: tw.MIRA(features="ner", k=4, max_iter=40, start_end=False).fit(train))
        for _ in range(3)
    ]
    with tempfile.TemporaryDirectory() as folder:
        run = peer.train(X, y, Path(folder) / "model", QUICK_ITERATIONS if context.quick else 1000)
    ratio = Ratio.of([run.total_seconds] * 3, rounds)
    note = f" for {QUICK_ITERATIONS} iterations" if context.quick else f" for {len(run.seconds)} iterations"
    result.add(
        "conll2003-en, mira, k=4, 40 epochs against L-BFGS",
        {"CRFsuite": f"lbfgs {run.total_seconds:.1f} s{note}", "ours": duration(rounds), "ratio": str(ratio)},
        "" if context.quick else f">= {TENTH:.0f}x",
        None if context.quick else ratio.median >= TENTH,
    )
    result.raw["lbfgs"] = {"crfsuite": run.total_seconds, "iterations": len(run.seconds), "ours": rounds}


def run(context: Context) -> Result:
    """Run all parts. Parts whose data are missing are skipped with a note."""
    result = Result("online_speed", "Epochs of the online learners, one thread")
    for part in (against_peer, of_k, against_batch):
        try:
            part(context, result)
        except NoData as missing:
            result.notes.append(f"{part.__name__} skipped: {missing}")
    return result

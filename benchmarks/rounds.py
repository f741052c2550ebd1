"""Rounds, bytes and seconds to a gap over the same shards: gradients with L-BFGS, and dual ascent in parts.

    $(python tools/environments.py ray) -m benchmarks.rounds encoded/ --workers 2 --parts 1,2,4

The optimum is that of an ascent in this process, certified to a tenth of the gap or less. A round of L-BFGS is an
evaluation. A round of the ascent is an epoch of all parts, or an evaluation of the objective or the certificate. The
clock starts when the workers have their shards in memory.
"""

from __future__ import annotations

import argparse
import gc
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

import tagwise as tw
from tagwise.learners import dual
from tagwise.learners.gradient import Evaluation
from tagwise.learners.problem import scale_of
from tagwise.learners.sharded.config import LocalParts
from tagwise.learners.sharded.dual import DualConfig, DualShards
from tagwise.learners.sharded.objective import ObjectiveConfig, OverShards
from tagwise.optimizers import OPTIMIZERS, Step
from tagwise.scores.protocols import Vector


@dataclass
class Method:
    """Method with its steps. `rounds`: number of rounds until a step. `sent`: bytes sent so far."""

    name: str
    steps: Iterator[Step]
    rounds: Callable[[Step], int]
    sent: Callable[[], int]

    def walk(self, best: float, gap: float) -> None:
        """Print when the objective is within the gap, and when this is certified, if it is."""
        begin, near = time.perf_counter(), False
        for step in self.steps:
            line = f"{self.rounds(step):5} rounds {time.perf_counter() - begin:8.1f} s {self.sent() / 1e6:9.1f} MB"
            if not near and step.value <= best * (1.0 + gap):
                print(f"{self.name:34} within    {line}", flush=True)
                near = True
            if step.gap <= gap:
                print(f"{self.name:34} certified {line}", flush=True)
                return
            if near and step.dual is None:
                return
        print(f"{self.name:34} ended     {line}, {step.value / best - 1.0:.1e} above", flush=True)


class Counted(DualShards):
    """Dual ascent that counts the calls of all parts."""

    calls = 0

    def epoch(self, seed: int = 0, n_jobs: int = 0) -> tuple[int, int, float]:
        self.calls += 1
        return super().epoch(seed, n_jobs)

    def primal(self, n_jobs: int = 0) -> float:
        self.calls += 1
        return super().primal(n_jobs)

    def certificate(self, n_jobs: int = 0) -> tuple[float, float]:
        self.calls += 1
        return super().certificate(n_jobs)


def ascent(
    name: str,
    config: DualConfig,
    parts: Any,
    gap: float,
    n_jobs: int,
    continuation: Callable[[Vector], Method],
) -> Method:
    """Return dual ascent, continued by L-BFGS as in training."""
    core, later = Counted(config, parts), list[Method]()
    going = dual.Ascent(core, n_jobs, 0, hasty=config.n_parts > 1)

    def steps() -> Iterator[Step]:
        yield from dual.steps(going, gap)
        parts.close()
        print(f"{name:34} L-BFGS    {core.calls:5} rounds, continues after them", flush=True)
        later.append(continuation(core.weights()))
        yield from later[0].steps

    def sent() -> int:
        return getattr(parts, "sent", 0) + sum(method.sent() for method in later)

    return Method(name, steps(), lambda step: core.calls + sum(method.rounds(step) for method in later), sent)


def descent(
    name: str, shards: tw.Shards, objective: Any, l2: float, n_jobs: int, start: Vector, worker: Any = None
) -> Method:
    """Return L-BFGS in the scaled variables of training."""
    layout = shards.layout()
    scale = scale_of(shards.counts[shards.kept()], shards.n_tokens, layout)
    steps = OPTIMIZERS["lbfgs"].run(Evaluation(objective, l2, n_jobs), start, n_jobs=n_jobs, scale=scale)
    return Method(name, steps, lambda step: step.evaluations, lambda: getattr(worker, "sent", 0))


def main() -> None:
    """Run all methods."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--parts", default="1,2")
    parser.add_argument("--l2", type=float, default=1.0)
    parser.add_argument("--gap", type=float, default=1e-3)
    parser.add_argument("--local", action="store_true", help="use threads of this process instead of Ray")
    options = parser.parse_args()
    shards = tw.Shards(options.folder, memory="1T")
    layout, l2, n_jobs = shards.layout(), options.l2, options.workers
    best = tw.fit_shards(tw.CRF(optimizer="dual", l2=l2, tol=options.gap / 30, n_jobs=n_jobs), shards)
    print(
        f"{shards.n_tokens:,} tokens, {len(layout):,} features, {len(shards)} shards, optimum {best.objective_:.2f}, "
        f"{best.stopped_}",
        flush=True,
    )
    name = "local" if options.local else f"{n_jobs} workers"
    if not options.local:
        from tagwise.ray.backend import RayParts
        from tagwise.ray.pool import connected

        connected()

    def gradients(start: Vector) -> Method:
        if options.local:
            return descent(
                "lbfgs, local",
                shards,
                OverShards(LocalParts(shards, ObjectiveConfig(layout))),
                l2,
                n_jobs,
                start,
            )
        workers = RayParts(shards, ObjectiveConfig(layout), n_jobs)
        return descent(f"lbfgs, {name}", shards, OverShards(workers), l2, n_jobs, start, workers)

    for parts in map(int, options.parts.split(",")):
        config = DualConfig(layout, parts, l2=l2)
        by_ray = parts > 1 and not options.local
        backend = RayParts(shards, config, n_jobs) if by_ray else LocalParts(shards, config)
        title = f"dual, {name if by_ray else 'local'}, {parts} part{'s' * (parts > 1)}"
        ascent(title, config, backend, options.gap, n_jobs, gradients).walk(best.objective_, options.gap)
        gc.collect()  # also ends the workers of L-BFGS
    gradients(np.zeros(len(layout))).walk(best.objective_, options.gap)


if __name__ == "__main__":
    main()

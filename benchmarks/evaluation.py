"""One evaluation of loss and gradient compared with one CRFsuite L-BFGS iteration, alternated.

CRFsuite runs its own training. After each of its iterations, ours evaluates once per thread count while the clock of
CRFsuite is stopped. Only iterations with one line-search trial count: one evaluation and the vector operations.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from statistics import median

import numpy as np

from . import ours, peer
from .harness import Context, Ratio, Result, in_a_row, milliseconds
from .workloads import workload

DEMAND = {1: 12.0, 2: 20.0}
GOAL = {1: 18.0, 2: 30.0}


#: Evaluations per turn, of which the median counts. Training also evaluates repeatedly, as CRFsuite does here.
IN_A_ROW = 5

WIDE = "1 thread, transitions of +-50"


def run(context: Context) -> Result:
    """Run at least ``repeat`` single-trial iterations of CRFsuite, each followed by ours.

    The last row evaluates at weights whose transitions differ by more than float32 can multiply, as they do on the way
    to a weakly regularized optimum. The time of CRFsuite does not depend on the weights.
    """
    result = Result("evaluation", "One evaluation of loss and gradient vs. one CRFsuite iteration")
    iterations = context.rounds + 4  # the first few take more than one trial
    for name in context.workloads:
        X, y = workload(name)
        evaluate = ours.Evaluation(X, y)
        w = 0.1 * np.random.default_rng(0).standard_normal(evaluate.size)
        wide = w.copy()
        wide[evaluate.edges] = np.random.default_rng(1).uniform(-50, 50, wide[evaluate.edges].shape)
        cases = {f"{n} thread{'s' if n > 1 else ''}": (w, n) for n in context.threads} | {WIDE: (wide, 1)}
        times: dict[str, list[tuple[float, float]]] = {case: [] for case in cases}  # wall, CPU
        for case in cases.values():
            evaluate(*case)  # first touch of memory

        def turn(_: int, evaluate=evaluate, cases=cases, times=times) -> None:  # type: ignore[no-untyped-def]
            for case, arguments in cases.items():
                several = in_a_row(lambda a=arguments: evaluate(*a), IN_A_ROW)
                times[case].append((median(t[0] for t in several), median(t[1] for t in several)))

        with tempfile.TemporaryDirectory() as folder:
            theirs = peer.train(X, y, Path(folder) / "model", iterations, turn)
        keep = [i for i in range(1, len(theirs.seconds)) if theirs.trials[i] == 1]
        slow, slow_cpu = [theirs.seconds[i] for i in keep], [theirs.cpu[i] for i in keep]
        for case, (_, n) in cases.items():
            fast, fast_cpu = ([times[case][i][k] for i in keep] for k in (0, 1))
            ratio, by_cpu = Ratio.of(slow, fast), Ratio.of(slow_cpu, fast_cpu)
            cells = {
                "CRFsuite iteration": milliseconds(slow),
                "ours": milliseconds(fast),
                "ratio": str(ratio),
                "by CPU time": str(by_cpu),
            }
            demanded = case != WIDE and n in DEMAND
            demand = f">= {DEMAND[n]:.0f}x (goal {GOAL[n]:.0f}x)" if demanded else ""
            result.add(f"{name}, {case}", cells, demand, ratio.median >= DEMAND[n] if demanded else None)
            result.raw[f"{name}, {case}"] = {
                "crfsuite": {"wall": slow, "cpu": slow_cpu},
                "ours": {"wall": fast, "cpu": fast_cpu},
            }
    result.notes.append("by CPU time: sum over all threads, which varies less on a busy machine")
    return result

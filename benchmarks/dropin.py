"""Drop-in modules compared with the originals, call by call: opening, tagging, predicting, training with lbfgs.

Both run alternately on conll2000 with the chunking attributes of CRFsuite. The model was trained by the original.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pycrfsuite
import sklearn_crfsuite

from tagwise.compat import pycrfsuite as ours
from tagwise.compat import sklearn_crfsuite as our_sklearn

from .harness import Context, Ratio, Result
from .workloads import workload

OPTIONS = {"c1": 0.0, "c2": 1.0, "feature.possible_transitions": False}


def spent(work: Callable[[], Any]) -> tuple[float, Any]:
    begin = time.perf_counter()
    found = work()
    return time.perf_counter() - begin, found


def trained(module: Any, X: Any, y: Any, path: str, most: dict[str, Any]) -> tuple[float, float]:
    """Return the seconds from lists to the model file, and the last loss in the log."""
    trainer = module.Trainer(algorithm="lbfgs", verbose=False)

    def work() -> None:
        for x, labels in zip(X, y):
            trainer.append(x, labels)
        trainer.set_params({**OPTIONS, **most})
        trainer.train(path)

    seconds, _ = spent(work)
    return seconds, float(trainer.logparser.last_iteration["loss"])


FIRST = """
import sys, time
import {module} as module
tagger = module.Tagger()
begin = time.perf_counter()
tagger.open(sys.argv[1])
print(time.perf_counter() - begin)
"""


def first(module: Any, path: str) -> float:
    """Return the seconds to open a model in a new process, as for a program that starts, tags and exits."""
    code = FIRST.format(module=module.__name__)
    return float(subprocess.run([sys.executable, "-c", code, path], check=True, capture_output=True).stdout)


def run(context: Context) -> Result:
    """Return ratios of wall time. A ratio above 1 is faster than the original."""
    result = Result("dropin", "The drop-in modules against python-crfsuite and sklearn-crfsuite (chunk)")
    X, y = workload("chunk")
    test, _ = workload("chunk", "test")
    rounds = context.rounds
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "theirs.crfsuite")
        most = {"max_iterations": 20} if context.quick else {}
        theirs, loss = trained(pycrfsuite, X, y, path, most)
        mine = [trained(ours, X, y, str(Path(folder) / "ours.crfsuite"), most) for _ in range(rounds)]
        ratio = Ratio.of([theirs] * rounds, [seconds for seconds, _ in mine])
        cells = {"ratio": str(ratio), "loss": f"{mine[0][1]:.2f} against {loss:.2f}"}
        until = "20 iterations" if most else "to convergence"
        result.add(f"training with lbfgs, {until}", cells, ">= 20x", ratio.median >= 20)
        result.raw["training"] = {"theirs": theirs, "ours": [seconds for seconds, _ in mine]}

        def opened(module: Any) -> Any:
            tagger = module.Tagger()
            tagger.open(path)
            return tagger

        def tagged(tagger: Any) -> list[Any]:
            return [tagger.tag(x) for x in test]

        times: dict[str, tuple[list[float], list[float]]] = {
            name: ([], []) for name in ("first", "open", "tag", "predict")
        }
        estimators = [kind(model_filename=path) for kind in (sklearn_crfsuite.CRF, our_sklearn.CRF)]
        for turn in range(rounds + 1):
            found: list[list[Any]] = []
            for side, module in enumerate((pycrfsuite, ours)):
                seconds, tagger = spent(lambda module=module: opened(module))
                again, paths = spent(lambda tagger=tagger: tagged(tagger))
                whole, _ = spent(lambda side=side: estimators[side].predict(test))
                found.append(paths)
                alone = first(module, path)
                for name, value in zip(times, (alone, seconds, again, whole)):
                    if turn:
                        times[name][side].append(value)
            assert found[0] == found[1], "the tags differ"
        for name, title, least in (
            ("first", "Tagger.open, first in a process", 1.0),
            ("open", "Tagger.open, repeated", 1.0),
            ("tag", "Tagger.tag, one sentence per call", 2.0),
            ("predict", "CRF.predict, a list", 8.0),
        ):
            ratio = Ratio.of(*times[name])
            result.add(title, {"ratio": str(ratio)}, f">= {least:g}x", ratio.median >= least)
            result.raw[name] = {"theirs": times[name][0], "ours": times[name][1]}
    return result

"""The python-crfsuite side: training with timed iterations, tagging, marginals."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pycrfsuite

from .harness import OUT, clock
from .workloads import Attributes, workload


@dataclass
class Training:
    """Measurements of one training run of CRFsuite."""

    append_seconds: float = 0.0  # handing over the attribute lists
    prepare_seconds: float = 0.0  # its own feature generation
    seconds: list[float] = field(default_factory=list)  # wall time of each iteration
    cpu: list[float] = field(default_factory=list)  # CPU time of each iteration
    trials: list[int] = field(default_factory=list)  # line-search evaluations of each iteration
    losses: list[float] = field(default_factory=list)
    features: int = 0
    total_seconds: float = 0.0  # with writing the model, without the callback

    @property
    def single(self) -> list[float]:
        """Iterations with one evaluation, without the first, which has an additional evaluation."""
        return [s for s, n in zip(self.seconds[1:], self.trials[1:]) if n == 1] or self.seconds[1:]


class _Trainer(pycrfsuite.Trainer):  # type: ignore[misc]
    """Trainer that stops the clock between iterations, when ``between(i)`` runs."""

    def __init__(self, between: Callable[[int], object] | None = None) -> None:
        super().__init__(algorithm="lbfgs", verbose=True)  # events are sent only if verbose
        self.run = Training()
        self.between = between
        self.mark, self.cpu_mark = clock()
        self.paused = 0.0

    def on_featgen_end(self, log: str) -> None:
        """Record the time of CRFsuite's preparation."""
        now, cpu = clock()
        self.run.prepare_seconds = now - self.mark
        self.mark, self.cpu_mark = now, cpu

    def on_iteration(self, log: str, info: dict[str, Any]) -> None:
        """Record the time of an L-BFGS iteration."""
        now, cpu = clock()
        self.run.seconds.append(now - self.mark)
        self.run.cpu.append(cpu - self.cpu_mark)
        self.run.trials.append(int(info.get("linesearch_trials", 1)))
        self.run.losses.append(float(info["loss"]))
        if self.between is not None:
            self.between(len(self.run.seconds))
        self.mark, self.cpu_mark = clock()
        self.paused += self.mark - now

    def _silent(self, *_: object) -> None:
        """Suppress the output of the base class."""

    on_start = on_featgen_progress = on_prepared = on_prepare_error = on_optimization_end = on_end = _silent


def train(
    X: Sequence[Attributes],
    y: Sequence[Sequence[str]],
    path: Path,
    max_iterations: int = 1000,
    between: Callable[[int], object] | None = None,
    c2: float = 1.0,
) -> Training:
    """Train with L-BFGS and L2 only. ``between(i)`` is called after iteration i, and its time is not counted."""
    trainer = _Trainer(between)
    trainer.set_params({"c1": 0.0, "c2": c2, "max_iterations": max_iterations})
    begin = time.perf_counter()
    for sentence, labels in zip(X, y):
        trainer.append(sentence, labels)
    trainer.mark = time.perf_counter()
    trainer.run.append_seconds = trainer.mark - begin
    trainer.train(str(path))
    trainer.run.total_seconds = time.perf_counter() - begin - trainer.paused
    trainer.run.features = int(trainer.logparser.featgen_num_features or 0)
    return trainer.run


def model(name: str, iterations: int = 20) -> Path:
    """Return the path of a model of the workload after a few iterations, cached in benchmarks/out."""
    OUT.mkdir(parents=True, exist_ok=True)
    path = OUT / f"{name}-{iterations}.crfsuite"
    if not path.is_file():
        train(*workload(name), path, iterations)
    return path


def tagger(path: Path) -> Any:
    """Return an open tagger."""
    opened = pycrfsuite.Tagger()
    opened.open(str(path))
    return opened


def sklearn_model(path: Path) -> Any:
    """Return the estimator of sklearn-crfsuite over an existing model file."""
    import sklearn_crfsuite

    return sklearn_crfsuite.CRF(model_filename=str(path))

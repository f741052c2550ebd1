"""The four losses: cost of a pass relative to the log loss, convergence of the optimizers, and accuracy.

For accuracy, l2 is the best of a warm-started path on the last tenth of the training set, and the model is then trained
on all of it. Published figures: Altun, Johnson and Hofmann (2003), Table 2 (conll2002-es F1) and Table 1 (WSJ
accuracy).
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterator
from typing import Any

import numpy as np

import tagwise as tw
from tagwise import _core
from tagwise.dataset.encode import collect_labels, encode_labels
from tagwise.estimators import regularization_path
from tagwise.learners import gradient, stochastic
from tagwise.learners.loop import Stopping
from tagwise.learners.problem import Problem, curvature_scale
from tagwise.optimizers import OPTIMIZERS

from .harness import Context, Ratio, Result
from .workloads import PEER, workload

LOSSES = _core.LOSSES
MOST = {"exp": 1.1, "pointwise_log": 2.0, "pointwise_exp": 2.0}
STRENGTHS = (1.0, 0.5, 0.2, 0.1, 0.05, 0.02, 0.01)
PAPER: dict[str, dict[str, tuple[float, ...]]] = {
    "conll2002-es": {
        "log": (59.92, 69.75, 73.62),
        "exp": (59.68, 67.30, 72.11),
        "pointwise_log": (56.73, 68.28, 73.17),
        "pointwise_exp": (58.26, 69.51, 73.82),
    },
    "ewt-pos": {
        "log": (94.91, 95.68),
        "exp": (94.57, 95.25),
        "pointwise_log": (94.90, 95.71),
        "pointwise_exp": (94.66, 95.31),
    },
}


class Encoded:
    """Workload as the estimators encode it."""

    def __init__(self, name: str) -> None:
        self.X, self.y = workload(name)
        self.vocabulary = _core.Vocabulary()
        self.labels = collect_labels(self.y)
        self.data = _core.encode_attributes(self.vocabulary, self.X)
        self.vocabulary.lock()
        self.data = self.data.with_gold(encode_labels(self.y, self.labels))
        n = len(self.vocabulary), len(self.labels)
        self.layout = _core.Layout.build(self.data, *n, start_end=False)

    def part(self, chosen: Any) -> _core.Dataset:
        """Return the dataset of some of its sentences."""
        data = _core.encode_attributes(self.vocabulary, [self.X[i] for i in chosen])
        return data.with_gold(encode_labels([self.y[i] for i in chosen], self.labels))


def passes(context: Context, result: Result) -> None:
    """Time one evaluation of each loss at the same weights, alternated, with one thread."""
    for name in context.workloads:
        case = Encoded(name)
        data, layout = case.data, case.layout
        # Near a trained model, where no sentence is out of range.
        zero = np.zeros(len(layout))
        w = gradient.train(Problem(data, layout), zero, Stopping(15, 0.0, 1, 0), l2=1.0).weights
        objectives = {loss: _core.Objective(data, layout, loss=loss) for loss in LOSSES}
        g = np.empty_like(w)
        times: dict[str, list[float]] = {loss: [] for loss in LOSSES}
        for turn in range(context.rounds + 1):
            for loss, objective in objectives.items():
                several = []
                for _ in range(3):
                    begin = time.perf_counter()
                    objective.evaluate(w, g, 1)
                    several.append(time.perf_counter() - begin)
                if turn:
                    times[loss].append(statistics.median(several))
        for loss, most in MOST.items():
            ratio = Ratio.of(times[loss], times["log"])
            cells = {"time per pass / log": str(ratio)}
            result.add(f"{name}, {loss}", cells, f"<= {most:g}x", ratio.median <= most)
            result.raw[f"pass {name} {loss}"] = {loss: times[loss], "log": times["log"]}


def optimizers(context: Context, result: Result) -> None:
    """Measure iterations and seconds, with preparation, to gaps of 1e-2 and 1e-3 of the log loss with two threads."""
    for name in context.workloads:
        case = Encoded(name)
        best, zero = PEER[name].loss, np.zeros(len(case.layout))
        for label in ("auto", "lbfgs", "cg", "sgd", "adagrad", "adam", "svrg"):
            begin, marks, count = time.perf_counter(), {}, 0
            for count, value in enumerate(values(label, case, zero), 1):
                gap = value / best - 1.0
                for goal in (1e-2, 1e-3):
                    if gap <= goal and goal not in marks:
                        marks[goal] = (count, time.perf_counter() - begin)
                if gap <= 1e-3 or time.perf_counter() - begin > 60.0:
                    break
            cells = {
                f"to {goal:g}": f"{marks[goal][0]} in {marks[goal][1]:.1f} s"
                if goal in marks
                else "not in 60 s"
                for goal in (1e-2, 1e-3)
            }
            result.add(f"{name}, {label}", cells)
            result.raw[f"optimizer {name} {label}"] = {str(goal): mark for goal, mark in marks.items()}


def values(name: str, case: Encoded, start: Any, l2: float = 1.0) -> Any:
    """Yield the objective after each iteration or epoch."""
    if name in ("adagrad", "adam", "svrg"):
        yield from minibatch(name, case, start, l2)
        return
    data, layout = case.data, case.layout
    problem = Problem(data, layout)
    evaluate = gradient.Evaluation(problem.objective(), l2, 2)
    n = len(data)
    if name == "sgd":
        descent = stochastic.Descent(problem.descent(), start, l2, n, 0)
        yield from (step.value for step in stochastic.sgd(evaluate, descent))
        return
    extra: dict[str, Any] = {}
    if name == "auto":
        extra["scale"] = curvature_scale(data, layout)
        descent = stochastic.Descent(problem.descent(), start, l2, n, 0)
        for _ in range(gradient.WARMUP):
            start = descent.epoch()
        name = "lbfgs"
    yield from (step.value for step in OPTIMIZERS[name].run(evaluate, start, n_jobs=2, **extra))


def minibatch(name: str, case: Encoded, w: Any, l2: float, size: int = 128) -> Any:
    """Run AdaGrad, Adam or SVRG on batches of sentences, with the best step size of a grid on a tenth of the batches.

    Updates are dense and in NumPy: their epochs cost more than native ones, so compare epochs, not seconds.
    """
    data, layout = case.data, case.layout
    order = np.random.default_rng(0).permutation(len(data))
    parts = [np.sort(order[at : at + size]) for at in range(0, len(data), size)]
    batches = [_core.Objective(case.part(part), layout) for part in parts]
    whole = gradient.Evaluation(_core.Objective(data, layout), l2, 2)
    g, full = np.empty_like(w), np.empty_like(w)

    def batch_gradient(i: int, at: Any) -> Any:
        batches[i].evaluate(at, g, 2)
        return g * len(batches) + 2.0 * l2 * at

    def epoch(w: Any, state: dict[str, Any], eta: float, indices: Any) -> Any:
        for i in indices:
            if name == "svrg":
                d = batch_gradient(i, w) - batch_gradient(i, state["anchor"]) + state["full"]
                w = w - eta * d
            else:
                d = batch_gradient(i, w)
                if name == "adagrad":
                    state["sum"] = state.get("sum", 1e-8) + d * d
                    w = w - eta * d / np.sqrt(state["sum"])
                else:
                    t = state["t"] = state.get("t", 0) + 1
                    state["m"] = 0.9 * state.get("m", 0.0) + 0.1 * d
                    state["v"] = 0.999 * state.get("v", 0.0) + 0.001 * d * d
                    w = w - eta * (state["m"] / (1 - 0.9**t)) / (np.sqrt(state["v"] / (1 - 0.999**t)) + 1e-8)
        return w

    def anchored(w: Any) -> dict[str, Any]:
        if name != "svrg":
            return {}
        whole(w, full)
        return {"anchor": w.copy(), "full": full.copy()}

    grid = (3e-5, 1e-5, 3e-6, 1e-6) if name == "svrg" else (0.5, 0.2, 0.1, 0.05, 0.02, 0.01)
    sample = range(max(2, len(batches) // 10))
    with np.errstate(all="ignore"):
        tried = {eta: whole(epoch(w, anchored(w), eta, sample), g) for eta in grid}
    eta = min(tried, key=lambda e: tried[e] if np.isfinite(tried[e]) else np.inf)
    state = anchored(w)
    rng = np.random.default_rng(1)
    while True:
        if name == "svrg":
            state = anchored(w)
        w = epoch(w, state, eta, rng.permutation(len(batches)))
        yield whole(w, g)


def chosen(loss: str, features: str, train: Any, all_pairs: bool = False) -> Any:
    """Return the tagger with the best l2 of a path on the last tenth of the training set, trained on all of it."""
    tagger = tw.CRF(features=features, loss=loss, max_iter=300, tol=1e-4, all_pairs=all_pairs)
    return regularization_path(tagger, train, strengths=STRENGTHS, refit=True).best


def accuracy(context: Context, result: Result) -> None:
    """Add the four losses with S1, S2, S3, and S3 with all pairs, decoded by Viterbi and pointwise."""
    from . import ours

    for corpus, sets in (("conll2002-es", ("S1", "S2", "S3", "S3, all pairs")), ("ewt-pos", ("S1", "S2"))):
        train, dev, test = ours.corpus(corpus)
        for loss in LOSSES:
            for i, features in enumerate(sets):
                best = chosen(loss, features[:2], train, all_pairs=len(features) > 2)
                scores = {
                    f"{part} {decoder}": 100
                    * tw.evaluate(data.labels, best.tagger.predict(data, decoder=decoder)).score
                    for part, data in (("dev", dev), ("test", test))
                    for decoder in ("viterbi", "pointwise")
                }
                cells = {"l2": f"{best.strength:g}", **{k: f"{v:.2f}" for k, v in scores.items()}}
                cells["paper"] = f"{PAPER[corpus][loss][min(i, 2)]:.2f}"
                result.add(f"{corpus}, {loss}, {features}", cells)
                result.raw[f"{corpus} {loss} {features}"] = {"l2": best.strength, **scores}
                print(f"{corpus} {loss} {features}: {cells}", flush=True)


def run(context: Context) -> Iterator[Result]:
    """Yield the tables of all three parts; --quick skips accuracy."""
    parts = [("pass", passes), ("optimizers", optimizers)] + (
        [] if context.quick else [("accuracy", accuracy)]
    )
    for name, part in parts:
        result = Result(f"losses_{name}", f"The four losses: {name}")
        part(context, result)
        yield result

"""Sequence boosting: scores with few features, curves, comparison of the bounds, cost of a round."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from tagwise.base.parameters import checked_parameters
from tagwise.features.inputs import Inputs

from . import ours
from .harness import Context, Result

#: conll2002-es: required F1 on testa, and the parameters chosen on it.
SPANISH: dict[str, tuple[float, dict[str, Any]]] = {
    "S1": (48.0, {"max_iter": 400, "features_per_round": 256}),
    "S2": (66.0, {"max_iter": 400, "features_per_round": 256}),
    "S3": (71.0, {"max_iter": 400, "features_per_round": 256}),
}
ENGLISH: dict[str, dict[str, Any]] = {
    "S1": {"max_iter": 200, "features_per_round": 128},
    "S2": {"max_iter": 200, "features_per_round": 128},
}
SHARED: dict[str, Any] = {"bound": "tight", "step": "bound", "overlap": True, "max_length": 5, "every": 20}
#: CPU seconds after which a curve ends.
LIMIT = 150.0
#: Maximum fraction of the features that a model may use, as in the paper. There, a feature is an attribute with any
#: label. The candidates here, which occur in training, are reported too.
SHARE = 0.10


def curve(tagger: Any, train: Any, dev: Any, test: Any, limit: float) -> list[dict[str, float]]:
    """Return loss, both scores and non-zero features after every block of rounds, and the CPU time of boosting alone.

    The curve ends with the rounds, with a tenth of the features, or after ``limit`` CPU seconds.
    """
    task = tagger._task(Inputs.of(train), train.labels, checked_parameters(tagger))
    scores = {name: ours.scorer(tagger, task, part) for name, part in (("dev", dev), ("test", test))}
    points: list[dict[str, float]] = []
    spent, begin = 0.0, time.process_time()

    def note(weights: Any) -> float:
        nonlocal spent, begin
        spent += time.process_time() - begin
        found: dict[str, float] = {name: 100 * score(weights) for name, score in scores.items()}
        points.append({"cpu": spent, "nonzero": int(np.count_nonzero(weights)), **found})
        begin = time.process_time()
        return found["dev"]

    labels = task.layout.n_labels
    pairs = labels * (task.layout.n_attributes + labels + 2)

    def stop(_: Any) -> bool:
        return spent > limit or points[-1]["nonzero"] > SHARE * pairs

    task.dev_score = note
    task.callbacks = (stop,)
    result = tagger._train(task)
    for point, entry in zip(points, result.history):
        point.update(
            rounds=entry["rounds"], log_loss=entry["objective"], features=len(task.layout), pairs=pairs
        )
    return points


def scores(
    context: Context, result: Result, name: str, features: str, floor: float | None, given: Any
) -> None:
    """Add the block with the best dev score among those with at most a tenth of the features."""
    train, dev, test = ours.corpus(name)
    parameters = {**SHARED, **given}
    if context.quick:
        parameters.update(max_iter=10, every=5)
    points = curve(ours.boosting(features=features, **parameters), train, dev, test, LIMIT)
    few = [p for p in points if p["nonzero"] <= SHARE * p["pairs"]] or points[:1]
    best = max(few, key=lambda p: p["dev"])
    result.raw[f"{name} {features}"] = {"parameters": parameters, "curve": points}
    result.add(
        f"{name} {features}",
        {
            "dev": f"{best['dev']:.2f}",
            "test": f"{best['test']:.2f}",
            "features": f"{best['nonzero']:,} of {best['pairs']:,} ({best['nonzero'] / best['pairs']:.1%})",
            "of candidates": f"{best['nonzero'] / best['features']:.1%}",
            "rounds": f"{best['rounds']:,}",
            "CPU": f"{best['cpu']:.0f} s",
        },
        demand="" if floor is None else f"dev >= {floor:g}",
        holds=None if floor is None or context.quick else best["dev"] >= floor,
    )


def race(context: Context, result: Result) -> None:
    """Add rounds and CPU seconds to one loss: loose and tight bounds, line search, several features per round."""
    train, _, _ = ours.corpus("conll2002-es")
    part = train[: 100 if context.quick else 1000]
    sides: dict[str, dict[str, Any]] = {
        "loose": {"bound": "loose"},
        "tight": {"bound": "tight"},
        "loose, line search": {"bound": "loose", "line_search": True},
        "tight, line search": {"bound": "tight", "line_search": True},
        "tight, 16 features per round": {"bound": "tight", "features_per_round": 16},
        "tight, 16 features per round that may overlap": {
            "bound": "tight",
            "features_per_round": 16,
            "overlap": True,
        },
    }
    target = None
    for side, options in sides.items():
        booster = ours.booster("S3", part, max_length=5, **options)
        if target is None:
            target = booster.log_loss - (2.0 if context.quick else 8.0)
        begin, rounds, chosen = time.process_time(), 0, 0
        while booster.log_loss > target and rounds < 50_000:
            done = booster.run(1)
            rounds, chosen = booster.rounds, chosen + len(done["feature"])
            if not done["more"]:
                break
        cpu = time.process_time() - begin
        result.raw[side] = {"rounds": rounds, "chosen": chosen, "cpu": cpu, "log_loss": booster.log_loss}
        cells = {"rounds": f"{rounds:,}", "chosen": f"{chosen:,}", "CPU": f"{cpu:.2f} s"}
        result.add(f"to log loss {target:.1f}: {side}", cells)


def round_cost(context: Context, result: Result) -> None:
    """Compare the median round after the first hundred with a full pass and a full scan, measured in between.

    The full pass is the fastest available, one evaluation of the exponential loss and its gradient by the batch engine.
    The full scan computes the bound of every feature. Rounds get cheaper as rarer features are chosen, so that their
    number is shown. The loose bound prefers features that occur everywhere, whose rounds are full passes.
    """
    train, _, _ = ours.corpus("conll2002-es")
    for bound in ("loose", "tight"):
        booster = ours.booster("S3", train, max_length=5, bound=bound)
        engine_pass = ours.engine_pass("S3", train, 5)
        booster.run(100)
        times: list[float] = []
        sentences: list[int] = []
        full: dict[str, list[float]] = {"engine": [], "scan": []}
        while len(times) < (20 if context.quick else 4000) and sum(times) < LIMIT:
            spent, done = timed(booster.run, 1)
            times.append(spent)
            sentences.append(int(done["sentences"][0]))
            if len(times) % 100 == 10:
                full["engine"].append(timed(engine_pass)[0])
                full["scan"].append(timed(booster.bounds, bound)[0])
        own = [timed(booster.recompute)[0] for _ in range(context.rounds)]
        median, engine, scan = (statistics.median(x) for x in (times, full["engine"], full["scan"]))
        result.raw[f"round {bound}"] = {"round": times, "sentences": sentences, "own pass": own, **full}
        result.add(
            f"a round, {bound}",
            {
                "rounds": f"100 to {100 + len(times):,}",
                "median": f"{median * 1e3:.2f} ms",
                "mean": f"{statistics.mean(times) * 1e3:.2f} ms",
                "sentences": f"{statistics.median(sentences):,.0f}",
                "full pass + scan": f"{engine * 1e3:.0f} + {scan * 1e3:.0f} ms",
                "own pass": f"{statistics.median(own) * 1e3:.0f} ms",
                "ratio": f"{(engine + scan) / median:.0f}x",
            },
            demand=">= 20x",
            holds=None if context.quick else engine + scan >= 20 * median,
        )


def timed(job: Callable[..., Any], *given: Any) -> tuple[float, Any]:
    """Return the CPU seconds of a call and its result."""
    begin = time.process_time()
    found = job(*given)
    return time.process_time() - begin, found


def run(context: Context) -> Result:
    """Run all parts and report the CPU time of one thread."""
    result = Result("boosting", "Sequence boosting (one thread)")
    for features, (floor, given) in SPANISH.items():
        scores(context, result, "conll2002-es", features, floor, given)
    for features, given in ENGLISH.items():
        scores(context, result, "ewt-pos", features, None, given)
    race(context, result)
    round_cost(context, result)
    result.notes.append(
        "dev is testa of conll2002-es, and a full pass is one evaluation of loss and gradient by the batch engine"
    )
    return result

"""Vectors: an evaluation of the CRF objective compared with the two matrix products in it, computed by NumPy.

The data has 300 numbers per token, 200,000 tokens, and 9 or 17 labels. An evaluation scores every token (vectors x
weights), sums over paths, and accumulates the gradient (residuals x vectors). NumPy computes the two products only, on
as many threads. The third side uses the same numbers as attributes, without matrix products.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import tagwise as tw
from tagwise import _core
from tagwise.dataset import encode

from .harness import Context, Result, stopwatch

SIZE, TOKENS, LENGTH = 300, 200_000, 20


def training_set(labels: int, tokens: int) -> tuple[list[Any], list[list[str]], np.ndarray]:
    """Return the vectors of sentences, the labels, and the vectors as one matrix."""
    rng = np.random.default_rng(0)
    gold = rng.integers(0, labels, tokens)
    gold[:labels] = np.arange(labels)
    values = rng.standard_normal((tokens, SIZE), dtype=np.float32)
    lengths = [LENGTH] * (tokens // LENGTH)
    X = tw.Vectors.of([[()] * n for n in lengths], values)
    names = [f"L{y}" for y in gold]
    y = [names[s * LENGTH : (s + 1) * LENGTH] for s in range(len(lengths))]
    return X, y, values


def prepared(X: Any, y: Any, labels: int) -> tuple[Any, Any, Any]:
    """Return dataset, layout and weights."""
    vocabulary, data = encode.build(X)
    data = encode.with_labels(data, y, [f"L{k}" for k in range(labels)])
    layout = _core.Layout.build(data, len(vocabulary), labels)
    return data, layout, np.random.default_rng(1).normal(size=len(layout)) * 0.01


def measured(labels: int, tokens: int, rounds: int) -> tuple[dict[str, list[float]], float]:
    """Return the times of each side, alternated, and the time of encoding."""
    X, y, values = training_set(labels, tokens)
    encoding = stopwatch(lambda: encode.build(X))[0]
    data, layout, w = prepared(X, y, labels)
    objective, gradient = _core.Objective(data, layout), np.zeros(len(w))
    weights = np.zeros((SIZE, labels), np.float32)
    residual = np.ones((tokens, labels), np.float32)
    before = _core.force("plain")
    try:
        rows = _core.Objective(data, layout)
    finally:
        _core.force(before)
    sides: dict[str, Callable[[], object]] = {
        "vectors": lambda: objective.evaluate(w, gradient, 0),
        "attributes": lambda: rows.evaluate(w, gradient, 0),
        "products": lambda: (values @ weights, values.T @ residual),
    }
    for work in sides.values():
        work()
    times: dict[str, list[float]] = {name: [] for name in sides}
    for _ in range(rounds):
        for name, work in sides.items():
            times[name].append(stopwatch(work)[0])
    return times, encoding


def run(context: Context) -> Result:
    """Compare evaluations of 300 numbers per token with matrix products."""
    result = Result("dense", "Vectors: an evaluation vs. its matrix products alone")
    tokens = TOKENS // 10 if context.quick else TOKENS
    for labels in (9, 17):
        times, encoding = measured(labels, tokens, context.rounds)
        middle = {name: float(np.median(found)) for name, found in times.items()}
        fraction = [p / v for p, v in zip(times["products"], times["vectors"])]
        flops = 4.0 * tokens * SIZE * labels
        result.add(
            f"{labels} labels",
            {
                "evaluation": f"{1000 * middle['vectors']:.0f} ms",
                "NumPy products": f"{1000 * middle['products']:.0f} ms",
                "fraction": f"{np.median(fraction):.2f} ({min(fraction):.2f} to {max(fraction):.2f})",
                "as attributes": f"{1000 * middle['attributes']:.0f} ms",
                "Gflop/s": f"{flops / middle['vectors'] / 1e9:.1f}",
                "encoding": f"{1000 * encoding:.0f} ms",
            },
        )
        result.raw[f"{labels} labels"] = {**times, "encoding": encoding, "tokens": tokens, "size": SIZE}
    result.notes.append(
        "fraction: time of the two NumPy products / time of a whole evaluation, which includes sums over paths"
    )
    return result

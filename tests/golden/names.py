"""The weights of a model by feature name: a slow reference implementation that reads its arrays one by one."""

from __future__ import annotations

import itertools
import math
from typing import Any

from tagwise.model import Model

Name = tuple[str, ...]


def named(model: Model) -> dict[Name, float]:
    """Return the weight of every feature by its texts and labels."""
    layout, labels, texts = model.scorer.layout, model.labels, model.vocabulary.texts()
    arrays, n = layout.arrays(), len(model.labels)
    weights = iter(model.scorer.weights.tolist())
    out: dict[Name, float] = {}

    def rows(ptr: str, target: str) -> Any:
        bounds = arrays[ptr].tolist()
        for a, (begin, end) in enumerate(itertools.pairwise(bounds)):
            for code in arrays[target][begin:end].tolist():
                yield texts[a], code

    for text, y in rows("node_ptr", "node_label"):
        out["node", text, labels[y]] = next(weights)
    for e in arrays["edges"].tolist():
        out["edge", labels[e // n], labels[e % n]] = next(weights)
    for y in arrays["starts"].tolist():
        out["start", labels[y]] = next(weights)
    for y in arrays["ends"].tolist():
        out["end", labels[y]] = next(weights)
    for text, e in rows("pair_ptr", "pair"):
        out["pair", text, labels[e // n], labels[e % n]] = next(weights)
    assert next(weights, None) is None
    return out | further_back(model)


def further_back(model: Model) -> dict[Name, float]:
    """Return weights of labels further back than one, as in docs/concepts/decoding.md: F_2 .. F_p, R, G_2 .. G_m."""
    past, labels = model.lookback, model.labels
    if past is None:
        return {}
    weights = iter(past.weights.tolist())
    names = [f"F{q}" for q in range(2, 1 + (past.pool if past.p == math.inf else int(past.p)))]
    if past.p == math.inf:
        names[-1] += " and further"
    names += ["R"] * past.document
    out = {(f, a, b): next(weights) for f in names for a, b in itertools.product(labels, repeat=2)}
    for m in range(2, past.m + 1) if past.tuples else ():
        out |= {(f"G{m}", *ys): next(weights) for ys in itertools.product(labels, repeat=m + 1)}
    assert next(weights, None) is None
    return out

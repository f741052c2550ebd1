"""Online learners on random corpora, with their reference implementations."""

from __future__ import annotations

import itertools
from typing import Any, NamedTuple

import numpy as np

from tagwise import _core

from . import constructors
from .reference import chain, mira, model
from .strategies import Problem


class Native(NamedTuple):
    """A tiny problem in the core's form, and the indices of its features in the reference vector."""

    data: _core.Dataset
    layout: _core.Layout
    at: np.ndarray  # [features] index into the reference vector

    def online(self, kind: str, **parameters: Any) -> _core.Online:
        return constructors.online(self.data, self.layout, kind, **parameters)

    def svm(self, **parameters: Any) -> _core.Svm:
        return constructors.svm(self.data, self.layout, **parameters)

    def dense(self, p: Problem, w: np.ndarray) -> np.ndarray:
        """Return weights in the order of the reference implementation."""
        out = np.zeros(p.shape.size)
        out[self.at] = w
        return out


def encode(p: Problem) -> tuple[_core.Vocabulary, _core.Dataset]:
    vocabulary = _core.Vocabulary()
    X = [[{str(a): float(v) for a, v in enumerate(x) if v} for x in sentence] for sentence in p.X]
    data = _core.encode_attributes(vocabulary, X, X if p.shape.edge_attributes else None)
    return vocabulary, data.with_gold(np.array([y for path in p.y for y in path], dtype=np.uint16))


def native(p: Problem, all_pairs: bool = False) -> Native:
    """Encode sentences with real-valued attributes as dicts. The features are the observed ones or all."""
    (vocabulary, data), (A, L, _) = encode(p), p.shape
    layout = _core.Layout.build(data, len(vocabulary), L, all_pairs=all_pairs)
    a = layout.arrays()
    ids = np.array([int(vocabulary.text(i)) for i in range(len(vocabulary))], dtype=int)
    base = A * L

    def rows(pointer: np.ndarray) -> np.ndarray:
        return ids[np.repeat(np.arange(len(ids)), np.diff(pointer.astype(int)))]

    parts = [
        rows(a["node_ptr"]) * L + a["node_label"],
        base + a["edges"],
        base + L * L + a["starts"],
        base + L * L + L + a["ends"],
    ]
    if len(a["pair_ptr"]):
        parts.append(base + L * L + 2 * L + rows(a["pair_ptr"]) * L * L + a["pair"])
    return Native(data, layout, np.concatenate(parts).astype(int))


def orders(p: Problem, epochs: int, seed: int) -> list[list[int]]:
    rng = np.random.default_rng(seed)
    return [rng.permutation(len(p.X)).tolist() for _ in range(epochs)]


def run(online: _core.Online, order: list[list[int]]) -> None:
    for epoch in order:
        online.epoch(np.array(epoch, dtype=np.uint32))


def close_the_gap(solver: Any, tol: float, most: int = 3000) -> dict[str, Any]:
    """Run epochs until the absolute gap is at most `tol`."""
    state: dict[str, Any] = {}
    for _ in range(most):
        state = solver.epoch()
        if state["primal"] - state["dual"] <= tol:
            break
    return state


def corpus(seed: int, labels: int, n: int = 30, longest: int = 6, attributes: int = 40) -> Problem:
    """Return a larger problem than hypothesis draws: rows and single cells, several lanes of labels."""
    rng = np.random.default_rng(seed)
    X = []
    for T in rng.integers(1, longest + 1, n):
        x = np.zeros((T, attributes))
        for t in range(T):
            x[t, np.unique(rng.zipf(1.4, 5) % attributes)] = 1
        X.append(x)
    y = [tuple(rng.integers(0, labels, len(x)).tolist()) for x in X]
    return Problem(model.Shape(attributes, labels), X, y)


KINDS: dict[str, dict[str, Any]] = {
    "perceptron": {},
    "mira": {"k": 1},
    "mira-5": {"k": 5},
    "mira-5-C": {"k": 5, "limit": 0.05},
    "pa-1": {"variant": 1, "limit": 0.1, "cost": "root"},
    "pa-2": {"variant": 2, "limit": 0.1, "cost": "zero_one"},
    "arow": {},
}


def learner(n: Native, name: str, **more: Any) -> _core.Online:
    return n.online(name.split("-")[0], **KINDS[name], **more)


def permutation(n: int, seed: int, epoch: int, shard: int = 0) -> list[int]:
    """Return the documented shuffling: Fisher-Yates with SplitMix64, seeded by (seed, epoch, shard)."""
    full = (1 << 64) - 1
    state = seed

    def draw() -> int:
        nonlocal state
        state = (state + 0x9E3779B97F4A7C15) & full
        z = state
        z = ((z ^ z >> 30) * 0xBF58476D1CE4E5B9) & full
        z = ((z ^ z >> 27) * 0x94D049BB133111EB) & full
        return z ^ z >> 31

    def below(m: int) -> int:
        while True:
            wide = draw() * m
            if wide & full >= (1 << 64) % m:
                return wide >> 64

    state = draw() ^ epoch
    state = draw() ^ shard
    order = list(range(n))
    for i in range(n - 1, 0, -1):
        j = below(i + 1)
        order[i], order[j] = order[j], order[i]
    return order


def ambiguous(ranked: list[tuple[float, chain.Path]], k: int) -> bool:
    """Return whether float32 might rank the k best differently."""
    values = [h for h, _ in ranked[: k + 1]]
    return any(a - b < 1e-3 for a, b in itertools.pairwise(values))


def reference_step(
    name: str, w: np.ndarray, d: np.ndarray, cost: np.ndarray, v: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return weights and variances after one step by the papers' formulas. Rows of d are the constraints."""
    if name.startswith("mira"):
        return mira.closest(w, d, cost, KINDS[name].get("limit")), v
    (d,), (cost,) = d, cost
    shortfall = max(0.0, cost - w @ d)
    if name == "pa-1":
        return w + min(0.1, shortfall / (d @ d)) * d, v
    if name == "pa-2":
        return w + shortfall / (d @ d + 1 / (2 * 0.1)) * d, v
    alpha = shortfall / (1.0 + d**2 @ v)
    return w + alpha * v * d, (1 / (1 / v + d**2 / 1.0) if shortfall else v)


#: Sums of integer attribute values times these are exact in float32, so weights match the reference to the bit.
EXACT_WEIGHTS = np.array([0.0, 0.5, 1.0, 2.0, 3.0, 0.25])


def weights_of(n: int) -> np.ndarray:
    """Return float32 weights of n sentences."""
    return np.resize(EXACT_WEIGHTS, n).astype(np.float32)

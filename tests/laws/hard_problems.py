"""Small problems on which certificates and optimisers could fail, with their optimum in double precision.

    python -m tests.laws.hard_problems 20

fits 20 seeds of every kind with every penalty and tolerance and prints the accuracy of certificates and objectives.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from tagwise import _core
from tagwise.learners import gradient
from tagwise.learners.loop import Result, Stopping
from tagwise.learners.problem import Problem

from .corpora import Corpus
from .reference.optimum import Paths, loss, newton, paths_of

KINDS = (
    "plain", "repeated 30", "repeated 300", "one token", "one label", "weights", "conflicting", "forbidden",
    "unseen label",
)  # fmt: skip
PENALTIES = (1.0, 0.1, 1e-2, 1e-3, 1e-4, 1e-5)
TOLERANCES = (1e-2, 1e-3, 1e-5, 1e-7, 1e-11)


class Hostile(NamedTuple):
    """A training set, and its distinct sentences with all of their paths."""

    problem: Problem
    sentences: list[Paths]
    size: int

    def objective(self, w: np.ndarray, l2: float) -> float:
        """Return the objective at `w` in double precision."""
        return loss(self.sentences, "log", w)[0] + l2 * float(w @ w)

    def optimum(self, l2: float) -> float:
        """Return the minimum of the objective."""
        return newton(self.sentences, "log", l2, self.size)[0]

    def fit(self, optimizer: str, l2: float, tol: float, max_iter: int = 3000) -> Result:
        """Return the result of an optimiser."""
        stopping = Stopping(max_iter, tol, 10, 0)
        start = np.zeros(self.size)
        return gradient.train(self.problem, start, stopping, optimizer=optimizer, l2=l2, n_jobs=1)


def draw(kind: str, seed: int) -> Hostile:
    """Draw a problem of a kind."""
    rng = np.random.default_rng(seed)
    labels = 1 if kind == "one label" else int(rng.integers(2, 4))
    seen = labels - 1 if kind == "unseen label" and labels > 2 else labels
    n, longest = int(rng.integers(1, 4)), 1 if kind == "one token" else 4
    names = [f"a{i}" for i in range(4)]
    lengths = rng.integers(1, longest + 1, n)
    nodes = [[sorted(rng.choice(names, 2, replace=False)) for _ in range(T)] for T in lengths]
    gold = [tuple(rng.integers(0, seen, T).tolist()) for T in lengths]
    if kind == "conflicting":
        nodes += nodes
        gold += [tuple(int(rng.integers(0, seen)) for _ in path) for path in gold]
    weights = 10.0 ** rng.uniform(-4, 4, len(gold)) if kind == "weights" else np.ones(len(gold))
    times = int(kind.split()[1]) if kind.startswith("repeated") else 1
    vocabulary = _core.Vocabulary()
    data = _core.encode_attributes(vocabulary, nodes * times)
    data = data.with_gold(np.array([y for path in gold * times for y in path], dtype=np.uint16))
    layout = _core.Layout.build(data, len(vocabulary), labels)
    X = [np.zeros((len(path), len(vocabulary))) for path in gold]
    for x, sentence in zip(X, nodes):
        for row, token in zip(x, sentence):
            row[[vocabulary.get(name) for name in token]] = 1.0
    places = np.array(Corpus(data, layout, X, [], gold, labels).places())
    pairs = {pair for path in gold for pair in pairwise(path)}
    others = [(a, b) for a in range(labels) for b in range(labels) if (a, b) not in pairs]
    forbidden = frozenset(others[::2] if kind == "forbidden" else [])
    sentences = [
        paths_of(x, path, labels, places, float(weight) * times, forbidden)
        for x, path, weight in zip(X, gold, weights)
    ]
    edges = np.array(sorted(a * labels + b for a, b in forbidden), dtype=np.uint32)
    problem = Problem(
        data, layout, sample_weight=np.tile(weights, times), forbidden=edges if len(edges) else None
    )
    return Hostile(problem, sentences, len(layout))


class Certified(NamedTuple):
    """An intermediate certificate compared with the exact values, relative to the optimum."""

    margin: float  # (P* - D) / P*
    primal: float  # reported P minus P in double precision
    gap: float  # (P - D) / P*
    distance: float  # (P - P*) / P* in double precision


def certificates(hostile: Hostile, l2: float, epochs: tuple[int, ...]) -> Iterator[Certified]:
    """Yield certificates after these epochs of dual ascent."""
    best = hostile.optimum(l2)
    ascent = hostile.problem.dual(l2)
    for epoch in range(max(epochs)):
        ascent.epoch(0, 1)
        if epoch + 1 in epochs:
            primal, dual = ascent.certificate(1)
            true, unit = hostile.objective(ascent.weights(), l2), max(best, 1e-12)
            yield Certified(
                (best - dual) / unit, (primal - true) / unit, (primal - dual) / unit, (true - best) / unit
            )


def main(seeds: int) -> None:
    """Print the errors of certificates, fits and objectives."""
    found = [
        one
        for kind in KINDS
        for seed in range(seeds)
        for l2 in PENALTIES
        for one in certificates(draw(kind, seed), l2, (1, 3, 10, 40))
    ]
    print(f"certificates: {len(found)}; D above P*: {sum(c.margin < 0.0 for c in found)}")
    print(f"  least P* - D {min(c.margin for c in found):.1e}, least P - D {min(c.gap for c in found):.1e}")
    print(f"  largest error of P {max(abs(c.primal) for c in found):.1e}")
    for optimizer in ("dual", "lbfgs", "cg"):
        fits = certified = wrong = 0
        worst = worst_tol = worst_value = 0.0
        for kind in KINDS:
            for seed in range(seeds):
                hostile = draw(kind, seed)
                for l2 in PENALTIES:
                    best = hostile.optimum(l2)
                    for tol in TOLERANCES if optimizer == "dual" else (1e-10,):
                        result = hostile.fit(optimizer, l2, tol)
                        w = result.weights.astype(np.float32).astype(np.float64)
                        true = hostile.objective(w, l2)
                        distance = (true - best) / max(best, 1e-12)
                        fits += 1
                        worst_value = max(worst_value, abs(result.objective - true) / max(true, 1e-12))
                        if "certified" in result.reason:
                            certified += 1
                            wrong += distance > tol
                            worst_tol = max(worst_tol, distance / tol)
                        if tol <= 1e-9:
                            worst = max(worst, distance)
        print(f"{optimizer}: {fits} fits, {certified} certified, {wrong} of them farther than tol")
        print(
            f"  largest distance over tol of these {worst_tol:.2g}; largest distance at tol <= 1e-9 {worst:.1e}"
        )
        print(f"  largest relative error of the objective reported {worst_value:.1e}")


if __name__ == "__main__":
    main(int(sys.argv[1]))

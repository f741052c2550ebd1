"""Decoding with hypothesised history (m, p) (online paper, section 3.2), and beam search for comparison.

A chart cell is the last m labels. Labels further back are read from the cell's own best path. `local(t, path,
y)` is the score that label y at t adds after the labels `path` of tokens 0..t-1.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import product
from typing import NamedTuple

import numpy as np

from . import mira
from .chain import Array, Path, Scores, edges
from .model import Shape, features, score_sentence

Local = Callable[[int, Path, int], float]


def decode(local: Local, T: int, L: int, m: int, k: int = 1) -> list[tuple[float, Path]]:
    """Return the k best paths found with cells of m labels, exact if `local` looks back at most m labels.

    Among equal scores the lower dropped label wins, then its better prefix, and at the end the lower last
    label.
    """
    cells: dict[Path, list[tuple[float, Path]]] = {(): [(0.0, ())]}
    for t in range(T):
        new: dict[Path, list[tuple[float, Path]]] = {}
        for y in range(L):
            for key in sorted(cells, key=lambda c: c[::-1]):
                reach = [(h + local(t, p, y), (*p, y)) for h, p in cells[key]]
                new.setdefault((*key, y)[-m:], []).extend(reach)
        cells = {key: _best(found, k) for key, found in new.items()}
    final = [entry for key in sorted(cells, key=lambda c: c[::-1]) for entry in cells[key]]
    return _best(final, k)


def beam(local: Local, T: int, L: int, width: int) -> list[tuple[float, Path]]:
    """Return the paths of a beam that keeps the `width` best prefixes at each token, for any last labels."""
    kept: list[tuple[float, Path]] = [(0.0, ())]
    for t in range(T):
        kept = _best([(h + local(t, p, y), (*p, y)) for y in range(L) for h, p in kept], width)
    return kept


def _best(paths: list[tuple[float, Path]], k: int) -> list[tuple[float, Path]]:
    return sorted(paths, key=lambda hp: -hp[0])[:k]  # stable: equals keep their order


def total(local: Local, path: Path) -> float:
    """Return the score of a whole path."""
    return sum(local(t, path[:t], y) for t, y in enumerate(path))


def enumerate_best(local: Local, T: int, L: int) -> float:
    """Return the best score over all L**T paths."""
    return max(total(local, p) for p in product(range(L), repeat=T))


def local_score(
    s: Scores,
    far: Mapping[int, Array] | None = None,
    repeated: Array | None = None,
    words: Sequence[str] = (),
    earlier: Sequence[tuple[str, int]] = (),
    tuples: Mapping[int, Array] | None = None,
) -> Local:
    """Return first-order scores plus the features on history.

    far[q] [L, L]: weight of (y_{t-q}, y_t) for q = 2..p. tuples[n] [L, ..., L]: weight of the n labels before
    y_t together with it. repeated [L, L]: weight of (y_u, y_t) for each earlier token u of the document with
    the same word. Inside the sentence its label comes from the path, and ``earlier`` holds the (word, decoded
    label) of the sentences before this one.
    """
    edge, T = edges(s), len(s.node)

    def local(t: int, path: Path, y: int) -> float:
        h = s.node[t, y] + (edge[t, path[-1], y] if path else s.start[y]) + (s.end[y] if t == T - 1 else 0.0)
        h += sum(weight[path[t - q], y] for q, weight in (far or {}).items() if t >= q)
        h += sum(weight[(*path[t - n :], y)] for n, weight in (tuples or {}).items() if t >= n)
        if repeated is not None:
            h += sum(repeated[label, y] for word, label in earlier if word == words[t])
            h += sum(repeated[path[u], y] for u in range(t) if words[u] == words[t])
        return float(h)

    return local


class Terms(NamedTuple):
    """Features on history: far[q] for q = 2..p, and repeated, in one flat vector.

    With ``endless`` labels further back than p are read too, through the table of p.
    """

    L: int
    p: int = 1
    document: bool = False
    endless: bool = False

    @property
    def size(self) -> int:
        return (self.p - 1 + self.document) * self.L**2

    def split(self, w: Array) -> tuple[dict[int, Array], Array | None]:
        tables = w.reshape(-1, self.L, self.L)
        furthest = 99 if self.endless else self.p
        far = {q: tables[min(q, self.p) - 2] for q in range(2, furthest + 1)}
        return far, tables[-1] if self.document else None

    def counts(self, path: Path, words: Sequence[str], earlier: Sequence[tuple[str, int]]) -> Array:
        """Return the number of occurrences of each feature along a path."""
        out = np.zeros((self.p - 1 + self.document, self.L, self.L))
        for t, y in enumerate(path):
            for q in range(2, (t if self.endless else min(self.p, t)) + 1):
                out[min(q, self.p) - 2, path[t - q], y] += 1
            if self.document:
                before = [label for word, label in earlier if word == words[t]]
                for label in before + [path[u] for u in range(t) if words[u] == words[t]]:
                    out[-1, label, y] += 1
        return out.ravel()


def train(
    X: Sequence[Array],
    y: Sequence[Path],
    words: Sequence[Sequence[str]],
    documents: Sequence[Sequence[int]],
    shape: Shape,
    terms: Terms,
    m: int,
    epochs: int,
    mask: Array,
    k: int = 0,
    weight: Sequence[float] | None = None,
) -> tuple[Array, Array]:
    """Perceptron (k = 0) or k-best MIRA with Hamming cost, documents in order, each with its decoded labels.

    Weights are those of the first order, then those of the terms. Returns last and averaged weights.
    ``weight`` [N] multiplies the step of each sentence. Its document remembers the decoded labels for any
    weight.
    """
    weight = [1.0] * len(X) if weight is None else weight
    w, total, steps = np.zeros(shape.size + terms.size), np.zeros(shape.size + terms.size), 0
    mask = np.concatenate([mask, np.ones(terms.size)])
    for _ in range(epochs):
        for document in documents:
            earlier: list[tuple[str, int]] = []
            for i in document:
                far, repeated = terms.split(w[shape.size :])
                first = score_sentence(w[: shape.size], X[i], shape)
                local = local_score(first, far, repeated, words[i], earlier)
                guesses = [path for _, path in decode(local, len(X[i]), shape.labels, m, max(k, 1))]

                def vector(path: Path, i: int = i, earlier: list[tuple[str, int]] = earlier) -> Array:
                    more = terms.counts(path, words[i], earlier)
                    return np.concatenate([features(X[i], path, shape), more])

                wrong = [path for path in guesses if path != y[i]]
                if wrong:
                    d = np.array([vector(y[i]) - vector(path) for path in wrong]) * mask
                    cost = np.array([float(sum(a != b for a, b in zip(y[i], path))) for path in wrong])
                    step = d[0] if k == 0 else mira.closest(w, d, cost) - w
                    w = w + weight[i] * step
                earlier += list(zip(words[i], guesses[0]))
                total, steps = total + w, steps + 1
    return w, total / max(steps, 1)

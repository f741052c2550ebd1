"""Random corpora with their feature layouts, in the core's form and as dense matrices."""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

import numpy as np

from tagwise import _core

from .reference import chain, losses, model, scores
from .strategies import Chain


def fold(c: Chain) -> tuple[np.ndarray, np.ndarray]:
    """Fold start and end scores into the first and last node scores, as the core's primitives expect."""
    node = c.scores.node.copy()
    node[0] += c.scores.start
    node[-1] += c.scores.end
    return node, c.scores.edge.copy()


class Corpus(NamedTuple):
    """A random training set in the form of the core and of the reference implementations."""

    data: _core.Dataset
    layout: _core.Layout
    X: list[np.ndarray]  # each [T, A], node attributes
    E: list[np.ndarray]  # each [T, A], edge attributes
    gold: list[tuple[int, ...]]
    labels: int

    def places(self) -> tuple[np.ndarray, ...]:
        """Return the index of each engine feature in the reference flat vector (model.Shape's order)."""
        a, A, L = self.layout.arrays(), self.layout.n_attributes, self.labels
        owner = np.repeat(np.arange(A), np.diff(a["node_ptr"].astype(int)))
        begin = np.cumsum([0, A * L, L * L, L, L])
        parts = [owner * L + a["node_label"], a["edges"], a["starts"], a["ends"]]
        if len(a["pair_ptr"]):
            parts.append(np.repeat(np.arange(A), np.diff(a["pair_ptr"].astype(int))) * L * L + a["pair"])
        return tuple(np.concatenate([b + p.astype(int) for b, p in zip(begin, parts)]))

    def split(self, w: np.ndarray) -> tuple[np.ndarray, ...]:
        """Return engine weights as node [A, L], transition [L, L], start [L], end [L], edge attributes [A, L, L]."""
        shape = model.Shape(self.layout.n_attributes, self.labels, True)
        flat = np.zeros(shape.size)
        flat[list(self.places())] = w
        return model.split(flat, shape)

    def scores(self, w: np.ndarray) -> list[chain.Scores]:
        """Return the reference scores of every sentence."""
        node, move, start, end, pair = self.split(w)
        edges = [move + np.einsum("ta,ayz->tyz", e, pair) for e in self.E]
        return [scores(x @ node, edge, start, end) for x, edge in zip(self.X, edges)]

    def pull_back(self, i: int, g: chain.Scores) -> np.ndarray:
        """Map a gradient in sentence i's scores to the gradient of the engine's features."""
        pair = np.einsum("ta,tyz->ayz", self.E[i], g.edge)
        parts = (self.X[i].T @ g.node, g.edge.sum(axis=0), g.start, g.end, pair)
        return np.concatenate([p.ravel() for p in parts])[list(self.places())]


def random_corpus(
    seed: int,
    labels: int,
    n: int = 40,
    longest: int = 9,
    valued: bool = False,
    edge_attributes: bool = False,
    **choice: bool,
) -> Corpus:
    """Draw attributes with a long tail, so that some are frequent and many are rare."""
    rng = np.random.default_rng(seed)
    lengths = rng.integers(1, longest + 1, n)

    def draw(kinds: int, name: str) -> list[list[dict[str, float]]]:
        return [
            [
                {
                    f"{name}{i}": float(np.float32(rng.uniform(-2, 2))) if valued else 1.0
                    for i in np.unique(rng.zipf(1.3, 6) % kinds)
                }
                for _ in range(T)
            ]
            for T in lengths
        ]

    nodes, pairs = draw(60, "a"), draw(4, "e")
    gold = [tuple(rng.integers(0, labels, T).tolist()) for T in lengths]
    vocabulary = _core.Vocabulary()
    if edge_attributes:
        data = _core.encode_attributes(vocabulary, nodes, pairs)
    elif valued:
        data = _core.encode_attributes(vocabulary, nodes)
    else:
        data = _core.encode_attributes(vocabulary, [[list(token) for token in s] for s in nodes])
    data = data.with_gold(np.array([y for path in gold for y in path], dtype=np.uint16))

    def dense(sentences: list[list[dict[str, float]]]) -> list[np.ndarray]:
        out = [np.zeros((T, len(vocabulary))) for T in lengths]
        for x, sentence in zip(out, sentences):
            for row, token in zip(x, sentence):
                for name, value in token.items():
                    row[vocabulary.get(name)] = value
        return out

    layout = _core.Layout.build(data, len(vocabulary), labels, **choice)
    empty = [np.zeros((T, len(vocabulary))) for T in lengths]
    return Corpus(data, layout, dense(nodes), dense(pairs) if edge_attributes else empty, gold, labels)


def constraints(c: Corpus, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return random allowed sets [S, L], the set of each token, and forbidden edges. The gold paths stay valid."""
    rng = np.random.default_rng(seed)
    flat = np.array([y for path in c.gold for y in path])
    sets = rng.random((len(flat), c.labels)) < 0.7
    sets[np.arange(len(flat)), flat] = True
    forbidden = rng.random((c.labels, c.labels)) < 0.15
    for path in c.gold:
        for a, b in pairwise(path):
            forbidden[a, b] = False
    return sets, np.arange(len(flat), dtype=np.uint32), forbidden


def lists(
    scorer: _core.Scorer, data: _core.Dataset, k: int, **more: object
) -> list[list[tuple[float, tuple]]]:
    """Return the k-best lists of a corpus, sentence by sentence."""
    counts, found, labels = scorer.kbest(data, k, **more)
    lengths = np.diff(data.offsets.astype(int))
    paths = np.split(labels, np.cumsum(np.repeat(lengths, counts))[:-1])
    ranked = [(float(s), tuple(int(y) for y in p)) for s, p in zip(found, paths)]
    ends = np.cumsum(counts)
    return [ranked[end - n : end] for n, end in zip(counts, ends)]


TWINS = losses.LOSSES

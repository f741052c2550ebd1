"""Corpora and reference implementations for tests of code paths, each forced on the same small input."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from tagwise import _core

from . import constructors
from .corpora import Corpus
from .reference import chain, losses, once, scores

KINDS = ("lists", "values", "edges")
RAGGED = tuple(map(int, "31052214613251243126013214215312231"))
LABELS = (1, 2, 3, 7, 8, 9, 15, 16, 17, 31, 32, 33, 48, 64, 65)
COUNTS = (1, 15, 16, 17, 33)

#: Code paths of an evaluation of the objective, in double precision and then in single precision.
DOUBLE = ("wide", "log", "log,slow", "log,alone,rows", "wide,chunks,rare,baseline")
SINGLE = (
    "", "alone", "sentence", "baseline,sentence", "chunks", "plain", "rows", "rare", "dense", "sparse", "avx2",
    "baseline", "baseline,rows,dense", "avx2,alone,rare", "baseline,alone,chunks,plain,rows", "baseline,alone,sparse",
)  # fmt: skip
#: Code paths of decoding.
DECODING = (
    "", "alone", "chunks", "noted", "sought", "table", "layout", "avx2", "baseline", "avx2,table,sought",
    "baseline,table,noted,alone", "baseline,table", "log", "log,slow", "handed",
)  # fmt: skip


#: Code paths of decoding with lists of transitions.
LISTED = ("", "sparse", "sparse,alone,table", "sparse,avx2", "sparse,baseline")


@contextmanager
def forced(code_path: str) -> Iterator[None]:
    """Force these code paths and reset the counters."""
    before = _core.force(code_path)
    _core.path_counts()
    try:
        yield
    finally:
        _core.force(before)


class Terms(NamedTuple):
    """Terms of the objective other than the data, in the form of the reference implementations."""

    loss: str = "log"
    weight: np.ndarray | None = None  # [N]
    sets: np.ndarray | None = None  # [tokens, L] allowed labels
    forbidden: np.ndarray | None = None  # [L, L]
    cost: np.ndarray | None = None  # [L, L]
    partial: np.ndarray | None = None  # [tokens, L] known labels
    once: tuple[np.ndarray, np.ndarray] | None = None

    def native(self) -> dict[str, Any]:
        """Return the terms in the core's form."""

        def support(sets: np.ndarray | None) -> tuple[np.ndarray, np.ndarray] | None:
            if sets is None:
                return None
            rows, of = np.unique(sets, axis=0, return_inverse=True)
            return rows, of.ravel().astype(np.uint32)

        return {
            "loss": self.loss,
            "sample_weight": self.weight,
            "allowed": support(self.sets),
            "forbidden": edges_of(self.forbidden),
            "cost": self.cost,
            "partial": support(self.partial),
            "once": self.once,
        }

    @property
    def scaled(self) -> bool:
        """Return whether single sentences can use scaled recursions in double precision."""
        return all(x is None for x in (self.cost, self.partial, self.once))


def edges_of(forbidden: np.ndarray | None) -> np.ndarray | None:
    """Return forbidden transitions in the core's form."""
    return None if forbidden is None else np.flatnonzero(forbidden.ravel()).astype(np.uint32)


def corpus(
    seed: int,
    labels: int,
    lengths: Sequence[int],
    kind: str = "lists",
    gold: Sequence[Sequence[int]] | None = None,
    **choice: bool,
) -> Corpus:
    """Return a random corpus. Words imply their classes, so rows are folded, and some tokens have an attribute twice.

    ``kind``: "lists" of names, "values" that are real and may be negative, or "edges", lists and edge
    attributes with values.
    """
    rng = np.random.default_rng(seed)
    nodes: list[list[list[tuple[str, float]]]] = []
    pairs: list[list[list[tuple[str, float]]]] = []
    for length in lengths:
        sentence = []
        for word in rng.zipf(1.5, length) % 30:
            names = [f"word {word}", f"class {word // 3}", "all", *(["some"] if rng.random() < 0.5 else [])]
            names += names[:1] if word % 4 == 3 and rng.random() < 0.5 else []
            sentence.append([(n, value(rng) if kind == "values" else 1.0) for n in names])
        nodes.append(sentence)
        pairs.append([[(f"e{rng.integers(3)}", value(rng))] for _ in range(length)])
    if gold is None:
        gold = [walk(rng, labels, length) for length in lengths]
    vocabulary = _core.Vocabulary()
    if kind == "values":
        data = _core.encode_attributes(vocabulary, [[summed(t) for t in s] for s in nodes])
    else:
        lists = [[[name for name, _ in token] for token in s] for s in nodes]
        more = [[dict(token) for token in s] for s in pairs] if kind == "edges" else None
        data = _core.encode_attributes(vocabulary, lists, more)
    data = data.with_gold(np.array([y for path in gold for y in path], dtype=np.uint16))

    def dense(sentences: list[list[list[tuple[str, float]]]]) -> list[np.ndarray]:
        out = [np.zeros((length, len(vocabulary))) for length in lengths]
        for x, sentence in zip(out, sentences):
            for row, token in zip(x, sentence):
                for name, number in summed(token).items():
                    row[vocabulary.get(name)] += number
        return out

    layout = _core.Layout.build(data, len(vocabulary), labels, **choice)
    none = [np.zeros((length, len(vocabulary))) for length in lengths]
    E = dense(pairs) if kind == "edges" else none
    return Corpus(data, layout, dense(nodes), E, [tuple(path) for path in gold], labels)


def never(labels: int) -> np.ndarray:
    """Return transitions [L, L] that no gold path has."""
    a, b = np.indices((labels, labels))
    return (a + 2 * b) % 5 == 3 if labels > 2 else np.zeros((labels, labels), dtype=bool)


def walk(rng: np.random.Generator, labels: int, length: int) -> list[int]:
    """Return a random path without the transitions of `never`."""
    path: list[int] = []
    for _ in range(length):
        successors = np.flatnonzero(~never(labels)[path[-1]]) if path else np.arange(labels)
        path.append(int(rng.choice(successors)))
    return path


def value(rng: np.random.Generator) -> float:
    """Return a real value, rounded to single precision."""
    return float(np.float32(rng.choice([-1.0, 0.0, 0.5, rng.uniform(-2, 2)])))


def summed(token: list[tuple[str, float]]) -> dict[str, float]:
    """Sum the values of an attribute that is named twice."""
    out: dict[str, float] = {}
    for name, number in token:
        out[name] = float(np.float32(out.get(name, 0.0) + number))
    return out


def grid(node: Any, edge: Any, gold: Sequence[int], copies: int = 1) -> tuple[Corpus, np.ndarray]:
    """Return a corpus of ``copies`` sentences with these scores, and the weights that give them."""
    node, edge = np.asarray(node, dtype=float), np.asarray(edge, dtype=float)
    T, L = node.shape
    vocabulary = _core.Vocabulary()
    X = [[[f"t{t}"] for t in range(T)]] * copies
    data = _core.encode_attributes(vocabulary, X).with_gold(np.array(list(gold) * copies, dtype=np.uint16))
    layout = _core.Layout.build(data, T, L, all_pairs=True, start_end=False)
    empty = np.zeros((T, T))
    c = Corpus(data, layout, [np.eye(T)] * copies, [empty] * copies, [tuple(gold)] * copies, L)
    return c, np.concatenate([node.ravel(), edge.ravel()])


def rules(c: Corpus, seed: int, share: float = 0.6) -> tuple[np.ndarray, np.ndarray]:
    """Return allowed labels [tokens, L] and forbidden transitions [L, L] that keep the gold paths valid."""
    rng = np.random.default_rng(seed)
    flat = np.array([y for path in c.gold for y in path], dtype=int)
    sets = rng.random((len(flat), c.labels)) < share
    sets[np.arange(len(flat)), flat] = True
    forbidden = never(c.labels) | (rng.random((c.labels, c.labels)) < 0.2)
    for path in c.gold:
        for a, b in pairwise(path):
            forbidden[a, b] = False
    return sets, forbidden


def limited(
    c: Corpus, w: np.ndarray, sets: np.ndarray | None, forbidden: np.ndarray | None
) -> list[chain.Scores]:
    """Return the reference scores of every sentence, with minus infinity for what the rules forbid."""
    bounds = pairwise(c.data.offsets.astype(int))
    return [
        scores(s.node, s.edge, s.start, s.end, None if sets is None else sets[a:b], forbidden)
        for s, (a, b) in zip(c.scores(w), bounds)
    ]


def reference_loss(c: Corpus, w: np.ndarray, terms: Terms) -> tuple[float, np.ndarray]:
    """Return loss and gradient, sentence by sentence in double precision."""
    total, gradient = 0.0, np.zeros(len(c.layout))
    bounds = list(pairwise(c.data.offsets.astype(int)))
    for i, (s, y) in enumerate(zip(limited(c, w, terms.sets, terms.forbidden), c.gold)):
        weight = 1.0 if terms.weight is None else float(terms.weight[i])
        if not y or not weight:
            continue
        if terms.cost is not None:
            s = s._replace(node=s.node + terms.cost[list(y)])
        if terms.partial is not None:
            number, g = losses.partial_log_loss(s, terms.partial[slice(*bounds[i])], weight)
        elif terms.once is not None:
            number, g = once.log_loss(s, y, *terms.once)
            factor = weight * (float(np.exp(number)) if terms.loss == "exp" else 1.0)
            number = factor - weight if terms.loss == "exp" else weight * number
            g = chain.Scores(*(factor * part for part in g))
        else:
            number, g = losses.LOSSES[terms.loss](s, y, weight)
        total += number
        gradient += c.pull_back(i, g)
    return total, gradient


def evaluate(
    c: Corpus, w: np.ndarray, terms: Terms, code_path: str, n_jobs: int = 1
) -> tuple[float, np.ndarray, dict[str, int]]:
    """Return loss, gradient and the code paths taken, under forced code paths."""
    with forced(code_path):
        gradient = np.full(len(c.layout), np.nan)
        number = constructors.objective(c.data, c.layout, **terms.native()).evaluate(w, gradient, n_jobs)
        return number, gradient, _core.path_counts()

"""A bag of sentences: any of them any number of times, over one vocabulary and one layout of features."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from typing import Any

import numpy as np

from tagwise import _core

#: A transition that no gold path of a bag takes. Its score selects the numeric code path of the sentences.
UNUSED = (0, 1)
#: Score of that transition by code path. Spans of 56 (float32) and 230 (double) are the bounds.
SCORES = {"float32": 0.0, "wide": -130.0, "log space": -400.0, "flagged": -50.0, "long": 0.0}


class Bag:
    """Random sentences with a long tail of attributes, with options for their tokens.

    ``path`` names the code path. "flagged" gives every third sentence two tokens that only the unused transition
    joins, so that float32 underflows in that sentence alone. "long" makes the first one longer than 1,000 tokens.
    """

    def __init__(
        self, seed: int, labels: int = 3, n: int = 9, path: str = "float32", edge_attributes: bool = False
    ) -> None:
        rng = np.random.default_rng(seed)
        self.n, self.labels, self.path = n, labels, path
        lengths = rng.integers(2, 7, n)
        if path == "long":
            lengths[0] = 1100
        self.nodes: list[list[dict[str, float]]] = []
        self.pairs: list[list[dict[str, float]]] = []
        self.gold: list[list[int]] = []
        for i, length in enumerate(lengths):
            x = [{f"a{j}": float(rng.integers(1, 3)) for j in rng.zipf(1.4, 3) % 12} for _ in range(length)]
            if path == "flagged" and i % 3 == 0:
                x[0]["force 0"] = x[1]["force 1"] = 1.0
            if i == 0:
                x[0]["first alone"] = 1.0
            self.nodes.append(x)
            self.pairs.append([{f"e{j}": 1.0 for j in rng.integers(0, 3, 2)} for _ in range(length)])
            self.gold.append(self._gold(rng, int(length)))
        self.edge_attributes = edge_attributes
        self.sets = [
            rng.random((length, labels)) < 0.6 for length in lengths
        ]  # each contains the gold labels
        for allowed, y in zip(self.sets, self.gold):
            allowed[np.arange(len(y)), y] = True
        self.vocabulary = _core.Vocabulary()
        _core.encode_attributes(self.vocabulary, self.nodes, self.pairs if edge_attributes else None)
        self.vocabulary.lock()
        self.everyone = np.arange(n)
        self.layout = _core.Layout.build(
            self.data(self.everyone), len(self.vocabulary), labels, all_pairs=True
        )

    def _gold(self, rng: np.random.Generator, length: int) -> list[int]:
        """Return labels without the unused transition, the last label in at most one span."""
        last, out, ended = self.labels - 1, [int(rng.integers(0, self.labels))], False
        while len(out) < length:
            y = int(rng.integers(0, self.labels))
            if (out[-1], y) != UNUSED and not (y == last and ended):
                ended |= out[-1] == last and y != last
                out.append(y)
        return out

    def data(self, which: Iterable[int]) -> _core.Dataset:
        """Return the sentences of ``which``, in its order."""
        which = [int(i) for i in which]
        nodes, pairs = [self.nodes[i] for i in which], [self.pairs[i] for i in which]
        data = _core.encode_attributes(self.vocabulary, nodes, pairs if self.edge_attributes else None)
        return data.with_gold(np.array([y for i in which for y in self.gold[i]], dtype=np.uint16))

    def support(self, which: Iterable[int]) -> tuple[np.ndarray, np.ndarray]:
        """Return their sets of labels in the core's form."""
        flat = np.concatenate([self.sets[int(i)] for i in which])
        return np.ascontiguousarray(flat), np.arange(len(flat), dtype=np.uint32)

    @property
    def forbidden(self) -> np.ndarray:
        """Return a transition that no gold path takes, other than the unused one if possible."""
        taken = {pair for y in self.gold for pair in pairwise(y)} | {UNUSED}
        free = [a * self.labels + b for a in range(self.labels) for b in range(self.labels)]
        free = [e for e in free if (e // self.labels, e % self.labels) not in taken]
        return np.array(free[:1] or [UNUSED[0] * self.labels + UNUSED[1]], dtype=np.uint32)

    @property
    def once(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the constraint that the last label forms at most one span."""
        group = np.full(self.labels, 2**32 - 1, dtype=np.uint32)
        group[-1] = 0
        begins = np.zeros((self.labels + 1, self.labels), dtype=np.bool_)
        begins[:, -1] = True
        begins[self.labels - 1, -1] = False
        return group, begins

    def options(self, option: str, which: Iterable[int]) -> dict[str, Any]:
        """Return the options of an objective over these sentences."""
        if option == "limits":
            return {"allowed": self.support(which), "forbidden": self.forbidden}
        if option == "partial":
            return {"partial": self.support(which)}
        if option == "cost":
            return {"cost": 1.5 - 1.5 * np.eye(self.labels)}
        return {"once": self.once} if option == "once" else {}

    def weights(self, seed: int, size: float = 1.0) -> np.ndarray:
        """Return a weight vector at which the sentences take the bag's code path: [features]."""
        w = size * np.random.default_rng(seed).standard_normal(len(self.layout))
        arrays = self.layout.arrays()
        at = self.layout.n_node + np.flatnonzero(arrays["edges"] == UNUSED[0] * self.labels + UNUSED[1])
        w[at] = SCORES[self.path] or w[at]
        if self.path == "flagged":
            for y in UNUSED:
                first = int(arrays["node_ptr"][self.vocabulary.get(f"force {y}")])
                w[first : first + self.labels] = 0.0
                w[first + y] = 200.0
        return w


#: Sample weights of the first sentences of a bag: none, integers, shares, more than a stochastic step takes.
WEIGHTS = np.array([2.0, 0.0, 0.25, 1.0, 3.5, 0.0, 1e-3, 40.0, 0.7])
COUNTS = np.array([2, 0, 1, 3, 1, 2, 0, 1, 4])

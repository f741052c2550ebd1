"""The voters of a voted perceptron: weight vectors of training, each with the steps it survived.

Freund and Schapire 1999, Collins 2002: with w_1 .. w_n the weights after the steps of training and y(w) the best path
under w, the answer is argmax_y sum_j [y = y(w_j)]. Vectors that no step changed are kept once, with a count.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

import tagwise._core as _core
from tagwise.base.domains import DomainError
from tagwise.base.exceptions import ModelFileError
from tagwise.scores.protocols import Scorer

#: Label ids of all tokens under one scorer, one sentence after the other.
Search = Callable[[_core.Scorer], NDArray[np.uint16]]


@dataclass(frozen=True)
class Voters:
    """Weights [voters, features] over one layout, and how many votes each has [voters]."""

    layout: _core.Layout
    weights: NDArray[np.float32]
    counts: NDArray[np.uint32]
    forbidden: NDArray[np.uint32] | None = None

    @cached_property
    def scorers(self) -> list[_core.Scorer]:
        """One a voter, made when they are first asked."""
        return self.under(self.forbidden)

    def under(self, forbidden: NDArray[np.uint32] | None) -> list[_core.Scorer]:
        """The scorers where these pairs of labels are forbidden."""
        return [_core.Scorer(self.layout, w, forbidden) for w in self.weights]

    def paths(
        self, scorers: Sequence[_core.Scorer], search: Search, offsets: NDArray[np.uint64]
    ) -> NDArray[np.uint16]:
        """The path of each sentence that has most votes; of those that have as many, the one of lower labels."""
        bounds = (2 * offsets.astype(np.int64)).tolist()
        tallies: list[Counter[bytes]] = [Counter() for _ in bounds[1:]]
        for scorer, count in zip(scorers, self.counts.tolist()):
            found = search(scorer).astype(">u2").tobytes()  # so that bytes compare as labels do
            for tally, (begin, end) in zip(tallies, pairwise(bounds)):
                tally[found[begin:end]] += count
        best = (min(tally, key=lambda path: (-tally[path], path)) for tally in tallies)
        return np.frombuffer(b"".join(best), dtype=">u2").astype(np.uint16)

    def tokens(
        self, scorers: Sequence[_core.Scorer], search: Search, n_labels: int, n_tokens: int
    ) -> NDArray[np.uint16]:
        """The label of each token that has most votes, whatever the others take; ties to the lower label."""
        votes = np.zeros((n_tokens, n_labels), dtype=np.int64)
        for scorer, count in zip(scorers, self.counts.tolist()):
            votes[np.arange(n_tokens), search(scorer)] += count
        elected: NDArray[np.uint16] = votes.argmax(axis=1).astype(np.uint16)
        return elected

    def arrays(self) -> dict[str, NDArray[Any]]:
        """What a model keeps: float32 as the words they are."""
        flat = np.ascontiguousarray(self.weights, dtype=np.float32).ravel().view(np.uint32)
        return {"voters.weights": flat, "voters.counts": self.counts}

    @staticmethod
    def from_arrays(
        arrays: Mapping[str, NDArray[Any]], scorer: Scorer, forbidden: NDArray[np.uint32] | None
    ) -> Voters | None:
        """The voters in a model's arrays; None where there are none."""
        if "voters.counts" not in arrays:
            return None
        counts, flat = arrays["voters.counts"], arrays.get("voters.weights", np.zeros(0, np.uint32))
        if not len(counts) or len(flat) != len(counts) * len(scorer.layout) or not counts.all():
            raise ModelFileError(
                f"voters: expected {len(scorer.layout)} weights for each of one or more voters, all with votes; "
                f"found {len(flat)} weights and {len(counts)} voters"
            )
        weights = flat.astype(np.uint32).view(np.float32).reshape(len(counts), -1)
        return Voters(scorer.layout, weights, counts, forbidden)


class Ballot:
    """Voters as training goes on: of each epoch the weights after every `stride`-th step and after the last.

    Each stands for the steps since the one before, which is a sample of all steps at even distances, and all of them
    where the stride is 1.
    """

    def __init__(self, sentences: int, epochs: int, most: int) -> None:
        """`epochs` over so many sentences, after which there are `most` voters at most; one an epoch or more."""
        self.sentences = sentences
        self.stride = max(1, -(-sentences // max(1, most // epochs)))
        self.weights: list[NDArray[np.float32]] = []
        self.counts: list[int] = []
        self.epochs: list[int] = []

    def cast(self, weights: NDArray[np.float64], steps: int, epoch: int) -> None:
        """The weights now, for so many steps of an epoch; none are kept twice in a row."""
        now = weights.astype(np.float32)
        if self.weights and self.epochs[-1] == epoch and np.array_equal(self.weights[-1], now):
            self.counts[-1] += steps
            return
        self.weights.append(now)
        self.counts.append(steps)
        self.epochs.append(epoch)

    def keep(self, epochs: int) -> None:
        """The voters of the first so many epochs alone."""
        n = sum(epoch <= epochs for epoch in self.epochs)
        del self.weights[n:], self.counts[n:], self.epochs[n:]

    def state(self) -> dict[str, Any]:
        """What to go on from."""
        weights = np.concatenate([np.zeros(0, np.float32), *self.weights])
        return {"weights": weights, "counts": list(self.counts), "epochs": list(self.epochs)}

    def restore(self, state: Mapping[str, Any], n_weights: int) -> None:
        """Go on from a state of voters with so many weights each."""
        n = len(state["counts"])
        if len(state["epochs"]) != n or len(state["weights"]) != n * n_weights:
            raise DomainError(f"ballot: expected {n_weights:,} weights and an epoch for each of {n} voters")
        self.weights = list(state["weights"].reshape(n, n_weights))
        self.counts, self.epochs = list(state["counts"]), list(state["epochs"])

    def arrays(self) -> dict[str, NDArray[Any]]:
        """The voters as a model keeps them; nothing before the first."""
        if not self.counts:
            return {}
        weights = np.concatenate(self.weights).view(np.uint32)
        return {"voters.weights": weights, "voters.counts": np.array(self.counts, dtype=np.uint32)}

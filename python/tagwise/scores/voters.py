"""Voters of a voted perceptron: weight vectors of training, each with the number of steps that it survived.

With w_1 .. w_n the weights after the steps of training and y(w) the best path under w, the prediction is
argmax_y sum_j [y = y(w_j)] (Freund and Schapire 1999; Collins 2002). Repeated vectors are stored once, with a count.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

import tagwise._core as _core
from tagwise.base.cached import cached
from tagwise.base.domains import DomainError
from tagwise.base.exceptions import ModelFileError
from tagwise.scores.protocols import Scorer

#: Function that returns the label ids of all tokens under a scorer.
Search = Callable[[_core.Scorer], NDArray[np.uint16]]


@dataclass(frozen=True)
class Voters:
    """Weights [voters, features] over one layout, and the number of votes of each [voters]."""

    layout: _core.Layout
    weights: NDArray[np.float32]
    counts: NDArray[np.uint32]
    forbidden: NDArray[np.uint32] | None = None

    @property
    @cached
    def scorers(self) -> list[_core.Scorer]:
        """One scorer per voter."""
        return self.under(self.forbidden)

    def under(self, forbidden: NDArray[np.uint32] | None) -> list[_core.Scorer]:
        """Return the scorers with these label pairs forbidden."""
        return [_core.Scorer(self.layout, w, forbidden) for w in self.weights]

    def paths(
        self, scorers: Sequence[_core.Scorer], search: Search, offsets: NDArray[np.uint64]
    ) -> NDArray[np.uint16]:
        """Return the path of each sentence with the most votes. Ties go to lower labels."""
        bounds = (2 * offsets.astype(np.int64)).tolist()
        tallies: list[Counter[bytes]] = [Counter() for _ in bounds[1:]]
        for scorer, count in zip(scorers, self.counts.tolist()):
            found = search(scorer).astype(">u2").tobytes()  # big-endian, so that bytes sort like labels
            for tally, (begin, end) in zip(tallies, pairwise(bounds)):
                tally[found[begin:end]] += count
        best = (min(tally, key=lambda path: (-tally[path], path)) for tally in tallies)
        return np.frombuffer(b"".join(best), dtype=">u2").astype(np.uint16)

    def tokens(
        self, scorers: Sequence[_core.Scorer], search: Search, n_labels: int, n_tokens: int
    ) -> NDArray[np.uint16]:
        """Return the label of each token with the most votes, each token separately. Ties go to the lower label."""
        votes = np.zeros((n_tokens, n_labels), dtype=np.int64)
        for scorer, count in zip(scorers, self.counts.tolist()):
            votes[np.arange(n_tokens), search(scorer)] += count
        elected: NDArray[np.uint16] = votes.argmax(axis=1).astype(np.uint16)
        return elected

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return the arrays for a model, with float32 stored as uint32."""
        flat = np.ascontiguousarray(self.weights, dtype=np.float32).ravel().view(np.uint32)
        return {"voters.weights": flat, "voters.counts": self.counts}

    @staticmethod
    def from_arrays(
        arrays: Mapping[str, NDArray[Any]], scorer: Scorer, forbidden: NDArray[np.uint32] | None
    ) -> Voters | None:
        """Return the voters in the arrays of a model, or None."""
        if "voters.counts" not in arrays:
            return None
        counts, flat = arrays["voters.counts"], arrays.get("voters.weights", np.zeros(0, np.uint32))
        if not len(counts) or len(flat) != len(counts) * len(scorer.layout) or not counts.all():
            raise ModelFileError(
                f"voters: expected {len(scorer.layout)} weights for each of one or more voters, all with votes, "
                f"found {len(flat)} weights and {len(counts)} voters"
            )
        weights = flat.astype(np.uint32).view(np.float32).reshape(len(counts), -1)
        return Voters(scorer.layout, weights, counts, forbidden)


class Ballot:
    """Voters collected during training: in each epoch the weights after every `stride`-th step and after the last.

    Each one counts for the steps since the one before. That is an evenly spaced sample of all steps, or all of them if
    the stride is 1.
    """

    def __init__(self, sentences: int, epochs: int, most: int) -> None:
        """Prepare for `epochs` epochs over `sentences` sentences with at most `most` voters, at least one per epoch."""
        self.sentences = sentences
        self.stride = max(1, -(-sentences // max(1, most // epochs)))
        self.weights: list[NDArray[np.float32]] = []
        self.counts: list[int] = []
        self.epochs: list[int] = []

    def cast(self, weights: NDArray[np.float64], steps: int, epoch: int) -> None:
        """Add the current weights for a number of steps of an epoch. Equal successive weights are stored once."""
        now = weights.astype(np.float32)
        if self.weights and self.epochs[-1] == epoch and np.array_equal(self.weights[-1], now):
            self.counts[-1] += steps
            return
        self.weights.append(now)
        self.counts.append(steps)
        self.epochs.append(epoch)

    def keep(self, epochs: int) -> None:
        """Drop the voters after the first `epochs` epochs."""
        n = sum(epoch <= epochs for epoch in self.epochs)
        del self.weights[n:], self.counts[n:], self.epochs[n:]

    def state(self) -> dict[str, Any]:
        """Return the state to resume from."""
        weights = np.concatenate([np.zeros(0, np.float32), *self.weights])
        return {"weights": weights, "counts": list(self.counts), "epochs": list(self.epochs)}

    def restore(self, state: Mapping[str, Any], n_weights: int) -> None:
        """Resume from a state of voters with `n_weights` weights each."""
        n = len(state["counts"])
        if len(state["epochs"]) != n or len(state["weights"]) != n * n_weights:
            raise DomainError(f"ballot: expected {n_weights:,} weights and an epoch for each of {n} voters")
        self.weights = list(state["weights"].reshape(n, n_weights))
        self.counts, self.epochs = list(state["counts"]), list(state["epochs"])

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return the arrays of the voters for a model, empty before the first voter."""
        if not self.counts:
            return {}
        weights = np.concatenate(self.weights).view(np.uint32)
        return {"voters.weights": weights, "voters.counts": np.array(self.counts, dtype=np.uint32)}

"""Best paths with another label at a token, for all tokens of a sentence, by one Viterbi pass in each direction.

With node scores n_t(v) and edge scores e_t(u, v) of the step into token t, let

    a_t(v) = n_t(v) + max_u [a_{t-1}(u) + e_t(u, v)]                    the best path up to t that ends in v
    b_t(v) = max_u [e_{t+1}(v, u) + n_{t+1}(u) + b_{t+1}(u)]            the best continuation after v

Then max_u [a_{t-1}(u) + e_t(u, v)] + n_t(v) + b_t(v) is the score of the best path with v at t. That path leaves the
best path of the sentence around t and returns to it: once both agree at a token, they agree from there on, because a
best path consists of best paths. Only this detour is kept, so all tokens together take tokens x labels^2 steps.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

import tagwise._core as _core

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]


class Detour(NamedTuple):
    """Part in which another path differs from the best one: its labels from token `begin` on."""

    begin: int
    labels: list[int]

    @staticmethod
    def between(path: Sequence[int], other: Sequence[int]) -> Detour:
        """Return the shortest part of `other` outside which it equals `path`."""
        differ = [t for t, (y, v) in enumerate(zip(path, other)) if y != v]
        return Detour(differ[0], list(other[differ[0] : differ[-1] + 1])) if differ else Detour(0, [])

    def label(self, path: Sequence[int], t: int) -> int:
        """Return the label of the other path at token t."""
        at = t - self.begin
        return self.labels[at] if 0 <= at < len(self.labels) else path[t]


class RunnersUp:
    """Best paths through each label of each token.

    Args:
        node: node scores [T, L].
        step: edge scores [L, L] of the step into a token; -inf forbids a pair.
        allowed: labels that a path may take at each token [T, L].
        free: labels that it may take at the token in question [T, L], a superset of `allowed`.
        path: the best path of the sentence.
    """

    def __init__(
        self, node: Floats, step: Callable[[int], Floats], allowed: Bools, free: Bools, path: Sequence[int]
    ) -> None:
        T, L = node.shape
        every = np.arange(L)
        inside = np.where(allowed, node, -np.inf)
        self.path = path
        self.through = np.where(free, node, -np.inf)  # [T, L] scores of the best paths through each label
        # Previous and next labels on these paths.
        self.before, self.after = np.zeros((2, T, L), dtype=np.uint16)
        # If the best path breaks the tag dictionary, a path that follows the dictionary does not return to it.
        self.rejoins = bool(allowed[np.arange(T), path].all())
        best = inside[0]
        for t in range(1, T):
            _core.Stop.check()
            into = best[:, None] + step(t)
            self.before[t] = into.argmax(axis=0)
            entering = into[self.before[t], every]
            self.through[t] += entering
            best = entering + inside[t]
        rest = np.zeros(L)
        for t in range(T - 2, -1, -1):
            _core.Stop.check()
            onward = step(t + 1) + (inside[t + 1] + rest)
            self.after[t] = onward.argmax(axis=1)
            rest = onward[every, self.after[t]]
            self.through[t] += rest

    def at(self, t: int) -> Detour | None:
        """Return the best path with another label at token t, or None if there is none."""
        scores = self.through[t].copy()
        scores[self.path[t]] = -np.inf
        label = int(scores.argmax())
        if scores[label] == -np.inf:
            return None
        left, right = [label], []
        for s in range(t, 0, -1):
            y = int(self.before[s, left[-1]])
            if self.rejoins and y == self.path[s - 1]:
                break
            left.append(y)
        for s in range(t, len(self.path) - 1):
            label = int(self.after[s, label])
            if self.rejoins and label == self.path[s + 1]:
                break
            right.append(label)
        return Detour(t - len(left) + 1, [*reversed(left), *right])

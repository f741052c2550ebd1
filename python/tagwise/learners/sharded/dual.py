"""Dual ascent over shards: rounds in which parts of them ascend at once, each by itself, and what they gain is added.

    D(q) = sum_i entropy(q_i) - l2 |w(q)|^2,    w(q) = 1/(2 l2) sum_i (F(y_i) - E_{q_i} F)

A part is the sentences of neighbouring shards, visited as those of a training set are, with a copy of the weights; its
dual point is its own. Parts that go the same way would take all of it at once, and K times too far together. So in each
of K parts the copy moves K times as far as the dual point says, and steps are found for that: |sum_k x_k|^2 <= K sum_k
|x_k|^2, hence D gains at least what the parts gain alone (CoCoA+ with gamma = 1, sigma' = K: Ma, Smith, Jaggi, Jordan,
Richtarik and Takac 2015). A core with l2 / K does just that. The true change is a K-th of what its copy moved by.

One part is the ascent of all sentences. More parts need more rounds. Their number is a parameter, so that whoever
ascends does not show. Shards of a part are joined, and not ascended in turn: the first of them would take all that the
others have in common with it, and give it back slowly. (Of conll2000, 5 shards in turn were at 1.6e-2 after 17 passes;
their sentences in any order need 7 for that.) The visits of an epoch come in sweeps, so that files are read in order.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

import tagwise._core as _core
from tagwise.base.parameters import cores
from tagwise.dataset.shards.reader import Shards
from tagwise.learners.sharded.held import Held, folder_of, ranges
from tagwise.learners.sums import Part, Tree, both, total_of
from tagwise.scores.protocols import Vector

#: Bytes that a dual ascent keeps for each attribute of each token, the dual point left out: measured on conll2002-es.
KEPT = 20
#: Numbers in a lane of the core.
LANE = 16
#: Sweeps over its sentences that the visits of an epoch come in: with a hundred passes bring as much as in any order,
#: with eight half of it.
SWEEPS = 100

#: A dual point: marginals, pair sums, numbers of each sentence.
Point = tuple[NDArray[np.float32], NDArray[np.float32], NDArray[np.float64]]


@dataclass(frozen=True)
class Climb:
    """How shards are ascended, in so many parts."""

    layout: _core.Layout
    l2: float
    n_parts: int = 1
    min_count: int = 1
    limits: Callable[[_core.Dataset], _core.Limits] | None = None

    def dual(self, shards: Shards, part: range) -> _core.Dual:
        """The ascent of a part, with weights that move as far as those of one of so many should."""
        data = _core.Dataset.joined([shards.dataset(k, self.min_count) for k in part])
        limits = None if self.limits is None else self.limits(data)
        return _core.Dual(data, self.layout, self.l2 / self.n_parts, limits=limits, sweeps=SWEEPS)

    def bytes_each(self, shards: Shards) -> float:
        """About what the ascent takes, an attribute of a token."""
        lanes = -(-self.layout.n_labels // LANE)
        point = 4 * LANE * lanes * shards.n_tokens + 4 * self.layout.n_edge * shards.n_sentences
        attributes: int = shards.manifest["node_attributes"]
        return KEPT + point / max(attributes, 1)


class Climbers:
    """Some of the parts, and their share of the dual point."""

    def __init__(self, shards: Shards, climb: Climb, numbers: range, memory: int | None = None) -> None:
        self.shards, self.climb, self.numbers = shards, climb, numbers
        self.parts = ranges(len(shards), climb.n_parts)
        here = range(self.parts[numbers.start].start, self.parts[numbers.stop - 1].stop)
        folder = folder_of(shards, here, memory, climb.bytes_each(shards))
        self._held = Held(lambda part: climb.dual(shards, self.parts[part]), numbers, folder, self._place)

    def _place(self, part: int, sentence: int) -> str:
        """File and line of a sentence of a part."""
        for k in self.parts[part]:
            if sentence < self.shards.sentences(k):
                return self.shards.place(k, sentence)
            sentence -= self.shards.sentences(k)
        raise IndexError(sentence)

    @property
    def paged(self) -> int:
        """Bytes that lie in files; 0 where all is held in memory."""
        return self._held.paged

    def round(self, part: int, w: Vector, seed: int, n_jobs: int) -> tuple[int, Part]:
        """An epoch of a part: tokens visited, and what the weights of all change by.

        Of the part, `value` is the sum of the distances that visits found, `largest` how many visits failed.
        """
        begin = np.asarray(w, dtype=np.float32).astype(np.float64)  # which is what the core keeps

        def epoch(part: int, core: _core.Dual) -> tuple[int, Part]:
            core.set_weights(begin)
            tokens, failed, distance = core.epoch(seed + part, n_jobs)
            change: Any = ((core.weights() - begin) / self.climb.n_parts).astype(np.float32)
            return tokens, Part(part, 0, distance, float(failed), change)

        return self._held.one(part, epoch)

    def terms(self, part: int, w: Vector, couples: bool, n_jobs: int) -> Part:
        """What a part adds to the certificate at the weights of all.

        `value` is the loss, `largest` the divergence, `gradient` what features have in the gold labels more than is
        expected, with `slack`. Without `couples`, the loss alone, in single precision.
        """

        def of(part: int, core: _core.Dual) -> Part:
            core.set_weights(np.asarray(w, dtype=np.float64))
            if not couples:
                return Part(part, 0, core.loss(n_jobs), 0.0, np.empty(0))
            loss, divergence, slack, observed = core.terms(n_jobs)
            return Part(part, 0, loss, divergence, observed, slack)

        return self._held.one(part, of)

    def points(self) -> list[Point]:
        """The dual points of these parts."""
        return list(self._held.each(lambda _, core: core.state()[1:4]))

    def restore(self, points: Sequence[Point], epochs: int) -> None:
        """Go on from such points."""

        def set_point(part: int, core: _core.Dual) -> None:
            core.restore(core.state()[0], *points[part - self.numbers.start], epochs)

        deque(self._held.each(set_point), 0)


class Climbing(Protocol):
    """Who ascends the parts: threads of this process, or workers of a cluster."""

    def round(self, w: Vector, seed: int, n_jobs: int, /) -> tuple[int, Iterable[Part]]:
        """Tokens that were visited, and parts in their order, added as far as they belong together."""

    def terms(self, w: Vector, couples: bool, n_jobs: int, /) -> Iterable[Part]:
        """The same of the certificate."""

    def points(self) -> list[Point]:
        """The dual points of all parts."""

    def restore(self, points: Sequence[Point], epochs: int, /) -> None:
        """Go on from such points."""

    def close(self) -> None:
        """Let go of what is held."""


class Here:
    """All parts in this process, by threads."""

    def __init__(self, shards: Shards, climb: Climb, memory: int | None = None) -> None:
        self.n = len(ranges(len(shards), climb.n_parts))
        self.climbers = Climbers(shards, climb, range(self.n), memory)

    def round(self, w: Vector, seed: int, n_jobs: int, /) -> tuple[int, list[Part]]:
        """Parts at once, each by one thread; one part by all of them."""
        if self.n == 1:
            tokens, part = self.climbers.round(0, w, seed, n_jobs)
            return tokens, [part]
        with ThreadPoolExecutor(n_jobs or cores(), thread_name_prefix="tagwise-part") as threads:
            found = list(threads.map(lambda part: self.climbers.round(part, w, seed, 1), range(self.n)))
        return sum(tokens for tokens, _ in found), [part for _, part in found]

    def terms(self, w: Vector, couples: bool, n_jobs: int, /) -> list[Part]:
        """One part after the other."""
        return [self.climbers.terms(part, w, couples, n_jobs) for part in range(self.n)]

    def points(self) -> list[Point]:
        """The dual points of all parts."""
        return self.climbers.points()

    def restore(self, points: Sequence[Point], epochs: int, /) -> None:
        """Go on from such points."""
        self.climbers.restore(points, epochs)

    def close(self) -> None:
        """Let go of what is held."""
        del self.climbers


def added(parts: Iterable[Part]) -> list[Part]:
    """Parts in their order, added as far as they belong together."""
    tree = Tree(both)
    for part in parts:
        tree.push(part)
    return tree.parts


class DualShards:
    """The ascent of all shards: what `_core.Dual` is for a dataset."""

    def __init__(self, climb: Climb, climbing: Climbing) -> None:
        self.climb, self.climbing = climb, climbing
        self.epochs = 0  # rounds so far
        self._w: Vector = np.zeros(len(climb.layout))

    def epoch(self, seed: int = 0, n_jobs: int = 0) -> tuple[int, int, float]:
        """One round: tokens visited, visits that float32 could not do, sum of the distances that the visits found."""
        tokens, parts = self.climbing.round(self._w, seed, n_jobs)
        total = total_of(parts, both)
        # As the parts keep them: P is that of these weights.
        self._w = (self._w + total.gradient).astype(np.float32).astype(np.float64)
        self.epochs += 1
        return tokens, int(total.largest), total.value

    def primal(self, n_jobs: int = 0) -> float:
        """The primal of the weights now in single precision; NaN if a sentence is out of range."""
        loss = total_of(self.climbing.terms(self._w, False, n_jobs), both).value
        return loss + self.climb.l2 * _core.dot(self._w, self._w, n_jobs)

    def certificate(self, n_jobs: int = 0) -> tuple[float, float]:
        """The primal of the weights now and a lower bound of all objectives, in double precision."""
        total = total_of(self.climbing.terms(self._w, True, n_jobs), both)
        terms = (total.value, total.largest, total.slack, total.gradient)
        return _core.dual_bounds(self._w, self.climb.l2, *terms)

    def weights(self) -> Vector:
        """The weights now."""
        return np.array(self._w)

    def state(self) -> tuple[Any, ...]:
        """What training can be resumed from, to the bit: marginals, pair sums and numbers are lists, one a part."""
        points = self.climbing.points()
        nodes, pairs, blocks = ([point[i] for point in points] for i in range(3))
        return self._w.copy(), nodes, pairs, blocks, self.epochs

    def restore(self, weights: Vector, nodes: Any, pairs: Any, blocks: Any, epochs: int) -> None:
        """Go on from a state."""
        self.climbing.restore(list(zip(nodes, pairs, blocks)), epochs)
        self._w, self.epochs = np.array(weights), epochs


__all__ = ["Climb", "Climbers", "Climbing", "DualShards", "Here", "Point", "added"]

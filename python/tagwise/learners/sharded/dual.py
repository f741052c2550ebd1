"""Dual ascent over shards, in rounds in which parts ascend in parallel and their updates are added.

    D(q) = sum_i entropy(q_i) - l2 |w(q)|^2,    w(q) = 1/(2 l2) sum_i (F(y_i) - E_{q_i} F)

A part has the sentences of neighbouring shards, a copy of the weights and a dual point of its own. K parts that move in
the same direction would together go K times too far. So the copy of each part moves K times as far as its dual point
implies, and steps are computed for that: |sum_k x_k|^2 <= K sum_k |x_k|^2, hence D gains at least the sum of the gains
of the parts (CoCoA+ with gamma = 1, sigma' = K: Ma, Smith, Jaggi, Jordan, Richtarik and Takac 2015). A core with l2 / K
does exactly this. The true change is a K-th of the change of the copy.

One part is the ascent of all sentences. More parts need more rounds. Their number is a parameter, so that the result
does not depend on the number of workers. The shards of a part are joined, not visited one after the other: the first
shard would take the whole change that it has in common with the others, and give it back slowly. (With 5 shards of
conll2000 one after the other, the gap was 1.6e-2 after 17 passes. Sentences in an arbitrary order need 7.) The visits
of an epoch are in sweeps, so that files are read in order.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import chain
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

import tagwise._core as _core
from tagwise.base.parameters import cores
from tagwise.dataset.shards.reader import Shards
from tagwise.learners.sharded.config import PartsBackend, ShardConfig
from tagwise.learners.sharded.engines import ShardEngines, paging_folder
from tagwise.learners.sums import PartialSum, added, summed, total_of
from tagwise.scores.protocols import Vector

#: Bytes per attribute of a token that a dual ascent needs, without the dual point (measured on conll2002-es).
BYTES_PER_ATTRIBUTE = 20
#: Numbers per lane of the core.
LANE = 16
#: Number of sweeps over the sentences in an epoch. With a hundred, a pass gains as much as in an arbitrary order, with
#: eight half of it.
SWEEPS = 100

#: Dual point: marginals, pair sums, numbers of each sentence.
Point = tuple[NDArray[np.float32], NDArray[np.float32], NDArray[np.float64]]


@dataclass(frozen=True)
class DualConfig(ShardConfig):
    """Config of dual ascent with this l2."""

    changes: ClassVar[tuple[str, ...]] = ("round", "restore")

    l2: float = 1.0

    def build_engine(self, shards: Shards, numbers: range, memory: int | None = None) -> PartSet:
        """Return the ascent of these parts."""
        return PartSet(shards, self, numbers, memory)

    def dual(self, shards: Shards, part: range, folder: str | None = None) -> _core.Dual:
        """Return the ascent of a part, whose weights move `n_parts` times as far as its dual point implies.

        With a folder, large arrays are in files there.
        """
        data = _core.Dataset.joined((shards.dataset(k, self.min_count) for k in part), folder)
        limits, l2 = self.limits(data), self.l2 / self.n_parts
        return _core.Dual(data, self.layout, l2, limits=limits, sweeps=SWEEPS, folder=folder)

    def bytes_each(self, shards: Shards) -> float:
        """Return the estimated bytes of the ascent per attribute of a token."""
        lanes = -(-self.layout.n_labels // LANE)
        point = 4 * LANE * lanes * shards.n_tokens + 4 * self.layout.n_edge * shards.n_sentences
        attributes: int = shards.manifest["node_attributes"]
        return BYTES_PER_ATTRIBUTE + point / max(attributes, 1)


class PartSet:
    """Some of the parts, with their dual points."""

    def __init__(self, shards: Shards, config: DualConfig, numbers: range, memory: int | None = None) -> None:
        self.shards, self.config, self.numbers = shards, config, numbers
        self.parts = config.parts(shards)
        here = range(self.parts[numbers.start].start, self.parts[numbers.stop - 1].stop)
        folder = paging_folder(shards, here, memory, config.bytes_each(shards))
        self._engines = ShardEngines(
            lambda part, folder: config.dual(shards, self.parts[part], folder), numbers, folder, self._place
        )

    def _place(self, part: int, sentence: int) -> str:
        """Return file and line of a sentence of a part."""
        for k in self.parts[part]:
            if sentence < self.shards.sentences(k):
                return self.shards.place(k, sentence)
            sentence -= self.shards.sentences(k)
        raise IndexError(sentence)

    @property
    def paged(self) -> int:
        """Number of bytes in files; 0 if everything is in memory."""
        return self._engines.paged

    def round(self, w: Vector, seed: int, n_jobs: int = 0) -> tuple[int, list[PartialSum]]:
        """Run an epoch of each part. Return the tokens visited and the changes of the weights.

        `value` of a part is the sum of the distances of its visits, `largest` the number of failed visits. Several
        parts ascend in parallel with one thread each, a single part with all threads.
        """
        begin = np.asarray(w, dtype=np.float32).astype(np.float64)  # the precision of the core
        threads = n_jobs if len(self.numbers) == 1 else 1

        def epoch(part: int, core: _core.Dual) -> tuple[int, PartialSum]:
            core.set_weights(begin)
            tokens, failed, distance = core.epoch(seed + part, threads)
            change: Any = ((core.weights() - begin) / self.config.n_parts).astype(np.float32)
            return tokens, PartialSum(part, 0, distance, float(failed), change)

        if len(self.numbers) == 1:
            found = [self._engines.one(self.numbers[0], epoch)]
        else:
            with ThreadPoolExecutor(n_jobs or cores(), thread_name_prefix="tagwise-part") as pool:
                found = list(pool.map(lambda part: self._engines.one(part, epoch), self.numbers))
        return sum(tokens for tokens, _ in found), added((part for _, part in found), summed)

    def terms(self, w: Vector, couples: bool, n_jobs: int = 0) -> list[PartialSum]:
        """Return the contributions of these parts to the certificate at the common weights.

        `value` is the loss, `largest` the divergence, and `gradient` the observed minus the expected features, with
        `slack`. Without `couples`, only the loss is computed, in single precision.
        """

        def of(part: int, core: _core.Dual) -> PartialSum:
            core.set_weights(np.asarray(w, dtype=np.float64))
            if not couples:
                return PartialSum(part, 0, core.loss(n_jobs), 0.0, np.empty(0))
            loss, divergence, slack, observed = core.terms(n_jobs)
            return PartialSum(part, 0, loss, divergence, observed, slack)

        return added(self._engines.each(of), summed)

    def points(self) -> list[Point]:
        """Return the dual points of these parts."""
        return list(self._engines.each(lambda _, core: core.state()[1:4]))

    def restore(self, points: Sequence[Point], epochs: int) -> None:
        """Continue from the dual points of all parts."""

        def set_point(part: int, core: _core.Dual) -> None:
            core.restore(core.state()[0], *points[part], epochs)

        deque(self._engines.each(set_point), 0)


class DualShards:
    """Ascent of all shards, with the interface of `_core.Dual`."""

    def __init__(self, config: DualConfig, parts: PartsBackend) -> None:
        self.config, self.parts = config, parts
        self.epochs = 0  # number of rounds so far
        self._w: Vector = np.zeros(len(config.layout))

    def epoch(self, seed: int = 0, n_jobs: int = 0) -> tuple[int, int, float]:
        """Run one round. Return the tokens visited, the visits that failed in float32, and the sum of the distances."""
        found = self.parts.call("round", self._w.astype(np.float32), seed, n_jobs=n_jobs)
        total = total_of(chain.from_iterable(parts for _, parts in found), summed)
        # In the precision of the parts, since P is that of these weights.
        self._w = (self._w + total.gradient).astype(np.float32).astype(np.float64)
        self.epochs += 1
        return sum(tokens for tokens, _ in found), int(total.largest), total.value

    def primal(self, n_jobs: int = 0) -> float:
        """Return the primal of the current weights in single precision, or NaN if a sentence is out of range."""
        return self._terms(False, n_jobs).value + self.config.l2 * _core.dot(self._w, self._w, n_jobs)

    def certificate(self, n_jobs: int = 0) -> tuple[float, float]:
        """Return the primal of the current weights and a lower bound of the optimum, in double precision."""
        total = self._terms(True, n_jobs)
        terms = (total.value, total.largest, total.slack, total.gradient)
        return _core.dual_bounds(self._w, self.config.l2, *terms)

    def _terms(self, couples: bool, n_jobs: int) -> PartialSum:
        found = self.parts.call("terms", self._w.astype(np.float32), couples, n_jobs=n_jobs)
        return total_of(chain.from_iterable(found), summed)

    def weights(self) -> Vector:
        """Return the current weights."""
        return np.array(self._w)

    def state(self) -> tuple[Any, ...]:
        """Return the state from which training resumes exactly. Dual points are lists with one entry per part."""
        points = list(chain.from_iterable(self.parts.call("points")))
        nodes, pairs, blocks = ([point[i] for point in points] for i in range(3))
        return self._w.copy(), nodes, pairs, blocks, self.epochs

    def restore(self, weights: Vector, nodes: Any, pairs: Any, blocks: Any, epochs: int) -> None:
        """Resume from a state."""
        self.parts.call("restore", list(zip(nodes, pairs, blocks)), epochs)
        self._w, self.epochs = np.array(weights), epochs

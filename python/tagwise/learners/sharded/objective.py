"""Objective of a corpus in shards: the sum over its shards, which are in memory or paged to disk."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import chain
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

import tagwise._core as _core
from tagwise.dataset.shards.reader import Shards
from tagwise.learners.sharded.config import PartsBackend, ShardConfig
from tagwise.learners.sharded.engines import ShardEngines, paging_folder
from tagwise.learners.sums import PartialSum, added, logarithmic, plain, total_of
from tagwise.scores.protocols import Vector

#: Name of a method of an objective.
Kind = Literal["value", "log_value", "precise_value"]


@dataclass(frozen=True)
class Steps:
    """Examples of a MEMM: every token separately, given the previous label (`dataset.layout.step_layout`)."""

    start_end: bool = True
    weights: NDArray[np.float64] | None = None  # weights of labels, [L]

    def of(
        self, data: _core.Dataset, layout: _core.Layout
    ) -> tuple[_core.Dataset, NDArray[np.float64] | None]:
        """Return the steps of sentences, and the weight of each of them."""
        labels = layout.n_labels
        steps = data.steps(layout.n_attributes - labels - 2, labels, self.start_end)
        return steps, None if self.weights is None else self.weights[data.gold]

    def counts(self, shards: Shards) -> NDArray[np.int64]:
        """Return the numbers of tokens after each label, of first and of last tokens: the attributes that steps add."""
        found = np.zeros(len(shards.labels) + 2, dtype=np.int64)
        for k in range(len(shards)):
            offsets, gold = shards.gold(k)
            bounds = offsets.astype(np.int64)
            full = np.diff(bounds) > 0
            last = np.zeros(len(gold), dtype=np.bool_)
            last[bounds[1:][full] - 1] = True
            found[:-2] += np.bincount(gold[~last], minlength=len(shards.labels))
            found[-2:] += full.sum() if self.start_end else 0
        return found


@dataclass(frozen=True)
class ObjectiveConfig(ShardConfig):
    """Config of the objective of shards. `layout` is that of chains, or of their `steps`."""

    unit: ClassVar[str] = "shards"

    loss: str = "log"
    cost: NDArray[np.float64] | None = None  # cost of each label, rows by right label, [L, L]
    steps: Steps | None = None

    def build_engine(self, shards: Shards, numbers: range, memory: int | None = None) -> ShardObjectives:
        """Return the objectives of these shards."""
        return ShardObjectives(shards, self, numbers, memory)

    def n_units(self, shards: Shards) -> int:
        """Return the number of shards."""
        return len(shards)

    def _of(self, shards: Shards, k: int) -> tuple[_core.Dataset, dict[str, Any]]:
        """Return the sentences of one shard, and the options of their objective."""
        data, weight = shards.dataset(k, self.min_count), None
        if self.steps is not None:
            data, weight = self.steps.of(data, self.layout)
        more = {"loss": self.loss, "sample_weight": weight, "limits": self.limits(data), "cost": self.cost}
        return data, more

    def objective(self, shards: Shards, k: int, folder: str | None = None) -> _core.Objective:
        """Return the objective of one shard, with large arrays in files of the folder if one is given."""
        data, more = self._of(shards, k)
        return _core.Objective(data, self.layout, **more, folder=folder)

    def total_loss(self, shards: Shards, k: int, w: Vector, n_jobs: int) -> float:
        """Return the loss of one shard in double precision."""
        data, more = self._of(shards, k)
        return _core.total_loss(data, self.layout, w, **more, n_jobs=n_jobs)


class ShardObjectives:
    """Objectives of some of the shards, evaluated one after the other."""

    def __init__(
        self, shards: Shards, config: ObjectiveConfig, numbers: range, memory: int | None = None
    ) -> None:
        folder = paging_folder(shards, numbers, memory)
        self._engines = ShardEngines(
            lambda k, folder: config.objective(shards, k, folder), numbers, folder, shards.place
        )

    @property
    def paged(self) -> int:
        """Number of bytes in files; 0 if everything is in memory."""
        return self._engines.paged

    def sums(self, w: Vector, kind: Kind, n_jobs: int = 0) -> list[PartialSum]:
        """Return the parts of the sum for these shards, with siblings added."""

        def part(k: int, objective: _core.Objective) -> PartialSum:
            gradient = np.empty(len(w))
            value, largest = getattr(objective, kind)(w, gradient, n_jobs)
            return PartialSum(k, 0, value, largest, gradient)

        return added(self._engines.each(part), _add(kind))


def _add(kind: Kind) -> Callable[[PartialSum, PartialSum], PartialSum]:
    return logarithmic if kind == "log_value" else plain


class OverShards:
    """Objective of all shards."""

    def __init__(self, parts: PartsBackend) -> None:
        self.parts = parts

    def value(self, w: Vector, gradient: Vector, n_jobs: int = 0, /) -> tuple[float, float]:
        """Return the loss at `w` and the maximum of the shards. The gradient is written in place."""
        return self._total(w, gradient, n_jobs, "value")

    def log_value(self, w: Vector, gradient: Vector, n_jobs: int = 0, /) -> tuple[float, float]:
        """Return `value` for the logarithm of the exponential loss."""
        return self._total(w, gradient, n_jobs, "log_value")

    def precise_value(self, w: Vector, gradient: Vector, n_jobs: int = 0, /) -> tuple[float, float]:
        """Return `value` in double precision."""
        return self._total(w, gradient, n_jobs, "precise_value")

    def _total(self, w: Vector, gradient: Vector, n_jobs: int, kind: Kind) -> tuple[float, float]:
        total = total_of(chain.from_iterable(self.parts.call("sums", w, kind, n_jobs=n_jobs)), _add(kind))
        gradient[:] = total.gradient
        return total.value, total.largest

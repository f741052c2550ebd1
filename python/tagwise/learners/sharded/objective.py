"""The objective of a corpus in shards, on this machine: those of its shards, held in memory or paged to disk."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

import tagwise._core as _core
from tagwise.dataset.shards.reader import Shards
from tagwise.learners.problem import ObjectiveMaker, Problem, scale_of
from tagwise.learners.sharded.dual import Climb, Climbing, DualShards
from tagwise.learners.sharded.held import Held, folder_of, ranges
from tagwise.learners.sums import Part, Tree, logarithmic, plain, total_of
from tagwise.scores.constraints import Constraints, boundary_support
from tagwise.scores.protocols import Objective, Vector


@dataclass(frozen=True)
class Rules:
    """What label sequences may be, whichever shard they are of."""

    constraints: Constraints
    labels: Sequence[str]

    @property
    def once(self) -> bool:
        """Whether there are labels that occur once."""
        return self.constraints.rules(self.labels).once is not None

    def limits(self, data: _core.Dataset) -> _core.Limits:
        """What the core is told about these sentences."""
        rules = self.constraints.rules(self.labels)
        forbidden = None if rules.pairs.all() else rules.forbidden
        return _core.Limits(forbidden, boundary_support(rules, data.offsets), rules.once)


@dataclass(frozen=True)
class Setting:
    """What the objective of a shard is made of beside its sentences: `layout` is of chains, or of their `steps`."""

    layout: _core.Layout
    loss: str = "log"
    min_count: int = 1
    cost: NDArray[np.float64] | None = None  # of a label where another is right, [L, L]
    rules: Rules | None = None
    steps: Steps | None = None

    def of(self, shards: Shards, k: int) -> tuple[_core.Dataset, dict[str, Any]]:
        """Sentences of one shard, and what the core is told about them."""
        data, weight = shards.dataset(k, self.min_count), None
        if self.steps is not None:
            data, weight = self.steps.of(data, self.layout)
        limits = None if self.rules is None else self.rules.limits(data)
        return data, {"loss": self.loss, "sample_weight": weight, "limits": limits, "cost": self.cost}

    def objective(self, shards: Shards, k: int) -> _core.Objective:
        """The objective of one shard."""
        data, more = self.of(shards, k)
        return _core.Objective(data, self.layout, **more)

    def total_loss(self, shards: Shards, k: int, w: Vector, n_jobs: int) -> float:
        """The loss of one shard in double precision."""
        data, more = self.of(shards, k)
        return _core.total_loss(data, self.layout, w, **more, n_jobs=n_jobs)


@dataclass(frozen=True)
class Steps:
    """Every token by itself, given the label before it: what a MEMM learns from (`dataset.layout.step_layout`)."""

    start_end: bool = True
    weights: NDArray[np.float64] | None = None  # of labels, [L]

    def of(
        self, data: _core.Dataset, layout: _core.Layout
    ) -> tuple[_core.Dataset, NDArray[np.float64] | None]:
        """The steps of sentences, and what each of them counts."""
        labels = layout.n_labels
        steps = data.steps(layout.n_attributes - labels - 2, labels, self.start_end)
        return steps, None if self.weights is None else self.weights[data.gold]

    def counts(self, shards: Shards) -> NDArray[np.int64]:
        """How many tokens stand behind each label, begin a sentence and end one: the attributes of steps alone."""
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


#: A method of an objective.
Kind = Literal["value", "log_value", "precise_value"]


class ShardObjectives:
    """Objectives of some of the shards, evaluated one after the other: parts of the sum over all."""

    def __init__(self, shards: Shards, setting: Setting, numbers: range, memory: int | None = None) -> None:
        self.shards, self.numbers = shards, numbers
        folder = folder_of(shards, numbers, memory)
        self._held = Held(lambda k: setting.objective(shards, k), numbers, folder, shards.place)

    @property
    def paged(self) -> int:
        """Bytes that lie in files; 0 where all is held in memory."""
        return self._held.paged

    def parts(self, w: Vector, n_jobs: int, kind: Kind) -> Iterator[Part]:
        """The parts of these shards, each by itself, in their order."""
        in_files = self.paged > 0

        def part(k: int, objective: _core.Objective) -> Part:
            gradient = np.empty(len(w))
            value, largest = getattr(objective, kind)(w, gradient, n_jobs)
            if in_files:
                objective.rest()
            return Part(k, 0, value, largest, gradient)

        return self._held.each(part)

    def sums(self, w: Vector, n_jobs: int, kind: Kind) -> list[Part]:
        """The parts of these shards, added as far as they belong together."""
        tree = Tree(logarithmic if kind == "log_value" else plain)
        for part in self.parts(w, n_jobs, kind):
            tree.push(part)
        return tree.parts


class OverShards:
    """The objective of all shards from a source of their parts."""

    def __init__(self, parts: Callable[[Vector, int, Kind], Any]) -> None:
        self._parts = parts

    def value(self, w: Vector, gradient: Vector, n_jobs: int = 0, /) -> tuple[float, float]:
        """Loss at `w`; the gradient is written in place."""
        return self._total(w, gradient, n_jobs, "value")

    def log_value(self, w: Vector, gradient: Vector, n_jobs: int = 0, /) -> tuple[float, float]:
        """The same of the logarithm of the exponential loss."""
        return self._total(w, gradient, n_jobs, "log_value")

    def precise_value(self, w: Vector, gradient: Vector, n_jobs: int = 0, /) -> tuple[float, float]:
        """`value` in double precision."""
        return self._total(w, gradient, n_jobs, "precise_value")

    def _total(self, w: Vector, gradient: Vector, n_jobs: int, kind: Kind) -> tuple[float, float]:
        total = total_of(self._parts(w, n_jobs, kind), logarithmic if kind == "log_value" else plain)
        gradient[:] = total.gradient
        return total.value, total.largest


@dataclass(frozen=True)
class ShardedProblem(Problem):
    """What is minimised over shards; `data` is empty. `source`: gives the objective of all of them."""

    shards: Shards | None = None
    min_count: int = 1
    source: Callable[[Setting], Objective] | None = None
    rules: Rules | None = None
    steps: Steps | None = None
    climbing: Callable[[Climb], Climbing] | None = None  # gives who ascends them
    n_parts: int = 1  # that ascend at once

    def objective(self, backend: ObjectiveMaker | None = None) -> Objective:
        """Loss and gradient of all shards."""
        assert self.source is not None
        return self.source(self.setting)

    @property
    def setting(self) -> Setting:
        """What the objectives of shards are made of."""
        return Setting(self.layout, self.loss, self.min_count, self.cost, self.rules, self.steps)

    def total_loss(self, w: Vector, n_jobs: int) -> float:
        """The loss at `w` in double precision, one shard at a time."""
        assert self.shards is not None
        return sum(self.setting.total_loss(self.shards, k, w, n_jobs) for k in range(len(self.shards)))

    @cached_property
    def mass(self) -> tuple[float, float]:
        """Sentences and tokens."""
        assert self.shards is not None
        return float(self.shards.n_sentences), float(self.shards.n_tokens)

    def scale(self) -> NDArray[np.float32]:
        """From the counts of attributes that the shards have."""
        assert self.shards is not None
        kept = self.shards.counts[self.shards.kept(self.min_count)]
        if self.steps is not None:
            kept = np.concatenate([kept, self.steps.counts(self.shards)])
        return scale_of(kept, self.shards.n_tokens, self.layout)

    def why_no_dual(self, l2: float) -> str | None:
        """What of the problem dual ascent cannot do; None where it can."""
        assert self.shards is not None
        odd = {
            "the steps of a MEMM": self.steps is not None,
            "edge attributes": self.shards.recipe.has_edges,
            "labels that occur once": self.rules is not None and self.rules.once,
        }
        return next((what for what, there in odd.items() if there), super().why_no_dual(l2))

    @contextmanager
    def ascending(self, l2: float) -> Iterator[DualShards]:
        """Rounds of dual ascent, by whoever works on the shards."""
        assert self.climbing is not None
        limits = None if self.rules is None else self.rules.limits
        climb = Climb(self.layout, l2, self.n_parts, self.min_count, limits)
        climbing = self.climbing(climb)
        try:
            yield DualShards(climb, climbing)
        finally:
            climbing.close()

    @property
    def hasty(self) -> bool:
        """Where parts ascend at once, the last stretch is slow."""
        return self.n_parts > 1

    @property
    def warms_up(self) -> bool:
        """Stochastic epochs go through one training set in memory."""
        return False


def local(shards: Shards, memory: int | None) -> Callable[[Setting], Objective]:
    """The source of a run on this machine."""

    def objective(setting: Setting) -> Objective:
        return OverShards(ShardObjectives(shards, setting, range(len(shards)), memory).parts)

    return objective


__all__ = [
    "OverShards",
    "Rules",
    "Setting",
    "ShardObjectives",
    "ShardedProblem",
    "Steps",
    "local",
    "ranges",
]

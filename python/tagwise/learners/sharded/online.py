"""Online learners over shards: one after the other, or several parts at once whose weights are mixed.

With one part the weights go from shard to shard, and a pass is that of the same sentences in memory, in the same order.
With more, it is iterative parameter mixing (McDonald, Hall and Mann 2010, figure 3): every part learns by itself from
the same weights, and the mean of what they end with is the beginning of the next epoch. Parts are neighbouring shards,
and their number is a parameter of the learner, so whoever learns them, and how many they are, does not show.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

import tagwise._core as _core
from tagwise.base.domains import DomainError
from tagwise.base.parameters import cores
from tagwise.dataset.shards.reader import Shards
from tagwise.learners.sharded.dual import Climb, Climbing
from tagwise.learners.sharded.held import KEPT, ranges
from tagwise.learners.sharded.objective import Rules, Setting
from tagwise.optimizers.base import Vector
from tagwise.scores.protocols import Objective

#: Bytes that a learner keeps for each feature: weight, sum, variance.
_FEATURE = 20

State = dict[str, Any]
#: The state and the tally of each part, given the one to begin with and the number of the epoch.
Parts = Callable[[State, int], Sequence[tuple[State, dict[str, Any]]]]


@dataclass(frozen=True)
class Course:
    """How an online learner goes through shards. `rule`: makes what it does with a wrong guess."""

    layout: _core.Layout
    rule: Callable[[], _core.Rule]
    average: bool = True
    shuffle: bool = True
    seed: int = 0
    min_count: int = 1
    rules: Rules | None = None

    def learner(self, shards: Shards, k: int) -> _core.Online:
        """That of one shard."""
        epochs, data = _core.Epochs(average=self.average, shuffle=False), shards.dataset(k, self.min_count)
        limits = None if self.rules is None else self.rules.limits(data)
        return _core.Online(data, self.layout, self.rule(), epochs=epochs, limits=limits)

    def order(self, n: int, epoch: int, k: int) -> NDArray[np.uint32]:
        """The order of n things in an epoch, from the raw bits of a generator that are the same everywhere.

        >>> Course(None, None, seed=1).order(5, 0, 3).tolist() == sorted(range(5))
        False
        """
        if not self.shuffle:
            return np.arange(n, dtype=np.uint32)
        bits = np.random.Philox(np.random.SeedSequence((self.seed, epoch, k))).random_raw(n)
        return np.argsort(bits, kind="stable").astype(np.uint32)


@dataclass(frozen=True)
class Engine:
    """What works on shards: it gives their objective, parts that an online learner mixes, and who climbs the dual."""

    objective: Callable[[Setting], Objective]
    parts: Callable[[Course, int], Parts]
    climbing: Callable[[Climb], Climbing]


class Pupil:
    """Learns from some shards, one after the other; the one that comes next is made ready meanwhile.

    What the core makes of a shard is kept where that of all shards is within `memory`, else made again for each epoch:
    two of them at a time.
    """

    def __init__(self, shards: Shards, course: Course, numbers: range, memory: int | None = None) -> None:
        self.shards, self.course, self.numbers = shards, course, numbers
        needed = shards.manifest["node_attributes"] * KEPT + len(shards) * len(course.layout) * _FEATURE
        self._kept: dict[int, _core.Online] | None = {} if memory is None or needed <= memory else None

    def learn(self, state: State, epoch: int) -> tuple[State, dict[str, Any]]:
        """One pass from a state: the state behind it, and sums over its steps."""
        tally: Counter[str] = Counter()
        first = len(self.shards) + self.numbers.start  # an order of its own for each part
        visited = [self.numbers[i] for i in self.course.order(len(self.numbers), epoch, first)]
        for k, learner in self._learners(visited):
            learner.restore(state)
            tally.update(learner.epoch(self.course.order(self.shards.sentences(k), epoch, k)))
            state = learner.state()
        return {**state, "epochs": epoch + 1}, dict(tally)

    def _learners(self, visited: Sequence[int]) -> Iterator[tuple[int, _core.Online]]:
        """Those of these shards, each made while the one before it is at work."""
        with ThreadPoolExecutor(1, thread_name_prefix="tagwise-ahead") as ahead:
            coming = ahead.submit(self._made, visited[0])
            for k, later in zip(visited, [*visited[1:], None]):
                learner = coming.result()
                if later is not None:
                    coming = ahead.submit(self._made, later)
                yield k, learner
                del learner

    def _made(self, k: int) -> _core.Online:
        if self._kept is None:
            return self.course.learner(self.shards, k)
        if k not in self._kept:
            self._kept[k] = self.course.learner(self.shards, k)
        return self._kept[k]


class OnlineShards:
    """An online learner of all shards: what `_core.Online` is for a dataset."""

    def __init__(self, parts: Parts, n_parts: int, start: Vector, average: bool) -> None:
        self.parts, self.n_parts, self.average = parts, n_parts, average
        self._state: State = {"weights": np.array(start), "steps": 0.0, "epochs": 0}

    @property
    def epochs(self) -> int:
        """Epochs so far."""
        return int(self._state["epochs"])

    def state(self) -> State:
        """What training can be resumed from."""
        return dict(self._state)

    def restore(self, state: State) -> None:
        """Go on from a state."""
        n = len(self._state["weights"])
        for name, array in state.items():
            if name not in ("steps", "epochs") and len(array) != n and (len(array) or name == "weights"):
                raise DomainError(f"{name}: expected {n:,} numbers, found {len(array):,}")
        self._state = dict(state)

    def weights(self, averaged: bool = True) -> Vector:
        """The weights now, or their average over all steps."""
        w: Vector = np.array(self._state["weights"])
        if averaged and self.average and len(self._state.get("sums", ())):
            w -= self._state["sums"] / max(self._state["steps"], 1.0)
        return w

    def epoch(self) -> dict[str, Any]:
        """One pass over all shards; sums over its steps."""
        epoch = self.epochs
        if self.n_parts == 1:
            ((self._state, tally),) = self.parts(self._state, epoch)
            return tally
        begin: State = {name: self._state[name] for name in ("weights", "variance") if name in self._state}
        found = self.parts(begin, epoch)
        self._state = mixed(self._state, [state for state, _ in found])
        total: Counter[str] = Counter()
        for _, tally in found:
            total.update(tally)
        return dict(total)


def mixed(before: State, parts: Sequence[State]) -> State:
    """The state behind an epoch of parts that began with the weights of `before`, and with steps and sums of 0.

    Weights and variances are means. The sum of the weights after every step is steps * w - sums, of a part as of the
    whole; so `sums` is what makes the average that of all steps of all parts.
    """
    n, steps = len(parts), before["steps"] + sum(part["steps"] for part in parts)

    def mean(name: str) -> Vector:
        total = np.zeros(len(parts[0][name]))
        for part in parts:  # in their order, as the core adds: the same bits
            total += part[name]
        total /= n
        return total

    weights = mean("weights").astype(np.float32).astype(np.float64)  # which is what the core keeps
    out = {"weights": weights, "variance": mean("variance"), "steps": steps, "epochs": before["epochs"] + 1}
    sums = np.zeros(len(parts[0]["sums"]))
    if len(sums):
        for part in parts:
            sums += part["steps"] * part["weights"] - part["sums"]
        gone = before.get("sums", np.zeros(0))
        sums += before["steps"] * before["weights"] - (gone if len(gone) else 0.0)
        sums = steps * weights - sums
    return {**out, "sums": sums}


def local(shards: Shards, course: Course, n_parts: int, memory: int | None, n_jobs: int = 0) -> Parts:
    """The parts of a run on this machine, by so many threads (0: one a core)."""
    numbers = ranges(len(shards), n_parts)
    pupils = [Pupil(shards, course, part, memory) for part in numbers]

    def parts(state: State, epoch: int) -> list[tuple[State, dict[str, Any]]]:
        if len(pupils) == 1:
            return [pupils[0].learn(state, epoch)]
        with ThreadPoolExecutor(n_jobs or cores(), thread_name_prefix="tagwise-part") as threads:
            return list(threads.map(lambda pupil: pupil.learn(state, epoch), pupils))

    return parts


__all__ = ["Course", "Engine", "OnlineShards", "Pupil", "local", "mixed"]

"""Online learners over shards, one after the other or in parallel parts whose weights are mixed.

With one part the weights go from shard to shard, and a pass equals one over the same sentences in memory, in the same
order. More parts are iterative parameter mixing (McDonald, Hall and Mann 2010, figure 3): every part learns separately
from the same weights, and the mean of their final weights starts the next epoch. Parts are neighbouring shards, and
their number is a parameter of the learner, so that the result does not depend on the number of workers.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

import tagwise._core as _core
from tagwise.base.domains import DomainError
from tagwise.base.parameters import cores
from tagwise.dataset.shards.reader import Shards
from tagwise.learners.sharded.config import PartsBackend, ShardConfig
from tagwise.learners.sharded.engines import BYTES_PER_ATTRIBUTE
from tagwise.optimizers.base import Vector

#: Bytes per feature of a learner: weight, sum, variance.
_FEATURE = 20

State = dict[str, Any]
#: State and tally of a part after an epoch.
Learnt = tuple[State, dict[str, Any]]


@dataclass(frozen=True)
class OnlineConfig(ShardConfig):
    """Config of epochs of an online learner. `rule` creates its update rule."""

    rule: Callable[[], _core.Rule] | None = None
    average: bool = True
    shuffle: bool = True
    seed: int = 0

    def build_engine(self, shards: Shards, numbers: range, memory: int | None = None) -> ShardLearner:
        """Return the learner of these parts."""
        return ShardLearner(shards, self, numbers, memory)

    def learner(self, shards: Shards, k: int) -> _core.Online:
        """Return the learner of one shard."""
        assert self.rule is not None
        epochs, data = _core.Epochs(average=self.average, shuffle=False), shards.dataset(k, self.min_count)
        return _core.Online(data, self.layout, self.rule(), epochs=epochs, limits=self.limits(data))

    def order(self, n: int, epoch: int, k: int) -> NDArray[np.uint32]:
        """Return the order of n items in an epoch, from raw bits of a generator that are the same on all platforms.

        >>> OnlineConfig(None, seed=1).order(5, 0, 3).tolist() == sorted(range(5))
        False
        """
        if not self.shuffle:
            return np.arange(n, dtype=np.uint32)
        bits = np.random.Philox(np.random.SeedSequence((self.seed, epoch, k))).random_raw(n)
        return np.argsort(bits, kind="stable").astype(np.uint32)


class ShardLearner:
    """Learner of some of the parts, which goes from shard to shard. The next shard is prepared meanwhile.

    The learners of shards are kept if those of all shards fit into `memory`. Otherwise they are built again in each
    epoch, at most two at a time.
    """

    def __init__(
        self, shards: Shards, config: OnlineConfig, numbers: range, memory: int | None = None
    ) -> None:
        self.shards, self.config = shards, config
        self.parts = config.parts(shards)[numbers.start : numbers.stop]
        needed = (
            shards.manifest["node_attributes"] * BYTES_PER_ATTRIBUTE
            + len(shards) * len(config.layout) * _FEATURE
        )
        self._kept: dict[int, _core.Online] | None = {} if memory is None or needed <= memory else None

    def learn(self, state: State, epoch: int, n_jobs: int = 1) -> list[Learnt]:
        """Run one pass over each part from the same state, `n_jobs` parts at a time (0 for one per core)."""
        if len(self.parts) == 1:
            return [self._learn(self.parts[0], state, epoch)]
        with ThreadPoolExecutor(n_jobs or cores(), thread_name_prefix="tagwise-part") as pool:
            return list(pool.map(lambda part: self._learn(part, state, epoch), self.parts))

    def _learn(self, part: range, state: State, epoch: int) -> Learnt:
        tally: Counter[str] = Counter()
        first = len(self.shards) + part.start  # a separate order for each part
        visited = [part[i] for i in self.config.order(len(part), epoch, first)]
        for k, learner in self._learners(visited):
            learner.restore(state)
            tally.update(learner.epoch(self.config.order(self.shards.sentences(k), epoch, k)))
            state = learner.state()
        return {**state, "epochs": epoch + 1}, dict(tally)

    def _learners(self, visited: Sequence[int]) -> Iterator[tuple[int, _core.Online]]:
        """Yield the learners of these shards. Each is built while the one before it is in use."""
        with ThreadPoolExecutor(1, thread_name_prefix="tagwise-ahead") as executor:
            upcoming = executor.submit(self._learner, visited[0])
            for k, following in zip(visited, [*visited[1:], None]):
                learner = upcoming.result()
                if following is not None:
                    upcoming = executor.submit(self._learner, following)
                yield k, learner
                del learner

    def _learner(self, k: int) -> _core.Online:
        if self._kept is None:
            return self.config.learner(self.shards, k)
        if k not in self._kept:
            self._kept[k] = self.config.learner(self.shards, k)
        return self._kept[k]


class OnlineShards:
    """Online learner of all shards, with the interface of `_core.Online`."""

    def __init__(self, parts: PartsBackend, config: OnlineConfig, start: Vector, n_jobs: int = 0) -> None:
        self.parts, self.config, self.n_jobs = parts, config, n_jobs
        self._state: State = {"weights": np.array(start), "steps": 0.0, "epochs": 0}

    @property
    def epochs(self) -> int:
        """Number of epochs so far."""
        return int(self._state["epochs"])

    def state(self) -> State:
        """Return the state from which training resumes."""
        return dict(self._state)

    def restore(self, state: State) -> None:
        """Resume from a state."""
        n = len(self._state["weights"])
        for name, array in state.items():
            if name not in ("steps", "epochs") and len(array) != n and (len(array) or name == "weights"):
                raise DomainError(f"{name}: expected {n:,} numbers, found {len(array):,}")
        self._state = dict(state)

    def weights(self, averaged: bool = True) -> Vector:
        """Return the current weights, or their average over all steps."""
        w: Vector = np.array(self._state["weights"])
        if averaged and self.config.average and len(self._state.get("sums", ())):
            w -= self._state["sums"] / max(self._state["steps"], 1.0)
        return w

    def epoch(self) -> dict[str, Any]:
        """Run one pass over all shards and return the sums over its steps."""
        if self.config.n_parts == 1:
            ((self._state, tally),) = self._learnt(self._state)
            return tally
        begin: State = {name: self._state[name] for name in ("weights", "variance") if name in self._state}
        found = self._learnt(begin)
        self._state = mixed(self._state, [state for state, _ in found])
        total: Counter[str] = Counter()
        for _, tally in found:
            total.update(tally)
        return dict(total)

    def _learnt(self, state: State) -> list[Learnt]:
        """Run an epoch of each part from a state."""
        return list(chain.from_iterable(self.parts.call("learn", state, self.epochs, n_jobs=self.n_jobs)))


def mixed(before: State, parts: Sequence[State]) -> State:
    """Return the state after an epoch of parts that started with the weights of `before` and with steps and sums of 0.

    Weights and variances are means. The sum of the weights after every step is steps * w - sums, for a part and for the
    whole. So `sums` is chosen such that the average is that of all steps of all parts.
    """
    n, steps = len(parts), before["steps"] + sum(part["steps"] for part in parts)

    def mean(name: str) -> Vector:
        total = np.zeros(len(parts[0][name]))
        for part in parts:  # in the order of the core, for the same bits
            total += part[name]
        total /= n
        return total

    weights = mean("weights").astype(np.float32).astype(np.float64)  # the precision of the core
    out = {"weights": weights, "variance": mean("variance"), "steps": steps, "epochs": before["epochs"] + 1}
    sums = np.zeros(len(parts[0]["sums"]))
    if len(sums):
        for part in parts:
            sums += part["steps"] * part["weights"] - part["sums"]
        previous = before.get("sums", np.zeros(0))
        sums += before["steps"] * before["weights"] - (previous if len(previous) else 0.0)
        sums = steps * weights - sums
    return {**out, "sums": sums}

"""Training by Ray: workers hold shards, the driver puts together what they find.

Of an objective, weights go out once an evaluation, through the object store; a worker adds the gradients of its shards
as far as their numbers belong together (`learners.sums`), and the driver adds the rest in the same tree. Of an online
learner, weights go out once an epoch; a worker learns from its parts, and the driver mixes in the order of the parts
(`learners.mixing`). So the bits are those that one process gets, whoever works. A worker that is lost is made anew, and
does its part once more.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

import tagwise._core as _core
from tagwise.base.exceptions import ParameterError
from tagwise.dataset.shards.reader import Shards
from tagwise.learners.sharded.dual import Climb
from tagwise.learners.sharded.held import ranges
from tagwise.learners.sharded.objective import Kind, OverShards, Setting, ShardObjectives
from tagwise.learners.sharded.online import Course, Parts, Pupil, State
from tagwise.learners.sums import Part
from tagwise.ray.crew import Crew, places
from tagwise.scores.protocols import Objective, Vector


@dataclass(frozen=True)
class Told:
    """What a worker is told: where the shards are, the layout in arrays, and what else there is to know."""

    path: str
    skipped: tuple[int, ...]
    n_attributes: int
    n_labels: int
    arrays: dict[str, NDArray[Any]]
    more: dict[str, Any]  # of a `Setting`, a `Course` or a `Climb` beside its layout
    memory: int | None  # of a machine
    cpus: int

    @staticmethod
    def of(shards: Shards, setting: Setting | Course | Climb, cpus: int) -> Told:
        layout = setting.layout
        more = {name: value for name, value in vars(setting).items() if name != "layout"}
        sizes, path = (layout.n_attributes, layout.n_labels), os.path.abspath(shards.path)
        return Told(path, shards.skipped, *sizes, layout.arrays(), more, shards.memory, cpus)

    @property
    def shards(self) -> Shards:
        """The shards, as the driver has them."""
        return Shards(self.path, skipped=self.skipped)

    @property
    def layout(self) -> _core.Layout:
        return _core.Layout.from_arrays(self.n_attributes, self.n_labels, self.arrays)

    @property
    def share(self) -> int | None:
        """What a worker may have of its machine's memory."""
        if self.memory is None:
            return None
        return self.memory * self.cpus // max(os.cpu_count() or 1, self.cpus)


class Worker:
    """Holds shards: what an actor is."""

    def __init__(self, told: Told, begin: int, end: int) -> None:
        self.told, self.numbers = told, range(begin, end)

    @cached_property
    def objectives(self) -> ShardObjectives:
        """Those of its shards, made when they are asked for first: what is wrong with them is an answer then."""
        setting = Setting(self.told.layout, **self.told.more)
        return ShardObjectives(self.told.shards, setting, self.numbers, self.told.share)

    def ready(self) -> int:
        """The process that it is in, once its objectives are made."""
        assert self.objectives is not None
        return os.getpid()

    def sums(self, w: Vector, n_jobs: int, kind: Kind) -> list[Part]:
        """What its shards add up to."""
        return self.objectives.sums(w, n_jobs, kind)


class Learner:
    """Learns from some parts: what an actor of an online learner is."""

    def __init__(self, told: Told, parts: list[range]) -> None:
        self.told, self.parts = told, parts

    @cached_property
    def pupils(self) -> list[Pupil]:
        """One a part."""
        course, shards = Course(self.told.layout, **self.told.more), self.told.shards
        return [Pupil(shards, course, part, self.told.share) for part in self.parts]

    def ready(self) -> int:
        """The process that it is in."""
        return os.getpid()

    def learn(self, state: State, epoch: int) -> list[tuple[State, dict[str, Any]]]:
        """An epoch of each of its parts, from the same state."""
        return [pupil.learn(state, epoch) for pupil in self.pupils]


class Workers:
    """The actors of a run, each with some of the shards."""

    def __init__(self, shards: Shards, setting: Setting, n: int | None, cpus: int = 1) -> None:
        self.cpus, self.numbers = cpus, ranges(len(shards), places(cpus) if n is None else n)
        names = [f"shards {part.start} to {part.stop - 1}" for part in self.numbers]
        given = [(part.start, part.stop) for part in self.numbers]
        self.crew = Crew(Worker, Told.of(shards, setting, cpus), given, names, cpus)
        self.sent = 0  # bytes of weights and gradients that went over the object store
        self.crew.all(lambda actor: actor.ready.remote())

    @property
    def lost(self) -> int:
        """Workers that were made anew."""
        return self.crew.lost

    def parts(self, w: Vector, n_jobs: int, kind: Kind) -> list[Part]:
        """The parts of all workers, in the order of their shards; each has as many threads as it asked for CPUs."""
        at = self.crew.ray.put(np.ascontiguousarray(w))

        def ask(actor: Any) -> Any:
            return actor.sums.remote(at, self.cpus, kind)

        out: list[Part] = []
        for part in chain.from_iterable(self.crew.all(ask)):
            gradient = np.array(part.gradient)  # those of the object store are not to be written to
            out.append(Part(part.first, part.level, part.value, part.largest, gradient))
            self.sent += gradient.nbytes
        self.sent += w.nbytes
        return out


class Learners:
    """The actors of an online run, each with some of the parts."""

    def __init__(self, shards: Shards, course: Course, n_parts: int, n: int | None) -> None:
        parts = ranges(len(shards), n_parts)
        if len(parts) == 1:
            raise ParameterError(
                "backend='ray' has online learners mix the weights of parts that are learnt at once: set their number "
                f"(parts=8; there are {len(shards)} shards on disk), or use backend='local'"
            )
        shares = ranges(len(parts), places() if n is None else n)
        given = [([parts[i] for i in share],) for share in shares]
        names = [f"parts {share.start} to {share.stop - 1}" for share in shares]
        self.crew = Crew(Learner, Told.of(shards, course, 1), given, names)
        self.sent = 0  # bytes of states that went over the object store

    def parts(self, state: State, epoch: int) -> list[tuple[State, dict[str, Any]]]:
        """What all parts have learnt in an epoch, in their order."""
        at = self.crew.ray.put(state)
        self.sent += _bytes(state)
        found = list(chain.from_iterable(self.crew.all(lambda actor: actor.learn.remote(at, epoch))))
        self.sent += sum(_bytes(state) for state, _ in found)
        return found


def _bytes(state: State) -> int:
    return sum(value.nbytes for value in state.values() if isinstance(value, np.ndarray))


def source(shards: Shards, workers: int | None = None, cpus: int = 1) -> Callable[[Setting], Objective]:
    """The source of a run by Ray, as `learners.sharded.local` is that of one machine."""

    def objective(setting: Setting) -> Objective:
        return OverShards(Workers(shards, setting, workers, cpus).parts)

    return objective


def mixing(shards: Shards, course: Course, n_parts: int, workers: int | None = None) -> Parts:
    """The parts of an online learner by Ray, as `learners.mixing.local` has them on one machine."""
    return Learners(shards, course, n_parts, workers).parts


__all__ = ["Learners", "Workers", "mixing", "source"]

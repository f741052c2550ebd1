"""The objective of a corpus in shards, by Ray: workers hold shards, the driver adds what they find.

Weights go out once an evaluation, through the object store; a worker adds the gradients of its shards as far as their
numbers belong together (`learners.sums`), and the driver adds the rest in the same tree. So the sum has the bits that
one process gets, whoever works. A worker that is lost is made anew, and finds its part once more.
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

import tagwise._core as _core
from tagwise.errors import ParameterError, TrainingError
from tagwise.learners.sharded import OverShards, Setting, ShardObjectives
from tagwise.learners.sums import Part
from tagwise.scores.protocols import Objective, Vector
from tagwise.shards.reader import Shards

logger = logging.getLogger("tagwise")

#: How often a worker is made anew within one evaluation before training gives up.
TRIES = 5


def ray_module() -> Any:
    """Ray, or a word on how to have it."""
    try:
        import ray
    except ModuleNotFoundError as error:
        raise ParameterError(
            "backend='ray' needs the package ray, which is not installed: pip install 'tagwise[ray]', or use "
            "backend='local'"
        ) from error
    return ray


def connected(address: str | None = None) -> Any:
    """Ray, connected to a cluster: the one that is there, that of an address, or one of this machine's own."""
    ray = ray_module()
    if not ray.is_initialized():
        ray.init(address=address, log_to_driver=False, logging_level=logging.ERROR, include_dashboard=False)
    return ray


@dataclass(frozen=True)
class Told:
    """What a worker is told: the setting of the objective in arrays."""

    path: str
    n_attributes: int
    n_labels: int
    arrays: dict[str, NDArray[Any]]
    loss: str
    min_count: int
    memory: int | None  # of a machine
    cpus: int

    @staticmethod
    def of(shards: Shards, setting: Setting, cpus: int) -> Told:
        layout = setting.layout
        sizes = (layout.n_attributes, layout.n_labels)
        path = os.path.abspath(shards.path)
        return Told(path, *sizes, layout.arrays(), setting.loss, setting.min_count, shards.memory, cpus)

    def objectives(self, numbers: range) -> ShardObjectives:
        """Those of some shards."""
        layout = _core.Layout.from_arrays(self.n_attributes, self.n_labels, self.arrays)
        setting = Setting(layout, self.loss, self.min_count)
        share = (
            None if self.memory is None else self.memory * self.cpus // max(os.cpu_count() or 1, self.cpus)
        )
        return ShardObjectives(Shards(self.path), setting, numbers, share)


class Worker:
    """Holds shards: what an actor is."""

    def __init__(self, told: Told, begin: int, end: int) -> None:
        self.told, self.numbers = told, range(begin, end)

    @cached_property
    def objectives(self) -> ShardObjectives:
        """Those of its shards, made when they are asked for first: what is wrong with them is an answer then."""
        return self.told.objectives(self.numbers)

    def ready(self) -> int:
        """The process that it is in, once its objectives are made."""
        assert self.objectives is not None
        return os.getpid()

    def sums(self, w: Vector, n_jobs: int, log_domain: bool) -> list[Part]:
        """What its shards add up to."""
        return self.objectives.sums(w, n_jobs, log_domain)


def ranges(n: int, workers: int) -> list[range]:
    """Neighbouring shards for so many workers, as many for each as there can be.

    >>> ranges(5, 2)
    [range(0, 2), range(2, 5)]
    """
    workers = max(1, min(workers, n))
    return [range(a, b) for a, b in pairwise(n * i // workers for i in range(workers + 1))]


class Workers:
    """The actors of a run, each with some of the shards."""

    def __init__(self, shards: Shards, setting: Setting, n: int | None, cpus: int = 1) -> None:
        self.ray = connected()
        if n is None:
            n = max(1, int(self.ray.cluster_resources().get("CPU", 1)) // cpus)
        self.cpus, self.numbers = cpus, ranges(len(shards), n)
        self.told = self.ray.put(Told.of(shards, setting, cpus))
        self.kind = self.ray.remote(num_cpus=cpus, max_restarts=0)(Worker)
        self.actors = [self._made(numbers) for numbers in self.numbers]
        self.lost = 0  # workers that were made anew
        self.sent = 0  # bytes of weights and gradients that went over the object store
        self._all(lambda actor: actor.ready.remote())

    def _made(self, numbers: range, anew: bool = False) -> Any:
        """An actor for these shards; one that is made anew is put wherever there is a place."""
        kind = self.kind.options(num_cpus=0) if anew else self.kind
        return kind.remote(self.told, numbers.start, numbers.stop)

    def parts(self, w: Vector, n_jobs: int, log_domain: bool) -> list[Part]:
        """The parts of all workers, in the order of their shards; each has as many threads as it asked for CPUs."""
        at = self.ray.put(np.ascontiguousarray(w))

        def ask(actor: Any) -> Any:
            return actor.sums.remote(at, self.cpus, log_domain)

        out: list[Part] = []
        for part in chain.from_iterable(self._all(ask)):
            gradient = np.array(part.gradient)  # those of the object store are not to be written to
            out.append(Part(part.first, part.level, part.value, part.largest, gradient))
            self.sent += gradient.nbytes
        self.sent += w.nbytes
        return out

    def _all(self, ask: Callable[[Any], Any]) -> list[Any]:
        """The answers of all workers, which are asked at once."""
        asked = [self._try(ask, actor) for actor in self.actors]
        return [self._asked(i, ask, answer) for i, answer in enumerate(asked)]

    def _try(self, ask: Callable[[Any], Any], actor: Any) -> Any:
        """The promise of an answer; None where the actor is known to be gone."""
        try:
            return ask(actor)
        except self.ray.exceptions.RayActorError:
            return None

    def _asked(self, i: int, ask: Callable[[Any], Any], answer: Any = None) -> Any:
        """The answer of a worker, which is made anew and asked again where it is lost."""
        for attempt in range(TRIES):
            if answer is None:
                answer = self._try(ask, self.actors[i])
            try:
                if answer is not None:
                    return self.ray.get(answer)
                why = "it is gone"
            except (self.ray.exceptions.RayActorError, self.ray.exceptions.ObjectLostError) as error:
                why = str(error).strip().splitlines()[0]
            except self.ray.exceptions.RayTaskError as error:
                raise error.cause from None  # what the worker met: a damaged shard, a loss that is not finite
            numbers = self.numbers[i]
            logger.warning(
                "the worker of shards %d to %d was lost (%s); it is made anew and asked again",
                numbers.start,
                numbers.stop - 1,
                why,
            )
            self.lost += 1
            time.sleep(0.1 * attempt)  # a node that is going takes a moment to be gone
            self.actors[i], answer = self._made(numbers, anew=True), None
        raise TrainingError(
            f"the worker of shards {self.numbers[i].start} to {self.numbers[i].stop - 1} was lost {TRIES} times; is "
            "there enough memory for its shards? Pass a smaller memory to Shards, or use more workers"
        )


def source(shards: Shards, workers: int | None = None, cpus: int = 1) -> Callable[[Setting], Objective]:
    """The source of a run by Ray, as `learners.sharded.local` is that of one machine."""

    def objective(setting: Setting) -> Objective:
        return OverShards(Workers(shards, setting, workers, cpus).parts)

    return objective


__all__ = ["Workers", "connected", "source"]

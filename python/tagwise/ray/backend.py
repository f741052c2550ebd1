"""Backend of `fit_shards(..., backend="ray")`: workers hold shards or parts of them.

The arguments of a call are sent once, through the object store. Results come back in the order of the units, and the
driver adds them in the same tree (`learners.sums`) or mixes them in the same order as a single process does. Trained
weights are therefore bit-identical to those of a single process. Lost workers are replaced. Calls that change the state
of a worker, such as the rounds of a dual ascent, are logged, and a new worker replays them. Ray spills logged arguments
to disk if they exceed its memory.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, is_dataclass
from typing import Any

import numpy as np

from tagwise.base.cached import cached
from tagwise.base.exceptions import ParameterError
from tagwise.dataset.shards.reader import Shards
from tagwise.learners.sharded.config import ShardBackend, ShardConfig
from tagwise.learners.sharded.engines import ranges
from tagwise.ray.pool import WorkerPool, connected, worker_slots


@dataclass(frozen=True)
class Call:
    """Method call on the engines. Arrays and states in its arguments are references to the object store."""

    method: str
    arguments: tuple[Any, ...]
    options: dict[str, Any]

    def of(self, engine: Any) -> Any:
        """Call the method of `engine`."""
        import ray

        arguments = [ray.get(x) if isinstance(x, ray.ObjectRef) else x for x in self.arguments]
        return getattr(engine, self.method)(*arguments, **self.options)


@dataclass(frozen=True)
class WorkerConfig:
    """Shards to train on, and the configuration of the training."""

    path: str
    skipped: tuple[int, ...]
    config: ShardConfig
    memory: int | None  # limit per machine, in bytes


class Worker:
    """Actor with one CPU that holds some of the units."""

    def __init__(self, config: WorkerConfig, begin: int, end: int) -> None:
        self.config, self.numbers = config, range(begin, end)
        self.done = 0  # number of logged calls that were executed
        self.last: Any = None

    @property
    @cached
    def engine(self) -> Any:
        """The engines, created by the first call so that it reports errors."""
        of = self.config
        memory = None if of.memory is None else of.memory // (os.cpu_count() or 1)
        return of.config.build_engine(Shards(of.path, skipped=of.skipped), self.numbers, memory)

    def ready(self) -> int:
        """Create the engines and return the id of the process."""
        assert self.engine is not None
        return os.getpid()

    def call(self, log: Sequence[Call], call: Call | None) -> Any:
        """Execute the remaining calls of the log, then `call`. Return the last result."""
        for one in log[self.done :]:
            self.last = one.of(self.engine)
            self.done += 1
        return self.last if call is None else call.of(self.engine)


class RayParts:
    """Backend that distributes the units over the workers of a cluster."""

    def __init__(self, shards: Shards, config: ShardConfig, workers: int | None = None) -> None:
        n = config.n_units(shards)
        if n == 1 and config.unit == "parts":
            raise ParameterError(
                "backend='ray' trains parts of the shards in parallel. Set their number (parts=2, there are "
                f"{len(shards)} shards on disk), or use backend='local'."
            )
        shares = ranges(n, worker_slots() if workers is None else workers)
        names = [f"{config.unit} {share.start} to {share.stop - 1}" for share in shares]
        worker_config = WorkerConfig(os.path.abspath(shards.path), shards.skipped, config, shards.memory)
        self.changes = config.changes
        self.pool = WorkerPool(Worker, worker_config, [(share.start, share.stop) for share in shares], names)
        self.sent = 0  # bytes of arguments and results that went through the object store
        self._log: list[Call] = []
        self.pool.call_all(lambda actor: actor.ready.remote())

    @property
    def lost(self) -> int:
        """Number of workers that were replaced."""
        return self.pool.lost

    def call(self, method: str, *arguments: Any, **options: Any) -> list[Any]:
        """Call a method of all engines and return the results. Each worker uses one thread."""
        large = (np.ndarray, dict, list)
        self.sent += _bytes(arguments)
        sent_arguments = tuple(self.pool.ray.put(x) if isinstance(x, large) else x for x in arguments)
        call, logged = Call(method, sent_arguments, dict.fromkeys(options, 1)), method in self.changes
        if logged:
            self._log.append(call)
        found = self.pool.call_all(lambda actor: actor.call.remote(self._log, None if logged else call))
        self.sent += _bytes(found)
        return found

    def close(self) -> None:
        """Stop the actors and free their memory."""
        self._log.clear()
        self.pool.stop()


def _bytes(value: Any) -> int:
    """Return the number of bytes of the arrays in a value."""
    if isinstance(value, np.ndarray):
        return value.nbytes
    if is_dataclass(value) and not isinstance(value, type):
        return sum(_bytes(getattr(value, name)) for name in vars(value))
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, (list, tuple)) else ()
    return sum(map(_bytes, parts))


def backend(shards: Shards, workers: int | None = None) -> ShardBackend:
    """Return the backend for training on shards, and connect to a cluster if necessary.

    Args:
        shards: Shards in a folder that every node of the cluster can read.
        workers: Number of workers. Default: one per CPU of the cluster.
    """
    connected()
    return lambda config: RayParts(shards, config, workers)

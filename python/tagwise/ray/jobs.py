"""Job queue for a few actors: each runs one job at a time, and the job of a lost actor is repeated."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from tagwise.base.exceptions import TrainingError
from tagwise.ray.pool import TRIES, connected, logger, worker_slots


@dataclass(frozen=True)
class Failed:
    """Result of a job that raised an error."""

    error: BaseException


class Jobs:
    """Actors of a class that run jobs, which are calls of their method `work`. A context manager that stops them.

    Args:
        kind: Class of the actors.
        config: Constructor argument of every actor, sent once through the object store.
        workers: Number of actors. Default: the CPUs of the cluster divided by `cpus`.
        cpus: CPUs per actor.
        memory: Bytes that each actor needs. Ray starts no more actors than fit into memory.
        once: Start a new process for every job.
    """

    def __init__(
        self,
        kind: type,
        config: Any,
        workers: int | None = None,
        *,
        cpus: int = 1,
        memory: int | None = None,
        once: bool = False,
    ) -> None:
        self.ray = connected()
        self.limit, self.once = worker_slots(cpus) if workers is None else workers, once
        self.config = self.ray.put(config)
        options: dict[str, Any] = {} if memory is None else {"memory": self._memory_request(memory)}
        self.kind = self.ray.remote(num_cpus=cpus, max_restarts=0, **options)(kind)
        self.lost = 0  # number of workers that were replaced
        self.idle: list[Any] = []

    def __enter__(self) -> Jobs:
        return self

    def __exit__(self, *_: object) -> None:
        while self.idle:
            self.ray.kill(self.idle.pop())

    def _memory_request(self, memory: int) -> int:
        """Return `memory`, at most that of the largest machine, since Ray would wait forever for more."""
        nodes = [node["Resources"].get("memory", 0) for node in self.ray.nodes() if node["Alive"]]
        return int(min([memory, *([max(nodes)] if nodes else [])]))

    def run(self, jobs: Sequence[tuple[str, tuple[Any, ...]]]) -> Iterator[tuple[int, Any]]:
        """Yield the index and result of each job as it finishes, `Failed` if the job raised an error.

        jobs: Name and arguments of each job.
        """
        waiting = deque(range(len(jobs)))
        tries = [0] * len(jobs)
        running: dict[Any, tuple[int, Any]] = {}  # future: job, actor
        try:
            while waiting or running:
                while waiting and len(running) < self.limit:
                    i = waiting.popleft()
                    actor = self.idle.pop() if self.idle else self._create(tries[i] > 0)
                    try:
                        running[actor.work.remote(*jobs[i][1])] = (i, actor)
                    except self.ray.exceptions.RayActorError as error:  # known to be dead
                        tries[i] += 1
                        self._report_lost(jobs[i][0], tries[i], error)
                        waiting.appendleft(i)
                (ready, *_), _ = self.ray.wait(list(running), num_returns=1)
                i, actor = running.pop(ready)
                try:
                    result: Any = self.ray.get(ready)
                except self.ray.exceptions.RayTaskError as error:
                    result = Failed(error.cause)
                except (self.ray.exceptions.RayActorError, self.ray.exceptions.ObjectLostError) as error:
                    tries[i] += 1
                    self._report_lost(jobs[i][0], tries[i], error)
                    waiting.appendleft(i)
                    continue
                if self.once:
                    self.ray.kill(actor)
                else:
                    self.idle.append(actor)
                yield i, result
        finally:
            for _, actor in running.values():
                self.ray.kill(actor)

    def _report_lost(self, name: str, tries: int, error: BaseException) -> None:
        """Log that a job is repeated. Raise TrainingError after too many attempts."""
        why = str(error).strip().splitlines()[0]
        logger.warning("the worker of %s was lost (%s). A new worker repeats its job.", name, why)
        self.lost += 1
        if tries == TRIES:
            raise TrainingError(
                f"the worker of {name} was lost {TRIES} times, perhaps for lack of memory. Use fewer workers."
            )

    def _create(self, repeated: bool) -> Any:
        """Create an actor. One for a repeated job reserves nothing, so that Ray can place it on any node."""
        kind = self.kind.options(num_cpus=0, memory=0) if repeated else self.kind
        return kind.remote(self.config)

"""Many jobs for a few actors: each has one at a time, so that nothing piles up, and a lost one's job is done again."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from tagwise.base.exceptions import TrainingError
from tagwise.ray.crew import TRIES, connected, logger, places


@dataclass(frozen=True)
class Failed:
    """The answer of a job that raised an error."""

    error: BaseException


class Jobs:
    """Actors of a class, made with `told`; a job is a call of their `work`. Left by `with`, they are let go.

    Args:
        kind: the class.
        told: what each is made with; it goes through the object store once.
        workers: how many; one a CPU if not given.
        cpus: of each.
        memory: bytes that each will need: Ray starts no more than there is room for.
        once: a new process for every job.
    """

    def __init__(
        self,
        kind: type,
        told: Any,
        workers: int | None = None,
        *,
        cpus: int = 1,
        memory: int | None = None,
        once: bool = False,
    ) -> None:
        self.ray = connected()
        self.most, self.once = places(cpus) if workers is None else workers, once
        self.told = self.ray.put(told)
        options: dict[str, Any] = {} if memory is None else {"memory": self._room(memory)}
        self.kind = self.ray.remote(num_cpus=cpus, max_restarts=0, **options)(kind)
        self.lost = 0  # workers that were made anew
        self.idle: list[Any] = []

    def __enter__(self) -> Jobs:
        return self

    def __exit__(self, *_: object) -> None:
        while self.idle:
            self.ray.kill(self.idle.pop())

    def _room(self, memory: int) -> int:
        """What to ask for: no more than the largest machine has, or it would be waited for in vain."""
        nodes = [node["Resources"].get("memory", 0) for node in self.ray.nodes() if node["Alive"]]
        return int(min([memory, *([max(nodes)] if nodes else [])]))

    def run(self, jobs: Sequence[tuple[str, tuple[Any, ...]]]) -> Iterator[tuple[int, Any]]:
        """Number and answer of each job as it is done; of one that raised an error, `Failed`.

        jobs: the name and the arguments of each.
        """
        waiting = deque(range(len(jobs)))
        tries = [0] * len(jobs)
        at_work: dict[Any, tuple[int, Any]] = {}  # promise: job, actor
        try:
            while waiting or at_work:
                while waiting and len(at_work) < self.most:
                    i = waiting.popleft()
                    actor = self.idle.pop() if self.idle else self._made(tries[i] > 0)
                    try:
                        at_work[actor.work.remote(*jobs[i][1])] = (i, actor)
                    except self.ray.exceptions.RayActorError as error:  # it is known to be gone
                        tries[i] += 1
                        self._again(jobs[i][0], tries[i], error)
                        waiting.appendleft(i)
                (ready, *_), _ = self.ray.wait(list(at_work), num_returns=1)
                i, actor = at_work.pop(ready)
                try:
                    answer: Any = self.ray.get(ready)
                except self.ray.exceptions.RayTaskError as error:
                    answer = Failed(error.cause)
                except (self.ray.exceptions.RayActorError, self.ray.exceptions.ObjectLostError) as error:
                    tries[i] += 1
                    self._again(jobs[i][0], tries[i], error)
                    waiting.appendleft(i)
                    continue
                if self.once:
                    self.ray.kill(actor)
                else:
                    self.idle.append(actor)
                yield i, answer
        finally:
            for _, actor in at_work.values():
                self.ray.kill(actor)

    def _again(self, name: str, tries: int, error: BaseException) -> None:
        """Note that a job is to be done again; too often is an error."""
        why = str(error).strip().splitlines()[0]
        logger.warning("the worker of %s was lost (%s); it is made anew and asked again", name, why)
        self.lost += 1
        if tries == TRIES:
            raise TrainingError(
                f"the worker of {name} was lost {TRIES} times; is there enough memory for it? Use fewer workers"
            )

    def _made(self, anew: bool) -> Any:
        """An actor; one for a job that was lost is put wherever there is a place."""
        kind = self.kind.options(num_cpus=0, memory=0) if anew else self.kind
        return kind.remote(self.told)


__all__ = ["Failed", "Jobs"]

"""The actors of a run by Ray: they are asked all at once, and one that is lost is made anew and asked again."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable, Sequence
from typing import Any

from tagwise.base.exceptions import ParameterError, TrainingError

logger = logging.getLogger("tagwise")

#: How often a worker is made anew for one question before the run gives up.
TRIES = 5
#: Where this is 0, the nodes of a cluster are on loopback.
LOOPBACK = "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"


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
    """Ray, connected to a cluster: the one that is there, that of an address, or one of this machine's own.

    One of its own is on loopback, where nobody else reaches it: Ray reads the variable that says so when it is imported
    first, and a Ray that was imported before goes by what it has read then.
    """
    own = address is None and not os.environ.get("RAY_ADDRESS")
    before = os.environ.get(LOOPBACK)
    if own:
        os.environ[LOOPBACK] = "0"
    try:
        ray = ray_module()
        if not ray.is_initialized():
            options = {"include_dashboard": False} if own else {}
            ray.init(address=address, log_to_driver=False, logging_level=logging.ERROR, **options)
    finally:
        if own:
            os.environ.pop(LOOPBACK)
            if before is not None:
                os.environ[LOOPBACK] = before
    return ray


def places(cpus: int = 1) -> int:
    """How many workers of so many CPUs there is room for."""
    return max(1, int(connected().cluster_resources().get("CPU", 1)) // cpus)


class Crew:
    """Actors of a class, each made with `told`, which goes through the object store once, and something of its own.

    names: what each of them works on, in words.
    """

    def __init__(self, kind: type, told: Any, given: Sequence[tuple[Any, ...]], names: Sequence[str]) -> None:
        self.ray = connected()
        self.given, self.names = list(given), list(names)
        self.told = self.ray.put(told)
        self.kind = self.ray.remote(num_cpus=1, max_restarts=0)(kind)
        self.actors = [self._made(each) for each in self.given]
        self.lost = 0  # workers that were made anew

    def _made(self, given: tuple[Any, ...], anew: bool = False) -> Any:
        """An actor; one that is made anew is put wherever there is a place."""
        kind = self.kind.options(num_cpus=0) if anew else self.kind
        return kind.remote(self.told, *given)

    def all(self, ask: Callable[[Any], Any]) -> list[Any]:
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
            logger.warning(
                "the worker of %s was lost (%s); it is made anew and asked again", self.names[i], why
            )
            self.lost += 1
            time.sleep(0.1 * attempt)  # a node that is going takes a moment to be gone
            self.actors[i], answer = self._made(self.given[i], anew=True), None
        raise TrainingError(
            f"the worker of {self.names[i]} was lost {TRIES} times; is there enough memory for its part? Allow a "
            "smaller memory, or use more workers"
        )

    def dismiss(self) -> None:
        """Let the actors go, and what they hold."""
        for actor in self.actors:
            self.ray.kill(actor)
        self.actors = []


__all__ = ["Crew", "connected", "places"]

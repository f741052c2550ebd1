"""Actors of a Ray run: calls go to all of them at once, and lost actors are replaced and called again."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable, Sequence
from typing import Any

from tagwise.base.exceptions import ParameterError, TrainingError

logger = logging.getLogger("tagwise")

#: Number of attempts per call or job before the run gives up.
TRIES = 5
#: Environment variable of Ray. With the value 0, the nodes of a local cluster listen on loopback.
LOOPBACK = "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"


def ray_module() -> Any:
    """Return the module `ray`. Raise ParameterError with installation instructions if it is missing."""
    try:
        import ray
    except ModuleNotFoundError as error:
        raise ParameterError(
            "backend='ray' needs the package ray, which is not installed. Run pip install 'tagwise[ray]', or use "
            "backend='local'"
        ) from error
    return ray


def connected(address: str | None = None) -> Any:
    """Return the module `ray`, connected to the running cluster, the one at `address`, or a new local one.

    A new local cluster listens on loopback, so that other machines cannot reach it. Ray reads the environment variable
    for this when it is first imported, so a Ray that is already imported keeps the setting of that moment.
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


def worker_slots(cpus: int = 1) -> int:
    """Return how many workers with `cpus` CPUs each the cluster can run, at least 1."""
    return max(1, int(connected().cluster_resources().get("CPU", 1)) // cpus)


class WorkerPool:
    """Actors of a class, each created with `shared`, sent once through the object store, and its own `arguments`.

    names: Descriptions of the work of each actor, for messages.
    """

    def __init__(
        self, kind: type, shared: Any, arguments: Sequence[tuple[Any, ...]], names: Sequence[str]
    ) -> None:
        self.ray = connected()
        self.arguments, self.names = list(arguments), list(names)
        self.shared = self.ray.put(shared)
        self.kind = self.ray.remote(num_cpus=1, max_restarts=0)(kind)
        self.actors = [self._create(each) for each in self.arguments]
        self.lost = 0  # number of workers that were replaced

    def _create(self, arguments: tuple[Any, ...], replacement: bool = False) -> Any:
        """Create an actor. A replacement reserves no CPU, so that Ray can place it on any node."""
        kind = self.kind.options(num_cpus=0) if replacement else self.kind
        return kind.remote(self.shared, *arguments)

    def call_all(self, call: Callable[[Any], Any]) -> list[Any]:
        """Call all workers at once and return their results."""
        futures = [self._submit(call, actor) for actor in self.actors]
        return [self._result(i, call, future) for i, future in enumerate(futures)]

    def _submit(self, call: Callable[[Any], Any], actor: Any) -> Any:
        """Return the future of a call, or None if the actor is known to be dead."""
        try:
            return call(actor)
        except self.ray.exceptions.RayActorError:
            return None

    def _result(self, i: int, call: Callable[[Any], Any], future: Any = None) -> Any:
        """Return the result of a worker. If the worker is lost, replace it and repeat the call."""
        for attempt in range(TRIES):
            if future is None:
                future = self._submit(call, self.actors[i])
            try:
                if future is not None:
                    return self.ray.get(future)
                why = "its process has ended"
            except (self.ray.exceptions.RayActorError, self.ray.exceptions.ObjectLostError) as error:
                why = str(error).strip().splitlines()[0]
            except self.ray.exceptions.RayTaskError as error:
                raise error.cause from None  # the worker's own error: a damaged shard, a loss that is not finite
            logger.warning(
                "the worker of %s was lost (%s). A new worker repeats its call.", self.names[i], why
            )
            self.lost += 1
            time.sleep(0.1 * attempt)  # a failing node takes a moment to disappear
            self.actors[i], future = self._create(self.arguments[i], replacement=True), None
        raise TrainingError(
            f"the worker of {self.names[i]} was lost {TRIES} times, perhaps for lack of memory. Set a lower memory "
            "limit, or use more workers."
        )

    def stop(self) -> None:
        """Stop the actors and free their memory."""
        for actor in self.actors:
            self.ray.kill(actor)
        self.actors = []

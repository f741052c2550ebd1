"""Plain requests of /tag, labelled between two turns of the loop: no task, no scope, no messages."""

from __future__ import annotations

import time
from collections.abc import Callable

from tagwise.errors import TagwiseError
from tagwise.serve.batching import Batcher
from tagwise.serve.metrics import Metrics
from tagwise.serve.work import Job
from tagwise.web.guards import Guards
from tagwise.web.plain import KNOWN, MOST, Head, Told


class Asked:
    """One plain request that waits for its answer."""

    __slots__ = ("begin", "metrics", "told")

    def __init__(self, metrics: Metrics, told: Told) -> None:
        self.metrics, self.told, self.begin = metrics, told, time.perf_counter()

    def done(self) -> bool:
        """Nobody gives up: its turn is the next one."""
        return False

    def set_result(self, body: bytes) -> None:
        """The answer."""
        self.metrics.in_flight -= 1
        self.metrics.request("/tag", 200, time.perf_counter() - self.begin)
        self.told(body)

    def set_exception(self, error: Exception) -> None:
        """What went wrong is told the ordinary way."""
        self.metrics.in_flight -= 1
        self.told(None)


class PlainTags:
    """Takes plain requests of /tag whose batch is small; what is refused, and what takes longer, goes the ordinary way.

    Args:
        job: what a body asks for, and whom.
        metrics: where requests are counted.
        guards: whose names the server answers to.
        longest: bytes of a body.
    """

    def __init__(
        self, job: Callable[[bytes], tuple[Batcher, Job]], metrics: Metrics, guards: Guards, longest: int
    ) -> None:
        self.job, self.metrics, self.guards, self.longest = job, metrics, guards, longest
        self._heads: dict[bytes, int] = {}  # heads that are plain, and ours: the length of their bodies

    def take(self, data: bytes, told: Told) -> bool:
        """See `web.plain.Plain`."""
        at = data.find(b"\r\n\r\n", 0, MOST) + 4
        head = data[:at]
        length = self._heads.get(head)
        if length is None:
            found = Head.of(head)
            if found is None or found.path != b"/tag" or not self.guards.is_ours(found.host):
                return False
            if (length := found.length) > self.longest:
                return False
            if len(self._heads) < KNOWN:
                self._heads[head] = length
        if len(data) - at != length:
            return False
        try:
            batcher, job = self.job(data[at:])
        except TagwiseError:
            return False
        if batcher.soon(job, Asked(self.metrics, told)):
            self.metrics.in_flight += 1
            return True
        return False


__all__ = ["PlainTags"]

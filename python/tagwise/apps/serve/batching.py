"""Batching: requests that wait at the same time are labelled by one call.

Requests that arrive while the event loop is busy are read in one iteration of the loop, so their jobs form a batch in
the next one. A batch that is expected to take at most `LOOP_SECONDS`, by the time per token so far, runs in the event
loop itself, because handing it to a thread would take longer. Larger batches go to one worker thread, which processes
them one by one while small batches continue in the loop: the core releases the GIL. The queues are bounded.

A request whose deadline passes cancels its future. The thread then stops its batch (`_core.Stop`) within milliseconds,
and the other jobs of the batch are queued again.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import tagwise._core as _core
from tagwise.apps.serve.metrics import Metrics
from tagwise.apps.serve.models import ServedModel
from tagwise.apps.serve.tagging import Job, run
from tagwise.apps.web.problems import RefusedRequest
from tagwise.base.exceptions import StoppedError

#: Seconds that one batch may block the event loop.
LOOP_SECONDS = 0.004
#: Number of jobs above which a batch no longer waits for more.
GATHERED = 64
#: Maximum number of tokens of a batch in the thread, unless it is a single job.
BATCH = 20_000


def busy() -> RefusedRequest:
    """Return the error for a request that finds the queue full."""
    return RefusedRequest(
        503, "BusyError", "too many requests are waiting. Try again later", {"retry-after": "1"}
    )


Waiting = asyncio.Future[bytes]


class Batcher:
    """Collects the jobs of one model into batches.

    Args:
        model: Model of the jobs. A batch uses the version that is loaded when it starts.
        metrics: Counters of batches.
        waiting: Maximum number of waiting jobs. Further ones get status 503.
        tokens: Maximum number of tokens of all waiting jobs together.
    """

    def __init__(
        self, model: ServedModel, metrics: Metrics, waiting: int = 1024, tokens: int = 1_000_000
    ) -> None:
        self.model, self.metrics, self.most, self.most_tokens = model, metrics, waiting, tokens
        self.pace: float | None = None  # seconds per token, including the Python code
        self._small: deque[tuple[Job, Waiting]] = deque()
        self._large: deque[tuple[Job, Waiting]] = deque()
        self.queued = 0  # tokens
        self._scheduled = False
        self._working: _core.Stop | None = None  # stops the current batch of the thread
        self._thread: ThreadPoolExecutor | None = None

    @property
    def waiting(self) -> int:
        """Number of waiting jobs."""
        return len(self._small) + len(self._large)

    def submit(self, job: Job) -> asyncio.Future[bytes]:
        """Queue a job, and return the future of its response."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[bytes] = loop.create_future()
        self._admit(job.cost)
        if self.pace is None or job.cost * self.pace > LOOP_SECONDS:
            self._large.append((job, future))
            self._hand_over(loop)
            return future
        self._small.append((job, future))
        if not self._scheduled:
            self._scheduled = True
            loop.call_soon(self._gather, loop, 0)
        return future

    def _gather(self, loop: asyncio.AbstractEventLoop, before: int) -> None:
        """Wait another iteration of the loop, which reads sockets, while each one brings more jobs and they are few."""
        if before < len(self._small) <= GATHERED:
            loop.call_soon(self._gather, loop, len(self._small))
        else:
            self._run_in_loop()

    async def call(self, function: Callable[[], bytes], cost: int) -> bytes:
        """Call a function in the thread, not as part of a batch, and stop it if the caller is cancelled."""
        stop = _core.Stop()

        def stoppable() -> bytes:
            with stop:
                return function()

        self._admit(cost)
        try:
            return await asyncio.get_running_loop().run_in_executor(self._executor(), stoppable)
        finally:
            stop.request()
            self.queued -= cost

    def _admit(self, cost: int) -> None:
        if self.waiting >= self.most or (self.queued > 0 and self.queued + cost > self.most_tokens):
            self.metrics.refused += 1
            raise busy()
        self.queued += cost

    def _executor(self) -> ThreadPoolExecutor:
        if self._thread is None:
            self._thread = ThreadPoolExecutor(1, thread_name_prefix="tagwise-batch")
        return self._thread

    def _next_batch(self, queue: deque[Any], most: float) -> list[Any]:
        """Return the jobs of the next batch: one, and more up to `most` tokens. Cancelled jobs are dropped."""
        batch: list[Any] = []
        cost = 0
        while queue and (not batch or cost + queue[0][0].cost <= most):
            job, future = queue.popleft()
            if future.done():  # the deadline of its request has passed
                self.queued -= job.cost
                continue
            batch.append((job, future))
            cost += job.cost
        return batch

    def _run_in_loop(self) -> None:
        """Label a small batch in the event loop."""
        self._scheduled = False
        batch = self._next_batch(self._small, LOOP_SECONDS / (self.pace or 1.0))
        if batch:
            self._done(batch, *self._run(batch, True))
        if self._small:
            self._scheduled = True
            asyncio.get_running_loop().call_soon(self._run_in_loop)

    def _hand_over(self, loop: asyncio.AbstractEventLoop) -> None:
        """Hand the next batch to the thread, unless it is busy."""
        if self._working or not (batch := self._next_batch(self._large, BATCH)):
            return
        self._working = stop = _core.Stop()
        single_threaded = sum(job.cost for job, _ in batch) < 500
        task = loop.run_in_executor(self._executor(), self._stoppable, batch, single_threaded, stop)

        def ended(_future: asyncio.Future[bytes]) -> None:
            stop.request()  # a future that is done without a response was cancelled

        for _, future in batch:
            future.add_done_callback(ended)

        def back(found: asyncio.Future[Any]) -> None:
            self._working = None
            for _, future in batch:
                future.remove_done_callback(ended)
            if found.cancelled():  # the server is shutting down
                return
            if found.result() is None:
                for job, future in reversed(batch):
                    self._large.appendleft((job, future))  # `_next_batch` drops those that are done
            else:
                self._done(batch, *found.result())
            self._hand_over(loop)

        task.add_done_callback(back)

    def _stoppable(
        self, batch: list[Any], single_threaded: bool, stop: _core.Stop
    ) -> tuple[list[bytes | Exception], float] | None:
        """Run a batch in the thread, and return None if it was stopped."""
        try:
            with stop:
                return self._run(batch, single_threaded)
        except StoppedError:
            return None

    def _run(self, batch: list[Any], single_threaded: bool) -> tuple[list[bytes | Exception], float]:
        begin = time.process_time()
        jobs = [job for job, _ in batch]
        try:
            found = run(self.model.loaded, self.model.name, jobs, single_threaded)
        except StoppedError:
            raise
        except BaseException as error:  # any error must resolve the futures
            found = [error if isinstance(error, Exception) else RuntimeError(repr(error))] * len(jobs)
        return found, time.process_time() - begin

    def _done(self, batch: list[Any], found: list[bytes | Exception], seconds: float) -> None:
        """Resolve the futures of a batch and update the time per token, quickly downwards and slowly upwards.

        Time is the CPU time of the process, so that load from other processes does not count. It includes other threads
        that run at the same time.
        """
        cost = sum(job.cost for job, _ in batch)
        self.queued -= cost
        # A call has a fixed cost, which distorts the time per token of batches below 50 tokens.
        pace = seconds / max(cost, 50)
        if self.pace is None:
            self.pace = pace
        self.pace += (0.5 if pace < self.pace else 0.05) * (pace - self.pace)
        self.metrics.batch(self.model.name, len(batch), cost, seconds)
        for (_, waiting), response in zip(batch, found):
            if waiting.done():
                continue
            if isinstance(response, bytes):
                waiting.set_result(response)
            else:
                waiting.set_exception(response)

    def close(self) -> None:
        """Stop the current batch and shut down the thread."""
        if self._working is not None:
            self._working.request()
        if self._thread is not None:
            self._thread.shutdown(wait=True, cancel_futures=True)

"""Requests that wait at the same moment are labelled by one call.

What arrives while the loop is busy is read in one of its turns, so that the jobs of a turn are there together in the
next one. A batch that is soon done (`TURN` seconds, by what tokens of this model have taken so far) is done between two
turns, without a thread: handing it over would take longer. Whatever is larger goes to one thread that works through it
batch by batch while small ones go on; the core releases the GIL. What waits is bounded.

A request whose deadline passes cancels its future. The thread stops what it does for that request (`_core.Stop`) within
some milliseconds; the other jobs of the batch begin again.
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
from tagwise.apps.serve.models import Shelved
from tagwise.apps.serve.tagging import Job, run
from tagwise.apps.web.problems import RefusedRequest
from tagwise.base.exceptions import StoppedError

#: Seconds that the loop may be held up by one batch.
TURN = 0.004
#: Jobs up to which a batch waits for more of them.
TOGETHER = 64
#: Tokens of a batch in the thread, as long as it is not one job.
BATCH = 20_000


def busy() -> RefusedRequest:
    """The refusal of what has no place to wait in."""
    return RefusedRequest(
        503, "BusyError", "too many requests are waiting; try again later", {"retry-after": "1"}
    )


Waiting = asyncio.Future[bytes]


class Batcher:
    """Gathers the jobs of one model.

    Args:
        model: whose jobs; each batch takes what is loaded when it begins.
        metrics: where batches are counted.
        waiting: jobs that may wait; one more is refused with 503.
        tokens: of all that wait together.
    """

    def __init__(
        self, model: Shelved, metrics: Metrics, waiting: int = 1024, tokens: int = 1_000_000
    ) -> None:
        self.model, self.metrics, self.most, self.most_tokens = model, metrics, waiting, tokens
        self.pace: float | None = None  # seconds a token, with the Python around it
        self._small: deque[tuple[Job, Waiting]] = deque()
        self._large: deque[tuple[Job, Waiting]] = deque()
        self.queued = 0  # tokens
        self._turn = False
        self._working: _core.Stop | None = None  # ends the batch that the thread works on
        self._thread: ThreadPoolExecutor | None = None

    @property
    def waiting(self) -> int:
        """Jobs that wait."""
        return len(self._small) + len(self._large)

    def submit(self, job: Job) -> asyncio.Future[bytes]:
        """The answer of a job, which comes when its batch is done."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[bytes] = loop.create_future()
        self._admit(job.cost)
        if self.pace is None or job.cost * self.pace > TURN:
            self._large.append((job, future))
            self._hand_over(loop)
            return future
        self._small.append((job, future))
        if not self._turn:
            self._turn = True
            loop.call_soon(self._gather, loop, 0)
        return future

    def _gather(self, loop: asyncio.AbstractEventLoop, before: int) -> None:
        """Sockets are read between two turns: one more as long as each brings more jobs, and these are few."""
        if before < len(self._small) <= TOGETHER:
            loop.call_soon(self._gather, loop, len(self._small))
        else:
            self._in_turn()

    async def call(self, function: Callable[[], bytes], cost: int) -> bytes:
        """The answer of a function that the thread calls by itself; stopped when the caller is cancelled."""
        stop = _core.Stop()

        def stoppable() -> bytes:
            with stop:
                return function()

        self._admit(cost)
        try:
            return await asyncio.get_running_loop().run_in_executor(self._executor(), stoppable)
        finally:
            stop.ask()
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

    def _taken(self, queue: deque[Any], most: float) -> list[Any]:
        """The jobs of the next batch: one, and further ones up to `most` tokens; nobody waits for those left out."""
        taken: list[Any] = []
        cost = 0
        while queue and (not taken or cost + queue[0][0].cost <= most):
            job, future = queue.popleft()
            if future.done():  # its request has run out of time
                self.queued -= job.cost
                continue
            taken.append((job, future))
            cost += job.cost
        return taken

    def _in_turn(self) -> None:
        """Label what is small, here and now."""
        self._turn = False
        batch = self._taken(self._small, TURN / (self.pace or 1.0))
        if batch:
            self._done(batch, *self._run(batch, True))
        if self._small:
            self._turn = True
            asyncio.get_running_loop().call_soon(self._in_turn)

    def _hand_over(self, loop: asyncio.AbstractEventLoop) -> None:
        """Give the thread its next batch, unless it has one."""
        if self._working or not (batch := self._taken(self._large, BATCH)):
            return
        self._working = stop = _core.Stop()
        alone = sum(job.cost for job, _ in batch) < 500
        task = loop.run_in_executor(self._executor(), self._stoppable, batch, alone, stop)

        def ended(_future: asyncio.Future[bytes]) -> None:
            stop.ask()  # before its answer has come, a future ends by being cancelled

        for _, future in batch:
            future.add_done_callback(ended)

        def back(found: asyncio.Future[Any]) -> None:
            self._working = None
            for _, future in batch:
                future.remove_done_callback(ended)
            if found.cancelled():  # the server ends
                return
            if found.result() is None:
                for job, future in reversed(batch):
                    self._large.appendleft((job, future))  # `_taken` leaves out the ones that are done
            else:
                self._done(batch, *found.result())
            self._hand_over(loop)

        task.add_done_callback(back)

    def _stoppable(
        self, batch: list[Any], alone: bool, stop: _core.Stop
    ) -> tuple[list[bytes | Exception], float] | None:
        """`_run` in the thread; None if it was stopped."""
        try:
            with stop:
                return self._run(batch, alone)
        except StoppedError:
            return None

    def _run(self, batch: list[Any], alone: bool) -> tuple[list[bytes | Exception], float]:
        begin = time.process_time()
        jobs = [job for job, _ in batch]
        try:
            found = run(self.model.loaded, self.model.name, jobs, alone)
        except StoppedError:
            raise
        except BaseException as error:  # whatever it is, nobody may wait for ever
            found = [error if isinstance(error, Exception) else RuntimeError(repr(error))] * len(jobs)
        return found, time.process_time() - begin

    def _done(self, batch: list[Any], found: list[bytes | Exception], seconds: float) -> None:
        """Hand out answers; note how long a token took: less counts soon, more little by little.

        Time is the processor's, for this process: a machine that is busy with others does not make a batch larger. What
        other threads do beside the batch is in it.
        """
        cost = sum(job.cost for job, _ in batch)
        self.queued -= cost
        # a call has a cost of its own, so that what a token of a tiny batch takes says little: not below 50 tokens
        pace = seconds / max(cost, 50)
        if self.pace is None:
            self.pace = pace
        self.pace += (0.5 if pace < self.pace else 0.05) * (pace - self.pace)
        self.metrics.batch(self.model.name, len(batch), cost, seconds)
        for (_, waiting), answer in zip(batch, found):
            if waiting.done():
                continue
            if isinstance(answer, bytes):
                waiting.set_result(answer)
            else:
                waiting.set_exception(answer)

    def close(self) -> None:
        """Stop what the thread does and end it."""
        if self._working is not None:
            self._working.ask()
        if self._thread is not None:
            self._thread.shutdown(wait=True, cancel_futures=True)

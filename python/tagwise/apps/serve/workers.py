"""Worker processes on one socket: models are loaded once before forking, and dead workers are replaced."""

from __future__ import annotations

import contextlib
import logging
import os
import signal
import threading
import time
import traceback
import warnings
from collections.abc import Callable
from types import FrameType

from tagwise.base.exceptions import ParameterError, TagwiseError

logger = logging.getLogger("tagwise.apps.serve")

#: Minimum lifetime of a worker in seconds, and the number of shorter ones in a row after which the server gives up.
SHORTEST_LIFE, MOST_FAILURES = 1.0, 5


def supervise(n: int, body: Callable[[int], None]) -> None:
    """Run `body(i)` in n forked processes until SIGTERM or SIGINT, then send them SIGTERM and wait.

    A worker that dies is replaced. The thread pool of the core is created again in a forked child. The memory of the
    models is shared copy-on-write.
    """
    if not hasattr(os, "fork"):
        raise ParameterError(
            "--workers requires a system with fork. Start several servers on different ports instead"
        )
    children: dict[int, tuple[int, float]] = {}
    stopping = False

    def stop(_number: int, _frame: FrameType | None) -> None:
        nonlocal stopping
        stopping = True
        for pid in list(children):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGTERM)

    def start(i: int) -> None:
        blocked = signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGTERM, signal.SIGINT))
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", DeprecationWarning)  # threads of the core: see the docstring
                pid = os.fork()
            if pid == 0:
                _child(i, body, blocked)
            children[pid] = (i, time.monotonic())
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, blocked)

    before = {number: signal.signal(number, stop) for number in (signal.SIGTERM, signal.SIGINT)}
    failures = 0
    try:
        for i in range(n):
            start(i)
        while children:
            pid, status = os.waitpid(-1, 0)
            if pid not in children:
                continue
            i, since = children.pop(pid)
            if stopping:
                continue
            code = os.waitstatus_to_exitcode(status)
            failures = failures + 1 if time.monotonic() - since < SHORTEST_LIFE else 0
            logger.error("worker %d (process %d) exited with code %d", i, pid, code)
            if failures >= MOST_FAILURES:
                stop(0, None)
            else:
                start(i)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    if failures >= MOST_FAILURES:
        raise TagwiseError(
            f"workers exited {MOST_FAILURES} times within {SHORTEST_LIFE:g} s of their start. See the log above for "
            "the reason"
        )


def _end_with(parent: int) -> None:
    """Send SIGTERM to this process when the parent has died, which sends no signal itself if it was killed by "
    "SIGKILL."""
    while os.getppid() == parent:
        time.sleep(0.5)
    os.kill(os.getpid(), signal.SIGTERM)


def _child(i: int, body: Callable[[int], None], mask: object) -> None:
    """Run a worker, and exit the process without returning."""
    code = 1
    try:
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)  # type: ignore[arg-type]
        threading.Thread(target=_end_with, args=(os.getppid(),), daemon=True).start()
        body(i)
        code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(code)

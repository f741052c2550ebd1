"""Ctrl-C during training, which stops it after the current iteration."""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

from tagwise.cli.app import say


class Interrupt:
    """A callback that stops training after the current iteration once Ctrl-C was pressed.

    A second Ctrl-C raises KeyboardInterrupt.
    """

    def __init__(self) -> None:
        self.requested = False

    def __call__(self, _: Any = None) -> bool:
        return self.requested

    @contextmanager
    def armed(self) -> Iterator[None]:
        """Handle Ctrl-C while the block runs."""

        def handle(_number: int, _frame: FrameType | None) -> None:
            self.requested = True
            # Below the progress line, which cannot be cleared here: a signal handler must not acquire its locks.
            line = "\n" if sys.stderr.isatty() else ""
            say(line + "stopping after this iteration. Press Ctrl-C again to stop at once")
            signal.signal(signal.SIGINT, signal.default_int_handler)

        before = signal.signal(signal.SIGINT, handle)
        try:
            yield
        finally:
            signal.signal(signal.SIGINT, before)

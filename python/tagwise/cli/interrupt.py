"""Ctrl-C while something trains: a wish to stop, not an accident."""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

from tagwise.cli.app import say


class Interrupt:
    """Ctrl-C once: training stops after the running iteration. Twice: at once, as without this class."""

    def __init__(self) -> None:
        self.asked = False

    def __call__(self, _: Any = None) -> bool:
        return self.asked

    @contextmanager
    def armed(self) -> Iterator[None]:
        """Listen for Ctrl-C while the block runs."""

        def handle(_number: int, _frame: FrameType | None) -> None:
            self.asked = True
            line = (
                "\n" if sys.stderr.isatty() else ""
            )  # below the line of progress, whose locks a handler must not ask for
            say(line + "stopping after this iteration; Ctrl-C again to stop at once")
            signal.signal(signal.SIGINT, signal.default_int_handler)

        before = signal.signal(signal.SIGINT, handle)
        try:
            yield
        finally:
            signal.signal(signal.SIGINT, before)

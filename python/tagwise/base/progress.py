"""Callbacks and progress lines of long calls, on a terminal or in a notebook."""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from html import escape
from types import TracebackType
from typing import Any

from rich.console import Console
from rich.progress import (
    BarColumn,
    Progress,
    SpinnerColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from tagwise.base.domains import shown
from tagwise.base.exceptions import ParameterError

logger = logging.getLogger("tagwise")

EVERY = 0.1  # seconds between two updates in a notebook


def checked_callbacks(callbacks: Iterable[Callable[..., Any]]) -> list[Callable[..., Any]]:
    """Return callbacks as a list, or raise a ParameterError if one is not callable. A single one is accepted."""
    functions = list(callbacks) if isinstance(callbacks, Iterable) else [callbacks]
    for callback in functions:
        if not callable(callback):
            raise ParameterError(f"callbacks: {shown(callback)} is not callable. Pass a list of functions")
    return functions


def in_notebook() -> bool:
    """Return whether this process is the kernel of a notebook. IPython in a terminal is not."""
    module = sys.modules.get("IPython")
    shell = module.get_ipython() if module is not None and hasattr(module, "get_ipython") else None
    return shell is not None and getattr(shell, "kernel", None) is not None


class NotebookBar:
    """Progress line as HTML below a cell, which is removed at the end."""

    def __init__(self, title: str) -> None:
        from IPython.display import HTML, display

        self._html = HTML
        self._title = title
        self._begin = time.monotonic()
        self._drawn = -EVERY
        self._handle: Any = display(HTML(self._text(0, 1, "")), display_id=True)

    def _text(self, completed: int, total: int, state: str) -> str:
        took = time.monotonic() - self._begin
        return (
            f'<span>{escape(self._title)} <progress value="{completed}" max="{max(total, 1)}"></progress> '
            f"{completed}/{total} {escape(state)} {took:.1f} s</span>"
        )

    def update(self, completed: int, total: int, state: str) -> None:
        """Update the display, unless that was done a moment ago."""
        now = time.monotonic() - self._begin
        if self._handle is not None and (now - self._drawn >= EVERY or completed == total):
            self._drawn = now
            self._handle.update(self._html(self._text(completed, total, state)))

    def stop(self) -> None:
        """Clear the display."""
        if self._handle is not None:
            self._handle.update(self._html(""))


class TerminalBar:
    """Progress line on stderr if that is a terminal, which is removed at the end.

    Training usually ends before ``max_iter``, so the time left is an upper bound.
    """

    def __init__(self, console: Console, title: str, *, quiet: bool = False) -> None:
        self._progress = Progress(
            SpinnerColumn(),
            TextColumn("{task.description}"),
            BarColumn(bar_width=20),
            TextColumn("{task.completed:.0f}/{task.total:.0f}"),
            TextColumn("{task.fields[state]}"),
            TimeElapsedColumn(),
            TextColumn("at most"),
            TimeRemainingColumn(),
            console=console,
            transient=True,
            disable=quiet or not console.is_terminal,
        )
        self._task = self._progress.add_task(title, total=1, state="reading features")
        self._progress.start()

    def update(self, completed: int, total: int, state: str) -> None:
        """Show the progress."""
        self._progress.update(self._task, completed=completed, total=total, state=state)

    def stop(self) -> None:
        """Clear the display."""
        self._progress.stop()


class TrainingProgress:
    """Callback for ``fit`` that shows a progress line on a terminal or in a notebook."""

    def __init__(self, console: Console, title: str, *, quiet: bool = False) -> None:
        self._make: Callable[[], TerminalBar | NotebookBar] = (
            (lambda: NotebookBar(title))
            if in_notebook() and not quiet
            else (lambda: TerminalBar(console, title, quiet=quiet))
        )
        self._bar: TerminalBar | NotebookBar | None = None

    def __enter__(self) -> TrainingProgress:
        self._bar = self._make()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.stop()

    def __call__(self, step: Any) -> None:
        """Show one iteration."""
        state = f"objective {step.objective:,.2f}"
        if getattr(step, "gap", None) is not None and step.gap < 1.0:
            state += f"  gap {step.gap:.0e}"
        if step.dev_score is not None:
            state += f"  dev {100 * step.dev_score:.2f}"
        self.update(step.iteration, step.max_iter, state)

    def update(self, completed: int, total: int, state: str) -> None:
        """Show the progress."""
        if self._bar is not None:
            self._bar.update(completed, total, state)


@contextmanager
def progress(title: str, verbose: int) -> Iterator[TrainingProgress | None]:
    """Provide a progress line if `verbose` is set, else None."""
    if not verbose:
        yield None
        return
    with TrainingProgress(Console(stderr=True), title) as line:
        yield line

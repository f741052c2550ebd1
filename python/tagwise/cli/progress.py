"""Training, watched on a terminal: iteration, objective, development score, time left."""

from __future__ import annotations

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


class TrainingProgress:
    """A callback for ``fit`` that draws a line on stderr while it is a terminal.

    Training mostly ends before ``max_iter``: the time left is that of the whole way, so at most that.
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

    def __enter__(self) -> TrainingProgress:
        self._progress.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._progress.stop()

    def __call__(self, step: Any) -> None:
        """Show one iteration."""
        state = f"objective {step.objective:,.2f}"
        if step.dev_score is not None:
            state += f"  dev {100 * step.dev_score:.2f}"
        self._progress.update(self._task, completed=step.iteration, total=step.max_iter, state=state)


__all__ = ["TrainingProgress"]

"""Alternated timing, ratios with their spread, tables, JSON: what every benchmark shares.

Machines are noisy, so a figure is a ratio of two sides measured in turn in the same run: the median over the
rounds, with the smallest and largest ratio of a round beside it.
"""

from __future__ import annotations

import gc
import json
import os
import platform
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from importlib import metadata
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

OUT = Path(__file__).parent / "out"
VERDICT = {True: "ok", False: "MISSED", None: ""}


@dataclass(frozen=True)
class Context:
    """What was asked for on the command line."""

    quick: bool = False
    repeat: int = 5
    workloads: tuple[str, ...] = ("chunk", "ner", "pos")
    threads: tuple[int, ...] = (1, 2)

    @property
    def rounds(self) -> int:
        """Rounds of an alternated measurement."""
        return min(self.repeat, 3) if self.quick else self.repeat


@dataclass
class Row:
    """One line of a table: what, the figures as text, the demand and whether it holds (None: no demand)."""

    name: str
    cells: dict[str, str]
    demand: str = ""
    holds: bool | None = None


@dataclass
class Result:
    """A benchmark's table and the raw figures behind it."""

    name: str
    title: str
    rows: list[Row] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    raw: dict[str, Any] = field(default_factory=dict)

    def add(self, name: str, cells: Mapping[str, str], demand: str = "", holds: bool | None = None) -> None:
        """Append one row, and say it at once: a run that is cut off has shown what it had."""
        self.rows.append(Row(name, dict(cells), demand, holds))
        figures = ", ".join(f"{what} {figure}" for what, figure in cells.items())
        aim = f" [{demand}: {VERDICT[holds] or 'no verdict'}]" if demand else ""
        sys.stderr.write(f"{self.name}: {name}: {figures}{aim}\n")
        sys.stderr.flush()


def clock() -> tuple[float, float]:
    """Wall and CPU time of this process (all threads) so far."""
    return time.perf_counter(), time.process_time()


def stopwatch(work: Callable[[], object]) -> tuple[float, float]:
    """Wall and CPU time of one call, garbage collected before and held back during."""
    gc.collect()
    gc.disable()
    try:
        wall, cpu = clock()
        work()
        wall_end, cpu_end = clock()
        return wall_end - wall, cpu_end - cpu
    finally:
        gc.enable()


def in_a_row(work: Callable[[], object], times: int) -> list[tuple[float, float]]:
    """Wall and CPU time of each of several calls; garbage is collected before the first alone, since a collection walks
    over all objects and leaves none of the work's own data in the caches."""
    gc.collect()
    gc.disable()
    try:
        out = []
        for _ in range(times):
            wall, cpu = clock()
            work()
            end = clock()
            out.append((end[0] - wall, end[1] - cpu))
        return out
    finally:
        gc.enable()


def seconds(work: Callable[[], object]) -> float:
    """Wall time of one call."""
    return stopwatch(work)[0]


@dataclass
class Times:
    """Wall and CPU times of one side, round by round."""

    wall: list[float] = field(default_factory=list)
    cpu: list[float] = field(default_factory=list)


def alternate(sides: Mapping[str, Callable[[], object]], rounds: int) -> dict[str, Times]:
    """Times of each side, the sides taking turns; every other round goes backwards."""
    times = {name: Times() for name in sides}
    for r in range(rounds):
        for name in sides if r % 2 == 0 else reversed(list(sides)):
            wall, cpu = stopwatch(sides[name])
            times[name].wall.append(wall)
            times[name].cpu.append(cpu)
    return times


@dataclass(frozen=True)
class Ratio:
    """How many times faster: median of the per-round ratios, with the extremes."""

    median: float
    low: float
    high: float

    @classmethod
    def of(cls, slow: Sequence[float], fast: Sequence[float]) -> Ratio:
        """Round by round slow / fast."""
        each = [a / b for a, b in zip(slow, fast)]
        return cls(statistics.median(each), min(each), max(each))

    def __str__(self) -> str:
        return f"{self.median:.1f}x ({self.low:.1f}-{self.high:.1f})"


def milliseconds(times: Sequence[float]) -> str:
    """Median and extremes in ms."""
    low, high = min(times) * 1e3, max(times) * 1e3
    return f"{statistics.median(times) * 1e3:.1f} ms ({low:.1f}-{high:.1f})"


def duration(times: Sequence[float]) -> str:
    """Median and extremes in seconds."""
    return f"{statistics.median(times):.2f} s ({min(times):.2f}-{max(times):.2f})"


def machine() -> dict[str, Any]:
    """What the figures depend on and a reader cannot guess."""
    versions = {}
    for name in ("tagwise", "python-crfsuite", "sklearn-crfsuite", "nltk", "numpy"):
        try:
            versions[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            versions[name] = "not installed"
    return {
        "date": time.strftime("%Y-%m-%d", time.gmtime()),
        "cpu": _cpu(),
        "cores": os.cpu_count(),
        "load": list(os.getloadavg()) if hasattr(os, "getloadavg") else None,
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}",
        "revision": _revision(),
        "versions": versions,
    }


def _cpu() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor()
    return next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), "unknown")


def _revision() -> str:
    try:
        done = subprocess.run(
            ["git", "describe", "--always", "--dirty"],
            cwd=Path(__file__).parent,
            capture_output=True,
            text=True,
            check=True,
        )
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    return done.stdout.strip()


def save(result: Result, context: Context) -> Path:
    """Write benchmarks/out/<name>.json."""
    OUT.mkdir(parents=True, exist_ok=True)
    path = OUT / f"{result.name}.json"
    content = {**asdict(result), "context": asdict(context), "machine": machine()}
    path.write_text(json.dumps(content, indent=1, default=str) + "\n", encoding="utf-8")
    return path


def show(result: Result, console: Console) -> None:
    """A rich table on a terminal, markdown elsewhere."""
    columns = list(dict.fromkeys(name for row in result.rows for name in row.cells))
    head = ["", *columns, "demand", ""]
    lines = [
        [r.name, *(r.cells.get(c, "") for c in columns), r.demand, VERDICT[r.holds]] for r in result.rows
    ]
    if console.is_terminal:
        table = Table(title=result.title, title_justify="left")
        for i, name in enumerate(head):
            table.add_column(name, justify="left" if i == 0 else "right")
        for line in lines:
            table.add_row(*line)
        console.print(table)
    else:
        text = [f"\n### {result.title}\n", "| " + " | ".join(head) + " |", "|---" * len(head) + "|"]
        text += ["| " + " | ".join(line) + " |" for line in lines]
        sys.stdout.write("\n".join(text) + "\n")
    for note in result.notes:
        console.print(note, style="dim", markup=False, soft_wrap=True)


def child(module: str, *arguments: str) -> dict[str, Any]:
    """Run ``python -m benchmarks.<module> arguments...`` by itself and read the JSON it prints last."""
    done = subprocess.run(
        [sys.executable, "-m", f"benchmarks.{module}", *arguments],
        cwd=Path(__file__).parent.parent,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(
            f"benchmarks.{module} {' '.join(arguments)} failed:\n{done.stderr.strip()[-2000:]}"
        )
    answer: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    return answer

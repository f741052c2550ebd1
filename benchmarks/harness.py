"""Alternated timing, ratios with their spread, tables and JSON, shared by all benchmarks.

Machines are noisy. A figure is therefore a ratio of two sides measured alternately in the same run: the median over the
rounds, with the smallest and largest ratio of a round.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import platform
import re
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
#: Other packages whose versions are stored.
PACKAGES = ("python-crfsuite", "sklearn-crfsuite", "pytorch-crf", "nltk", "spacy", "torch", "numpy")
#: Folders and files that figures depend on.
MEASURED = ("python", "rust", "benchmarks", "examples", "Cargo.toml", "Cargo.lock")
VERDICT = {True: "ok", False: "MISSED", None: ""}


class NoCommit(SystemExit):
    """Raised if figures would be stored without the commit that they belong to. It ends a program with its message."""


@dataclass(frozen=True)
class Context:
    """Options of the command line."""

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
    """Row of a table: name, figures as text, goal, and whether it holds (None: no goal)."""

    name: str
    cells: dict[str, str]
    demand: str = ""
    holds: bool | None = None


@dataclass
class Result:
    """Table of a benchmark and its raw figures."""

    name: str
    title: str
    rows: list[Row] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    raw: dict[str, Any] = field(default_factory=dict)
    #: Plots for pages, by file name: title, names of the axes, points of each curve.
    pictures: dict[str, Any] = field(default_factory=dict)

    def draw(
        self,
        name: str,
        title: str,
        x_name: str,
        y_name: str,
        curves: Mapping[str, Sequence[tuple[float, float]]],
    ) -> None:
        """Store a plot, which `benchmarks.page` draws to docs/pictures/<name>.svg."""
        points = {
            curve: [[float(f"{x:.6g}"), float(f"{y:.6g}")] for x, y in found]
            for curve, found in curves.items()
        }
        self.pictures[name] = {"title": title, "x": x_name, "y": y_name, "curves": points}

    def add(self, name: str, cells: Mapping[str, str], demand: str = "", holds: bool | None = None) -> None:
        """Append a row and print it at once, so that a killed run has shown its results."""
        self.rows.append(Row(name, dict(cells), demand, holds))
        figures = ", ".join(f"{measure} {figure}" for measure, figure in cells.items())
        aim = f" [{demand}: {VERDICT[holds] or 'not judged'}]" if demand else ""
        sys.stderr.write(f"{self.name}: {name}: {figures}{aim}\n")
        sys.stderr.flush()


def clock() -> tuple[float, float]:
    """Return the wall and CPU time of this process (all threads) so far."""
    return time.perf_counter(), time.process_time()


def stopwatch(work: Callable[[], object]) -> tuple[float, float]:
    """Return the wall and CPU time of one call, with garbage collection before it and disabled during it."""
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
    """Return the wall and CPU time of each of several calls.

    Garbage is collected only before the first call: a collection visits all objects and evicts the data of the calls
    from the caches.
    """
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
    """Return the wall time of one call."""
    return stopwatch(work)[0]


@dataclass
class Times:
    """Wall and CPU times of one side, per round."""

    wall: list[float] = field(default_factory=list)
    cpu: list[float] = field(default_factory=list)


def alternate(sides: Mapping[str, Callable[[], object]], rounds: int) -> dict[str, Times]:
    """Return the times of each side, alternated. Every other round is in reverse order."""
    times = {name: Times() for name in sides}
    for r in range(rounds):
        for name in sides if r % 2 == 0 else reversed(list(sides)):
            wall, cpu = stopwatch(sides[name])
            times[name].wall.append(wall)
            times[name].cpu.append(cpu)
    return times


@dataclass(frozen=True)
class Ratio:
    """Speed-up: median of the ratios per round, with the extremes."""

    median: float
    low: float
    high: float

    @classmethod
    def of(cls, slow: Sequence[float], fast: Sequence[float]) -> Ratio:
        """Return the ratios slow / fast per round."""
        each = [a / b for a, b in zip(slow, fast)]
        return cls(statistics.median(each), min(each), max(each))

    def __str__(self) -> str:
        return f"{self.median:.1f}x ({self.low:.1f}-{self.high:.1f})"


def milliseconds(times: Sequence[float]) -> str:
    """Format the median and the extremes in milliseconds."""
    low, high = min(times) * 1e3, max(times) * 1e3
    return f"{statistics.median(times) * 1e3:.1f} ms ({low:.1f}-{high:.1f})"


def duration(times: Sequence[float]) -> str:
    """Format the median and the extremes in seconds."""
    return f"{statistics.median(times):.2f} s ({min(times):.2f}-{max(times):.2f})"


def machine() -> dict[str, Any]:
    """Return a description of the machine and the versions."""
    versions = {"tagwise": importlib.import_module("tagwise").__version__}
    for name in PACKAGES:
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
        "commit": commit(),
        "versions": versions,
    }


def _cpu() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor()
    return next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), "unknown")


def commit() -> str:
    """Return the commit of the measured code, or raise NoCommit.

    A copy without the repository names its commit in TAGWISE_COMMIT.
    """
    given = os.environ.get("TAGWISE_COMMIT", "")
    if given:
        if not re.fullmatch(r"[0-9a-f]{7,40}", given):
            raise NoCommit(f"TAGWISE_COMMIT={given!r} is not a commit, which has 7 to 40 hexadecimal digits")
        return given
    try:
        found = _git("rev-parse", "HEAD")
        changed = _git("status", "--porcelain", "--untracked-files=no", "--", *MEASURED)
    except (OSError, subprocess.CalledProcessError):
        raise NoCommit("this is not a git repository. Set TAGWISE_COMMIT to the commit of the copy") from None
    if changed:
        raise NoCommit(f"commit your changes first: {', '.join(line[3:] for line in changed.splitlines())}")
    return found


def _git(*arguments: str) -> str:
    root = Path(__file__).parents[1]
    done = subprocess.run(["git", *arguments], cwd=root, capture_output=True, text=True, check=True)
    return done.stdout.rstrip()


def save(result: Result, context: Context) -> Path:
    """Write benchmarks/out/<name>.json. Raise NoCommit if the figures cannot name the commit they belong to."""
    content = {**asdict(result), "context": asdict(context), "machine": machine()}
    OUT.mkdir(parents=True, exist_ok=True)
    path = OUT / f"{result.name}.json"
    path.write_text(json.dumps(content, indent=1, default=str) + "\n", encoding="utf-8")
    return path


def show(result: Result, console: Console) -> None:
    """Print a rich table on a terminal, Markdown otherwise."""
    columns = list(dict.fromkeys(name for row in result.rows for name in row.cells))
    head = ["", *columns, "goal", ""]
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
    """Run ``python -m benchmarks.<module> arguments...`` in its own process and return the JSON that it prints last."""
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

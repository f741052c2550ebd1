"""Run taggers in processes of their own, each pinned to one core, and score their labels."""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import tagwise as tw

from ..harness import Context, Result
from .cell import PROGRAMS, TOOLS
from .corpora import COLUMNS, CORPORA, read_task, write_task

ROOT = Path(__file__).parents[2]
#: Share of the time limit after which neural taggers stop training and keep their best model.
TRAINING = 0.8
#: Order of the start: the slowest first, so that the last processes are short. Others follow in any order.
SLOWEST = (
    "spaCy",
    "BiLSTM-CRF",
    "Wapiti",
    "CRF++, given attributes",
    "Wapiti, given attributes",
    "CRFsuite, given attributes",
    "sklearn-crfsuite",
    "CRF++",
    "NLTK perceptron, given attributes",
    "NLTK",
    "CRFsuite",
)
#: Tagger that is measured only on a corpus with POS: on words alone it is another row.
POS_ONLY = "tagwise CRF, words alone"


class Cell(NamedTuple):
    """A tagger and a corpus."""

    tool: str
    corpus: str

    def __str__(self) -> str:
        return f"{self.corpus}: {self.tool}"


class Running(NamedTuple):
    """A process of a cell, its core, its output and its start."""

    cell: Cell
    process: subprocess.Popen[bytes]
    core: int
    output: Path
    begin: float


def start_rank(cell: Cell) -> tuple[int, bool]:
    """Return the rank of a cell in the order of the start. ewt-pos has the most labels and is the slowest."""
    rank = SLOWEST.index(cell.tool) if cell.tool in SLOWEST else len(SLOWEST)
    return rank, cell.corpus != "ewt-pos"


def missing(tool: str) -> str | None:
    """Return why a tagger cannot run here, or None."""
    need = TOOLS[tool].needs
    if need not in PROGRAMS:
        return None if importlib.util.find_spec(need) else f"the package {need} is not installed"
    path = shutil.which(need)
    if path is None:
        return f"the program {need} is not on PATH"
    done = subprocess.run([path, "--version"], capture_output=True, text=True, check=False)
    expected = {"wapiti": "Wapiti v", "crf_learn": "CRF++"}[need]  # Debian's wapiti is a web scanner
    return None if expected in done.stdout + done.stderr else f"{need} is another program of that name"


def program_versions() -> Iterator[str]:
    """Yield the versions of the programs that are not Python packages."""
    for command in PROGRAMS:
        if shutil.which(command):
            done = subprocess.run([command, "--version"], capture_output=True, text=True, check=False)
            yield (done.stdout + done.stderr).strip().splitlines()[0].replace(" of ", " ")


def start(cell: Cell, core: int, data: Path, limit: float) -> Running:
    """Start the process of a cell on one core, with one thread."""
    output = data / f"{cell.tool}-{cell.corpus}".replace(" ", "_").replace("/", "_")
    threads = {f"{name}_NUM_THREADS": "1" for name in ("OMP", "MKL", "OPENBLAS", "BLIS")}
    command = [
        sys.executable,
        "-m",
        "benchmarks.taggers.cell",
        cell.tool,
        str(data / cell.corpus),
        str(TRAINING * limit),
    ]
    with output.open("wb") as out, output.with_suffix(".err").open("wb") as errors:
        process = subprocess.Popen(
            command,
            cwd=ROOT,
            stdout=out,
            stderr=errors,
            env={**os.environ, **threads, "CUDA_VISIBLE_DEVICES": ""},
            start_new_session=True,
        )
    os.sched_setaffinity(process.pid, {core})
    return Running(cell, process, core, output, time.monotonic())


def kill(process: subprocess.Popen[bytes]) -> None:
    """Kill a process and the programs that it started."""
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def finished(running: Running, gold: list[list[str]]) -> dict[str, Any]:
    """Return the figures of a process that has ended, with its score."""
    if running.process.returncode:
        error = running.output.with_suffix(".err").read_text("utf-8", "replace").strip()
        return {"failed": error.splitlines()[-1] if error else f"exit status {running.process.returncode}"}
    found: dict[str, Any] = json.loads(running.output.read_text("utf-8").strip().splitlines()[-1])
    report = tw.evaluate(gold, found.pop("labels"))
    return {**found, "score": 100 * report.score, "accuracy": 100 * report.accuracy}


def cells_of(found: dict[str, Any], name: str, corpus: str) -> dict[str, str]:
    """Return the figures of a cell as text."""
    tool = TOOLS[name]
    reads = tool.reads if corpus in COLUMNS or tool.reads != "words and POS" else "words"
    out = {"features": tool.kind, "reads": reads, "score": "", "training CPU s": ""}
    if "killed" in found:
        return {**out, "score": f"not finished in {found['killed']:.0f} s"}
    if "failed" in found:
        return {**out, "score": "failed"}
    speed = found.get("tokens_per_cpu_second")
    return {
        **out,
        "score": f"{found['score']:.2f}",
        "training CPU s": f"{found['cpu']:.1f}" + (" (time limit)" if found["stopped"] else ""),
        "tokens/s": f"{float(format(speed, '.2g')):,.0f}" if speed else "",
        "peak MB": f"{found['peak_mb']:,.0f}",
        "model MB": f"{found['model_mb']:.1f}",
    }


def run_cells(
    wanted: Sequence[tuple[str, str]],
    *,
    sentences: int | None = None,
    jobs: int = 1,
    limit: float = 1200,
    minutes: float | None = None,
) -> Result:
    """Run the cells in processes of their own, each pinned to one core, and kill those that exceed the limit."""
    result = Result("taggers", "Taggers on whole corpora, one thread each")
    reasons = {tool: missing(tool) for tool in dict.fromkeys(tool for tool, _ in wanted)}
    result.notes += [f"{tool} is left out: {reason}." for tool, reason in reasons.items() if reason]
    result.notes.append(f"Programs: {', '.join(program_versions()) or 'none'}.")
    result.notes.append(f"{jobs} processes at a time, each on a core of its own, {limit:g} s at most.")
    # With a second hardware thread per core, every second processor is used.
    cores = sorted(os.sched_getaffinity(0))
    free = cores[:: max(1, len(cores) // jobs)][:jobs]
    waiting = [
        Cell(*pair) for pair in wanted if not reasons[pair[0]] and (pair[0] != POS_ONLY or pair[1] in COLUMNS)
    ]
    waiting.sort(key=start_rank)
    order = [Cell(*pair) for pair in wanted]
    end = time.monotonic() + 60 * minutes if minutes else float("inf")
    found: dict[Cell, dict[str, Any]] = {}
    with tempfile.TemporaryDirectory() as name:
        data, gold = Path(name), {}
        for corpus in dict.fromkeys(cell.corpus for cell in waiting):
            (data / corpus).mkdir()
            write_task(corpus, data / corpus, sentences)
            gold[corpus] = read_task(data / corpus).test.labels
        running: list[Running] = []
        try:
            while waiting or running:
                while waiting and free:
                    running.append(start(waiting.pop(0), free.pop(0), data, limit))
                time.sleep(0.05)
                for one in list(running):
                    seconds = time.monotonic() - one.begin
                    late = seconds > limit or time.monotonic() > end
                    if one.process.poll() is None and not late:
                        continue
                    if one.process.poll() is None:
                        kill(one.process)
                        figures: dict[str, Any] = {"killed": seconds}
                    else:
                        figures = finished(one, gold[one.cell.corpus])
                    found[one.cell] = figures
                    sys.stderr.write(f"{one.cell}: {json.dumps(figures)}\n")
                    sys.stderr.flush()
                    running.remove(one)
                    free.append(one.core)
                if time.monotonic() > end:
                    waiting.clear()
        finally:
            for one in running:
                kill(one.process)
    for cell in (cell for cell in order if cell in found):
        result.add(str(cell), cells_of(found[cell], cell.tool, cell.corpus))
        result.raw[str(cell)] = found[cell]
    return result


def run_all(context: Context) -> Result:
    """Run all taggers on all corpora, one at a time."""
    wanted = [(tool, corpus) for corpus in CORPORA for tool in TOOLS]
    return run_cells(wanted, sentences=300 if context.quick else None, limit=60 if context.quick else 1200)


def merged(paths: Sequence[Path]) -> dict[str, Any]:
    """Return one run with the rows of several, in the order of the tables. A row is taken from the first run with it.

    Machines may differ, the commit may not. Every row has the number of its run, and `runs` describes them.
    """
    runs = [json.loads(path.read_text("utf-8")) for path in paths]
    if any(run["context"]["quick"] for run in runs):
        raise SystemExit("error: figures of a sample are not stored")
    commits = {run["machine"]["commit"] for run in runs}
    if len(commits) > 1:
        raise SystemExit(f"error: runs of different commits: {', '.join(sorted(commits))}")
    rows: dict[str, dict[str, Any]] = {}
    raw: dict[str, Any] = {}
    places: dict[tuple[str, ...], int] = {}  # runs on one machine with the same settings count as one
    about = []
    for run in runs:
        machine = run["machine"]
        place = (str(machine["cpu"]), str(machine["cores"]), *run["notes"])
        if place not in places:
            places[place] = len(places) + 1
            about.append({"machine": machine, "notes": run["notes"]})
        number = places[place]
        versions = about[number - 1]["machine"]["versions"]
        versions |= {name: x for name, x in machine["versions"].items() if x != "not installed"}
        for row in run["rows"]:
            if row["name"] in rows:
                continue
            corpus, tool = row["name"].split(": ", 1)
            raw[row["name"]] = run["raw"][row["name"]]
            cells = cells_of(raw[row["name"]], tool, corpus) | {"run": str(number)}
            rows[row["name"]] = {**row, "cells": cells}
    order = [str(Cell(tool, corpus)) for corpus in CORPORA for tool in TOOLS]
    return {
        **runs[0],
        "rows": [rows[name] for name in order if name in rows],
        "notes": [],
        "raw": raw,
        "runs": about,
    }

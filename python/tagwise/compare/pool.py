"""Processes that train cells, as many at a time as memory allows."""

from __future__ import annotations

import io
import json
import os
import pickle
import queue
import subprocess
import sys
import threading
import time
import types
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from tagwise.compare.cache import Cache
from tagwise.compare.plan import Cell, Data
from tagwise.errors import TrainingError
from tagwise.writing import atomic

#: Part of the free memory that processes may take together, if nothing else is said.
SHARE = 0.8


POLL = 0.1


@dataclass(frozen=True)
class Event:
    """What happened to a cell: "start", "progress", "done" (with its result), "failed", "again" (put back)."""

    kind: str
    index: int
    cell: Cell
    text: str = ""
    result: Mapping[str, Any] | None = None
    cached: bool = False


@dataclass
class Job:
    """A running process."""

    index: int
    key: str
    process: subprocess.Popen[bytes]
    messages: queue.Queue[dict[str, Any] | None]
    begin: float = field(default_factory=time.monotonic)
    largest: int = 0  # bytes seen
    outcome: dict[str, Any] | None = None

    def end(self) -> None:
        """Stop it."""
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        for stream in (self.process.stdin, self.process.stdout):
            if stream is not None:
                stream.close()


def free_memory() -> int:
    """Bytes that could be taken now; a guess of 4 GiB where the system does not tell."""
    try:
        with open("/proc/meminfo", encoding="ascii") as info:
            for line in info:
                if line.startswith("MemAvailable:"):
                    return int(line.split()[1]) * 1024
    except OSError:
        pass
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2
    except (ValueError, OSError, AttributeError):
        return 4 << 30


def resident(pid: int) -> int:
    """Bytes that a process holds now; 0 where the system does not tell."""
    try:
        with open(f"/proc/{pid}/statm", encoding="ascii") as statm:
            return int(statm.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        return 0


class Runs(Protocol):
    """Who trains cells: processes here, or a cluster."""

    def run(self, tasks: Sequence[tuple[str, int]], /) -> Iterator[Event]:
        """Train them; tasks: key and number of each cell."""
        ...


def spread(
    pool: Runs, missing: Sequence[tuple[str, int]], waiting: Mapping[str, list[int]], cells: Sequence[Cell]
) -> Iterator[Event]:
    """Give "done" of a process to every cell that waits for the same result."""
    key_of = {index: key for key, index in missing}
    for event in pool.run(missing):
        if event.kind in ("done", "failed"):
            for i in waiting[key_of[event.index]]:
                yield Event(event.kind, i, cells[i], event.text, event.result)
        else:
            yield event


class Sender(pickle.Pickler):
    """Pickles for another process, which has what is in modules but not what the running script or notebook defines."""

    def reducer_override(self, value: Any) -> Any:
        """Refuse what the other process would look for in a script of its own."""
        if isinstance(value, (type, types.FunctionType)) and value.__module__ == "__main__":
            raise pickle.PicklingError(f"{value.__qualname__} is defined in the running script")
        return NotImplemented


def sent(task: Any) -> bytes:
    """A task as another process reads it."""
    out = io.BytesIO()
    Sender(out, protocol=pickle.HIGHEST_PROTOCOL).dump(task)
    return out.getvalue()


class Pool:
    """Processes, as many at a time as their number and their memory allow."""

    def __init__(
        self,
        cells: Sequence[Cell],
        data: Mapping[str, Data],
        cache: Cache,
        jobs: int,
        memory: int | None,
        n_jobs: int | None,
        folder: Path,
    ) -> None:
        self.cells, self.data, self.jobs, self.n_jobs, self.folder = cells, data, jobs, n_jobs, folder
        self.cache = cache if cache.folder is not None else Cache(folder / "cache")
        self.memory = memory if memory is not None else int(SHARE * free_memory())
        self.running: list[Job] = []
        self.typical = 256 << 20  # what a further process is expected to take: the largest that was seen

    def start(self, key: str, index: int) -> Job:
        """Start the process of a cell."""
        cell = self.cells[index]
        path = self.folder / f"{sorted(self.data).index(cell.corpus)}.pickle"
        if not path.exists():
            with atomic(path) as out:
                out.write(pickle.dumps(self.data[cell.corpus], protocol=pickle.HIGHEST_PROTOCOL))
        folder = str(self.cache.folder)
        task = {"cell": cell, "data": str(path), "cache": folder, "key": key, "n_jobs": self.n_jobs}
        try:
            text = sent(task)
        except (pickle.PicklingError, AttributeError, TypeError) as error:
            raise TrainingError(
                f"{cell.describe()}: cannot be sent to another process ({error}); use jobs=0, or functions of a module"
            ) from error
        process = subprocess.Popen(
            [sys.executable, "-m", "tagwise.compare.worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,  # out of reach of Ctrl-C; it ends when its stdin does
        )
        assert process.stdin is not None
        try:
            process.stdin.write(len(text).to_bytes(8, "little") + text)
            process.stdin.flush()
        except BrokenPipeError:
            pass  # it ended at once; `read` tells
        job = Job(index, key, process, queue.Queue())
        threading.Thread(target=self.read, args=(job,), daemon=True).start()
        self.running.append(job)
        return job

    @staticmethod
    def read(job: Job) -> None:
        """Lines of a process into its queue; None at the end."""
        assert job.process.stdout is not None
        try:
            for line in job.process.stdout:
                job.messages.put(json.loads(line))
        except ValueError:
            pass  # closed, or cut short
        job.messages.put(None)

    def room(self) -> bool:
        """Whether one more process may start now."""
        if not self.running:
            return True
        held = sum(max(job.largest, self.typical) for job in self.running)
        return len(self.running) < self.jobs and held + self.typical <= self.memory

    def run(self, tasks: Sequence[tuple[str, int]]) -> Iterator[Event]:
        """Run all tasks; those that went beyond the bound come again, alone, at the end."""
        todo = list(tasks)
        alone: list[tuple[str, int]] = []
        while todo or alone or self.running:
            while todo and self.room():
                key, index = todo.pop(0)
                self.start(key, index)
                yield Event("start", index, self.cells[index])
            if not todo and not self.running and alone:
                key, index = alone.pop(0)
                self.start(key, index)
                yield Event("start", index, self.cells[index])
            yield from self.listen()
            yield from self.bound(alone)
            time.sleep(POLL)

    def listen(self) -> Iterator[Event]:
        """What the processes have said since."""
        for job in list(self.running):
            while not job.messages.empty():
                message = job.messages.get()
                if message is None:
                    self.running.remove(job)
                    job.end()
                    yield self.outcome(job)
                    break
                if "progress" in message:
                    yield Event("progress", job.index, self.cells[job.index], message["progress"])
                elif "warning" in message:
                    self.cache.tell(message["warning"])
                else:
                    job.outcome = message

    def outcome(self, job: Job) -> Event:
        """How a process ended."""
        cell, said = self.cells[job.index], job.outcome or {}
        if said.get("done"):
            return Event("done", job.index, cell, result=said["done"])
        if "error" in said:
            return Event(
                "failed", job.index, cell, said["error"] + ("\n" + said["trace"] if said["trace"] else "")
            )
        code = job.process.returncode
        return Event("failed", job.index, cell, f"its process ended with code {code} before it was done")

    def bound(self, alone: list[tuple[str, int]]) -> Iterator[Event]:
        """Keep the processes inside the bound: stop the youngest, to run again by itself."""
        for job in self.running:
            job.largest = max(job.largest, resident(job.process.pid))
        self.typical = max([self.typical, *(job.largest for job in self.running)])
        while self.running and sum(resident(job.process.pid) for job in self.running) > self.memory:
            job = self.running.pop()
            job.end()
            cell = self.cells[job.index]
            if self.running:
                alone.append((job.key, job.index))
                yield Event("again", job.index, cell, "too much memory beside others; will run alone")
            else:
                bound = f"{self.memory / 2**20:,.0f} MiB"
                text = f"needs more memory than the bound of {bound}; allow more, or take fewer sentences"
                yield Event("failed", job.index, cell, text)

    def end(self) -> None:
        """Stop everything that still runs."""
        for job in self.running:
            job.end()
        self.running.clear()

"""Processes that train cells: one spawned process per cell, a bounded number of them at a time."""

from __future__ import annotations

import multiprocessing
import os
import queue
import signal
import threading
import traceback
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Protocol

from tagwise.apps.compare.cache import Cache, Names
from tagwise.apps.compare.cells import measure
from tagwise.apps.compare.plan import Cell, Data

#: Part of the available memory that processes may take together by default.
SHARE = 0.8
#: Bytes that a cell is expected to need: per process, and per token that it reads. conll2002-es needs half of that.
PROCESS, TOKEN = 300 << 20, 2000


@dataclass(frozen=True)
class Event:
    """A change in the state of a cell: "start", "progress", "done" (with its result) or "failed"."""

    kind: str
    index: int
    cell: Cell
    text: str = ""
    result: Mapping[str, Any] | None = None
    cached: bool = False


class CellRunner(Protocol):
    """A backend that trains cells: processes on this machine, or a cluster."""

    def run(self, tasks: Sequence[tuple[str, int]], /) -> Iterator[Event]:
        """Train the cells of these tasks (cache key, index of the cell)."""
        ...


def available_memory() -> int:
    """Return the bytes of memory available now, or `4 GiB` if the system does not report them."""
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


def bytes_per_cell(data: Mapping[str, Data]) -> int:
    """Estimate the bytes that a cell on the largest of these corpora needs."""
    parts = ([corpus.train, corpus.dev, corpus.test] for corpus in data.values())
    tokens = (sum(part.n_tokens for part in found if part is not None) for found in parts)
    return PROCESS + TOKEN * max(tokens, default=0)


def for_all_cells(
    pool: CellRunner,
    missing: Sequence[tuple[str, int]],
    waiting: Mapping[str, list[int]],
    cells: Sequence[Cell],
) -> Iterator[Event]:
    """Repeat the outcome of a cell for every cell that has the same key."""
    key_of = {index: key for key, index in missing}
    for event in pool.run(missing):
        if event.kind in ("done", "failed"):
            for i in waiting[key_of[event.index]]:
                yield Event(event.kind, i, cells[i], event.text, event.result)
        else:
            yield event


class Pool:
    """Spawned processes, each of which trains one cell. At most `workers` run at a time, fewer if memory is short."""

    def __init__(
        self,
        cells: Sequence[Cell],
        data: Mapping[str, Data],
        cache: Cache,
        workers: int,
        memory: int | None,
        n_jobs: int | None,
        folder: Path,
    ) -> None:
        self.cells, self.data, self.n_jobs = cells, data, n_jobs
        self.cache = cache if cache.folder is not None else Cache(folder / "cache")
        available = int(SHARE * available_memory()) if memory is None else memory
        self.workers = min(workers, max(1, available // bytes_per_cell(data)))
        self._context = multiprocessing.get_context("spawn")
        self._lifelines: set[Connection] = set()
        self._ended = False

    def run(self, tasks: Sequence[tuple[str, int]]) -> Iterator[Event]:
        """Train the cells of these tasks and yield events as they happen."""
        events: queue.Queue[Event] = queue.Queue()
        with ThreadPoolExecutor(self.workers, thread_name_prefix="tagwise-cell") as threads:
            try:
                for key, index in tasks:
                    threads.submit(self._train, key, index, events)
                remaining = len(tasks)
                while remaining:
                    event = events.get()
                    remaining -= event.kind in ("done", "failed")
                    yield event
            finally:
                self.end()

    def _train(self, key: str, index: int, events: queue.Queue[Event]) -> None:
        """Train one cell in its own process. Every failure becomes an event."""
        cell = self.cells[index]
        if self._ended:
            return
        events.put(Event("start", index, cell))
        messages, send = self._context.Pipe(duplex=False)
        receive, lifeline = self._context.Pipe(duplex=False)
        self._lifelines.add(lifeline)
        try:
            with ProcessPoolExecutor(1, self._context, _prepare, (receive, send)) as process:
                data, folder = self.data[cell.corpus], str(self.cache.folder)
                future = process.submit(_measure, cell, data, folder, key, self.n_jobs)
                # The last messages can still be in the pipe when the result arrives.
                while not future.done() or messages.poll():
                    if messages.poll(0.1):
                        kind, text = messages.recv()
                        if kind == "warning":
                            self.cache.warn_once(text)
                        else:
                            events.put(Event("progress", index, cell, text))
                result, error = future.result()
            event = Event("done", index, cell, result=result) if error is None else None
            events.put(event or Event("failed", index, cell, error or ""))
        except BrokenProcessPool:
            events.put(
                Event(
                    "failed",
                    index,
                    cell,
                    "its process died, perhaps for lack of memory. Use fewer workers. In a script, call "
                    "compare below `if __name__ == '__main__':`. In a notebook, use workers=0 or move functions to a "
                    "module",
                )
            )
        except Exception as found:  # it cannot be pickled, or a process cannot be started here
            text = (
                f"cannot be sent to another process ({found}). Use workers=0, or move functions to a module"
            )
            events.put(Event("failed", index, cell, f"{type(found).__name__}: {text}"))
        finally:
            self._lifelines.discard(lifeline)
            for connection in (messages, send, receive, lifeline):
                connection.close()

    def end(self) -> None:
        """Stop every process that still runs."""
        self._ended = True
        for lifeline in list(self._lifelines):
            lifeline.close()


# --- inside a worker process -----------------------------------------------------------------------------------

_send: Connection | None = None


def _prepare(lifeline: Connection, send: Connection) -> None:
    """Ignore Ctrl-C, which is for the parent, and exit when the parent closes its end of the lifeline or dies."""
    global _send
    _send = send
    signal.signal(signal.SIGINT, signal.SIG_IGN)

    def wait() -> None:
        try:
            lifeline.recv()
        except (EOFError, OSError):
            os._exit(3)

    threading.Thread(target=wait, daemon=True).start()


def _send_message(kind: str, text: str) -> None:
    assert _send is not None
    _send.send((kind, text))


def _measure(
    cell: Cell, data: Data, folder: str, key: str, n_jobs: int | None
) -> tuple[dict[str, Any] | None, str | None]:
    """Return the result of a cell after writing it to the cache, or the text of the error."""
    try:
        cache = Cache(folder, warn=lambda text: _send_message("warning", text))
        found = measure(
            cell,
            data,
            cache=cache,
            names=Names({cell.corpus: data}),
            n_jobs=n_jobs,
            progress=lambda text: _send_message("progress", text),
            own_process=True,
        )
        return cache.put(key, found), None
    except BaseException as error:
        trace = "" if isinstance(error, ValueError) else "\n" + traceback.format_exc()
        return None, f"{type(error).__name__}: {error}{trace}"

"""Training of cells on a Ray cluster: each in its own process, on a machine with enough memory."""

from __future__ import annotations

import traceback
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tagwise.apps.compare.cache import Cache, Names
from tagwise.apps.compare.cells import measure
from tagwise.apps.compare.plan import Cell, Data
from tagwise.apps.compare.pool import Event, bytes_per_cell
from tagwise.base.exceptions import TagwiseError
from tagwise.ray.jobs import Failed, Jobs


class CellWorker:
    """A Ray actor that trains cells."""

    def __init__(self, n_jobs: int | None) -> None:
        self.n_jobs = n_jobs

    def work(self, cell: Cell, data: Data) -> Any:
        """Return the result of a cell. Errors are raised as a TagwiseError with the text, which can be pickled."""
        try:
            names, cache = Names({cell.corpus: data}), Cache(None)
            return measure(cell, data, cache=cache, names=names, n_jobs=self.n_jobs, own_process=True)
        except Exception as error:
            trace = "" if isinstance(error, ValueError) else "\n" + traceback.format_exc()
            raise TagwiseError(f"{type(error).__name__}: {error}{trace}") from None


class Cluster:
    """The counterpart of `pool.Pool` for the workers of a Ray cluster."""

    def __init__(
        self,
        cells: Sequence[Cell],
        data: Mapping[str, Data],
        cache: Cache,
        workers: int | None,
        memory: int | None,
        n_jobs: int | None,
    ) -> None:
        self.cells, self.data, self.cache = cells, data, cache
        hint = bytes_per_cell(data)
        if memory is not None:
            workers = min(workers or memory, max(1, memory // hint))
        self.jobs = Jobs(CellWorker, n_jobs or 1, workers, cpus=n_jobs or 1, memory=hint, once=True)

    def run(self, tasks: Sequence[tuple[str, int]]) -> Iterator[Event]:
        """Train the cells of all tasks, and cache each result as soon as it arrives."""
        used = {self.cells[index].corpus for _, index in tasks}
        at = {name: self.jobs.ray.put(self.data[name]) for name in used}
        jobs = [
            (self.cells[index].describe(), (self.cells[index], at[self.cells[index].corpus]))
            for _, index in tasks
        ]
        for i, found in self.jobs.run(jobs):
            key, index = tasks[i]
            if isinstance(found, Failed):
                yield Event("failed", index, self.cells[index], str(found.error))
            else:
                yield Event("done", index, self.cells[index], result=self.cache.put(key, found))

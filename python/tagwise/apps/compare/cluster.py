"""Cells by the workers of a Ray cluster: each in a process of its own, where there is memory for it."""

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
    """Trains one cell: what an actor is."""

    def __init__(self, told: int | None) -> None:
        self.n_jobs = told

    def work(self, cell: Cell, data: Data) -> Any:
        """The result of a cell; an error as its text, with a trace where it is no refusal."""
        try:
            names, cache = Names({cell.corpus: data}), Cache(None)
            return measure(cell, data, cache=cache, names=names, n_jobs=self.n_jobs, own_process=True)
        except Exception as error:
            trace = "" if isinstance(error, ValueError) else "\n" + traceback.format_exc()
            raise TagwiseError(f"{type(error).__name__}: {error}{trace}") from None


class Cluster:
    """What `pool.Pool` is for processes of this machine."""

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
        """Run all tasks; a result is kept as soon as it is there."""
        used = {self.cells[index].corpus for _, index in tasks}
        at = {name: self.jobs.ray.put(self.data[name]) for name in used}
        asked = [
            (self.cells[index].describe(), (self.cells[index], at[self.cells[index].corpus]))
            for _, index in tasks
        ]
        for i, found in self.jobs.run(asked):
            key, index = tasks[i]
            if isinstance(found, Failed):
                yield Event("failed", index, self.cells[index], str(found.error))
            else:
                yield Event("done", index, self.cells[index], result=self.cache.put(key, found))

"""Training of the cells of a plan that are not in the cache, in this process, in others or on a cluster."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from tagwise.apps.compare.cache import Cache, Names
from tagwise.apps.compare.cells import is_result, measure
from tagwise.apps.compare.plan import Cell, Data
from tagwise.apps.compare.pool import Event, Pool, for_all_cells
from tagwise.features.derived_columns import Features
from tagwise.features.word_classes import WordClasses

#: The part `classes` of a sum in a string, without a file.
_CLASSES = re.compile(r"\s*\+\s*classes\s*(?=\+|$)")


def with_classes(cells: Sequence[Cell], data: Mapping[str, Data]) -> list[Cell]:
    """Return the cells with the part `classes` of their features replaced by word classes of their corpus.

    Classes are learned once per corpus, from the words of all its parts. Labels are not used.
    """
    learned: dict[str, Features] = {}
    out = []
    for cell in cells:
        parts = Features(cell.features).parts if isinstance(cell.features, (str, Features)) else ()
        if not any(isinstance(part, str) and _CLASSES.search(part) for part in parts):
            out.append(cell)
            continue
        if cell.corpus not in learned:
            of = data[cell.corpus]
            texts = (of.train,) if of.folds else (of.train, of.dev or (), of.test)
            sentences = (sentence for text in texts for sentence in text)
            learned[cell.corpus] = WordClasses.learn(sentences, classes="several")
        rest = (_CLASSES.sub("", part) if isinstance(part, str) else part for part in parts)
        out.append(replace(cell, features=Features(*rest, learned[cell.corpus])))
    return out


def run(
    cells: Sequence[Cell],
    data: Mapping[str, Data],
    *,
    cache: Cache | None = None,
    workers: int = 0,
    memory: int | None = None,
    n_jobs: int | None = None,
    callbacks: Callable[[Cell], Sequence[Callable[[Any], Any]]] = lambda _: (),
    backend: str = "local",
) -> Generator[Event, None, None]:
    """Train the cells that are not in the cache and yield events as they happen.

    Args:
        cells: Cells to train. Cells with the same key are trained once.
        data: Corpora by name.
        cache: Cache of results. None keeps them in memory.
        workers: Number of processes that train at the same time. 0 trains in this process.
        memory: Bytes for all processes together, which limits their number by an estimate. None allows `80 %` of the
            available memory. A cell whose process dies is reported as failed.
        n_jobs: Number of threads per process.
        callbacks: Functions to call after each iteration of a cell, if cells are trained in this process.
        backend: "local", or "ray" to train on workers of a Ray cluster (0: one per CPU), limited by `memory`.

    Yields:
        Events of cells. Every cell ends with one event "done" or "failed".
    """
    cache = cache or Cache(None)
    names = Names(data)
    trained = with_classes(cells, data)  # events have the cells with the features as given, for the table
    waiting: dict[str, list[int]] = {}
    for index, cell in enumerate(trained):
        waiting.setdefault(names.key(cell), []).append(index)
    missing = []
    for key, indices in waiting.items():
        found = cache.get(key, is_result)
        if found is None:
            missing.append((key, indices[0]))
            continue
        for index in indices:
            yield Event("done", index, cells[index], result=found, cached=True)
    if backend == "ray":
        from tagwise.apps.compare.cluster import Cluster

        cluster = Cluster(trained, data, cache, workers or None, memory, n_jobs)
        yield from for_all_cells(cluster, missing, waiting, cells)
        return
    if workers:
        with tempfile.TemporaryDirectory(prefix="tagwise-compare-") as folder:
            pool = Pool(trained, data, cache, workers, memory, n_jobs, Path(folder))
            try:
                yield from for_all_cells(pool, missing, waiting, cells)
            finally:
                pool.end()
        return
    for key, index in missing:
        cell = trained[index]
        yield Event("start", index, cells[index])
        found = measure(
            cell, data[cell.corpus], cache=cache, names=names, n_jobs=n_jobs, callbacks=callbacks(cell)
        )
        cache.put(key, found)
        for i in waiting[key]:
            yield Event("done", i, cells[i], result=found)

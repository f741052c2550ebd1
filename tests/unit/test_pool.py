"""The number of concurrent processes of a comparison: limited by `workers` and by the memory they may need."""

from __future__ import annotations

from pathlib import Path

import pytest

import tagwise as tw
from tagwise.apps.compare import Cache
from tagwise.apps.compare.plan import resolve_corpora
from tagwise.apps.compare.pool import PROCESS, TOKEN, Pool, bytes_per_cell

DATA = resolve_corpora(
    {
        "small": (tw.Corpus.from_lists([["a"]], [["X"]]), tw.Corpus.from_lists([["b"]], [["X"]])),
        "large": (tw.Corpus.from_lists([["a"] * 50], [["X"] * 50]), tw.Corpus.from_lists([["b"]], [["X"]])),
    }
)


def test_cell_memory_follows_the_largest_corpus() -> None:
    assert bytes_per_cell(DATA) == PROCESS + 51 * TOKEN
    assert bytes_per_cell({}) == PROCESS


@pytest.mark.parametrize(
    ("workers", "cells_of_memory", "found"),
    [(3, 10.0, 3), (3, 2.5, 2), (3, 1.0, 1), (3, 0.1, 1), (1, 10.0, 1)],
)
def test_concurrent_processes_fit_into_memory(
    workers: int, cells_of_memory: float, found: int, tmp_path: Path
) -> None:
    """`cells_of_memory` is the memory in units of one cell. One process may always run."""
    memory = int(cells_of_memory * bytes_per_cell(DATA))
    assert Pool([], DATA, Cache(tmp_path), workers, memory, None, tmp_path).workers == found

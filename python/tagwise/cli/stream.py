"""Streams of sentences: batches that are full while input arrives, and a report if there is no input."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Iterable, Iterator
from typing import TypeVar

from tagwise.cli.app import say

Item = TypeVar("Item")

BATCH = 512  # sentences tagged at once
PATIENCE = 0.05  # seconds an incomplete batch waits for more
AHEAD = 4 * BATCH  # maximum number of prefetched sentences, which bounds the memory


class _End:
    """The end of the input, with the error that caused it if there was one."""

    def __init__(self, error: BaseException | None) -> None:
        self.error = error


def batches(items: Iterable[Item], size: int = BATCH, patience: float = PATIENCE) -> Iterator[list[Item]]:
    """Yield a stream in batches of `size`, or smaller ones if nothing arrives for `patience` seconds.

    A thread reads the input, so that a sentence typed by hand is tagged at once and a long file in large batches.
    Items read before an error are yielded first, then the error is raised.

    >>> list(batches(range(5), size=2))
    [[0, 1], [2, 3], [4]]
    """
    items_read: queue.SimpleQueue[Item | _End] = queue.SimpleQueue()
    stopped = threading.Event()

    def read() -> None:
        error: BaseException | None = None
        try:
            for item in items:
                items_read.put(item)
                while items_read.qsize() >= AHEAD and not stopped.is_set():
                    time.sleep(0.001)
                if stopped.is_set():
                    return
        except BaseException as raised:
            error = raised
        items_read.put(_End(error))

    threading.Thread(target=read, daemon=True, name="tagwise-reader").start()
    try:
        while True:
            batch: list[Item] = []
            item = items_read.get()
            while not isinstance(item, _End):
                batch.append(item)
                if len(batch) == size:
                    break
                try:
                    item = items_read.get(timeout=patience)
                except queue.Empty:
                    break
            if batch:
                yield batch
            if isinstance(item, _End):
                if item.error is not None:
                    raise item.error
                return
    finally:
        stopped.set()


def reported_if_empty(sentences: Iterator[Item], source: str) -> Iterator[Item]:
    """Yield sentences, and report if there are none."""
    first = next(sentences, None)
    if first is None:
        say(f"{source}: the file has no sentences, so the output has none either")
        return
    yield first
    yield from sentences

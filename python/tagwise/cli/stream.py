"""Sentences in batches as they arrive: full ones while input flows, what there is when it pauses or ends."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Iterable, Iterator
from typing import TypeVar

Item = TypeVar("Item")

BATCH = 512  # sentences tagged at once
PATIENCE = 0.05  # seconds an incomplete batch waits for more
AHEAD = 4 * BATCH  # sentences read ahead at most: memory stays constant however long the input


class _End:
    """The end of input, and the error that was met there if there was one."""

    def __init__(self, error: BaseException | None) -> None:
        self.error = error


def batches(items: Iterable[Item], size: int = BATCH, patience: float = PATIENCE) -> Iterator[list[Item]]:
    """Cut a stream into batches of `size`, handed out early when nothing arrives for `patience` seconds.

    A thread reads, so that someone who types a sentence sees it tagged at once while a long file goes through
    in large batches. What was read before an error is handed out, then the error is raised.

    >>> list(batches(range(5), size=2))
    [[0, 1], [2, 3], [4]]
    """
    line: queue.SimpleQueue[Item | _End] = queue.SimpleQueue()
    stopped = threading.Event()

    def read() -> None:
        error: BaseException | None = None
        try:
            for item in items:
                line.put(item)
                while line.qsize() >= AHEAD and not stopped.is_set():
                    time.sleep(0.001)
                if stopped.is_set():
                    return
        except BaseException as raised:
            error = raised
        line.put(_End(error))

    threading.Thread(target=read, daemon=True, name="tagwise-reader").start()
    try:
        while True:
            batch: list[Item] = []
            item = line.get()
            while not isinstance(item, _End):
                batch.append(item)
                if len(batch) == size:
                    break
                try:
                    item = line.get(timeout=patience)
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

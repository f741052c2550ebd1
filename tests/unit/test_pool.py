"""How many processes of a comparison may run at a time: by their number, and by what they hold."""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tagwise.compare import Cache
from tagwise.compare.pool import Pool

MIB = 1 << 20


@pytest.mark.parametrize(
    ("largest", "typical", "room"),
    [
        ([], 256, True),
        ([], 2000, True),  # one may always run
        ([300], 256, True),
        ([300, 300], 256, True),
        ([300, 300, 10], 10, False),  # three at a time
        ([400, 400], 256, False),  # no room for one more
        ([400, 344], 256, True),
        ([400, 345], 256, False),
        ([10, 10], 400, False),  # a young one is expected to grow
    ],
)
def test_room_for_one_more(largest: list[int], typical: int, room: bool, tmp_path: Path) -> None:
    """Three processes in 1,000 MiB."""
    pool = Pool([], {}, Cache(tmp_path), 3, 1000 * MIB, None, tmp_path)
    pool.typical = typical * MIB
    running: list[Any] = [SimpleNamespace(largest=n * MIB) for n in largest]
    pool.running = running
    assert pool.room() is room


def test_what_took_too_much_runs_alone_at_the_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """While any other runs or waits it does not begin again; of several, one after the other."""
    monkeypatch.setattr(sys.modules[Pool.__module__], "POLL", 0.0)
    ends = iter(
        ["", "b c", "", "", "a", "d", "b", "", "c"]
    )  # what ends in each round; b and c at first by the bound
    log: list[str] = []

    class Hand(Pool):
        """No processes: letters that end as the table says."""

        def start(self, key: str, index: int) -> Any:
            log.append(f"{key}+" + "".join(job.key for job in self.running))
            self.running.append(SimpleNamespace(key=key, index=index, largest=0))  # type: ignore[arg-type]

        def listen(self) -> Any:
            for key in next(ends).split():
                (job,) = (job for job in self.running if job.key == key)
                self.running.remove(job)
                if len(log) < 4:
                    self.again.append((job.key, job.index))
            yield from ()

        def bound(self, alone: list[tuple[str, int]]) -> Any:
            alone += self.again
            self.again.clear()
            yield from ()

    pool = Hand([None] * 4, {}, Cache(tmp_path), 3, 1000 * MIB, None, tmp_path)  # type: ignore[list-item]
    pool.again: list[tuple[str, int]] = []  # type: ignore[attr-defined,misc]
    started = [event.index for event in pool.run([(key, i) for i, key in enumerate("abcd")])]
    assert log == ["a+", "b+a", "c+ab", "d+a", "b+", "c+"]
    assert started == [0, 1, 2, 3, 1, 2]

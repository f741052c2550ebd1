"""How many processes of a comparison may run at a time: by their number, and by what they hold."""

from __future__ import annotations

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

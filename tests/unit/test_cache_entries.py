"""Entries of the comparison cache: damaged or foreign entries are never returned and never an obstacle."""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tagwise.apps.compare import Cache, Cell, ComparedLearner, Data, cache, run
from tagwise.apps.compare.cache import opened, sealed
from tagwise.apps.compare.cells import is_result, is_score

from ..cli.options import TEST, TRAIN

KEY, OTHER = "ab" * 32, "cd" * 32
VALUE = {
    "row": {"accuracy": 1 / 3, "f1": None, "name": "Łódź \u2028 \ud800"},
    "detail": [[1, 2.5e-300], [], {}],
}
DATA = {"a": Data(TRAIN, TEST)}
CELLS = [Cell("a", ComparedLearner(name, "hmm", {}), "S1") for name in ("one", "two")]
CELLS += [Cell("a", ComparedLearner("three", "perceptron", {"max_iter": 2}), "S1")]


def damaged(whole: bytes) -> Iterator[bytes]:
    """Yield an entry with a changed byte, truncated, empty, of another type, not JSON, and with a changed digit."""
    yield from (whole[:n] for n in range(0, len(whole), 9))
    yield from (whole[:n] + bytes([whole[n] ^ 1]) + whole[n + 1 :] for n in range(0, len(whole), 7))
    yield from (b"[]", b"3", b"\xff", b"null", b"[" * 100_000, b'{"format": 1}', b'{"format": 2}', b"{}\n{}")
    yield json.dumps(VALUE).encode()
    yield json.dumps({"format": 1, **VALUE}).encode()
    yield sealed(OTHER, VALUE).encode()
    yield whole.replace(b"0.3333", b"0.9333")
    head, _, body = sealed(KEY, VALUE).partition("\n")
    yield (head.replace(f'"format": {cache.FORMAT}', f'"format": {cache.FORMAT + 1}') + "\n" + body).encode()


def test_damaged_entries_are_misses(tmp_path: Path) -> None:
    """It is a miss, a warning names its file, and it is written again."""
    warnings: list[str] = []
    store = Cache(tmp_path, warn=warnings.append)
    store.put(KEY, VALUE)
    (path,) = tmp_path.rglob("*.json")
    whole = path.read_bytes()
    assert opened(whole, KEY) == VALUE == store.get(KEY)
    assert warnings == []
    for text in damaged(whole):
        path.write_bytes(text)
        warnings.clear()
        fresh = Cache(tmp_path, warn=warnings.append)
        assert fresh.get(KEY) is None
        assert fresh.get(KEY) is None
        (warning,) = warnings
        assert warning.startswith(f"{path}: a damaged or foreign file in the cache (")
        assert fresh.once(KEY, lambda: {"score": 1.0}) == {"score": 1.0}
        assert Cache(tmp_path).get(KEY) == {"score": 1.0}


@pytest.mark.parametrize("kept", [True, False])
def test_stored_result_equals_the_result_read_back(tmp_path: Path, kept: bool) -> None:
    """The first run shows what the second one reads."""
    store = Cache(tmp_path if kept else None)
    assert store.put(KEY, {"pair": (1, 2), "names": {3: "x"}}) == {"pair": [1, 2], "names": {"3": "x"}}
    assert store.get(KEY) == {"pair": [1, 2], "names": {"3": "x"}}


def test_entries_with_foreign_content_are_misses(tmp_path: Path) -> None:
    """A complete entry with other content under the requested key is a miss."""
    warnings: list[str] = []
    events = list(run(CELLS[:1], DATA, cache=Cache(tmp_path)))
    result = events[-1].result
    assert result is not None
    assert is_result(result)
    (path,) = tmp_path.rglob("*.json")
    row = dict(result["row"])
    for value in (
        {"score": 1.0},
        {"row": row},
        {"row": [], "detail": {}},
        {"row": {**row, "accuracy": "98"}, "detail": {}},
        {"row": {k: v for k, v in row.items() if k != "seconds"}, "detail": {}},
    ):
        assert not is_result(value)
        path.write_text(sealed(path.stem, value))
        warnings.clear()
        again = list(run(CELLS[:1], DATA, cache=Cache(tmp_path, warn=warnings.append)))
        assert [event.kind for event in again] == ["start", "done"]
        assert str(path) in warnings[0]
    assert is_score({"score": 1})
    assert not is_score({"score": "1"})


def measures(events: Any) -> dict[int, Any]:
    """Return the measures that do not depend on the clock, by cell."""
    return {
        e.index: (e.result["row"]["accuracy"], e.result["row"]["nonzero"]) for e in events if e.kind == "done"
    }


@pytest.mark.parametrize("jobs", [0, 2])
def test_unwritable_cache_folder_warns_and_trains(tmp_path: Path, jobs: int) -> None:
    """Everything is trained and shown as without a cache, and one warning names the folder."""
    wanted = measures(run(CELLS, DATA))
    (tmp_path / "taken").write_text("a file where the folder should be")
    warnings: list[str] = []
    store = Cache(tmp_path / "taken", warn=warnings.append)
    assert measures(run(CELLS, DATA, cache=store, workers=jobs)) == wanted
    (warning,) = warnings
    assert warning.startswith(f"{tmp_path / 'taken'}: results cannot be written (")
    assert warning.endswith("Continuing without the cache")


def test_full_disk_warns_and_leaves_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Everything is trained, one warning names the folder, and no file is left behind."""

    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    wanted = measures(run(CELLS, DATA))
    monkeypatch.setattr(os, "fsync", full)
    warnings: list[str] = []
    store = Cache(tmp_path, warn=warnings.append)
    assert measures(run(CELLS, DATA, cache=store)) == wanted
    assert warnings == [
        f"{tmp_path}: results cannot be written (No space left on device). Continuing without the cache"
    ]
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []
    assert store.put(KEY, VALUE) == store.get(KEY) == store.once(KEY, dict) == VALUE
    monkeypatch.undo()  # the cache stays off although the disk has space again
    assert store.put(OTHER, VALUE) == store.get(OTHER) == VALUE
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


def test_unreadable_entry_is_a_miss_with_a_warning(tmp_path: Path) -> None:
    """A folder in place of the entry is a miss with a warning, and the result is computed."""
    warnings: list[str] = []
    store = Cache(tmp_path, warn=warnings.append)
    (tmp_path / KEY[:2] / f"{KEY}.json").mkdir(parents=True)
    assert store.once(KEY, lambda: {"score": 2.0}) == {"score": 2.0}
    assert "cannot be read" in warnings[0]

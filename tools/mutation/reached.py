"""Pytest plugin that records which mutants each test reaches, and its duration.

Child processes of a test write the mutants that they reach to the folder TAGWISE_MUTANTS when they exit.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

FOUND: dict[str, dict[str, Any]] = {}


def _clear() -> set[int]:
    from tagwise import _mutants

    return _mutants.taken()


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """Record the mutants that setup, call and teardown of a test reach."""
    folder = Path(os.environ["TAGWISE_MUTANTS"])
    outside = _clear()
    FOUND.setdefault("", {"hits": [], "seconds": 0.0})["hits"].extend(sorted(outside))
    yield
    hits = _clear()
    for path in folder.glob("*.hits"):
        hits |= set(json.loads(path.read_text()))
        path.unlink()
    FOUND.setdefault(item.nodeid, {"seconds": 0.0})["hits"] = sorted(hits)


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Add up the seconds and record failures."""
    entry = FOUND.setdefault(report.nodeid, {"seconds": 0.0, "hits": []})
    entry["seconds"] += report.duration
    if report.failed:
        entry["failed"] = True


def pytest_sessionfinish() -> None:
    """Write the records."""
    FOUND.setdefault("", {"hits": [], "seconds": 0.0})["hits"].extend(sorted(_clear()))
    (Path(os.environ["TAGWISE_MUTANTS"]) / "reached.json").write_text(json.dumps(FOUND))

"""Forged checkpoints, shard folders and labelling folders: each works or raises a TagwiseError."""

from __future__ import annotations

import pytest

from ..forge.__main__ import run


@pytest.mark.parametrize("what", ["checkpoint", "shards", "labelling"])
def test_forged_folders_work_or_raise_a_typed_error(what: str) -> None:
    """Only TagwiseError is raised, and no process crashes, hangs or exceeds its memory limit."""
    seen, found = run(seed=3, first=0, count=60, what=what)
    assert found == []
    assert sum(seen.values()) == 60
    assert sum(n for outcome, n in seen.items() if outcome.startswith("refused")) > 20
    assert seen["went well"] > 5

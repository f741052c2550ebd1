"""Forged checkpoints, folders of shards and labelling folders: each works, or a TagwiseError says why not."""

from __future__ import annotations

import pytest

from ..forge.__main__ import run


@pytest.mark.parametrize("what", ["checkpoint", "shards", "labelling"])
def test_some_forged_ones(what: str) -> None:
    """Nothing but a TagwiseError is raised, no process dies or hangs, none takes more memory than it may."""
    seen, found = run(seed=3, first=0, count=60, what=what)
    assert found == []
    assert sum(seen.values()) == 60
    assert sum(n for outcome, n in seen.items() if outcome.startswith("refused")) > 20
    assert seen["went well"] > 5

"""Pytest plugin that runs only the tests listed in the file TAGWISE_CHOSEN, in its order."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Keep the listed tests."""
    place = {name: i for i, name in enumerate(json.loads(Path(os.environ["TAGWISE_CHOSEN"]).read_text()))}
    kept = sorted((item for item in items if item.nodeid in place), key=lambda item: place[item.nodeid])
    config.hook.pytest_deselected(items=[item for item in items if item.nodeid not in place])
    items[:] = kept

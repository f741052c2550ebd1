"""A short version of the kills during labelling (the long one is `python -m tests.kill.annotate`)."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_reported_actions_survive_a_kill() -> None:
    """Every reported action is in the folder, whenever the process is killed."""
    command = [sys.executable, "-m", "tests.kill.annotate", "--kills", "6", "--seed", "3"]
    found = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert found.returncode == 0, found.stderr
    counts = json.loads(found.stdout)
    assert counts["kills"] == 6
    assert counts["lost"] == 0
    assert counts["actions"] >= 6

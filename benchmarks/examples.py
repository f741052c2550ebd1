"""Scores of the example programs, and of the most frequent label of each word."""

from __future__ import annotations

import importlib
import re
import subprocess
import sys
from pathlib import Path

from .harness import Context, Result

ROOT = Path(__file__).parents[1]
#: Task by the name of the example.
TASKS = {
    "addresses": "addresses to their parts",
    "ingredients": "recipe lines to quantity, unit, name, preparation",
    "references": "references to authors, title, journal, pages",
    "notes": "notes of a clinic (made up) to problems, drugs, doses",
    "chunking": "phrases of web text",
    "pos": "parts of speech of web text",
}
SCORES = re.compile(
    r"^(F1|accuracy) ([\d.]+), baseline \(most frequent label per word\) ([\d.]+)$", re.MULTILINE
)


def run(context: Context) -> Result:
    """Run each example as a command and read its scores from the output."""
    result = Result("examples", "Example programs: scores on held-out sentences")
    for name, task in TASKS.items():
        learner = importlib.import_module(f"examples.{name}.__main__").tagger()
        command = [sys.executable, "-m", f"examples.{name}"]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
        found = SCORES.search(done.stdout)
        if found is None:
            raise ValueError(f"examples.{name} prints no scores")
        measure, score, baseline = found.groups()
        cells = {
            "task": task,
            "command": f"`make example NAME={name}`",
            "learner": type(learner).__name__,
            "score": f"{measure} {score}",
            "most frequent label": baseline,
        }
        result.add(name, cells)
    return result

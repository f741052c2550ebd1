"""``tagwise train``."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import tagwise as tw

from .conftest import Run, environment


def test_columns_and_templates_reach_the_features(run: Run, tmp_path: Path) -> None:
    data = tmp_path / "data.tsv"
    data.write_text("a\tN\tX\nb\tV\tY\n\nc\tN\tX\nd\tV\tY\n\n")
    out = tmp_path / "m.tagwise"
    result = run("train", data, "--columns", "word,pos,label", "--features", "default", "-o", out)
    assert result.exit_code == 0, result.output
    tagged = run("tag", out, text="e\tN\nf\tV\n\n")
    assert [row.split("\t")[:2] for row in tagged.stdout.split("\n")[:2]] == [["e", "N"], ["f", "V"]]
    assert run("tag", out, text="e\n").exit_code == 2


# Ctrl-C at a known moment: the process sends itself the signal that a terminal would.
INTERRUPTED = """
import os, signal
from tagwise.cli import main
from tagwise.learners import progress

shown = progress.TrainingProgress.__call__

def interrupting(self, step):
    shown(self, step)
    if step.iteration == 3:
        os.kill(os.getpid(), signal.SIGINT)

progress.TrainingProgress.__call__ = interrupting
main()
"""


def test_ctrl_c_keeps_a_usable_model(train_file: Path, tmp_path: Path) -> None:
    out = tmp_path / "m.tagwise"
    args = ["train", train_file, "--features", "S2", "--set", "max_iter=100000", "--set", "tol=0", "-o", out]
    result = subprocess.run(
        [sys.executable, "-c", INTERRUPTED, *map(str, args)],
        capture_output=True,
        text=True,
        timeout=120,
        env=environment(),
        check=False,
    )
    assert result.returncode == 130, result.stderr
    assert "m.tagwise" in result.stderr
    assert "Traceback" not in result.stderr
    tagger = tw.load(out)
    assert tagger.best_iteration_ in (3, 4)
    assert len(tagger.predict([["I", "love", "London"]])[0]) == 3

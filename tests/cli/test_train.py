"""``tagwise train``."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import tagwise as tw
from tagwise.estimators import LEARNERS

from .conftest import Run, environment, shell


def test_a_model_is_what_fit_and_save_give(
    run: Run, small: tuple[tw.Corpus, tw.Corpus], train_file: Path, tmp_path: Path
) -> None:
    out = tmp_path / "m.tagwise"
    result = run(
        "train",
        train_file,
        "--features",
        "S1",
        "--set",
        "l2=0.3",
        "--set",
        "max_iter=5",
        "--seed",
        3,
        "-o",
        out,
    )
    assert result.exit_code == 0
    assert result.stdout == ""
    tagger = tw.CRF(features="S1", l2=0.3, max_iter=5, seed=3).fit(small[0])
    loaded = tw.load(out)
    assert loaded.get_params()["l2"] == 0.3
    assert loaded.n_features_ == tagger.n_features_
    assert loaded.predict(small[1]) == tagger.predict(small[1])


def test_the_summary_is_on_stderr_and_quiet_is_quiet(train_file: Path, tmp_path: Path) -> None:
    args = ["train", train_file, "--features", "S1", "--set", "max_iter=3", "-o", tmp_path / "m.tagwise"]
    loud = shell(*args, "--dev", train_file)
    assert loud.returncode == 0
    assert loud.stdout == ""
    assert "150 sentences" in loud.stderr
    assert "dev " in loud.stderr
    assert "m.tagwise" in loud.stderr
    quiet = shell(*args, "--quiet")
    assert (quiet.returncode, quiet.stdout, quiet.stderr) == (0, "", "")


def test_columns_and_templates_reach_the_features(run: Run, tmp_path: Path) -> None:
    data = tmp_path / "data.tsv"
    data.write_text("a\tN\tX\nb\tV\tY\n\nc\tN\tX\nd\tV\tY\n\n")
    out = tmp_path / "m.tagwise"
    result = run("train", data, "--columns", "word,pos,label", "--features", "default", "-o", out)
    assert result.exit_code == 0, result.output
    tagged = run("tag", out, text="e\tN\nf\tV\n\n")
    assert [row.split("\t")[:2] for row in tagged.stdout.split("\n")[:2]] == [["e", "N"], ["f", "V"]]
    assert run("tag", out, text="e\n").exit_code == 2


def test_params_lists_every_declared_parameter(run: Run) -> None:
    result = run("train", "--params")
    assert result.exit_code == 0
    for kind in LEARNERS.values():
        assert all(param.name in result.stdout for param in kind.PARAMS)


def test_warm_start_begins_where_the_model_ended(run: Run, train_file: Path, tmp_path: Path) -> None:
    first, second = tmp_path / "1.tagwise", tmp_path / "2.tagwise"
    args = ["train", train_file, "-f", "S1", "--set", "max_iter=25", "--quiet"]
    assert run(*args, "-o", first).exit_code == 0
    assert run(*args, "--warm-start", first, "-o", second).exit_code == 0
    assert tw.load(second).objective_ <= tw.load(first).objective_ * (1 + 1e-9)


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


def test_a_path_keeps_the_strength_that_does_best(run: Run, train_file: Path, tmp_path: Path) -> None:
    out = tmp_path / "m.tagwise"
    args = ["train", train_file, "--features", "S1", "--set", "max_iter=20", "-o", out]
    result = run(*args, "--path", "l2=100,0.1", "--dev", train_file)
    assert result.exit_code == 0, result.output
    assert "regularisation path" in result.stderr
    assert tw.load(out).get_params()["l2"] == 0.1
    assert run(*args, "--path", "l2").exit_code == 2
    assert run(*args, "--path", "epochs=1,2").exit_code == 2

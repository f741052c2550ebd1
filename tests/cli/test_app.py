"""Errors, Ctrl-C, closed pipes and the progress display of commands."""

from __future__ import annotations

import importlib
import io
import os
import signal
from pathlib import Path
from typing import Any

import click
import pytest
from rich.console import Console

import tagwise as tw
from tagwise.apps.compare import Comparison, Event, plan, run
from tagwise.base.exceptions import InternalError
from tagwise.base.progress import TrainingProgress
from tagwise.cli.files import bundled_corpus, check_output, model_columns, names_of
from tagwise.cli.interrupt import Interrupt

from .options import DEV, TEST, TRAIN, Bench, crf, invoke


class Wrong(Exception):
    """Unexpected error."""


@pytest.mark.parametrize(
    ("error", "code", "message"),
    [
        (tw.exceptions.CorpusError("a.txt:3: no\n  columns"), 2, "error: a.txt:3: no columns\n"),
        (FileNotFoundError(2, "No such file", "x.txt"), 2, "error: x.txt: No such file\n"),
        (OSError(28, "No space left"), 1, "error: No space left\n"),
        (ValueError("not a number"), 2, "error: not a number\n"),
        (
            MemoryError(), 1,
            "error: out of memory. Use fewer sentences or features, or train on shards: tagwise encode --help\n",
        ),
        (InternalError("a panic"), 1, "error: a panic\n"),
        (Wrong("oh"), 1, "error: Wrong: oh (this is a bug in tagwise, add --debug for the traceback)\n"),
        (KeyboardInterrupt(), 130, "interrupted\n"), (BrokenPipeError(), 141, ""),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, BaseException) else "",
)  # fmt: skip
def test_errors_print_one_line_and_set_the_exit_code(
    monkeypatch: pytest.MonkeyPatch, error: BaseException, code: int, message: str
) -> None:
    """An error prints one line to stderr and nothing to stdout. The exit code depends on the kind of error."""

    def raising(*_: Any, **__: Any) -> None:
        raise error

    monkeypatch.setattr(importlib.import_module("tagwise.cli.convert"), "corpus_sentences", raising)
    monkeypatch.setattr(importlib.import_module("tagwise.cli.app"), "_close_stdout", lambda: None)
    result = invoke("convert", "x")
    assert (result.exit_code, result.stdout, result.stderr) == (code, "", message)


# --- Ctrl-C -------------------------------------------------------------------------------------------------


def test_first_interrupt_requests_a_stop_and_second_raises(capsys: pytest.CaptureFixture[str]) -> None:
    """The first SIGINT requests a stop, the second raises KeyboardInterrupt. The previous handler is restored."""
    before = signal.getsignal(signal.SIGINT)
    interrupt = Interrupt()
    with interrupt.armed():
        assert (interrupt.requested, interrupt()) == (False, False)
        os.kill(os.getpid(), signal.SIGINT)
        assert (interrupt.requested, interrupt()) == (True, True)
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGINT)
    assert signal.getsignal(signal.SIGINT) == before
    assert "stopping after this iteration" in capsys.readouterr().err


def test_second_interrupt_saves_the_last_complete_iteration(bench: Bench) -> None:
    """An interrupt within an iteration still writes the model of the last complete one."""

    def interrupting(self: TrainingProgress, step: Any) -> None:
        if step.iteration == 2:
            raise KeyboardInterrupt

    bench.patch.setattr(TrainingProgress, "__call__", interrupting)
    out = bench.path("x.tagwise")
    result = invoke("train", bench.train, "-f", "S1", "--set", "tol=0", "--set", "max_iter=50", "-o", out)
    assert (result.exit_code, result.stdout) == (130, "")
    assert f"stopped after iteration 2. Saved the model trained so far to {out}" in result.stderr
    assert tw.load(out).classes_


def test_interrupted_path_saves_the_best_finished_step(bench: Bench) -> None:
    """The best of the finished steps is saved. If no step has finished, no file is written."""
    real, calls = tw.CRF.fit, 0

    def interrupted(self: Any, *args: Any, **named: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls > 1:
            raise KeyboardInterrupt
        return real(self, *args, **named)

    bench.patch.setattr(tw.CRF, "fit", interrupted)
    args = ("train", bench.train, "-f", "S1", "--path", "l2=1,0.1,0.01")
    result = invoke(*args, "-o", bench.path("x"))
    assert result.exit_code == 130
    assert (
        f"stopped after 1 of 3 values. Saved the best model so far, l2=1, to {bench.path('x')}"
        in result.stderr
    )
    assert tw.load(bench.path("x")).l2 == 1.0
    result = invoke(*args, "-o", bench.path("y"))
    assert (result.exit_code, bench.path("y").exists()) == (130, False)


def test_interrupted_training_saves_the_last_iteration(bench: Bench) -> None:
    """The file holds the model of the last iteration, stderr reports it, and the exit code is 130."""
    shown = TrainingProgress.__call__

    def interrupting(self: TrainingProgress, step: Any) -> None:
        shown(self, step)
        if step.iteration == 2:
            os.kill(os.getpid(), signal.SIGINT)

    bench.patch.setattr(TrainingProgress, "__call__", interrupting)
    out = bench.path("x.tagwise")
    result = invoke("train", bench.train, "-f", "S1", "--set", "tol=0", "--set", "max_iter=50", "-o", out)
    assert (result.exit_code, result.stdout) == (130, "")
    assert f"stopped after iteration 2. Saved the model trained so far to {out}" in result.stderr
    assert tw.load(out).predict(TEST) == crf(max_iter=2).fit(TRAIN).predict(TEST)


def test_interrupted_comparison_prints_finished_rows(bench: Bench) -> None:
    """The finished rows are written, stderr reports how many were planned, and the exit code is 130."""

    def interrupted(*args: Any, **options: Any) -> Any:
        for number, event in enumerate(run(*args, **options)):
            yield event
            if number == 1:
                raise KeyboardInterrupt

    bench.patch.setattr(importlib.import_module("tagwise.cli.compare"), "run", interrupted)
    files = (
        "compare",
        "--train",
        bench.train,
        "--test",
        bench.test,
        "--workers",
        0,
        "--size",
        4,
        "--size",
        9,
    )
    out = bench.path("x.csv")
    result = invoke(*files, "--learner", "hmm", "-o", out)
    assert result.exit_code == 130
    assert "interrupted after 1 of 2 rows. To continue, repeat the command" in result.stderr
    fresh = invoke(*files, "--learner", "hmm", "--fresh")
    assert fresh.exit_code == 130
    assert "interrupted after 1 of 2 rows. No results were cached because of --fresh" in fresh.stderr
    assert "run it again" not in fresh.stderr
    assert len(out.read_text().splitlines()) == 2
    bench.patch.setattr(importlib.import_module("tagwise.cli.compare"), "run", run)
    again = bench.ok(*files, "--learner", "hmm")
    assert "2 runs in " in again.stderr
    assert "1 of them from the cache" in again.stderr


# --- shown meanwhile ----------------------------------------------------------------------------------------


def test_progress_of_a_comparison_counts_finished_cells(capsys: pytest.CaptureFixture[str]) -> None:
    """Finished and cached cells are counted, running cells have a line each, failures are reported on stderr."""
    cells = plan(["hmm", "crf", "mira"], ["a"], ["S1"])
    watch = importlib.import_module("tagwise.cli.compare").Watch(Console(file=io.StringIO()), Comparison(), 3)
    for event in (
        Event("start", 0, cells[0]),
        Event("progress", 0, cells[0], "iteration 4/9"),
        Event("done", 2, cells[2], result={}, cached=True),
        Event("failed", 1, cells[1], "too much memory. Use workers=0"),
    ):
        watch(event)
    assert (watch.done, watch.cached, list(watch.running)) == (1, 1, [0])
    assert [str(line).strip() for line in watch.render().renderables[2:]] == [
        "a hmm S1 seed 0: iteration 4/9"
    ]
    assert capsys.readouterr().err == "a crf S1 seed 0: too much memory. Use --workers 0\n"


# --- files by their names -----------------------------------------------------------------------------------


def test_unwritable_model_paths_fail_before_training(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder, a missing parent folder and an unwritable file are each rejected before training."""
    check_output(str(tmp_path / "x"))
    for path, message in ((tmp_path, "is a folder"), (tmp_path / "no" / "x", "No such file or directory")):
        with pytest.raises(click.BadParameter, match=message):
            check_output(str(path))
    (tmp_path / "x").write_text("old")
    monkeypatch.setattr(os, "access", lambda *_: False)
    with pytest.raises(click.BadParameter, match=r"x: cannot be written \(Permission denied\)"):
        check_output(str(tmp_path / "x"))
    assert os.listdir(tmp_path) == ["x"]


def test_column_names_are_parsed_from_text() -> None:
    """Commas or spaces separate names. The label is the given one, else ``label``, else the last name except _."""
    assert names_of(None, None) == (None, None)
    assert names_of("", "x") == (None, "x")
    assert names_of("word,pos, ner", None) == (["word", "pos", "ner"], "ner")
    assert names_of("word pos _", None) == (["word", "pos", "_"], "pos")
    assert names_of("word,label,pos", None) == (["word", "label", "pos"], None)
    assert names_of("word", None) == (["word"], None)
    assert names_of("word,pos,ner", "pos") == (["word", "pos", "ner"], "pos")


def test_corpora_are_loaded_by_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A name may include the part. An existing file of that name takes precedence. Missing parts are errors."""
    files = importlib.import_module("tagwise.cli.files")
    monkeypatch.setattr(files, "load_corpus", lambda name, label: (TRAIN, None, TEST))
    monkeypatch.chdir(tmp_path)
    assert bundled_corpus("ewt-pos", "train", None) is TRAIN
    assert bundled_corpus("ewt-pos", "test", None) is TEST
    assert bundled_corpus("ewt-pos:test", "train", None) is TEST
    assert bundled_corpus("no-such", "train", None) is None
    with pytest.raises(click.UsageError, match=r"unknown part 'x'\. Use one of train, dev, test"):
        bundled_corpus("ewt-pos:x", "train", None)
    for name, part in (("ewt-pos:dev", "train"), ("ewt-pos", "dev")):
        with pytest.raises(tw.exceptions.CorpusError, match="ewt-pos has no dev part"):
            bundled_corpus(name, part, None)
    (tmp_path / "ewt-pos").write_text("")
    assert bundled_corpus("ewt-pos", "train", None) is None


def test_columns_default_to_those_of_the_model() -> None:
    """The columns are those of training or, if not recorded, those that the features read and a label."""
    tagger = crf(features="word[0]\npos[0]").fit(DEV)
    assert model_columns(tagger) == (["word", "pos", "label"], "label")
    tagger.model_.meta.pop("columns")
    assert model_columns(tagger) == (["word", "pos", "label"], "label")
    tagger.model_.meta["columns"], tagger.model_.meta["label"] = ["form", "tag"], "tag"
    assert model_columns(tagger) == (["form", "tag"], "tag")

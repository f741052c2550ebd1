"""``tagwise compare`` and ``tw.compare``."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import time
from pathlib import Path

import numpy as np
import pytest

import tagwise as tw
from tagwise.apps.compare import (
    NAMES,
    PRESETS,
    Comparison,
    collect,
    learner_names,
    loss_curves,
    make,
    plan,
    resolve_corpora,
    run,
)
from tagwise.base.parameters import checked_parameters
from tagwise.estimators import LEARNERS

from .conftest import Run, command, environment

FAST = {"max_iter": 3}


def test_every_learner_name_and_preset_can_be_built() -> None:
    assert set(LEARNERS) <= set(learner_names()) <= {*LEARNERS, *NAMES}
    for name in learner_names():
        assert checked_parameters(make(name))
    for preset in PRESETS.values():
        assert set(preset.limits) <= set(preset.corpora)
        assert preset.note or not preset.published
    names = {cell.learner.kind for cell in PRESETS["bundled"].cells()}
    assert names == set(LEARNERS)  # every learner


# --- learners, plans ----------------------------------------------------------------------------------------


def test_learners_with_fixed_features_are_planned_once() -> None:
    cells = plan(["hmm", "crf"], ["c"], ["S2", "S3"])
    assert [(c.learner.name, c.features) for c in cells] == [("hmm", "S1"), ("crf", "S2"), ("crf", "S3")]


def test_classes_in_features_are_learned_from_the_words_of_all_parts(
    small: tuple[tw.Corpus, tw.Corpus],
) -> None:
    args = {"corpus": small, "params": FAST}
    spelled = ["S1", "S1+classes", "S1+classes+regex:year=[0-9]{4}"]
    table = tw.compare(["crf"], features=spelled, **args)
    assert [row.features for row in table] == spelled
    several = tw.WordClasses.learn([*small[0], *small[1]], classes="several")
    for row, features in zip(table.rows[1:], ("S1" + several, "S1" + tw.Regex("year", "[0-9]{4}") + several)):
        tagger = tw.CRF(features=features, random_state=0, **FAST).fit(small[0])
        assert row.nonzero == tagger.n_nonzero_ > table.rows[0].nonzero
        assert row.accuracy == tagger.evaluate(small[1]).accuracy
    with pytest.raises(tw.TagwiseError, match="names no classes"):
        tw.CRF(features="default+classes").fit(small[0])


# --- processes ----------------------------------------------------------------------------------------------


def test_results_do_not_depend_on_the_number_of_processes(small: tuple[tw.Corpus, tw.Corpus]) -> None:
    """Results do not depend on processes. Cells run one at a time if memory does not suffice for two."""
    args = {"corpus": small, "features": ["S1", "S2"], "params": FAST}
    here = tw.compare(["crf"], **args)
    cells = plan(["crf"], ["a"], ["S1", "S2"], params=FAST)
    events = list(run(cells, resolve_corpora({"a": small}), workers=2, memory=300 << 20))
    there = collect(Comparison(), events, cells)
    at_once = [0]
    for event in events:
        at_once.append(at_once[-1] + {"start": 1, "done": -1}.get(event.kind, 0))
    assert max(at_once) == 1
    assert [(r.features, r.accuracy, r.f1, r.nonzero) for r in here] == [
        (r.features, r.accuracy, r.f1, r.nonzero) for r in there
    ]
    assert all(r.memory is not None and r.memory > 1 << 20 for r in there)
    assert "peak MiB" in str(there)


def test_successful_rows_are_printed_before_an_error(
    run: Run, train_file: Path, test_file: Path, tmp_path: Path
) -> None:
    args = ["compare", "--train", train_file, "--test", test_file, "--cache", tmp_path / "cache", "-f", "S1"]
    result = run(*args, "--learner", "hmm(features=S2)", "--learner", "hmm", "--workers", 1)
    assert result.exit_code == 2
    assert "S1" in result.stdout
    assert "overlapping=True" in result.stderr
    assert len(list((tmp_path / "cache").rglob("*.json"))) == 1
    assert run(*args, "--set", "wheels=4").exit_code == 2
    assert run(*args, "--report", tmp_path / "no" / "such.html").exit_code == 2


def test_killed_worker_fails_only_its_own_cell(
    small: tuple[tw.Corpus, tw.Corpus],
) -> None:
    """SIGKILL, as sent by the kernel's out-of-memory killer, does not affect cells before and after."""
    cells = plan(["hmm", "perceptron(max_iter=100000)", "memm"], ["a"], ["S1"], params=FAST)
    events: list[tuple[str, int]] = []
    for event in run(cells, resolve_corpora({"a": small}), workers=1):
        # Further progress of this cell may be queued, and would kill the worker of the next one.
        first = (event.kind, event.index) == ("progress", 1) and ("progress", 1) not in events
        events.append((event.kind, event.index))
        if first:
            for pid in children(os.getpid()):
                if b"multiprocessing.spawn" in Path(f"/proc/{pid}/cmdline").read_bytes():
                    os.kill(pid, signal.SIGKILL)
        if event.kind == "failed":
            assert "its process died" in event.text
    outcomes = [(kind, index) for kind, index in events if kind in ("done", "failed")]
    assert outcomes == [("done", 0), ("failed", 1), ("done", 2)]


def test_rerun_after_a_kill_trains_only_unfinished_cells(
    train_file: Path, test_file: Path, tmp_path: Path
) -> None:
    """After kill -9, workers exit too. Finished cells stay cached, and a second run trains the rest."""
    cache = tmp_path / "cache"
    args = ["compare", "--train", train_file, "--test", test_file, "--cache", cache, "--workers", 2]
    args += ["--learner", "perceptron(max_iter=2)", "--learner", "perceptron(max_iter=3)"]
    args += ["--learner", "mira(max_iter=100000)", "-f", "S1"]
    slow = subprocess.Popen(command(*args), env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    try:
        limit = time.monotonic() + 100
        while len(done := list(cache.rglob("*.json"))) < 2:
            assert time.monotonic() < limit
            assert slow.poll() is None
            time.sleep(0.05)
        while not (workers := children(slow.pid)):  # the third cell may be between two processes
            assert time.monotonic() < limit
            assert slow.poll() is None
            time.sleep(0.05)
    finally:
        slow.send_signal(signal.SIGKILL)
        slow.communicate()
    limit = time.monotonic() + 60
    while any(Path(f"/proc/{pid}").exists() and not is_zombie(pid) for pid in workers):
        assert time.monotonic() < limit, "a worker outlived its master"
        time.sleep(0.05)
    before = {path: (path.stat().st_mtime_ns, path.read_bytes()) for path in done}
    assert set(cache.rglob("*.json")) == before.keys()
    args[args.index("mira(max_iter=100000)")] = "mira(max_iter=3)"
    again = subprocess.run(
        command(*args), env=environment(), capture_output=True, text=True, check=True, timeout=600
    )
    assert re.search(r"3 runs in .* 2 of them from the cache", again.stderr)
    assert {path: (path.stat().st_mtime_ns, path.read_bytes()) for path in done} == before
    assert len(list(cache.rglob("*.json"))) == 3


def restore_sigint() -> None:
    """Restore the default SIGINT handler. Background jobs of a shell and their children ignore SIGINT."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def test_ctrl_c_caches_only_finished_cells(train_file: Path, test_file: Path, tmp_path: Path) -> None:
    """Ctrl-C signals the whole process group. Finished cells stay cached, and unfinished ones are not."""
    for jobs in (1, 0):
        cache = tmp_path / f"cache{jobs}"
        args = ["compare", "--train", train_file, "--test", test_file, "--cache", cache, "--workers", jobs]
        args += ["--learner", "perceptron(max_iter=2)", "--learner", "mira(max_iter=100000)", "-f", "S1"]
        process = subprocess.Popen(
            command(*args),
            env=environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
            preexec_fn=restore_sigint,
        )
        limit = time.monotonic() + 100
        while not list(cache.rglob("*.json")):
            assert time.monotonic() < limit
            time.sleep(0.05)
        time.sleep(0.3)  # the second cell is training or about to start
        os.killpg(process.pid, signal.SIGINT)
        _, err = process.communicate(timeout=100)
        assert process.returncode == 130, err
        assert len(list(cache.rglob("*.json"))) == 1


def children(pid: int) -> list[int]:
    """Return the child processes of a process. Skip the test on systems without /proc."""
    tasks = Path(f"/proc/{pid}/task")
    if not tasks.exists():
        pytest.skip("no /proc here")
    found = []
    for task in tasks.iterdir():
        with contextlib.suppress(FileNotFoundError):  # the thread has just ended
            found += [int(child) for child in (task / "children").read_text().split()]
    return found


def is_zombie(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] == "Z"
    except OSError:
        return True


# --- significance, published figures, formats ---------------------------------------------------------------


def test_surrogate_losses_bound_the_zero_one_loss() -> None:
    for point in loss_curves():
        assert point["exp"] >= point["zero_one"]
        assert point["log"] >= np.log(2) * point["zero_one"]
        assert point["exp"] == pytest.approx(np.exp(-point["margin"]))

"""A model file that another process keeps replacing: every load returns one of the models, complete."""

from __future__ import annotations

import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import tagwise as tw
from tagwise.compat.pycrfsuite import Tagger

from ..corpora import X, Y
from ..foreign.test_model_files import SAMPLES

#: Replaces the first argument by each file in turn until its input ends.
REPLACE = """
import itertools, os, shutil, sys, threading
target, *files = sys.argv[1:]
ended = threading.Event()
threading.Thread(target=lambda: (sys.stdin.read(), ended.set()), daemon=True).start()
print("ready", flush=True)
for file in itertools.cycle(files):
    if ended.is_set():
        break
    shutil.copyfile(file, target + ".new")
    os.replace(target + ".new", target)
"""


@contextmanager
def replaced(target: Path, files: list[Path]) -> Iterator[None]:
    """Replace the target in another process inside this context."""
    shutil.copyfile(files[0], target)
    command = [sys.executable, "-c", REPLACE, str(target), *map(str, files)]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        yield
        assert process.poll() is None
    finally:
        process.communicate()


@pytest.fixture
def models(tmp_path: Path) -> list[Path]:
    """Return models with different arrays, in our format and in foreign ones."""
    out = []
    for name, tagger in {
        "crf": tw.CRF(max_iter=2),
        "boosting": tw.Boosting(max_iter=2),
        "kernel": tw.Perceptron(max_iter=1, kernel="rbf"),
    }.items():
        tagger.fit(X, Y).save(tmp_path / name)
        out.append(tmp_path / name)
    for name, sample in SAMPLES.items():
        (tmp_path / name).write_bytes(sample())
        out.append(tmp_path / name)
    return out


@pytest.mark.parametrize("mmap", [False, True])
def test_loading_while_the_file_is_replaced(models: list[Path], tmp_path: Path, mmap: bool) -> None:
    target = tmp_path / "model.tagwise"
    labels = {tw.load(path).classes_ for path in models}
    with replaced(target, models):
        found = {tw.load(target, mmap=mmap).classes_ for _ in range(300)}
    assert found <= labels


def test_loading_concurrently_with_saving(tmp_path: Path) -> None:
    """Threads overwrite one file with models that have different numbers of arrays."""
    target, ended = tmp_path / "model.tagwise", threading.Event()
    taggers = [tw.CRF(max_iter=2).fit(X, Y), tw.Boosting(max_iter=2).fit(X, Y), tw.HMM().fit(X, Y)]
    taggers[0].save(target)

    def save(tagger: tw.Tagger) -> None:
        while not ended.is_set():
            tagger.save(target)

    threads = [threading.Thread(target=save, args=(tagger,)) for tagger in taggers]
    for thread in threads:
        thread.start()
    try:
        for _ in range(100):
            tw.load(target)
    finally:
        ended.set()
        for thread in threads:
            thread.join()


def test_drop_in_tagger_opens_the_file_once(models: list[Path], tmp_path: Path) -> None:
    """Header and content come from one file. A file that is not a CRFsuite model is reported as such."""
    target, kinds = tmp_path / "model", set()
    with replaced(target, models[3:5]):
        for _ in range(300):
            try:
                Tagger().open(str(target))
            except ValueError as error:
                kinds.add(str(error).partition(" ")[0])
    assert kinds <= {"Invalid"}

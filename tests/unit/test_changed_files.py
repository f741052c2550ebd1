"""Changes of a model file after loading: the tagger is unaffected, and a mapped one stays within its arrays."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import tagwise as tw

from ..corpora import X, Y

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """Return the bytes of a model file."""
    path = tmp_path_factory.mktemp("models") / "m.tagwise"
    tw.CRF(max_iter=5).fit(X, Y).save(path)
    return path.read_bytes()


def in_a_process(code: str, path: Path) -> None:
    """Run code that may crash, with a path as its argument."""
    done = subprocess.run(
        [sys.executable, "-c", code, str(path)], cwd=ROOT, timeout=600, capture_output=True, text=True
    )
    assert done.returncode == 0, (done.returncode, done.stdout, done.stderr)


def test_a_loaded_tagger_does_not_read_the_file_again(saved: bytes, tmp_path: Path) -> None:
    """Overwritten, truncated, emptied or removed: no crash, no endless loop, equal labels."""
    path = tmp_path / "m.tagwise"
    path.write_bytes(saved)
    code = """
import os, shutil, sys
import tagwise as tw
from tests.corpora import X
for change in ("ones", "zeros", "cut", "empty", "removed"):
    print(change, flush=True)
    path = shutil.copyfile(sys.argv[1], sys.argv[1] + change)
    tagger, before = tw.load(path), tw.load(path)
    want = before.predict(X)
    if change in ("ones", "zeros"):
        with open(path, "r+b") as file:
            file.write((b"\\xff" if change == "ones" else b"\\0") * os.path.getsize(path))
    elif change == "removed":
        os.remove(path)
    else:
        os.truncate(path, 100 if change == "cut" else 0)
    for _ in range(2):
        assert tagger.predict(X) == want == before.predict(X)
    tagger.save(path + ".again")
    assert tw.load(path + ".again").predict(X) == want
"""
    in_a_process(code, path)


def test_mapped_file_predicts_like_a_loaded_one(saved: bytes, tmp_path: Path) -> None:
    path = tmp_path / "m.tagwise"
    path.write_bytes(saved)
    read, mapped = tw.load(path), tw.load(path, mmap=True)
    assert mapped.predict(X) == read.predict(X)
    assert np.array_equal(mapped.model_.scorer.weights, read.model_.scorer.weights)
    assert list(mapped.model_.vocabulary) == list(read.model_.vocabulary)


def test_changed_mapped_files_cause_no_out_of_bounds_access(saved: bytes, tmp_path: Path) -> None:
    """Other labels or an error, as documented for `mmap`, but never a crash or an endless search."""
    path = tmp_path / "m.tagwise"
    path.write_bytes(saved)
    code = """
import shutil, sys
import tagwise as tw
from tests.corpora import X
for byte in (0x00, 0x01, 0x7F, 0xFF):
    print(byte, flush=True)
    path = shutil.copyfile(sys.argv[1], sys.argv[1] + str(byte))
    tagger = tw.load(path, mmap=True)
    with open(path, "r+b") as file:
        length = len(file.read())
        file.seek(0)
        file.write(bytes([byte]) * length)
    for way in ("", "table", "layout", "rows"):
        tw._core.force(way)
        try:
            assert {label for path in tagger.predict(X * 20) for label in path} <= set(tagger.classes_)
        except (tw.TagwiseError, ValueError):
            pass
    tw._core.force("")
    tagger.model_.vocabulary.texts()
"""
    in_a_process(code, path)


def test_pipes_are_rejected_as_models(tmp_path: Path) -> None:
    """A pipe is refused before it is opened, which would block until it has a writer."""
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path, tmp_path / "pipe"):
        with pytest.raises(tw.exceptions.ModelFileError, match="cannot be read"):
            tw.load(path)

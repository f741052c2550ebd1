"""A model file may change once it is loaded: the tagger stays what it was; a mapped one stays within its arrays."""

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
    """A model file's bytes."""
    path = tmp_path_factory.mktemp("models") / "m.tagwise"
    tw.CRF(max_iter=5).fit(X, Y).save(path)
    return path.read_bytes()


@pytest.mark.parametrize("change", ["ones", "zeros", "cut", "empty", "removed"])
def test_a_loaded_tagger_does_not_see_the_file_again(saved: bytes, tmp_path: Path, change: str) -> None:
    """Run in a process of its own: before, this ended in SIGBUS, in a loop without end or in other labels."""
    path = tmp_path / "m.tagwise"
    path.write_bytes(saved)
    code = """
import os, sys
import tagwise as tw
from tests.corpora import X
path, change = sys.argv[1:]
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
    done = subprocess.run(
        [sys.executable, "-c", code, str(path), change], cwd=ROOT, timeout=120, capture_output=True, text=True
    )
    assert done.returncode == 0, (done.returncode, done.stderr)


def test_a_mapped_file_is_the_same_model(saved: bytes, tmp_path: Path) -> None:
    path = tmp_path / "m.tagwise"
    path.write_bytes(saved)
    read, mapped = tw.load(path), tw.load(path, mmap=True)
    assert mapped.predict(X) == read.predict(X)
    assert np.array_equal(mapped.model_.scorer.weights, read.model_.scorer.weights)
    assert list(mapped.model_.vocabulary) == list(read.model_.vocabulary)


@pytest.mark.parametrize("byte", [0x00, 0x01, 0x7F, 0xFF])
def test_no_change_of_a_mapped_file_leads_out_of_its_arrays(saved: bytes, tmp_path: Path, byte: int) -> None:
    """Other labels or an error: whoever maps a file was told. Never a crash and never a search without end."""
    path = tmp_path / "m.tagwise"
    path.write_bytes(saved)
    code = """
import sys
import tagwise as tw
from tests.corpora import X
path, byte = sys.argv[1], int(sys.argv[2])
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
tagger.model_.vocabulary.texts()
"""
    done = subprocess.run(
        [sys.executable, "-c", code, str(path), str(byte)],
        cwd=ROOT,
        timeout=120,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, (done.returncode, done.stderr)


def test_what_is_no_file_is_no_model(tmp_path: Path) -> None:
    """A pipe is refused before it is opened, which would wait for its writer."""
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path, tmp_path / "pipe"):
        with pytest.raises(tw.ModelFileError, match="cannot be read"):
            tw.load(path)

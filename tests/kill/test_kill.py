"""A short version of the kills (the long one is `make kills`), and a full disk for every writer."""

from __future__ import annotations

import contextlib
import errno
import io
import json
import os
import resource
import shutil
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import tagwise as tw
from tagwise.apps.compare.cache import Cache
from tagwise.apps.compare.cells import Row
from tagwise.apps.compare.table import Comparison
from tagwise.cli import cli
from tests.kill.jobs import CORPUS, left_behind

ROOT = Path(__file__).parents[2]


def test_killed_writers_leave_the_old_or_the_new_file() -> None:
    """The file is the old or the new one, and no temporary file is left after a repetition."""
    command = [sys.executable, "-m", "tests.kill", "--kills", "6", "--seed", "7"]
    found = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert found.returncode == 0, found.stderr
    assert sum(job["kills"] for job in json.loads(found.stdout).values()) == 6


# --- a full disk ----------------------------------------------------------------------------------------------


def boosted() -> tw.Tagger:
    return tw.Boosting(features="word[0]\n", max_iter=4).fit([["a", "b"]] * 3, [["X", "Y"]] * 3)


def corpus() -> tw.Corpus:
    return tw.read(io.StringIO(CORPUS), "conll")


def row() -> Row:
    return Row("c", "crf", "log", "S1", 1, 0, 0.5, None, 0.5, 1, 1, 1.0)


def command(*arguments: Any) -> None:
    cli.main(["--debug", *map(str, arguments)], standalone_mode=False)


def trained(path: Path) -> None:
    source = path.with_name("corpus.txt")
    if not source.exists():
        source.write_text(CORPUS)
    command("train", source, "-o", path, "--learner", "hmm", "-q")


def converted(path: Path) -> None:
    source = path.with_name("corpus.txt")
    if not source.exists():
        source.write_text(CORPUS)
    command("convert", source, path, "--columns", "word,label")


def tagged(path: Path) -> None:
    model, source = path.with_name("m"), path.with_name("corpus.txt")
    if not model.exists():
        tw.HMM().fit([["a", "b"]], [["X", "Y"]]).save(model)
        source.write_text("a b\nb\n" * 500)
    command("tag", model, source, "-o", path, "--format", "text")


def plotted(path: Path) -> None:
    model = path.with_name("m")
    if not model.exists():
        boosted().save(model)
    command("inspect", model, "--plot", path)


WRITERS: dict[str, tuple[str, Callable[[Path], object]]] = {
    "save": ("m.tagwise", lambda path: boosted().save(path)),
    "save with state": (
        "m.tagwise",
        lambda path: tw.Perceptron(max_iter=1).fit([["a", "b"]], [["X", "Y"]]).save(path, state=True),
    ),
    "save pruned": ("m.tagwise", lambda path: boosted().save(path, prune=True)),
    "train": ("m.tagwise", trained),
    "write_conll": ("c.tsv", lambda path: tw.write(corpus(), path, "conll")),
    "write_jsonl": ("c.jsonl.gz", lambda path: tw.write(corpus(), path, "jsonl")),
    "write_text": ("c.txt.bz2", lambda path: tw.write(corpus(), path, "text")),
    "convert": ("c.jsonl.xz", converted),
    "tag": ("tagged.txt", tagged),
    "report": ("r.html", lambda path: Comparison([row()]).report(path)),
    "losses as csv": ("t.csv", lambda path: command("compare", "losses", "-o", path)),
    "losses as a page": ("t.html", lambda path: command("compare", "losses", "--report", path)),
    "plot": ("p.svg", plotted),
}


@contextmanager
def file_size_limit(size: int) -> Iterator[None]:
    """Limit the size of files to `size` bytes."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.mark.parametrize("part", [0.0, 0.99])
@pytest.mark.parametrize("name", WRITERS)
def test_full_disk_keeps_the_old_file(tmp_path: Path, name: str, part: float) -> None:
    """For every writer, early or late: an error that names the path, the old file, and no other file."""
    file, write = WRITERS[name]
    path = tmp_path / file
    write(path)
    old = path.read_bytes()
    before = sorted(map(str, tmp_path.rglob("*")))
    output = io.StringIO()  # printed text may be redirected to a file as well
    with (
        contextlib.redirect_stdout(output),
        contextlib.redirect_stderr(output),
        file_size_limit(int(part * len(old))),
        pytest.raises(tw.TagwiseError) as found,
    ):
        write(path)
    assert isinstance(found.value, OSError)
    assert (found.value.errno, found.value.filename) == (errno.EFBIG, str(path))
    assert str(path) in str(found.value)
    assert path.read_bytes() == old
    assert sorted(map(str, tmp_path.rglob("*"))) == before
    write(path)


@pytest.mark.parametrize("part", [0.0, 0.5, 0.99])
def test_full_disk_keeps_the_old_cache_entry(tmp_path: Path, part: float) -> None:
    """Whether or not an error is reported, the old entry stays and no other file is left."""
    cache = Cache(tmp_path)
    cache.put("0123", {"x": "y" * 1000})
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    (size,) = map(len, before.values())
    with (
        file_size_limit(int(part * size)),
        warnings.catch_warnings(),
        contextlib.suppress(tw.TagwiseError),
    ):
        warnings.simplefilter("ignore")
        cache.put("0123", {"x": "z" * 1000})
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before


FULL = """
import sys, tagwise as tw
from pathlib import Path
folder = Path(sys.argv[1])
small = tw.HMM().fit([["a"]], [["X"]])
large = tw.HMM().fit([[f"w{i}" for i in range(20000)]], [["X"] * 20000])
small.save(folder / "m")
old = (folder / "m").read_bytes()
try:
    large.save(folder / "m")
except tw.exceptions.FileError as error:
    assert error.errno == 28 and error.filename == str(folder / "m"), error
else:
    raise SystemExit("it went well")
assert (folder / "m").read_bytes() == old
assert [path.name for path in folder.iterdir()] == ["m"]
small.save(folder / "m")
"""


@pytest.mark.skipif(not shutil.which("unshare"), reason="no unshare here")
def test_full_file_system_keeps_the_old_file(tmp_path: Path) -> None:
    """A file system of 256 KB, if the system permits mounting one."""
    mount = f"mount -t tmpfs -o size=256k tmpfs '{tmp_path}'"
    if subprocess.run(["unshare", "-m", "sh", "-c", mount], capture_output=True).returncode:
        pytest.skip("no file systems may be mounted here")
    script = f"{mount} && exec '{sys.executable}' -c \"$0\" '{tmp_path}'"
    found = subprocess.run(["unshare", "-m", "sh", "-c", script, FULL], capture_output=True, text=True)
    assert found.returncode == 0, found.stderr
    assert not left_behind(tmp_path)
    assert os.listdir(tmp_path) == []

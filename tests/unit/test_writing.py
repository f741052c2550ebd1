"""Atomic writing: files appear complete or not at all, with concurrent writers, system errors and killed writers."""

from __future__ import annotations

import ast
import errno
import os
import pickle
import random
import resource
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import tagwise as tw
import tagwise.base.writing as writing
from tagwise.base.exceptions import CorpusError, FileError, ModelFileError, file_error
from tagwise.base.writing import STALE, atomic, check_writable, is_temporary, write_text
from tagwise.corpus.streams import writer

ROOT = os.geteuid() == 0


@contextmanager
def small_files(size: int) -> Iterator[None]:
    """Limit the size of files to `size` bytes, to simulate a full disk."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


# --- whole or not at all --------------------------------------------------------------------------------------


def test_files_appear_only_when_complete(tmp_path: Path) -> None:
    """The old file stays until the new one is complete. After an error it is unchanged and no other file remains."""
    path = tmp_path / "a"
    path.write_text("old")
    with atomic(str(path)) as out:
        out.write(b"new")
        out.flush()
        assert path.read_text() == "old"
    assert path.read_text() == "new"

    def interrupted() -> None:
        with atomic(str(path)) as out:
            out.write(b"newer")
            raise KeyboardInterrupt("mine")

    with pytest.raises(KeyboardInterrupt, match="mine"):
        interrupted()
    assert path.read_text() == "new"
    assert os.listdir(tmp_path) == ["a"]


def test_file_mode_is_kept_or_follows_the_umask(tmp_path: Path) -> None:
    """A replaced file keeps its mode, a new one gets the mode of the umask, and the umask is unchanged."""
    old, new = tmp_path / "old", tmp_path / "new"
    old.write_text("")
    old.chmod(0o640)
    before = os.umask(0o027)
    try:
        for path in (old, new):
            with atomic(str(path)) as out:
                out.write(b"x")
        assert os.umask(0o027) == 0o027
    finally:
        os.umask(before)
    assert stat.S_IMODE(old.stat().st_mode) == 0o640
    assert stat.S_IMODE(new.stat().st_mode) == 0o640


def test_read_only_files_are_not_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Replacing needs permission for the folder only, but a read-only file is not replaced."""
    path = tmp_path / "a"
    path.write_text("old")
    monkeypatch.setattr(os, "access", lambda place, mode: False)
    with pytest.raises(PermissionError, match="a: cannot be written"):
        write_text(path, "new")
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["a"]


def test_temporary_files_are_private(tmp_path: Path) -> None:
    """While a file with mode 0600 is replaced, the temporary file is readable by its owner only."""
    path = tmp_path / "a"
    path.write_text("old")
    path.chmod(0o600)
    with atomic(path):
        (made,) = [entry for entry in os.listdir(tmp_path) if entry != "a"]
        assert stat.S_IMODE(os.stat(tmp_path / made).st_mode) == 0o600


@pytest.mark.skipif(not ROOT, reason="only the superuser gives files away")
def test_owner_of_a_replaced_file_is_kept(tmp_path: Path) -> None:
    """A superuser who replaces a file does not become its owner."""
    path = tmp_path / "a"
    path.write_text("old")
    os.chown(path, 1234, 2345)
    write_text(path, "new")
    assert (path.stat().st_uid, path.stat().st_gid) == (1234, 2345)


@pytest.mark.parametrize("name", ["x" * 255, "é" * 127, "\udcff" * 20, " ", ".a.tmp", "[a](b)*"])
def test_unusual_and_long_file_names(tmp_path: Path, name: str) -> None:
    """Any characters and the greatest length that the system allows."""
    write_text(tmp_path / name, "text")
    write_text(tmp_path / name, "text again")
    assert os.listdir(tmp_path) == [name]


# --- links ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("to", ["precious", "missing", "link", "/dev/null"])
def test_links_are_refused(tmp_path: Path, to: str) -> None:
    """A link to a file, to nothing, to itself or to a device is not written through. A linked folder is fine."""
    (tmp_path / "precious").write_text("precious")
    (link := tmp_path / "link").symlink_to(to)
    before = sorted(os.listdir(tmp_path))
    for write in (check_writable, lambda path: write_text(path, "gone")):
        with pytest.raises(FileError, match="link: cannot be written through a symbolic link") as found:
            write(link)
        assert found.value.errno == errno.ELOOP
    assert sorted(os.listdir(tmp_path)) == before
    assert link.is_symlink()
    assert (tmp_path / "precious").read_text() == "precious"
    (tmp_path / "there").mkdir()
    (tmp_path / "here").symlink_to("there")
    write_text(tmp_path / "here" / "a", "new")
    assert (tmp_path / "there" / "a").read_text() == "new"


@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="descriptors are counted in /proc")
def test_no_descriptor_is_left_open(tmp_path: Path) -> None:
    """The descriptors of the file and of the folder are closed, after an error too."""

    def descriptors() -> int:
        return len(os.listdir("/proc/self/fd"))

    def broken() -> None:
        with pytest.raises(TypeError, match="int"), atomic(tmp_path / "x") as out:
            out.write(3)  # type: ignore[arg-type]

    for write in (lambda: write_text(tmp_path / "x", "text"), broken):
        write()
        before = descriptors()
        for _ in range(5):
            write()
        assert descriptors() == before


def test_planted_links_overwrite_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A link at the path of the temporary file is not written through, even if its name was guessed."""
    precious = tmp_path / "precious"
    precious.write_text("precious")
    monkeypatch.setattr(writing.secrets, "token_hex", lambda size: "0" * 2 * size)
    (planted := tmp_path / f".tagwise-{'0' * 16}.tmp").symlink_to(precious)
    with pytest.raises(FileExistsError):
        write_text(tmp_path / "model", "other")
    assert precious.read_text() == "precious"
    assert planted.is_symlink()  # not created here, so not removed


# --- devices, pipes, descriptors ------------------------------------------------------------------------------


def test_devices_and_pipes_are_written_in_place(tmp_path: Path) -> None:
    """Devices and pipes are not replaced. The bytes are written to them."""
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    for path in (fifo, os.devnull, "/dev/stdout"):
        check_writable(path)
    got: list[str] = []
    reader = threading.Thread(target=lambda: got.append(fifo.read_text()))
    reader.start()
    write_text(fifo, "through")
    reader.join()
    assert got == ["through"]
    write_text(os.devnull, "gone")
    for path, right in ((fifo, stat.S_ISFIFO), (Path(os.devnull), stat.S_ISCHR)):
        assert right(path.stat().st_mode)
    assert os.listdir(tmp_path) == ["fifo"]


@pytest.mark.parametrize("to", ["/dev/stdout", "/proc/self/fd/1"])
def test_dev_stdout_keeps_the_order_of_output(tmp_path: Path, to: str) -> None:
    """Output to a pipe, a file or an appended file keeps its order with what is printed before and after."""
    if not os.path.exists(os.path.dirname(to)):
        pytest.skip(f"no {to} here")
    code = (
        "import sys; from tagwise.base.writing import write_text; print('before');"
        f"write_text({to!r}, 'written\\n'); print('after')"
    )
    command = [sys.executable, "-c", code]
    expected = "before\nwritten\nafter\n"
    assert subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout == expected
    log = tmp_path / "log"
    log.write_text("earlier\n")
    with open(log, "a") as out:
        subprocess.run(command, stdout=out, check=True)
    assert log.read_text() == "earlier\n" + expected
    assert os.listdir(tmp_path) == ["log"]


# --- what the system refuses ----------------------------------------------------------------------------------


def test_unwritable_paths_are_rejected(tmp_path: Path) -> None:
    """A folder, a missing folder, a file used as a folder, a name with NUL, an empty name."""
    cases = (
        (tmp_path, IsADirectoryError, r": is a folder\. Give the path of a file to write"),
        (
            tmp_path / "no" / "file",
            FileNotFoundError,
            r"\(No such file or directory\)\. Give a path in a folder",
        ),
        (str(tmp_path / "new") + "/", FileNotFoundError, "cannot be written"),
        (Path(__file__) / "file", NotADirectoryError, "cannot be written"),
        ("a\0b", FileError, r"cannot be written \(Invalid argument\)"),
        ("", IsADirectoryError, "is a folder"),
    )
    for path, kind, message in cases:
        for write in (check_writable, lambda path: write_text(path, "")):
            with pytest.raises(kind, match=message) as found:
                write(path)
            assert isinstance(found.value, FileError)
            assert found.value.filename == os.fspath(path)
    with (
        pytest.raises(CorpusError, match="no/file: cannot be written") as corpus,
        writer(tmp_path / "no" / "file"),
    ):
        pass
    assert isinstance(corpus.value, FileNotFoundError)


@pytest.mark.parametrize("buffered", [False, True])
@pytest.mark.parametrize("ending", ["", ".gz", ".xz", ".bz2"])
def test_full_disk_keeps_the_old_file(tmp_path: Path, ending: str, buffered: bool) -> None:
    """Detected while writing or on close: the error names the path, the old file stays, no other file remains."""
    path = tmp_path / f"a{ending}"
    path.write_text("old")
    noise = random.Random(0).randbytes(100 if buffered else 1 << 18).hex()
    with (
        small_files(20),
        pytest.raises(CorpusError, match=r"cannot be written.*has not changed") as found,
        writer(path) as write,
    ):
        write(noise)
    assert isinstance(found.value, OSError)
    assert (found.value.errno, found.value.filename) == (errno.EFBIG, str(path))
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == [path.name]


def test_errors_inside_the_block_are_not_file_errors(tmp_path: Path) -> None:
    """An error raised inside the block is not reported as a fault of the file."""
    with pytest.raises(FileNotFoundError) as found, atomic(tmp_path / "out"):
        open(tmp_path / "in", "rb").close()
    assert found.value.filename == str(tmp_path / "in")
    assert os.listdir(tmp_path) == []


def test_errors_have_errno_filename_and_oserror_subclass() -> None:
    """Errors have errno, filename and the OSError subclass of that errno, and can be pickled."""
    for kind in (FileError, CorpusError, ModelFileError):
        for code in (errno.ENOENT, errno.EACCES, errno.EPIPE, errno.ENOSPC):
            error = file_error(kind, "words", "file", code)
            assert isinstance(error, (kind, FileError))
            assert isinstance(error, type(OSError(code, "")))
            again = pickle.loads(pickle.dumps(error))
            for found in (error, again):
                assert (str(found), found.errno, found.filename) == ("words", code, "file")
                assert type(found) is type(error)
                assert found.strerror == os.strerror(code)


# --- killed writers -------------------------------------------------------------------------------------------

LEAVES = """
import os, sys
from tagwise.base.writing import atomic
with atomic(sys.argv[1]) as out:
    out.write(b"half")
    out.flush()
    os.kill(os.getpid(), 9)
"""


def test_stale_temporary_files_are_removed_by_age(tmp_path: Path) -> None:
    """A temporary file is kept for a day because its writer may be alive. Then the next writer removes it."""
    (path := tmp_path / "a").write_text("old")
    assert subprocess.run([sys.executable, "-c", LEAVES, path]).returncode == -9
    assert path.read_text() == "old"
    (left,) = {*os.listdir(tmp_path)} - {"a"}
    assert is_temporary(left)
    others = [".tagwise-1.tmp", "tagwise.tmp", ".b.tmp"]
    for name in (left, *others):
        (tmp_path / name).touch()
        os.utime(tmp_path / name, (0, time.time() - STALE + 60))
    write_text(path, "new")
    assert sorted(os.listdir(tmp_path)) == sorted(["a", left, *others])
    for name in (left, *others):
        os.utime(tmp_path / name, (0, time.time() - STALE - 60))
    with atomic(path) as out:  # concurrent writers do not disturb each other
        write_text(path, "newer")
        out.write(b"newest")
    assert path.read_text() == "newest"
    assert sorted(os.listdir(tmp_path)) == sorted(["a", *others])


# --- every writer ---------------------------------------------------------------------------------------------


def test_all_writing_goes_through_one_module() -> None:
    """All writing goes through one module. No other module contains a call that writes."""
    package = Path(tw.__file__).parent
    writing_calls = {
        "write_text",
        "write_bytes",
        "mkstemp",
        "NamedTemporaryFile",
        "rename",
        "replace",
        "savetxt",
        "dump",
    }
    names_alone = {
        "compat/sklearn_crfsuite/_fileresource.py: tempfile.mkstemp",  # an empty file that the caller fills
        "apps/annotate/journal.py: os.open",  # appends lines, covered by tests/kill/annotate.py
        "base/files/regular.py: os.open",  # for reading only
    }
    of_files = {"os", "shutil", "tempfile", "json", "pickle", "np", "Path", "path"}
    found = []
    for module in sorted(package.rglob("*.py")):
        if module == package / "base" / "writing.py":
            continue
        for node in ast.walk(ast.parse(module.read_text("utf-8"))):
            if not isinstance(node, ast.Call):
                continue
            name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            if name != "open" and name not in writing_calls:
                continue
            of = ast.unparse(node.func.value) if isinstance(node.func, ast.Attribute) else ""
            modes = [*node.args[1:2], *(k.value for k in node.keywords if k.arg == "mode")]
            opens = name == "open" and any(set(ast.unparse(mode)) & set("wax+") for mode in modes)
            if opens or (name in writing_calls and of.split("(")[0] in of_files):
                called = ast.unparse(node.func)
                if f"{module.relative_to(package)}: {called}" not in names_alone:
                    found.append(f"{module.relative_to(package)}:{node.lineno}: {called}")
    assert not found, "\n".join(found)

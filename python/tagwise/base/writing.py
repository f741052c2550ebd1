"""Atomic file writing: every file that tagwise writes appears complete or not at all.

The bytes go to a new temporary file in the same folder. It is flushed to disk and then renamed to the target. A reader
therefore sees the old file or the new one, and a full disk or a kill leaves the old one. A killed writer leaves its
temporary file behind. The next write to the folder removes temporary files that have not changed for a day.
"""

from __future__ import annotations

import contextlib
import errno
import io
import os
import re
import secrets
import stat
import sys
import time
from collections.abc import Iterator
from typing import IO, Any

from tagwise.base.exceptions import FileError, TagwiseError, file_error

Path = str | os.PathLike[str]

STALE = 24 * 3600.0  # seconds
_TEMPORARY = re.compile(r"\.tagwise-[0-9a-f]{16}\.tmp")
#: Open descriptors. Opening them again by name would start at the beginning of a redirected file.
_DESCRIPTOR = re.compile(r"/dev/std(?:(out)|err)|/(?:dev|proc/self)/fd/([0-9]{1,9})")
_FULL = (errno.ENOSPC, errno.EFBIG, getattr(errno, "EDQUOT", errno.ENOSPC))


@contextlib.contextmanager
def _errors_naming(path: str, kind: type[TagwiseError]) -> Iterator[None]:
    """Raise an OSError of the block again as an error of `kind` that names `path`."""
    try:
        yield
    except FileError:
        raise
    except (OSError, ValueError) as error:  # ValueError: the path contains a NUL
        code = getattr(error, "errno", None) or errno.EINVAL
        problem, remedy = (
            f"cannot be written ({os.strerror(code)})",
            "Give a path in a folder you may write to.",
        )
        if code == errno.EISDIR:
            problem, remedy = "is a folder", "Give the path of a file to write."
        elif code == errno.ELOOP:
            problem, remedy = "cannot be written through a symbolic link", "Give the path of the file itself."
        elif code in _FULL:
            remedy = "Free some space, or give a path on another disk. An existing file has not changed."
        raise file_error(kind, f"{path}: {problem}. {remedy}", path, code) from error


class _Output(io.FileIO):
    """A file whose errors name the path that the caller gave."""

    def __init__(self, handle: int, path: str, kind: type[TagwiseError]) -> None:
        super().__init__(handle, "wb")
        self._path, self._kind = path, kind

    def write(self, data: Any) -> int:
        with _errors_naming(self._path, self._kind):
            return super().write(data)


def is_temporary(name: str) -> bool:
    """Return whether a file name is that of a temporary file of `atomic`."""
    return _TEMPORARY.fullmatch(name) is not None


def _remove_stale(folder: str) -> None:
    """Remove temporary files of killed writers."""
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            if is_temporary(entry.name):
                with contextlib.suppress(OSError):
                    if entry.stat(follow_symlinks=False).st_mtime < time.time() - STALE:
                        os.unlink(entry.path)


def flush_folder(folder: str) -> None:
    """Flush the entries of a folder to disk if the system supports it."""
    with contextlib.suppress(OSError):
        handle = os.open(folder, os.O_RDONLY | getattr(os, "O_DIRECTORY", 0))
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def _create(place: str, before: os.stat_result | None) -> int:
    """Create a file with the permissions and, for a superuser, the owner of the file that it will replace."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
    handle = os.open(place, flags, 0o666 if before is None else 0o600)  # O_EXCL does not follow links
    if before is not None and hasattr(os, "fchmod"):
        with contextlib.suppress(OSError):
            os.fchown(handle, before.st_uid, before.st_gid)
        os.fchmod(handle, before.st_mode & 0o777)
    return handle


def _open(path: str, kind: type[TagwiseError]) -> tuple[_Output, str | None]:
    """Open a new temporary file and return its path too, or open a device, a pipe or a descriptor and return None."""
    with _errors_naming(path, kind):
        if found := _DESCRIPTOR.fullmatch(path):
            for stream in (sys.stdout, sys.stderr):
                with contextlib.suppress(OSError, ValueError, AttributeError):
                    stream.flush()  # keeps the order of the output
            return _Output(os.dup(int(found[2] or (1 if found[1] else 2))), path, kind), None
        folder, name = os.path.split(path)
        folder = os.path.abspath(folder)
        try:
            before = os.lstat(os.path.join(folder, name))
        except FileNotFoundError:
            before = None
        if before is not None and not stat.S_ISREG(before.st_mode):
            refused = {stat.S_IFDIR: errno.EISDIR, stat.S_IFLNK: errno.ELOOP}
            if code := refused.get(stat.S_IFMT(before.st_mode)):
                raise OSError(code, "")
            return _Output(os.open(path, os.O_WRONLY | getattr(os, "O_CLOEXEC", 0)), path, kind), None
        if before is not None and not os.access(path, os.W_OK):
            raise OSError(errno.EACCES, "")
        _remove_stale(folder)
        temporary = os.path.join(folder, f".tagwise-{secrets.token_hex(8)}.tmp")
        return _Output(_create(temporary, before), path, kind), temporary


def check_writable(path: Path, kind: type[TagwiseError] = FileError) -> None:
    """Check that `atomic` can write to a path, for example before a long computation.

    Raises:
        kind: If a file cannot be created or replaced there. Devices and pipes are not checked.
    """
    if os.path.exists(path) and not any(
        is_kind(path) for is_kind in (os.path.isfile, os.path.isdir, os.path.islink)
    ):
        return
    raw, temporary = _open(os.fsdecode(path), kind)
    raw.close()
    if temporary is not None:
        os.unlink(temporary)


@contextlib.contextmanager
def atomic(path: Path, kind: type[TagwiseError] = FileError) -> Iterator[IO[bytes]]:
    """Open a stream of bytes to a file that takes its name only when the block ends without an error.

    Devices, pipes and open descriptors (/dev/stdout) are written to directly, since there is nothing to replace.

    Args:
        path: The file. Symbolic links are rejected. An existing file keeps its permissions.
        kind: Class of the errors, which are OSErrors too.

    Raises:
        kind: If the file cannot be written. An existing file has not changed then.
    """
    name = os.fsdecode(path)
    raw, temporary = _open(name, kind)
    out = io.BufferedWriter(raw, 1 << 16)
    try:
        try:
            yield out
            out.flush()
            if temporary is not None:
                with _errors_naming(name, kind):
                    os.fsync(raw.fileno())
        finally:
            with contextlib.suppress(OSError):  # closing repeats a failed write
                out.close()
        if temporary is not None:
            with _errors_naming(name, kind):
                os.replace(temporary, os.path.join(os.path.dirname(temporary), os.path.basename(name)))
            flush_folder(os.path.dirname(temporary))
    except BaseException:
        if temporary is not None:
            with contextlib.suppress(OSError):
                os.unlink(temporary)
        raise


def write_text(path: Path, text: str) -> None:
    """Write a text to a file as UTF-8, atomically."""
    with atomic(path) as out:
        out.write(text.encode("utf-8"))

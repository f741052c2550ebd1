"""Files that appear whole or not at all: the one way in which anything is written to disk.

The bytes go to a file of a name of its own beside the target (never an existing one, never through a link), are flushed
to the disk, and take the target's name in one step; then the folder is flushed. So a reader sees the file before or the
file after, whoever else writes to the same path, and a full disk or a kill leaves the file before. What a killed writer
leaves behind is removed by the next one that writes to the path: the name says which process made it.
"""

from __future__ import annotations

import contextlib
import errno
import functools
import hashlib
import io
import os
import re
import secrets
import socket
import stat
import sys
from collections.abc import Iterator
from typing import IO, Any, NoReturn

from tagwise.base.exceptions import FileError, TagwiseError, refusal

Path = str | os.PathLike[str]

#: Folders whose entries are open descriptors: /dev/fd/1, and /dev/stdout by way of its link.
_DESCRIPTORS = re.compile(r"/dev/fd|/proc/(self|\d+)(/task/\d+)?/fd")
_LINKS = 40  # links followed at most, as Linux does
_LONGEST = 255  # bytes of a file name
_FLAGS = (
    os.O_WRONLY
    | os.O_CREAT
    | os.O_EXCL
    | getattr(os, "O_NOFOLLOW", 0)
    | getattr(os, "O_CLOEXEC", 0)
    | getattr(os, "O_BINARY", 0)
)
_FULL = (errno.ENOSPC, errno.EFBIG, getattr(errno, "EDQUOT", errno.ENOSPC))
#: What systems answer that cannot flush such a file; there is nothing more to be done then.
_UNFLUSHABLE = (errno.EINVAL, errno.ENOSYS, getattr(errno, "ENOTSUP", errno.EINVAL))


def _refuse(path: str, code: int, kind: type[TagwiseError], cause: BaseException | None = None) -> NoReturn:
    """Raise for a path that cannot be written, by the number of the system's error."""
    what = f"cannot be written ({os.strerror(code)})"
    if code == errno.EISDIR:
        what, remedy = "is a folder", "Give the path of a file to write."
    elif code in _FULL:
        remedy = "Make room, or give a path on another disk; what was there before has not changed."
    else:
        remedy = "Give a path in a folder you may write to."
    raise refusal(kind, f"{path}: {what}. {remedy}", path, code) from cause


# --- where to ---------------------------------------------------------------------------------------------


def target_of(path: Path, kind: type[TagwiseError] = FileError, *, follow: bool = True) -> str | None:
    """The regular file that a path stands for, or that would be made there; None where there is nothing to replace.

    Links are followed, as opening the path would: the link stays, the file that it names is replaced, or made if it is
    not there. A device, a pipe and an open descriptor (/dev/null, /dev/stdout, a FIFO) are None: they are written to.
    Without `follow`, in a folder whose files are our own, all but a regular file is refused.
    """
    given = place = os.fsdecode(path)
    try:
        for _ in range(_LINKS + 1):
            folder, base = os.path.realpath(os.path.dirname(place)), os.path.basename(place)
            if _DESCRIPTORS.fullmatch(folder):
                return None
            try:
                found = os.lstat(place)
            except FileNotFoundError:
                if not base:
                    raise
                return os.path.join(folder, base)
            if stat.S_ISDIR(found.st_mode):
                _refuse(given, errno.EISDIR, kind)
            if not follow and not stat.S_ISREG(found.st_mode):
                _refuse(given, errno.ELOOP if stat.S_ISLNK(found.st_mode) else errno.ESPIPE, kind)
            if not stat.S_ISLNK(found.st_mode):
                return os.path.join(folder, base) if stat.S_ISREG(found.st_mode) else None
            _check_link(given, folder, found, kind)
            place = os.path.join(folder, os.readlink(place))
    except FileError:
        raise
    except OSError as error:
        _refuse(given, error.errno or errno.EIO, kind, error)
    except ValueError as error:  # a NUL in it
        _refuse(given, errno.EINVAL, kind, error)
    _refuse(given, errno.ELOOP, kind)


def _check_link(given: str, folder: str, link: os.stat_result, kind: type[TagwiseError]) -> None:
    """Refuse a link that someone else put into a folder where anyone may (as Linux's protected_symlinks has it)."""
    around = os.stat(folder)
    shared = around.st_mode & stat.S_ISVTX and around.st_mode & stat.S_IWOTH
    if shared and hasattr(os, "geteuid") and link.st_uid not in (os.geteuid(), around.st_uid):
        _refuse(given, errno.EACCES, kind)


# --- whose a temporary file is ----------------------------------------------------------------------------


@functools.cache
def _machine() -> str:
    """Where process numbers mean the same: a host, since it was started, and its namespace of processes."""
    parts = [socket.gethostname()]
    with contextlib.suppress(OSError), open("/proc/sys/kernel/random/boot_id", encoding="ascii") as boot:
        parts.append(boot.read().strip())
    with contextlib.suppress(OSError):
        parts.append(os.readlink("/proc/self/ns/pid"))
    return hashlib.sha256("\0".join(parts).encode("utf-8", "surrogateescape")).hexdigest()[:10]


def _begun(pid: int) -> int | None:
    """When a process began, in the system's ticks; 0 where that is not told, None for one that has ended."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
            fields = file.read().rpartition(")")[2].split()
        return None if fields[0] in "ZX" else int(fields[19])
    except (OSError, IndexError, ValueError):
        pass
    if os.name != "posix":  # no signal 0: nobody is taken for dead
        return 0
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return None
    except (OSError, OverflowError):
        pass
    return 0


def _dead(machine: str, pid: int, begun: int) -> bool:
    """Whether the process that made a file has ended; one of another machine counts as alive."""
    if machine != _machine():
        return False
    now = _begun(pid)
    return now is None or (now != begun and 0 not in (now, begun))


def _stem(base: str) -> str:
    """What the names of temporary files for a file begin with: its name, cut to leave room for the rest."""
    room = _LONGEST - len(f"..{'0' * 10}-{'0' * 10}-{'0' * 20}-{'0' * 16}.tmp")
    return f".{os.fsencode(base)[:room].decode('utf-8', 'ignore')}."


def is_left_behind(name: str, base: str) -> bool:
    """Whether a file in the same folder is a temporary file of a writer of `base`."""
    return name.startswith(_stem(base)) and name.endswith(".tmp")


def _temporary(base: str) -> str:
    """A name that nobody else has: machine, process, when it began, and chance."""
    pid = os.getpid()
    return f"{_stem(base)}{_machine()}-{pid}-{_begun(pid) or 0}-{secrets.token_hex(8)}.tmp"


def _sweep(folder: str, base: str) -> None:
    """Remove what dead writers of a file left behind."""
    pattern = re.compile(re.escape(_stem(base)) + r"([0-9a-f]{10})-(\d{1,10})-(\d{1,20})-[0-9a-f]{16}\.tmp")
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            found = pattern.fullmatch(entry.name)
            if found and _dead(found[1], int(found[2]), int(found[3])):
                with contextlib.suppress(OSError):
                    os.unlink(entry.path)


# --- writing ----------------------------------------------------------------------------------------------


class _Raw(io.FileIO):
    """An open descriptor whose errors name the path that was meant."""

    def __init__(self, handle: int, path: str, kind: type[TagwiseError]) -> None:
        super().__init__(handle, "wb", closefd=False)
        self._path, self._kind = path, kind

    def write(self, data: Any) -> int:
        try:
            return super().write(data)
        except OSError as error:
            _refuse(self._path, error.errno or errno.EIO, self._kind, error)


@contextlib.contextmanager
def _stream(handle: int, path: str, kind: type[TagwiseError]) -> Iterator[IO[bytes]]:
    """A buffered stream onto a descriptor, which stays open."""
    out = io.BufferedWriter(_Raw(handle, path, kind), 1 << 16)
    try:
        yield out
        out.flush()
    finally:
        with contextlib.suppress(
            OSError
        ):  # told already where it matters; a second try at close tells no more
            out.close()


def flush_folder(folder: str) -> None:
    """Have the disk remember what a folder holds, where the system can."""
    with contextlib.suppress(OSError):
        handle = os.open(folder, os.O_RDONLY | getattr(os, "O_DIRECTORY", 0))
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def _status(path: str) -> os.stat_result | None:
    """What the system knows of a file, None where there is none."""
    try:
        return os.stat(path)
    except FileNotFoundError:
        return None


def _keep(handle: int, before: os.stat_result) -> None:
    """Give a file the owner and the permissions of the one that it is to replace, as far as the system lets us."""
    if hasattr(os, "fchown"):
        with contextlib.suppress(OSError):
            os.fchown(handle, before.st_uid, before.st_gid)
    if hasattr(os, "fchmod"):
        os.fchmod(handle, before.st_mode & 0o777)


@contextlib.contextmanager
def _replacing(target: str, path: str, kind: type[TagwiseError]) -> Iterator[int]:
    """A descriptor of a new file beside `target`, which takes its name when the block ends well."""
    folder, base = os.path.split(target)
    _sweep(folder, base)
    handle, temporary, writer = -1, os.path.join(folder, _temporary(base)), os.getpid()
    ours = False
    try:
        try:
            before = _status(target)
            if before is not None and not os.access(target, os.W_OK):
                _refuse(path, errno.EACCES, kind)
            handle = os.open(temporary, _FLAGS, 0o666 if before is None else 0o600)
            ours = True
            if before is not None:
                _keep(handle, before)
        except OSError as error:
            if isinstance(error, FileError):
                raise
            _refuse(path, error.errno or errno.EIO, kind, error)
        yield handle
        try:
            try:
                os.fsync(handle)
            except OSError as error:
                if error.errno not in _UNFLUSHABLE:
                    raise
            closing, handle = handle, -1
            os.close(closing)
            os.replace(temporary, target)
            ours = False
        except OSError as error:
            _refuse(path, error.errno or errno.EIO, kind, error)
    finally:
        if handle >= 0:
            os.close(handle)
        if ours and os.getpid() == writer:  # not in a child that was forked meanwhile
            with contextlib.suppress(OSError):
                os.unlink(temporary)
    flush_folder(folder)


def _opened(path: str, kind: type[TagwiseError]) -> int:
    """A descriptor of what is written to in place; one that is open already is shared, its position too."""
    place = path
    while os.path.islink(place) and not _DESCRIPTORS.fullmatch(os.path.realpath(os.path.dirname(place))):
        place = os.path.join(os.path.dirname(place), os.readlink(place))
    folder, base = os.path.realpath(os.path.dirname(place)), os.path.basename(place)
    try:
        if (
            _DESCRIPTORS.fullmatch(folder)
            and base.isdecimal()
            and folder in ("/dev/fd", f"/proc/{os.getpid()}/fd")
        ):
            for stream in (sys.stdout, sys.stderr):
                with contextlib.suppress(OSError, ValueError, AttributeError):
                    stream.flush()  # what was printed before stays before
            return os.dup(int(base))
        return os.open(path, os.O_WRONLY | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NOCTTY", 0))
    except OSError as error:
        _refuse(path, error.errno or errno.EIO, kind, error)


@contextlib.contextmanager
def atomic(path: Path, kind: type[TagwiseError] = FileError, *, follow: bool = True) -> Iterator[IO[bytes]]:
    """A stream of bytes to a file that takes its name only when the block ends well (`target_of`: links, devices).

    The file has the permissions of the one that it replaces, else those of a file that is opened for writing. Whatever
    the system refuses is an error of `kind` that names the path and is an OSError.
    """
    given = os.fsdecode(path)
    target = target_of(given, kind, follow=follow)
    if target is None:
        handle = _opened(given, kind)
        try:
            with _stream(handle, given, kind) as out:
                yield out
        finally:
            os.close(handle)
        return
    with _replacing(target, given, kind) as handle, _stream(handle, given, kind) as out:
        yield out


def write_text(path: Path, text: str, *, follow: bool = True) -> None:
    """A whole text as a file of UTF-8."""
    with atomic(path, follow=follow) as out:
        out.write(text.encode("utf-8"))


__all__ = ["atomic", "flush_folder", "is_left_behind", "target_of", "write_text"]

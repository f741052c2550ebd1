"""An append-only journal with one JSON object and its checksum per line.

An entry counts once its line is flushed to disk, and is reported as done only then. A killed process can lose at most
an entry that was not reported. It leaves an incomplete last line, which is removed when the journal is opened again.
Any other malformed line, or a wrong checksum, is damage and raises an error with the line number.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from types import TracebackType
from typing import Any

from tagwise.base.domains import Anything, Domain, DomainError, Integer, Record
from tagwise.base.exceptions import FileError, TagwiseError, file_error
from tagwise.base.files.sealed import sealed, unsealed
from tagwise.base.writing import flush_folder

try:
    import fcntl
except ImportError:  # no file locks on this system
    LOCKS = False
else:
    LOCKS = True

#: Maximum bytes of a line, and of a journal.
LONGEST, MOST = 1 << 20, 1 << 28
#: Default domain of an entry.
ENTRY: Domain = Record({"n": Integer(1, MOST)}, more=Anything())


class JournalError(TagwiseError, ValueError):
    """A journal that cannot be read."""


class Journal:
    """An open journal, locked against other writers. Entries are counted from 1.

    Args:
        path: File, created if it does not exist.
        domain: Domain of an entry.
        read_only: Whether to read the entries without a lock and without changing the file, while another process may
            append to it.
    """

    def __init__(
        self, path: str | os.PathLike[str], domain: Domain = ENTRY, *, read_only: bool = False
    ) -> None:
        self.path, self._domain, self.cut = os.fspath(path), domain, 0
        flags = os.O_RDONLY if read_only else os.O_RDWR | os.O_CREAT
        flags |= getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NOFOLLOW", 0)
        try:
            self._handle = os.open(self.path, flags | getattr(os, "O_NONBLOCK", 0), 0o600)
            if not stat.S_ISREG(os.fstat(self._handle).st_mode):
                os.close(self._handle)
                raise OSError(errno.ESPIPE, "a pipe or a device, not a file")
        except OSError as error:
            raise file_error(
                FileError,
                f"{self.path}: cannot be opened ({error.strerror}). Give a folder you may write to.",
                self.path,
                error.errno or 5,
            ) from error
        try:
            if read_only:
                self.entries, self._size = self._read()
                self.close()
                return
            self._lock()
            self.entries, size = self._read()
            self.cut = os.fstat(self._handle).st_size - size  # bytes of an incomplete line that were removed
            if self.cut:
                os.ftruncate(self._handle, size)
                os.fsync(self._handle)
            os.lseek(self._handle, size, os.SEEK_SET)
        except BaseException:
            self.close()
            raise
        self._size = size
        flush_folder(os.path.dirname(self.path) or ".")

    def _lock(self) -> None:
        if not LOCKS:
            return
        try:
            fcntl.flock(self._handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise JournalError(
                f"{self.path}: another process is writing to it. Stop that process first."
            ) from error

    def _read(self) -> tuple[list[dict[str, Any]], int]:
        """Return the entries and the offset of the end of the last one."""
        entries: list[dict[str, Any]] = []
        size = 0
        if (found := os.fstat(self._handle).st_size) > MOST:
            raise JournalError(
                f"{self.path}: {found:,} bytes, more than the limit of {MOST:,}. Start another project in a new folder."
            )
        with os.fdopen(os.dup(self._handle), "rb") as file:
            file.seek(0)
            while line := file.readline(LONGEST + 1):
                if not line.endswith(b"\n"):
                    if len(line) > LONGEST:
                        raise self._broken(len(entries) + 1, f"longer than {LONGEST:,} bytes")
                    break
                try:
                    entry = unsealed(line, self._domain, "the line")
                except DomainError as error:
                    raise self._broken(len(entries) + 1, str(error)) from None
                if entry["n"] != len(entries) + 1:
                    raise self._broken(len(entries) + 1, f"expected an object with n = {len(entries) + 1}")
                entries.append(entry)
                size += len(line)
        return entries, size

    def _broken(self, line: int, why: str) -> JournalError:
        return JournalError(
            f"{self.path}, line {line}: {why}. Lines before it are intact. To keep them, copy the file and delete "
            "the rest."
        )

    def append(self, **entry: Any) -> dict[str, Any]:
        """Append an entry, which is on disk when this returns. An error leaves the journal unchanged."""
        if self._handle < 0:
            raise JournalError(f"{self.path}: the journal is open for reading only.")
        record = {"n": len(self.entries) + 1, **entry}
        line = sealed(record)
        if len(line) > LONGEST or self._size + len(line) > MOST:
            raise JournalError(
                f"{self.path}: the journal is full ({MOST:,} bytes, {LONGEST:,} per line). Start another project in "
                "a new folder."
            )
        try:
            at = 0
            while at < len(line):
                at += os.write(self._handle, line[at:])
            os.fsync(self._handle)
        except BaseException as error:  # also Ctrl-C: an uncounted line would take the place of the next one
            with contextlib.suppress(OSError):
                os.ftruncate(self._handle, self._size)
                os.lseek(self._handle, self._size, os.SEEK_SET)
            if not isinstance(error, OSError):
                raise
            raise file_error(
                FileError,
                f"{self.path}: cannot be written ({error.strerror}). The action was not saved. Free some disk space "
                "and repeat it.",
                self.path,
                error.errno or 5,
            ) from error
        self._size += len(line)
        self.entries.append(record)
        return record

    def close(self) -> None:
        """Close the file."""
        if self._handle >= 0:
            os.close(self._handle)
            self._handle = -1

    def __enter__(self) -> Journal:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

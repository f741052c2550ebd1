"""Opening of files that users or other files name: only regular files, up to a size limit.

A pipe blocks until there is a writer, and a device such as /dev/zero never ends.
"""

from __future__ import annotations

import errno
import os
import stat
import sys
from typing import IO

from tagwise.base.exceptions import TagwiseError, file_error

Path = str | os.PathLike[str]

_FLAGS = os.O_RDONLY | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
#: Do not block if a pipe replaces the file between the check and the opening.
_WAITLESS = getattr(os, "O_NONBLOCK", 0)
_UNLINKED = getattr(os, "O_NOFOLLOW", 0)


def open_regular(
    path: Path,
    limit: int | None,
    kind: type[TagwiseError],
    remedy: str,
    *,
    follow: bool = True,
) -> IO[bytes]:
    """Open a regular file for reading.

    Args:
        path: The file.
        limit: Maximum size in bytes. `None` if the reader has limits of its own.
        kind: Class of the error, which is an OSError too.
        remedy: What to do, as the last sentence of the message.
        follow: Whether the path may be a symbolic link. Use `False` inside a folder whose files we write ourselves.

    Raises:
        kind: There is no such file, it cannot be opened, it is a folder, a pipe, a device or (without `follow`) a
            link, or it is longer than `limit`.
    """
    name = os.fspath(path)

    def error_for(reason: str, code: int, cause: Exception | None = None) -> TagwiseError:
        error = file_error(kind, f"{name}: cannot be read ({reason}). {remedy}", name, code)
        error.__cause__ = cause
        return error

    try:
        found = os.stat(name) if follow else os.lstat(name)
        if stat.S_ISREG(found.st_mode):
            handle = os.open(name, _FLAGS | _WAITLESS | (0 if follow else _UNLINKED))
            try:
                found = os.fstat(handle)
                if stat.S_ISREG(found.st_mode) and (limit is None or found.st_size <= limit):
                    return os.fdopen(handle, "rb")
            except BaseException:
                os.close(handle)
                raise
            os.close(handle)
    except OSError as error:
        raise error_for(str(error.strerror), error.errno or errno.EIO, error) from error
    except ValueError as error:  # a NUL in the path
        raise error_for(str(error), errno.EINVAL, error) from error
    if stat.S_ISDIR(found.st_mode):
        raise error_for("it is a folder", errno.EISDIR)
    if stat.S_ISLNK(found.st_mode):
        raise error_for("it is a symbolic link", errno.ELOOP)
    if not stat.S_ISREG(found.st_mode):
        raise error_for("it is a pipe or a device, not a file", errno.ESPIPE)
    raise error_for(f"it has {found.st_size:,} bytes, more than the limit of {limit:,}", errno.EFBIG)


def handle_of(file: IO[bytes]) -> int:
    """Return the descriptor of an open file for the core, or its handle on Windows."""
    if sys.platform == "win32":
        import msvcrt

        return msvcrt.get_osfhandle(file.fileno())
    return file.fileno()


def read_regular(
    path: Path, limit: int, kind: type[TagwiseError], remedy: str, *, follow: bool = True
) -> bytes:
    """Return the bytes of a regular file that `open_regular` opens."""
    with open_regular(path, limit, kind, remedy, follow=follow) as file:
        data = file.read(limit + 1)
    if len(data) > limit:  # it has grown since it was opened
        name = os.fspath(path)
        text = f"{name}: cannot be read (more than the limit of {limit:,} bytes). {remedy}"
        raise file_error(kind, text, name, errno.EFBIG)
    return data


def make_own_folder(path: Path, kind: type[TagwiseError]) -> None:
    """Create a folder inside one of tagwise, if it does not exist. A link in its place is rejected.

    Raises:
        kind: It cannot be created, or there is a link or a file of its name.
    """
    name = os.fspath(path)
    try:
        os.makedirs(name, exist_ok=True)
        if not stat.S_ISLNK(os.lstat(name).st_mode):
            return
        code, reason = errno.ELOOP, "it is a symbolic link"
    except OSError as error:
        code, reason = error.errno or errno.EIO, str(error.strerror)
    raise file_error(kind, f"{name}: cannot be created ({reason}). Give another folder.", name, code)

"""Model of an estimator: bytes in memory, which are written to a file when its name is read."""

from __future__ import annotations

import contextlib
import os
import tempfile
from typing import Any

from tagwise.base.writing import atomic

DATA = "__FILE_RESOURCE_DATA__"


class FileResource:
    """Named file, or a temporary file that is removed with its owner.

    Pickles and copies contain the content of a temporary file. The file itself is created when its name is read, so
    that two owners never share one, and a killed process leaves few files behind.
    """

    def __init__(
        self,
        filename: str | os.PathLike[str] | None = None,
        keep_tempfiles: bool = False,
        suffix: str = "",
        prefix: str = "",
    ) -> None:
        self._name: str | None = None if filename is None else os.fspath(filename)
        self.auto = filename is None
        self.keep_tempfiles, self.suffix, self.prefix = keep_tempfiles, suffix, prefix
        self.data: bytes | None = None
        self.fd: int | None = None

    @property
    def name(self) -> str | None:
        """Path of the file. Bytes without a file are written to a new temporary file."""
        if self._name is None and self.auto and self.data is not None:
            with atomic(self._create()) as file:
                file.write(self.data)
        return self._name

    def ensure_name(self) -> None:
        """Create a temporary file unless the file has a name."""
        if self._name is not None:
            return
        if not self.auto:
            raise ValueError("File name is not provided")
        self._create()

    def _create(self) -> str:
        """Create a temporary file and return its path."""
        handle, name = tempfile.mkstemp(self.suffix, self.prefix)
        os.close(handle)
        self._name = name
        return name

    def read_back(self) -> None:
        """Read the content of the temporary file into memory."""
        if self.auto and self._name is not None:
            with open(self._name, "rb") as file:
                self.data = file.read()

    def cleanup(self) -> None:
        """Drop the content and remove the temporary file."""
        if not self.auto:
            return
        self.data = None
        if self._name is not None and not self.keep_tempfiles:
            with contextlib.suppress(OSError):
                os.unlink(self._name)
            self._name = None

    def refresh(self) -> None:
        """Replace the temporary file by a new one."""
        if self.keep_tempfiles and self.auto:
            self._name = None
        self.cleanup()
        self.ensure_name()

    def __del__(self) -> None:
        with contextlib.suppress(Exception):
            self.cleanup()

    def __getstate__(self) -> dict[str, Any]:
        state: dict[str, Any] = {
            "name": self._name,
            "auto": self.auto,
            "keep_tempfiles": self.keep_tempfiles,
            "suffix": self.suffix,
            "prefix": self.prefix,
        }
        if self.auto:
            state["name"] = None
            data = self.data
            if data is None and self._name is not None:
                with contextlib.suppress(OSError), open(self._name, "rb") as file:
                    data = file.read()
            if data is not None:
                state[DATA] = data
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        data = state.get(DATA)
        self.auto = state.get("auto", state.get("name") is None)
        self._name = None if self.auto else state.get("name")
        self.keep_tempfiles = state.get("keep_tempfiles", False)
        self.suffix, self.prefix = state.get("suffix", ".crfsuite"), state.get("prefix", "model")
        self.data = data.encode("latin-1") if isinstance(data, str) else data
        self.fd = None

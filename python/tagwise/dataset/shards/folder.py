"""Output folder of encoding, which must be empty or written by tagwise. Only files named in its manifest are removed.

The manifest records the number of shards before the first of them is written. An interrupted encoding is therefore
distinguishable from an unrelated folder, and can be resumed.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from tagwise.base.exceptions import CorpusError, file_error
from tagwise.base.writing import is_temporary
from tagwise.dataset.shards.files import (
    MANIFEST,
    VOCABULARY,
    map_name,
    read_manifest,
    shard_name,
    write_manifest,
)

_ELSEWHERE = "Give a folder that is empty or does not exist yet, or one that `tagwise encode` has written."


def make_folder(folder: Path) -> None:
    """Create a folder if it does not exist."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        message = f"{folder}: cannot be created ({error.strerror}). Give a writable folder."
        raise file_error(CorpusError, message, str(folder), error.errno or 5) from error


class Output:
    """A folder of shards that is about to be written.

    Args:
        folder: The folder. It is created if it does not exist.

    Raises:
        CorpusError: The folder is not empty and has no manifest of tagwise, or a link or folder has the name of a
            shard. Nothing has been changed in this case.
    """

    def __init__(self, folder: Path) -> None:
        make_folder(folder)
        self.folder = folder
        self._complete: dict[str, Any] | None = None
        self.owned = 0  # shards that the manifest names
        names = set(os.listdir(folder))
        if MANIFEST in names:
            found = read_manifest(folder)
            if found["state"] == "complete":
                self._complete, self.owned = found, len(found["shards"])
            else:
                self.owned = found["shards"]
        elif others := sorted(name for name in names if not is_temporary(name)):
            reason = f"it contains {others[0]!r} and no {MANIFEST} of tagwise"
            raise _refuse(folder, reason, errno.ENOTEMPTY)
        for name in self._names(self.owned):
            self._check_file(name)

    def _names(self, shards: int) -> Iterable[str]:
        yield VOCABULARY
        for k in range(shards):
            yield shard_name(k)
            yield map_name(k)

    def _check_file(self, name: str) -> bool:
        """Return whether a regular file of this name exists. Raise a CorpusError for a link, a folder or a device."""
        try:
            mode = os.lstat(self.folder / name).st_mode
        except FileNotFoundError:
            return False
        if not stat.S_ISREG(mode):
            raise _refuse(self.folder / name, "it is a link, a folder or a device, not a file", errno.EEXIST)
        return True

    def claim(self, shards: int) -> None:
        """Record the number of shards in the manifest, before any of them is written.

        The folder is incomplete until `complete` is called. An unrelated file with the name of a new shard is an error.
        """
        if self._complete is None and shards <= self.owned:
            return
        for k in range(self.owned, shards):
            for name in (shard_name(k), map_name(k)):
                if self._check_file(name):
                    raise _refuse(self.folder / name, f"{MANIFEST} does not name it", errno.EEXIST)
        self.owned, self._complete = max(shards, self.owned), None
        write_manifest(self.folder, {"state": "encoding", "shards": self.owned})

    def has(self, digests: list[str]) -> bool:
        """Return whether the folder is complete and consists of shards with these digests."""
        known = self._complete
        return known is not None and [shard["digest"] for shard in known["shards"]] == digests

    def remove(self, names: Iterable[str]) -> None:
        """Remove files that encoding has written, if they exist."""
        for name in names:
            if self._check_file(name):
                os.unlink(self.folder / name)

    def complete(self, manifest: dict[str, Any]) -> None:
        """Remove shards that are in the old manifest but not in the new one, then write the new manifest."""
        old = range(len(manifest["shards"]), self.owned)
        self.remove(name for k in old for name in (shard_name(k), map_name(k)))
        manifest = {"state": "complete", **manifest}
        write_manifest(self.folder, manifest)
        self.owned, self._complete = len(manifest["shards"]), manifest


def _refuse(path: Path, reason: str, code: int) -> CorpusError:
    error: Any = file_error(CorpusError, f"{path}: not written ({reason}). {_ELSEWHERE}", str(path), code)
    return error  # type: ignore[no-any-return]

"""Guidelines for annotators, a Markdown file."""

from __future__ import annotations

import os
from pathlib import Path

from tagwise.base.exceptions import FileError, ParameterError
from tagwise.base.files.regular import open_regular, read_regular

#: File with guidelines in the folder of a project, and its maximum size in bytes.
GUIDELINES, MOST_GUIDELINES = "guidelines.md", 1 << 20


def guidelines_of(folder: Path, given: str | os.PathLike[str] | None) -> Path | None:
    """Return the path of the guidelines, which have to be a regular file if they are given."""
    if given is None:
        own = folder / GUIDELINES
        return own if own.is_file() else None
    open_regular(given, MOST_GUIDELINES, FileError, "Give a Markdown file to --guidelines.").close()
    return Path(given)


def read_guidelines(path: Path | None) -> str:
    """Return the text of the guidelines, as the file is now."""
    if path is None:
        raise ParameterError("there are no guidelines. Start with --guidelines FILE")
    return read_regular(path, MOST_GUIDELINES, FileError, "Give another file.").decode("utf-8-sig", "replace")

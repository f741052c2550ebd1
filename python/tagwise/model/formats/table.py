"""Table of the model formats of other programs: detection by first bytes, reader, writer."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import NamedTuple

from tagwise.base.exceptions import ModelFileError
from tagwise.base.parameters import meant
from tagwise.model.formats import crfpp, crfsuite, wapiti
from tagwise.model.formats.chain import ForeignModel

#: Number of bytes that identify a format.
HEAD = 64


class ModelFormat(NamedTuple):
    """Format of a model file: detection, reader and writer."""

    name: str
    program: str
    suffixes: tuple[str, ...]
    matches: Callable[[bytes], bool]
    read: Callable[[bytes], ForeignModel]
    write: Callable[[ForeignModel], bytes]


TABLE = (
    ModelFormat("crfsuite", "CRFsuite", (".crfsuite",), crfsuite.matches, crfsuite.read, crfsuite.write),
    ModelFormat("wapiti", "Wapiti", (".wapiti",), wapiti.matches, wapiti.read, wapiti.write),
    ModelFormat(
        "crfpp-text", "CRF++", (".crfpp.txt",), crfpp.matches_text, crfpp.read_text, crfpp.write_text
    ),
    ModelFormat("crfpp", "CRF++", (".crfpp",), crfpp.matches, crfpp.read, crfpp.write),
)
FORMATS: dict[str, ModelFormat] = {format.name: format for format in TABLE}


def format_of(head: bytes) -> ModelFormat | None:
    """Return the format of a file that begins with these bytes, or None for tagwise and unknown files."""
    return next((format for format in TABLE if format.matches(head)), None)


def format_of_name(path: str | os.PathLike[str]) -> str | None:
    """Return the format of the suffix of a path, or None."""
    name = os.fspath(path)
    return next((f.name for f in TABLE if any(name.endswith(suffix) for suffix in f.suffixes)), None)


def format_by_name(name: str) -> ModelFormat:
    """Return a format by its name."""
    if name not in FORMATS:
        known = ", ".join(("tagwise", *FORMATS))
        raise ModelFileError(f"format={name!r}: expected one of {known}{meant(name, ('tagwise', *FORMATS))}")
    return FORMATS[name]

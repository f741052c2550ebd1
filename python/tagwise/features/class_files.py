"""Files of word classes: the container of model files, with words, shapes, counts and paths of each set as arrays."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tagwise._core import __version__
from tagwise.base.domains import Anything, Choice, DomainError, Flag, Integer, ListOf, Record, Text
from tagwise.base.exceptions import ModelFileError
from tagwise.base.files.arrays import ArrayFile, is_array_file, read_header, write_arrays
from tagwise.base.parameters import checked_path
from tagwise.base.writing import atomic

Path = str | os.PathLike[str]
#: Version of the format.
VERSION = 1
REMEDY = "Give the path of a file written by `tagwise classes` or `WordClasses.save`."
_HEADER = Record(
    {
        "file": Choice(("word classes",)),
        "version": Integer(1),
        "tagwise": Text(),
        "sets": ListOf(
            Record(
                {
                    "name": Text(),
                    "window": Integer(0, 10),
                    "cuts": ListOf(Integer(2)),
                    "ignore_case": Flag(),
                    "facts": Record(more=Anything()),
                }
            )
        ),
    }
)
#: Header of any version.
_VERSIONED = Record({"file": Choice(("word classes",)), "version": Integer(1)}, more=Anything())


@dataclass(frozen=True)
class ClassSet:
    """One set of classes in a file: words and shapes by path, frequencies of words, and settings of the column."""

    words: Mapping[str, Sequence[str]]
    shapes: Mapping[str, Sequence[str]]
    counts: Mapping[str, int]
    name: str
    window: int
    cuts: list[int]
    ignore_case: bool
    facts: Mapping[str, Any]


def _packed(name: str, texts: Iterable[str]) -> dict[str, NDArray[Any]]:
    """Return texts as an array of bytes and the end of each."""
    encoded = [text.encode("utf-8") for text in texts]
    return {
        f"{name}.text": np.frombuffer(b"".join(encoded), dtype=np.uint8),
        f"{name}.end": np.cumsum([len(text) for text in encoded], dtype=np.int64).astype(np.uint64),
    }


def _unpacked(file: ArrayFile, name: str) -> list[str]:
    """Return the texts of `_packed`."""
    data, ends = file.take(f"{name}.text", "u8").tobytes(), file.take(f"{name}.end", "u64").tolist()
    bounds = [0, *ends]
    if bounds != sorted(bounds) or bounds[-1] != len(data):
        raise DomainError(f"the ends of {name} do not ascend to the end of their text")
    try:
        return [data[a:b].decode("utf-8") for a, b in pairwise(bounds)]
    except UnicodeDecodeError:
        raise DomainError(f"{name} are not UTF-8") from None


def _of(lists: Iterable[Sequence[str]]) -> NDArray[np.uint32]:
    """Return the number of the class of each text of lists, one list per class."""
    sizes = np.array([len(texts) for texts in lists], dtype=np.int64)
    return np.repeat(np.arange(len(sizes), dtype=np.uint32), sizes)


def _arrays(number: int, content: ClassSet) -> dict[str, NDArray[Any]]:
    """Return the arrays of a set of classes."""
    paths = list(content.words)
    words = [word for path in paths for word in content.words[path]]
    shapes = [list(content.shapes.get(path, ())) for path in paths]
    arrays = {
        **_packed("paths", paths),
        **_packed("words", words),
        "words.of": _of(content.words.values()),
        "words.count": np.array([content.counts.get(word, 0) for word in words], dtype=np.uint64),
        **_packed("shapes", (shape for texts in shapes for shape in texts)),
        "shapes.of": _of(shapes),
    }
    return {f"{number}.{name}": array for name, array in arrays.items()}


def write(path: Path, sets: Sequence[ClassSet]) -> None:
    """Write a file, complete or not at all."""
    settings = [
        {
            "name": content.name,
            "window": content.window,
            "cuts": content.cuts,
            "ignore_case": content.ignore_case,
            "facts": dict(content.facts),
        }
        for content in sets
    ]
    header = {"file": "word classes", "version": VERSION, "tagwise": __version__, "sets": settings}
    arrays = {name: array for i, content in enumerate(sets) for name, array in _arrays(i, content).items()}
    with atomic(checked_path(path), ModelFileError) as out:
        write_arrays(out, header, arrays)


def is_class_file(path: Path) -> bool:
    """Return whether a path is a file that begins like a file of classes."""
    return os.path.isfile(path) and os.path.getsize(path) > 0 and is_array_file(path, ModelFileError)


def read(path: Path) -> list[ClassSet]:
    """Read a file. Raise a ModelFileError that names the file if it is damaged or of another kind or version."""
    name = os.fspath(checked_path(path))
    try:
        version = read_header(path, _VERSIONED, ModelFileError, REMEDY)["version"]
        if version != VERSION:
            raise DomainError(f"version {version} of the format, this tagwise reads {VERSION}")
        file = ArrayFile(path, _HEADER, ModelFileError, REMEDY)
        if not file.header["sets"]:
            raise DomainError("no classes")
        return [_set(file, i, settings) for i, settings in enumerate(file.header["sets"])]
    except DomainError as error:
        raise ModelFileError(f"{name}: {error}. {REMEDY}") from None


def _set(file: ArrayFile, number: int, settings: Mapping[str, Any]) -> ClassSet:
    """Return a set of classes of a file."""
    paths, words, shapes = (_unpacked(file, f"{number}.{what}") for what in ("paths", "words", "shapes"))
    of_word, of_shape = (
        _grouped(texts, file.take(f"{number}.{what}.of", "u32", len(texts)), paths)
        for what, texts in (("words", words), ("shapes", shapes))
    )
    counts = file.take(f"{number}.words.count", "u64", len(words)).tolist()
    return ClassSet(of_word, of_shape, {word: n for word, n in zip(words, counts) if n}, **settings)


def _grouped(texts: Sequence[str], of: NDArray[np.uint32], paths: Sequence[str]) -> dict[str, list[str]]:
    """Return the texts of each class by its path."""
    if len(set(paths)) < len(paths) or (len(of) and int(of.max()) >= len(paths)):
        raise DomainError("two classes have one path, or a text has an unknown class")
    found: dict[str, list[str]] = {path: [] for path in paths}
    for text, number in zip(texts, of.tolist()):
        found[paths[number]].append(text)
    return found

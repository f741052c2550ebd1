"""The folder of a labelling project: its files and their schemas.

    work.json                  settings (label types, what labels mark, learner, features, strategy), and the documents
    documents/0001-name.jsonl  original sentences with their original labels, "_" for a token without label
    journal.jsonl              a line per action: accept, skip, flag, reject, comment, undo, redo
    guidelines.md              optional text for annotators
    words.classes              word classes, learned from all sentences
    token                      secret of the server, readable by the owner only

It can be copied and versioned as it is. Sentences are numbered through all documents in the order in which `work.json`
names them. A document never changes once it is there, so that numbers in the journal stay true.

A folder may come from a stranger. `work.json` and each line of the journal have a checksum and a schema. `work.json`
has size and checksum of each document. All of them are regular files within limits. No file outside the folder is
read: features that name files are used only if the caller gives them again (`Work.features`).
"""

from __future__ import annotations

import io
import os
import re
import zlib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import IO, Any

from tagwise.apps.annotate.history import MARKS
from tagwise.base.colours import PALETTE, unused
from tagwise.base.domains import Choice, Domain, DomainError, Integer, ListOf, Real, Record, Text, Variant
from tagwise.base.exceptions import CorpusError, ParameterError
from tagwise.base.files.regular import make_own_folder, open_regular, read_regular
from tagwise.base.files.sealed import sealed, unsealed
from tagwise.base.writing import atomic, is_temporary
from tagwise.corpus.formats import UNKNOWN, read
from tagwise.corpus.jsonl import write_jsonl
from tagwise.corpus.sentence import Corpus

VERSION = 3
OUTSIDE = "O"
#: Maximum sizes.
MOST_SENTENCES, MOST_LABELS, LONGEST_LABEL, MOST_TOKENS = 1_000_000, 200, 60, 2_000
LONGEST_TEXT, MOST_RENAMES = 2_000, 100_000
#: Maximum bytes of work.json, and of all documents together.
MOST_SETTINGS, MOST_BYTES = 1 << 24, 1 << 29
_REMEDY = "Give another folder, or restore this one from a copy."
_COUNT = Integer(0, 2**53)
_LABEL = Text(most=LONGEST_LABEL)
#: Schema of the appearance of a label: colour, key and description.
DETAILS: Domain = Record(
    {"colour": Integer(0, len(PALETTE) - 1)}, {"key": Text(most=1), "description": Text(most=LONGEST_TEXT)}
)
#: Schema of `work.json`.
WORK: Domain = Record(
    {
        "tagwise annotate": Integer(VERSION, VERSION),
        "kind": Choice(("spans", "tokens")),
        "labels": ListOf(_LABEL, high=MOST_LABELS, distinct=True),
        "details": Record(more=DETAILS),
        "renames": ListOf(
            Record({"entries": _COUNT, "documents": _COUNT, "old": _LABEL}, {"new": _LABEL}),
            high=MOST_RENAMES,
        ),
        "learner": Text(most=100),
        "features": Text(),
        "strategy": Text(most=100),
        "documents": ListOf(
            Record({"file": Text(most=255), "bytes": _COUNT, "crc32": Integer(0, 2**32 - 1)}), high=100_000
        ),
    }
)
_N: dict[str, Domain] = {"n": Integer(1, 2**53)}
_ID: dict[str, Domain] = {**_N, "id": Integer(0, MOST_SENTENCES)}
#: Schema of a line of the journal.
ACTION: Domain = Variant(
    "do",
    {
        "accept": Record(
            {**_ID, "labels": ListOf(Text(most=LONGEST_LABEL + 2), high=MOST_TOKENS)},
            {"seconds": Real(0, 1e6), "offered": _COUNT, "kept": _COUNT},
        ),
        **{mark: Record(_ID) for mark in MARKS},
        "comment": Record({**_ID, "text": Text(most=LONGEST_TEXT)}),
        "undo": Record(_N),
        "redo": Record(_N),
    },
)


@dataclass
class ProjectSettings:
    """Settings of a project. `kind` is "spans" (IOB2 labels) or "tokens" (a label for every token).

    Attributes:
        details: Colour of each label, and its key and description if it has them.
        renames: Renamed (`new`) and deleted label types, each with the numbers of entries of the journal and of
            documents that it applies to.
    """

    kind: str = "spans"
    labels: list[str] = field(default_factory=list)
    details: dict[str, dict[str, Any]] = field(default_factory=dict)
    renames: list[dict[str, Any]] = field(default_factory=list)
    learner: str = "mira"
    features: str = "default"
    strategy: str = "margin"

    def check(self) -> ProjectSettings:
        """Return the settings with a colour for each label, or raise a ParameterError if they are invalid."""
        if self.kind not in ("spans", "tokens"):
            raise ParameterError(f"kind={self.kind!r}: expected spans or tokens")
        for label in self.labels:
            check_label(label, self.kind)
        if len(set(self.labels)) != len(self.labels) or len(self.labels) > MOST_LABELS:
            raise ParameterError(f"labels: expected at most {MOST_LABELS} labels, each listed once")
        found = {label: self.details[label] for label in self.labels if label in self.details}
        uses = Counter(one["colour"] for one in found.values())
        for label in self.labels:
            if label not in found:
                found[label] = {"colour": unused(label, uses)}
                uses[found[label]["colour"]] += 1
        self.details = {label: found[label] for label in self.labels}
        return self


def check_label(label: Any, kind: str = "spans") -> str:
    """Return a label type, or raise a ParameterError if it is not a valid name."""
    if (
        not isinstance(label, str)
        or not 0 < len(label) <= LONGEST_LABEL
        or not label.isprintable()
        or re.search(r"\s", label)
        or label in (OUTSIDE, UNKNOWN)
    ):
        hint = (
            f". Use {'_'.join(label.split())!r}" if isinstance(label, str) and len(label.split()) > 1 else ""
        )
        raise ParameterError(
            f"label {label!r}: expected 1 to {LONGEST_LABEL} printable characters without spaces, "
            f"other than O and _{hint}"
        )
    if kind == "spans" and re.match(r"[BI]-", label):
        raise ParameterError(
            f"label {label!r}: types of spans have no prefix, which marks the first token of a span. "
            f"Use {label[2:]!r}"
        )
    return label


# --- work.json ----------------------------------------------------------------------------------------------


def is_begun(folder: Path) -> bool:
    """Return whether a folder contains a project. An empty or missing folder is prepared for a new one.

    Raises:
        CorpusError: The folder has other files, or documents and labels without a `work.json`.
    """
    begun = os.path.lexists(folder / "work.json")
    if not begun and folder.is_dir():
        for name in sorted(os.listdir(folder)):
            if not (is_temporary(name) or _is_empty(folder / name)):
                raise CorpusError(
                    f"{folder}: not a project of `tagwise annotate` (it contains {name!r} and no work.json). "
                    "Give a folder that is empty or does not exist yet, or restore work.json."
                )
    make_own_folder(folder / "documents", CorpusError)
    return begun


def _is_empty(path: Path) -> bool:
    """Return whether a journal or a folder of documents is empty."""
    if path.name == "documents":
        return path.is_dir() and not os.listdir(path)
    return path.name == "journal.jsonl" and path.is_file() and not path.stat().st_size


def read_settings(folder: Path) -> tuple[ProjectSettings, list[dict[str, Any]]]:
    """Return the settings of a project, and name, size and checksum of each document."""
    path = folder / "work.json"
    try:
        found = unsealed(read_regular(path, MOST_SETTINGS, CorpusError, _REMEDY, follow=False), WORK)
        settings = ProjectSettings(**{one.name: found[one.name] for one in fields(ProjectSettings)}).check()
        for file in found["documents"]:
            if not re.fullmatch(r"[0-9]+-[A-Za-z0-9_.-]+\.jsonl", file["file"]):
                raise DomainError(f"{file['file']!a} is not the name of a document")
    except (DomainError, ParameterError) as error:
        raise CorpusError(f"{path}: not the settings of a labelling project ({error}). {_REMEDY}") from error
    return settings, found["documents"]


def write_settings(folder: Path, settings: ProjectSettings, documents: Sequence[Mapping[str, Any]]) -> None:
    """Write `work.json`."""
    content = {"tagwise annotate": VERSION, **asdict(settings), "documents": list(documents)}
    with atomic(folder / "work.json", CorpusError) as out:
        out.write(sealed(content, indent=2))


# --- documents ----------------------------------------------------------------------------------------------


def read_document(folder: Path, file: Mapping[str, Any], others: int) -> Corpus:
    """Return the sentences of a document after checking its size and checksum. `others` is the size of all others."""
    path = folder / "documents" / file["file"]
    with open_regular(path, max(MOST_BYTES - others, 0), CorpusError, _REMEDY, follow=False) as stream:
        if _summed(stream) != (file["bytes"], file["crc32"]):
            raise CorpusError(f"{path}: its size or checksum differs from the entry in work.json. {_REMEDY}")
        stream.seek(0)
        try:
            return read(stream, "jsonl", label=None)
        except CorpusError as error:
            raise CorpusError(f"{path}: {error}") from error


def write_document(folder: Path, number: int, stem: str, corpus: Corpus, others: int) -> dict[str, Any]:
    """Write a new document and return its entry for `work.json`."""

    def place(number: int) -> Path:
        return folder / "documents" / f"{number:04d}-{stem or 'document'}.jsonl"

    while os.path.lexists(path := place(number)):  # a file left by a killed process or by another program
        number += 1
    data = io.BytesIO()
    write_jsonl(corpus, data)
    if others + len(data.getbuffer()) > MOST_BYTES:
        raise CorpusError(
            f"a project has at most {MOST_BYTES:,} bytes of documents. Start another project in a new folder"
        )
    with atomic(path, CorpusError) as out:
        out.write(data.getbuffer())
    data.seek(0)
    size, crc = _summed(data)
    return {"file": path.name, "bytes": size, "crc32": crc}


def _summed(stream: IO[bytes]) -> tuple[int, int]:
    """Return size and checksum of the rest of a stream."""
    size = crc = 0
    while data := stream.read(1 << 20):
        size, crc = size + len(data), zlib.crc32(data, crc)
    return size, crc

"""An untrusted labelling folder causes no reads, writes or blocking outside it."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

import tagwise as tw
from tagwise.apps.annotate.folder import ProjectSettings
from tagwise.apps.annotate.journal import Journal, JournalError
from tagwise.apps.annotate.project import Work
from tagwise.apps.annotate.session import Session
from tagwise.base.files.sealed import sealed
from tagwise.features.derived_columns import Gazetteer

TOKENS = [["Ann", "saw", "Rome"], ["It", "rained"], ["Bob", "left"]]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    work = Work(tmp_path / "work", ProjectSettings(labels=["PER"], features="S1"))
    work.add(tw.Corpus.from_lists(TOKENS), "notes.txt")
    work.accept(0, ["B-PER", "O", "O"])
    work.close()
    return work.folder


def change(folder: Path, **fields: Any) -> None:
    """Write other settings with a valid checksum."""
    value = {**json.loads((folder / "work.json").read_text()), **fields}
    value.pop("crc32")
    (folder / "work.json").write_bytes(sealed(value))


def journal(folder: Path, *entries: dict[str, Any]) -> None:
    lines = [sealed({"n": n, **entry}) for n, entry in enumerate(entries, 1)]
    (folder / "journal.jsonl").write_bytes(b"".join(lines))


@pytest.mark.parametrize("features", ["gazetteer:/dev/zero", "default+gazetteer:{}", "template:{}", "{}"])
def test_features_that_name_files_must_be_passed_explicitly(
    folder: Path, tmp_path: Path, features: str
) -> None:
    (tmp_path / "names.txt").write_text("Ann\n")
    named = features.format(tmp_path / "names.txt")
    change(folder, features=named)
    for given in (None, ProjectSettings(), ProjectSettings(features="S1")):
        work = Work(folder, given)
        assert work.export("conll")
        with pytest.raises(tw.exceptions.CorpusError, match="--features"):
            Session(work)
        work.close()
    work = Work(folder, ProjectSettings(features=named))
    assert work.features == named
    work.close()


def test_gazetteers_must_be_regular_files(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in ("/dev/zero", tmp_path / "pipe", tmp_path):
        with pytest.raises(tw.exceptions.TemplateError, match="cannot be read"):
            Gazetteer(path)


@pytest.mark.parametrize("name", ["work.json", "journal.jsonl", "documents/0001-notes.txt.jsonl"])
@pytest.mark.parametrize("kind", ["pipe", "link", "folder", "device"])
def test_project_files_must_be_regular_files(folder: Path, tmp_path: Path, name: str, kind: str) -> None:
    path = folder / name
    path.replace(tmp_path / "moved")
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    else:
        path.symlink_to(tmp_path / "moved" if kind == "link" else "/dev/zero")
    with pytest.raises(tw.TagwiseError, match=name):
        Work(folder)


@pytest.mark.parametrize(
    "entry",
    [
        {"do": "accept", "id": 1, "labels": 3}, {"do": "accept", "id": 1, "labels": [3, 4]},
        {"do": "accept", "id": 1, "labels": ["O"]},
        {"do": "accept", "id": 1, "labels": ["B-NEW", "O"]},
        {"do": "accept", "id": 9, "labels": []},
        {"do": "accept", "id": True, "labels": ["O", "O"]},
        {"do": "accept", "labels": ["O", "O"]}, {"do": "skip", "id": "1"}, {"do": "skip", "id": 1, "more": 2},
        {"do": ["undo"]}, {"do": "undo"}, {"do": "nothing"}, {},
    ],
)  # fmt: skip
def test_invalid_journal_entries_are_reported_by_line(folder: Path, entry: dict[str, Any]) -> None:
    journal(folder, {"do": "skip", "id": 1}, {"do": "undo"}, entry)
    with pytest.raises(JournalError, match="line 3"):
        Work(folder)


def test_any_changed_byte_of_a_folder_is_detected(folder: Path) -> None:
    for path in [folder / "work.json", folder / "journal.jsonl", *(folder / "documents").iterdir()]:
        whole = path.read_bytes()
        for at in range(0, len(whole) - 1, 5):  # without its end a line of the journal is incomplete
            path.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
            with pytest.raises(tw.TagwiseError, match=path.name):
                Work(folder)
        path.write_bytes(whole)
    Work(folder).close()


def test_foreign_folders_are_rejected_and_unchanged(tmp_path: Path) -> None:
    (tmp_path / "letters.txt").write_text("precious")
    with pytest.raises(tw.exceptions.CorpusError, match=r"letters\.txt"):
        Work(tmp_path)
    assert os.listdir(tmp_path) == ["letters.txt"]


def test_missing_settings_file_is_not_recreated(folder: Path) -> None:
    (folder / "work.json").unlink()
    with pytest.raises(tw.exceptions.CorpusError, match=r"restore work\.json"):
        Work(folder)


def test_unlisted_document_files_are_not_overwritten(folder: Path) -> None:
    theirs = folder / "documents" / "0002-more.jsonl"
    theirs.write_text("precious")
    work = Work(folder)
    work.add(tw.Corpus.from_lists([["new"]]), "more")
    work.close()
    assert theirs.read_text() == "precious"
    assert [len(places) for _, places in Work(folder).documents] == [3, 1]


def test_journal_size_is_limited(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tagwise.apps.annotate.journal.MOST", 200)
    with Journal(tmp_path / "j") as made:
        made.append(do="x" * 50)
        made.append(do="x" * 50)
        with pytest.raises(JournalError, match="full"):
            made.append(do="x" * 50)
    with (tmp_path / "j").open("ab") as file:
        file.write(b"x" * 300)
    with pytest.raises(JournalError, match="limit"):
        Journal(tmp_path / "j")

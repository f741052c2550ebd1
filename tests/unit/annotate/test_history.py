"""Marks, comments and renamed labels of a project: a folder that is opened again has the state that it had."""

from __future__ import annotations

import json
import os
import random
import shutil
from pathlib import Path
from typing import Any

import pytest

import tagwise as tw
from tagwise import exceptions
from tagwise.apps.annotate.folder import ProjectSettings
from tagwise.apps.annotate.journal import Journal, JournalError
from tagwise.apps.annotate.learning import renamed_model, trained
from tagwise.apps.annotate.patterns import TermList, read_patterns
from tagwise.apps.annotate.project import Work
from tagwise.apps.annotate.session import Session
from tagwise.base.colours import PALETTE
from tagwise.base.files.sealed import sealed

TOKENS = [["Peter", "flew"], ["Anna", "slept"], ["Rome", "wins"], ["Anna", "slept"], ["Oslo", "rains"]]


def begun(folder: Path, labels: tuple[str, ...] = ("PER", "LOC")) -> Work:
    """Return a new project. The sentences 1 and 3 are duplicates, and 5 has labels from its document."""
    work = Work(folder, ProjectSettings(labels=list(labels)))
    work.add(tw.Corpus.from_lists(TOKENS), "notes.txt")
    work.add(tw.Corpus.from_lists([["Bern", "sleeps"]], [["B-LOC", "O"]]), "given.tsv")
    return work


def state(work: Work) -> dict[str, Any]:
    """Return all that a project knows about its sentences."""
    history = work.history
    return {
        "accepted": list(work.accepted.items()),
        "labelled": dict(sorted(work.labelled.items())),
        "counts": (work.n_labelled, work.n_given),
        "marks": list(history.marks.items()),
        "comments": {i: entry.comment for i, entry in sorted(history.entries.items()) if entry.comment},
        "edits": {i: entry.edits for i, entry in sorted(history.entries.items()) if entry.edits},
        "versions": [work.version(i) for i in range(len(work.sentences))],
        "undo": (history.next_undo, history.next_redo),
        "undone": [history.undone_labels(i) for i in range(len(work.sentences))],
        "open": list(work.unlabelled()),
        "settings": work.settings,
    }


def step(work: Work, rng: random.Random) -> None:
    """Do something at random."""
    i, draw = rng.randrange(len(work.sentences)), rng.random()
    labels = work.settings.labels
    if draw < 0.35:
        work.accept(i, [rng.choice(["O", *(f"B-{y}" for y in labels)]), "O"])
    elif draw < 0.5:
        work.mark(i, rng.choice(["skip", "flag", "reject"]))
    elif draw < 0.6:
        work.comment(i, rng.choice(["", "why?"]))
    elif draw < 0.75:
        work.undo()
    elif draw < 0.85:
        work.redo()
    elif draw < 0.9 and len(labels) < 4:
        work.add_label(f"T{rng.randrange(100)}")
    elif draw < 0.95 and labels:
        work.rename_label(rng.choice(labels), rng.choice([*labels, f"R{rng.randrange(100)}"]))
    elif len(labels) > 1:
        work.rename_label(rng.choice(labels), None)


@pytest.mark.parametrize("seed", range(8))
def test_reopened_project_equals_the_open_one(tmp_path: Path, seed: int) -> None:
    """After any sequence of actions and renamed labels, replaying the folder gives the same state."""
    rng = random.Random(seed)
    work = begun(tmp_path)
    for _ in range(12):
        for _ in range(6):
            step(work, rng)
        here = state(work)
        assert here["counts"][0] == len(work.labelled)
        work.close()
        assert state(Work(tmp_path, read_only=True)) == here
        work = Work(tmp_path)
        assert state(work) == here
    work.close()


def test_renamed_labels_apply_to_what_was_there_before(tmp_path: Path) -> None:
    """A label of the old name that is added later is a new one, in the journal and in documents."""
    work = begun(tmp_path)
    work.accept(0, ["B-PER", "O"])
    work.rename_label("PER", "PERSON")
    work.rename_label("LOC", "PLACE")
    work.add_label("PER")
    work.accept(1, ["B-PER", "O"])
    work.add(tw.Corpus.from_lists([["Lima", "sleeps"]], [["B-LOC", "O"]]), "later.tsv")
    expected = {
        0: ["B-PERSON", "O"],
        1: ["B-PER", "O"],
        3: ["B-PER", "O"],
        5: ["B-PLACE", "O"],
        6: ["B-LOC", "O"],
    }
    assert dict(sorted(work.labelled.items())) == expected
    work.close()
    again = Work(tmp_path)
    assert dict(sorted(again.labelled.items())) == expected
    assert again.settings.labels == ["PERSON", "PLACE", "PER", "LOC"]
    assert again.undo() == 1
    assert again.history.undone_labels(1) == ["B-PER", "O"]
    again.close()


def test_old_name_in_a_later_entry_is_refused(tmp_path: Path) -> None:
    """A forged entry with a label that was renamed before it does not enter the project."""
    work = begun(tmp_path)
    work.rename_label("PER", "PERSON")
    work.close()
    with open(tmp_path / "journal.jsonl", "ab") as out:
        out.write(sealed({"n": 1, "do": "accept", "id": 0, "labels": ["B-PER", "O"]}))
    data = json.loads((tmp_path / "work.json").read_text())
    assert data["renames"][0]["entries"] == 0
    with pytest.raises(JournalError, match="PER"):
        Work(tmp_path)


def test_rejected_sentences_are_neither_exported_nor_learned(tmp_path: Path) -> None:
    work = begun(tmp_path)
    work.accept(1, ["B-PER", "O"])
    assert sorted(work.labelled) == [1, 3, 5]
    work.mark(3, "reject")  # a duplicate rejects both
    assert sorted(work.labelled) == [5]
    assert work.export("conll").decode().split() == ["Bern", "B-LOC", "sleeps", "O"]
    assert 1 not in list(work.unlabelled())
    work.undo()
    assert sorted(work.labelled) == [1, 3, 5]
    work.close()


@pytest.mark.parametrize("mark", ["skip", "flag", "reject"])
def test_accepting_removes_a_mark(tmp_path: Path, mark: str) -> None:
    work = begun(tmp_path)
    work.mark(0, mark)
    assert work.marked(mark) == [0]
    assert (0 in list(work.unlabelled())) == (mark == "skip")
    work.accept(0, ["O", "O"])
    assert work.marked(mark) == []
    work.undo()
    assert work.marked(mark) == [0]
    work.close()


def test_reader_ignores_an_incomplete_line_and_changes_nothing(tmp_path: Path) -> None:
    """A journal can be read while its writer has it locked and has written half of a line."""
    with Journal(tmp_path / "j") as journal:
        journal.append(do="x")
        with open(tmp_path / "j", "ab") as out:
            out.write(b'{"n": 2')
        size = (tmp_path / "j").stat().st_size
        reader = Journal(tmp_path / "j", read_only=True)
        assert [one["n"] for one in reader.entries] == [1]
        assert (tmp_path / "j").stat().st_size == size
        with pytest.raises(JournalError, match="reading only"):
            reader.append(do="y")
    with pytest.raises(exceptions.FileError):
        Journal(tmp_path / "absent", read_only=True)
    assert not (tmp_path / "absent").exists()


def test_labels_have_different_colours_until_all_are_used(tmp_path: Path) -> None:
    work = Work(tmp_path, ProjectSettings(labels=[f"T{k}" for k in range(len(PALETTE) - 1)]))
    work.add_label("LAST")
    assert len({one["colour"] for one in work.settings.details.values()}) == len(PALETTE)
    work.rename_label("T3", None)
    work.add_label("NEW")
    assert len({one["colour"] for one in work.settings.details.values()}) == len(PALETTE)
    work.change_label("NEW", key="q", place=0)
    with pytest.raises(exceptions.ParameterError, match="'q' is that of NEW"):
        work.change_label("LAST", key="q")
    assert work.settings.labels[0] == "NEW"
    work.close()
    again = Work(tmp_path)
    assert again.settings == work.settings
    again.close()


def test_labels_of_tokens_in_use_cannot_be_deleted(tmp_path: Path) -> None:
    work = Work(tmp_path)
    work.read(b"dogs\tNN\nbark\tVB\n\nloud\t_\n\n", "conll")
    with pytest.raises(exceptions.ParameterError, match="every token needs one"):
        work.rename_label("NN", None)
    work.rename_label("NN", "NOUN")
    assert work.labelled[0] == ["NOUN", "VB"]
    work.close()


def test_patterns_take_the_longest_match(tmp_path: Path) -> None:
    path = tmp_path / "p.jsonl"
    path.write_text(
        '{"label": "LOC", "pattern": "New York"}\nPER\tyork\n'
        '{"label": "ORG", "pattern": [{"lower": "new"}, {"lower": "york"}, {"lower": "times"}]}\n'
        '{"label": "ORG", "pattern": [{"text": "US"}]}\n'
    )
    found = read_patterns(path)
    assert found.labels == ["LOC", "PER", "ORG"]
    assert found.spans(["in", "new", "YORK", "Times", "and", "New", "York", "for", "York"]) == [
        (1, 4, "ORG"),
        (5, 7, "LOC"),
        (8, 9, "PER"),
    ]
    assert found.spans(["US", "us"]) == [(0, 1, "ORG")]
    assert TermList([]).spans(["US"]) == []


@pytest.mark.parametrize(
    "line",
    [
        "no tab",
        '{"label": "X"}',
        '{"label": "B-X", "pattern": "a"}',
        '{"label": "X", "pattern": [{"is_digit": true}]}',
    ],
)
def test_wrong_patterns_are_reported_with_their_line(tmp_path: Path, line: str) -> None:
    (tmp_path / "p").write_text(f"PER\tAnna\n{line}\n")
    with pytest.raises(exceptions.ParameterError, match="p:2: "):
        read_patterns(tmp_path / "p")


def test_model_with_renamed_labels_tags_the_same_spans() -> None:
    tagger = tw.MIRA(max_iter=3, n_jobs=1).fit([["Anna", "slept"]], [["B-person", "O"]])
    found = renamed_model(tagger.model_, {"person": "PER"})
    assert found.predict([["Anna", "slept"]]) == [["B-PER", "O"]]
    two = tw.MIRA(max_iter=3, n_jobs=1).fit([["Anna", "Rome"]], [["B-person", "B-group"]])
    with pytest.raises(exceptions.ParameterError, match="B-X"):
        renamed_model(two.model_, {"person": "X", "group": "X"})


def test_saved_model_needs_labels(tmp_path: Path) -> None:
    work = Work(tmp_path, ProjectSettings(labels=["PER"]))
    work.add(tw.Corpus.from_lists(TOKENS), "notes")
    with pytest.raises(exceptions.ParameterError, match="no sentence is labelled"):
        trained(work, "default")
    work.close()


def test_summary_counts_spans_and_agreement(tmp_path: Path) -> None:
    """Agreement is F1 of the accepted spans and of those that the page proposed."""
    session = Session(begun(tmp_path))
    session.state(0)
    kept = [
        {k: one[k] for k in ("begin", "end", "label")} for one in session.state(0)["sentence"]["proposal"]
    ]
    session.accept(0, kept)
    session.state(2)
    offered = session.state(2)["sentence"]["proposal"]
    session.accept(2, [{"begin": 1, "end": 2, "label": "PER"}])
    found = session.summary()
    n = len(kept) + len(offered)
    assert found["agreement"] == pytest.approx(2 * len(kept) / (n + len(kept) + 1))
    assert found["labels"]["LOC"] == 1 + sum(one["label"] == "LOC" for one in kept)
    assert found["counts"]["done"] == 3
    session.close()


@pytest.mark.skipif(os.name != "posix", reason="modes and inodes of POSIX")
def test_token_is_kept_for_the_owner_and_not_copied(tmp_path: Path) -> None:
    """A copy of the folder, a readable file and a link get new tokens, so that nobody else can know it."""
    pytest.importorskip("starlette", reason="tagwise[web] is not installed")
    from tagwise.apps.annotate.server import kept_token

    one, two = tmp_path / "one", tmp_path / "two"
    one.mkdir()
    token = kept_token(one)
    assert kept_token(one) == token
    assert (one / "token").stat().st_mode & 0o777 == 0o600
    shutil.copytree(one, two)
    assert kept_token(two) != token
    os.chmod(one / "token", 0o644)
    other = kept_token(one)
    assert other != token
    (one / "token").rename(tmp_path / "elsewhere")
    os.symlink(tmp_path / "elsewhere", one / "token")
    assert kept_token(one) != other

"""The folder of a project: accepted labels are restored, whatever happened to the last line of the journal."""

from __future__ import annotations

import io
import json
import os
import random
import shutil
from pathlib import Path

import pytest

import tagwise as tw
from tagwise.apps.annotate.folder import ProjectSettings
from tagwise.apps.annotate.journal import Journal, JournalError
from tagwise.apps.annotate.project import Work

TOKENS = [["Peter", "flew", "to", "London", "."], ["Anna", "slept"], ["New", "York", "wins"]]


def begun(folder: Path, labels: tuple[str, ...] = ("PER", "LOC")) -> Work:
    work = Work(folder, ProjectSettings(labels=list(labels)))
    work.add(tw.Corpus.from_lists(TOKENS), "notes.txt")
    return work


# --- the journal ----------------------------------------------------------------------------------------------


def test_incomplete_last_journal_line_is_dropped(tmp_path: Path) -> None:
    """Every prefix of the file gives the entries whose lines are complete, and can be continued."""
    with Journal(tmp_path / "j") as journal:
        for k in range(3):
            journal.append(do="é" * k)
    whole = (tmp_path / "j").read_bytes()
    ends = [i + 1 for i, byte in enumerate(whole) if byte == 10]
    for size in [*range(ends[0] - 2, ends[0] + 6), *range(ends[1], len(whole) + 1, 3)]:
        path = tmp_path / "cut"
        path.write_bytes(whole[:size])
        with Journal(path) as journal:
            n = sum(end <= size for end in ends)
            assert [entry["n"] for entry in journal.entries] == list(range(1, n + 1))
            assert journal.cut == size - (ends[n - 1] if n else 0)
            journal.append(do="y")
        with Journal(path) as journal:
            assert journal.entries[-1] == {"n": n + 1, "do": "y"}
            assert not journal.cut


@pytest.mark.parametrize("line", [b"{}\n", b"[1]\n", b"nonsense\n", b'{"n": 2}\n', b"\xff\n"])
def test_damaged_journal_lines_are_reported_by_number(tmp_path: Path, line: bytes) -> None:
    """A line that ends in a newline was once complete, so it is an error and is not dropped."""
    path = tmp_path / "j"
    path.write_bytes(line + b'{"n": 2, "do": "x"}\n')
    with pytest.raises(JournalError, match="line 1"):
        Journal(path)
    assert path.read_bytes().startswith(line)


def test_journal_has_one_writer_at_a_time(tmp_path: Path) -> None:
    with Journal(tmp_path / "j"), pytest.raises(JournalError, match="another process"):
        Journal(tmp_path / "j")
    Journal(tmp_path / "j").close()


def test_symbolic_links_to_journals_are_rejected(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").write_text("")
    os.symlink(tmp_path / "elsewhere", tmp_path / "j")
    with pytest.raises(tw.exceptions.FileError):
        Journal(tmp_path / "j")


def test_actions_are_synced_before_they_return(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """fsync runs after the write and before the return. If it fails, the written bytes are removed again."""
    work = begun(tmp_path)
    seen: list[bytes] = []
    real = os.fsync

    def watched(handle: int) -> None:
        seen.append((tmp_path / "journal.jsonl").read_bytes())
        real(handle)

    monkeypatch.setattr(os, "fsync", watched)
    work.accept(1, ["B-PER", "O"])
    assert seen[-1].endswith(b"\n")
    assert json.loads(seen[-1])["labels"] == ["B-PER", "O"]

    def full(handle: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(tw.exceptions.FileError, match="The action was not saved"):
        work.accept(0, ["O"] * 5)

    def interrupted(handle: int) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", interrupted)
    with pytest.raises(KeyboardInterrupt):
        work.accept(0, ["O"] * 5)
    monkeypatch.undo()
    assert work.accepted == {1: ["B-PER", "O"]}
    work.accept(2, ["B-LOC", "I-LOC", "O"])
    work.close()
    work = Work(tmp_path)
    assert sorted(work.accepted) == [1, 2]
    work.close()


# --- actions --------------------------------------------------------------------------------------------------


def test_undo_and_redo_follow_a_list_of_snapshots(tmp_path: Path) -> None:
    """Compared with a list of snapshots: undo moves back, redo moves forward, a new action drops the redo list."""
    work = begun(tmp_path)
    actions = [(0, ["O"] * 5), (1, ["B-PER", "O"]), (0, ["B-PER", "O", "O", "B-LOC", "O"]), (2, ["O"] * 3)]
    states: list[dict[int, list[str]]] = [{}]
    at = 0
    script = "aauurauaruraauu"
    todo = iter(actions * 3)
    for step in script:
        if step == "a":
            i, labels = next(todo)
            work.accept(i, labels)
            states = [*states[: at + 1], {**states[at], i: labels}]
            at += 1
        elif step == "u":
            assert (work.undo() is None) == (at == 0)
            at = max(0, at - 1)
        else:
            assert (work.redo() is None) == (at == len(states) - 1)
            at = min(len(states) - 1, at + 1)
        assert work.accepted == states[at]
        assert work.undoable == (at > 0, at < len(states) - 1)
    work.close()
    again = Work(tmp_path)
    assert (again.accepted, again.undoable) == (states[at], (at > 0, at < len(states) - 1))
    again.close()


def test_copied_folder_restores_the_project(tmp_path: Path) -> None:
    work = begun(tmp_path / "one")
    work.accept(0, ["B-PER", "O", "O", "B-LOC", "O"])
    work.skip(1)
    work.close()
    shutil.copytree(tmp_path / "one", tmp_path / "two")
    copy = Work(tmp_path / "two")
    assert copy.accepted == work.accepted
    assert copy.skipped == [1]
    assert copy.settings == work.settings
    assert [s.tokens for s in copy.sentences] == TOKENS
    copy.close()


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (["O"], "1 labels for 2"),
        (["B-ORG", "O"], "this project has no label"),
        (["I-PER", "O"], "cannot follow"),
        (["O", 3], "this project has no label"),
        (["B-PER", "I-LOC"], "cannot follow"),
    ],
)
def test_invalid_labels_are_rejected_before_writing(tmp_path: Path, labels: list[str], message: str) -> None:
    work = begun(tmp_path)
    for place in (1, -1, 3, True, "1", None):
        with pytest.raises(
            tw.exceptions.ParameterError,
            match=message if place == 1 and place is not True else "expected a number",
        ):
            work.accept(place, labels)  # type: ignore[arg-type]
    assert (tmp_path / "journal.jsonl").read_bytes() == b""
    work.close()


@pytest.mark.parametrize("name", ["", "a b", "O", "_", "x" * 61, "a\u202eb", "a\n", 3, None])
def test_invalid_label_types_are_rejected(tmp_path: Path, name: str) -> None:
    work = begun(tmp_path)
    with pytest.raises(tw.exceptions.ParameterError, match="label"):
        work.add_label(name)
    work.close()


def test_journal_of_another_folder_is_rejected(tmp_path: Path) -> None:
    work = begun(tmp_path)
    work.accept(2, ["O"] * 3)
    work.close()
    other = Work(tmp_path / "other", ProjectSettings(labels=["PER"]))
    other.add(tw.Corpus.from_lists(TOKENS[:1]), "notes.txt")
    other.close()
    (tmp_path / "journal.jsonl").replace(tmp_path / "other" / "journal.jsonl")
    with pytest.raises(JournalError, match=r"line 1: sentence 2.*another project"):
        Work(tmp_path / "other")


# --- documents, exports ---------------------------------------------------------------------------------------


def test_partly_labelled_files_are_imported(tmp_path: Path) -> None:
    """Sentences with complete labels count as labelled, the others are open, and schemes become IOB2."""
    text = "Peter\tI-PER\nslept\tO\n\nAnna\t_\nslept\tO\n\nRome\tI-LOC\n\n"
    work = Work(tmp_path)
    work.read(text.encode(), "conll", "part.tsv")
    assert work.given == {0: ["B-PER", "O"], 2: ["B-LOC"]}
    assert work.settings.labels == ["PER", "LOC"]
    assert work.settings.kind == "spans"
    work.accept(2, ["O"])
    assert work.labelled == {0: ["B-PER", "O"], 2: ["O"]}
    work.close()


def test_projects_with_one_label_per_token(tmp_path: Path) -> None:
    work = Work(tmp_path)
    work.read(b"dogs\tNN\nbark\tVB\n\nloud\t_\n\n", "conll")
    assert work.settings.kind == "tokens"
    assert work.settings.labels == ["NN", "VB"]
    work.accept(2 - 1, ["VB"])
    with pytest.raises(tw.exceptions.ParameterError):
        work.export("spans")
    work.close()


@pytest.mark.parametrize(
    ("form", "label"), [("conll", "label"), ("spans", "label"), ("jsonl", "label"), ("conllu", "misc")]
)
def test_exports_round_trip(tmp_path: Path, form: str, label: str) -> None:
    """Exactly the accepted sentences are exported and read back unchanged, with more than one document."""
    work = begun(tmp_path / "w")
    work.add(tw.Corpus.from_lists([["Rome", "<b>&\"'"]]), "more")
    done = {0: ["B-PER", "O", "O", "B-LOC", "O"], 2: ["B-LOC", "I-LOC", "O"], 3: ["B-LOC", "O"]}
    for i, labels in done.items():
        work.accept(i, labels)
    data = work.export(form)
    if form == "spans":
        rows = [json.loads(line) for line in data.decode().splitlines()]
        pieces = [[row["text"][s["start"] : s["end"]] for s in row["spans"]] for row in rows]
        assert pieces == [["Peter", "London"], ["New York"], ["Rome"]]
    else:
        found = tw.read(io.BytesIO(data), form, label=label)
        assert found.tokens == [work.sentences[i].tokens for i in done]
        assert found.labels == list(done.values())
    work.save(tmp_path / "out", form)
    assert (tmp_path / "out").read_bytes() == data
    assert [name for name, _ in work.documents] == ["notes.txt", "more"]
    work.close()


def test_document_names_cannot_escape_the_folder(tmp_path: Path) -> None:
    work = Work(tmp_path / "w")
    for name in ("../../evil", "/etc/passwd", "a\0b", "..", "x" * 300, "\u202e"):
        work.read(b"a b\n", "text", name)
    inside = sorted(path.relative_to(tmp_path).parts[0] for path in tmp_path.rglob("*"))
    assert set(inside) == {"w"}
    assert len(list((tmp_path / "w" / "documents").iterdir())) == 6
    work.close()


# --- what is counted -------------------------------------------------------------------------------------------


def test_incremental_counts_equal_a_full_recount(tmp_path: Path) -> None:
    """After any sequence of actions, `labels_of`, `n_labelled` and `n_given` equal a full recount."""
    rng = random.Random(7)
    words = [["Anna", "slept"], ["Peter", "flew"], ["Rome", "wins"]]

    def some(n: int) -> list[list[str]]:
        return [rng.choice(words) for _ in range(n)]

    work = Work(tmp_path, ProjectSettings(labels=["PER", "LOC"]))
    work.add(tw.Corpus.from_lists(some(6)), "open")
    tagged = some(3)
    work.add(tw.Corpus.from_lists(tagged, [["B-PER", "O"]] * len(tagged)), "labelled")
    shared = 0
    for step in range(300):
        action = rng.choice(["accept", "accept", "undo", "undo", "redo", "skip"])
        i = rng.randrange(len(work.sentences))
        if action == "accept":
            work.accept(i, rng.choice([["B-PER", "O"], ["B-LOC", "O"], ["O", "O"]]))
        elif action == "skip":
            work.skip(i)
        else:
            (work.undo if action == "undo" else work.redo)()
        if step == 150:
            work.add(tw.Corpus.from_lists(some(4)), "more")
        every = work.labelled
        assert {k: y for k in range(len(work.sentences)) if (y := work.labels_of(k)) is not None} == every
        assert work.n_labelled == len(every)
        assert work.n_given == len([k for k in work.given if k not in work.accepted])
        shared += len(every) > len(work.given | work.accepted)
    assert shared > 20
    work.close()
    again = Work(tmp_path)
    assert (again.labelled, again.n_labelled, again.n_given) == (every, work.n_labelled, work.n_given)
    again.close()

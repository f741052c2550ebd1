"""Files of other annotation tools in a labelling project: labels that are done, proposed or missing."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from tagwise.apps.annotate.folder import ProjectSettings
from tagwise.apps.annotate.imports import proposed_spans, read_document
from tagwise.apps.annotate.project import Work
from tagwise.apps.annotate.session import Session
from tagwise.base.exceptions import CorpusError
from tagwise.cli import cli
from tagwise.corpus.formats import read
from tagwise.corpus.sentence import Sentence

TEXT = "Anna lives in Oslo."
SPANS = [(0, 4, "PER"), (14, 18, "LOC")]
LABELS = ["B-PER", "O", "O", "B-LOC", "O"]
PROPOSED = [(0, 1, "PER"), (3, 4, "LOC")]


def regions(spans: Any = SPANS) -> list[dict[str, Any]]:
    return [{"type": "labels", "value": {"start": s, "end": e, "labels": [y]}} for s, e, y in spans]


def objects(spans: Any = SPANS) -> list[dict[str, Any]]:
    return [{"start": s, "end": e, "label": y} for s, e, y in spans]


#: Texts of a file by tool: confirmed by a person, proposed, and open.
FILES: dict[str, dict[str, dict[str, Any]]] = {
    "doccano": {
        "done": {"text": TEXT, "label": [list(one) for one in SPANS]},
        "open": {"text": "It rained.", "label": []},
    },
    "label-studio": {
        "done": {"data": {"text": TEXT}, "annotations": [{"result": regions()}]},
        "proposed": {
            "data": {"text": f"Today {TEXT}"},
            "annotations": [],
            "predictions": [{"result": regions([(s + 6, e + 6, y) for s, e, y in SPANS])}],
        },
        "open": {"data": {"text": "It rained."}, "annotations": [{"was_cancelled": True, "result": []}]},
        "empty": {"data": {"text": "Nothing here."}, "annotations": [{"result": []}]},
    },
    "prodigy": {
        "done": {"text": TEXT, "spans": objects(), "answer": "accept"},
        "proposed": {
            "text": f"Today {TEXT}",
            "spans": objects([(s + 6, e + 6, y) for s, e, y in SPANS]),
        },
        "open": {"text": "It rained."},
        "empty": {"text": "Nothing here.", "answer": "accept"},
    },
}
TOOLS = list(FILES)


def lines(tool: str, *kinds: str) -> bytes:
    values = [FILES[tool][kind] for kind in kinds if kind in FILES[tool]]
    return "".join(json.dumps(one) + "\n" for one in values).encode()


def work_of(folder: Path, data: bytes, tool: str | None = None, **given: bool) -> Work:
    work = Work(folder, ProjectSettings())
    work.add(read_document(io.BytesIO(data), tool), "export.jsonl", **given)
    return work


@pytest.mark.parametrize("tool", TOOLS)
@pytest.mark.parametrize("reopened", [False, True])
def test_confirmed_labels_are_done_and_others_are_proposed_or_open(
    tmp_path: Path, tool: str, reopened: bool
) -> None:
    """Also after the folder is opened again, since proposals are part of the document."""
    work = work_of(tmp_path, lines(tool, "done", "proposed", "open", "empty"), tool)
    if reopened:
        work.close()
        work = Work(tmp_path)
    kinds = [kind for kind in ("done", "proposed", "open", "empty") if kind in FILES[tool]]
    assert len(work.sentences) == len(kinds)
    assert work.settings.labels == ["PER", "LOC"]
    expected = {kinds.index("done"): LABELS}
    if "empty" in kinds:  # an annotator has submitted a text without spans
        expected[kinds.index("empty")] = ["O"] * 3
    assert work.given == expected
    proposed = {kinds.index("proposed"): [(1, 2, "PER"), (4, 5, "LOC")]} if "proposed" in kinds else {}
    assert work.proposed == proposed
    assert set(work.unlabelled()) == set(range(len(kinds))) - set(expected)
    assert work.sentences[0].fields.keys() == {"word"}
    work.close()


@pytest.mark.parametrize("tool", TOOLS)
def test_review_proposes_labels_and_fresh_ignores_them(tmp_path: Path, tool: str) -> None:
    data = lines(tool, "done", "proposed")
    review = work_of(tmp_path / "review", data, tool, review=True)
    assert (review.given, review.proposed[0]) == ({}, PROPOSED)
    fresh = work_of(tmp_path / "fresh", data, tool, fresh=True)
    assert (fresh.given, fresh.proposed, fresh.settings.labels) == ({}, {}, [])
    review.close()
    fresh.close()


def test_imported_proposals_are_shown_learned_and_renamed(tmp_path: Path) -> None:
    """The page proposes them in the sentence and in the list, also when the tagger has learned something else."""
    session = Session(work_of(tmp_path, lines("label-studio", "done", "proposed", "open")))
    try:
        state = session.state()
        assert state["sentence"]["id"] in (1, 2)
        shown = session.state(1)["sentence"]["proposal"]
        assert [(one["begin"], one["end"], one["label"]) for one in shown] == [(1, 2, "PER"), (4, 5, "LOC")]
        listed = session.listed("todo")["rows"]
        assert {one["id"]: one["spans"] for one in listed}[1] == [(1, 2, "PER"), (4, 5, "LOC")]
        session.change_label("LOC", "PLACE")
        session.delete_label("PER")
        assert [one["label"] for one in session.state(1)["sentence"]["proposal"]] == ["PLACE"]
        after = session.accept(1, [{"begin": 4, "end": 5, "label": "PLACE"}])
        assert after["counts"]["done"] == 2
        assert session.summary()["agreement"] == 1.0
        assert session.work.export("conll").decode().count("B-PLACE") == 2
    finally:
        session.close()


def test_spans_are_extended_to_tokens_and_labels_have_no_spaces(tmp_path: Path) -> None:
    """Offsets in the middle of words and names of labels with spaces are usual in Label Studio."""
    task = {"data": {"text": TEXT}, "annotations": [{"result": regions([(1, 4, "First name")])}]}
    work = work_of(tmp_path, json.dumps([task]).encode())
    assert work.given == {0: ["B-First_name", "O", "O", "O", "O"]}
    work.close()


@pytest.mark.parametrize(
    "value", [True, ["O"], [[0, 9, "A"]], [[1, 1, "A"]], [[0, 2, "A"], [1, 2, "A"]], [[0, 1, 2]]]
)
def test_members_that_are_not_proposals_are_ignored(value: Any) -> None:
    sentence = Sentence({"word": ["a", "b", "c"]}, meta={"proposed": value})
    assert proposed_spans(sentence) == []


def test_labels_are_consistent_unless_they_are_optional(tmp_path: Path) -> None:
    """Training requires labels in all texts of a file or in none, and ignores predictions."""
    data = lines("label-studio", "done", "proposed")
    with pytest.raises(CorpusError, match="'annotations' is missing"):
        read(io.BytesIO(data))
    found = read(io.BytesIO(data), optional_label=True)
    assert found.labels == [LABELS, ["_"] * 6]
    assert [sorted(one.meta or {}) for one in found] == [["text"], ["proposed", "text"]]
    bad = {"data": {"text": TEXT}, "predictions": [{"result": 7}]}
    assert len(read(io.BytesIO(json.dumps(bad).encode()), label=None)) == 1
    with pytest.raises(CorpusError, match="not an array"):
        read(io.BytesIO(json.dumps(bad).encode()), "label-studio", optional_label=True)


@pytest.mark.parametrize("tool", TOOLS)
def test_the_command_imports_and_exports(tmp_path: Path, tool: str) -> None:
    """`--export` of a new project has the labels that count as done, so that `--review` leaves none."""
    path = tmp_path / "export.json"
    path.write_bytes(lines(tool, "done", "proposed", "open"))
    for option, n in (("", 1), ("--review", 0)):
        out = tmp_path / f"out{option}.tsv"
        args = [
            "annotate",
            str(path),
            "--work",
            str(tmp_path / f"w{option}"),
            "--export",
            "conll",
            "-o",
            str(out),
        ]
        found = CliRunner().invoke(cli, [*args, *([option] if option else [])])
        assert found.exit_code == 0, found.output
        assert len(read(out, "conll", columns=["word", "label"])) == n
    both = CliRunner().invoke(cli, ["annotate", str(path), "--review", "--fresh"])
    assert both.exit_code == 2
    assert "Give one of the two" in both.output

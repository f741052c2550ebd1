"""Tests of the scorer against conlleval: handmade label sequences and the output of the official script (2004-01-26).

``data/conlleval.json`` holds sentences as pairs (gold, guessed) and the lines of the script's output. The
kind of a row marks an intended difference, which has a test of its own.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from click.testing import CliRunner

from tagwise.cli import cli
from tagwise.corpus.schemes import Span, spans
from tagwise.corpus.sentence import Corpus
from tagwise.evaluation.metrics import Report, Score, count_by_sentence, evaluate

ROWS: list[dict[str, Any]] = json.loads(
    (Path(__file__).parent / "data" / "conlleval.json").read_text("utf-8")
)

Labels = list[list[str]]


def of_kind(kind: str) -> pytest.MarkDecorator:
    """Parametrize a test with the rows of one kind."""
    rows = [row for row in ROWS if row["kind"] == kind]
    assert rows
    return pytest.mark.parametrize("row", rows, ids=[row["name"] for row in rows])


def labels(row: dict[str, Any]) -> tuple[Labels, Labels]:
    """Return the gold and guessed labels of a row."""
    return [g.split() for g, _ in row["sentences"]], [p.split() for _, p in row["sentences"]]


def output(row: dict[str, Any]) -> list[str]:
    """Return the script's lines without duplicates: Perl prints the row of the empty type twice."""
    lines: list[str] = row["output"]
    return [y for i, y in enumerate(lines) if i == 0 or y != lines[i - 1]]


class Figures(NamedTuple):
    """Figures of the script's first two lines. Ratios are in per cent, as printed."""

    tokens: int
    gold: int
    found: int
    correct: int
    accuracy: str = "0.00"
    precision: str = "0.00"
    recall: str = "0.00"
    f1: str = "0.00"


def figures(lines: list[str]) -> tuple[Figures, dict[str, tuple[str, str, str, int]]]:
    """Return the script's totals, and for each type precision, recall, F1 and the number found."""
    counts = re.fullmatch(
        r"processed (\d+) tokens with (\d+) phrases; found: (\d+) phrases; correct: (\d+)\.", lines[0]
    )
    assert counts
    ratios: list[str] = []
    if len(lines) > 1:
        assert lines[1].startswith("accuracy: ")
        ratios = re.findall(r"\d+\.\d\d", lines[1])
        assert len(ratios) == 4
    rows = {}
    for line in lines[2:]:
        m = re.fullmatch(r" *(.*): precision: +(\S+)%; recall: +(\S+)%; FB1: +(\S+)  (\d+)", line)
        assert m
        rows[m[1]] = (m[2], m[3], m[4], int(m[5]))
    return Figures(*map(int, counts.groups()), *ratios), rows


def percent(ratio: float) -> str:
    """Format a ratio as the script does."""
    return f"{100 * ratio:.2f}"


def found_figures(report: Report) -> tuple[Figures, dict[str, tuple[str, str, str, int]]]:
    """Return the figures of a report in the form of `figures`."""
    c = report.chunks
    ratios = [percent(r) for r in (report.accuracy, report.precision, report.recall, report.f1)]
    rows = {k: _score_row(s) for k, s in report.per_type.items()}
    return Figures(report.n_tokens, c.gold, c.predicted, c.correct, *ratios), rows


def _score_row(s: Score) -> tuple[str, str, str, int]:
    return percent(s.precision), percent(s.recall), percent(s.f1), s.predicted


def test_table_has_every_kind_of_row() -> None:
    """Every kind of row has a test, and the table has enough rows."""
    kinds = {row["kind"] for row in ROWS}
    assert kinds == {"same", "no chunks", "iobes", "type 0", "bare hyphen", "raw"}
    assert sum(row["kind"] == "same" for row in ROWS) >= 60
    assert all(len(g.split()) == len(p.split()) for row in ROWS for g, p in row["sentences"])


@of_kind("same")
def test_report_equals_the_output_of_conlleval(row: dict[str, Any]) -> None:
    """Counts and ratios, in total and per type, match the script. The text is its output plus one line."""
    gold, guess = labels(row)
    report = evaluate(gold, guess)
    assert report.chunked
    assert found_figures(report) == figures(output(row))
    *text, last = str(report).splitlines()
    assert text == output(row)
    whole = sum(g == p for g, p in row["sentences"])
    assert last == f"sequences right: {100 * whole / len(gold):6.2f}% of {len(gold)}"
    assert report.score == report.f1
    assert report.score_name == "f1"


@of_kind("same")
def test_gold_chunks_per_type_give_the_printed_recall(row: dict[str, Any]) -> None:
    """Gold and correct chunks of a type give the printed recall, and their sums are the printed totals."""
    report = evaluate(*labels(row))
    all_, rows = figures(output(row))
    scores = report.per_type
    assert list(scores) == list(rows) == sorted(rows)
    assert sum(s.gold for s in scores.values()) == all_.gold
    assert sum(s.predicted for s in scores.values()) == all_.found
    assert sum(s.correct for s in scores.values()) == all_.correct
    for kind, (precision, recall, f1, found) in rows.items():
        s = scores[kind]
        assert s.predicted == found
        assert percent(s.correct / found if found else 0.0) == precision
        assert percent(s.correct / s.gold if s.gold else 0.0) == recall
        assert percent(2 * s.correct / (s.gold + found)) == f1


@of_kind("same")
def test_counts_of_single_sentences_sum_to_the_total(row: dict[str, Any]) -> None:
    """Counts of single sentences sum to the script's. Each row has its own tokens and correct tokens."""
    gold, guess = labels(row)
    counts = count_by_sentence(gold, guess)
    all_, _ = figures(output(row))
    tokens, right, *chunks = map(sum, zip(*counts))
    assert (tokens, *chunks) == all_[:4]
    assert percent(right / tokens) == all_.accuracy
    assert [c[:2] for c in counts] == [(len(g), sum(map(str.__eq__, g, p))) for g, p in zip(gold, guess)]


@of_kind("same")
def test_scores_do_not_depend_on_sentence_order(row: dict[str, Any]) -> None:
    """A chunk ends with its sentence and never extends into the next one."""
    gold, guess = labels(row)
    assert found_figures(evaluate(gold[::-1], guess[::-1])) == figures(output(row))
    twice = evaluate(gold + gold, guess + guess)
    all_, _ = figures(output(row))
    assert found_figures(twice)[0] == (*(2 * n for n in all_[:4]), *all_[4:])


# The command line.


def written(gold: Labels, guess: Labels) -> str:
    """Return the text of one file in the script's input format."""
    return "".join("".join(f"w {g} {p}\n" for g, p in zip(*pair)) + "\n" for pair in zip(gold, guess))


def table(*args: object, text: str | None = None) -> tuple[list[list[str]], str]:
    """Rows of the table that ``tagwise eval`` prints, and its last line."""
    result = CliRunner().invoke(cli, ["eval", *map(str, args)], input=text, env={"COLUMNS": "120"})
    assert result.exit_code == 0, result.output
    lines = [line.rstrip() for line in result.stdout.splitlines() if line.strip() and "─" not in line]
    head, *rows, last = lines
    assert head.split()[1:] == ["precision", "recall", "F1", "gold", "predicted", "correct"]
    return [re.split(r" {2,}", line.strip()) for line in rows], last


def check_table(rows: list[list[str]], last: str, row: dict[str, Any]) -> None:
    """The printed table has the script's figures."""
    all_, types = figures(output(row))
    *rows, total = rows
    found = {name: (*ratios, int(predicted)) for name, *ratios, _, predicted, _ in rows}
    assert found == {kind or "(no type)": values for kind, values in types.items()}
    counts = [str(all_.gold), str(all_.found), str(all_.correct)]
    assert total == ["all", all_.precision, all_.recall, all_.f1, *counts]
    assert [sum(int(r[i]) for r in rows) for i in (4, 5, 6)] == [all_.gold, all_.found, all_.correct]
    whole = sum(g == p for g, p in row["sentences"])
    n = len(row["sentences"])
    assert re.split(r" {3}", last.strip()) == [
        f"F1 {all_.f1}",
        f"accuracy {all_.accuracy}%",
        f"whole sequences {percent(whole / n)}%",
        f"{all_.tokens} tokens in {n} sequences",
    ]


@pytest.mark.parametrize(
    "row", [row for row in ROWS if row["kind"] == "same"][::20], ids=lambda row: row["name"]
)
def test_eval_prints_the_figures_of_conlleval(row: dict[str, Any], tmp_path: Path) -> None:
    """One file in the script's format, and a gold and a guessed file with tabs and another column, give its figures."""
    both = tmp_path / "both.txt"
    both.write_text(written(*labels(row)))
    check_table(*table(both), row)
    paths = [tmp_path / "gold.txt", tmp_path / "guess.txt"]
    for path, side in zip(paths, labels(row)):
        path.write_text("".join("".join(f"w\tN\t{y}\n" for y in s) + "\n" for s in side))
    check_table(*table(*paths), row)


def test_document_marks_are_not_tokens(tmp_path: Path) -> None:
    """A -DOCSTART- row is a token O for the script and no token for tagwise. Chunks and their boundaries are equal."""
    body = "a B-X B-X\nb I-X O\n\nc I-X I-X\n\n"
    script = Figures(5, 2, 2, 1, "80.00", "50.00", "50.00", "50.00")  # with two rows of -DOCSTART- O O
    path = tmp_path / "documents.txt"
    path.write_text("-DOCSTART- O O\n\n" + body.replace("\n\nc", "\n\n-DOCSTART- O O\n\nc"))
    rows, last = table(path)
    counts = [str(n) for n in script[1:4]]
    assert rows[-1] == ["all", script.precision, script.recall, script.f1, *counts]
    assert "accuracy 66.67%" in last  # 2 of 3, where the script has 4 of 5
    assert "3 tokens in 2 sequences" in last


def test_boundary_rows_are_tokens(tmp_path: Path) -> None:
    """A row -X- ends a sentence for the script. For tagwise it is a token, whose O ends the chunk as well."""
    script = Figures(3, 2, 2, 1, "66.67", "50.00", "50.00", "50.00")
    path = tmp_path / "rows.txt"
    path.write_text("a B-X B-X\nb I-X O\n-X- O O\nc I-X I-X\n\n")
    rows, last = table(path)
    assert rows[-1] == ["all", script.precision, script.recall, script.f1, *map(str, script[1:4])]
    assert "accuracy 75.00%" in last
    assert "4 tokens in 1 sequences" in last


# Intended differences from the script.


@of_kind("no chunks")
def test_labels_without_chunks_are_scored_by_accuracy(row: dict[str, Any]) -> None:
    """With only O, or no tokens at all, the report has the script's accuracy and no F1."""
    report = evaluate(*labels(row))
    all_, rows = figures(output(row))
    assert found_figures(report) == (all_, rows) == (all_, {})
    assert not report.chunked
    assert report.score_name == "accuracy"
    assert report.score == report.accuracy == (1.0 if all_.tokens else 0.0)
    whole = f"sequences right: {100 if row['sentences'] else 0:6.2f}% of {len(row['sentences'])}"
    first, second, *labels_ = str(report).splitlines()
    assert first == f"processed {all_.tokens} tokens; correct: {all_.tokens}."
    assert second == f"accuracy: {float(all_.accuracy):6.2f}%; {whole}"
    o = "                O: precision: 100.00%; recall: 100.00%; FB1: 100.00  3"
    assert labels_ == ([o] if all_.tokens else [])


IOBES: dict[str, list[Span]] = {
    "E then B of one type": [Span("X", 0, 2), Span("X", 2, 4)],
    "S then S of one type": [Span("X", 0, 1), Span("X", 1, 2)],
    "I then S of one type": [Span("X", 0, 2), Span("X", 2, 3)],
    "S then I of one type": [Span("X", 0, 1), Span("X", 1, 2)],
    "S then B of one type": [Span("X", 0, 1), Span("X", 1, 3)],
    "B then S of one type": [Span("X", 0, 1), Span("X", 1, 2)],
    "U then U of one type": [Span("X", 0, 1), Span("X", 1, 2)],
    "L then B of one type": [Span("X", 0, 2), Span("X", 2, 4)],
}


@of_kind("iobes")
def test_adjacent_iobes_chunks_are_separate(row: dict[str, Any]) -> None:
    """The script predates IOBES and merges touching chunks of one type. E and S end a chunk, S and B begin one."""
    assert figures(output(row))[0][1:4] == (1, 1, 1)
    gold, guess = labels(row)
    chunks = IOBES[row["name"]]
    assert spans(gold[0]) == chunks
    report = evaluate(gold, guess)
    assert report.per_type == {"X": Score(len(chunks), len(chunks), len(chunks))}
    first = evaluate(gold, [[y if t < chunks[0].end else "O" for t, y in enumerate(guess[0])]])
    assert first.per_type == {"X": Score(len(chunks), 1, 1)}


@of_kind("type 0")
def test_zero_is_a_chunk_type(row: dict[str, Any]) -> None:
    """Perl treats the type 0 as empty, so B-0 and B are equal. For tagwise it is a type like any other."""
    assert figures(output(row)) == (
        Figures(4, 2, 2, 2, *["100.00"] * 4), {"": ("100.00", "100.00", "100.00", 2)}
    )  # fmt: skip
    report = evaluate(*labels(row))
    assert report.per_type == {"": Score(1, 0, 0), "0": Score(1, 2, 1)}
    assert report.accuracy == 0.75


@of_kind("bare hyphen")
def test_hyphen_without_a_type_is_a_distinct_label(row: dict[str, Any]) -> None:
    """``O-`` is O for the script. For tagwise the chunks are equal, and the token's label differs from gold."""
    report = evaluate(*labels(row))
    all_, rows = figures(output(row))
    assert all_.accuracy == "100.00"
    assert report.accuracy == 0.75
    assert found_figures(report) == (all_._replace(accuracy="75.00"), rows)


@of_kind("raw")
def test_raw_labels(row: dict[str, Any]) -> None:
    """The script's option -r scores single tokens, as ``per_label`` does. With the prefix B- they are chunks."""
    gold, guess = labels(row)
    options = row["options"]
    outside = options[options.index("-o") + 1] if "-o" in options else "O"
    all_, rows = figures(output(row))

    report = evaluate(gold, guess)
    assert not report.chunked
    by_label = {k: _score_row(s) for k, s in report.per_label.items() if k != outside}
    assert by_label == rows
    assert percent(report.accuracy) == all_.accuracy
    text = str(report).splitlines()
    assert [y for y in text[2:] if not y.lstrip().startswith(f"{outside}: ")] == row["output"][2:]

    prefix: Callable[[str], str] = lambda y: "O" if y == outside else f"B-{y}"  # noqa: E731
    chunks = evaluate([list(map(prefix, g)) for g in gold], [list(map(prefix, p)) for p in guess])
    assert found_figures(chunks) == (all_, rows)


@of_kind("same")
def test_corpora_are_scored_by_their_labels(row: dict[str, Any]) -> None:
    """A corpus on either side is scored by the labels of its sentences."""
    gold, guess = labels(row)
    words = [["w"] * len(g) for g in gold]
    a, b = Corpus.from_lists(words, gold), Corpus.from_lists(words, guess)
    expected = figures(output(row))
    for report in (evaluate(a, b), evaluate(a, guess), evaluate(gold, b)):
        assert found_figures(report) == expected

"""Every option of ``errors`` and ``explain`` changes the outcome as its help says."""

from __future__ import annotations

import json
from typing import Any

import pytest

import tagwise as tw

from .options import DEV, TEST, TRAIN, Bench, cases, crf, debug_row, fitted, function_rows, invoke, row

COMMANDS = ("errors", "explain")

debug_row("errors", "absent.tagwise", "absent.txt")
debug_row("explain", "absent.tagwise", "Rosa")
function_rows("errors", "TEST", "--json")
function_rows("explain", "Rosa runs", "--json")


# --- errors -------------------------------------------------------------------------------------------------


def groups(bench: Bench, *args: object) -> list[dict[str, Any]]:
    """Return the error groups in the JSON output of ``errors``."""
    found: list[dict[str, Any]] = json.loads(bench.ok("errors", *args, "--json").stdout)["groups"]
    return found


def wrong(tagger: Any, data: tw.Corpus) -> int:
    """Return the number of missed gold spans plus the number of spurious predicted spans."""
    chunks = tagger.evaluate(data).chunks
    return int(chunks.gold + chunks.predicted - 2 * chunks.correct)


def counted(found: list[dict[str, Any]]) -> int:
    """Return that number from error groups. A span mistaken for another counts as both missed and spurious."""
    return sum(g["count"] * (1 + (g["gold"] is not None and g["predicted"] is not None)) for g in found)


@row("errors", "model")
def errors_model(bench: Bench) -> None:
    """The errors are those of the given model."""
    other = bench.saved(crf(max_iter=1).fit(DEV), "other.tagwise")
    for path, tagger in ((bench.model, fitted()), (other, tw.load(other))):
        assert counted(groups(bench, path, bench.test)) == wrong(tagger, TEST)


@row("errors", "source")
def errors_source(bench: Bench) -> None:
    """The errors are those on the given file."""
    for path, data in ((bench.test, TEST), (bench.dev, DEV)):
        found = groups(bench, bench.model, path)
        assert counted(found) == wrong(fitted(), data)
        for error in (e for g in found for e in g["errors"]):
            sentence = data[error["sentence"]]
            assert error["tokens"] == sentence.tokens
            assert error["gold"] == sentence.labels[error["begin"] : error["end"]]
            assert error["gold"] != error["predicted"]


@row("errors", "--format")
def errors_format(bench: Bench) -> None:
    """--format controls how the file is read."""
    path = bench.path("test.data")
    tw.write(TEST, path, "jsonl")
    assert groups(bench, bench.model, path, "--format", "jsonl") == groups(bench, bench.model, path)
    assert invoke("errors", bench.model, path, "--format", "conll").exit_code == 2


@row("errors", "--columns")
def errors_columns(bench: Bench) -> None:
    """--columns names the columns. Default: the columns of training."""
    named = groups(bench, bench.model, bench.test, "--columns", "word,pos,label")
    assert named == groups(bench, bench.model, bench.test)
    assert {g["kind"] for g in groups(bench, bench.model, bench.test, "--columns", "word,label,_")} != {
        g["kind"] for g in named
    }


@row("errors", "--label")
def errors_label(bench: Bench) -> None:
    """--label chooses the column with the gold labels."""
    args = ("--columns", "word,pos,label", "--label")
    assert groups(bench, bench.model, bench.test, *args, "label") == groups(bench, bench.model, bench.test)
    assert groups(bench, bench.model, bench.test, *args, "pos") != groups(bench, bench.model, bench.test)


@row("errors", "--top")
def errors_top(bench: Bench) -> None:
    """--top N shows the N most frequent kinds of errors and counts the others."""
    every = groups(bench, bench.model, bench.test)
    assert len(every) > 1
    assert [g["count"] for g in every] == sorted((g["count"] for g in every), reverse=True)
    text = bench.ok("errors", bench.model, bench.test, "--top", 1).stdout
    assert f"{len(every) - 1} more kinds" in text
    assert "more kinds" not in bench.ok("errors", bench.model, bench.test, "--top", 99).stdout


@row("errors", "--examples")
def errors_examples(bench: Bench) -> None:
    """--examples N shows N errors of each kind. Default: 3."""
    first = groups(bench, bench.model, bench.test)[0]
    assert first["count"] > 3
    for args, n in (((), 3), (("--examples", 1), 1), (("--examples", 0), 0)):
        text = bench.ok("errors", bench.model, bench.test, "--top", 1, *args).stdout
        assert text.count("[") == n


@row("errors", "--json")
def errors_json(bench: Bench) -> None:
    """--json prints all errors and the scores."""
    found = json.loads(bench.ok("errors", bench.model, bench.test, "--json").stdout)
    assert found["scores"] == json.loads(json.dumps(fitted().evaluate(TEST).to_dict()))
    assert all(len(g["errors"]) == g["count"] for g in found["groups"])


# --- explain ------------------------------------------------------------------------------------------------

TEXT = "Rosa runs to Lund"


def decisions(bench: Bench, *args: object) -> list[dict[str, Any]]:
    """Return the decisions in the JSON output of ``explain``."""
    found: list[dict[str, Any]] = json.loads(bench.ok("explain", *args, "--json").stdout)["decisions"]
    return found


@row("explain", "model")
def explain_model(bench: Bench) -> None:
    """The labels are the predictions of the given model."""
    other = bench.saved(tw.Perceptron(features="S1", max_iter=1).fit(DEV), "other.tagwise")
    for path in (bench.model, other):
        (labels,) = tw.load(path).predict([{"word": TEXT.split()}])
        assert [d["label"] for d in decisions(bench, path, TEXT)] == labels


@row("explain", "text")
def explain_text(bench: Bench) -> None:
    """Text is tokenized unless it is already. Further columns that the model reads are appended with slashes."""
    assert [d["word"] for d in decisions(bench, bench.model, TEXT)] == TEXT.split()
    for text in ("Rosa, hi.", "Rosa , hi ."):
        assert [d["word"] for d in decisions(bench, bench.model, text)] == ["Rosa", ",", "hi", "."]
    assert invoke("explain", bench.model, " ").exit_code == 2
    both = bench.saved(crf(features="word[0]\npos[0]").fit(TRAIN), "both.tagwise")
    found = decisions(bench, both, "Rosa/N runs/V")
    assert any(v["feature"] == "pos[0]=N" for v in found[0]["votes"])
    refused = invoke("explain", both, TEXT)
    assert refused.exit_code == 2
    assert "word/pos" in refused.stderr


@row("explain", "--token")
def explain_token(bench: Bench) -> None:
    """--token restricts the output to one token."""
    assert decisions(bench, bench.model, TEXT, "--token", 2) == decisions(bench, bench.model, TEXT)[1:2]
    assert invoke("explain", bench.model, TEXT, "--token", 5).exit_code == 2


@row("explain", "--against")
def explain_against(bench: Bench) -> None:
    """--against replaces the runner-up by the given label."""
    for label in fitted().classes_:
        (found,) = decisions(bench, bench.model, TEXT, "--token", 1, "--against", label)
        assert found["runner_up"] == label
    assert invoke("explain", bench.model, TEXT, "--against", "O").exit_code == 2
    assert invoke("explain", bench.model, TEXT, "--token", 1, "--against", "X").exit_code == 2


@row("explain", "--top")
def explain_top(bench: Bench) -> None:
    """--top N shows N features of each decision. Default: 5."""
    model = bench.saved(crf(features="S3").fit(TRAIN), "many.tagwise")
    for args, n in (((), 5), (("--top", 5), 5), (("--top", 2), 2)):
        lines = bench.ok("explain", model, TEXT, "--token", 1, *args).stdout.splitlines()
        assert sum(" / " in line for line in lines) == n


@row("explain", "--json")
def explain_json(bench: Bench) -> None:
    """--json prints every feature, and their amounts sum to the difference of the scores."""
    for found in decisions(bench, bench.model, TEXT):
        assert sum(v["amount"] for v in found["votes"]) == pytest.approx(found["difference"])
        assert found["score"] - found["other_score"] == pytest.approx(found["difference"])


@pytest.mark.parametrize("case", cases(*COMMANDS))
def test_options(bench: Bench, case: str) -> None:
    """Run the check of one option."""
    cases(*COMMANDS)[case](bench)

"""Grouped errors: every wrong span or token is in exactly one group, and correct ones are in none."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import tagwise as tw
from tagwise.evaluation.errors import find_errors

CHUNKS = ("O", "O", "B-A", "I-A", "B-B", "I-B")


def corpus(gold: list[list[str]]) -> tw.Corpus:
    """Return sentences with these labels."""
    return tw.Corpus.from_lists([[f"w{t}" for t in range(len(y))] for y in gold], gold)


@st.composite
def labellings(draw: st.DrawFn, labels: tuple[str, ...]) -> tuple[list[list[str]], list[list[str]]]:
    """Draw gold and predicted labels of some sentences."""
    sizes = draw(st.lists(st.integers(1, 7), min_size=1, max_size=4))
    one = st.sampled_from(labels)
    gold = [draw(st.lists(one, min_size=n, max_size=n)) for n in sizes]
    guess = [draw(st.lists(one, min_size=n, max_size=n)) for n in sizes]
    return gold, guess


@given(labellings(CHUNKS))
def test_every_wrong_span_is_in_one_group(both: tuple[list[list[str]], list[list[str]]]) -> None:
    """Gold spans in groups are the missed ones, predicted spans the spurious ones, as counted by the scores."""
    gold, guess = both
    found = find_errors(corpus(gold), guess)
    report = tw.evaluate(gold, guess)
    if not report.chunked:
        return
    mine = sum(len(g.errors) for g in found.groups if g.gold is not None)
    theirs = sum(len(g.errors) for g in found.groups if g.predicted is not None)
    assert mine == report.chunks.gold - report.chunks.correct
    assert theirs == report.chunks.predicted - report.chunks.correct
    for group in found.groups:
        kinds = {
            (True, False): {"missed"},
            (False, True): {"spurious"},
            (True, True): {"type", "borders", "type and borders"},
        }
        assert group.kind in kinds[group.gold is not None, group.predicted is not None]
        assert (group.gold == group.predicted) is (group.kind == "borders")


@given(labellings(("N", "V", "D")))
def test_every_wrong_token_is_in_one_group(both: tuple[list[list[str]], list[list[str]]]) -> None:
    """The counts are the off-diagonal part of the confusion matrix."""
    gold, guess = both
    expected = Counter((a, b) for y, z in zip(gold, guess) for a, b in zip(y, z) if a != b)
    found = {(g.gold, g.predicted): len(g.errors) for g in find_errors(corpus(gold), guess).groups}
    assert found == expected


def test_error_kinds() -> None:
    """Each kind once, and its name."""
    gold = [["B-A", "I-A", "O", "B-A", "B-B", "I-B", "O", "B-A"]]
    guess = [["B-A", "O", "B-B", "B-B", "B-A", "I-A", "B-A", "O"]]
    titles = {g.title: g.kind for g in find_errors(corpus(gold), guess).groups}
    assert titles == {
        "A with other borders": "borders",
        "spurious B": "spurious",
        "A taken for B": "type",
        "B taken for A": "type",
        "spurious A": "spurious",
        "A missed": "missed",
    }
    text = str(find_errors(corpus(gold), guess))
    assert "... w1 w2 w3 w4 w5 w6 [w7]" in text
    assert "[w0 w1] w2 w3" in text


def found_in(gold: str, guess: str) -> set[tuple[str, str | None, str | None, int, int]]:
    """Return kind, types and position of each error."""
    groups = find_errors(corpus([gold.split()]), [guess.split()]).groups
    return {(g.kind, g.gold, g.predicted, e.begin, e.end) for g in groups for e in g.errors}


@pytest.mark.parametrize(
    ("gold", "guess", "expected"),
    [
        ("B-A O", "O B-A", {("missed", "A", None, 0, 1), ("spurious", None, "A", 1, 2)}),
        ("B-A I-A", "B-B B-A", {("borders", "A", "A", 0, 2), ("spurious", None, "B", 0, 1)}),
        (
            "B-A I-A I-A",
            "B-B I-B B-A",
            {("type and borders", "A", "B", 0, 3), ("spurious", None, "A", 2, 3)},
        ),
        ("O B-A I-A O", "O O B-A I-A", {("borders", "A", "A", 1, 4)}),
        ("O O B-A I-A", "O B-A I-A O", {("borders", "A", "A", 1, 4)}),
        ("B-A B-A", "B-B I-B", {("type and borders", "A", "B", 0, 2), ("missed", "A", None, 1, 2)}),
    ],
)
def test_overlapping_spans_are_paired_by_shared_tokens(
    gold: str, guess: str, expected: set[tuple[str, Any, Any, int, int]]
) -> None:
    """Spans that share the most tokens are paired first, with ties broken by equal type. Both are shown."""
    assert found_in(gold, guess) == expected

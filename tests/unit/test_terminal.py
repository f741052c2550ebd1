"""Tables for a terminal and curves of rounds: what stands where."""

from __future__ import annotations

import re
from typing import Any

from tagwise.base.terminal import (
    as_text,
    pair_table,
    table,
)


def cells(renderable: Any, width: int = 160) -> list[list[str]]:
    """The rows of a printed table, cells apart, without rules and empty lines."""
    lines = [line for line in as_text(renderable, width).splitlines() if line.strip() and "─" not in line]
    return [re.split(r" {2,}", line.strip()) for line in lines]


def test_words_to_the_left_and_figures_to_the_right() -> None:
    """The first columns hold words; a title above, a caption below."""
    text = as_text(table(("name", "n"), [("a", "1"), ("bbbbbb", "22")], title="T", caption="C"))
    assert [line.strip() for line in text.splitlines() if line.strip() and "─" not in line] == [
        "T", "name      n", "a         1", "bbbbbb   22", "C",
    ]  # fmt: skip
    both = as_text(table(("name", "long name"), [("a", "b")], left=2))
    assert re.search(r"a +b$", both, re.MULTILINE)
    head, row = (line for line in both.splitlines() if "a" in line)
    assert row.index("b") == head.index("long name")


def test_text_is_cut_at_its_width_and_has_no_trailing_space() -> None:
    """For files as for people."""
    text = as_text(pair_table([("a", "word " * 40)], title="T"), width=60)
    lines = text.splitlines()
    assert lines[0] == "T"
    assert len(lines) > 3
    assert all(len(line) <= 60 and line == line.rstrip() for line in lines)
    assert as_text("[bold]x[/bold]") == "x"


def test_pairs_are_taken_as_they_are() -> None:
    """Square brackets are no markup."""
    assert cells(pair_table([("a", "[red]x"), ("b", "y")])) == [["a", "[red]x"], ["b", "y"]]


# -- rounds ---------------------------------------------------------------------------------------------------


# -- the page -------------------------------------------------------------------------------------------------

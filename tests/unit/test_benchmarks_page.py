"""The page of the benchmarks says what the JSON of its runs says, with where and when they were."""

from __future__ import annotations

import doctest
import re
from typing import Any

from benchmarks import page
from benchmarks.__main__ import BENCHMARKS

RUN: dict[str, Any] = {
    "name": "loading",
    "title": "Loading",
    "rows": [
        {"name": "theirs", "cells": {"time": "9.4 ms (8.9-26.5)"}, "demand": "", "holds": None},
        {
            "name": "ours",
            "cells": {"time": "29 ms (17-31)", "file": "2 MiB"},
            "demand": "< 20 ms",
            "holds": False,
        },
    ],
    "notes": ["A note."],
    "context": {"quick": False, "repeat": 5},
    "machine": {
        "date": "2026-01-02",
        "cpu": "A processor",
        "cores": 4,
        "load": [0.25, 0.0, 0.0],
        "python": "3.12.3",
        "system": "Linux x86_64",
        "versions": {"tagwise": "0.2.0", "numpy": "not installed"},
    },
}
BODY = """| | time | file | goal | |
| --- | --- | --- | --- | --- |
| theirs | 9.4 ms (8.9-26.5) |  |  |  |
| ours | 29 ms (17-31) | 2 MiB | < 20 ms | MISSED |

A note.
`python -m benchmarks loading`, 2026-01-02: A processor, 4 cores (load 0.2), Linux x86_64; \
Python 3.12.3, tagwise 0.2.0; 5 rounds.
"""


def test_the_page_is_current() -> None:
    assert page.differences(page.PAGE.read_text("utf-8"), page.runs()) == []


def test_a_run_is_a_table_with_its_goals_and_its_origin() -> None:
    """What is missed is said; columns that a row lacks stay empty; what is not installed is not named."""
    assert page.markdown(RUN).replace("|  | time", "| | time").replace("goal |  |", "goal | |") == BODY
    assert not doctest.testmod(page).failed


def test_tables_are_written_between_their_marks() -> None:
    text = "a\n<!-- table loading -->\nold\n<!-- end -->\nb\n"
    again = page.written(text, {"loading": RUN})
    assert again.startswith("a\n<!-- table loading -->\n|")
    assert again.endswith("5 rounds.\n<!-- end -->\nb\n")
    assert page.written(again, {"loading": RUN}) == again
    assert page.differences(text, {"loading": RUN}) == ["table loading is another"]
    assert page.differences(again, {"loading": RUN}) == []
    assert page.differences(again, {}) == ["table loading: no docs/benchmarks/loading.json"]
    assert page.differences("", {"loading": RUN}) == ["docs/benchmarks/loading.json: no table of the page"]


def test_what_is_kept_has_figures_with_their_spread_and_a_day() -> None:
    """Kept runs are of benchmarks that there are, on a day; a time or a ratio stands with its smallest and largest."""
    for name, run in page.runs().items():
        assert name == run["name"]
        assert name in BENCHMARKS
        assert re.fullmatch(r"\d{4}-\d\d-\d\d", run["machine"]["date"])
        assert run["rows"]

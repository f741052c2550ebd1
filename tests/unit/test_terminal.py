"""Tables for a terminal and curves of rounds: what stands where."""

from __future__ import annotations

import math
import re
from itertools import pairwise
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from tagwise.apps.compare.report import html
from tagwise.apps.compare.report.rounds import POINTS, _ticks, feature_text, rounds_svg, rounds_table
from tagwise.apps.compare.report.svg import Strip, dot_plot
from tagwise.base.parameters import Number, Param
from tagwise.base.terminal import (
    as_text,
    explanation_table,
    pair_table,
    parameter_table,
    percent,
    table,
    transition_table,
)
from tagwise.estimators.boosting import Round


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


def test_shares_as_figures() -> None:
    """Two digits of a per cent, nothing for nothing."""
    assert [percent(v) for v in (0.12345, 1.0, 0.0, None)] == ["12.35", "100.00", "0.00", ""]


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


def test_parameters_by_line() -> None:
    """Name, default, domain, meaning."""
    param = Param("rate", 0.5, Number(0.0, 1.0), "how [fast]")
    assert cells(parameter_table("crf", [param])) == [
        ["crf"],
        ["parameter", "default", "values", "meaning"],
        ["rate", "0.5", param.domain.describe(), "how [fast]"],
    ]


def test_strongest_features_and_transitions() -> None:
    """A label once, weights with their signs, text as it is."""
    found = cells(explanation_table({"X": [("w=[a]", 1.25), ("w=b", -0.5)], "Y": [("w=c", 0.0)]}))
    assert found == [
        ["strongest features"],
        ["label", "weight", "attribute"],
        ["X", "+1.2500", "w=[a]"],
        ["-0.5000", "w=b"],
        ["Y", "+0.0000", "w=c"],
    ]
    assert cells(transition_table([("[O]", "B", -2.0)])) == [
        ["strongest transitions"],
        ["from", "to", "weight"],
        ["[O]", "B", "-2.0000"],
    ]


# -- rounds ---------------------------------------------------------------------------------------------------


def rounds(n: int) -> list[Round]:
    """So many rounds, the loss falling, every second feature the same."""
    return [Round(i, "node", f"w={i if i % 2 else 0}", "X", 0.5, 0.9, -float(i)) for i in range(n)]


def test_features_in_a_line() -> None:
    """An attribute and its label, a step between labels, the ends by name."""
    kinds = {"node": "w=a : X", "edge": "w=a -> X"}
    for kind, text in kinds.items():
        assert feature_text(Round(0, kind, "w=a", "X", 0.0, 0.0, 0.0)) == text
    for kind in ("start", "end"):
        assert feature_text(Round(0, kind, "", "X", 0.0, 0.0, 0.0)) == f"{kind} : X"


@pytest.mark.parametrize(
    ("n", "top", "shown"),
    [
        (3, 5, ["1", "2", "3"]),
        (3, 3, ["1", "2", "3"]),
        (4, 3, ["1", "2", "3", "4"]),
        (9, 2, ["1", "2", "...", "9"]),
    ],
)
def test_the_first_rounds_and_the_last(n: int, top: int, shown: list[str]) -> None:
    """What lies between is counted."""
    _, head, *rows = cells(rounds_table(rounds(n), top))
    assert head == ["round", "step", "bound", "log loss", "feature"]
    assert [r[0] for r in rows] == shown
    assert rows[0] == ["1", "+0.5000", "0.900000", "-0.0000", "w=0 : X"]
    if "..." in shown:
        assert rows[2] == ["...", f"{n - top - 1} more"]
    assert rows[-1][-1] == f"w={(n - 1) if (n - 1) % 2 else 0} : X"


def test_ticks_of_rounds() -> None:
    """Round numbers inside the interval, no more than about six."""
    assert _ticks(0.0, 10.0) == [0, 2, 4, 6, 8, 10]
    assert _ticks(-3.0, 0.5) == [-3, -2, -1, 0]
    assert _ticks(2.0, 2.0) == [2.0]


def points(svg: str) -> list[list[tuple[float, float]]]:
    """The curves of a picture."""
    root = ElementTree.fromstring(svg)
    found = [e.attrib["points"] for e in root.iter() if e.tag.endswith("polyline")]
    return [[(float(x), float(y)) for x, y in (p.split(",") for p in text.split())] for text in found]


def test_curves_of_rounds() -> None:
    """The loss falls from the upper left to the lower right; different features rise, the same one only once."""
    loss, different = points(rounds_svg(rounds(10)))
    assert loss == sorted(loss)
    assert all(a[1] < b[1] for a, b in pairwise(loss[:-1]))
    assert len(loss) == 11  # each, and the last once more
    heights = [y for _, y in different[:-1]]
    assert [a == b for a, b in pairwise(heights)] == [i % 2 == 0 and i > 0 for i in range(1, 10)]
    assert len(points(rounds_svg(rounds(POINTS + 1)))[0]) <= POINTS // 2 + 3


def test_curves_that_are_next_to_nothing() -> None:
    """No rounds, one round, a loss that is not finite."""
    assert ElementTree.fromstring(rounds_svg([])).attrib == {"width": "1", "height": "1"}
    assert len(points(rounds_svg(rounds(1)))) == 2
    last = Round(3, "end", "", "X", 0.5, 0.9, -math.inf)
    loss, different = points(rounds_svg([*rounds(3), last]))
    assert (len(loss), len(different)) == (4, 5)


# -- the page -------------------------------------------------------------------------------------------------


def test_a_plot_of_nothing_is_nothing() -> None:
    """Strips without marks make no picture; a strip of one has no range."""
    assert dot_plot([Strip("a", "red", [])], "score", "t") == ""
    assert 'class="range"' not in dot_plot([Strip("a", "red", [(0.5, "circle", False, "x")])], "score", "t")
    two = [(0.4, "circle", False, "x"), (0.6, "circle", False, "y")]
    assert dot_plot([Strip("a", "red", two)], "score", "t").count('class="range"') == 2  # wide and slim
    hollow = [(0.4, "circle", True, "x"), (0.6, "circle", False, "y")]
    assert 'class="range"' not in dot_plot([Strip("a", "red", hollow)], "score", "t")


def test_a_report_is_written_as_its_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In UTF-8, whatever the machine prefers."""
    monkeypatch.setattr(html, "page", lambda comparison: f"<p>ü {comparison}</p>")
    html.write("it", tmp_path / "r.html")  # type: ignore[arg-type]
    assert (tmp_path / "r.html").read_bytes() == "<p>ü it</p>".encode()

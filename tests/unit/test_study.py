"""The arithmetic behind the pages of the study."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from benchmarks import cited, scorecard, study

from tagwise.apps.compare.published import TABLES

ROW = {"corpus": "c", "features": "S1"}
RUNS = {
    "p": {
        "summary": [
            {**ROW, "learner": "a", "f1": 0.5, "cpu": 4.0},
            {**ROW, "learner": "b", "f1": 0.25, "cpu": 2.0},
        ]
    }
}


@pytest.mark.parametrize(
    ("reference", "expected"),
    [
        ("p: {c; a; S1; f1}", "50.00"),
        ("p: {c; b; S1; f1} - {c; a; S1; f1}", "25.00"),
        ("p: {c; a; S1; cpu} / {c; b; S1; cpu}", "2"),
    ],
)
def test_figures_in_the_text_are_computed_from_runs(reference: str, expected: str) -> None:
    assert cited.calculated(reference, RUNS) == expected


def test_a_figure_that_was_not_measured_is_an_error() -> None:
    with pytest.raises(KeyError, match="not measured"):
        cited.calculated("p: {c; x; S1; f1}", RUNS)


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.source)
def test_equal_figures_are_reproduced(table: Any) -> None:
    """A run with exactly the published figures agrees in all of them, and shifting one by two points is noticed."""
    times = table.measures == {"seconds"}

    def run_with(shift: float) -> dict[str, Any]:
        summary = [
            {
                "learner": cell.learner,
                "features": cell.features,
                "corpus": cell.corpus,
                "cpu" if times else cell.measure: (table.value(cell.figure) + shift * (i == 0))
                / (1 if times else 100),
            }
            for i, cell in enumerate(table.cells())
        ]
        return {table.preset: {"summary": summary}}

    figures = scorecard.compared(table, run_with(0.0))
    assert [figure.cell for figure in figures] == table.cells()
    assert all(figure.agrees for figure in figures)
    same, pairs = scorecard.same_order(figures)
    assert same == pairs
    expected = "other data" if table.data == "other" else "reproduced"
    assert scorecard.verdict(table, figures) == expected
    shifted = scorecard.compared(table, run_with(120.0 if times else 2.0))
    assert [figure.agrees for figure in shifted] == [False, *[True] * (len(shifted) - 1)]


def test_verdicts() -> None:
    """Figures that are all two points higher keep their order. Reversed figures differ."""
    table = next(t for t in TABLES if t.paper == "losses" and t.table == "Table 2")
    cells = table.cells()
    higher = [scorecard.Compared(cell, cell.figure + 2, None) for cell in cells]
    assert scorecard.verdict(table, higher) == "order only"
    wide = [replace(figure, spread=1.0) for figure in higher]
    assert scorecard.verdict(table, wide) == "reproduced"
    reversed_order = [scorecard.Compared(cell, 100 - cell.figure, None) for cell in cells]
    assert scorecard.verdict(table, reversed_order) == "differs"


def test_weighted_rank_is_the_mean_rank_without_weights() -> None:
    assert study.weighted_rank([0, 3, -1], [5, 9, 2], 10, pi=1.0) == pytest.approx(13 / 3)
    assert study.weighted_rank([0, 6], [1, 2], 10, pi=0.5) == pytest.approx(2.0)

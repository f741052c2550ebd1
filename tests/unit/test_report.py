"""The HTML page: complete, without network access, equal to its rows, and rendered by a browser."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import tagwise as tw
from tagwise.apps.compare import Comparison, Published
from tagwise.apps.compare.report import svg
from tagwise.apps.compare.report.figures import best_front
from tagwise.apps.compare.report.html import page
from tagwise.apps.compare.report.svg import Chart, Line, PlotPoint, log_ticks, ticks

from .test_displays import Balance


@pytest.fixture(scope="module")
def comparison() -> Comparison:
    train, dev, test = tw.load_corpus("wnut17-ner")
    pos, _, pos_test = tw.load_corpus("ewt-pos")
    data = {"ner": (train[:150], dev, test[:60]), "pos <&>": (pos[:120], pos_test[:40])}
    params = {"max_iter": 8}
    table = tw.compare(
        ["crf", "mira", "hmm"],
        corpus=data,
        features=["S1"],
        sizes=[50, 120],
        params=params,
        against="crf",
    )
    table.title, table.caption = "A <comparison>", "max_iter = 8"
    table.published = (Published("crf", 59.92, features="S1", source="A paper & its table"),)
    return table


def test_comparison_report_writes_the_page(comparison: Comparison, tmp_path: Path) -> None:
    """`comparison.report(path)` writes the page, although pages depend on comparisons and not the reverse."""
    comparison.report(tmp_path / "page.html")
    date = re.compile(r"<dt>Date</dt><dd>.*?</dd>")
    written = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert date.sub("", written) == date.sub("", page(comparison))


def test_page_is_self_contained(comparison: Comparison) -> None:
    text = page(comparison)
    for tag, attributes in Balance(text).found:
        assert tag not in ("link", "img", "iframe")
        assert not attributes.get("src")
        assert (attributes.get("href") or "#").startswith("#")
    for own in re.findall(r"<(style|script)>(.*?)</\1>", text, re.DOTALL):  # sentences may contain addresses
        assert not re.search(r"https?:|url\(|@import|fetch\(|XMLHttpRequest", own[1])
    assert "A &lt;comparison&gt;" in text
    assert "pos &lt;&amp;&gt;" in text
    assert "A paper &amp; its table" in text


def test_page_contains_every_row_and_model(comparison: Comparison) -> None:
    """The table has every run, and every model has a panel that the table links to."""
    text = page(comparison)
    _, body = comparison.sheet()
    assert text.count("<tr data-series=") == len(body)
    panels = re.findall(r'<details class="model" id="(m-\d+)">', text)
    assert sorted(panels) == sorted(f"m-{i}" for i in range(len(comparison.rows)))
    assert all(f'href="#{ident}"' in text for ident in panels)
    assert "Learning curve, S1" in text
    assert "paper 59.92" in text


def test_empty_comparison_page_shows_the_losses() -> None:
    assert "Losses of one decision" in page(Comparison(title="losses"))


def test_ticks_fronts_and_charts() -> None:
    assert ticks(0.0, 1.0) == [0.0, 0.2, 0.4, 0.6, 0.8, 1.0]
    assert log_ticks(0.9, 110) == [1, 2, 5, 10, 20, 50, 100]
    assert best_front([(1.0, 5.0), (1.0, 6.0), (2.0, 6.0), (3.0, 7.0)]) == [(1.0, 6.0), (3.0, 7.0)]
    chart = Chart(
        "t", "x", "y", [PlotPoint(1, 2, "s", "#000", "a<b")], [Line([(1, 2), (3, 4)], "s", "#000", "s")]
    )
    assert "a&lt;b" in chart.svg()
    assert Chart("t", "x", "y").svg() == ""


def test_axis_positions_are_linear_or_logarithmic() -> None:
    """Positions are linear or logarithmic. An empty interval maps to the middle."""
    axis = svg.Axis("x", 0.0, 10.0, 100.0, 300.0)
    assert [axis.at(v) for v in (0.0, 2.5, 10.0)] == [100.0, 150.0, 300.0]
    log = svg.Axis("x", 1.0, 100.0, 0.0, 100.0, log=True)
    assert [log.at(v) for v in (1.0, 10.0, 100.0)] == pytest.approx([0.0, 50.0, 100.0])
    assert log.ticks() == [1, 2, 5, 10, 20, 50, 100]
    assert svg.Axis("x", 3.0, 3.0, 0.0, 10.0).at(3.0) == 5.0
    assert svg.spread([0.0, 10.0]) == pytest.approx((-0.6, 10.6))
    low, high = svg.spread([1.0, 100.0], log=True)
    assert (low, high) == pytest.approx((100**-0.06, 100**1.06))
    assert svg.spread([2.0, 2.0]) == (1.5, 2.5)
    assert svg.ticks(-1.0, 1.0) == [-1.0, -0.5, 0.0, 0.5, 1.0]
    assert svg.ticks(5.0, 5.0) == [5.0]

"""What a report draws: figures put in by hand stand in its cards, tables, curves and panels where they belong."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from typing import Any

import pytest

from tagwise.apps.compare import Comparison, Row
from tagwise.apps.compare.report import figures, html, svg
from tagwise.apps.compare.report.figures import Palette

ROW = Row(
    corpus="news",
    learner="crf",
    loss="log",
    features="S1",
    sentences=100,
    seed=0,
    accuracy=0.9,
    f1=0.5,
    sequence_accuracy=0.25,
    nonzero=1000,
    iterations=3,
    seconds=4.0,
    precision=0.4,
    recall=0.6,
)
ROWS = [
    ROW,
    replace(ROW, learner="mira", f1=0.495, nonzero=500, seconds=9.0),  # near the best, sparsest
    replace(ROW, learner="hmm", f1=0.491, nonzero=5000, seconds=0.5),  # near the best, fastest
    replace(ROW, learner="memm", f1=0.48, nonzero=10, seconds=0.1),  # more than a point below
]
DETAIL: dict[str, Any] = {
    "labels": ["O", "A", "B"],
    "n_features": 9,
    "history": [
        {"iteration": 1, "objective": 8.0, "dev_score": None, "seconds": 0.1},
        {"iteration": 2, "objective": 4.0, "dev_score": None, "seconds": 0.1},
        {"iteration": 3, "objective": 2.0, "dev_score": None, "seconds": 0.1},
    ],
    "counts": [[3, 2, 0, 0, 0]],
    "per_type": {"A": [3, 2, 1]},
    "confusion": [["O", "O", 50], ["B", "B", 9], ["A", "O", 4], ["B", "A", 7]],
    "errors": [[["w"], ["A"], ["O"]]],
    "strongest": {"A": [["word=x", 1.23456]], "O": []},
    "transitions": [[0.0, 1.126, None], [2.0, 3.0, 4.0], [5.0, 6.0, 7.0]],
}


def summary(rows: list[Row]) -> list[dict[str, Any]]:
    """Entries of a table."""
    return Comparison(rows).summary()


def test_the_cards_name_the_best_and_what_is_near_it() -> None:
    """Best by F1; fastest and sparsest among those within one point of it; how many cells and seconds."""
    text = html.cards(summary([*ROWS, replace(ROW, seed=1)]))
    found = re.findall(r"<b>(.*?)</b><span>(.*?)</span><small>(.*?)</small>", text)
    assert found == [
        ("50.00", "best F1", "crf, S1"),
        ("0.5 s", "fastest within one point of it", "hmm, S1"),
        ("500", "sparsest within one point of it", "non-zero features: mira, S1"),
        ("4", "cells", "18 s of training"),  # 4 + 4 + 9 + 0.5 + 0.1
    ]
    tags = html.cards(summary([replace(ROW, f1=None)]))
    assert "best accuracy" in tags
    assert "<b>90.00</b>" in tags
    assert html.cards([]) == ""


def test_the_best_of_each_column_stands_out() -> None:
    """The highest of a measure, all of them where several are; times and sizes have no best."""
    rows = [*ROWS, replace(ROW, learner="pa"), replace(ROW, corpus="web", f1=0.99)]
    text = html.corpus_table(Comparison(rows), "news")
    heads = re.findall(r"<button[^>]*>(.*?)</button>", text)
    assert "corpus" not in heads
    lines = [re.findall(r'<td class="([^"]*)"[^>]*>(.*?)</td>', line) for line in text.split("<tr data")[1:]]
    assert len(lines) == 5
    at = heads.index("F1")
    assert [cells[at] for cells in lines] == [
        ("figure top", "50.00"),
        ("figure", "49.50"),
        ("figure", "49.10"),
        ("figure", "48.00"),
        ("figure top", "50.00"),
    ]
    assert all("top" in cells[heads.index("accuracy")][0] for cells in lines)  # all are equal
    assert not any("top" in cells[heads.index("seconds")][0] for cells in lines)
    assert re.findall(r'data-v="([^"]*)">1,000<', text) == ["1000", "1000"]
    assert [cells[heads.index("learner")][0] for cells in lines] == ["word"] * 5


def test_the_panels_of_a_model_by_hand() -> None:
    """Labels by how often they occur, confusions, transitions in their order, rounded; of the first seed alone."""
    rows = [ROW, replace(ROW, learner="hmm"), replace(ROW, seed=1)]
    (found,) = html.details(Comparison(rows, details=[DETAIL, None, DETAIL]))
    assert {k: found[k] for k in ("corpus", "learner", "features", "sentences", "score", "chunked")} == {
        "corpus": "news",
        "learner": "crf",
        "features": "S1",
        "sentences": 100,
        "score": 0.5,
        "chunked": True,
    }
    assert found["labels"] == found["edge_labels"] == ["O", "B", "A"]  # 50 + 4, 9 + 7, 4 + 7
    assert found["all"] == 3
    assert found["confusion"] == DETAIL["confusion"]
    assert found["types"] == {"A": [3, 2, 1]}
    assert found["strongest"] == {"A": [["word=x", 1.235]], "O": []}
    assert found["edges"] == [[0.0, None, 1.13], [5.0, 7.0, 6.0], [2.0, 4.0, 3.0]]
    assert found["errors"] == DETAIL["errors"]
    bare = {k: v for k, v in DETAIL.items() if k not in ("strongest", "transitions")}  # as of a kernel
    (kernel,) = html.details(Comparison([replace(ROW, f1=None)], details=[bare]))
    assert (kernel["edges"], kernel["strongest"], kernel["chunked"]) == (None, {}, False)


def test_labels_are_ordered_by_gold_and_guess() -> None:
    """A label counts where it is gold and where it is guessed, once where it is both."""
    confusion = [["A", "A", 5], ["B", "C", 4], ["C", "C", 3]]  # A 5, B 4, C 3 + 4
    detail = {**DETAIL, "labels": ["A", "B", "C"], "confusion": confusion, "transitions": None}
    (found,) = html.details(Comparison([ROW], details=[detail]))
    assert found["labels"] == ["C", "A", "B"]


def test_many_labels_are_cut_to_the_most_frequent() -> None:
    """Two dozen of them, and only the confusions among these; how many there are is said."""
    confusion = [[f"L{i}", f"L{i}", 100 - i] for i in range(40)] + [["L39", "L0", 1]]
    detail = {**DETAIL, "labels": [f"L{i}" for i in range(40)], "confusion": confusion, "transitions": None}
    (found,) = html.details(Comparison([ROW], details=[detail]))
    assert found["labels"] == [f"L{i}" for i in range(24)]
    assert found["all"] == 40
    assert [c[0] for c in found["confusion"]] == found["labels"]


def test_notes_and_sources_are_on_the_page() -> None:
    """Title, note, caption, the learner that others are tested against, each once; none where there is none."""
    table = Comparison([ROW], title="Title", caption="Caption.", note="Note.", against="crf")
    text = html.page(table)
    assert '<div class="note"><p>Note.</p><p>Caption.</p><p>p: paired approximate randomisation' in text
    assert "<h1>Title</h1>" in text
    plain = html.page(Comparison([ROW]))
    assert "<h1>Comparison</h1>" in plain
    assert '<div class="note"></div>' in plain
    assert 'href="#model"' not in plain
    assert 'href="#model"' in html.page(Comparison([ROW], details=[DETAIL]))


# --- charts -------------------------------------------------------------------------------------------------


def marks(drawing: str) -> list[tuple[float, float, str]]:
    """Circles of a chart: where, and what they say."""
    found = re.findall(r'<circle cx="([\d.]+)" cy="([\d.]+)"[^>]*/><title>(.*?)</title>', drawing)
    return [(float(x), float(y), text) for x, y, text in found]


def test_values_lie_where_the_axis_says() -> None:
    """In proportion, or in proportion to their logarithms; an empty interval has its middle."""
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


def test_score_against_cost_by_hand() -> None:
    """Each row a mark at its cost and score; the front of those that nothing beats is drawn and named."""
    entries = summary(ROWS)
    drawing = figures.against(entries, Palette(entries), "seconds", "s", "t")
    found = {text.split(",")[0]: (x, y) for x, y, text in marks(drawing)}
    assert sorted(found, key=lambda name: found[name][0]) == ["memm", "hmm", "crf", "mira"]
    assert sorted(found, key=lambda name: found[name][1]) == ["crf", "mira", "hmm", "memm"]  # higher is up
    gaps = [found[b][0] - found[a][0] for a, b in (("memm", "hmm"), ("hmm", "crf"))]
    assert gaps[0] / gaps[1] == pytest.approx(math.log(5) / math.log(8), rel=0.01)
    (path,) = re.findall(r'<path d="([^"]*)" class="frontier"', drawing)
    assert [tuple(map(float, place[1:].split(","))) for place in path.split()] == [
        pytest.approx(found[name]) for name in ("memm", "hmm", "crf")
    ]
    named = re.findall(r'class="label">(.*?)<', drawing)
    assert sorted(named) == ["crf S1", "hmm S1", "memm S1"]
    assert "50.00 · 4.0 s · 1,000 non-zero features" in drawing


def test_learning_curves_by_hand() -> None:
    """One curve a learner that has more than one size, of the one feature set, in the order of sizes."""
    rows = [
        replace(ROW, sentences=1000, f1=0.7),
        ROW,
        replace(ROW, sentences=10, f1=0.1),
        replace(ROW, learner="hmm"),
        replace(ROW, features="S2", sentences=50),
    ]
    entries = summary(rows)
    drawing = figures.by_size(entries, Palette(entries), "S1")
    (path,) = re.findall(r'<path d="([^"]*)" class="line"', drawing)
    xs, ys = zip(*(map(float, place[1:].split(",")) for place in path.split()))
    assert len(xs) == 3
    assert xs[1] - xs[0] == pytest.approx(xs[2] - xs[1], abs=0.2)  # tenfold each
    assert (ys[0] - ys[1]) / (ys[1] - ys[2]) == pytest.approx(2.0, rel=0.01)  # 10, 50, 70
    assert figures.by_size(entries, Palette(entries), "S2") == ""


def test_curves_along_training_by_hand() -> None:
    """The objective above its lowest, cut where nothing is left; the dev score in percent; dashes for unaveraged."""
    rows = [
        (ROW, DETAIL),
        (replace(ROW, learner="mira unaveraged"), DETAIL),
        (replace(ROW, features="S2"), DETAIL),
    ]
    palette = Palette(summary([r for r, _ in rows]))
    drawing = figures.by_iteration(rows, palette, "S1", "objective")
    assert drawing.count('class="line"') == 2
    assert drawing.count("stroke-dasharray") == 1
    assert "crf: 0.33 after 2" in drawing  # 8, 4, 2: 6 above the lowest, then 2
    assert figures.by_iteration(rows, palette, "S1", "dev_score") == ""
    history = [
        {"iteration": i, "objective": o, "dev_score": s} for i, o, s in ((1, 1010.0, 0.5), (2, 1010.0, 0.75))
    ]
    tail = [
        {"iteration": i, "objective": o, "dev_score": 0.6}
        for i, o in ((3, 1001.0), (4, 1000.001), (5, 1000.00001), (6, 1000.0))
    ]
    cut = [(ROW, {**DETAIL, "history": [*history, *tail]})]
    assert "crf: 60.00 after 6 iterations" in figures.by_iteration(cut, palette, "S1", "dev_score")
    flat = figures.by_iteration(cut, palette, "S1", "objective")
    assert "crf: 0.0001 after 4" in flat
    heights = [
        float(y) for y in re.findall(r"[ML][\d.]+,([\d.]+)", re.findall(r'd="([^"]*)" class="line"', flat)[0])
    ]
    assert (
        max(heights) - min(heights) > 200
    )  # a hundredth of the objective's value, most of the chart's height


def test_precision_against_recall_by_hand() -> None:
    """Recall across, precision up; nothing below three marks, and nothing of what has no chunks."""
    rows = [
        replace(ROW, learner=name, precision=p, recall=r)
        for name, p, r in (("crf", 0.2, 0.8), ("hmm", 0.5, 0.5), ("memm", 0.8, 0.2))
    ]
    entries = summary(rows)
    found = {
        text.split(",")[0]: (x, y)
        for x, y, text in marks(figures.precision_recall(entries, Palette(entries)))
    }
    assert found["memm"][0] < found["hmm"][0] < found["crf"][0]
    assert found["memm"][1] < found["hmm"][1] < found["crf"][1]
    assert figures.precision_recall(entries[:2], Palette(entries)) == ""
    tags = summary([replace(row, f1=None, precision=None, recall=None) for row in rows])
    assert figures.precision_recall(tags, Palette(tags)) == ""


def test_every_learner_at_a_glance() -> None:
    """A line for each, the best first, of the largest size alone; a paper's figure is a hollow mark."""
    rows = [
        replace(ROW, learner="hmm", f1=0.3),
        ROW,
        replace(ROW, features="S2", f1=0.4),
        replace(ROW, sentences=5),
    ]
    entries = summary(rows)
    for entry in entries:
        if entry["learner"] == "hmm":
            entry["f1_published"] = 45.0
    both = figures.at_a_glance(entries, Palette(entries))
    wide, slim = both.split('<div class="slim">')
    assert re.findall(r'class="row">(.*?)<', slim) == ["crf", "hmm"]
    assert slim.count("class='mark'") == 4
    assert max(float(x) for x in re.findall(r'x2="([\d.]+)"', slim)) < 390  # for a phone, in its own pixels
    drawing = wide
    assert re.findall(r'class="row end">(.*?)<', drawing) == ["crf", "hmm"]
    assert drawing.count("class='mark'") == 4
    assert drawing.count('fill="none"') == 1
    assert "hmm, S1: 45.00 in the paper" in drawing
    assert drawing.count('class="range"') == 1  # two feature sets of the CRF


def test_colours_and_shapes_are_one_a_name() -> None:
    """Known learners have their colours, others spare ones that nobody has; each feature set has a shape."""
    names = ("crf", "one", "two", "hmm")
    entries = summary([replace(ROW, learner=name, features=f"F{i}") for i, name in enumerate(names)])
    palette = Palette(entries)
    colours = [palette.colour(name) for name in names]
    assert colours[0] == figures.COLOURS["crf"]
    assert len(set(colours)) == 4
    assert [palette.shape(f"F{i}") for i in range(4)] == list(svg.SHAPES[:4])
    legend = palette.legend()
    assert re.findall(r'data-series="(.*?)"', legend) == list(names)
    assert ("published" in legend, "published" in palette.legend(True)) == (False, True)


def test_margins_and_ranks_are_drawn() -> None:
    """Where a comparison has them: a curve a learner; what lies beyond either end is in the last bins."""
    from types import SimpleNamespace

    palette = figures.Palette([{"learner": "crf", "features": "S1"}, {"learner": "mira", "features": "S1"}])
    detail = {"margins": [-1.0, 0.5, None, 2.0, 3.0], "ranks": [3, 0, -1, 0, 0], "k": 5}
    rows = [(SimpleNamespace(learner=name, features="S1", margin=0.5), detail) for name in ("crf", "mira")]
    for draw in (figures.margins, figures.ranks):
        drawing = draw(rows, palette, "S1")
        assert 'data-series="crf"' in drawing
        assert 'data-series="mira"' in drawing
        assert draw(rows, palette, "S2") == ""
        assert draw([(rows[0][0], {})], palette, "S1") == ""
    assert "60.0 % of the gold paths among the 5 best" not in figures.ranks(rows, palette, "S1")
    assert "80.0 % of the gold paths among the 5 best" in figures.ranks(rows, palette, "S1")
    assert sum(share for _, share in figures.binned([1.0, 2.0, 7.0, -50.0], bins=3, kept=0.25)) == 1.0
    assert figures.binned([2.0, 2.0]) == [(2.0, 1.0)]
    assert figures.binned([]) == []

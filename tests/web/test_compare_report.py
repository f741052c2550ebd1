"""The report of a comparison in Chromium, controlled by Playwright. Skipped if either is not installed."""

from __future__ import annotations

import itertools
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from importlib import util
from pathlib import Path
from typing import Any

import pytest

import tagwise as tw
from tagwise.apps.compare import Comparison
from tagwise.apps.compare.report.html import write
from tagwise.apps.compare.report.sentences import correct_sentences
from tagwise.base.colours import PALETTE
from tagwise.evaluation.errors import Group

api = pytest.importorskip(
    "playwright.sync_api", reason="playwright is not installed: make test-browser has it"
)
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="there is no chromium here")

COMMAND = "tagwise compare --report page.html"
SIZES = {"phone": {"width": 390, "height": 844}, "desktop": {"width": 1280, "height": 900}}
HOSTILE = "<img src=x onerror=\"document.title='pwned'\">"


@pytest.fixture(scope="module")
def table() -> Comparison:
    """Return a comparison of spans with two sizes, and one of tokens."""
    train, _, test = tw.load_corpus("wnut17-ner")
    pos, _, pos_test = tw.load_corpus("ewt-pos")
    return tw.compare(
        ["perceptron", "mira", "pa"],
        corpus={"ner": (train[:800], test[:150]), "pos": (pos[:250], pos_test[:60])},
        features=["S3"],
        sizes=[100, 250],
        params={"max_iter": 4},
        n_jobs=1,
        against="mira",
        title="Report",
    )


@pytest.fixture(scope="module")
def address(table: Comparison, tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("report") / "page.html"
    write(table, path, COMMAND)
    return path.as_uri()


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with api.sync_playwright() as play:
        launched = play.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield launched
        launched.close()


@contextmanager
def visit(browser: Any, address: str, size: str = "desktop", **settings: Any) -> Iterator[Any]:
    """Open a page. Script errors, console messages and requests other than for the page itself fail the test."""
    context = browser.new_context(viewport=SIZES[size], **settings)
    page, problems = context.new_page(), []
    page.set_default_timeout(180_000)  # browsers are slow on a busy machine
    page.on("console", lambda message: problems.append(message.text))
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.on("request", lambda sent: problems.append(sent.url) if sent.url.split("#")[0] != address else None)
    page.goto(address)
    if settings.get("java_script_enabled", True):
        page.wait_for_selector("html[data-ready]", state="attached")
    yield page
    context.close()
    assert problems == []


# --- the answer -------------------------------------------------------------------------------------------------


def test_page_begins_with_answers_and_origin(browser: Any, address: str) -> None:
    """One sentence per corpus comes right after the title, then command, date, version and machine, on one screen."""
    with visit(browser, address) as page:
        answers = page.locator("h1 + .answers li").all_inner_texts()
        assert [text.split()[0] for text in answers] == ["ner", "pos"]
        for text in answers:
            assert re.search(
                r"is best: [\d.]+\s% .* behind \(p|cannot be told apart by (F1|accuracy) \(p", text
            )
        terms = page.locator(".answers + .origin dt").all_inner_texts()
        assert terms == ["Command", "Date", "Version", "Machine"]
        values = page.locator(".origin dd").all_inner_texts()
        assert values[0] == COMMAND
        assert re.match(r"\d{4}-\d\d-\d\d \d\d:\d\d", values[1])
        assert tw.__version__ in values[2]
        box = page.locator(".origin").bounding_box()
        assert box["y"] + box["height"] < SIZES["desktop"]["height"]


def test_every_score_has_an_interval(browser: Any, address: str, table: Comparison) -> None:
    """Scores of the table and bars have the intervals of the comparison."""
    with visit(browser, address) as page:
        for number, corpus in enumerate(("ner", "pos")):
            entries = sorted(
                (e for e in table.summary() if e["corpus"] == corpus),
                key=lambda e: -(e["f1"] if corpus == "ner" else e["accuracy"]),
            )
            rows = page.locator(f"#c-{number} table.runs tbody tr")
            heads = [h.strip() for h in page.locator(f"#c-{number} table.runs thead th").all_inner_texts()]
            assert rows.count() == len(entries)
            for column, key in (("F1", "f1"), ("accuracy", "accuracy"), ("sequences", "sequence_accuracy")):
                if column not in heads:
                    continue
                cells = page.locator(
                    f"#c-{number} table.runs tbody tr > :nth-child({heads.index(column) + 1})"
                )
                for entry, text in zip(entries, cells.all_inner_texts()):
                    low, high = table.intervals(entry)[key]
                    assert text.split("\n") == [
                        f"{100 * entry[key]:.2f}",
                        f"{100 * low:.1f} to {100 * high:.1f}",
                    ]


def test_bars_are_proportional_or_marked_as_cut(browser: Any, address: str, table: Comparison) -> None:
    """A bar has the length of its score on the axis. An axis that does not begin at zero is marked and described."""
    with visit(browser, address) as page:
        for number, corpus in enumerate(("ner", "pos")):
            figure = page.locator(f"#c-{number} figure.wide")
            cut = re.search(r"begin at ([\d.]+) %, not at zero", figure.inner_text())
            assert figure.locator(".track.cut").count() == (figure.locator("li").count() if cut else 0)
            first = float(cut[1]) if cut else 0.0
            lengths = figure.locator("li").evaluate_all(
                "bars => bars.map(b => [parseFloat(b.querySelector('.value').firstChild.textContent), "
                "b.querySelector('i').offsetWidth / b.querySelector('.track').offsetWidth])"
            )
            assert len(lengths) == len({e["learner"] for e in table.summary() if e["corpus"] == corpus})
            top_score, top_length = max(lengths)
            for score, length in lengths:
                assert length == pytest.approx(top_length * (score - first) / (top_score - first), abs=0.01)
            if first == 0.0:
                assert figure.locator(".scale span").first.inner_text() == "0"


def test_every_point_is_named_without_overlap(browser: Any, address: str) -> None:
    """Each run in a scatter chart has a name inside the drawing, and no two names overlap."""
    with visit(browser, address, "phone") as page:
        charts = page.locator("figure", has_text="against training time").all()
        assert len(charts) == 2
        for chart in charts:
            marks = chart.locator("svg g[data-series] > title").count()
            names = chart.locator("svg text.label").evaluate_all(
                "all => all.map(n => n.firstChild.textContent)"
            )
            assert marks == len(names) == 3
            assert set(names) == {"perceptron", "mira", "pa"}
            boxes = [label.bounding_box() for label in chart.locator("svg text.label").all()]
            frame = chart.bounding_box()
            for box in boxes:
                assert frame["x"] <= box["x"]
                assert box["x"] + box["width"] <= frame["x"] + frame["width"]
            for a, b in itertools.combinations(sorted(boxes, key=lambda box: box["y"]), 2):
                assert a["y"] + 0.75 * a["height"] <= b["y"]


def test_ticks_are_at_the_sizes(browser: Any, address: str) -> None:
    """The learning curve has ticks at the numbers of sentences that were trained on, and nowhere else."""
    with visit(browser, address) as page:
        for chart in page.locator("figure", has_text="Learning curve").all():
            ticks = chart.locator("svg text.tick.middle").all_text_contents()
            assert sorted(ticks, key=int) == ["100", "250"]


# --- errors and models ------------------------------------------------------------------------------------------


def test_errors_are_grouped_and_filtered(browser: Any, address: str, table: Comparison) -> None:
    """Groups are those of `tagwise errors`. Filters by kind, type and text leave the matching ones."""
    with visit(browser, address) as page:
        chosen = page.locator("#c-0 .pick-model").input_value()
        detail = table.details[int(chosen.removeprefix("m-"))]
        assert detail is not None
        model = page.locator(f"#{chosen}")
        groups = model.locator(".group")
        titles = groups.locator("summary").evaluate_all(
            "all => all.map(s => s.childNodes[1].textContent.trim())"
        )
        expected = [Group(kind, gold, predicted).title for kind, gold, predicted, _ in detail["errors"]]
        assert titles == expected[: len(titles)]
        assert len(titles) >= min(10, len(expected))
        counts = groups.locator("summary b").all_inner_texts()
        assert [int(n.replace(",", "")) for n in counts] == [n for *_, n in detail["errors"][: len(titles)]]
        model.locator(".filter-kind").select_option("missed")
        visible = groups.locator("visible=true >> summary").all_inner_texts()
        assert visible
        assert all("missed" in text for text in visible)
        model.locator(".filter-kind").select_option("")
        model.locator(".filter-type").select_option("person")
        visible = groups.locator("visible=true >> summary").all_inner_texts()
        assert visible
        assert all("person" in text for text in visible)
        model.locator(".filter-type").select_option("")
        word = model.locator(".group li mark").first.inner_text().split()[0]
        model.locator(".filter-text").fill(word)
        lines = model.locator(".group li").locator("visible=true").all_inner_texts()
        assert lines
        assert all(word in line for line in lines)
        model.locator(".filter-text").fill("")
        assert groups.locator("visible=true >> summary").count() == groups.count()


def test_two_models_are_compared_by_sentence(browser: Any, address: str, table: Comparison) -> None:
    """The verdict has the counts of all test sentences, and the cards are those that fit the choice."""
    rows = [i for i, r in enumerate(table.rows) if r.corpus == "ner" and r.sentences == 250]
    correct = {}
    for i in rows:
        detail = table.details[i]
        assert detail is not None
        correct[table.rows[i].learner] = correct_sentences(detail, True)
    with visit(browser, address) as page:
        block = page.locator("#v-0")
        for one, other in itertools.permutations(correct, 2):
            block.locator(".pick-one").select_option(label=one)
            block.locator(".pick-other").select_option(label=other)
            pairs = list(zip(correct[one], correct[other]))
            only = [sum(a and not b for a, b in pairs), sum(b and not a for a, b in pairs)]
            same = [sum(a and b for a, b in pairs), sum(not a and not b for a, b in pairs)]
            verdict = block.locator(".verdict").inner_text()
            assert verdict.startswith(
                f"{one} alone is right in {only[0]} sentences, {other} alone in {only[1]}, both in {same[0]}, "
                f"neither in {same[1]}."
            )
            for which, expected in (
                ("differ", sum(only)),
                ("one", only[0]),
                ("other", only[1]),
                ("none", same[1]),
            ):
                block.locator(".pick-which").select_option(which)
                cards = block.locator(".sentence").locator("visible=true")
                assert cards.count() <= expected
                assert cards.count() > 0 or expected == 0
                for card in cards.all():
                    good = card.locator(".good b").locator("visible=true").all_inner_texts()
                    bad = card.locator(".bad b").locator("visible=true").all_inner_texts()
                    assert {*good, *bad} == {one, other}
                    assert {
                        "differ": len(good) == len(bad) == 1,
                        "one": good == [one],
                        "other": good == [other],
                        "none": not good,
                    }[which]


def test_confusions_are_shares_of_types(browser: Any, address: str) -> None:
    """Rows of spans are types in percent that sum to 100, without O and without B- and I-."""
    with visit(browser, address) as page:
        matrix = page.locator("#c-0 .model >> visible=true >> table.confusion").first
        heads = matrix.locator("thead th").all_inner_texts()
        assert "person" in heads
        assert not any(head == "O" or head.startswith(("B-", "I-")) for head in heads)
        rows = matrix.locator("tbody tr").evaluate_all(
            "rows => rows.map(r => [...r.cells].slice(1, -1).map(c => Number(c.textContent.replace(/[<>]/, ''))))"
        )
        assert rows
        for row in rows:
            assert sum(row) == pytest.approx(100, abs=4)


def test_training_curves_are_folded(browser: Any, address: str) -> None:
    """They are hidden until their heading is clicked."""
    with visit(browser, address) as page:
        fold = page.locator("#c-0 details.fold")
        assert not fold.locator("svg").first.is_visible()
        fold.locator("summary").click()
        assert fold.locator("svg").first.is_visible()


def test_table_links_to_models(browser: Any, address: str) -> None:
    """A click on a learner shows its panel and no other one of the corpus."""
    with visit(browser, address) as page:
        link = page.locator("#c-0 table.runs a").last
        target = link.get_attribute("href")
        link.click()
        page.locator(target).wait_for(state="visible")
        assert page.locator("#c-0 details.model").locator("visible=true").count() == 1
        assert page.locator("#c-0 .pick-model").input_value() == target[1:]


# --- phones, colours, words -------------------------------------------------------------------------------------


def test_phone_layout(browser: Any, address: str) -> None:
    """The first column stays while the table scrolls, the score is next to it, and cards are two by two."""
    with visit(browser, address, "phone") as page:
        assert page.evaluate("document.documentElement.scrollWidth") <= SIZES["phone"]["width"]
        first, second = (
            page.locator(f"#c-0 table.runs tbody tr:first-child > :nth-child({n})") for n in (1, 2)
        )
        assert page.locator("#c-0 table.runs thead th").nth(1).inner_text().strip() == "F1"
        before, score = first.bounding_box(), second.bounding_box()
        assert score["x"] + score["width"] <= SIZES["phone"]["width"]
        assert before["width"] >= 80
        page.locator("#c-0 .scroll").first.evaluate("box => { box.scrollLeft = 200; }")
        assert first.bounding_box()["x"] == pytest.approx(before["x"], abs=1)
        assert second.bounding_box()["x"] < score["x"] - 100
        cards = [card.bounding_box() for card in page.locator("#c-0 .card").all()]
        assert len({round(card["x"]) for card in cards}) == len({round(card["y"]) for card in cards}) == 2


def test_times_and_words(browser: Any, address: str) -> None:
    """Short times are in milliseconds, and nothing is called a cell."""
    with visit(browser, address) as page:
        page.evaluate("for (const part of document.querySelectorAll('details')) part.open = true")
        text = page.locator("body").inner_text()
        assert re.search(r"\d ms", text)
        assert not re.search(r"(?<![\d.])0\.0+ s\b", text)
        assert not re.search(r"\bcells?\b", text)


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_labels_keep_their_colours(browser: Any, address: str, theme: str) -> None:
    """A label has one colour in all sentences, errors and tables of a corpus, and labels have different ones."""
    with visit(browser, address, color_scheme=theme) as page:
        colours: dict[str, set[str]] = {}
        for number in (0, 1):
            found = page.locator(f"#c-{number} mark").evaluate_all(
                "marks => marks.map(m => [m.querySelector('sub').textContent, getComputedStyle(m).backgroundColor])"
            )
            for label, colour in found:
                colours.setdefault(f"{number} {label}", set()).add(colour)
        assert len(colours) > 8
        assert all(len(values) == 1 for values in colours.values())
        mine = [values for label, values in colours.items() if label.startswith("0")]
        assert 4 <= len(set.union(*mine)) == len(mine) <= len(PALETTE)


# --- robustness -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", list(SIZES))
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_page_is_accessible(browser: Any, address: str, size: str, theme: str) -> None:
    """axe-core reports no violations, with everything opened."""
    spec = util.find_spec("axe_playwright_python")
    if spec is None or spec.origin is None:
        pytest.skip("axe-core is not installed: make test-browser has it")
    with visit(browser, address, size, color_scheme=theme) as page:
        page.evaluate("for (const part of document.querySelectorAll('details')) part.open = true")
        page.evaluate(Path(spec.origin).with_name("axe.min.js").read_text(encoding="utf-8"))
        violations = page.evaluate(
            "axe.run().then(r => r.violations.map(v => [v.id, v.nodes[0].html, v.nodes[0].failureSummary]))"
        )
        assert violations == []


def test_page_without_scripts(browser: Any, address: str) -> None:
    """Answers, tables, charts, errors and sentences are readable, and no control is shown that does nothing."""
    with visit(browser, address, java_script_enabled=False) as page:
        for part in (".answers li", "table.runs td", "svg.chart", ".sentence mark", ".versus table td"):
            assert page.locator(part).first.is_visible()
        assert not page.locator("#theme").is_visible()
        assert page.locator("select, input").count() == 0
        model = page.locator("details.model").last
        model.locator("> summary").click()
        model.locator(".group summary").first.click()
        assert model.locator(".group li mark").first.is_visible()


def test_hostile_text_is_displayed(browser: Any, tmp_path: Path) -> None:
    """Markup in tokens, labels, and names of corpora and learners is shown as text and never becomes elements."""
    words = [[HOSTILE, "b", "c"], ["b", HOSTILE, "c"]] * 6
    train = tw.Corpus.from_lists(words, [[f"B-{HOSTILE}", "O", "O"], ["O", f"B-{HOSTILE}", "O"]] * 6)
    test = tw.Corpus.from_lists(words, [["O", "B-</script><i>", "O"], ["O", "O", f"B-{HOSTILE}"]] * 6)
    table = tw.compare(
        ["perceptron", "hmm"],
        corpus={HOSTILE: (train, test)},
        features=["S1"],
        n_jobs=1,
        title=HOSTILE,
        caption=HOSTILE,
    )
    table.rows = [replace(row, learner=row.learner + HOSTILE) for row in table.rows]
    path = tmp_path / "page.html"
    write(table, path, HOSTILE)
    with visit(browser, path.as_uri()) as page:
        assert page.locator("img, main i:not(.swatch):not([style])").count() == 0
        assert page.title() == HOSTILE
        assert HOSTILE in page.locator("h1").inner_text()
        assert page.locator("mark", has_text="<img").count() > 0
        assert HOSTILE in page.locator(".origin code").inner_text()

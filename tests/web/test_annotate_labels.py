"""Label types on the labelling page: adding, renaming, deleting, order, colours, keys, descriptions, guidelines."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import tagwise as tw
from tests.web.annotate_session import TEXT
from tests.web.browser import accept, needs_browser, server, spans, text_file, visit

pytestmark = needs_browser
OPTIONS = ("--format", "text", "--strategy", "order", "--labels", "PER,LOC")
TYPES = [f"TYPE{k:02d}" for k in range(1, 25)]


def names(page: Any) -> list[str]:
    """Return the labels of the bar."""
    found: list[str] = page.eval_on_selector_all(
        "#labels .label span", "found => found.map(e => e.textContent)"
    )
    return found


def row(page: Any, label: str) -> Any:
    """Return the row of a label in the dialog."""
    return page.locator("#labellist li").filter(has=page.locator(f"[aria-label='Name of {label}']"))


def until(page: Any, labels: list[str]) -> None:
    """Wait until the bar has these labels."""
    page.wait_for_function(
        "want => [...document.querySelectorAll('#labels .label span')].map(e => e.textContent).join() === want",
        arg=",".join(labels),
    )


def test_labels_are_renamed_merged_deleted_and_moved(tmp_path: Path, chromium: Any) -> None:
    """Labels of accepted sentences follow, and the folder has them after a restart."""
    work = tmp_path / "w"
    with server(work, text_file(tmp_path), *OPTIONS) as (url, _), visit(chromium, url) as page:
        for _ in range(2):
            page.keyboard.press("Home")
            page.keyboard.press("1")
            page.keyboard.press("End")
            page.keyboard.press("2")
            accept(page)
        page.keyboard.press("1")  # a draft with the old name
        page.click("#manage")
        page.wait_for_function("() => document.querySelector('.used').textContent === '2 spans'")
        row(page, "PER").locator(".name").fill("PERSON")
        row(page, "PER").locator(".name").press("Enter")
        until(page, ["PERSON", "LOC"])
        row(page, "LOC").get_by_label("Move LOC up").click()
        until(page, ["LOC", "PERSON"])
        page.fill("#newlabel", "ORG")
        page.press("#newlabel", "Enter")
        until(page, ["LOC", "PERSON", "ORG"])
        row(page, "LOC").locator(".name").fill("ORG")
        row(page, "LOC").locator(".name").press("Enter")
        page.wait_for_function("() => document.getElementById('labelstatus').textContent.includes('again')")
        row(page, "LOC").locator(".name").press("Enter")
        until(page, ["ORG", "PERSON"])
        page.keyboard.press("Escape")
        page.click("#list-done")
        page.wait_for_function(
            "want => [...document.querySelectorAll('#rows .mini b')].map(e => e.textContent).join() === want",
            arg="PERSON,ORG,PERSON,ORG",
        )
        assert (TEXT[2][0], "PERSON") in spans(page)
    with server(work) as (url, _), visit(chromium, url) as page:
        assert names(page) == ["ORG", "PERSON"]
        page.click("#manage")
        page.wait_for_function("() => document.querySelector('.used').textContent === '2 spans'")
        row(page, "ORG").get_by_label("Delete ORG").click()
        assert row(page, "ORG").get_by_label("Delete ORG").inner_text() == "Delete 2 spans?"
        row(page, "ORG").get_by_label("Delete ORG").click()
        until(page, ["PERSON"])
        page.keyboard.press("Escape")
        page.click("#tab-files")
        with page.expect_download() as download:
            page.click("#exports a:has-text('conll')")
        download.value.save_as(tmp_path / "out.tsv")
    assert tw.read(tmp_path / "out.tsv").labels == [["B-PERSON", "O", "O", "O", "O"]] * 2


def test_a_label_exists_once_and_has_no_prefix(tmp_path: Path, chromium: Any) -> None:
    with (
        server(tmp_path / "w", text_file(tmp_path), *OPTIONS) as (url, _),
        visit(chromium, url, refused=3) as page,
    ):
        page.keyboard.press("n")
        for name, said in (("PER", "already"), ("B-ORG", "no prefix"), ("two words", "Use 'two_words'")):
            page.fill("#newlabel", name)
            page.press("#newlabel", "Enter")
            page.wait_for_function(
                "t => document.getElementById('labelstatus').textContent.includes(t)", arg=said
            )
        assert names(page) == ["PER", "LOC"]


def test_colour_key_and_description_are_kept(tmp_path: Path, chromium: Any) -> None:
    work = tmp_path / "w"
    with server(work, text_file(tmp_path), *OPTIONS) as (url, _), visit(chromium, url) as page:
        page.click("#manage")
        row(page, "LOC").get_by_label("Colour of LOC").select_option("7")
        page.wait_for_selector("#labels .c7")
        row(page, "LOC").get_by_label("Key of LOC").select_option("q")
        page.wait_for_function("() => document.querySelectorAll('#labels kbd')[1].textContent === 'q'")
        row(page, "LOC").get_by_label("Description of LOC").fill("Places on a map")
        row(page, "LOC").get_by_label("Description of LOC").press("Tab")
        page.wait_for_selector("#labels [title='Places on a map']")
    with server(work) as (url, _), visit(chromium, url) as page:
        assert page.locator("#labels .c7[title='Places on a map']").count() == 1
        page.keyboard.press("q")
        assert spans(page) == [(TEXT[0][0], "LOC")]


def test_the_key_of_a_label_is_shown_if_it_is_not_chosen(tmp_path: Path, chromium: Any) -> None:
    with server(tmp_path / "w", text_file(tmp_path), *OPTIONS) as (url, _), visit(chromium, url) as page:
        page.click("#manage")
        shown = [
            page.get_by_label(f"Key of {name}").evaluate("e => e.selectedOptions[0].textContent")
            for name in ("PER", "LOC")
        ]
        assert shown == ["key 1", "key 2"]


def test_twenty_four_labels_have_colours_and_keys_of_their_own(tmp_path: Path, chromium: Any) -> None:
    options = ("--format", "text", "--labels", ",".join(TYPES))
    with server(tmp_path / "w", text_file(tmp_path), *options) as (url, _), visit(chromium, url) as page:
        keys = page.eval_on_selector_all("#labels kbd", "found => found.map(e => e.textContent)")
        assert len(set(keys)) == 24
        for k in (0, 9, 23):
            page.keyboard.press("Home")
            page.keyboard.press(keys[k])
            assert spans(page)[0][1] == TYPES[k]
        colours = page.eval_on_selector_all(
            "#labels .label", "found => found.map(e => getComputedStyle(e).backgroundColor)"
        )
        assert len(set(colours)) == 24


def test_guidelines_are_shown_beside_the_sentence(tmp_path: Path, chromium: Any) -> None:
    """Markdown becomes elements, markup in it is text, and the sentence stays visible."""
    path = tmp_path / "rules.md"
    path.write_text(
        "# Names\n\nLabel **full** names, *not* titles: `Mr`.\n\n- one\n- two\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n"
        "<script>window.hit = 1</script>\n\n[a link](https://example.org)\n"
    )
    options = (*OPTIONS, "--guidelines", str(path))
    with (
        server(tmp_path / "w", text_file(tmp_path), *options) as (url, _),
        visit(chromium, url, viewport={"width": 1400, "height": 800}) as page,
    ):
        page.keyboard.press("g")
        page.wait_for_selector("#guidelines h2")
        assert page.inner_text("#guidelines h2") == "Names"
        for found in ("strong", "em", "code", "li", "td"):
            assert page.locator(f"#guidelines {found}").count()
        assert page.locator("#guidelines script, #guidelines a").count() == 0
        assert "<script>" in page.inner_text("#guidelines")
        assert page.evaluate("window.hit") is None
        side, sentence = (page.locator(name).bounding_box() for name in ("#guidelines", "#sentence"))
        assert sentence["x"] + sentence["width"] <= side["x"]
        path.write_text("# Changed\n")
        page.keyboard.press("g")
        page.keyboard.press("g")
        page.wait_for_function("() => document.querySelector('#guidelines h2')?.textContent === 'Changed'")


def test_labels_of_a_model_are_mapped_to_those_of_the_project(tmp_path: Path, chromium: Any) -> None:
    tokens = list(TEXT[:8])
    labels = [["B-person", "O", "O", "B-location", "B-other"]] * 8
    tw.MIRA(max_iter=5, n_jobs=1).fit(tokens, labels).save(tmp_path / "m.tagwise")
    options = ("--format", "text", "--strategy", "order", "--labels", "PER,LOC")
    given = ("--model", str(tmp_path / "m.tagwise"), "--map-labels", "person=PER,location=LOC")
    with (
        server(tmp_path / "w", text_file(tmp_path), *options, *given) as (url, _),
        visit(chromium, url) as page,
    ):
        assert names(page) == ["PER", "LOC"]
        assert spans(page) == [(TEXT[0][0], "PER"), (TEXT[0][3], "LOC")]
        for _ in range(6):
            accept(page)
        assert spans(page) == [(TEXT[6][0], "PER"), (TEXT[6][3], "LOC")]

"""Pages that cite the study say what its JSON says, and drawings are those that are drawn."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import pytest
from benchmarks import cited, drawings, study

KNOWN = study.tables()


def test_pages_and_charts_are_what_the_json_says() -> None:
    """Tables, figures in the text and charts; `python -m benchmarks.cited` writes them."""
    for path, text in cited.files(KNOWN).items():
        assert path.read_text("utf-8") == text, path


@pytest.mark.parametrize("page", cited.PAGES)
def test_no_mark_is_left_open(page: str) -> None:
    """Every beginning of a table or a figure is one that was understood."""
    text = (cited.ROOT / page).read_text("utf-8")
    assert text.count("<!-- cut ") == len(cited.CUT.findall(text)) > 0
    assert text.count("<!-- fig ") == len(cited.FIGURE.findall(text))


def test_what_is_not_there_is_an_error() -> None:
    """A row, a column or a table of another name is not passed over."""
    with pytest.raises(StopIteration):
        cited.figure("sizes-tags; no such learner; 300", KNOWN)
    with pytest.raises(ValueError, match="no such column"):
        cited.figure("sizes-tags; crf; no such column", KNOWN)
    with pytest.raises(KeyError):
        cited.cut("no-such-table; learner", KNOWN)
    assert cited.written("<!-- fig sizes-tags; crf; 300 -->?<!-- / -->", KNOWN) == (
        f"<!-- fig sizes-tags; crf; 300 -->{KNOWN['sizes-tags']['rows'][0][1].split()[0]}<!-- / -->"
    )


def test_drawings_are_drawn_as_they_are() -> None:
    """The files of docs/engine.md, figures aside; they are XML, with a title for those who do not see them."""
    for name, draw in drawings.DRAWINGS.items():
        there, here = (drawings.FOLDER / f"{name}.svg").read_text("utf-8"), draw()
        assert re.sub(r"[\d.]+", "#", there) == re.sub(r"[\d.]+", "#", here), name
        assert ElementTree.fromstring(here)[0].tag.endswith("title")

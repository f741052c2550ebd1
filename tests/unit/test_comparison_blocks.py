"""A comparison at any width: one block per corpus, complete figures, distinct rows, omitted columns named."""

from __future__ import annotations

import io
import itertools
import re
from dataclasses import replace

import pytest
from rich.console import Console

from tagwise.apps.compare import Comparison, Row
from tagwise.apps.compare.blocks import comparison_blocks
from tagwise.base.terminal import as_text

WIDTHS = (60, 80, 100, 160)
BASE = Row("news", "crf", "log", "S1", 12345, 0, 0.98765, 0.87654, 0.76543, 1234567, 100, 1234.5)
BASE = replace(BASE, precision=0.2, recall=0.4, passes=123, cpu=2345.6, memory=1234 << 20)
#: Two corpora, one of them without spans, two seeds, long names, a learner with two losses.
ROWS = [
    replace(
        BASE,
        corpus=corpus,
        learner=learner,
        features=features,
        loss=loss,
        seed=seed,
        accuracy=0.9 + 0.01 * seed,
        f1=None if corpus == "ewt-pos" else 0.5 + 0.02 * seed,
    )
    for corpus, (learner, loss), features, seed in itertools.product(
        ("ewt-pos", "my corpus [red].txt"),
        (
            ("hmm", ""),
            ("crf", "log"),
            ("crf", "exp"),
            ("mira(k=10, cost=precision_recall(0.25), average=false)", ""),
        ),
        ("S1", "S3"),
        (0, 1),
    )
]
TABLE = Comparison(ROWS, title="T", caption="C", hidden=())


def lines(width: int | None) -> list[str]:
    """Return the printed lines of the table, with all its columns if `width` is None."""
    text = (
        as_text(comparison_blocks(*TABLE.sheet(), title=TABLE.title, caption=TABLE.caption), 10_000)
        if width is None
        else as_text(TABLE, width)
    )
    return text.splitlines()


def shown(width: int | None) -> list[str]:
    """Return the names of the displayed columns, derived from the list of omitted ones."""
    head = [name for name in TABLE.sheet()[0] if name != "corpus"]
    text = " ".join(lines(width))
    found = re.search(r"omitted at this width: (.*?) \(--wide shows them\)", text)
    gone = re.split(r", (?!paper|against)", found[1]) if found else []
    assert set(gone) <= set(head)
    return [name for name in head if name not in gone]


@pytest.mark.parametrize("width", [*WIDTHS, None])
def test_figures_are_never_truncated(width: int | None) -> None:
    """Figures are in their row in column order. No line exceeds the width or ends in an ellipsis."""
    text = lines(width)
    assert width is None or max(map(len, text)) <= width
    assert not any("…" in line for line in text)
    names = shown(width)
    head, body = TABLE.sheet()
    figures = [
        n for n in names if n not in ("learner", "loss", "features", "sentences")
    ]  # sentences is equal everywhere
    at = 0
    for row in body:
        cells = dict(zip(head, row))
        expected = " +".join(re.escape(cells[n]) for n in figures if cells[n])
        at = next(i for i in range(at, len(text)) if re.search(rf"(?<![\d.]){expected}$", text[i])) + 1


@pytest.mark.parametrize("width", WIDTHS)
def test_rows_are_distinguishable_at_every_width(width: int) -> None:
    """A column that alone distinguishes two rows is shown at every width."""
    assert {"learner", "features", "loss"} <= set(shown(width))


@pytest.mark.parametrize("width", WIDTHS)
def test_terminal_and_pipe_output_are_equal(width: int) -> None:
    """Except for colours and trailing spaces."""
    out = io.StringIO()
    Console(file=out, width=width, force_terminal=True, color_system="standard").print(TABLE)
    plain = re.sub(r"\x1b\[[0-9;]*m", "", out.getvalue())
    assert [line.rstrip() for line in plain.splitlines()] == lines(width)

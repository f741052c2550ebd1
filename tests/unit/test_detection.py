"""Format detection by the first lines: a fault in them is reported, never taken for another format."""

from __future__ import annotations

import functools
import io
import random
from pathlib import Path

import pytest
from click.testing import CliRunner

import tagwise as tw
from tagwise.base.exceptions import CorpusError
from tagwise.cli.app import cli
from tagwise.corpus.formats import open_sentences

ROWS = [
    ["EU", "NNP", "B-ORG"],
    ["rejects", "VBZ", "O"],
    ["German", "JJ", "B-MISC"],
    ["call", "NN", "O"],
    ["to", "TO", "O"],
    ["boycott", "VB", "O"],
]


def as_text(rows: list[list[str]], sentences: int = 1) -> str:
    return ("\n".join(" ".join(row) for row in rows) + "\n\n") * sentences


@pytest.mark.parametrize("sentences", [0, 20])
@pytest.mark.parametrize("columns", [2, 3])
@pytest.mark.parametrize("change", [-1, 2])
@pytest.mark.parametrize("at", [0, 3, 5])
def test_ragged_rows_are_reported_by_line(at: int, change: int, columns: int, sentences: int) -> None:
    """At any place in the first sentence, with a cell missing or too many, the error gives its line number."""
    sound = [row[-columns:] if columns == 2 else row for row in ROWS]
    rows = [list(row) for row in sound]
    rows[at] = rows[at][:-1] if change < 0 else rows[at] + ["extra"] * change
    text = as_text(rows) + as_text(sound, sentences)
    with pytest.raises(CorpusError, match=rf"<stream>:{at + 1}: {columns + change} column.*format='conll'"):
        tw.read(io.StringIO(text))
    assert len(tw.read(io.StringIO(text), "text")) == 6 * (1 + sentences)  # an explicit format is respected


@pytest.mark.parametrize("at", [1, 2, 5])
def test_ragged_row_in_a_single_column_file(at: int) -> None:
    """A row of two columns in a file of one."""
    rows = [[row[0]] for row in ROWS]
    rows[at].append("extra")
    with pytest.raises(
        CorpusError, match=rf"<stream>:{at + 1}: 2 columns in '\w+ extra', but most .* have 1"
    ):
        tw.read(io.StringIO(as_text(rows) + as_text([[row[0]] for row in ROWS])))


def test_ragged_rows_after_the_first_sentence_are_reported() -> None:
    """In a later sentence, and after the lines used for detection."""
    for before in (1, 100):
        text = as_text(ROWS, before) + "a NN\n\n"
        with pytest.raises(CorpusError, match=rf"<stream>:{7 * before + 1}: "):
            tw.read(io.StringIO(text))


@pytest.mark.parametrize("space", ["\u2028", "\x0b", "\x1c", "\u3000", "\xa0"])
def test_other_white_space_is_not_a_separator(space: str) -> None:
    """A row whose cells are separated by other white space than a space or a tab lacks a cell and is reported."""
    rows = [list(row) for row in ROWS]
    rows[2] = [f"German{space}JJ", "B-MISC"]
    with pytest.raises(CorpusError, match=r"<stream>:3: 2 columns"):
        tw.read(io.StringIO(as_text(rows)))


@functools.cache
def sentences_of_a_corpus() -> list[tw.Sentence]:
    corpus = tw.load_corpus("ewt-pos")[2]
    assert corpus is not None
    return list(corpus)


@pytest.mark.parametrize("seed", range(20))
def test_natural_text_is_detected_as_text(seed: int) -> None:
    """Natural sentences, short and long, with and without blank lines between paragraphs."""
    draw = random.Random(seed)
    chosen = draw.sample(sentences_of_a_corpus(), draw.choice([1, 2, 3, 4, 8, 40]))
    sentences = [s for s in chosen if len({len(x) for x in chosen}) > 1]
    if not sentences:
        return
    text = "".join(" ".join(s.tokens) + "\n" * draw.choice([1, 1, 2]) for s in sentences)
    assert open_sentences(io.StringIO(text))[0] in ("text", "raw")


@pytest.mark.parametrize(
    "text",
    [
        "the cat sat\nthe dog\na man ran\n",
        "hello there\nhow are you\n\nfine thanks\n",
        "yes\nno thanks\nyes\nno\nmaybe\nyes\nyes\n",
        "a b c .\nd e .\n",
        "London\nNew York\n",
    ],
)
def test_short_texts_are_detected_as_text(text: str) -> None:
    """A few lines are not enough evidence of columns. Text without standing punctuation is not tokenized."""
    assert open_sentences(io.StringIO(text))[0] == ("text" if " .\n" in text else "raw")


def test_tag_reports_ragged_rows_by_line(tmp_path: Path) -> None:
    """`tag` fails with the line number instead of tagging rows as if they were sentences."""
    model, damaged = tmp_path / "m.tagwise", tmp_path / "in.txt"
    tw.HMM().fit([["a", "b"]], [["X", "Y"]]).save(model)
    damaged.write_text("EU NNP B-ORG\nrejects VBZ\nGerman JJ B-MISC\ncall NN O\n\n")
    result = CliRunner().invoke(cli, ["tag", str(model), str(damaged)])
    assert result.exit_code == 2
    assert "in.txt:2: 2 columns in 'rejects VBZ', but most of the first lines have 3" in result.stderr
    assert result.stdout == ""


def test_named_columns_imply_a_column_format() -> None:
    """Two rows look like two sentences of text, but text has no columns that could be named."""
    named = tw.corpus.formats.read(io.StringIO("a X\nb Y\n"), columns=("word", "label"))
    assert (named.tokens, named.labels) == ([["a", "b"]], [["X", "Y"]])
    assert tw.corpus.formats.read(io.StringIO("a X\nb Y\n")).tokens == [["a", "X"], ["b", "Y"]]
    with pytest.raises(tw.exceptions.CorpusError, match=":2"):
        tw.corpus.formats.read(io.StringIO("a X\nb Y Z\n"), columns=("word", "label"))

"""Labels with control characters or line ends are refused on input, because columns cannot hold them."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

import tagwise as tw
from tagwise.corpus.labels import break_in

from ..forge.forgery import Forgery
from ..golden import make

BREAKS = ["\t", "\n", "\r", "\0", "\x0b", "\x0c", "\x1b", "\x1c", "\x7f", "\x85", "\x9f", "\u2028", "\u2029"]
#: Inner spaces, direction marks and characters outside the BMP are valid text.
PLAIN = ["B-PER", "New York", "a\u00a0b", "é", "\u200b", "\U0001f600", "日本", "<b>", "a/b|c"]


@pytest.mark.parametrize("mark", BREAKS, ids=lambda mark: f"U+{ord(mark):04X}")
def test_labels_with_control_characters_are_rejected(mark: str, tmp_path: Path) -> None:
    label, code = f"B{mark}X", f"U\\+{ord(mark):04X}"
    X, y = [["a", "b"], ["c", "d", "e"]], [["O", "O"], ["O", label, "O"]]
    for tagger in (tw.CRF(max_iter=1), tw.Perceptron(max_iter=1), tw.HMM(), tw.Boosting(max_iter=1)):
        with pytest.raises(tw.exceptions.CorpusError, match=f"sentence 1, token 1: .*{code}.*Rename"):
            tagger.fit(X, y)
    for partial in ([[None, "O"], [None, {"O", label}, "O"]], [["O", None], ["O", label, "O"]]):
        with pytest.raises(tw.exceptions.CorpusError, match=f"sentence 1, token 1: .*{code}"):
            tw.CRF(max_iter=1, partial=True).fit(X, partial)
    forged = Forgery.of(make.FOLDER / "crf.tagwise")
    forged.set("labels", 1, to=label)
    path = tmp_path / "m.tagwise"
    path.write_bytes(forged.bytes())
    with pytest.raises(tw.exceptions.ModelFileError, match=f"labels: the label .*{code}"):
        tw.load(path)


@pytest.mark.parametrize("mark", BREAKS, ids=lambda mark: f"U+{ord(mark):04X}")
def test_readers_reject_labels_with_control_characters(mark: str) -> None:
    code, escaped = f"U\\+{ord(mark):04X}", f"\\u{ord(mark):04x}"
    text = f'{{"tokens": ["a", "b"], "labels": ["O", "B{escaped}X"]}}\n'
    with pytest.raises(tw.exceptions.CorpusError, match=f":1: token 1: .*{code}"):
        tw.read(io.StringIO(text), "jsonl")
    spans = f'{{"text": "In Lund", "spans": [{{"start": 3, "end": 7, "label": "L{escaped}"}}]}}\n'
    with pytest.raises(tw.exceptions.CorpusError, match=f":1: token 1: .*{code}"):
        tw.read(io.StringIO(spans), "spans")
    if mark in "\t\n\r\0":  # separators of cells and lines, and NUL
        return
    with pytest.raises(tw.exceptions.CorpusError, match=f":5: .*{code}"):
        tw.read(io.StringIO(f"a\tO\n\nb\tO\nc\tO\nd\tB{mark}X\n\n"), "conll")
    row = "{}\t{}\t_\t{}\t_\t_\t_\t_\t_\t_\n"
    text = row.format(1, "a", "NOUN") + row.format(2, "b", f"V{mark}") + "\n"
    with pytest.raises(tw.exceptions.CorpusError, match=f"token 1: .*{code}"):
        tw.read(io.StringIO(text), "conllu", label="upos")


@pytest.mark.parametrize("label", PLAIN)
def test_printable_labels_are_accepted(label: str, tmp_path: Path) -> None:
    assert break_in(label) is None
    X, y = [["a", "b"]], [["O", label]]
    tw.Perceptron(max_iter=2).fit(X, y).save(tmp_path / "m")
    assert tw.load(tmp_path / "m").predict(X) == y
    tw.write([tw.Sentence({"word": X[0], "label": y[0]}, "label")], tmp_path / "c.txt", "conll")
    assert tw.read(tmp_path / "c.txt", "conll", separator="\t").labels == y

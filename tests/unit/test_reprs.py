"""Representations of public objects: one line in a REPL, several in `str`, and HTML in a notebook."""

from __future__ import annotations

import copy
import json
import math
import pickle
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tagwise as tw
from tagwise.base.colours import SHARED
from tagwise.estimators import regularization_path
from tagwise.evaluation import calibration
from tagwise.evaluation.errors import find_errors

from .test_displays import Balance

LONG, HOSTILE = "x" * 3000, "<script>\x1b[2J\n\u202e"
WORDS = [["Rosa", HOSTILE, "runs", LONG], ["New", "York", "&"], ["Rosa", "sings"]]
LABELS = [["B-PER", "I-PER", "O", "O"], ["B-LOC", "I-LOC", "O"], ["B-PER", "O"]]
DATA = tw.Corpus.from_lists(WORDS, LABELS)
LATTICE = tw.lattice.Lattice(node=np.zeros((40, 12)), edge=np.zeros((12, 12)))
PREDICTED = [["O", "O", "O", "B-LOC"], ["B-PER", "I-PER", "O"], ["B-PER", "B-LOC"]]


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Return one object of each public type by name, most of them with long and hostile texts."""
    folder: Path = tmp_path_factory.mktemp("reprs")
    plain = tw.Corpus.from_lists([["Rosa", "Lund"], ["sings"]], [["B-PER", "I-PER"], ["O"]])
    tw.write(plain, folder / "plain.conll")
    tagger = tw.CRF(features="S1", max_iter=5).fit(DATA)
    errors = find_errors(DATA, PREDICTED)
    path = regularization_path(tw.CRF(features="S1", max_iter=2), DATA, DATA, strengths=(1.0, 0.1))
    features = (
        "S1" + tw.Regex("long", LONG[:900]) + tw.Gazetteer([f"city{i}" for i in range(999)], name="city")
    )
    decisions = tagger.explain(WORDS[0])
    return {
        "Report": tagger.evaluate(DATA),
        "Inspection": tagger.inspect(),
        "Decisions": decisions,
        "Decision": decisions[1],
        "Errors": errors,
        "Calibration": calibration([0.9, 0.8, 0.3, 0.2], [True, True, False, True], bins=4),
        "Model": tagger.model_,
        "Comparison": tw.compare(["hmm"], corpus={"c": (plain, plain)}, features=["S1"]),
        "Corpus": DATA,
        "Sentence": DATA[0],
        "Shards": tw.encode(str(folder / "plain.conll"), str(folder / "shards"), features="S1"),
        "Features": features,
        "Gazetteer": features.parts[2],
        "Regex": features.parts[1],
        "Vectors": tw.Vectors([[1.0] * 99] * 99, ["w"] * 99),
        "Tokenizer": tw.Tokenizer(hyphens=True, abbreviations=("a", "b")),
        "Tokenized": tw.Tokenizer()("Rosa sings. " * 99),
        "RegularizationPath": path,
        "PathStep": path[0],
        "TaggerInfo": tw.list_pretrained()[0],
        "CorpusInfo": tw.list_corpora()[0],
        "taggers": tw.list_pretrained(),
        "corpora": tw.list_corpora(),
        "tagged text": tagger.tag("Rosa met Rosa\nin New York <b>."),
        "tagged texts": tagger.tag(["Rosa met Rosa.", "New York"]),
        "fitted tagger": tagger,
        "tagger": tw.MIRA(features="S1"),
        "Confidence": tagger.predict_confidence(DATA)[0],
        "Ranks": tagger.model_.ranks(DATA),
        "Threshold": tagger.choose_threshold(DATA),
        "Lattice": LATTICE,
        "ScoreGradient": tw.losses.log_loss(LATTICE, [0] * 40)[1],
        "Dictionary": tw.Dictionary(3),
        "Partial": tw.Partial(separator=HOSTILE),
        "Lookback": tw.Lookback(1, math.inf, document=True),
        "Poly": tw.Poly(3),
        "RBF": tw.RBF(),
        "Kernel": tw.Kernel("linear"),
        "Checkpoint": tw.Checkpoint(folder / "run.checkpoint"),
        "WordClasses": tw.WordClasses.learn(DATA, classes=2, min_count=1),
        "TextSpan": tagger.tag("Rosa met Rosa\nin New York <b>.")[0],
        "Span": tw.spans.spans(LABELS[0])[0],
        "Allowed": tw.spans.allowed([*tagger.classes_], "IOB2"),
        "Score": tagger.evaluate(DATA).chunks,
        "Average": tagger.evaluate(DATA).macro,
        "Group": errors.groups[0],
        "Row": tw.compare(["hmm"], corpus={"c": (plain, plain)}, features=["S1"]).rows[0],
        "Alignment": tw.spans.spans_to_labels(["Peter flew."], [[(0, 3, "PER")]], misaligned="drop"),
    }


LISTS = ("taggers", "corpora", "tagged text", "tagged texts", "Features", "Threshold")


def test_a_repr_is_one_short_line(shown: dict[str, Any]) -> None:
    """No dump of contents, no line end, no control character. Lists have one short entry each."""
    for name, thing in shown.items():
        assert not re.search("[\x00-\x1f\x7f-\x9f\u202e]", repr(thing)), name
        assert len(repr(thing)) <= (200 if name not in LISTS else 600), name
        assert repr(thing)[:7] != "<tagwis", name  # the default of Python


def test_tables_are_in_the_string(shown: dict[str, Any]) -> None:
    """`print` shows the tables that a REPL does not."""
    for name in (
        "Report",
        "Inspection",
        "Decisions",
        "Errors",
        "Calibration",
        "Comparison",
        "RegularizationPath",
    ):
        assert str(shown[name]).count("\n") >= 2, name
    assert str(shown["taggers"]).splitlines() == [repr(info) for info in tw.list_pretrained()]


def test_every_object_has_html(shown: dict[str, Any]) -> None:
    """The HTML is well-formed, contains no markup of the data, and does not fix colours of text or page."""
    for name, thing in shown.items():
        page = thing._repr_html_()
        if "sk-" in page:  # the diagram of scikit-learn, if another test has imported it
            continue
        assert len(Balance(page).text.split()) >= 1, name
        assert not re.search("<script|<b>\\.|\x1b|\u202e", page), name
        assert not re.search(r"[\"; ]color:|#[0-9a-f]{3,6}\b|background:(?!rgba)", page), name


def test_a_label_has_one_colour_in_all_displays(shown: dict[str, Any]) -> None:
    """The colour of a type is the same in texts, sentences, scores, errors, weights and models."""
    for name in (
        "tagged text",
        "Sentence",
        "Corpus",
        "Report",
        "Errors",
        "Inspection",
        "Model",
        "Confidence",
    ):
        page = shown[name]._repr_html_()
        assert f"background:{SHARED.tint('PER')}" in page, name
        assert SHARED.tint("B-PER") not in page, name


def test_tagged_texts_are_lists() -> None:
    """The HTML keeps the text, and the result is still a list for JSON, copies and comparison."""
    tagger = tw.CRF(features="S1").fit([["Ann", "sings", "."]], [["B-PER", "O", "O"]])
    found = tagger.tag("Ann\nsings.")
    (span,) = found
    assert found == [span]
    assert found.text == "Ann\nsings."
    assert json.loads(json.dumps(found)) == [list(span)]
    for again in (pickle.loads(pickle.dumps(found)), copy.deepcopy(found), copy.copy(found)):
        assert (again, again.text) == (found, found.text)
    assert Balance(found._repr_html_()).text == "  Ann\xa0 PER\nsings."
    assert "pre-wrap" in found._repr_html_()
    assert tagger.tag(["Ann sings.", ""])._repr_html_().count("background:") == 1


def test_errors_show_wrong_tokens_in_context() -> None:
    """One folded part per kind of error, with the wrong tokens in bold and both labels."""
    gold = tw.Corpus.from_lists([["in", "New", "York", "now"]], [["O", "B-LOC", "I-LOC", "O"]])
    page = find_errors(gold, [["O", "B-PER", "I-PER", "O"]])._repr_html_()
    assert " in <b>New York</b> now" in re.sub("<td[^>]*>", " ", page)
    assert page.count("<details") == 1
    assert "LOC taken for PER" in page
    assert all(SHARED.tint(label) in page for label in ("LOC", "PER"))
    assert "0 wrong spans" in find_errors(gold, gold.labels)._repr_html_()

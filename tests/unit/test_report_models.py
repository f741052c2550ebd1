"""Models on the page: errors in groups, confusions in percent, comparison by sentence, and bounds on all of them."""

from __future__ import annotations

import re
from typing import Any

import pytest

import tagwise as tw
from tagwise.apps.compare import Comparison, Data, cells
from tagwise.apps.compare.cells import kept_sentences, measure
from tagwise.apps.compare.learners import parse
from tagwise.apps.compare.plan import Cell
from tagwise.apps.compare.report import models, sentences
from tagwise.apps.compare.report.html import page
from tagwise.apps.compare.report.models import BORDERS, MISSED, SPURIOUS, span_confusion, token_confusion
from tagwise.base.colours import LabelColours
from tagwise.evaluation.errors import find_errors

GOLD = [["B-A", "I-A", "O", "B-A", "B-B", "I-B", "O", "B-A"], ["O", "O"], ["B-B", "O"]]
GUESS = [["B-A", "O", "B-B", "B-B", "B-A", "I-A", "B-A", "O"], ["O", "O"], ["B-B", "O"]]


def corpus(gold: list[list[str]]) -> tw.Corpus:
    """Return sentences with these labels."""
    return tw.Corpus.from_lists([[f"w{t}" for t in range(len(y))] for y in gold], gold)


class Fixed:
    """A tagger that has been fitted already and predicts fixed labels."""

    def __init__(self, labels: list[str]) -> None:
        self.classes_, self.n_features_, self.history_ = labels, 0, []  # type: ignore[var-annotated]
        self.model_ = self
        self.scorer = self.native = self
        self.edge_scores = [[0.0] * len(labels)] * len(labels)

    def inspect(self, top: int) -> Any:
        self.labels: dict[str, Any] = {}
        return self


def detail(gold: list[list[str]], guess: list[list[str]]) -> dict[str, Any]:
    """Return the details that a result with these labels keeps."""
    labels = sorted({y for labels in (*gold, *guess) for y in labels})
    return cells.detail(Fixed(labels), corpus(gold), guess, find_errors(corpus(gold), guess))


def test_span_confusions_sum_to_gold_spans() -> None:
    """Each row has all gold spans of its type: found, taken for others, with other borders, or missed. No O."""
    found = detail(GOLD, GUESS)
    rows, columns, counts = span_confusion(found)
    assert rows == ["A", "B", SPURIOUS]
    assert columns == ["A", "B", BORDERS, MISSED]
    for name in ("A", "B"):
        assert sum(n for (row, _), n in counts.items() if row == name) == found["per_type"][name][0]
    assert counts == {
        ("A", "A"): 0,
        ("B", "B"): 1,
        ("A", BORDERS): 1,
        ("A", "B"): 1,
        ("A", MISSED): 1,
        ("B", "A"): 1,
        (SPURIOUS, "A"): 1,
        (SPURIOUS, "B"): 1,
    }
    text = models.confusion_html(found, True, "m")
    assert re.findall(r'title="1 of 3">(\d+)<', text) == ["33", "33", "33"]
    assert 'title="1 of 2">50<' in text


def test_token_confusions_exclude_correct_o() -> None:
    """Labels without spans are confused as tokens, without those that are O in both."""
    found = detail([["N", "O", "O"], ["V"]], [["V", "O", "N"], ["V"]])
    labels, _, counts = token_confusion(found)
    assert ("O", "O") not in counts
    assert counts == {("N", "V"): 1, ("O", "N"): 1, ("V", "V"): 1}
    assert set(labels) == {"N", "O", "V"}


def test_error_groups_equal_find_errors() -> None:
    """The groups and their counts are those of `find_errors`, with the wrong spans marked in context."""
    found = detail(GOLD, GUESS)
    text = models.errors_html(found, corpus(GOLD), LabelColours(["A", "B"]))
    groups = find_errors(corpus(GOLD), GUESS).groups
    shown = re.findall(r"</span>([^<]*) <b>(\d+)</b>", text)
    assert shown == [(g.title, str(len(g.errors))) for g in groups]
    colours = LabelColours(["A", "B"])
    assert f'<mark class="k{colours.index("A")}">w7<sub>A</sub></mark>' in text  # missed
    assert f'<mark class="k{colours.index("A")} wrong">w6<sub>A</sub></mark>' in text  # spurious
    assert f'<mark class="k{colours.index("A")}">w0 w1<sub>A</sub></mark>' in text  # borders, gold
    assert models.errors_html(detail(GOLD, GOLD), corpus(GOLD), colours) == "<p>No errors.</p>"


def test_comparison_by_sentence_counts_correct_sentences() -> None:
    """Sentences are counted by spans, for each ordered pair, and their cards say who is right."""
    other = [GOLD[0], ["O", "O"], ["O", "O"]]
    text, data = sentences.comparison_html(
        [detail(GOLD, GUESS), detail(GOLD, other)], ["one", "two"], True, corpus(GOLD), LabelColours("AB")
    )
    assert (data["only"], data["right"], data["n"]) == ([[0, 1], [1, 0]], [2, 2], 3)
    assert re.findall(r'<div class="sentence" data-right="([\d ]*)"', text) == ["1", "0"]
    none, _ = sentences.comparison_html([detail(GOLD, GUESS)], ["one"], True, corpus(GOLD), LabelColours())
    assert none == ""


def test_chosen_sentences_cover_every_pair() -> None:
    """Each ordered pair of models that differs somewhere has a sentence on the page, within the bound."""
    n = 3000
    right = [[(i // 2**m) % 2 == 0 for i in range(n)] for m in range(6)]
    found = sentences.chosen_sentences(right, range(n))
    assert len(found) <= sentences.MOST_SENTENCES
    assert len(set(found)) == len(found)
    for a in range(6):
        for b in range(6):
            assert a == b or sum(right[a][i] and not right[b][i] for i in found) >= 5
    assert any(not any(one[i] for one in right) for i in found)


def test_kept_sentences_depend_on_the_test_part_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """The kept sentences depend on the test part alone, are bounded in number and length, and spread over it."""
    many = tw.Corpus.from_lists(
        [["a"] * (1 + i % 7) for i in range(9000)], [["X"] * (1 + i % 7) for i in range(9000)]
    )
    kept = kept_sentences(many)
    assert kept == list(range(0, 9000, 5))
    monkeypatch.setattr(cells, "LONGEST", 3)
    assert all(len(many[i]) <= 3 for i in kept_sentences(many))


def test_page_size_is_bounded() -> None:
    """Long sentences, long words, many labels and many models do not make the page large."""
    words = [[f"{'w' * 5000}{i}"] * 90 for i in range(30)]
    labels = [[f"L{(i * 90 + t) % 500}" * 40 for t in range(90)] for i in range(30)]
    train = tw.Corpus.from_lists(words, labels)
    found = measure(Cell("c", parse("hmm"), "S1"), Data(train, train))
    rows = [cells.Row.of(found["row"], corpus="c", learner=f"hmm{i}") for i in range(60)]
    table = Comparison(rows, details=[found["detail"]] * 60, tests={"c": train})
    assert len(page(table)) < 4_000_000

"""What a notebook shows: HTML that is well formed, holds what it shows, and lets no text through as markup."""

from __future__ import annotations

import re
import sys
from dataclasses import replace
from html.parser import HTMLParser
from typing import Any

import pytest

import tagwise as tw
from tagwise.apps.compare import Comparison, Row
from tagwise.apps.compare.plots import span_curve
from tagwise.corpus.markup import sentence_html, table_html
from tagwise.corpus.schemes import Span

WORDS = [["Rosa", "<b>Lund", "runs"], ["New", "York", "&"]]
LABELS = [["B-PER", "I-PER", "O"], ["B-LOC", "I-LOC", "O"]]
DATA = tw.Corpus.from_lists(WORDS, LABELS)


class Balance(HTMLParser):
    """Opened and closed elements, and the text."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.text = ""
        self.feed(page)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.open.append(tag)
        self.text += " "

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


@pytest.fixture(scope="module")
def tagger() -> tw.CRF:
    """Fitted in a moment."""
    return tw.CRF(features="S2", max_iter=10).fit(DATA)


def shown(thing: Any) -> str:
    """The text of its HTML."""
    return " ".join(Balance(thing._repr_html_()).text.split())


def test_sentences_have_coloured_spans() -> None:
    """A box a span with its type; tokens beside them plain; a label a colour."""
    assert shown(DATA[0]) == "Rosa <b>Lund PER runs"
    assert DATA[0]._repr_html_().count("background:") == 1
    tags = tw.Sentence({"word": ["a", "b", "c"], "label": ["X", "Y", "X"]}, "label")
    page = tags._repr_html_()
    assert page.count("background:") == 3
    assert len({part.split(",")[0] for part in page.split("hsla(")[1:]}) == 2
    assert shown(tw.Sentence({"word": ["a", "<i>"]})) == "a <i>"
    assert shown(DATA).startswith("<Corpus: 2 sentences")
    assert shown(DATA).endswith("Rosa <b>Lund PER runs New York LOC &")


def test_pieces_of_html_by_hand() -> None:
    """Pieces in the order of the sentence, whoever names them first; words to the left, figures to the right."""
    page = sentence_html(["a", "b", "c"], [(2, 3, "X"), (0, 1, "Y")])
    assert " ".join(Balance(page).text.split()) == "a Y b c X"
    cells = table_html(("from", "to", "n"), [("u", "v", 3)], left=2)
    assert re.findall(r"text-align:(\w+)", cells) == ["left", "left", "right"] * 2


def test_displays_fit_a_narrow_page_and_turn_nothing_around() -> None:
    """Tables scroll by themselves, words of any length break, labels have the page's colour; no mark of direction."""
    assert table_html(("a", "b"), [(1, 2)]).startswith('<div style="overflow-x:auto"><table')
    page = sentence_html(["x" * 500, "\u202eevil", "\u2066b"], [(0, 2, "\u202eL")])
    assert "overflow-wrap:anywhere" in page
    assert page.count("white-space:nowrap") == 1  # the label's
    assert "color:hsl(" not in page.replace("background:", "")
    assert page.count("\\u202e") == 2
    for thing in (
        tw.Sentence({"word": ["\u202ea"]}),
        tw.Corpus([], source="\u202e"),
        tw.CRF(features="\u202e"),
    ):
        assert "\u202e" not in thing._repr_html_()


def test_reports_show_what_they_print(tagger: tw.CRF) -> None:
    """Types and figures."""
    report = tagger.evaluate(DATA)
    text = shown(report)
    for name, score in report.per_type.items():
        assert f"{name}{100 * score.precision:.2f}" in text.replace(" ", "")
    assert f"F1 {100 * report.f1:.2f}" in text
    assert "accuracy" in shown(tw.evaluate([["N"]], [["V"]]))


def test_taggers_show_what_they_are(tagger: tw.CRF, monkeypatch: pytest.MonkeyPatch) -> None:
    """Parameters, and labels once fitted."""
    monkeypatch.setattr("tagwise.estimators.scikit.ScikitLearn._repr_html_", lambda _: None)  # no diagram
    assert "not fitted" in shown(tw.CRF(l2=0.25))
    assert "l2=0.25" in shown(tw.CRF(l2=0.25))
    text = shown(tagger)
    assert f"{tagger.n_features_:,}" in text
    assert " ".join(tagger.classes_) in text
    assert "..." not in text
    for n in (20, 21):
        many = tw.HMM(features="S1").fit([["w"] * n], [[f"L{i}" for i in range(n)]])
        assert f"{n}: {' '.join(many.classes_[:20])}{' ...' * (n > 20)} weights" in shown(many)


def test_explanations_and_comparisons(tagger: tw.CRF) -> None:
    """Attributes and transitions; a table a corpus."""
    found = tagger.explain(top=3)
    text = shown(found)
    assert all(name in text for rows in found.labels.values() for name, _ in rows)
    table = tw.compare(
        ["hmm", "perceptron"], corpus={"a<b": (DATA, DATA)}, features=["S1"], title="T", caption="C"
    )
    text = shown(table)
    assert text.startswith("T a<b")
    assert text.endswith("C")
    assert "perceptron" in text
    rows = [replace(table.rows[0], corpus=name, learner=f"on {name}") for name in ("one", "two")]
    both = shown(Comparison(rows, caption="C", note="N"))
    assert both.index("one") < both.index("on one") < both.index("two") < both.index("on two")
    assert (both.count("on one"), both.count("on two")) == (1, 1)
    assert both.endswith("C N")
    odd = tw.HMM(features="S1").fit([["w", "v"]], [["<i>", "&b"]])
    assert {"<i>", "&b"} <= set(shown(odd.explain()).split())


# --- plots --------------------------------------------------------------------------------------------------


def test_precision_against_recall_by_hand() -> None:
    """Each probability a point; equal ones together; what is never found keeps recall below one."""
    found = [
        [(Span("A", 0, 1), 0.9), (Span("A", 1, 2), 0.5)],
        [(Span("B", 0, 1), 0.5), (Span("A", 0, 2), 0.2)],
    ]
    gold = [["B-A", "O", "B-C"], ["B-B", "O"]]
    assert span_curve(found, gold) == [(0.9, 1.0, 1 / 3), (0.5, 2 / 3, 2 / 3), (0.2, 0.5, 2 / 3)]
    with pytest.raises(tw.CorpusError, match="no spans"):
        span_curve([[]], [["O"]])


def test_without_matplotlib_one_is_told_what_to_install(
    monkeypatch: pytest.MonkeyPatch, tagger: tw.CRF
) -> None:
    """And nothing else needs it: import tagwise did not."""
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(tw.TagwiseError, match=r"tagwise\[plot\]"):
        tw.plot.confusion(tagger.evaluate(DATA))


class Axes:
    """Axes that note what is drawn into them."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = []

    def __getattr__(self, name: str) -> Any:
        def note(*args: Any, **options: Any) -> Any:
            self.calls.append((name, args, options))
            return [self]

        return note

    def of(self, name: str) -> list[tuple[Any, ...]]:
        """What one kind of call was given."""
        return [args for called, args, _ in self.calls if called == name]


def test_plots_draw_the_figures(tagger: tw.CRF) -> None:
    """What is drawn is what the figures are; axes that are given are used, and come back."""
    ax: Any = Axes()
    report = tagger.evaluate(DATA)
    assert tw.plot.confusion(report, top=3, ax=ax) is ax
    ((shares,),) = ax.of("imshow")
    assert shares.shape == (3, 3)
    ax = Axes()
    found = tw.calibration([0.9, 0.8, 0.3], [True, False, False])
    tw.plot.calibration(found, ax=ax)
    assert (found.confidence, found.accuracy) in ax.of("plot")
    assert {"marker": "o"} in [options for _, _, options in ax.calls]  # one point alone is no line
    ax = Axes()
    tw.plot.precision_recall(tagger, DATA, ax=ax)
    ((recall, precision),) = ax.of("step")
    assert len(recall) == len(precision) > 0
    assert ax.of("plot") == []
    reach = next(options["xlim"][1] for name, _, options in ax.calls if name == "set")
    assert max(recall) < reach <= 1.01  # the curve fills the width, however little is found
    ax, found = Axes(), tagger.choose_threshold(DATA)
    tw.plot.precision_recall(tagger, DATA, mark=found.min_probability, ax=ax)
    assert ax.of("plot") == [([found.recall], [found.precision])]
    ax = Axes()
    table = tw.compare(["hmm"], corpus={"c": (DATA, DATA)}, features=["S1"], sizes=[1, 2])
    tw.plot.learning_curve(table, ax=ax)
    ((sizes, scores),) = ax.of("plot")
    assert sizes.tolist() == [1, 2]
    assert ax.of("set_xticks")[0] == ([1, 2], ["1", "2"])  # sizes as they are, not powers of ten
    assert scores.tolist() == [100 * row.score for row in table]
    with pytest.raises(tw.ParameterError, match="sizes="):
        tw.plot.learning_curve(tw.compare(["hmm"], corpus={"c": (DATA, DATA)}, features=["S1"]))


def test_shares_of_a_confusion_by_hand() -> None:
    """Of each gold label, whatever was predicted for it; labels by how often they are gold or guessed."""
    gold = [["A"] * 6 + ["B"] * 4 + ["C"] * 3 + ["D"]]
    report = tw.evaluate(gold, [["A"] * 5 + ["D"] + ["C"] * 4 + ["C"] * 3 + ["D"]])  # A 6, B 4, C 7, D 2
    for top, labels in ((9, ["C", "A", "B", "D"]), (2, ["C", "A"])):
        ax: Any = Axes()
        tw.plot.confusion(report, top=top, ax=ax)
        ((ticks, names),) = ax.of("set_yticks")
        assert (list(ticks), names) == (list(range(len(labels))), labels)
        across = next((args, options) for name, args, options in ax.calls if name == "set_xticks")
        assert across == ((ticks, names), {"rotation": 90})  # long names have room
        ((shares,),) = ax.of("imshow")
        whole = {("C", "C"): 1.0, ("A", "A"): 5 / 6, ("A", "D"): 1 / 6, ("B", "C"): 1.0, ("D", "D"): 1.0}
        assert shares.tolist() == [[whole.get((g, p), 0.0) for p in labels] for g in labels]


def test_learning_curves_by_hand() -> None:
    """Means with their deviations, a line a learner, feature set and corpus; F1 where all have it."""
    base = tw.compare(["hmm"], corpus={"c": (DATA, DATA)}, features=["S1"]).rows[0]
    rows = [
        replace(base, sentences=n, seed=seed, accuracy=a, f1=f)
        for n, seed, a, f in ((1, 0, 0.5, 0.2), (1, 1, 0.7, 0.4), (2, 0, 0.8, 0.6), (2, 1, 0.8, 0.6))
    ]

    def drawn(rows: list[Row]) -> tuple[list[str], list[list[float]], list[list[float]], str]:
        ax: Any = Axes()
        ax.get_color = lambda: "red"
        tw.plot.learning_curve(Comparison(rows), ax=ax)
        names = [options["label"] for name, _, options in ax.calls if name == "plot"]
        means = [score.round(6).tolist() for _, score in ax.of("plot")]
        bands = [(high - low).round(6).tolist() for _, low, high in ax.of("fill_between")]
        said = next(options["ylabel"] for name, _, options in ax.calls if name == "set")
        return names, means, bands, said

    deviation = round(2 * 100 * 0.1 * 2**0.5, 6)
    names, means, bands, said = drawn(rows)
    assert (names, means, bands) == (["hmm, S1"], [[30.0, 60.0]], [[deviation, 0.0]])
    assert said == "F1, %"
    other = [replace(row, corpus="d", f1=None) for row in rows]
    names, means, _, said = drawn(rows + other)
    assert (names, means, said) == (["hmm, S1, c", "hmm, S1, d"], [[60.0, 80.0]] * 2, "accuracy, %")


def test_labels_that_are_given_are_those_that_count(tagger: tw.CRF) -> None:
    """Beside a corpus that has its own."""
    curves = []
    for y in (None, LABELS, [["O", "O", "O"], ["B-LOC", "I-LOC", "O"]]):
        ax: Any = Axes()
        tw.plot.precision_recall(tagger, DATA, y, ax=ax)
        curves.append(ax.of("step"))
    assert curves[0] == curves[1] != curves[2]
    with pytest.raises(tw.CorpusError, match="no labels"):
        tw.plot.precision_recall(tagger, WORDS)


@pytest.mark.parametrize("kind", ["confusion", "calibration", "precision_recall", "learning_curve"])
def test_plots_become_pictures(tagger: tw.CRF, kind: str, tmp_path: Any) -> None:
    """Where matplotlib is there."""
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("agg")
    table = tw.compare(["hmm"], corpus={"c": (DATA, DATA)}, features=["S1"], sizes=[1, 2])
    ax = {
        "confusion": lambda: tw.plot.confusion(tagger.evaluate(DATA)),
        "calibration": lambda: tw.plot.calibration(tw.calibration([0.9, 0.3], [True, False])),
        "precision_recall": lambda: tw.plot.precision_recall(tagger, DATA),
        "learning_curve": lambda: tw.plot.learning_curve(table),
    }[kind]()
    ax.figure.savefig(tmp_path / "p.png")
    assert (tmp_path / "p.png").read_bytes()[:4] == b"\x89PNG"

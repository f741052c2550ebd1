"""Notebook displays: well-formed HTML with the expected content and all text escaped."""

from __future__ import annotations

import sys
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

import tagwise as tw
from tagwise.apps.compare import Comparison
from tagwise.corpus.schemes import Span
from tagwise.evaluation import calibration
from tagwise.evaluation.thresholds import span_curve

WORDS = [["Rosa", "<b>Lund", "runs"], ["New", "York", "&"]]
LABELS = [["B-PER", "I-PER", "O"], ["B-LOC", "I-LOC", "O"]]
DATA = tw.Corpus.from_lists(WORDS, LABELS)


#: Elements without an end.
VOID = {"meta", "br", "line", "rect", "circle", "path", "polygon", "input", "link", "img"}


class Balance(HTMLParser):
    """A parser that checks nesting and collects the text and the elements with their attributes."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(page)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.found.append((tag, dict(attrs)))
        self.open += [tag] if tag not in VOID else []
        self.text += " "

    def handle_startendtag(self, tag: str, attrs: Any) -> None:
        self.found.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert tag in VOID or self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


@pytest.fixture(scope="module")
def tagger() -> tw.CRF:
    """Return a quickly fitted tagger."""
    return tw.CRF(features="S2", max_iter=10).fit(DATA)


def shown(thing: Any) -> str:
    """Return the text of an object's HTML."""
    return " ".join(Balance(thing._repr_html_()).text.split())


def test_sentences_have_coloured_spans() -> None:
    """One box per span with its type, plain text for other tokens, and one colour per label."""
    assert shown(DATA[0]) == "Rosa <b>Lund PER runs"
    assert DATA[0]._repr_html_().count("background:") == 1
    tags = tw.Sentence({"word": ["a", "b", "c"], "label": ["X", "Y", "X"]}, "label")
    page = tags._repr_html_()
    assert page.count("background:") == 3
    assert len({part.split(")")[0] for part in page.split("rgba(")[1:]}) == 2
    assert shown(tw.Sentence({"word": ["a", "<i>"]})) == "a <i>"
    assert shown(DATA).startswith("<Corpus: 2 sentences")
    assert shown(DATA).endswith("Rosa <b>Lund PER runs New York LOC &")


def test_fitted_taggers_show_their_metric() -> None:
    """The metric of `score` was chosen by the training labels, or given."""
    spans, labels = [["O", "B-LOC"]], [["IN", "NN"]]
    assert (
        repr(tw.CRF(features="S1").fit([["in", "Oslo"]], spans))
        == "<CRF(features='S1'): 2 labels, metric f1>"
    )
    assert repr(tw.HMM().fit([["in", "Oslo"]], labels)) == "<HMM(): 2 labels, metric accuracy>"
    given = tw.HMM(scoring="f1_macro")
    assert repr(given) == "HMM(scoring='f1_macro')"
    assert repr(given.fit([["in", "Oslo"]], spans)) == "<HMM(scoring='f1_macro'): 2 labels, metric f1_macro>"


def test_explanations_and_comparisons(tagger: tw.CRF) -> None:
    """Attributes and transitions, and one table per corpus."""
    found = tagger.inspect(top=3)
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
    assert {"<i>", "&b"} <= set(shown(odd.inspect()).split())


# --- plots --------------------------------------------------------------------------------------------------


def test_precision_recall_points() -> None:
    """One point per distinct probability. Gold chunks that are never found keep recall below one."""
    found = [
        [(Span("A", 0, 1), 0.9), (Span("A", 1, 2), 0.5)],
        [(Span("B", 0, 1), 0.5), (Span("A", 0, 2), 0.2)],
    ]
    gold = [["B-A", "O", "B-C"], ["B-B", "O"]]
    assert span_curve(found, gold) == [(0.9, 1.0, 1 / 3), (0.5, 2 / 3, 2 / 3), (0.2, 0.5, 2 / 3)]
    with pytest.raises(tw.exceptions.CorpusError, match="do not mark spans"):
        span_curve([[]], [["O"]])


def test_missing_matplotlib_error_names_the_package(monkeypatch: pytest.MonkeyPatch, tagger: tw.CRF) -> None:
    """Nothing else needs matplotlib: importing tagwise does not import it."""
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(tw.TagwiseError, match=r"tagwise\[plot\]"):
        tw.plot.confusion(tagger.evaluate(DATA))


class Axes:
    """Axes that record the calls that draw into them."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = []

    def __getattr__(self, name: str) -> Any:
        def note(*args: Any, **options: Any) -> Any:
            self.calls.append((name, args, options))
            return [self]

        return note

    def of(self, name: str) -> list[tuple[Any, ...]]:
        """Return the arguments of each call of one method."""
        return [args for called, args, _ in self.calls if called == name]


def test_confusion_shares() -> None:
    """Shares are relative to each gold label. Labels are sorted by their frequency in gold and predictions."""
    gold = [["A"] * 6 + ["B"] * 4 + ["C"] * 3 + ["D"]]
    report = tw.evaluate(gold, [["A"] * 5 + ["D"] + ["C"] * 4 + ["C"] * 3 + ["D"]])  # A 6, B 4, C 7, D 2
    for top, labels in ((9, ["C", "A", "B", "D"]), (2, ["C", "A"])):
        ax: Any = Axes()
        tw.plot.confusion(report, top=top, ax=ax)
        ((ticks, names),) = ax.of("set_yticks")
        assert (list(ticks), names) == (list(range(len(labels))), labels)
        across = next((args, options) for name, args, options in ax.calls if name == "set_xticks")
        assert across == ((ticks, names), {"rotation": 90})  # space for long names
        ((shares,),) = ax.of("imshow")
        whole = {("C", "C"): 1.0, ("A", "A"): 5 / 6, ("A", "D"): 1 / 6, ("B", "C"): 1.0, ("D", "D"): 1.0}
        assert shares.tolist() == [[whole.get((g, p), 0.0) for p in labels] for g in labels]


def test_explicit_labels_override_those_of_a_corpus(tagger: tw.CRF) -> None:
    """Labels passed explicitly take precedence over those of a corpus."""
    curves = []
    for y in (None, LABELS, [["O", "O", "O"], ["B-LOC", "I-LOC", "O"]]):
        ax: Any = Axes()
        tw.plot.precision_recall(tagger, DATA, y, ax=ax)
        curves.append(ax.of("step"))
    assert curves[0] == curves[1] != curves[2]
    with pytest.raises(tw.exceptions.CorpusError, match="no labels"):
        tw.plot.precision_recall(tagger, WORDS)


@pytest.mark.parametrize("kind", ["confusion", "calibration", "precision_recall", "learning_curve"])
def test_plots_render(tagger: tw.CRF, kind: str, tmp_path: Any) -> None:
    """Plots render if matplotlib is installed."""
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("agg")
    table = tw.compare(["hmm"], corpus={"c": (DATA, DATA)}, features=["S1"], sizes=[1, 2])
    ax = {
        "confusion": lambda: tw.plot.confusion(tagger.evaluate(DATA)),
        "calibration": lambda: tw.plot.calibration(calibration([0.9, 0.3], [True, False])),
        "precision_recall": lambda: tw.plot.precision_recall(tagger, DATA),
        "learning_curve": lambda: tw.plot.learning_curve(table),
    }[kind]()
    ax.figure.savefig(tmp_path / "p.png")
    assert (tmp_path / "p.png").read_bytes()[:4] == b"\x89PNG"


def test_bundled_corpora_are_shown_by_name(tmp_path: Path) -> None:
    """Parts and slices of a bundled corpus. Other files keep their path."""
    train, dev, _ = tw.load_corpus("wnut17-ner")
    assert repr(train[:5]).startswith("<Corpus: wnut17-ner:train, 5 sentences")
    assert dev is not None
    assert repr(dev).startswith("<Corpus: wnut17-ner:dev, ")
    (tmp_path / "dev.txt").write_text("a\tB\n\n")
    assert str(tmp_path / "dev.txt") in repr(tw.read(tmp_path / "dev.txt"))

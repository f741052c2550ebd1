"""Every field of a preset and of a row matters: what a named comparison trains, and what each figure is."""

from __future__ import annotations

import json
import random
import re
import sys
from collections.abc import Callable
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import tagwise as tw
from tagwise.apps.compare import (
    PRESETS,
    Cell,
    Data,
    Learner,
    Preset,
    Published,
    Row,
    learner_names,
    parse,
    resolve_corpora,
)
from tagwise.apps.compare.cells import errors, measure
from tagwise.cli import cli
from tests.cli.options import DEV, TEST, TRAIN

KNOWN = {"one": (TRAIN, DEV, TEST), "two": (TRAIN[:9], None, TEST[:5])}
BASE = Preset(
    "bundled",
    "A small one.",
    corpora=("one",),
    learners=("perceptron",),
    features=("S1",),
    params={"epochs": 3, "max_iter": 3},
)


class Shown:
    """What the command shows of a preset."""

    def __init__(self, folder: Path, patch: pytest.MonkeyPatch) -> None:
        self.out, self.patch = folder / "x.json", patch
        patch.setenv("COLUMNS", "400")
        patch.setattr(sys.modules["tagwise.apps.compare.plan"], "load_corpus", KNOWN.__getitem__)

    def __call__(self, *args: object, **changes: Any) -> dict[str, Any]:
        """The table of BASE with changes, as JSON has it; ``text`` is what was printed."""
        self.patch.setitem(PRESETS, "bundled", replace(BASE, **changes))
        call = ["compare", "--fresh", "--jobs", "0", "-o", str(self.out), *map(str, args)]
        result = CliRunner().invoke(cli, call)
        assert result.exit_code == 0, result.output
        found: dict[str, Any] = {**json.loads(self.out.read_text()), "text": result.stdout}
        return found

    def column(self, name: str, **changes: Any) -> list[Any]:
        """One measure of all rows."""
        return [entry[name] for entry in self(**changes)["rows"]]


Check = Callable[[Shown], None]
ROWS: dict[str, Check] = {}


def row(*names: str) -> Callable[[Check], Check]:
    """Enter what a field of a preset does."""

    def enter(check: Check) -> Check:
        for name in names:
            assert name not in ROWS
            ROWS[name] = check
        return check

    return enter


def perceptron(**params: Any) -> tw.Perceptron:
    """The learner of BASE."""
    return tw.Perceptron(**{"features": "S1", "epochs": 3, **params})


@row("name", "help")
def named(shown: Shown) -> None:
    """The list has them."""
    shown.patch.setitem(PRESETS, "bundled", replace(BASE, name="another", help="Something else."))
    lines = CliRunner().invoke(cli, ["compare", "--list"]).stdout.splitlines()
    assert lines[0].split(maxsplit=1) == ["another", "Something else."]


@row("corpora")
def corpora(shown: Shown) -> None:
    """These, in this order."""
    assert shown.column("corpus") == ["one"]
    assert shown.column("corpus", corpora=("two", "one")) == ["two", "one"]
    assert shown.column("sentences", corpora=("two", "one")) == [9, 24]


@row("learners")
def learners(shown: Shown) -> None:
    """These, in this order; every learner there is where none is named."""
    assert shown.column("learner", learners=("hmm", Learner("mine", "crf"))) == ["hmm", "mine"]
    assert replace(BASE, learners=()).chosen() == tuple(learner_names())


@row("features", "pairs")
def features(shown: Shown) -> None:
    """Each of these, but for a corpus that goes with one of them alone; other features undo the pairs."""
    both = {"corpora": ("one", "two"), "features": ("S1", "S2")}
    assert shown.column("features", **both) == ["S1", "S2", "S1", "S2"]
    assert shown.column("features", **both, pairs={"one": "S2"}) == ["S2", "S1", "S2"]
    table = shown("-f", "S3", **both, pairs={"one": "S2"})
    assert [entry["features"] for entry in table["rows"]] == ["S3", "S3"]


@row("sizes", "limits")
def sizes(shown: Shown) -> None:
    """Training sentences as rows; or a limit for a corpus, which sizes and corpora of one's own undo."""
    assert shown.column("sentences", sizes=(4, 7)) == [4, 7]
    both = {"corpora": ("one", "two"), "limits": {"one": 11}}
    table = shown(**both)
    assert [entry["sentences"] for entry in table["rows"]] == [11, 9]
    expected = perceptron().fit(TRAIN[:11]).evaluate(TEST).accuracy
    assert table["rows"][0]["accuracy"] == expected
    assert table["caption"].startswith("one: first 11 training sentences; ")
    assert [e["sentences"] for e in shown("--size", 15, **both)["rows"]] == [15, 9]
    assert [e["sentences"] for e in shown("--corpus", "one", **both)["rows"]] == [24]


@row("seeds")
def seeds(shown: Shown) -> None:
    """So many runs of each."""
    assert shown.column("seed", seeds=3) == [0, 1, 2]
    assert [e["seed"] for e in shown("--seeds", 2, seeds=3)["rows"]] == [0, 1]


@row("params")
def params(shown: Shown) -> None:
    """Parameters of every learner that has them; those of the command win."""
    assert shown.column("iterations", params={"epochs": 5}) == [5]
    table = shown("--set", "epochs=2", params={"epochs": 5, "l2": 0.5})
    assert table["rows"][0]["iterations"] == 2
    assert table["caption"] == "epochs = 2; l2 = 0.5"


@row("tune", "tune_size", "folds")
def choice(shown: Shown) -> None:
    """They reach every cell, and the caption says so."""
    preset = replace(BASE, tune={"perceptron": {"epochs": (1, 4)}}, tune_size=10, folds=3)
    (cell,) = preset.cells()
    assert (cell.tune, cell.tune_size, cell.folds) == ({"epochs": (1, 4)}, 10, 3)
    (plain,) = BASE.cells()
    assert (plain.tune, plain.tune_size, plain.folds) == ({}, None, 1)
    assert shown.column("chosen", tune={"perceptron": {"epochs": (4,)}}) == ["epochs=4"]
    assert shown.column("chosen") == [""]
    assert preset.caption() == (
        "epochs = 3; max_iter = 3; perceptron: epochs from 1, 4, on every fifth training sentence of the first 10, "
        "3 times with others"
    )
    assert replace(preset, tune_size=None, folds=1).caption().endswith("on every fifth training sentence")


@row("held")
def held(shown: Shown) -> None:
    """The last so many training sentences are tested, the others trained, in place of the test part."""
    table = shown(held=6)
    expected = perceptron().fit(TRAIN[:18]).evaluate(TRAIN[18:]).accuracy
    assert [(e["sentences"], e["accuracy"]) for e in table["rows"]] == [(18, expected)]
    assert table["caption"].endswith("tested on the last 6 training sentences")
    assert [e["sentences"] for e in shown("--corpus", "one", held=6)["rows"]] == [24]
    limited = resolve_corpora(["one"], {"one": 5}, 6)["one"]
    assert (limited.train, limited.test, limited.dev) == (TRAIN[:5], TRAIN[18:], DEV)


@row("dev")
def dev(shown: Shown) -> None:
    """The dev part is scored where the corpus has one."""
    report = perceptron().fit(TRAIN).evaluate(DEV)
    assert shown.column("dev_accuracy", dev=True, corpora=("one", "two")) == [report.accuracy, None]
    assert shown.column("dev_accuracy") == [None]


@row("track")
def track(shown: Shown) -> None:
    """The best iterate on the dev part is kept, and the caption says so."""
    given = {"epochs": 5, "average": False}
    tracked, last = perceptron(**given, patience=0).fit(TRAIN, dev=DEV), perceptron(**given).fit(TRAIN)
    table = shown(track=True, params=given)
    assert table["rows"][0]["accuracy"] == tracked.evaluate(TEST).accuracy
    assert shown.column("accuracy", params=given) == [last.evaluate(TEST).accuracy]
    assert tracked.evaluate(TEST).accuracy != last.evaluate(TEST).accuracy
    assert table["caption"].endswith("dev part scored after every iteration, the best iterate kept")


@row("risks")
def risks(shown: Shown) -> None:
    """Gold paths are ranked in lists of so many, and the caption says so."""
    found = perceptron().fit(TRAIN).ranks(TEST, k=7)
    table = shown(risks=7)
    assert [(e["rank"], e["beyond"]) for e in table["rows"]] == [(found.risk, found.beyond)]
    assert "gold paths ranked in lists of 7" in table["caption"]
    assert shown.column("rank") == [None]


@row("against")
def against(shown: Shown) -> None:
    """The learner that others are tested against where it is among them; a CRF if not said."""
    both = {"learners": ("perceptron", "hmm")}
    for name, ps in (("hmm", [False, True]), ("perceptron", [True, False]), ("crf", [True, True])):
        table = shown(**both, against=name)
        assert [entry["p"] is None for entry in table["summary"]] == ps
        assert (f"p, against {name}" in table["text"]) == (name != "crf")
    assert BASE.against == "crf"


@row("published", "hidden", "note")
def words(shown: Shown) -> None:
    """Figures of papers, columns that are not shown, and a word below."""
    plain = shown()
    assert "precision" not in plain["text"]
    assert "paper" not in plain["text"]
    table = shown(published=(Published("perceptron", 61.25),), hidden=("accuracy",), note="Differs in all.")
    assert "F1, paper" in table["text"]
    assert "61.25" in table["text"]
    assert "precision" in table["text"]
    assert "accuracy" not in table["text"]
    assert table["text"].rstrip().endswith("Differs in all.")
    assert table["note"] == "Differs in all."
    assert table["summary"][0]["f1_published"] == 61.25


def test_every_field_of_a_preset_has_a_row() -> None:
    """No field is without a row."""
    assert ROWS.keys() == {f.name for f in fields(Preset)}


@pytest.mark.parametrize("case", {check: name for name, check in ROWS.items()}.values())
def test_fields(case: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The row of a field holds."""
    ROWS[case](Shown(tmp_path, monkeypatch))


#: What presets train: corpora with their features, learners, runs of each cell.
TRAINED: dict[str, tuple[set[tuple[str, str]], int, int]] = {
    "bundled": (
        {(c, f) for c in ("ewt-pos", "wnut17-ner") for f in ("S1", "default")},
        len(learner_names()),
        1,
    ),
    "spanish-ner": ({("conll2002-es", f) for f in ("S1", "S2", "S3")}, 11, 1),
    "pos": ({(c, f) for c in ("ewt-pos", "ptb-sample") for f in ("S1", "S2", "pos")}, 10, 1),
    "small-300": ({(c, f) for c in ("conll2002-es", "ptb-sample") for f in ("S1", "S3")}, 11, 6),
    "english-ner": ({("conll2003-en", "ner")}, 33, 1),
    "convergence": ({("conll2003-en", "ner"), ("ewt-pos", "pos")}, 4, 1),
    "precision-recall": ({("conll2003-en", "ner")}, 12, 1),
    "losses": (set(), 0, 1),
    "sizes": ({(c, "S3") for c in ("conll2002-es", "ewt-pos")}, 10, 3),
    "svm-sparsity": ({(c, "S3") for c in ("conll2002-es", "ptb-sample")}, 2, 3),
    "risks": ({("conll2002-es", "S3")}, 8, 1),
    "history-seeds": ({("conll2003-en", "ner")}, 10, 5),
    "f1-costs": ({("conll2003-en", "ner")}, 14, 1),
    "noise": (
        {
            (f"{c}{noise}", "S2")
            for c in ("ewt-pos", "wnut17-ner")
            for noise in ("", *(f" +{percent}% noise" for percent in (5, 10, 20, 30)))
        },
        *(7, 1),
    ),
    "kernels": ({(c, f) for c in ("ewt-pos", "wnut17-ner") for f in ("S2", "S2pairs")}, 10, 5),
    "boosting-losses": ({(c, "S2") for c in ("ewt-pos", "wnut17-ner")}, 5, 1),
}


@pytest.mark.parametrize("name", PRESETS)
def test_what_presets_train(name: str) -> None:
    """Each corpus with its features, each learner, each seed; figures of papers are percentages."""
    preset = PRESETS[name]
    cells = preset.cells()
    pairs, learners, seeds = TRAINED[name]
    assert {(cell.corpus, cell.features) for cell in cells} == pairs
    assert len({cell.learner.name for cell in cells}) == learners
    assert {cell.seed for cell in cells} == (set(range(seeds)) if cells else set())
    assert {cell.size for cell in cells} <= (set(preset.sizes) or {None})
    assert all(1.0 < f.value < 100.0 for f in preset.published if f.measure != "seconds")
    assert all(60.0 < f.value < 1e6 for f in preset.published if f.measure == "seconds")
    if preset.against is not None and preset.learners and name != "losses":
        assert preset.against in {cell.learner.name for cell in cells}


L2, C = "0.01, 0.03, 0.1, 0.3, 1.0", "0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0"
OVERLAPPING, SPARSE = "hmm-overlapping: overlapping = True", "crf-l1: l1 = 0.1, l2 = 0.0"


@pytest.mark.parametrize("name", PRESETS)
def test_figures_of_papers_are_of_what_is_trained(name: str) -> None:
    """Where a table or a figure of a paper is named there are figures of it, and each has a row to stand in."""
    preset = PRESETS[name]
    cells = preset.cells()
    of_a_paper = bool(cells) and bool(re.search(r"(Tables?|Figures?) \d", preset.help))
    assert bool(preset.published) is of_a_paper
    for figure in preset.published:
        assert figure.source
        assert any(
            cell.learner.name == figure.learner
            and figure.corpus in (None, cell.corpus)
            and figure.features in (None, cell.features)
            for cell in cells
        ), figure
    shown = {(f.learner, f.measure, f.corpus, f.features): f.value for f in preset.published}
    assert all(shown[f.learner, f.measure, f.corpus, f.features] == f.value for f in preset.published)


def test_every_preset_says_what_it_trains() -> None:
    """Under its own name, with help; figures of papers with a note; every cell can be made."""
    for name, preset in PRESETS.items():
        assert preset.name == name
        assert preset.help.endswith((".", ")"))
        for cell in preset.cells():
            assert cell.learner.make(**cell.settings()).checked()["features"] == cell.features
            assert (cell.dev, cell.track, cell.folds) == (preset.dev, preset.track, preset.folds)
            assert cell.features in (*preset.features, cell.learner.params.get("features"))


# --- rows ---------------------------------------------------------------------------------------------------


def test_every_figure_of_a_row() -> None:
    """Each field of a row is what training and scoring without any comparison find."""
    learner = parse("crf(loss=exp)")
    cell = Cell("news", learner, "S2", 20, 1, {"max_iter": 5}, {"l2": [0.5]}, dev=True)
    train = resolve_corpora({"x": (TRAIN, TEST)})["x"].train
    drawn = tw.Corpus([train[i] for i in sorted(random.Random(1).sample(range(24), 20))])
    tagger = tw.CRF(features="S2", loss="exp", max_iter=5, l2=0.5, seed=1).fit(drawn)
    report, on_dev = tagger.evaluate(TEST), tagger.evaluate(DEV)
    expected: dict[str, Any] = {
        "corpus": "news",
        "learner": "crf(loss=exp)",
        "loss": "exp",
        "features": "S2",
        "sentences": 20,
        "seed": 1,
        "accuracy": report.accuracy,
        "f1": report.f1,
        "precision": report.precision,
        "recall": report.recall,
        "sequence_accuracy": report.sequence_accuracy,
        "dev_accuracy": on_dev.accuracy,
        "dev_f1": on_dev.f1,
        "nonzero": tagger.n_nonzero_,
        "iterations": len(tagger.history_),
        "passes": tagger.history_[-1]["evaluations"],
        "memory": None,
        "threads": 1,
        "chosen": "l2=0.5",
        "rank": None,
        "beyond": None,
        "margin": None,
    }
    assert expected["passes"] > expected["iterations"] > 1
    assert (
        len({expected[name] for name in ("accuracy", "f1", "precision", "recall", "sequence_accuracy")}) == 5
    )
    found = measure(cell, Data(TRAIN, TEST, DEV), n_jobs=1)["row"]
    assert {name: found[name] for name in expected} == expected
    assert {f.name for f in fields(Row)} - expected.keys() == {"seconds", "cpu"}
    assert found["seconds"] > 0
    assert found["cpu"] >= 0


def test_detail_of_a_row() -> None:
    """What a report shows beside a row: counts, types, confusions and errors of the test part."""
    detail = measure(Cell("a", parse("crf(max_iter=4)"), "S1"), Data(TRAIN, TEST))["detail"]
    tagger = tw.CRF(features="S1", max_iter=4).fit(TRAIN)
    predicted = tagger.predict(TEST)
    report = tagger.evaluate(TEST)
    assert detail["labels"] == list(tagger.classes_)
    assert detail["n_features"] == tagger.n_features_
    assert [e["iteration"] for e in detail["history"]] == [1, 2, 3, 4]
    assert [e["objective"] for e in detail["history"]] == [e["objective"] for e in tagger.history_]
    pairs = [(g, p) for gold, guess in zip(TEST.labels, predicted) for g, p in zip(gold, guess)]
    assert {(g, p): n for g, p, n in detail["confusion"]} == {pair: pairs.count(pair) for pair in pairs}
    sizes = [n for *_, n in detail["confusion"]]
    assert sizes == sorted(sizes, reverse=True)
    assert [list(c[:2]) for c in detail["counts"]] == [
        [len(gold), sum(a == b for a, b in zip(gold, guess))] for gold, guess in zip(TEST.labels, predicted)
    ]
    kinds = {"PER", "LOC"}
    for kind in kinds:
        gold = sum(
            y.endswith(kind) for labels in TEST.labels for y in labels
        )  # all chunks are one token long
        assert detail["per_type"][kind][0] == gold
    assert sum(detail["per_type"][kind][2] for kind in kinds) == report.chunks.correct
    wrong = [
        [s.tokens, s.labels, list(guess)] for s, guess in zip(TEST, predicted) if s.labels != list(guess)
    ]
    assert detail["errors"] == wrong
    assert detail["strongest"] == tagger.explain(12).labels
    scores = tagger.model_.scorer.edge_scores
    assert detail["transitions"] == [[round(float(x), 4) for x in line] for line in scores]


def test_errors_are_spread_over_the_test_part() -> None:
    """At most two dozen, at even steps, and none that is too long to be read."""
    lengths = [61 if i % 10 == 0 else 2 for i in range(100)]
    test = tw.Corpus([tw.Sentence({"word": ["w"] * n, "label": ["A"] * n}, "label") for n in lengths])
    numbered = [
        tw.Sentence({"word": [str(i), *s.tokens[1:]], "label": s.labels}, "label") for i, s in enumerate(test)
    ]
    wrong = [["B"] * n for n in lengths]
    found = [int(tokens[0]) for tokens, _, _ in errors(tw.Corpus(numbered), wrong)]
    short = [i for i in range(100) if i % 10]
    assert found == short[:: len(short) // 24][:24]
    right = [["A"] * n for n in lengths]
    assert errors(tw.Corpus(numbered), right) == []
    right[33] = ["A", "B"]
    assert errors(tw.Corpus(numbered), right) == [[["33", "w"], ["A", "A"], ["A", "B"]]]

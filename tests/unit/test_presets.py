"""Every field of a preset and of a row matters: the cells of a named comparison, and the value of each figure."""

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
    ComparedLearner,
    Data,
    Preset,
    Published,
    Row,
    learner_names,
    parse,
    resolve_corpora,
)
from tagwise.apps.compare.cells import measure
from tagwise.base.parameters import checked_parameters
from tagwise.cli import cli
from tagwise.evaluation.errors import find_errors
from tests.cli.options import DEV, TEST, TRAIN

KNOWN = {"one": (TRAIN, DEV, TEST), "two": (TRAIN[:9], None, TEST[:5])}
BASE = Preset(
    "bundled", "A small one.", corpora=("one",), learners=("perceptron",), features=("S1",), params={"max_iter": 3},
)  # fmt: skip


def of_cells(read: Callable[[Cell], Any]) -> Callable[[Preset], list[Any]]:
    """Return a function that reads a property of each cell of a preset."""
    return lambda preset: [read(cell) for cell in preset.cells()]


TWO = {"corpora": ("one", "two"), "features": ("S1", "S2")}
#: Fields and effects. test_compare_fields checks those of cells, test_limits_and_held_out_sentences those of data.
PLANS: dict[str, tuple[dict[str, Any], Callable[[Preset], Any], Any]] = {
    "corpora": ({"corpora": ("two", "one")}, of_cells(lambda cell: cell.corpus), ["two", "one"]),
    "learners": (
        {"learners": ("hmm", ComparedLearner("mine", "crf"))},
        of_cells(lambda cell: cell.learner.name),
        ["hmm", "mine"],
    ),
    "features": (TWO, of_cells(lambda cell: cell.features), ["S1", "S2", "S1", "S2"]),
    "pairs": ({**TWO, "pairs": {"one": "S2"}}, of_cells(lambda cell: cell.features), ["S2", "S1", "S2"]),
    "sizes": ({"sizes": (4, 7)}, of_cells(lambda cell: cell.size), [4, 7]),
    "seeds": ({"seeds": 3}, of_cells(lambda cell: cell.seed), [0, 1, 2]),
    "params": ({"params": {"max_iter": 5}}, of_cells(lambda cell: cell.settings()["max_iter"]), [5]),
    "params_of": (
        {"learners": ("crf", "mira", "pa"), "params_of": {"mira pa": {"max_iter": 5}}},
        of_cells(lambda cell: cell.settings()["max_iter"]),
        [3, 5, 5],
    ),
    "tune": (
        {"tune": {"perceptron": {"max_iter": (1, 4)}}},
        of_cells(lambda c: c.tune),
        [{"max_iter": (1, 4)}],
    ),
    "tune_size": ({"tune_size": 10}, of_cells(lambda cell: cell.tune_size), [10]),
    "folds": ({"folds": 3}, of_cells(lambda cell: cell.folds), [3]),
    "dev": ({"dev": True}, of_cells(lambda cell: cell.dev), [True]),
    "track": ({"track": True}, of_cells(lambda cell: cell.track), [True]),
    "risks": ({"risks": 7}, of_cells(lambda cell: cell.risks), [7]),
}
#: Fields of the command: its list, its data, its table.
SHOWN = {"name", "help", "limits", "held", "against", "published", "hidden", "note"}


@pytest.mark.parametrize("name", PLANS)
def test_preset_fields_change_the_cells(name: str) -> None:
    changes, read, expected = PLANS[name]
    assert read(replace(BASE, **changes)) == expected
    assert read(replace(BASE, **{key: value for key, value in changes.items() if key != name})) != expected


def test_every_field_has_a_test() -> None:
    assert PLANS.keys() | SHOWN == {f.name for f in fields(Preset)}
    assert not PLANS.keys() & SHOWN
    assert replace(BASE, learners=()).chosen() == tuple(learner_names())


@pytest.fixture
def known(monkeypatch: pytest.MonkeyPatch) -> None:
    """Register corpora by name."""
    monkeypatch.setattr(sys.modules["tagwise.apps.compare.plan"], "load_corpus", KNOWN.__getitem__)


def test_limits_and_held_out_sentences(known: None) -> None:
    """`limits` bounds the training sentences of a corpus. `held` tests on the last training sentences."""
    plain, limited = resolve_corpora(["one", "two"]), resolve_corpora(["one", "two"], {"one": 11})
    assert [len(data.train) for data in plain.values()] == [24, 9]
    assert [len(data.train) for data in limited.values()] == [11, 9]
    held = resolve_corpora(["one"], {}, 6)["one"]
    assert (held.train, held.test, held.dev) == (TRAIN[:18], TRAIN[18:], DEV)
    both = resolve_corpora(["one"], {"one": 5}, 6)["one"]
    assert (both.train, both.test) == (TRAIN[:5], TRAIN[18:])


def test_command_runs_a_preset_and_options_override_it(
    known: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Limits, held-out sentences, tests, published figures and notes come from the preset. Options override it."""
    monkeypatch.setenv("COLUMNS", "400")
    changes: dict[str, Any] = {
        **TWO,
        "pairs": {"one": "S2"},
        "limits": {"one": 11},
        "held": 4,
        "learners": ("perceptron", "hmm"),
        "published": (Published("perceptron", 61.25),),
        "hidden": ("accuracy",),
        "note": "Differs in all.",
    }
    monkeypatch.setitem(
        PRESETS, "bundled", replace(BASE, name="another", help="Else.", **changes, against="hmm")
    )
    assert CliRunner().invoke(cli, ["compare", "--list"]).stdout.splitlines()[0].split() == [
        "another",
        "Else.",
    ]

    def shown(*args: str) -> tuple[dict[str, Any], str]:
        out = tmp_path / "x.json"
        result = CliRunner().invoke(cli, ["compare", "--fresh", "--workers", "0", "-o", str(out), *args])
        assert result.exit_code == 0, result.output
        return json.loads(out.read_text()), result.stdout

    table, text = shown()
    assert [
        (e["corpus"], e["features"], e["sentences"]) for e in table["rows"] if e["learner"] == "perceptron"
    ] == [
        ("one", "S2", 11),
        ("two", "S1", 5),
        ("two", "S2", 5),
    ]
    assert {entry["learner"] for entry in table["summary"] if entry["p"] is not None} == {"perceptron"}
    for word in ("F1, paper", "61.25", "precision", "p, against hmm"):
        assert word in text
    assert "accuracy" not in text
    assert table["note"] == "Differs in all." == text.rstrip().splitlines()[-1]
    own, _ = shown("--corpus", "one", "-f", "S3", "--learner", "hmm")
    assert [(e["features"], e["sentences"]) for e in own["rows"]] == [("S1", 24)]  # an HMM has one feature


@pytest.mark.parametrize("name", PRESETS)
def test_published_figures_belong_to_trained_rows(name: str) -> None:
    """A preset that names a table or figure of a paper has its figures, and each figure has a row."""
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


def test_every_preset_has_help_and_valid_cells() -> None:
    """Each has a name and help, a note on published figures, and cells that can be built."""
    for name, preset in PRESETS.items():
        assert preset.name == name
        assert preset.help.endswith((".", ")"))
        for cell in preset.cells():
            assert checked_parameters(cell.learner.make(**cell.settings()))["features"] == cell.features
            assert (cell.dev, cell.track, cell.folds) == (preset.dev, preset.track, preset.folds)
            assert cell.features in (*preset.features, cell.learner.params.get("features"))


# --- rows ---------------------------------------------------------------------------------------------------


def test_row_figures_equal_direct_training_and_scoring() -> None:
    """Each field of a row equals training and scoring without a comparison."""
    learner = parse("crf(loss=exp)")
    cell = Cell("news", learner, "S2", 20, 1, {"max_iter": 5}, {"l2": [0.5]}, dev=True)
    train = resolve_corpora({"x": (TRAIN, TEST)})["x"].train
    drawn = tw.Corpus([train[i] for i in sorted(random.Random(1).sample(range(24), 20))])
    tagger = tw.CRF(features="S2", loss="exp", max_iter=5, l2=0.5, random_state=1).fit(drawn)
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
        "dev_precision": on_dev.precision,
        "dev_recall": on_dev.recall,
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


def test_row_details_equal_the_test_report() -> None:
    """Details in a report: counts, types, confusions and errors of the test part."""
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
    groups = find_errors(TEST, predicted).groups
    assert detail["errors"] == [[g.kind, g.gold, g.predicted, len(g.errors)] for g in groups]
    kept = {i: [detail["labels"][y] for y in labels] for i, labels in detail["wrong"]}
    assert kept == {i: y for i, (s, y) in enumerate(zip(TEST, predicted)) if s.labels != y}
    assert 0 < len(kept) < len(TEST)
    assert detail["strongest"] == tagger.inspect(12).labels
    scores = tagger.model_.scorer.edge_scores
    assert detail["transitions"] == [[round(float(x), 4) for x in line] for line in scores]

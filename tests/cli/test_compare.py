"""``tagwise compare`` and ``tw.compare``."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest

import tagwise as tw
from tagwise.compare import NAMES, PRESETS, draw, learner_names, make, plan
from tagwise.errors import ParameterError
from tagwise.estimators import LEARNERS

from .conftest import Run

FAST = {"max_iter": 3}


def test_every_cell_is_a_row_in_order(small: tuple[tw.Corpus, tw.Corpus]) -> None:
    table = tw.compare(["crf"], corpus={"a": small}, features=["S1", "S2"], sizes=[20, 40], params=FAST)
    assert [(r.sentences, r.features) for r in table] == [(20, "S1"), (20, "S2"), (40, "S1"), (40, "S2")]
    assert all(0 <= r.accuracy <= 1 and r.f1 is not None and r.iterations <= 3 for r in table)
    assert all(name in str(table) for name in ("crf", "S1", "S2", "accuracy"))


def test_a_row_is_what_fit_and_evaluate_give(small: tuple[tw.Corpus, tw.Corpus]) -> None:
    (row,) = tw.compare(["crf"], corpus=small, features=["S2"], params=FAST)
    tagger = tw.CRF(features="S2", max_iter=3).fit(small[0])
    assert row.accuracy == tagger.evaluate(small[1]).accuracy
    assert row.loss == "log"


def test_parts_of_speech_have_no_f1() -> None:
    train, _, test = tw.load_corpus("ewt-pos")
    table = tw.compare(["crf"], corpus=(train[:20], test[:5]), features=["S1"], params=FAST)
    assert table[0].f1 is None
    assert "F1" not in str(table)


def test_seeds_become_mean_and_deviation(small: tuple[tw.Corpus, tw.Corpus]) -> None:
    table = tw.compare(["crf"], corpus=small, features=["S1"], sizes=[30], seeds=3, params=FAST)
    (entry,) = table.summary()
    assert entry["seeds"] == len(table) == 3
    assert entry["accuracy"] == pytest.approx(sum(r.accuracy for r in table) / 3)
    assert "±" in str(table)


def test_draws_are_of_the_size_asked_for_and_repeatable(small: tuple[tw.Corpus, tw.Corpus]) -> None:
    train = small[0]
    assert draw(train, 10, 0) == train[:10]
    assert len(draw(train, 10, 1)) == 10
    assert draw(train, 10, 1) == draw(train, 10, 1) != draw(train, 10, 2)
    assert draw(train, None, 5) is train


def test_an_unknown_learner_names_those_there_are(small: tuple[tw.Corpus, tw.Corpus]) -> None:
    with pytest.raises(ParameterError, match="crf"):
        tw.compare(["oracle"], corpus=small)


def test_every_name_stands_for_a_learner_that_can_be_made() -> None:
    assert set(LEARNERS) <= set(learner_names()) <= {*LEARNERS, *NAMES}
    for name in learner_names():
        assert make(name).checked()
    for preset in PRESETS.values():
        assert plan(preset.learners, preset.corpora, preset.features)
        assert set(preset.limits) <= set(preset.corpora)


def test_the_command_writes_what_it_shows(
    run: Run, train_file: Path, test_file: Path, tmp_path: Path
) -> None:
    outputs = {suffix: tmp_path / f"table{suffix}" for suffix in (".csv", ".json", ".md")}
    args = ["compare", "--train", train_file, "--test", test_file, "-f", "S1", "-f", "S2", "--max-iter", 3]
    args += ["--learner", "crf"]
    result = run(*args, *(x for path in outputs.values() for x in ("-o", path)))
    assert result.exit_code == 0, result.output
    assert "train.txt" in result.stdout
    assert [r["features"] for r in csv.DictReader(io.StringIO(outputs[".csv"].read_text()))] == ["S1", "S2"]
    assert [r["features"] for r in json.loads(outputs[".json"].read_text())["rows"]] == ["S1", "S2"]
    assert outputs[".md"].read_text().count("| crf |") == 2


def test_presets_are_listed(run: Run) -> None:
    result = run("compare", "--list")
    assert result.exit_code == 0
    assert all(name in result.stdout for name in PRESETS)

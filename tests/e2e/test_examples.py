"""The examples run and beat the most frequent label of each word on names that training did not contain."""

from __future__ import annotations

import importlib
import re
import subprocess
import sys
from pathlib import Path

import pytest

import tagwise as tw
from examples import common

ROOT = Path(__file__).parents[2]
NAMES = sorted(path.parent.name for path in (ROOT / "examples").glob("*/__main__.py"))
#: Sentences for training and scoring. The examples themselves use more.
SIZES = {"chunking": (300, 150), "pos": (300, 150)}
#: Kinds whose held-out words do not occur in training, except tokens shaped like one word.
NEW = {"addresses": "TOWN", "ingredients": "NAME", "references": "AUTHOR", "notes": "DRUG"}


@pytest.mark.parametrize("name", NAMES)
def test_examples_beat_the_baseline(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    """More than a third of the baseline's errors are gone, but not all: the test labels are not leaked."""
    example = importlib.import_module(f"examples.{name}.__main__")
    train, test = example.parts(*SIZES.get(name, (150, 100)))
    score, base = common.trained(name, example.tagger(), train, test)
    assert 1 - score < (1 - base) * 2 / 3
    assert score < 1
    assert f"{len(test):,} held out" in capsys.readouterr().out


@pytest.mark.parametrize("name", sorted(NEW))
def test_data_depends_on_the_seed_and_held_out_names_are_new(name: str) -> None:
    """Equal seeds give equal sentences. Most held-out names do not occur in training."""
    example = importlib.import_module(f"examples.{name}.__main__")
    train, test = example.parts(60, 60, seed=3)
    again, other = example.parts(60, 60, seed=3)[0], example.parts(60, 60, seed=4)[0]
    assert list(again.tokens) == list(train.tokens) != list(other.tokens)

    def names(corpus: tw.Corpus) -> list[str]:
        return [
            word.lower()
            for words, labels in zip(corpus.tokens, corpus.labels)
            for word, label in zip(words, labels)
            if label.endswith(NEW[name]) and len(word) > 4
        ]

    known = set(names(train))
    found = names(test)
    assert sum(word in known for word in found) < len(found) / 4
    assert {label for labels in test.labels for label in labels} <= {
        y for labels in train.labels for y in labels
    }


def test_baseline_predicts_the_most_frequent_label() -> None:
    """By hand: a word seen twice as A and once as B is A, and an unknown word gets the most frequent label."""
    train = tw.Corpus.from_lists([["x", "x", "x", "y"]], [["A", "A", "B", "B"]])
    test = tw.Corpus.from_lists([["x", "z"]], [["A", "A"]])
    assert common.most_frequent(train, test)[0][0] == "A"
    assert common.most_frequent(train, test)[0][1] in ("A", "B")
    assert common.sentence([("New York", "LOC"), ("!", None)]).labels == ["B-LOC", "I-LOC", "O"]


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_example_commands_print_the_documented_score(name: str) -> None:
    """Run as a command, it prints the score stated in docs/start/examples.md, within one point."""
    row = next(
        row
        for row in (ROOT / "docs" / "start" / "examples.md").read_text("utf-8").splitlines()
        if f"NAME={name}`" in row
    )
    stated = [float(number) for number in re.findall(r"\d+\.\d", row)]
    found = subprocess.run(
        [sys.executable, "-m", f"examples.{name}"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
        timeout=300,
    )
    last = next(row for row in found.stdout.splitlines() if "most frequent label per word" in row)
    assert [float(number) for number in re.findall(r"\d+\.\d", last)] == pytest.approx(stated, abs=1.0)

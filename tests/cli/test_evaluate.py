"""``tagwise eval``."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import tagwise as tw

from .conftest import Run


def test_three_ways_to_the_same_scores(
    run: Run, model: Path, tagger: tw.CRF, small: tuple[tw.Corpus, tw.Corpus], test_file: Path, tmp_path: Path
) -> None:
    expected = tw.evaluate(small[1], tagger.predict(small[1])).to_dict()
    predicted = tmp_path / "predicted.txt"
    tw.write_conll(small[1].with_labels(tagger.predict(small[1])), predicted)
    tagged = run("tag", model, test_file).stdout
    for args, text in (
        (["eval", test_file, predicted], None),
        (["eval", model, test_file], None),
        (["eval", "-"], tagged),
    ):
        result = run(*args, "--json", text=text)
        assert result.exit_code == 0, result.output
        found = json.loads(result.stdout)
        assert result.stdout == json.dumps(found, ensure_ascii=False, indent=2) + "\n"
        assert found["f1"] == pytest.approx(expected["f1"])
        assert found["accuracy"] == pytest.approx(expected["accuracy"])
        assert found["confusion"] == expected["confusion"]


def test_a_bundled_part_is_a_test_corpus(run: Run, model: Path) -> None:
    result = run("eval", model, "wnut17-ner:dev", "--confusion", 3)
    assert result.exit_code == 0
    assert "F1" in result.stdout
    assert "gold" in result.stdout


def test_other_sentences_are_refused(run: Run, test_file: Path, tmp_path: Path) -> None:
    lines = test_file.read_text().split("\n\n")
    shorter, other = tmp_path / "shorter.txt", tmp_path / "other.txt"
    shorter.write_text("\n\n".join(lines[:10]) + "\n\n")
    other.write_text("\n\n".join([lines[1], lines[0], *lines[2:]]))
    for path in (shorter, other):
        result = run("eval", test_file, path)
        assert result.exit_code == 2
        assert path.name in result.stderr


def test_one_file_needs_gold_and_predicted(run: Run, test_file: Path, model: Path) -> None:
    assert run("eval", test_file).exit_code == 2
    assert run("eval", model).exit_code == 2

"""``tagwise convert``."""

from __future__ import annotations

from pathlib import Path

import pytest

from .conftest import Run


@pytest.mark.parametrize("middle", ["a.jsonl", "a.jsonl.gz", "a.tsv.xz", "a.conllu"])
def test_conversion_round_trips(run: Run, test_file: Path, tmp_path: Path, middle: str) -> None:
    between, back = tmp_path / middle, tmp_path / "back.txt"
    assert run("convert", test_file, between).exit_code == 0
    kept = ["--columns", "word,upos", "--label", "upos"] if "conllu" in middle else []
    assert run("convert", between, back, *kept).exit_code == 0
    assert back.read_text() == test_file.read_text()


def test_labels_outside_the_scheme_are_reported_by_line(run: Run, tmp_path: Path) -> None:
    data = tmp_path / "pos.txt"
    data.write_text("a\tO\n\nb\tNN\n")
    result = run("convert", data, "--scheme", "IOBES")
    assert result.exit_code == 2
    assert "pos.txt:3" in result.stderr
    assert run("convert", data, "--scheme", "XYZ").exit_code == 2

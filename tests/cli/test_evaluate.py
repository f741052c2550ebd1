"""``tagwise eval``."""

from __future__ import annotations

from pathlib import Path

from .conftest import Run


def test_predictions_of_other_sentences_are_rejected(run: Run, test_file: Path, tmp_path: Path) -> None:
    lines = test_file.read_text().split("\n\n")
    shorter, other = tmp_path / "shorter.txt", tmp_path / "other.txt"
    shorter.write_text("\n\n".join(lines[:10]) + "\n\n")
    other.write_text("\n\n".join([lines[1], lines[0], *lines[2:]]))
    for path in (shorter, other):
        result = run("eval", test_file, path)
        assert result.exit_code == 2
        assert path.name in result.stderr

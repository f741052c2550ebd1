"""``tagwise tag`` with many files: each output equals that of a single run, is complete, and is not written twice."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import tagwise as tw
from tagwise.cli import cli

TRAIN, _, TEST = tw.load_corpus("wnut17-ner")


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a model, and input files in two subfolders."""
    folder = tmp_path_factory.mktemp("many")
    tw.Perceptron(features="S1", max_iter=1).fit(TRAIN[:60]).save(folder / "m")
    (folder / "in" / "deep").mkdir(parents=True)
    tw.write(TEST[:10], folder / "in" / "a.conll", "conll")
    tw.write(TEST[10:20], folder / "in" / "deep" / "b.jsonl.gz", "jsonl")
    return folder


def run(*given: Any) -> Any:
    return CliRunner().invoke(cli, [str(each) for each in given])


def test_each_output_equals_a_single_run_and_is_written_once(place: Path, tmp_path: Path) -> None:
    """A second run skips finished files. Other options or a damaged output cause a file to be tagged again."""
    given = ["tag", place / "m", place / "in" / "**" / "*.{conll,jsonl.gz}", "-o", f"{tmp_path / 'out'}/"]
    first = run(*given)
    assert (first.exit_code, "files: 2 tagged, 0 kept " in first.output) == (0, True), first.output
    for name in ("a.conll", "deep/b.jsonl.gz"):
        run("tag", place / "m", place / "in" / name, "-o", tmp_path / f"alone{name[-3:]}")
        with open(tmp_path / "out" / name, "rb") as one, open(tmp_path / f"alone{name[-3:]}", "rb") as other:
            assert one.read() == other.read()
    assert "files: 0 tagged, 2 kept " in run(*given).output
    (tmp_path / "out" / "a.conll").write_text("cut", "utf-8")
    assert "files: 1 tagged, 1 kept " in run(*given).output
    assert (
        "files: 1 tagged, 0 kept "
        in run(
            *given[:2], place / "in" / "*.conll", *given[3:], "--replace", "--columns", "word,label"
        ).output
    )


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["--on-error", "skip"], "requires many files"),
        (["--backend", "ray"], "requires many files"),
        (["-o", "{in}/", "--workers", "2"], "--backend ray"),
        (["-o", "{in}/"], "would be overwritten"),
    ],
)
def test_invalid_option_combinations_are_rejected(place: Path, more: list[str], message: str) -> None:
    given = [each.replace("{in}", str(place / "in")) for each in more]
    found = run("tag", place / "m", place / "in" / "a.conll", *given)
    assert found.exit_code == 2
    assert message in " ".join(found.output.replace("│", " ").split())


def test_patterns_without_a_match_are_reported(place: Path, tmp_path: Path) -> None:
    found = run("tag", place / "m", tmp_path / "*.{conll,txt}", "-o", f"{tmp_path}/out/")
    assert found.exit_code != 0
    assert "no file matches" in found.output + str(found.exception)

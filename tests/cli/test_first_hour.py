"""A first session on the command line: a table with further columns, plain text, and the names of outputs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from tagwise.cli import cli

TABLE = """Sentence #,Word,POS,Tag
Sentence: 1,Rosa,N,B-PER
,lives,V,O
,in,P,O
,Lund,N,B-LOC
Sentence: 2,Tom,N,B-PER
,sleeps,V,O
"""


def run(*args: object) -> Result:
    return CliRunner().invoke(cli, [str(a) for a in args])


def test_further_columns_are_reported_after_training(tmp_path: Path) -> None:
    """A model that needs them labels no plain text. The command that is named trains one that does."""
    table, text, model = tmp_path / "t.csv", tmp_path / "t.txt", tmp_path / "m.tagwise"
    table.write_text(TABLE)
    text.write_text("Rosa lives in Lund.\n")
    for data, remedy in ((table, "word,label"), (tmp_path / "t.txt.conll", "word,_,label")):
        if data != table:
            assert run("convert", table, data).exit_code == 0
        message = run("train", data, "-o", model).stderr
        assert "so the model labels no plain text" in message
        assert f"For one that does, train with --columns {remedy}\n" in message
        assert run("tag", model, text).exit_code == 2
        again = run("train", data, "-o", model, "--columns", remedy)
        assert again.exit_code == 0
        assert "plain text" not in again.stderr
        assert '"label": "LOC"' in run("tag", model, text).stdout


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("model")
    (folder / "t.csv").write_text(TABLE)
    assert (
        run("train", folder / "t.csv", "--columns", "word,label", "-o", folder / "m.tagwise").exit_code == 0
    )
    return folder / "m.tagwise"


def test_the_name_of_the_output_decides_its_format(model: Path, tmp_path: Path) -> None:
    """Unless it fits the format of the input, or no extension decides."""
    text = tmp_path / "t.txt"
    text.write_text("Tom lives.\n")
    out = {}
    for name in ("o.txt", "o.jsonl", "o.tsv", "o.csv"):
        assert run("tag", model, text, "-o", tmp_path / name).exit_code == 0
        out[name] = (tmp_path / name).read_text()
    assert json.loads(out["o.txt"])["spans"] == json.loads(out["o.jsonl"])["spans"]
    assert out["o.tsv"].splitlines()[0] == "Tom\tB-PER"
    assert out["o.csv"].splitlines()[:2] == ["sentence_id,word,predicted", "1,Tom,B-PER"]


def test_the_extension_of_another_program_is_refused(model: Path, tmp_path: Path) -> None:
    text = tmp_path / "t.txt"
    text.write_text("Tom lives.\n")
    result = run("tag", model, text, "-o", tmp_path / "o.docx")
    assert result.exit_code == 2
    assert "tagwise does not write .docx files. Use one of" in result.stderr
    assert not (tmp_path / "o.docx").exists()


def test_texts_without_offsets_are_no_training_data(tmp_path: Path) -> None:
    """Classes of whole texts are not spans, so no option names them."""
    path = tmp_path / "classes.jsonl"
    path.write_text('{"id": 1, "text": "great film", "label": ["pos"]}\n')
    result = run("train", path, "-o", tmp_path / "m.tagwise")
    assert result.exit_code == 2
    assert "the members id, label. Its texts have no spans with offsets. Write {" in result.stderr


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("train t.csv --format cvs", "'cvs' (did you mean 'csv'?) is not one of 'conll'"),
        ("train t.cvs", "t.cvs: cannot be opened (No such file or directory) (did you mean 't.csv'?)"),
        ("train off.jsonl", "or pass --misaligned expand (or shrink, drop)."),
        ("train t.csv --label tga", "no column is named 'tga' (did you mean 'Tag'?)"),
    ],
)
def test_names_get_a_suggestion(
    command: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Names of options, files and columns, also in another case."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "t.csv").write_text(TABLE)
    (tmp_path / "off.jsonl").write_text('{"text": "Anna", "label": [[0, 3, "PER"]]}')
    result = run(*command.split(), "-o", "m.tagwise")
    assert result.exit_code == 2
    assert message in result.stderr

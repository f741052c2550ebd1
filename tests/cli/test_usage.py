"""Messages and exit codes for wrong usage and invalid data."""

from __future__ import annotations

from pathlib import Path

import pytest

from .conftest import Run, shell


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["nonsense"], "'nonsense'"),
        (["train"], "'TRAIN'"),
        (["train", "x.txt"], "'-o'"),
        (["tag"], "'MODEL'"),
        (["tag", "m.tagwise", "--format", "xml"], "'xml'"),
        (["tag", "m.tagwise", "--nbest", "0"], "x>=1"),
        (["tag", "m.tagwise", "--wheels"], "--wheels"),
        (["compare", "no-such-preset"], "'no-such-preset'"),
        (["compare", "--train", "x.txt"], "--train and --test go together"),
        (["compare", "-o", "table.pdf"], ".csv, .json, .md, .tex"),
        (["convert", "wnut17-ner:validation"], "'validation'"),
        (["convert", "wnut17-ner", "--from-scheme", "IOB1"], "--scheme"),
        (["train", "wnut17-ner", "-o", "no/such/folder/m.tagwise"], "cannot be written (No such file"),
        (["train", "wnut17-ner", "-o", "m.tagwise", "--learner", "oracle"], "'oracle'"),
        (["train", "wnut17-ner", "-o", "m.tagwise", "--set", "l2"], "expected name=value"),
        (["train", "wnut17-ner", "-o", "m.tagwise", "--set", "colour=red"], "'colour'"),
        (["train", "wnut17-ner", "-o", "m.tagwise", "--set", "l2=much"], "l2='much'"),
        (["train", "wnut17-ner", "-o", "m.tagwise", "--set", "max_iter=-3"], "max_iter=-3"),
        (["train", "wnut17-ner", "-o", "m.tagwise", "--loss", "hinge-of-doom"], "'hinge-of-doom'"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_wrong_usage_exits_with_2(
    run: Run, args: list[str], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The message is on stderr, stdout is empty, and no file is written."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    result = run(*args)
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith("error: ")
    assert (result.stderr.count("\n"), ". See " in result.stderr, result.stderr[-4:]) == (1, True, " -h\n")
    assert message in result.stderr
    assert "Traceback" not in result.output
    assert not list(tmp_path.iterdir())


def test_invalid_data_prints_one_line_and_exits_with_2(tmp_path: Path, model: Path, run: Run) -> None:
    ragged = tmp_path / "ragged.txt"
    ragged.write_text("a\tX\nb\tY\tZ\n")
    damaged = tmp_path / "damaged.tagwise"
    content = bytearray(model.read_bytes())
    content[len(content) // 2] ^= 0xFF
    damaged.write_bytes(content)
    nothing = tmp_path / "empty.txt"
    nothing.write_text("")
    for args, names in (
        (["train", tmp_path / "absent.txt", "-o", tmp_path / "m.tagwise"], "absent.txt"),
        (["train", ragged, "-o", tmp_path / "m.tagwise"], "ragged.txt:2"),
        (["train", nothing, "-o", tmp_path / "m.tagwise"], "empty.txt: the file has no sentences"),
        (["tag", damaged], "damaged"),
        (["tag", ragged], "ragged.txt"),
        (["tag", tmp_path / "absent.tagwise"], "absent.tagwise"),
        (["eval", model, ragged], "ragged.txt"),
        (["inspect", ragged], "ragged.txt"),
        (["convert", ragged], "ragged.txt:2"),
    ):
        result = run(*args)
        assert result.exit_code == 2, (args, result.stderr)
        assert result.stderr.startswith("error: "), result.stderr
        assert result.stderr.count("\n") == 1, result.stderr
        assert names in result.stderr
    done = shell(*args)  # a separate process gives the same result
    assert (done.returncode, done.stdout, done.stderr) == (2, result.stdout, result.stderr)
    assert not (tmp_path / "m.tagwise").exists()

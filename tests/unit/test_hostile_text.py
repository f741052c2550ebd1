"""Hostile labels, words and file names: control sequences, formulas and markup are displayed, never executed."""

from __future__ import annotations

import csv
import errno
import io
import json
import os
import re
import signal
import subprocess
import sys
from dataclasses import MISSING, fields, replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

import tagwise as tw
from tagwise.apps.compare.cells import Row
from tagwise.apps.compare.report.answer import Origin
from tagwise.apps.compare.report.html import page
from tagwise.apps.compare.table import Comparison
from tagwise.base.terminal import as_text, plain, table, visible
from tagwise.cli.app import cli
from tagwise.corpus.streams import writer

#: Clears the screen, sets a title, uses an 8-bit control, reverses text, rings the bell, and contains rich markup.
EVIL = "\x1b[2J\x1b]0;owned\x07\x9b31m\u202eabc\u2066\x7f[red]x[/nothing]"
#: The part of it that is allowed in a label.
EVIL_LABEL = "B-\u202eabc\u2066[red]x[/nothing]"
OBEYED = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\u2028\u2029]")


def run(*arguments: Any) -> Result:
    return CliRunner().invoke(cli, [str(a) for a in arguments])


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a model whose words, labels and parameters are hostile."""
    path = tmp_path_factory.mktemp("hostile") / "m.tagwise"
    X, Y = [[EVIL, "b"], ["b", EVIL]] * 3, [[EVIL_LABEL, "O"], ["O", EVIL_LABEL]] * 3
    tw.Boosting(features="word[0]\n", max_iter=4).fit(X, Y).save(path)
    return path


def test_terminal_controls_are_escaped() -> None:
    """Terminal controls are escaped as in JSON. Nothing else changes, and words keep their joiners."""
    every = "".join(map(chr, range(0x3000))) + "\ud800"
    shown = visible(every)
    assert not OBEYED.search(shown)
    assert json.loads(f'"{visible(EVIL)}"') == EVIL
    assert visible("naïve नमस्\u200dते 語 [red] \\") == "naïve नमस्\u200dते 語 [red] \\"
    assert visible("a\nb\tc", keep="\n") == "a\nb\\u0009c"
    shown.encode()


def test_tables_escape_markup_and_controls() -> None:
    """Headers, cells, titles and captions contain neither markup nor control sequences."""
    text = as_text(table([EVIL, "n"], [[EVIL, "[bold]1[/]"]], title=EVIL, caption=EVIL), 400)
    assert not OBEYED.search(text)
    assert text.count("[red]x[/nothing]") == 4
    assert "[bold]1[/]" in text
    assert str(plain("[/]")) == "[/]"


def test_inspect_escapes_hostile_text(model: Path) -> None:
    """Facts, parameters, rounds, features and transitions, as text and as JSON with equal values."""
    result = run("inspect", model)
    assert result.exit_code == 0, result.output
    assert not OBEYED.search(result.output)
    assert "\\u001b[2J" in result.output
    result = run("inspect", model, "--json")
    assert not OBEYED.search(result.output)
    assert EVIL_LABEL in json.loads(result.output)["labels"]


def test_evaluation_escapes_hostile_text(tmp_path: Path) -> None:
    """Types and confusions, in the report as text and as JSON."""
    (tmp_path / "gold.tsv").write_text(f"a\t{EVIL_LABEL}\nb\tO\n\n")
    (tmp_path / "guess.tsv").write_text(f"a\tO\nb\t{EVIL_LABEL}\n\n")
    for more in ((), ("--json",), ("--confusion", "5")):
        result = run("eval", tmp_path / "gold.tsv", tmp_path / "guess.tsv", *more)
        assert result.exit_code == 0, result.output
        assert not OBEYED.search(result.output)
    assert not OBEYED.search(str(tw.evaluate([[f"B-{EVIL}"]], [["O"]])))


def test_error_messages_are_escaped_on_one_line(tmp_path: Path, model: Path) -> None:
    """Names of files and labels, file contents and mistyped input appear escaped on one line."""
    odd = tmp_path / "\x1b[2J\u202e.txt"
    odd.write_text("a\tb\n\x1b[31m\n")
    for arguments in (
        ("tag", odd),
        ("tag", tmp_path / "\x1b[2Jno"),
        ("tag", model, odd),
        ("eval", odd, odd),
        ("inspect", model, "--label", "\x1b[2J"),
        ("train", odd, "-o", tmp_path / "\x1b[2J" / "x"),
        ("train", odd, "-o", tmp_path / "x", "--set", "\x1b[2J=1"),
        ("\x1b[2J",),
        ("--\x1b[2J",),
        ("tag", "--\x1b[2J"),
    ):
        result = run(*arguments)
        assert result.exit_code in (1, 2), arguments
        output = re.sub("\x1b\\[[0-9;]*m", "", result.output)  # rich's own colours
        assert not OBEYED.search(output), (arguments, output)


@pytest.mark.parametrize("terminal", [False, True])
def test_pipes_get_raw_bytes_and_terminals_escaped_text(
    monkeypatch: pytest.MonkeyPatch, terminal: bool
) -> None:
    """`tag` and `convert` write unchanged bytes to a pipe and escaped text to a terminal."""

    class Screen(io.BytesIO):
        def isatty(self) -> bool:
            return terminal

    below = Screen()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(below, encoding="utf-8"))
    with writer("-") as write:
        write(f"{EVIL}\tO\n")
    shown = f"{visible(EVIL)}\tO\n" if terminal else f"{EVIL}\tO\n"
    assert below.getvalue().decode() == shown


# --- tables in files ------------------------------------------------------------------------------------------


HOSTILE = ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", "\n=1", "＝1"]


def a_row(name: str) -> dict[str, Any]:
    """Return a row whose text fields are all `name`."""
    out: dict[str, Any] = {}
    for field in fields(Row):
        if field.type == "str":
            out[field.name] = name
        elif field.default is MISSING and field.default_factory is MISSING:
            out[field.name] = 1
    return out


@pytest.mark.parametrize("name", HOSTILE)
def test_csv_cells_are_not_formulas(name: str) -> None:
    """A text that begins like a formula gets a prefix. Negative numbers stay numbers."""
    text = Comparison([Row(**{**a_row(name), "accuracy": -0.5})]).to_csv()
    (cells,) = csv.DictReader(io.StringIO(text, newline=""))
    assert cells["learner"] == cells["corpus"] == ("" if ord(name[0]) < 32 else "'") + visible(name)
    assert cells["learner"][0] in "'\\"
    assert cells["accuracy"] == "-0.5"
    assert next(csv.DictReader(io.StringIO(Comparison([Row(**a_row("a=b"))]).to_csv())))["learner"] == "a=b"


def test_markdown_tables_keep_their_columns() -> None:
    """Bars, backticks, line ends and tags stay inside their cell."""
    name = "a|b`c`\nd\\|<script>\x1b[2J"
    text = Comparison([Row(**a_row(name))]).to_markdown()
    head, rule, row = text.splitlines()[:3]
    bars = [len(re.findall(r"(?<!\\)(?:\\\\)*\|", line)) for line in (head, rule, row)]
    assert bars[0] == bars[1] == bars[2]
    assert not re.search(r"(?<!\\)(?:\\\\)*[`<]", row)
    assert not OBEYED.search(text)


def test_latex_cells_contain_no_commands() -> None:
    """Cells contain no LaTeX commands of their own."""
    text = Comparison([Row(**a_row("\\input{x}\x1b[2J$a$%\n&"))]).to_latex()
    assert "\\input" not in text
    assert not OBEYED.search(text)
    row = text.splitlines()[4]
    assert len(re.findall(r"(?<!\\)&", row)) == len(re.findall(r"(?<!\\)&", text.splitlines()[2]))


def test_html_structure_does_not_depend_on_names() -> None:
    """Whatever the names of rows, the page has the tags and attributes of a page with plain names."""

    class Tags(HTMLParser):
        def __init__(self) -> None:
            super().__init__()
            self.found: list[tuple[str, list[str]]] = []

        def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
            self.found.append((tag, [name for name, _ in attrs]))

    def tags(name: str) -> list[tuple[str, list[str]]]:
        parser = Tags()
        detail = {
            "confusion": [[name, "O", 3]], "labels": [name, "O"], "transitions": [[0.0, 1.0], [0.0, 1.0]],
            "per_type": {name: [1, 1, 1]}, "strongest": {name: [[name, 1.0]]}, "history": [],
            "errors": [["label", name, "O", 1]], "wrong": [[0, [1]]], "counts": [[1, 0, 0, 0, 0]],
        }  # fmt: skip
        row = Row(**{**a_row(name), "accuracy": 0.5, "f1": None, "seed": 0})
        rows = [row, replace(row, learner=name + "2", accuracy=0.4)]
        words = {"title": name, "caption": name, "note": name}
        tests = {row.corpus: tw.Corpus.from_lists([[name]], [[name]])}
        table = Comparison(rows, details=[detail, detail], tests=tests, **words)
        parser.feed(page(table, Origin(name, name, name, name)))
        return parser.found

    assert ("mark", ["class"]) in tags("plain")

    for name in ("</script><script>x", "\"'><img src=x onerror=y>", "<b>&amp;", "-->", "]]>"):
        assert tags(name) == tags("plain")


# --- paths that are not regular files -------------------------------------------------------------------------


def test_missing_models_raise_file_errors(tmp_path: Path) -> None:
    """The error has errno and filename. A folder, a pipe and a name with NUL are reported too."""
    os.mkfifo(tmp_path / "pipe")
    cases = (
        (tmp_path / "none", FileNotFoundError, errno.ENOENT),
        (tmp_path, IsADirectoryError, errno.EISDIR),
        (tmp_path / "pipe", OSError, errno.ESPIPE),
        (Path(os.devnull), OSError, errno.ESPIPE),
        ("a\0b", OSError, errno.EINVAL),
    )
    for path, kind, number in cases:
        with pytest.raises(kind, match="cannot be read") as found:
            tw.load(path)
        assert isinstance(found.value, tw.exceptions.ModelFileError)
        assert (found.value.errno, found.value.filename) == (number, os.fspath(path))


def test_ctrl_c_ends_reading_from_a_pipe(tmp_path: Path) -> None:
    """A model from a pipe is refused at once. Reading a corpus from a pipe blocks, and Ctrl-C ends it."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    assert run("tag", pipe).exit_code == 2
    code = (
        "import sys, signal, tagwise.cli.app; from tagwise.cli import main;"
        "signal.signal(signal.SIGINT, signal.default_int_handler); print('here', flush=True); main()"
    )
    waits = subprocess.Popen(
        [sys.executable, "-c", code, "convert", pipe],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert waits.stdout is not None
    assert waits.stdout.readline() == "here\n"
    while waits.poll() is None:  # Ctrl-C before it blocks ends it as well, and either is fine
        waits.send_signal(signal.SIGINT)
        try:
            waits.wait(0.2)
        except subprocess.TimeoutExpired:
            continue
    waits.communicate()
    assert waits.returncode in (130, -signal.SIGINT, 1)


def test_eval_does_not_consume_a_pipe_to_detect_a_model(tmp_path: Path) -> None:
    """`eval` checks whether its first file is a model and loses no bytes of a pipe by that."""
    pipe, guess = tmp_path / "pipe", tmp_path / "guess.tsv"
    os.mkfifo(pipe)
    guess.write_text("a\tX\nb\tY\n\n")
    feed = subprocess.Popen(["sh", "-c", f"cat '{guess}' > '{pipe}'"])
    result = run("eval", pipe, guess)
    feed.kill()  # the pipe was never opened if the command failed early
    feed.wait()
    assert result.exit_code == 0, result.output
    assert "100.00" in result.output

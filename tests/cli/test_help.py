"""Help pages fit a terminal of 80 columns, break no word, group every option and have examples that can be copied."""

from __future__ import annotations

import inspect
import re
import shlex
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
import rich_click as click
from click.testing import CliRunner

from tagwise.cli import cli
from tagwise.cli.help import in_options

#: In the order in which people use them.
COMMANDS = [
    *("train", "tag", "eval", "errors", "explain", "inspect", "compare", "annotate", "serve"),
    *("split", "convert", "encode", "classes", "pretrained", "bench"),
]
PAGES = ["", *COMMANDS]
WIDE = 1000


def command_of(name: str) -> click.Command:
    return cli.load(name) if name else cli


def page(name: str, width: int) -> list[str]:
    """Return the lines of a help page on a terminal of that width, without trailing spaces."""
    result = CliRunner().invoke(
        cli, [*name.split(), "--help"], prog_name="tagwise", env={"COLUMNS": str(width)}
    )
    assert result.exit_code == 0
    lines = result.stdout.splitlines()
    assert max(map(len, lines)) <= width
    return [line.rstrip() for line in lines]


def examples_of(name: str) -> list[str]:
    """Return the lines of a command's examples as written in its docstring."""
    _, _, block = inspect.cleandoc(command_of(name).help or "").partition("Examples:\n")
    return block.rstrip().splitlines()


def options_of(name: str) -> list[click.Option]:
    return [option for option in command_of(name).params if isinstance(option, click.Option)]


def test_commands_are_listed_in_order_of_use() -> None:
    listed = [
        line.split()[0] for line in page("", 80) if line.startswith("  ") and line.split()[0] in COMMANDS
    ]
    assert listed == COMMANDS == list(cli.commands)


@pytest.mark.parametrize("width", [80, 60])
@pytest.mark.parametrize("name", PAGES)
def test_help_wraps_without_breaking_words(name: str, width: int) -> None:
    """Wrapping moves words and never splits them: a narrow page has the words of a wide one."""
    assert Counter(" ".join(page(name, width)).split()) == Counter(" ".join(page(name, WIDE)).split())


@pytest.mark.parametrize("name", PAGES)
def test_every_option_is_in_one_group(name: str) -> None:
    lines = page(name, 80)
    titles = [line[:-1] for line in lines if re.fullmatch(r"[A-Z][a-z, ]+:", line) and line != "Examples:"]
    assert len(titles) == len(set(titles))
    assert "Options" not in titles
    for option in options_of(name):
        assert getattr(option, "panel", None) in titles, option.name
        assert option.help, option.name
        spelled = max(option.opts, key=len)
        rows = [line for line in lines if re.match(rf"  (-\w, )?{spelled}( |$)", line)]
        assert len(rows) == 1, (spelled, rows)
    assert "  -h, --help" in [line[:12] for line in lines]


@pytest.mark.parametrize("name", PAGES)
def test_metavars_are_short(name: str) -> None:
    for option in options_of(name):
        if not option.is_flag:
            assert option.metavar, option.name
            assert len(option.metavar) <= 10, option.metavar


@pytest.mark.parametrize("args", [[], ["--help"], ["--version"]])
def test_help_and_version_import_no_command(args: list[str]) -> None:
    """Neither commands nor NumPy, so that the answer comes at once."""
    code = f"""
import sys
from tagwise.cli import cli
try:
    cli({args!r}, prog_name="tagwise")
except SystemExit:
    pass
heavy = {{"numpy", "tagwise.estimators", "tagwise.corpus", "tagwise.apps"}}
commands = {{f"tagwise.cli.{{entry.module}}" for entry in cli.commands.values()}}
assert len(commands) == {len(COMMANDS)}
assert not (heavy | commands) & set(sys.modules), sorted((heavy | commands) & set(sys.modules))
"""
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)


@pytest.mark.parametrize("name", COMMANDS)
def test_command_summaries_fit_on_one_line(name: str) -> None:
    summary = (command_of(name).help or "").splitlines()[0]
    assert any(line.split(maxsplit=1) == [name, summary] for line in page("", 80))


@pytest.mark.parametrize("name", PAGES)
def test_examples_can_be_copied(name: str) -> None:
    """Every line is shown as it was written, also on a narrow terminal, and every command has options that exist."""
    block = examples_of(name)
    for width in (80, 60):
        lines = page(name, width)
        at = lines.index("Examples:") + 1
        assert lines[at : at + len(block)] == block
    text = "\n".join(block).replace("\\\n", " ")
    calls = re.findall(r"\btagwise ([^|>\n]+)", text)
    assert any(call.split()[0] == name for call in calls) or not name
    for call in calls:
        first, *args = shlex.split(call)
        command = cli.load(first)
        context = click.RichContext(command, resilient_parsing=True)
        command.make_parser(context).parse_args(list(args))


@pytest.mark.parametrize(
    ("message", "shown"),
    [
        ("use device='cpu'", "use --device cpu"),
        ("name those of the file with columns=(...).", "name those of the file with --columns NAMES."),
        ("columns=('word', 'label')", "--columns word,label"),
        ("pass forget=True, or warm_start", "pass --forget, or --warm-start"),
        ("use l1=0, or optimizer='owlqn'", "use --set l1=0, or --set optimizer=owlqn"),
        (
            "use S3(window=2), or order=1 with constraints=False",
            "use S3(window=2), or --set order=1 with --set constraints=False",
        ),
        ("a/l2=1/x.txt: 'l2=1' is a file", "a/l2=1/x.txt: 'l2=1' is a file"),
        ("call tagwise.load(path, device='cpu')", "call tagwise.load(path, device='cpu')"),
        ("--set l2=1: no", "--set l2=1: no"),
        ("the columns and the label", "the columns and the label"),
        ("colour=3", "colour=3"),
    ],
)
def test_messages_name_options_instead_of_arguments(message: str, shown: str) -> None:
    assert in_options(message, cli.load("train")) == shown
    functions = "pass functions={'m:f': function}, or trust=True"
    assert in_options(functions, cli.load("tag")) == "pass --functions m:f, or --trust"
    assert in_options(functions, cli.load("train")) == functions


def test_remedies_name_command_line_options(tmp_path: Path) -> None:
    """A file that cannot be read and parameters that exclude each other are explained in terms of the command line."""
    ragged = tmp_path / "ragged.txt"
    ragged.write_text("a\tX\nb\tY\tZ\n")
    args = ["train", "wnut17-ner:dev", "-o", str(tmp_path / "m"), "--set", "l1=1", "--set", "optimizer=lbfgs"]
    for given, remedy in (
        (["convert", str(ragged)], "--columns NAMES"),
        (args, "--set optimizer=lbfgs does not support --set l1=1"),
    ):
        result = CliRunner().invoke(cli, given)
        assert result.exit_code == 2
        assert remedy in result.stderr

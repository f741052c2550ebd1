"""Shell completion proposes commands, options, files and names, as described in docs/reference/cli.md."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from click.shell_completion import ShellComplete

from tagwise.cli import cli

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "cli.md"
RUN = "import sys; sys.argv[0] = 'tagwise'; from tagwise.cli import main; main()"


def completion_output(**environment: str) -> str:
    return subprocess.run(
        [sys.executable, "-c", RUN], env={**os.environ, **environment}, capture_output=True, text=True
    ).stdout


@pytest.mark.parametrize(
    ("words", "wanted"),
    [("tagwise tr", {"train"}), ("tagwise train --wa", {"--warm-start"}), ("tagwise comp", {"compare"})],
)
def test_commands_and_options_are_completed(words: str, wanted: set[str]) -> None:
    """Completion follows the protocol of click's shell scripts."""
    completions = completion_output(
        _TAGWISE_COMPLETE="bash_complete", COMP_WORDS=words, COMP_CWORD=str(len(words.split()) - 1)
    )
    assert {line.partition(",")[2] for line in completions.splitlines()} == wanted


@pytest.mark.parametrize(
    ("words", "wanted"),
    [
        ("train mod", ["file mod"]), ("tag ", ["file "]), ("tag en-p", ["plain en-pos"]),
        (
            "tag en-pos w",
            [
                "plain wnut17-ner", "plain wnut17-ner:train", "plain wnut17-ner:dev", "plain wnut17-ner:test",
                "plain words.txt",
            ],
        ),
        ("tag en-pos words", ["file words"]),
        ("eval en-pos wnut17-ner:d", ["plain wnut17-ner:dev"]),
        ("train x --warm-start mod", ["file mod"]), ("train x -o ewt", ["file ewt"]),
        ("train x --learner mi", ["plain mira"]),
        ("train x -f S", ["plain S1", "plain S2", "plain S3", "plain S2pairs"]),
        ("compare --corpus wn", ["plain wnut17-ner"]), ("compare --cache ", ["dir "]),
        ("pretrained en-u", ["plain en-upos"]), ("pretrained nothing", []),
    ],
)  # fmt: skip
def test_files_and_names_are_completed(
    words: str, wanted: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The shell completes files and folders. Known names are proposed, together with files that share the prefix."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "words.txt").touch()
    (tmp_path / "model.tagwise").touch()
    *before, last = words.split(" ")
    found = ShellComplete(cli, {}, "tagwise", "_TAGWISE_COMPLETE").get_completions(before, last)
    assert [f"{item.type} {item.value}" for item in found] == wanted


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_completion_script_is_printed(shell: str) -> None:
    """The page names the variable and a value that prints the script."""
    assert re.search(rf"_TAGWISE_COMPLETE={shell}_source tagwise", PAGE.read_text("utf-8"))
    assert "_TAGWISE_COMPLETE" in completion_output(_TAGWISE_COMPLETE=f"{shell}_source")

"""The shell is told what may follow, as the page of the command line says."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "cli.md"
RUN = "import sys; sys.argv[0] = 'tagwise'; from tagwise.cli import main; main()"


def asked(**environment: str) -> str:
    return subprocess.run(
        [sys.executable, "-c", RUN], env={**os.environ, **environment}, capture_output=True, text=True
    ).stdout


@pytest.mark.parametrize(
    ("words", "wanted"),
    [("tagwise tr", {"train"}), ("tagwise train --wa", {"--warm-start"}), ("tagwise comp", {"compare"})],
)
def test_words_are_completed(words: str, wanted: set[str]) -> None:
    """By the protocol that the script of the shell speaks."""
    said = asked(_TAGWISE_COMPLETE="bash_complete", COMP_WORDS=words, COMP_CWORD=str(len(words.split()) - 1))
    assert {line.partition(",")[2] for line in said.splitlines()} == wanted


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_the_script_of_a_shell_is_printed(shell: str) -> None:
    """The page names the variable and the value that the command answers to."""
    assert re.search(rf"_TAGWISE_COMPLETE={shell}_source tagwise", PAGE.read_text("utf-8"))
    assert "_TAGWISE_COMPLETE" in asked(_TAGWISE_COMPLETE=f"{shell}_source")

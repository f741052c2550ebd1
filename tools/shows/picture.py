"""Picture of the README, drawn from the output of a comparison: `python -m tools.shows.picture`.

The command takes some seconds. rich draws its output as SVG, with head and best scores in colour. No font is fetched:
the viewer uses its own.
"""

from __future__ import annotations

import inspect
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from rich.console import Console
from rich.text import Text

PICTURE = Path(__file__).parents[2] / "docs" / "pictures" / "compare.svg"
WIDTH = 100
COMMAND = (
    "tagwise compare --corpus ewt-pos -f S2 --size 1000 --learner crf --learner crf-l1 --learner mira "
    "--learner perceptron --learner hmsvm --learner hmm --against crf"
)
#: Format of rich without the fonts that it would fetch.
FORMAT = inspect.signature(Console.export_svg).parameters["code_format"].default
PLAIN = re.sub(r"@font-face \{\{.*?\}\}\s*", "", FORMAT, flags=re.DOTALL)


def printed(command: str) -> str:
    """Return the output of a command in a pipe, formatted for WIDTH columns."""
    with tempfile.TemporaryDirectory(prefix="tagwise-picture-") as cache:
        settings = {"COLUMNS": str(WIDTH), "NO_COLOR": "1", "TAGWISE_CACHE": cache}
        words = command.split()
        found = subprocess.run(
            [sys.executable, "-m", *words],
            env={**os.environ, **settings},
            stdout=subprocess.PIPE,
            text=True,
            check=True,
        )
    return found.stdout


def coloured(output: str) -> Text:
    """Return the table with its head in bold and the best accuracy in green."""
    text = Text(output, style="default")
    scores = [float(found[1]) for found in re.finditer(r"^ +[\w-]+ .*?(\d\d\.\d\d)", output, re.MULTILINE)]
    text.highlight_regex(r"(?m)^ +learner .*$", "bold cyan")
    if scores:
        text.highlight_regex(re.escape(f"{max(scores):.2f}"), "bold green")
    return text


def drawn(command: str, output: str) -> str:
    """Return a command and its output as SVG."""
    with open(os.devnull, "w") as nowhere:
        console = Console(
            record=True, width=WIDTH, force_terminal=True, color_system="truecolor", file=nowhere
        )
        half = command.index(" --learner perceptron")
        console.print(Text(f"$ {command[:half]} \\\n   {command[half:]}", style="bold"))
        console.print(coloured(output.strip("\n")))
        svg = console.export_svg(title="tagwise compare", code_format=PLAIN, unique_id="compare")
    return re.sub(r"Fira Code", "ui-monospace", svg)


if __name__ == "__main__":
    PICTURE.write_text(drawn(COMMAND, printed(COMMAND)), "utf-8")

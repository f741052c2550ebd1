"""Shell sessions on a page: run the lines after `$ ` in `console` blocks and write their output below them."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

BLOCK = re.compile(r"^```console\n(.*?)^```", re.MULTILINE | re.DOTALL)
LIMIT = 120  # seconds per command


def environment(home: Path) -> dict[str, str]:
    """Return a plain terminal of 80 columns, an empty home, and the commands of this installation first on the path."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("TAGWISE_", "XDG_", "COVERAGE_", "PYTEST_"))
    }
    path = f"{home / 'bin'}{os.pathsep}{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}"
    return {**kept, "HOME": str(home), "COLUMNS": "80", "NO_COLOR": "1", "TERM": "dumb", "PATH": path}


def install(home: Path) -> None:
    """Install a command `tagwise` that runs this tree."""
    (home / "bin").mkdir(parents=True)
    command = home / "bin" / "tagwise"
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m tagwise "$@"\n')
    command.chmod(0o755)


def commands(block: str) -> list[str]:
    """Return the commands of a block, with continuation lines."""
    out: list[str] = []
    for line in block.splitlines():
        if out and out[-1].endswith("\\"):
            out[-1] += "\n" + line
        elif line.startswith("$ "):
            out.append(line[2:])
    return out


def run(command: str, folder: Path, home: Path) -> str:
    """Return the output of a command, followed by its exit status if that is not 0."""
    found = subprocess.run(
        ["bash", "-c", command],
        cwd=folder,
        env=environment(home),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=LIMIT,
        check=False,
    )
    text = "\n".join(line.rstrip() for line in found.stdout.splitlines()).replace(str(home), "~")
    return (text + "\n" if text else "") + (f"[exit status {found.returncode}]\n" if found.returncode else "")


def made(page: str, folder: Path) -> str:
    """Return the page with the output of its commands, run in one folder from top to bottom."""
    home, work = folder / "home", folder / "work"
    install(home)
    work.mkdir()

    def block(found: re.Match[str]) -> str:
        parts = [f"$ {command}\n{run(command, work, home)}" for command in commands(found[1])]
        return "```console\n" + "\n".join(parts).rstrip() + "\n```"

    return BLOCK.sub(block, page)

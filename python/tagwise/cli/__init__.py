"""What people type: ``tagwise`` and ``encode | train | tag | eval | errors | explain | inspect | compare ...``."""

from __future__ import annotations

from tagwise.cli.annotate import annotate
from tagwise.cli.app import cli
from tagwise.cli.bench import bench
from tagwise.cli.compare import compare
from tagwise.cli.completion import suggest
from tagwise.cli.convert import convert
from tagwise.cli.encode import encode
from tagwise.cli.errors import errors
from tagwise.cli.evaluate import evaluate
from tagwise.cli.explain import explain
from tagwise.cli.inspect import inspect
from tagwise.cli.pretrained import pretrained
from tagwise.cli.serve import serve
from tagwise.cli.tag import tag
from tagwise.cli.train import train

for _command in (
    *(encode, train, tag, evaluate, errors, explain, inspect, pretrained),
    *(compare, convert, annotate, serve, bench),
):
    suggest(_command)
    cli.add_command(_command)


def main() -> None:
    """Run the command line; the process ends with its exit code."""
    cli(prog_name="tagwise")


__all__ = ["cli", "main"]

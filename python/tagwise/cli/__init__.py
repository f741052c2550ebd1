"""Command line: ``tagwise`` and its commands, one module per command."""

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

#: Commands by group, in the order in which people use them.
GROUPS = {
    "Train and tag": (train, tag, evaluate),
    "Understand and improve": (errors, explain, inspect, compare),
    "Annotate and serve": (annotate, serve),
    "Data, models and speed": (convert, encode, pretrained, bench),
}

for _group, _commands in GROUPS.items():
    for _command in _commands:
        suggest(_command)
        _command.panel = _group
        cli.add_command(_command)


def main() -> None:
    """Run the command line and exit with its code."""
    cli(prog_name="tagwise")


__all__ = ["cli", "main"]

"""Command line: ``tagwise`` and its commands, one module per command, imported when the command is used."""

from __future__ import annotations

from tagwise.cli.app import CommandEntry, cli

#: Commands by group, in the order in which people use them: name, module and summary. The summary repeats the first
#: line of the command's help, so that ``tagwise --help`` does not import the commands.
GROUPS = {
    "Train and tag": (
        ("train", "train", "Train a tagger on a corpus and write it to a model file."),
        ("tag", "tag", "Label text or a corpus with a model."),
        ("eval", "evaluate", "Score a model or a file of predictions against gold labels."),
    ),
    "Understand and improve": (
        ("errors", "errors", "Show the errors of a model by kind, with examples in context."),
        ("explain", "explain", "Show which features decide the labels of a sentence."),
        ("inspect", "inspect", "Show the parameters, metrics and strongest features of a model."),
        ("compare", "compare", "Train several learners on corpora and compare their scores."),
    ),
    "Annotate and serve": (
        ("annotate", "annotate", "Label sentences in a browser with a model that learns from you."),
        ("serve", "serve", "Serve models over HTTP."),
    ),
    "Data, models and speed": (
        ("split", "split", "Split a corpus into random parts, such as train, dev and test."),
        ("convert", "convert", "Convert a corpus or a model to another format."),
        ("encode", "encode", "Encode a corpus that does not fit in memory as shards."),
        ("classes", "classes", "Learn word classes from raw text, as features for tagwise train."),
        ("pretrained", "pretrained", "List the pretrained taggers with their corpora and scores."),
        ("bench", "bench", "Measure the speed of training and tagging on this machine."),
    ),
}

for _group, _commands in GROUPS.items():
    for _command in _commands:
        cli.add_command(CommandEntry(*_command, panel=_group))


def main() -> None:
    """Run the command line and exit with its code."""
    cli(prog_name="tagwise")


__all__ = ["cli", "main"]

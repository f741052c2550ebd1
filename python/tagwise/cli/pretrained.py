"""``tagwise pretrained``: list the pretrained taggers."""

from __future__ import annotations

import json
from typing import Any

import rich_click as click
from rich.console import Console

from tagwise.base.parameters import meant
from tagwise.base.terminal import as_text, pair_table, percent
from tagwise.cli.app import debug_option
from tagwise.cli.help import OUTPUT, Command
from tagwise.cli.models import load_pretrained
from tagwise.cli.options import option


def format_scores(scores: Any) -> str:
    """Format the scores of a pretrained tagger on the test part of its corpus."""
    if not isinstance(scores, dict):
        return "unknown"
    names = {"f1": "F1", "accuracy": "accuracy", "sequence_accuracy": "sentences"}
    known = {name: scores[name] for name in names if isinstance(scores.get(name), (int, float))}
    parts = [f"{names[name]} {percent(value)}" for name, value in known.items()]
    return ", ".join(parts) + " on the test part"


def described(info: Any, tagger: Any) -> dict[str, Any]:
    """Return the description of a pretrained tagger, with its scores if it is in the cache."""
    card = {} if tagger is None else tagger.model_.meta["pretrained"]
    path = info.path()
    return {
        "name": info.name,
        "task": info.task,
        "corpus": info.corpus,
        "licence": info.licence,
        "learner": info.learner,
        "params": dict(info.params),
        "test": card.get("test"),
        "file": str(path) if path is not None and path.exists() else None,
    }


def as_table(entry: dict[str, Any]) -> Any:
    """Return the description without the path of the file as a table."""
    settings = ", ".join(f"{name}={value}" for name, value in entry["params"].items())
    scores = format_scores(entry["test"])
    if entry["test"] is None:
        scores = f"not trained yet: tagwise pretrained {entry['name']}"
    rows = [
        ("task", entry["task"]),
        ("trained on", f"{entry['corpus']} ({entry['licence']}), {entry['learner']}({settings})"),
        ("scores", scores),
    ]
    return pair_table(rows, title=entry["name"])


@click.command(cls=Command)
@click.argument("names", metavar="[NAME]...", nargs=-1)
@option("--json", "Print JSON instead of text.", OUTPUT, name="as_json")
@debug_option
def pretrained(names: tuple[str, ...], as_json: bool) -> None:
    """List the pretrained taggers with their corpora and scores.

    Their names can be used wherever a command takes a MODEL. A tagger is trained on a bundled corpus at first use,
    which takes seconds, and kept in the user's cache. Each NAME is trained now, if it is not in the cache.

    \b
    Examples:
      tagwise pretrained
      tagwise pretrained en-pos en-ner-demo
      echo "I love London !" | tagwise tag en-pos --format text
    """
    from tagwise.apps.pretrained import TAGGERS, list_pretrained

    for name in names:
        if name not in TAGGERS:
            raise click.BadParameter(
                f"unknown pretrained tagger {name!r}{meant(name, TAGGERS)}. Use one of {', '.join(TAGGERS)}, or "
                "tagwise inspect for a model file",
                param_hint="NAME",
            )
    entries = [described(TAGGERS[name], load_pretrained(name)) for name in names] or [
        described(info, info.kept()) for info in list_pretrained()
    ]
    if as_json:
        click.echo(json.dumps(entries, ensure_ascii=False, indent=2))
        return
    console = Console()
    for entry in entries:
        # The path is not part of the table, which would wrap it.
        click.echo(as_text(as_table(entry), console.width).rstrip("\n"))
        click.echo(f"file        {entry['file'] or 'none yet'}\n")

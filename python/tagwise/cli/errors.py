"""``tagwise errors``: where a model is wrong."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import rich_click as click
from rich.console import Console

from tagwise.base.terminal import as_text
from tagwise.cli.app import debug_option
from tagwise.cli.files import corpus_options, read_corpus
from tagwise.cli.models import function_options, load_model
from tagwise.corpus.labels import texts


@click.command()
@click.argument("model", metavar="MODEL")
@click.argument("source", metavar="FILE")
@corpus_options
@click.option(
    "--top", type=click.IntRange(min=1), default=10, show_default=True, help="Kinds of errors shown."
)
@click.option(
    "--examples", type=click.IntRange(min=0), default=3, show_default=True, help="Errors shown of each kind."
)
@click.option("--json", "as_json", is_flag=True, help="All errors as JSON.")
@function_options
@debug_option
def errors(
    model: str,
    source: str,
    columns: str | None,
    label: str | None,
    form: str | None,
    top: int,
    examples: int,
    as_json: bool,
    functions: dict[str, Any],
    trust: bool,
) -> None:
    """Tag the labelled FILE with MODEL and show what is wrong: kinds of errors, the most frequent first, in context.

    Spans are missed, spurious, or have another type or other borders; without spans, tokens have another label.

    \b
    Examples:
      tagwise errors model.tagwise test.txt
      tagwise errors model.tagwise test.txt --top 30 --examples 10 | less
      tagwise errors model.tagwise wnut17-ner:dev --json | jq '.groups[0].errors[].text'
    """
    from tagwise.evaluation.errors import find_errors

    tagger = load_model(model, functions, trust)
    corpus = read_corpus(source, form, columns, label, part="test", tagger=tagger)
    predicted, _ = texts(tagger.predict(corpus))  # as texts: files have no other labels
    found = replace(find_errors(corpus, predicted), top=top, examples=examples)
    if as_json:
        click.echo(json.dumps(found.to_dict(), ensure_ascii=False, indent=2))
        return
    console = Console()
    if console.is_terminal:
        console.print(found)
    else:
        click.echo(as_text(found, console.width))

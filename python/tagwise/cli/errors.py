"""``tagwise errors``: show the errors of a model."""

from __future__ import annotations

from typing import Any

import rich_click as click

from tagwise.cli.app import debug_option, show
from tagwise.cli.files import corpus_options, label_options, read_corpus
from tagwise.cli.help import OUTPUT, Command
from tagwise.cli.models import function_options, load_model
from tagwise.cli.options import COUNT, option


@click.command(cls=Command)
@click.argument("model", metavar="MODEL")
@click.argument("source", metavar="FILE")
@corpus_options
@label_options
@option("--top N", "Number of kinds of errors to show.", OUTPUT, type=COUNT, default=10)
@option(
    "--examples N", "Number of errors to show of each kind.", OUTPUT, type=click.IntRange(min=0), default=3
)
@option("--json", "Print all errors as JSON.", OUTPUT, name="as_json")
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
    """Show the errors of a model by kind, with examples in context.

    FILE is a labelled corpus, which MODEL tags. The most frequent kinds come first. A span is missed, spurious, of the
    wrong type or has wrong boundaries. If labels do not mark spans, errors are tokens with a wrong label.

    \b
    Examples:
      tagwise errors model.tagwise test.txt
      tagwise errors model.tagwise test.txt --top 30 | less
      tagwise errors en-ner-demo wnut17-ner:dev --json \\
          | jq '.groups[0].errors[].text'
    """
    tagger = load_model(model, functions, trust)
    corpus = read_corpus(source, form, columns, label, part="test", tagger=tagger)
    show(tagger.errors(corpus, top=top, examples=examples), as_json=as_json)

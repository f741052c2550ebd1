"""``tagwise eval``: labels against gold."""

from __future__ import annotations

import json
from typing import Any

import rich_click as click
from rich.console import Console

from tagwise.cli.app import debug_option
from tagwise.cli.files import corpus_options, read_corpus
from tagwise.cli.models import function_options, load_model, names_model
from tagwise.corpus.sentence import Corpus
from tagwise.errors import CorpusError
from tagwise.terminal import visible


def _pair(corpus: Corpus, name: str) -> tuple[list[list[str]], list[list[str]]]:
    """Gold and predicted labels of one file: its last two columns, as ``tag`` and conlleval have them."""
    if len(corpus.columns) < 3:
        raise CorpusError(
            f"{name}: columns {', '.join(corpus.columns)}; expected gold and predicted labels as the "
            "last two of three or more. Give a second file with the predicted labels."
        )
    gold, predicted = corpus.columns[-2:]
    return corpus.column(gold), corpus.column(predicted)


def _check_same(gold: Corpus, predicted: Corpus, names: tuple[str, str]) -> None:
    if len(gold) != len(predicted):
        raise CorpusError(
            f"{names[0]} has {len(gold)} sentences, {names[1]} has {len(predicted)}. "
            "Compare files of the same sentences."
        )
    for index, (a, b) in enumerate(zip(gold, predicted)):
        if a.tokens != b.tokens:
            raise CorpusError(
                f"{names[0]}:{a.line} and {names[1]}:{b.line}: sentence {index + 1} is not the same in both "
                f"({' '.join(a.tokens[:5])} ... against {' '.join(b.tokens[:5])} ...). "
                "Compare files of the same text."
            )


@click.command("eval")
@click.argument("first", metavar="GOLD|MODEL")
@click.argument("second", metavar="[PREDICTED|TEST]", required=False)
@corpus_options
@click.option(
    "--confusion", type=click.IntRange(min=0), default=0, help="Show the N most frequent confusions."
)
@click.option("--json", "as_json", is_flag=True, help="The scores as JSON.")
@function_options
@debug_option
def evaluate(
    first: str,
    second: str | None,
    columns: str | None,
    label: str | None,
    form: str | None,
    confusion: int,
    as_json: bool,
    functions: dict[str, Any],
    trust: bool,
) -> None:
    """Score predicted labels: precision, recall and F1 of spans as conlleval has them, and accuracy.

    With one file, its last two columns are gold and predicted. With two files, the last column of each
    counts. With a model, the corpus is tagged first.

    \b
    Examples:
      tagwise eval gold.txt predicted.txt
      tagwise eval model.tagwise test.txt
      tagwise tag model.tagwise test.txt | tagwise eval -
    """
    import tagwise as tw
    from tagwise.terminal import table

    if second is None and names_model(first):
        raise click.UsageError(
            f"{first} is a model; name the corpus to score it on: tagwise eval {first} TEST"
        )
    if second is None:
        gold, predicted = _pair(read_corpus(first, form, columns, label, part="test"), first)
        report = tw.evaluate(gold, predicted)
    elif names_model(first):
        tagger = load_model(first, functions, trust)
        report = tagger.evaluate(read_corpus(second, form, columns, label, part="test", tagger=tagger))
    else:
        right = read_corpus(first, form, columns, label, part="test")
        guess = read_corpus(second, form, columns, label, part="test")
        _check_same(right, guess, (first, second))
        report = tw.evaluate(right.labels, guess.labels)
    if as_json:
        click.echo(visible(json.dumps(report.to_dict(), ensure_ascii=False, indent=2), keep="\n"))
        return
    console = Console()
    console.print(report)
    if confusion:
        errors = [(g, p, f"{n:,}") for g, p, n in report.errors(confusion)]
        console.print(table(("gold", "predicted", "tokens"), errors, left=2))


__all__ = ["evaluate"]

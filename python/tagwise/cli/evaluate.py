"""``tagwise eval``: score predicted labels against gold labels."""

from __future__ import annotations

import json
from typing import Any

import rich_click as click
from rich.console import Console

from tagwise.base.exceptions import CorpusError, ParameterError
from tagwise.base.terminal import visible
from tagwise.cli.app import debug_option
from tagwise.cli.files import corpus_options, label_options, read_corpus
from tagwise.cli.help import MODEL, OUTPUT, Command
from tagwise.cli.models import function_options, load_model, names_model, need_probabilities
from tagwise.cli.options import option
from tagwise.corpus.sentence import Corpus
from tagwise.evaluation.metrics import Report
from tagwise.evaluation.thresholds import Threshold

#: Arguments of `Tagger.choose_threshold` that select a threshold.
GOALS = ("precision", "beta")


def _pair(corpus: Corpus, name: str) -> tuple[list[list[str]], list[list[str]]]:
    """Return gold and predicted labels of one file: its last two columns, as ``tag`` and conlleval write them."""
    if len(corpus.columns) < 3:
        raise CorpusError(
            f"{name}: expected three or more columns, the last two with gold and predicted labels, but found "
            f"{', '.join(corpus.columns)}. Give a second file with the predicted labels."
        )
    gold, predicted = corpus.columns[-2:]
    return corpus.column(gold), corpus.column(predicted)


def _check_same_sentences(gold: Corpus, predicted: Corpus, names: tuple[str, str]) -> None:
    if len(gold) != len(predicted):
        raise CorpusError(
            f"{names[0]} has {len(gold)} sentences, {names[1]} has {len(predicted)}. "
            "Give two files with the same sentences."
        )
    for index, (a, b) in enumerate(zip(gold, predicted)):
        if a.tokens != b.tokens:
            raise CorpusError(
                f"{names[0]}:{a.line} and {names[1]}:{b.line}: sentence {index + 1} differs "
                f"({' '.join(a.tokens[:5])} ... and {' '.join(b.tokens[:5])} ...). "
                "Give two files with the same sentences."
            )


def _goal(context: click.Context, parameter: click.Parameter, text: str | None) -> dict[str, float] | None:
    """Parse ``precision=0.7`` or ``beta=0.5``."""
    if text is None:
        return None
    name, _, value = text.partition("=")
    try:
        if name not in GOALS:
            raise ValueError
        return {name: float(value)}
    except ValueError:
        raise click.BadParameter(
            f"{text!r}: expected precision=P (the highest recall at that precision) or beta=B (the best F-beta "
            "score, with beta=1 for F1)",
            param_hint="--threshold",
        ) from None


def _scored(
    tagger: Any, corpus: Corpus, min_probability: float | None, goal: dict[str, float] | None
) -> tuple[Report, Threshold | None]:
    """Score a model on a corpus without improbable spans, and return the threshold that `goal` selects."""
    if min_probability is None and goal is None:
        return tagger.evaluate(corpus), None
    need_probabilities(tagger, "--min-probability" if goal is None else "--threshold")
    chosen = None
    if goal is not None:
        try:
            chosen = tagger.choose_threshold(corpus, **goal)
        except ParameterError as error:
            raise click.BadParameter(str(error), param_hint="--threshold") from error
        min_probability = chosen.min_probability
    return tagger.evaluate(corpus, min_probability=min_probability), chosen


@click.command("eval", cls=Command)
@click.argument("first", metavar="GOLD|MODEL")
@click.argument("second", metavar="[PREDICTED|TEST]", required=False)
@corpus_options
@label_options
@option(
    "--confusion N",
    "Also show the N most frequent confusions of two labels.",
    OUTPUT,
    type=click.IntRange(min=0),
    default=0,
    show_default=False,
)
@option("--json", "Print the scores as JSON.", OUTPUT, name="as_json")
@option(
    "--min-probability P",
    "Drop spans with a probability below P, as tagwise tag does (crf, memm).",
    MODEL,
    type=click.FloatRange(0.0, 1.0),
)
@option(
    "--threshold GOAL",
    "Choose --min-probability on this corpus: precision=0.7 for the highest recall at that precision, beta=0.5 "
    "for the best F-beta score (beta=1 is F1).",
    MODEL,
    name="goal",
    callback=_goal,
)
@function_options
@debug_option
def evaluate(
    first: str,
    second: str | None,
    columns: str | None,
    label: str | None,
    form: str | None,
    confusion: int,
    min_probability: float | None,
    goal: dict[str, float] | None,
    as_json: bool,
    functions: dict[str, Any],
    trust: bool,
) -> None:
    """Score a model or a file of predictions against gold labels.

    Scores are accuracy and, for labels of spans, precision, recall and F1 as computed by conlleval. A model tags TEST
    first. Of two files, the label columns are compared. Of one file, the last two columns are gold and predicted
    labels.

    \b
    Examples:
      tagwise eval model.tagwise test.txt
      tagwise eval gold.txt predicted.txt
      tagwise eval model.tagwise dev.txt --confusion 10
      tagwise eval model.tagwise dev.txt \\
          --threshold precision=0.7
      tagwise tag model.tagwise test.txt | tagwise eval -
    """
    import tagwise as tw
    from tagwise.base.terminal import table

    if second is None and names_model(first):
        raise click.UsageError(
            f"{first} is a model. Add the corpus to score it on: tagwise eval {first} TEST"
        )
    if min_probability is not None and goal is not None:
        raise click.UsageError("--min-probability and --threshold cannot be combined. Omit one of them")
    if (min_probability is not None or goal is not None) and not names_model(first):
        raise click.UsageError(
            "--min-probability and --threshold require probabilities, which a file of labels lacks. Give a model: "
            "tagwise eval MODEL TEST"
        )
    chosen = None
    if second is None:
        gold, predicted = _pair(read_corpus(first, form, columns, label, part="test"), first)
        report = tw.evaluate(gold, predicted)
    elif names_model(first):
        tagger = load_model(first, functions, trust)
        corpus = read_corpus(
            second, form, columns, label, part="test" if goal is None else "dev", tagger=tagger
        )
        report, chosen = _scored(tagger, corpus, min_probability, goal)
    else:
        gold_corpus = read_corpus(first, form, columns, label, part="test")
        predicted_corpus = read_corpus(second, form, columns, label, part="test")
        _check_same_sentences(gold_corpus, predicted_corpus, (first, second))
        report = tw.evaluate(gold_corpus.labels, predicted_corpus.labels)
    if as_json:
        found = report.to_dict()
        if chosen is not None:
            found["min_probability"] = chosen.min_probability
        click.echo(visible(json.dumps(found, ensure_ascii=False, indent=2), keep="\n"))
        return
    console = Console()
    console.print(report)
    if chosen is not None:
        click.echo(f"chosen: --min-probability {chosen.min_probability!r}")
    if confusion:
        errors = [(g, p, f"{n:,}") for g, p, n in report.errors(confusion)]
        console.print(table(("gold", "predicted", "tokens"), errors, left=2))

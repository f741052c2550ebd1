"""``tagwise eval``: labels against gold."""

from __future__ import annotations

import json
from typing import Any

import rich_click as click
from rich.console import Console

from tagwise.base.exceptions import CorpusError, ParameterError
from tagwise.base.terminal import visible
from tagwise.cli.app import debug_option
from tagwise.cli.files import corpus_options, read_corpus
from tagwise.cli.help import MODEL, OUTPUT, Command
from tagwise.cli.models import function_options, load_model, names_model, need_probabilities
from tagwise.corpus.sentence import Corpus
from tagwise.evaluation.metrics import Report
from tagwise.evaluation.thresholds import Threshold

#: What a threshold may be chosen by, as `choose_threshold` of a tagger has it.
GOALS = ("precision", "beta")


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


def _goal(context: click.Context, parameter: click.Parameter, text: str | None) -> dict[str, float] | None:
    """``precision=0.7`` or ``beta=0.5`` as it is typed."""
    if text is None:
        return None
    name, _, value = text.partition("=")
    try:
        if name not in GOALS:
            raise ValueError
        return {name: float(value)}
    except ValueError:
        raise click.BadParameter(
            f"{text!r}: expected precision=P (the most recall with such a precision) or beta=B (the best F-beta; "
            "beta=1 is F1)",
            param_hint="--threshold",
        ) from None


def _scored(
    tagger: Any, corpus: Corpus, least: float | None, goal: dict[str, float] | None
) -> tuple[Report, Threshold | None]:
    """Scores of a model on a corpus, without spans that are less probable than `least` or what `goal` chooses."""
    if least is None and goal is None:
        return tagger.evaluate(corpus), None
    need_probabilities(tagger, "--min-probability" if goal is None else "--threshold")
    chosen = None
    if goal is not None:
        try:
            chosen = tagger.choose_threshold(corpus, **goal)
        except ParameterError as error:
            raise click.BadParameter(str(error), param_hint="--threshold") from error
        least = chosen.min_probability
    return tagger.evaluate(corpus, min_probability=least), chosen


@click.command("eval", cls=Command)
@click.argument("first", metavar="GOLD|MODEL")
@click.argument("second", metavar="[PREDICTED|TEST]", required=False)
@corpus_options
@click.option(
    "--confusion",
    type=click.IntRange(min=0),
    metavar="N",
    default=0,
    help="Also show the N most frequent confusions of two labels.",
    panel=OUTPUT,
)
@click.option("--json", "as_json", is_flag=True, help="Print the scores as JSON.", panel=OUTPUT)
@click.option(
    "--min-probability",
    "least",
    type=click.FloatRange(0.0, 1.0),
    metavar="P",
    help="Drop spans with a probability below P, as tagwise tag does (crf, memm).",
    panel=MODEL,
)
@click.option(
    "--threshold",
    "goal",
    metavar="GOAL",
    callback=_goal,
    help="Choose --min-probability on this corpus: precision=0.7 for the highest recall at that precision, beta=0.5 "
    "for the best F-beta score (beta=1 is F1).",
    panel=MODEL,
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
    least: float | None,
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
            f"{first} is a model; name the corpus to score it on: tagwise eval {first} TEST"
        )
    if least is not None and goal is not None:
        raise click.UsageError("--min-probability and --threshold exclude each other: take one of them")
    if (least is not None or goal is not None) and not names_model(first):
        raise click.UsageError(
            "--min-probability and --threshold need probabilities, which a file of labels has not: give a model first, "
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
        report, chosen = _scored(tagger, corpus, least, goal)
    else:
        right = read_corpus(first, form, columns, label, part="test")
        guess = read_corpus(second, form, columns, label, part="test")
        _check_same(right, guess, (first, second))
        report = tw.evaluate(right.labels, guess.labels)
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

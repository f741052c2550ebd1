"""``tagwise inspect``: show the contents of a model file."""

from __future__ import annotations

import json
import os
import time
from typing import Any

import rich_click as click
from rich.console import Console
from rich.filesize import decimal

from tagwise.base.parameters import meant, parameters_of
from tagwise.base.terminal import explanation_columns, pair_table, transition_table, visible
from tagwise.base.writing import write_text
from tagwise.cli.app import debug_option
from tagwise.cli.classes import show_classes
from tagwise.cli.help import OUTPUT, Command
from tagwise.cli.models import function_options, is_pretrained, load_model
from tagwise.cli.options import COUNT, option, require
from tagwise.cli.pretrained import format_scores
from tagwise.features.class_files import is_class_file


def _file(tagger: Any, name: str, milliseconds: float) -> str:
    """Describe the file that a model was read from."""
    from tagwise.apps.pretrained import TAGGERS

    path = str(TAGGERS[name].path()) if is_pretrained(name) else name
    if tagger.model_.file is None or not os.path.exists(path):
        return "none: the model was trained now, and the cache cannot be written"
    return f"{path} ({decimal(os.path.getsize(path))}, read in {milliseconds:.1f} ms)"


def _facts(tagger: Any, path: str, milliseconds: float) -> list[tuple[str, str]]:
    recipe = tagger.model_.recipe.name
    labels = list(tagger.model_.labels)
    first = " ".join(labels[:12]) + (" ..." if len(labels) > 12 else "")
    return [
        *_pretrained_facts(tagger.model_.meta.get("pretrained")),
        ("file", _file(tagger, path, milliseconds)),
        *_foreign_facts(tagger.model_.meta),
        ("learner", tagger.name),
        ("features", recipe if "\n" not in recipe else f"template of {len(recipe.splitlines())} lines"),
        ("weights", f"{tagger.n_features_:,}, {tagger.n_nonzero_:,} of them nonzero"),
        ("labels", f"{len(labels)}: {first}"),
        *(("function", text) for text in _functions(tagger.model_)),
    ]


def _pretrained_facts(card: Any) -> list[tuple[str, str]]:
    """Describe a pretrained tagger."""
    if not isinstance(card, dict):
        return []
    return [
        ("task", str(card.get("task", ""))),
        ("trained on", f"{card.get('corpus', '')} ({card.get('licence', '')})"),
        ("scores", format_scores(card.get("test"))),
    ]


def _foreign_facts(meta: Any) -> list[tuple[str, str]]:
    """Name the program that wrote the file of a foreign model."""
    from tagwise.model.formats.table import FORMATS

    format = FORMATS.get(str(meta.get("foreign", {}).get("format")))
    return (
        []
        if format is None
        else [("written by", f"{format.program}, whose files have no training parameters")]
    )


def _functions(model: Any) -> list[str]:
    """List the functions that a model file names, with their state."""
    missing = {found.path for found in model.missing}
    return [
        f"{path.removeprefix(':')} ({'missing' if path in missing else 'available'})"
        for path in model.named_functions
    ]


@click.command(cls=Command)
@click.argument("model", metavar="MODEL")
@option("--top N", "Number of features to show per label.", OUTPUT, type=COUNT, default=10)
@option("--label LABEL", "Show only this label. Repeatable.", OUTPUT, name="only", multiple=True)
@option("--json", "Print JSON instead of tables.", OUTPUT, name="as_json")
@option("--plot FILE", "Write the learning curve of a boosted model as SVG.", OUTPUT)
@option(
    "--word WORD",
    "For a file of word classes: show the class of this word at several depths. Repeatable.",
    OUTPUT,
    name="words",
    multiple=True,
)
@function_options
@debug_option
def inspect(
    model: str,
    top: int,
    words: tuple[str, ...],
    only: tuple[str, ...],
    as_json: bool,
    plot: str | None,
    functions: dict[str, Any],
    trust: bool,
) -> None:
    """Show the parameters, metrics and strongest features of a model.

    Parameters with their default value are left out. The strongest features are listed for each label, followed by the
    strongest transitions. A boosted model also lists its features in the order in which they were chosen.

    For a file of word classes, the upper part of their tree is shown, or the classes of the words that --word names.

    \b
    Examples:
      tagwise inspect model.tagwise --top 20
      tagwise inspect en-ner-demo --label B-person
      tagwise inspect model.tagwise --json | jq .meta
      tagwise inspect boosted.tagwise --plot rounds.svg
      tagwise inspect words.classes --word London
    """
    from tagwise.apps.compare.report.rounds import rounds_svg, rounds_table
    from tagwise.estimators.boosting import rounds as rounds_of

    if is_class_file(model):
        require("a model", False, label=only or None, plot=plot, trust=trust)
        show_classes(model, words, top, as_json=as_json)
        return
    require("a file of word classes", False, word=words or None)
    begin = time.perf_counter()
    tagger = load_model(model, functions, trust)
    facts = _facts(tagger, model, 1000 * (time.perf_counter() - begin))
    unknown = [label for label in only if label not in tagger.model_.labels]
    if unknown:
        raise click.BadParameter(
            f"the model has no label {unknown[0]!r}{meant(unknown[0], tagger.model_.labels)}. It has: "
            f"{' '.join(tagger.model_.labels)}",
            param_hint="--label",
        )
    rounds = rounds_of(tagger.model_)
    if plot is not None:
        if not rounds:
            raise click.BadParameter(
                f"a model of {tagger.name} has no rounds to plot. Train it with --learner boosting",
                param_hint="--plot",
            )
        write_text(plot, rounds_svg(rounds))
    explanation = tagger.inspect(top=top)
    known = dict(zip(tagger.model_.labels, tagger.classes_))
    labels = {label: explanation.labels[known[label]] for label in (only or known)}
    transitions = [(str(before), str(after), w) for before, after, w in explanation.transitions]
    if as_json:
        out: dict[str, Any] = {
            "meta": tagger.model_.meta,
            "labels": labels,
            "transitions": transitions,
        }
        if rounds:
            out["rounds"] = [found._asdict() for found in rounds]
        click.echo(visible(json.dumps(out, ensure_ascii=False, indent=2, default=str), keep="\n"))
        return
    console = Console()
    _print_facts(console, facts)
    if not _foreign_facts(tagger.model_.meta):
        console.print(pair_table(_changed(tagger) or [("all", "defaults")], title="parameters"))
    metrics = tagger.model_.meta.get("metrics")
    if metrics:
        console.print(pair_table([(k, _short(v)) for k, v in metrics.items()], title="training"))
    if rounds:
        console.print(rounds_table(rounds, top))
    console.print(explanation_columns(labels))
    console.print(transition_table(transitions[: max(top, 10)]))


def _print_facts(console: Console, facts: list[tuple[str, str]]) -> None:
    """Print the facts as a table, and the path of the file on a line of its own, which a table would wrap."""
    names = [name for name, _ in facts]
    at, width = names.index("file"), max(map(len, names))
    if at:
        console.print(pair_table(facts[:at], width=width))
    console.print(f"{'file':<{width}}  ", style="bold", end="")
    console.out(visible(facts[at][1]), highlight=False)
    console.print(pair_table(facts[at + 1 :], width=width))


def _changed(tagger: Any) -> list[tuple[str, str]]:
    """List the parameters that differ from their defaults."""
    params = parameters_of(type(tagger))
    return [(name, _short(x)) for name, x in tagger.get_params().items() if x != params[name].default]


def _short(value: Any) -> str:
    text = f"{value:,.6g}" if isinstance(value, float) else str(value)
    line = text.splitlines()[0] if text else ""
    return line + " ..." if line != text else text

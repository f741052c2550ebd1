"""``tagwise train``: train a tagger on a corpus or on shards."""

from __future__ import annotations

import functools
import os
import time
from collections.abc import Callable
from typing import Any

import rich_click as click
from click.exceptions import Exit
from rich.console import Console
from rich.filesize import decimal

from tagwise.base.exceptions import ParameterError
from tagwise.base.parameters import lookup, parameters_of
from tagwise.base.progress import TrainingProgress
from tagwise.cli.app import EXIT_INTERRUPTED, debug_option, say
from tagwise.cli.cluster import cluster_options, connect
from tagwise.cli.encode import parse_memory
from tagwise.cli.files import (
    check_output,
    corpus_options,
    label_options,
    model_columns,
    n_jobs_option,
    read_corpus,
)
from tagwise.cli.help import DATA, HELP, LARGE, LEARNER, OUTPUT, RESUMING, Command, option_of
from tagwise.cli.interrupt import Interrupt
from tagwise.cli.models import device_option, load_model
from tagwise.cli.options import COUNT, option, require
from tagwise.corpus.conll import default_columns
from tagwise.corpus.sentence import Corpus
from tagwise.dataset.shards.reader import ON_ERROR, Shards
from tagwise.estimators.sharded.fit import fit_shards
from tagwise.features.derived_columns import Features, parse_features
from tagwise.learners.checkpoint import Checkpoint
from tagwise.learners.checkpoint import remove as remove_checkpoint

SHARDS = "a folder of shards (see tagwise encode)"


def parse_settings(learner: Any, pairs: tuple[str, ...], option: str = "--set") -> dict[str, Any]:
    """Parse ``name=value`` pairs as parameters of a learner. `option` is named in errors."""
    declared = parameters_of(learner)
    out = {}
    for pair in pairs:
        name, equals, text = pair.partition("=")
        if not equals:
            raise click.BadParameter(f"{pair!r}: expected name=value, such as l2=0.1", param_hint=option)
        try:
            out[name] = lookup(declared, name, learner.name).parse(text)
        except ParameterError as error:
            raise click.BadParameter(str(error), param_hint=option) from error
    return out


def parse_path(learner: Any, text: str) -> tuple[str, list[float]]:
    """Parse ``l2=10,1,0.1`` as the name and the values of a parameter."""
    name, equals, listed = text.partition("=")
    if not equals or not listed:
        raise click.BadParameter(
            f"{text!r}: expected name=value,value,..., such as l2=10,1,0.1", param_hint="--path"
        )
    values = [parse_settings(learner, (f"{name}={value}",), "--path")[name] for value in listed.split(",")]
    return name, values


def parse_checkpoint(text: str | None, resume: bool, output: str) -> Checkpoint | None:
    """Parse ``every=5m`` as checkpoints in the file `output`.checkpoint, or return None without both options."""
    if text is None and not resume:
        return None
    name, equals, every = (text or "every=5m").partition("=")
    if name.strip() != "every" or not equals:
        raise click.BadParameter(f"{text!r}: expected every=5m or every=10", param_hint="--checkpoint")
    checkpoint = Checkpoint(f"{output}.checkpoint", every=every, resume=resume)
    try:
        checkpoint.interval()
    except ParameterError as error:
        raise click.BadParameter(str(error), param_hint="--checkpoint") from error
    if resume and not os.path.exists(checkpoint.path):
        say(f"{checkpoint.path} does not exist. Training starts from the beginning")
    return checkpoint


def print_parameters(context: click.Context, _: click.Parameter, requested: bool) -> None:
    """Print the parameters of every learner and exit."""
    if not requested:
        return
    from tagwise.base.terminal import parameter_table
    from tagwise.estimators import LEARNERS

    for name, kind in LEARNERS.items():
        Console().print(parameter_table(name, parameters_of(kind).values()))
    context.exit()


@click.command(cls=Command)
@click.argument("corpus", metavar="TRAIN")
@option(
    "--dev DEV",
    "Development corpus. It is scored after every iteration, and the best iteration is kept.",
    DATA,
)
@option(
    "--raw FILE",
    "Text without labels. Word classes are learned from it and from TRAIN, and added to the features. Repeatable. "
    "tagwise classes has more options.",
    DATA,
    multiple=True,
)
@corpus_options
@label_options
@option("-o --output MODEL", "Model file to write.", OUTPUT, required=True)
@option(
    "--prune",
    "Drop features whose weight is zero. The file gets smaller, the predictions stay the same.",
    OUTPUT,
)
@option("-q --quiet", "Print no progress and no summary.", OUTPUT)
@option(
    "--learner NAME", "Learner to train. --params lists them with their parameters.", LEARNER, default="crf"
)
@option(
    "-f --features SET",
    "Features: a set (S1, S2, S3, pos, ner, default), a template, a file with a template, or a sum such as "
    "default+gazetteer:cities.txt.",
    LEARNER,
    show_default="default",
)
@option("--loss NAME", "Loss function of the learner.", LEARNER)
@option(
    "--set NAME=VALUE",
    "Parameter of the learner, such as l2=0.1 or max_iter=50. Repeatable.",
    LEARNER,
    name="pairs",
    multiple=True,
)
@option(
    "--path NAME=LIST",
    "Train once for each value, as in l2=10,1,0.1. The model that scores best on DEV is kept, or on the last "
    "tenth of TRAIN without --dev.",
    LEARNER,
)
@option("--max-iter N", "Maximum number of iterations or epochs.", LEARNER)
@option(
    "--kernel NAME",
    "Kernel of perceptron or hmsvm: linear, poly, rbf or module:function, with settings as in "
    "poly:degree=3,coef=0.5.",
    LEARNER,
)
@option(
    "--lookback M,P",
    "Search over states of M labels, with features of labels up to P tokens back (perceptron, mira). "
    "1,inf:document=true adds the labels that the same word has earlier in the document.",
    LEARNER,
)
@option(
    "--dictionary N",
    "Allow words that occur N times or more only the labels seen with them. 5:share=0.01 ignores labels of fewer "
    "than 1% of a word's tokens.",
    LEARNER,
)
@option("--partial", "Read labels such as A|B as sets and _ as unknown (crf).", LEARNER)
@option("--seed N", "Seed of the random numbers.", LEARNER, name="random_state", show_default="0")
@option(
    "--checkpoint every=T",
    "Save the state of training to MODEL.checkpoint at an interval: every=5m, every=1h, or every=10 for ten "
    "iterations.",
    RESUMING,
)
@option(
    "--resume",
    "Continue from MODEL.checkpoint, or start if there is none. Implies --checkpoint every=5m.",
    RESUMING,
)
@option("--warm-start MODEL", "Start from the weights of a model and keep its labels and features.", RESUMING)
@option("--forget", "With --warm-start, keep only labels and features that occur in TRAIN.", RESUMING)
@option(
    "--memory SIZE",
    "Memory for shards, such as 500M or 2G. Results do not depend on it.",
    LARGE,
    show_default="half of the RAM",
    callback=parse_memory,
)
@option(
    "--on-error ACTION",
    "What to do with a damaged shard: stop, or skip it with a warning.",
    LARGE,
    type=click.Choice(ON_ERROR),
    show_default="stop",
)
@cluster_options("Train in this process (local) or on a Ray cluster (ray).", LARGE)
@option(
    "--parts N",
    "Number of parts of the shards to train at the same time. For online learners and for crf with "
    "optimizer=dual.",
    LARGE,
    type=COUNT,
)
@n_jobs_option
@device_option
@option(
    "--params",
    "List the parameters of every learner and exit.",
    HELP,
    callback=print_parameters,
    is_eager=True,
    expose_value=False,
)
@debug_option
def train(
    corpus: str,
    dev: str | None,
    raw: tuple[str, ...],
    output: str,
    learner: str,
    features: str | None,
    loss: str | None,
    pairs: tuple[str, ...],
    max_iter: str | None,
    kernel: str | None,
    lookback: str | None,
    dictionary: str | None,
    partial: bool,
    path: str | None,
    warm_start: str | None,
    forget: bool,
    checkpoint: str | None,
    resume: bool,
    memory: int | None,
    on_error: str | None,
    backend: str | None,
    parts: int | None,
    address: str | None,
    workers: int | None,
    n_jobs: int | None,
    random_state: str | None,
    device: str | None,
    columns: str | None,
    label: str | None,
    form: str | None,
    quiet: bool,
    prune: bool,
) -> None:
    """Train a tagger on a corpus and write it to a model file.

    TRAIN is a corpus, or a folder of shards written by tagwise encode. Press Ctrl-C once to stop after the current
    iteration and save the model. To resume an interrupted run that had --checkpoint, repeat the command with
    --resume: the result is identical to that of an uninterrupted run.

    \b
    Examples:
      tagwise train train.txt --dev dev.txt -o model.tagwise
      tagwise train ewt-pos --dev ewt-pos:dev -o pos.tagwise
      tagwise train train.tsv --columns word,pos,label \\
          --features S3 --set l2=0.1 -o model.tagwise
      tagwise train ner.txt -o ner.tagwise \\
          --features default+gazetteer:cities.txt
      tagwise train train.txt --raw more.txt -o model.tagwise
      tagwise train train.txt --path l2=10,1,0.1 -o m.tagwise
      tagwise train train.txt -o model.tagwise \\
          --checkpoint every=5m --resume
      tagwise train ner.txt --learner mira \\
          --lookback 1,2:document=true -o ner.tagwise
      tagwise train encoded/ --memory 2G -o model.tagwise
      tagwise train encoded/ -o model.tagwise \\
          --backend ray --address auto
    """
    from tagwise.apps.compare import check_learner, make

    begin = time.perf_counter()
    console = Console(stderr=True)
    try:
        kind, _ = check_learner(learner)
    except ParameterError as error:
        raise click.BadParameter(str(error), param_hint="--learner") from error
    common = (
        ("loss", loss),
        ("n_jobs", n_jobs),
        ("random_state", random_state),
        ("device", device),
        ("max_iter", max_iter),
        ("kernel", kernel),
        ("lookback", lookback),
        ("dictionary", dictionary),
        ("partial", "true" if partial else None),
    )
    params: dict[str, Any] = {}
    for name, value in common:
        if value is not None:
            params |= parse_settings(kind, (f"{name}={value}",), option_of(name))
    params |= parse_settings(kind, pairs)
    if features is not None:
        params["features"] = parse_features(features)
    tagger = make(learner, **params)
    check_output(output)
    data, columns, label = read_training(
        corpus, form, columns, label, {"memory": memory, "on_error": on_error}
    )
    dev_data = read_corpus(dev, form, columns, label, part="dev") if dev else None
    if raw:
        tagger.features = with_classes(tagger.features, data, raw, console, quiet=quiet, n_jobs=n_jobs)
    require("--warm-start", bool(warm_start), forget=forget)
    options: dict[str, Any] = {"warm_start": load_model(warm_start), "forget": forget} if warm_start else {}
    options |= cluster(data, backend, address, workers)
    require(SHARDS, isinstance(data, Shards), parts=parts)
    options |= {} if parts is None else {"parts": parts}

    kept = parse_checkpoint(checkpoint, resume, output)
    if path is not None and isinstance(data, Shards):
        raise click.UsageError(
            "--path needs a corpus in memory. On shards, train once for each value with --set"
        )
    if kept is not None and path is not None:
        raise click.UsageError("--checkpoint and --resume need a single training run. Omit them, or --path")
    if path is not None:
        save = functools.partial(_saved, output=output, prune=prune)
        tagger, table = best_strength(tagger, data, dev_data, parse_path(kind, path), save, options)
        if not quiet:
            console.print(table)
            say(summary(tagger, data, output, time.perf_counter() - begin))
        return
    interrupt, at_once = Interrupt(), False
    try:
        with interrupt.armed(), TrainingProgress(console, learner, quiet=quiet) as progress:
            fit_options = {"dev": dev_data, "callbacks": [progress, interrupt], "checkpoint": kept, **options}
            if isinstance(data, Shards):
                fit_shards(tagger, data, **fit_options)
            else:
                tagger.fit(data, **fit_options)
    except KeyboardInterrupt:
        if not hasattr(tagger, "model_"):  # before the first iteration
            raise
        at_once = True
    tagger.save(output, prune=prune)
    if interrupt.requested or at_once:
        say(
            f"stopped after iteration {len(tagger.history_)}. Saved the model trained so far to {output}"
            + (
                ". To continue, repeat the command with --resume"
                if kept and os.path.exists(kept.path)
                else ""
            )
        )
        raise Exit(EXIT_INTERRUPTED)
    if kept is not None:
        remove_checkpoint(os.fspath(kept.path))
    if not quiet:
        say(summary(tagger, data, output, time.perf_counter() - begin))


def read_training(
    name: str, form: str | None, columns: str | None, label: str | None, shard_options: dict[str, Any]
) -> tuple[Corpus | Shards, str | None, str | None]:
    """Return the training set, and the names of the columns and of the label for reading other corpora."""
    if not os.path.isdir(name):
        require(SHARDS, False, **shard_options)
        return read_corpus(name, form, columns, label, part="train"), columns, label
    shards = Shards(name, **{option: value for option, value in shard_options.items() if value is not None})
    if columns is None:
        columns, label = ",".join(shards.manifest["columns"]), label or shards.manifest["label"]
    return shards, columns, label


def with_classes(
    features: Any, data: Corpus | Shards, raw: tuple[str, ...], console: Console, **options: Any
) -> Features:
    """Return features with word classes that are learned from raw text and from the training sentences."""
    from tagwise.cli.classes import learn

    if isinstance(data, Shards):
        raise click.UsageError(
            "--raw needs a corpus, since the features of shards are fixed. Use tagwise classes, and encode with "
            "--features default+classes:FILE"
        )
    classes: Features = learn(raw, None, console, more=data, classes="several", **options)
    return Features("default" if features is None else features) + classes


def cluster(data: Any, backend: str | None, address: str | None, workers: int | None) -> dict[str, Any]:
    """Return the arguments of `fit_shards` for a backend, after connecting to the Ray cluster if it is ``ray``."""
    require(SHARDS, isinstance(data, Shards), backend=backend)
    connect(backend, address, workers=workers)
    return {} if backend is None else {"backend": backend, "workers": workers}


def _saved(tagger: Any, *, output: str, prune: bool) -> str:
    """Save a tagger and return the path."""
    tagger.save(output, prune=prune)
    return output


def best_strength(
    tagger: Any,
    data: Any,
    dev: Any,
    strengths: tuple[str, list[float]],
    save: Callable[[Any], str],
    options: dict[str, Any],
) -> tuple[Any, Any]:
    """Train with each strength, save the best tagger, and return it with the table of all.

    Ctrl-C saves the best tagger so far.
    """
    from tagwise.estimators import regularization_path

    (name, values), steps = strengths, list[Any]()
    try:
        found = regularization_path(
            tagger,
            data,
            dev,
            strengths=values,
            parameter=name,
            refit=True,
            callbacks=[steps.append],
            **options,
        )
    except KeyboardInterrupt:
        if not steps:
            raise
        best = max(steps, key=lambda step: step.score)
        output = save(best.tagger)
        say(
            f"stopped after {len(steps)} of {len(values)} values. Saved the best model so far, "
            f"{name}={best.strength:g}, to {output}"
        )
        raise Exit(EXIT_INTERRUPTED) from None
    save(found.best.tagger)
    return found.best.tagger, found


def summary(tagger: Any, data: Corpus | Shards, output: str, seconds: float) -> str:
    """Return the lines to print after training."""
    sentences = data.n_sentences if isinstance(data, Shards) else len(data)
    return (
        f"trained {tagger.name} on {sentences:,} sentences, {data.n_tokens:,} tokens, {len(tagger.classes_)} labels: "
        f"{tagger.n_features_:,} features, {tagger.n_nonzero_:,} nonzero\n"
        f"{outcome(tagger)}\n"
        f"wrote {output} ({decimal(os.path.getsize(output))}) in {seconds:.1f} s{needed_columns(tagger)}"
    )


def needed_columns(tagger: Any) -> str:
    """Return a line about the columns that input of the model must have in addition to tokens, or an empty string."""
    recipe = tagger.model_.recipe
    others = [name for name in recipe.columns if name != recipe.token_column]
    if not others:
        return ""
    columns, label = model_columns(tagger)
    names = [recipe.token_column, label or "label"]
    # Of a file without names.
    if columns is not None and tuple(columns) == default_columns(len(columns), label):
        names = [name if name in names else "_" for name in columns]
    return (
        f"\nThe features use the column{'s' * (len(others) > 1)} {', '.join(others)}, so the model labels no plain "
        f"text. For one that does, train with --columns {','.join(names)}"
    )


def outcome(tagger: Any) -> str:
    """Return which iteration was kept, its score, and why training stopped."""
    best = f"objective {tagger.objective_:,.2f}"
    if not tagger.history_:  # the initial weights are optimal
        return f"no iteration was needed ({best}): {tagger.stopped_}"
    last = tagger.history_[-1]
    scores = [step["dev_score"] for step in tagger.history_ if step.get("dev_score") is not None]
    if scores:
        score = "F1" if tagger.metric_ == "f1" else tagger.metric_.replace("_", " ")
        best = f"best dev {score} {100 * max(scores):.2f}, {best}"
    if tagger.stopped_ == "counted":  # a hidden Markov model
        return f"counted labels and features in one pass ({best})"
    ended = tagger.stopped_.partition(", kept iteration")[0]  # which the line begins with
    return (
        f"kept iteration {tagger.best_iteration_} of {last['iteration']} ({best}). Training ended by {ended}"
    )

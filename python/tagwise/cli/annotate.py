"""``tagwise annotate``: label sentences in a browser with a tagger that learns from each accepted sentence."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, NamedTuple

import rich_click as click

from tagwise.base.exceptions import CorpusError, ParameterError
from tagwise.base.parameters import meant
from tagwise.base.writing import write_text
from tagwise.cli.app import debug_option, say
from tagwise.cli.files import bundled_corpus, corpus_options, names_of, read_corpus
from tagwise.cli.help import DATA, LEARNER, Command
from tagwise.cli.models import load_model
from tagwise.corpus import schemes
from tagwise.corpus.formats import read
from tagwise.corpus.sentence import Corpus


def folder_for(corpus: str | None, folder: str | None) -> Path:
    """Return the folder of a project: `folder`, or one named after the corpus in the current folder."""
    if folder is not None:
        return Path(folder)
    stem = os.path.basename(corpus or "labels").partition(":")[0]
    return Path(f"{stem}.annotate")


def sentences_of(corpus: str, form: str | None, columns: str | None, label: str | None) -> Corpus:
    """Read a corpus with or without labels."""
    bundled = bundled_corpus(corpus, "train", label)
    if bundled is not None:
        return bundled
    names, label = names_of(columns, label)
    return read(corpus, form, columns=names, label=label or "label", optional_label=True)


# Groups of options.
SERVER, OTHER = "Server", "Instead of labelling"
#: Strategies that a simulation compares with random order by default.
SIMULATED = ("margin", "span", "committee", "diversity")
Reading = tuple[str | None, str | None, str | None]  # format, columns, label: the options of `corpus_options`


class Simulated(NamedTuple):
    """Options of a simulation."""

    strategies: str | None  # names, separated by commas
    seeds: int
    max_iter: int
    growth: float  # of the labelled part per step


def in_iob2(corpus: Corpus) -> Corpus:
    """Return a labelled corpus with spans in IOB2, the scheme of the pages. Labels that mark no spans are kept."""
    if not schemes.has_chunks({y for labels in corpus.labels for y in labels}):
        return corpus
    found = [s.with_labels(schemes.convert(s.labels, None, "IOB2"), corpus.label) for s in corpus]
    return Corpus(found, columns=corpus.columns, label=corpus.label, source=corpus.source)


def run_simulation(
    corpus: str,
    dev: str | None,
    learner: str,
    features: str,
    output: str | None,
    simulation: Simulated,
    reading: Reading,
) -> None:
    """Simulate labelling, print the table and write the chart.

    A bundled corpus is scored on its test part.
    """
    from tagwise.apps.annotate.learning import fresh, learner_of
    from tagwise.apps.annotate.ranking import strategy_of
    from tagwise.apps.annotate.simulate import Curve, simulate

    form, columns, label = reading
    strategies = [strategy_of(one).name for one in (simulation.strategies or "").replace(",", " ").split()]
    learner_of(learner)
    name = corpus.partition(":")[0]
    train = read_corpus(corpus, form, columns, label, part="train")
    test = (
        bundled_corpus(name, "test", label)
        if dev is None
        else read_corpus(dev, form, columns, label, part="test")
    )
    if test is None:
        raise click.UsageError("--simulate requires a corpus to score on. Add --dev DEV")

    def watch(curve: Curve) -> None:
        say(f"{curve.strategy}: {curve.sentences[-1]} sentences, score {100 * curve.scores[-1]:.1f}")

    def make() -> Any:
        return fresh(learner, simulation.max_iter, features=features)

    found = simulate(
        name,
        in_iob2(train),
        in_iob2(test),
        make,
        strategies=strategies or SIMULATED,
        seeds=simulation.seeds,
        growth=simulation.growth,
        watch=watch,
    )
    click.echo(
        f"{name}: {100 * found.full:.2f} with all {found.pool:,} sentences. Needed to reach {100 * found.target:.2f}"
        f"\n\n{found.markdown()}"
    )
    if output is not None:
        write_text(output, found.chart().document())


@click.command(cls=Command)
@click.argument("corpus", metavar="[CORPUS|FILE]", required=False)
@click.option(
    "--work",
    "folder",
    metavar="DIR",
    show_default="FILE.annotate",
    help="Folder that keeps the labels.",
    panel=DATA,
)
@click.option(
    "--labels",
    metavar="NAMES",
    help="Types of labels, such as PER,LOC. More can be added in the browser.",
    panel=DATA,
)
@click.option("--dev", metavar="DEV", help="Labelled corpus to score while you label.", panel=DATA)
@click.option("--fresh", is_flag=True, help="Ignore labels that the sentences already have.", panel=DATA)
@corpus_options
@click.option(
    "--model",
    metavar="MODEL",
    help="Model that proposes labels from the start and learns from your corrections.",
    panel=LEARNER,
)
@click.option(
    "--learner",
    metavar="NAME",
    default="mira",
    show_default=True,
    help="Online learner, or crf.",
    panel=LEARNER,
)
@click.option(
    "-f",
    "--features",
    metavar="SET",
    default="default",
    show_default=True,
    help="Feature set, as for tagwise train.",
    panel=LEARNER,
)
@click.option(
    "--strategy",
    metavar="NAME",
    help="Order of sentences: margin, span, committee, diversity, order, search. With --simulate, a list such as "
    "margin,span.",
    panel=LEARNER,
)
@click.option(
    "--host",
    metavar="ADDRESS",
    default="127.0.0.1",
    show_default=True,
    help="Address to listen on.",
    panel=SERVER,
)
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    metavar="N",
    default=8765,
    show_default=True,
    help="Port to listen on. 0 chooses a free one.",
    panel=SERVER,
)
@click.option(
    "--export",
    "export",
    metavar="FORMAT",
    help="Write the labelled sentences to -o in this format and exit.",
    panel=OTHER,
)
@click.option("--agreement", metavar="FILE", help="Compare the labels of two files and exit.", panel=OTHER)
@click.option(
    "--simulate",
    is_flag=True,
    help="Simulate labelling of a corpus that has labels, print how many sentences each strategy needs, and exit.",
    panel=OTHER,
)
@click.option(
    "--seeds",
    type=click.IntRange(min=1),
    metavar="N",
    default=1,
    show_default=True,
    help="With --simulate, number of random starts.",
    panel=OTHER,
)
@click.option(
    "--max-iter",
    type=click.IntRange(min=1),
    metavar="N",
    default=8,
    show_default=True,
    help="With --simulate, maximum number of epochs of training.",
    panel=OTHER,
)
@click.option(
    "--growth",
    type=click.FloatRange(min=1.0, min_open=True),
    metavar="X",
    default=1.2,
    show_default=True,
    help="With --simulate, growth of the labelled part per step.",
    panel=OTHER,
)
@click.option(
    "-o",
    "--output",
    metavar="FILE",
    help="File for --export, or for the learning curve (SVG) of --simulate.",
    panel=OTHER,
)
@debug_option
def annotate(
    corpus: str | None,
    model: str | None,
    folder: str | None,
    labels: str | None,
    dev: str | None,
    fresh: bool,
    learner: str,
    features: str,
    strategy: str | None,
    simulate: bool,
    seeds: int,
    max_iter: int,
    growth: float,
    agreement: str | None,
    export: str | None,
    output: str | None,
    host: str,
    port: int,
    columns: str | None,
    label: str | None,
    form: str | None,
) -> None:
    """Label sentences in a browser with a model that learns from you.

    The model is updated whenever you accept a sentence. Labels are kept in a folder that can be copied and versioned.
    To continue, run the command again. Needs pip install 'tagwise[web]'.

    \b
    Examples:
      tagwise annotate posts.txt --labels PER,LOC
      tagwise annotate posts.txt --model en-ner --dev dev.tsv
      tagwise annotate posts.txt --export conll -o mine.tsv
      tagwise annotate mine.tsv --agreement theirs.tsv
      tagwise annotate wnut17-ner --fresh --dev wnut17-ner:dev
      tagwise annotate wnut17-ner --simulate -o curve.svg
    """
    reading = (form, columns, label)
    if simulate:
        if corpus is None:
            raise click.UsageError("--simulate requires a labelled corpus. Add CORPUS")
        run_simulation(
            corpus, dev, learner, features, output, Simulated(strategy, seeds, max_iter, growth), reading
        )
    elif agreement is not None:
        if corpus is None:
            raise click.UsageError("--agreement compares two files. Add the other one as CORPUS")
        print_agreement(
            *(read_corpus(name, form, columns, label, part="train") for name in (corpus, agreement))
        )
    else:
        work = open_project(corpus, folder_for(corpus, folder), fresh, learner, features, reading)
        try:
            apply_settings(work, labels, strategy)
            from tagwise.apps.annotate.project import EXPORTS

            if export is None:
                serve(work, model, dev, host, port, reading)
            elif export not in EXPORTS:
                message = f"{export!r}{meant(export, EXPORTS)}: expected one of {', '.join(EXPORTS)}"
                raise click.BadParameter(message, param_hint="--export")
            elif output is None:
                raise click.UsageError("--export requires a file to write. Add -o FILE")
            else:
                work.save(output, export)
        finally:
            work.close()


def print_agreement(one: Corpus, two: Corpus) -> None:
    """Print the agreement of two files and the sentences on which they disagree."""
    from tagwise.apps.annotate.agreement import agreement

    found = agreement(one, two)
    f1 = "" if found.f1 is None else f", F1 of spans {100 * found.f1:.2f}"
    click.echo(
        f"{found.sentences} sentences, {found.tokens} tokens: agreement {100 * found.accuracy:.2f} %, "
        f"kappa {found.kappa:.4f}{f1}"
    )
    for where in found.disagreements:
        tokens = one[where.sentence].tokens
        pairs = " ".join(f"{tokens[t]}/{where.one[t]}|{where.two[t]}" for t in where.tokens)
        click.echo(f"sentence {where.sentence + 1}: {pairs}")


def open_project(
    corpus: str | None, folder: Path, fresh: bool, learner: str, features: str, reading: Reading
) -> Any:
    """Open the project of a folder, or create one with the sentences of a corpus."""
    from tagwise.apps.annotate.folder import ProjectSettings
    from tagwise.apps.annotate.learning import learner_of
    from tagwise.apps.annotate.project import Work

    begun = (folder / "work.json").exists()
    if corpus is None and not begun:
        raise click.UsageError(
            "there is nothing to label. Add a corpus or a file, or --work DIR with an existing project"
        )
    learner_of(learner)
    found = None if begun or corpus is None else sentences_of(corpus, *reading)
    work = Work(folder, ProjectSettings(learner=learner, features=features))
    if found is not None:
        try:
            work.add(found, os.path.basename(corpus or ""), fresh=fresh)
        except BaseException:
            work.close()
            raise
    return work


def apply_settings(work: Any, labels: str | None, strategy: str | None) -> None:
    """Apply label types and strategy, and report a line that an interrupted process left incomplete."""
    from tagwise.apps.annotate.ranking import strategy_of

    for name in (labels or "").replace(",", " ").split():
        work.add_label(name)
    if strategy is not None:
        work.set(strategy=strategy_of(strategy).name)
    if work.journal.cut:
        say(f"{work.journal.path}: removed an incomplete last line. No accepted sentence is lost")


def serve(work: Any, model: str | None, dev: str | None, host: str, port: int, reading: Reading) -> None:
    """Run the server of a project until it is stopped."""
    from tagwise.apps.annotate.session import Session

    form, columns, label = reading
    found = None if model is None else load_model(model).model_
    held_out = None if dev is None else read_corpus(dev, form, columns, label, part="dev")
    if found is not None and (found.lookback is not None or found.recipe.kind == "attributes"):
        raise ParameterError(
            "--model requires a first-order model with features of tokens. Train one without --lookback, on tokens"
        )
    if not work.sentences:
        raise CorpusError("the project has no sentences. Add a file with sentences as CORPUS")
    session = Session(work, model=found, dev=held_out)
    try:
        run(session, host, port)
    finally:
        session.close()


def run(session: Any, host: str, port: int) -> None:
    """Serve a session."""
    from tagwise.apps.web import need

    need("tagwise annotate")
    from tagwise.apps.annotate.server import run as run_server

    run_server(session, host, port, say)

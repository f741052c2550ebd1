"""``tagwise annotate``: label sentences in a browser with a tagger that learns from each accepted sentence."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, NamedTuple

import rich_click as click

from tagwise.base.exceptions import CorpusError, ParameterError
from tagwise.base.parameters import meant
from tagwise.cli.app import debug_option, say
from tagwise.cli.files import (
    bundled_corpus,
    corpus_options,
    names_of,
    read_corpus,
    text_form,
    text_options,
)
from tagwise.cli.help import DATA, LEARNER, Command
from tagwise.cli.models import load_model
from tagwise.cli.options import COUNT, held, option
from tagwise.cli.simulate import Simulated, run_simulation
from tagwise.corpus.formats import UNKNOWN
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
    from tagwise.apps.annotate.imports import read_document

    form = text_form(form, held("raw")) or ("raw" if held("raw") else None)
    encoding = held("encoding")
    return read_document(corpus, form, columns=names, label=label or "label", encoding=encoding)


# Groups of options.
SERVER, OTHER = "Server", "Instead of labelling"
Given = tuple[bool, bool]  # --fresh and --review: treatment of labels that sentences already have
Reading = tuple[str | None, str | None, str | None]  # format, columns, label: the options of `corpus_options`


def without_unlabelled(corpus: Corpus) -> Corpus:
    """Return the labelled sentences of a corpus, and report how many others it has."""
    found = [sentence for sentence in corpus if UNKNOWN not in sentence.labels]
    if not found:
        raise CorpusError(f"{corpus.source}: no sentence is labelled. Give a labelled corpus to --dev")
    if len(found) < len(corpus):
        say(f"{corpus.source}: {len(found)} of {len(corpus)} sentences are labelled. The others are left out")
    return Corpus(found, columns=corpus.columns, label=corpus.label, source=corpus.source)


@click.command(cls=Command)
@click.argument("corpus", metavar="[CORPUS|FILE]", required=False)
@option("--work DIR", "Folder that keeps the labels.", DATA, name="folder", show_default="FILE.annotate")
@option("--labels NAMES", "Types of labels, such as PER,LOC. More can be added in the browser.", DATA)
@option(
    "--patterns FILE",
    "Terms that pre-label sentences: a label, a tab and a term per line, or Prodigy's JSONL.",
    DATA,
)
@option(
    "--guidelines FILE",
    "Markdown file to show beside the sentences.",
    DATA,
    show_default="guidelines.md of the folder",
)
@option("--dev DEV", "Labelled corpus to score while you label.", DATA)
@option("--fresh", "Ignore labels that the sentences already have.", DATA)
@option("--review", "Show labels that the sentences already have as proposals to check.", DATA)
@corpus_options
@text_options
@option(
    "--model MODEL", "Model that proposes labels from the start and learns from your corrections.", LEARNER
)
@option(
    "--map-labels OLD=NEW",
    "New names of the model's labels, such as person=PER,place=LOC. Its other labels are not proposed.",
    LEARNER,
    name="mapping",
)
@option("--learner NAME", "Online learner, or crf.", LEARNER, default="mira")
@option("-f --features SET", "Feature set, as for tagwise train.", LEARNER, default="default")
@option(
    "--strategy NAME",
    "Order of sentences: margin, span, committee, diversity, order. With --simulate, a list such as margin,span.",
    LEARNER,
)
@option("--host ADDRESS", "Address to listen on.", SERVER, default="127.0.0.1")
@option(
    "--port N",
    "Port to listen on. 0 chooses a free one.",
    SERVER,
    type=click.IntRange(0, 65535),
    default=8765,
)
@option(
    "--export FORMAT",
    "Write the labelled sentences to -o in this format (conll, spans, conllu, jsonl), marks and comments (notes), "
    "or a model trained on them (model), and exit. The browser page may stay open.",
    OTHER,
    name="export",
)
@option("--agreement FILE", "Compare the labels of two files and exit.", OTHER)
@option(
    "--simulate",
    "Simulate labelling of a corpus that has labels, print how many sentences each strategy needs, and exit.",
    OTHER,
)
@option("--seeds N", "With --simulate, number of random starts.", OTHER, type=COUNT, default=1)
@option(
    "--max-iter N", "With --simulate, maximum number of epochs of training.", OTHER, type=COUNT, default=8
)
@option(
    "--growth X",
    "With --simulate, growth of the labelled part per step.",
    OTHER,
    type=click.FloatRange(min=1.0, min_open=True),
    default=1.2,
)
@option("-o --output FILE", "File for --export, or for the learning curve (SVG) of --simulate.", OTHER)
@debug_option
def annotate(
    corpus: str | None,
    model: str | None,
    folder: str | None,
    labels: str | None,
    patterns: str | None,
    guidelines: str | None,
    mapping: str | None,
    dev: str | None,
    fresh: bool,
    review: bool,
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
      tagwise annotate posts.txt --model en-ner-demo \\
          --dev dev.tsv
      tagwise annotate posts.txt --patterns terms.tsv
      tagwise annotate doccano-export.jsonl --review
      tagwise annotate posts.txt --export conll -o mine.tsv
      tagwise annotate posts.txt --export model -o mine.tagwise
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
        place = folder_for(corpus, folder)
        if fresh and review:
            raise click.UsageError("--fresh ignores labels, and --review proposes them. Give one of the two")
        if export is not None:
            exported(corpus, place, (fresh, review), learner, features, export, output, reading)
            return
        work = open_project(corpus, place, (fresh, review), learner, features, reading)
        try:
            apply_settings(work, labels, strategy)
            serve(work, Served(model, mapping, dev, patterns, guidelines), host, port, reading)
        finally:
            work.close()


def exported(
    corpus: str | None,
    folder: Path,
    given: Given,
    learner: str,
    features: str,
    form: str,
    output: str | None,
    reading: Reading,
) -> None:
    """Write the labelled sentences of a project, or a model trained on them.

    An existing project is only read, so that a server may have it open.
    """
    from tagwise.apps.annotate.exports import EXPORTS
    from tagwise.apps.annotate.folder import ProjectSettings
    from tagwise.apps.annotate.learning import trained
    from tagwise.apps.annotate.project import Work
    from tagwise.apps.annotate.word_classes import stored_features

    forms = [*EXPORTS, "model"]
    if form not in forms:
        message = f"{form!r}{meant(form, forms)}: expected one of {', '.join(forms)}"
        raise click.BadParameter(message, param_hint="--export")
    if output is None:
        raise click.UsageError("--export requires a file to write. Add -o FILE")
    if (folder / "work.json").exists():
        work = Work(folder, ProjectSettings(features=features), read_only=True)
    else:
        work = open_project(corpus, folder, given, learner, features, reading)
    try:
        if form == "model":
            trained(work, stored_features(work), n_jobs=None).save(output)
        else:
            work.save(output, form)
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
    corpus: str | None, folder: Path, given: Given, learner: str, features: str, reading: Reading
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
    found = None if begun or corpus is None else _some_sentences(corpus, reading)
    work = Work(folder, ProjectSettings(learner=learner, features=features))
    try:
        if corpus is not None and not work.sentences:
            found = _some_sentences(corpus, reading) if found is None else found
            work.add(found, os.path.basename(corpus), fresh=given[0], review=given[1])
    except BaseException:
        work.close()
        raise
    return work


def _some_sentences(corpus: str, reading: Reading) -> Corpus:
    """Read a corpus, which must have sentences, so that no folder is created for a wrong file."""
    found = sentences_of(corpus, *reading)
    if not len(found):
        raise CorpusError(f"{corpus}: no sentences found. Give a file with sentences")
    return found


def apply_settings(work: Any, labels: str | None, strategy: str | None) -> None:
    """Apply label types and strategy, and report a line that an interrupted process left incomplete."""
    from tagwise.apps.annotate.ranking import strategy_of

    for name in (labels or "").replace(",", " ").split():
        work.add_label(name)
    if strategy is not None:
        work.set(strategy=strategy_of(strategy).name)
    if work.journal.cut:
        say(f"{work.journal.path}: removed an incomplete last line. No accepted sentence is lost")


class Served(NamedTuple):
    """Options of a session: paths and names, as given."""

    model: str | None
    mapping: str | None
    dev: str | None
    patterns: str | None
    guidelines: str | None


def mapping_of(text: str) -> dict[str, str]:
    """Return the names of labels by those of a model, from ``person=PER,location=LOC``."""
    pairs = [one.partition("=") for one in text.replace(",", " ").split()]
    for old, equals, new in pairs:
        if not (old and equals and new):
            raise click.UsageError(f"--map-labels {old}{equals}{new}: expected OLD=NEW, such as person=PER")
    return {old: new for old, _, new in pairs}


def start_model(given: Served) -> Any:
    """Return the model that learning starts from, with its labels renamed, or None."""
    if given.model is None:
        if given.mapping is not None:
            raise click.UsageError("--map-labels renames the labels of a model. Add --model MODEL")
        return None
    found = load_model(given.model).model_
    if found.lookback is not None or found.recipe.kind == "attributes":
        raise ParameterError(
            "--model requires a first-order model with features of tokens. Train one without --lookback, on tokens"
        )
    if given.mapping is None:
        return found
    from tagwise.apps.annotate.learning import renamed_model, types_of

    names = mapping_of(given.mapping)
    for old in names:
        if old not in types_of(found):
            raise ParameterError(
                f"--map-labels: the model has no label {old!r}{meant(old, types_of(found))}. "
                f"It has {', '.join(types_of(found))}"
            )
    return renamed_model(found, names)


def serve(work: Any, given: Served, host: str, port: int, reading: Reading) -> None:
    """Run the server of a project until it is stopped."""
    from tagwise.apps.annotate.patterns import read_patterns
    from tagwise.apps.annotate.session import Session

    form, columns, label = reading
    held_out = None
    if given.dev is not None:
        held_out = without_unlabelled(read_corpus(given.dev, form, columns, label, part="dev"))
    if not work.sentences:
        raise CorpusError("the project has no sentences. Add a file with sentences as CORPUS")
    session = Session(
        work,
        model=start_model(given),
        proposed=None if given.mapping is None else list(mapping_of(given.mapping).values()),
        dev=held_out,
        patterns=None if given.patterns is None else read_patterns(given.patterns),
        guidelines=given.guidelines,
    )
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

"""``tagwise convert``: convert a corpus or a model to another format, or labels to another scheme."""

from __future__ import annotations

import os
from collections.abc import Iterator

import rich_click as click

from tagwise.base.exceptions import CorpusError
from tagwise.cli.app import debug_option
from tagwise.cli.files import corpus_options, corpus_sentences, label_options
from tagwise.cli.help import OUTPUT, Command
from tagwise.cli.options import option
from tagwise.cli.stream import reported_if_empty
from tagwise.corpus.formats import FORMATS, write
from tagwise.corpus.schemes import convert as convert_labels
from tagwise.corpus.schemes import scheme_name
from tagwise.corpus.sentence import Sentence
from tagwise.model.formats.table import FORMATS as FOREIGN
from tagwise.model.formats.table import HEAD, format_of
from tagwise.model.formats.table import format_of_name as foreign_of_name
from tagwise.model.model import Model

OWN = "tagwise"
MODELS = (OWN, *FOREIGN)


def with_scheme(
    sentences: Iterator[Sentence], source: str, from_scheme: str | None, to_scheme: str
) -> Iterator[Sentence]:
    """Yield sentences with their labels converted to another scheme."""
    for sentence in sentences:
        try:
            labels = convert_labels(sentence.labels, from_scheme, to_scheme)
        except CorpusError as error:
            raise CorpusError(f"{source}:{sentence.line}: {error}") from error
        yield sentence.with_labels(labels)


def is_model(path: str) -> bool:
    """Return whether a file begins like a model of tagwise or of another program."""
    if not os.path.isfile(path):
        return False
    with open(path, "rb") as file:
        head = file.read(HEAD)
    return head.startswith(b"tagwise\n") or format_of(head) is not None


def convert_model(source: str, target: str, form: str | None, corpus: bool) -> None:
    """Convert a model file to the format of ``--to``, of the name of OUT, or of tagwise."""
    if corpus:
        raise click.UsageError(
            f"{source} is a model. Omit the options for corpora: --columns, --label, --format and schemes"
        )
    if form is not None and form not in MODELS:
        raise click.UsageError(
            f"--to {form} is a format of corpora. For a model use one of {', '.join(MODELS)}"
        )
    if target == "-":
        raise click.UsageError("a model cannot be written to stdout. Add the file OUT")
    Model.load(source).save(target, format=form or foreign_of_name(target) or OWN)


@click.command(cls=Command)
@click.argument("source", metavar="IN")
@click.argument("target", metavar="[OUT]", default="-")
@corpus_options
@label_options
@option(
    "--to FORMAT",
    f"Format of OUT. For a corpus: {', '.join(FORMATS)}. For a model: {', '.join(MODELS)}.",
    OUTPUT,
    name="target_format",
    type=click.Choice([*FORMATS, *MODELS]),
    show_default="by the name of OUT",
)
@option("--scheme NAME", "Convert labels to this scheme: IOB1, IOB2, IOE1, IOE2, IOBES or BILOU.", OUTPUT)
@option(
    "--from-scheme NAME",
    "With --scheme, label scheme of the input.",
    OUTPUT,
    show_default="any, as conlleval reads it",
)
@debug_option
def convert(
    source: str,
    target: str,
    columns: str | None,
    label: str | None,
    form: str | None,
    target_format: str | None,
    scheme: str | None,
    from_scheme: str | None,
) -> None:
    """Convert a corpus or a model to another format.

    OUT is stdout by default. Models can be converted between tagwise, CRFsuite, Wapiti and CRF++, if the other program
    can represent them.

    \b
    Examples:
      tagwise convert train.conllu train.jsonl.gz
      tagwise convert iob1.txt iobes.txt --scheme IOBES
      tagwise convert wnut17-ner:dev dev.jsonl
      tagwise convert address.crfsuite address.tagwise
    """
    if from_scheme and not scheme:
        raise click.UsageError("--from-scheme requires --scheme. Add the scheme to convert to")
    if is_model(source):
        for_corpora = (columns, label, form, scheme, from_scheme)
        convert_model(source, target, target_format, any(x is not None for x in for_corpora))
        return
    if target_format in MODELS:
        raise click.UsageError(
            f"--to {target_format} is a format of models, but {source} is a corpus. Use one of {', '.join(FORMATS)}"
        )
    _, sentences = corpus_sentences(source, form, columns, label)
    if scheme:
        sentences = with_scheme(sentences, source, from_scheme, scheme_name(scheme))
    write(reported_if_empty(sentences, source), target, target_format)

"""``tagwise convert``: a corpus from one format, or one label scheme, to another."""

from __future__ import annotations

from collections.abc import Iterator

import rich_click as click

from tagwise.cli.app import debug_option
from tagwise.cli.files import corpus_options, known_corpus, names_of, read_sentences
from tagwise.corpus.formats import DEFAULT, FORMATS, format_of_name, write
from tagwise.corpus.schemes import convert as convert_labels
from tagwise.corpus.schemes import scheme_name
from tagwise.corpus.sentence import Sentence
from tagwise.errors import CorpusError


def rewritten(
    sentences: Iterator[Sentence], source: str, from_scheme: str | None, to_scheme: str
) -> Iterator[Sentence]:
    """Sentences with their labels in another scheme."""
    for sentence in sentences:
        try:
            labels = convert_labels(sentence.labels, from_scheme, to_scheme)
        except CorpusError as error:
            raise CorpusError(f"{source}:{sentence.line}: {error}") from error
        yield sentence.with_labels(labels)


@click.command()
@click.argument("source", metavar="IN")
@click.argument("target", metavar="OUT", default="-")
@corpus_options
@click.option(
    "--to",
    "target_format",
    type=click.Choice(FORMATS),
    help="Format of OUT; by its name if not given, else conll.",
)
@click.option(
    "--scheme", metavar="NAME", help="Write labels in this scheme: IOB1, IOB2, IOE1, IOE2, IOBES, BILOU."
)
@click.option(
    "--from-scheme",
    metavar="NAME",
    help="Scheme of the input; read by conlleval's rules, which take any, if not given.",
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
    """Convert the corpus IN to OUT (stdout if not given): formats by name, label schemes by --scheme.

    \b
    Examples:
      tagwise convert train.conllu train.jsonl.gz
      tagwise convert iob1.txt iobes.txt --scheme IOBES
      tagwise convert wnut17-ner:dev dev.jsonl
    """
    if from_scheme and not scheme:
        raise click.UsageError(
            "--from-scheme says what labels are; --scheme says what they are to become: give it too"
        )
    known = known_corpus(source, "train", label)
    if known is not None:
        sentences: Iterator[Sentence] = iter(known)
    else:
        names, label = names_of(columns, label)
        _, sentences = read_sentences(source, form, names, label or "label")
    if scheme:
        sentences = rewritten(sentences, source, from_scheme, scheme_name(scheme))
    write(sentences, target, target_format or format_of_name(target) or DEFAULT)


__all__ = ["convert"]

"""``tagwise split``: split a corpus into random parts."""

from __future__ import annotations

import os

import rich_click as click

from tagwise.base.exceptions import CorpusError
from tagwise.cli.app import debug_option, say
from tagwise.cli.files import corpus_options, corpus_sentences, label_options
from tagwise.cli.help import OUTPUT, Command
from tagwise.cli.options import option
from tagwise.corpus.formats import COMPRESSED, FORMATS, TABLE, write
from tagwise.corpus.sentence import Corpus
from tagwise.corpus.splitting import split as split_corpus

#: Names of the parts, by their number.
NAMES = {2: ("train", "test"), 3: ("train", "dev", "test")}


def parse_parts(_context: click.Context, _parameter: click.Parameter, text: str) -> list[float]:
    """Parse shares such as ``80,10,10``."""
    try:
        shares = [float(share) for share in text.split(",")]
    except ValueError:
        shares = []
    if len(shares) < 2 or not all(0 < share < float("inf") for share in shares):
        raise click.BadParameter(f"{text!r}: expected two or more positive shares, such as 80,10,10")
    return shares


def part_paths(source: str, count: int, folder: str, form: str, target_format: str | None) -> list[str]:
    """Return the path of each part: the name of the input with that of the part before the extension.

    >>> part_paths("in/data.csv.gz", 2, "out", "csv", None)
    ['out/data.train.csv.gz', 'out/data.test.csv.gz']
    """
    stem, ending = os.path.splitext(os.path.basename(source if source != "-" else "stdin").replace(":", "-"))
    if ending in COMPRESSED:
        stem, inner = os.path.splitext(stem)
        ending = inner + ending
    if target_format is not None or not ending:
        ending = next(iter(TABLE[target_format or form].endings), ".txt")
    names = NAMES.get(count) or [f"part{i + 1}" for i in range(count)]
    return [os.path.join(folder, f"{stem}.{name}{ending}") for name in names]


@click.command(cls=Command)
@click.argument("source", metavar="CORPUS")
@option(
    "--parts SHARES",
    "Share of each part. Two parts are called train and test, three train, dev and test.",
    OUTPUT,
    default="80,10,10",
    callback=parse_parts,
)
@option("--seed N", "Seed of the random order.", OUTPUT, type=click.IntRange(min=0), default=0)
@option(
    "-o --output DIR",
    "Folder to write to.",
    OUTPUT,
    name="folder",
    default="",
    show_default="the current folder",
)
@option(
    "--to FORMAT",
    f"Format of the parts: {', '.join(FORMATS)}.",
    OUTPUT,
    name="target_format",
    type=click.Choice(FORMATS),
    show_default="that of the input",
)
@corpus_options
@label_options
@debug_option
def split(
    source: str,
    parts: list[float],
    seed: int,
    folder: str,
    target_format: str | None,
    columns: str | None,
    label: str | None,
    form: str | None,
) -> None:
    """Split a corpus into random parts, such as train, dev and test.

    Sentences keep their order within a part. Documents stay whole if there are at least as many as parts.

    \b
    Examples:
      tagwise split data.csv --parts 80,10,10 --seed 1
      tagwise split data.jsonl --parts 90,10 --to conll
    """
    kind, sentences = corpus_sentences(source, form, columns, label)
    corpus = Corpus(sentences, source=source)
    if not len(corpus):
        raise CorpusError(f"{source}: the file has no sentences. Give a file with sentences.")
    found = split_corpus(corpus, parts, seed)
    if folder:
        os.makedirs(folder, exist_ok=True)
    for part, path in zip(found, part_paths(source, len(found), folder, kind, target_format)):
        write(part, path, target_format or kind)
        say(f"wrote {path}: {len(part):,} sentences, {part.n_tokens:,} tokens")

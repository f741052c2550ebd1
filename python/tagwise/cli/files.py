"""Corpora on the command line: a file, ``-`` for stdin or a bundled corpus, and options that several commands share."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import IO, Any, TypeVar, cast

import rich_click as click

from tagwise.base.exceptions import CorpusError, file_error
from tagwise.base.extensions import backends
from tagwise.base.parameters import meant
from tagwise.cli.help import DATA, MACHINE
from tagwise.corpus.bundled import list_corpora, load_corpus
from tagwise.corpus.formats import FORMATS, open_sentences
from tagwise.corpus.sentence import Corpus, Sentence
from tagwise.corpus.source_lines import Raw

PARTS = ("train", "dev", "test")
MAGIC = b"tagwise\n"

Decorated = TypeVar("Decorated", bound=Callable[..., Any])


def require(needed: str, met: bool, **options: Any) -> None:
    """Reject options whose requirement is not met. `needed` describes it in the message."""
    for name in (name for name, value in options.items() if value not in (None, False) and not met):
        option = f"--{name.replace('_', '-')}"
        raise click.UsageError(f"{option} requires {needed}. Add it, or omit {option}")


def corpus_options(command: Decorated) -> Decorated:
    """Add the options for reading a corpus."""
    for option in (
        click.option(
            "--format",
            "form",
            type=click.Choice(FORMATS),
            metavar="FORMAT",
            show_default="by name and content",
            help=f"File format: {', '.join(FORMATS)}.",
            panel=DATA,
        ),
        click.option(
            "--label",
            metavar="NAME",
            show_default="label, or the last one",
            help="Column that holds the labels.",
            panel=DATA,
        ),
        click.option(
            "--columns",
            metavar="NAMES",
            help="Names of the columns, such as word,pos,label. The name _ skips a column.",
            panel=DATA,
        ),
    ):
        command = option(command)
    return command


def backend_option(help: str, panel: str, default: str | None = None) -> Callable[[Decorated], Decorated]:
    """Return ``--backend`` for a command, with its own help."""
    return click.option(
        "--backend",
        type=click.Choice(backends()),
        metavar="BACKEND",
        default=default,
        show_default="local",
        help=f"{help} Results are the same.",
        panel=panel,
    )


def address_option(panel: str) -> Callable[[Decorated], Decorated]:
    """Return ``--address`` for a command."""
    return click.option(
        "--address",
        metavar="HOST:PORT",
        help="Address of the Ray cluster, or auto for the one on this machine.",
        panel=panel,
    )


def workers_option(panel: str) -> Callable[[Decorated], Decorated]:
    """Return ``--workers`` for a command."""
    return click.option(
        "--workers",
        type=click.IntRange(min=1),
        metavar="N",
        show_default="one per CPU",
        help="Number of workers on the Ray cluster.",
        panel=panel,
    )


def n_jobs_option(command: Decorated) -> Decorated:
    """Add ``--n-jobs``."""
    return click.option(
        "--n-jobs",
        type=click.IntRange(min=1),
        metavar="N",
        show_default="all cores",
        help="Number of threads. It affects speed only.",
        panel=MACHINE,
    )(command)


def names_of(columns: str | None, label: str | None) -> tuple[list[str] | None, str | None]:
    """Return the column names of a list, and that of the label: ``label`` if it is one of them, else the last."""
    if not columns:
        return None, label
    names = columns.replace(",", " ").split()
    if label is None and "label" not in names:
        used = [name for name in names if name != "_"]
        label = used[-1] if len(used) > 1 else None
    return names, label


def model_columns(tagger: Any) -> tuple[list[str] | None, str | None]:
    """Return the columns that a model was trained on and the name of its label, or None for each that is unknown."""
    model = tagger.model_
    columns, label = model.meta.get("columns"), model.meta.get("label")
    if not columns and model.recipe.kind == "template":  # no names in the file: those that its features read
        return [*model.recipe.columns, "label"], "label"
    return (list(columns) if columns else None), label


def input_of(name: str) -> str | IO[bytes]:
    """Return a path, or stdin as an unbuffered file for ``-``.

    The buffer of ``sys.stdin`` has a lock. A thread that holds it in a read while the process exits causes a fatal
    error of the interpreter.
    """
    if name != "-":
        return name
    try:
        raw = io.FileIO(sys.stdin.fileno(), closefd=False)
    except (OSError, ValueError, AttributeError):  # stdin has no file descriptor, as in tests
        return name
    raw.name = "<stdin>"
    return cast("IO[bytes]", raw)


def bundled_corpus(name: str, part: str, label: str | None) -> Corpus | None:
    """Return a part of a bundled corpus (``ewt-pos``, ``ewt-pos:dev``), or None if a file has that name."""
    base, _, named_part = name.partition(":")
    if os.path.exists(name) or base not in {info.name for info in list_corpora()}:
        return None
    if named_part and named_part not in PARTS:
        raise click.UsageError(
            f"{name}: unknown part {named_part!r}{meant(named_part, PARTS)}. Use one of {', '.join(PARTS)}"
        )
    found = dict(zip(PARTS, load_corpus(base, label)))[named_part or part]
    if found is None:
        raise CorpusError(f"{base} has no {named_part or part} part. Use another part or a file.")
    return found


def read_corpus(
    name: str, form: str | None, columns: str | None, label: str | None, *, part: str, tagger: Any = None
) -> Corpus:
    """Read a labelled corpus.

    Args:
        name: file, ``-`` or bundled corpus.
        form: format, or None to detect it.
        columns: names of the columns, separated by commas.
        label: name of the label column.
        part: part of a bundled corpus whose name has none.
        tagger: model whose column names are used if `columns` is None.
    """
    bundled = bundled_corpus(name, part, label)
    if bundled is not None:
        return bundled
    names, label = names_of(columns, label)
    if tagger is not None and names is None:
        names, trained = model_columns(tagger)
        label = label or trained
    try:
        kind, sentences = read_sentences(name, form, names, label or "label")
        corpus = Corpus(sentences, source="<stdin>" if name == "-" else name)
    except FileNotFoundError as error:
        if hint := meant(name.partition(":")[0], [info.name for info in list_corpora()]):
            raise file_error(CorpusError, f"{error}{hint}", name, error.errno or 2) from error
        raise
    check_labelled(corpus, kind)
    return corpus


def check_labelled(corpus: Corpus, kind: str) -> None:
    """Reject a corpus without sentences or labels."""
    if not len(corpus):
        raise CorpusError(f"{corpus.source}: the file has no sentences. Give a file with labelled sentences.")
    if corpus.label is None:
        raise CorpusError(
            f"{corpus.source}: no column is the label. The file was read as {kind} with the columns "
            f"{', '.join(corpus.columns)}. For a file with columns use --format conll, and name them with --columns "
            "and --label."
        )


def read_sentences(
    name: str,
    form: str | None,
    names: list[str] | None,
    label: str | None,
    raw: Raw | None = None,
    among: Sequence[str] = (),
) -> tuple[str, Iterator[Sentence]]:
    """Return the format of a file, detected `among` the given ones, and its sentences as a stream.

    Sentences have no labels if `label` is None.
    """
    return open_sentences(input_of(name), form, columns=names, label=label, raw=raw, among=among)


def is_model(path: str) -> bool:
    """Return whether a regular file begins like a model file. Pipes are not read: that would consume their data."""
    if not os.path.isfile(path):
        return False
    try:
        with open(path, "rb") as file:
            return file.read(len(MAGIC)) == MAGIC
    except OSError:
        return False

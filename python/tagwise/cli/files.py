"""Corpora on the command line: a file, ``-`` for stdin or a bundled corpus, and options that several commands share."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Iterator, Sequence
from typing import IO, Any, cast

import rich_click as click
from click import get_current_context

from tagwise.base.exceptions import CorpusError, FileError, file_error
from tagwise.base.parameters import meant
from tagwise.base.writing import check_writable
from tagwise.cli.help import DATA, MACHINE
from tagwise.cli.options import COUNT, held, hold, option, together
from tagwise.corpus.bundled import list_corpora, load_corpus
from tagwise.corpus.columns import LABELS
from tagwise.corpus.formats import FORMATS, TABLE, open_sentences
from tagwise.corpus.labels import mapped
from tagwise.corpus.sentence import Corpus, Sentence
from tagwise.corpus.source_lines import Raw
from tagwise.corpus.text import span_jsonl
from tagwise.corpus.text.spans import POLICIES

PARTS = ("train", "dev", "test")
MAGIC = b"tagwise\n"


def check_output(path: str, option: str = "--output") -> None:
    """Reject an output file that cannot be written, before training instead of after it."""
    try:
        check_writable(path)
    except FileError as error:
        raise click.BadParameter(str(error), param_hint=option) from error


#: ``--encoding``, which `read_sentences` uses.
encoding_option = option(
    "--encoding NAME",
    "Encoding of the files, such as latin-1.",
    DATA,
    show_default="UTF-8, or UTF-16 by its mark",
    hold_by=hold,
)


#: Options for reading a corpus.
corpus_options = together(
    encoding_option,
    option(
        "--columns NAMES",
        "Names of the columns, such as word,pos,label. The name _ skips a column.",
        DATA,
    ),
    option("--label NAME", "Column that holds the labels.", DATA, show_default="label, or the last one"),
    option(
        "--format FORMAT",
        f"File format: {', '.join(FORMATS)}.",
        DATA,
        name="form",
        type=click.Choice(FORMATS),
        show_default="by name and content",
    ),
)


def _mapping(context: click.Context, parameter: click.Parameter, value: str | None) -> dict[str, str] | None:
    """Parse ``name=name,name=name``."""
    found: dict[str, str] = {}
    for pair in (value or "").split(","):
        old, sign, new = (part.strip() for part in pair.partition("="))
        if value is not None and not (old and sign and new):
            raise click.BadParameter(f"{pair!r}: expected OLD=NEW, such as person=PER,location=LOC")
        if old in found:
            raise click.BadParameter(f"{old!r} occurs twice. Give each label one new name")
        if old:
            found[old] = new
    return hold(context, parameter, found or None)  # type: ignore[no-any-return]


#: Options on the labels of corpora, which `read_sentences` uses.
label_options = together(
    option(
        "--map-labels OLD=NEW",
        "New names for labels, such as person=PER,location=LOC. The name O removes a label.",
        DATA,
        hold_by=_mapping,
    ),
    option(
        "--label-names NAMES",
        "Names of labels that are numbers in the file, such as O,B-PER,I-PER, beginning with that of 0.",
        DATA,
        hold_by=hold,
    ),
    option(
        "--misaligned ACTION",
        "Treatment of spans that do not begin and end at tokens: error, expand, shrink or drop.",
        DATA,
        type=click.Choice(POLICIES),
        show_default="error",
        hold_by=hold,
    ),
)


#: Options on plain text, which `text_form` uses.
text_options = together(
    option(
        "--raw",
        "Plain text is not tokenized: split it with the tokenizer.",
        DATA,
        hold_by=hold,
    ),
    option(
        "--pretokenized",
        "Plain text is tokenized already: split it at spaces only.",
        DATA,
        hold_by=hold,
    ),
)


def text_form(form: str | None, raw: bool) -> str | None:
    """Return the format that ``--raw``, ``--pretokenized`` and ``--format`` ask for, or None to detect it."""
    pretokenized = held("pretokenized")
    if raw and pretokenized:
        raise click.UsageError("--raw and --pretokenized contradict each other. Omit one of them")
    if pretokenized and form not in (None, "text"):
        raise click.UsageError(f"--pretokenized reads plain text, but --format is {form}. Omit one of them")
    return "text" if pretokenized else form


#: ``--n-jobs``.
n_jobs_option = option(
    "--n-jobs N",
    "Number of threads. It affects speed only.",
    MACHINE,
    type=COUNT,
    show_default="all cores",
)


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
        return bundled if held("map_labels") is None else Corpus(with_mapped(iter(bundled), name))
    names, label = names_of(columns, label)
    if tagger is not None and names is None:
        names, trained = model_columns(tagger)
        label = label or trained
    kind, sentences = read_sentences(name, form, names, label or "label")
    corpus = Corpus(sentences, source="<stdin>" if name == "-" else name)
    check_labelled(corpus, kind)
    return corpus


def corpus_sentences(
    name: str, form: str | None, columns: str | None, label: str | None
) -> tuple[str, Iterator[Sentence]]:
    """Return the format and the sentences of a file, or of the training part of a bundled corpus."""
    bundled = bundled_corpus(name, "train", label)
    if bundled is not None:
        return "conll", with_mapped(iter(bundled), name)
    names, label = names_of(columns, label)
    return read_sentences(name, form, names, label or "label")


def check_labelled(corpus: Corpus, kind: str) -> None:
    """Reject a corpus without sentences or labels."""
    if not len(corpus):
        raise CorpusError(f"{corpus.source}: the file has no sentences. Give a file with labelled sentences.")
    if corpus.label is None:
        seen = f"read as {kind} with the columns {', '.join(corpus.columns)}"
        members = list(dict.fromkeys(key for s in corpus[:20] for key in s.meta or () if key not in _OWN))
        others = [name for name in (*corpus.columns[1:], *members) if name]
        if TABLE[kind].columns == ("word", "label"):  # texts with spans
            seen += f" and the members {', '.join(members)}" if members else ""
            remedy = f"Its texts have no spans with offsets. {span_jsonl.EXAMPLE}"
        elif others:
            seen += f" and the members {', '.join(members)}" if members else ""
            remedy = f"Name the column of the labels, as in --label {hinted(others)}"
        elif kind in ("text", "raw"):
            remedy = (
                "Plain text has no labels. For a file with columns use --format conll or --format csv, and name them "
                "with --columns"
            )
        else:
            remedy = "Add labels to the file, or name the columns with --columns and --label"
        raise CorpusError(f"{corpus.source}: no column is the label. The file was {seen}. {remedy}.")


#: Keys of `Sentence.meta` that are no members of a file.
_OWN = ("text", "continued")


def hinted(names: Sequence[str]) -> str:
    """Return the name that is most likely a column of labels."""
    usual = [name for name in names if name.casefold() in LABELS]
    return next((name for name in usual if "ner" in name.casefold()), [*names, *usual][-1])


def with_mapped(sentences: Iterator[Sentence], source: str) -> Iterator[Sentence]:
    """Yield sentences with the label names of ``--map-labels``.

    Every name has to occur in the first file of a command. A later one, such as a test part, may lack some.
    """
    mapping = held("map_labels")
    if mapping is None:
        yield from sentences
        return
    seen: set[str] = set()
    labels: set[str] = set()
    for sentence in sentences:
        if sentence.label is None:
            yield sentence
            continue
        own = list(sentence.labels)
        labels.update(own)
        yield sentence.with_labels(mapped(own, mapping, seen))
    missing = [name for name in mapping if name not in seen]
    if missing and not get_current_context().meta.get("tagwise.mapped"):
        known = sorted({y.partition("-")[2] or y for y in labels} | labels)
        raise CorpusError(
            f"{source}: --map-labels: no label is named {missing[0]!r}{meant(missing[0], known)}. The labels are "
            f"{', '.join(sorted(labels)) or 'missing'}."
        )
    get_current_context().meta["tagwise.mapped"] = True


def read_sentences(
    name: str,
    form: str | None,
    names: list[str] | None,
    label: str | None,
    raw: Raw | None = None,
    among: Sequence[str] = (),
    encoding: str | None = None,
) -> tuple[str, Iterator[Sentence]]:
    """Return the format of a file, detected `among` the given ones, and its sentences as a stream.

    Sentences have no labels if `label` is None. The options of `encoding_option` and `label_options` are applied.
    """
    given = {key: held(key) for key in ("label_names", "misaligned")}
    try:
        kind, sentences = open_sentences(
            input_of(name),
            form,
            columns=names,
            label=label,
            encoding=encoding or held("encoding"),
            raw=raw,
            among=among,
            options={key: value for key, value in given.items() if value is not None},
        )
    except FileNotFoundError as error:
        if hint := meant(name.partition(":")[0], [info.name for info in list_corpora()]):
            message = f"no file or bundled corpus is named {name!r}{hint}"
            raise file_error(CorpusError, message, name, error.errno or 2) from error
        raise
    return kind, with_mapped(sentences, name)


def is_model(path: str) -> bool:
    """Return whether a regular file begins like a model file. Pipes are not read: that would consume their data."""
    if not os.path.isfile(path):
        return False
    try:
        with open(path, "rb") as file:
            return file.read(len(MAGIC)) == MAGIC
    except OSError:
        return False

"""``tagwise tag``: label sentences as a stream."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import rich_click as click
from click import get_current_context

from tagwise.base.exceptions import ParameterError, TagwiseError
from tagwise.cli.app import debug_option
from tagwise.cli.files import (
    bundled_corpus,
    encoding_option,
    model_columns,
    n_jobs_option,
    names_of,
    read_sentences,
    text_form,
)
from tagwise.cli.help import DATA, OUTPUT, Command, in_options
from tagwise.cli.labelling import Labelling
from tagwise.cli.models import device_option, function_options, load_model, need_probabilities
from tagwise.cli.options import COUNT, held, hold, option
from tagwise.cli.rows import IN_PLACE, Rows
from tagwise.cli.spans import TEXTS, texts_written
from tagwise.cli.stream import batches, reported_if_empty
from tagwise.cli.tag_files import ManyOptions, TagOptions, is_many, many_options, tag_files, tag_parquet
from tagwise.corpus.conll import format_conll
from tagwise.corpus.conllu import format_conllu
from tagwise.corpus.formats import FORMATS, TABLE, format_of_name, format_to_write, formats_of_name
from tagwise.corpus.jsonl import format_jsonl
from tagwise.corpus.labels import texts
from tagwise.corpus.pretokenized import format_text
from tagwise.corpus.sentence import Corpus, Sentence
from tagwise.corpus.source_lines import Raw
from tagwise.corpus.streams import fail, writer
from tagwise.corpus.tables import TableWriter
from tagwise.corpus.text import raw_text, span_jsonl
from tagwise.decoding.lookback import DocumentState


def _fresh(name: str, fields: dict[str, list[str]]) -> str:
    """Return `name`, with underscores appended until the input has no such column."""
    while name in fields:
        name += "_"
    return name


def as_conll(sentence: Sentence, labelling: Labelling) -> str:
    """Write comments, then the input columns, the label and its probability."""
    fields = {**sentence.fields, _fresh("predicted", sentence.fields): list(labelling.labels)}
    if labelling.probabilities is not None:
        fields[_fresh("probability", fields)] = [f"{p:.4f}" for p in labelling.probabilities]
    head = [*sentence.comments, *labelling.notes]
    text = format_conll(Sentence(fields, doc=sentence.doc, line=sentence.line))
    return "\n".join([*head, text]) if head else text


def as_jsonl(sentence: Sentence, labelling: Labelling) -> str:
    """Write one object per sentence: its columns, ``predicted``, and ``probability`` and ``score`` on request."""
    meta = dict(sentence.meta or {})
    if labelling.probabilities is not None:
        meta["probability"] = [round(p, 6) for p in labelling.probabilities]
    if labelling.score is not None:
        meta["score"] = labelling.score
    if labelling.probability is not None:
        meta["probability"] = labelling.probability
    fields = {**sentence.fields, "predicted": list(labelling.labels)}
    return format_jsonl(Sentence(fields, comments=sentence.comments, doc=sentence.doc, meta=meta))


def as_text(sentence: Sentence, labelling: Labelling) -> str:
    """Write one line per sentence: ``word/LABEL``, or ``word/LABEL/0.9801``."""
    labels = list(labelling.labels)
    if labelling.probabilities is not None:
        labels = [f"{label}/{p:.4f}" for label, p in zip(labels, labelling.probabilities)]
    line = format_text(sentence.with_labels(labels, "predicted"), join="/")
    path = [f"{x:.6f}" for x in (labelling.score, labelling.probability) if x is not None]
    return "\t".join([*path, line])


def as_csv() -> Callable[[Sentence, Labelling], str]:
    """Return a function that writes a table with a header: the columns, the label and its probability."""
    rows = TableWriter()

    def write(sentence: Sentence, labelling: Labelling) -> str:
        fields = {**sentence.fields, _fresh("predicted", sentence.fields): list(labelling.labels)}
        if labelling.probabilities is not None:
            fields[_fresh("probability", fields)] = [f"{p:.4f}" for p in labelling.probabilities]
        for name, value in (("score", labelling.score), ("path_probability", labelling.probability)):
            if value is not None:
                fields[_fresh(name, fields)] = [f"{value:.6f}"] * len(sentence)
        return rows(Sentence(fields, doc=sentence.doc, line=sentence.line))

    return write


def refuse_parquet() -> Callable[[Sentence, Labelling], str]:
    """Refuse Parquet as an output of other formats, because it is not text."""
    raise click.UsageError(
        "--output-format parquet: only a Parquet input is written as Parquet. Write jsonl, and convert it with "
        "tagwise convert"
    )


def conllu_writer(column: str) -> Callable[[Sentence, Labelling], str]:
    """Return a function that writes CoNLL-U with the label in `column`."""

    def as_conllu(sentence: Sentence, labelling: Labelling) -> str:
        labels = list(labelling.labels)
        head = (*sentence.comments, *labelling.notes)
        fields = {**sentence.fields, column: labels}
        if labelling.probabilities is not None:
            notes = fields.get("misc", ["_"] * len(labels))
            entries = [f"Probability={p:.4f}" for p in labelling.probabilities]
            fields["misc"] = [
                entry if note == "_" else f"{note}|{entry}" for note, entry in zip(notes, entries)
            ]
        return format_conllu(Sentence(fields, column, comments=head, doc=sentence.doc, rows=sentence.rows))

    return as_conllu


#: By format: a function of the name of the label column that returns the writer of a labelled sentence. `TEXTS` has the
#: formats of texts with spans, which are written one text at a time.
WRITERS: dict[str, Callable[[str | None], Callable[[Sentence, Labelling], str]]] = {
    "conll": lambda _: as_conll,
    "conllu": lambda label: conllu_writer(label if label in ("upos", "xpos") else "upos"),
    "jsonl": lambda _: as_jsonl,
    "text": lambda _: as_text,
    "csv": lambda _: as_csv(),
    "parquet": lambda _: refuse_parquet(),
}


def label_batch(
    tagger: Any,
    batch: Corpus,
    marginals: bool,
    nbest: int,
    document_state: DocumentState,
    min_probability: float | None = None,
) -> Iterator[list[Labelling]]:
    """Yield the labellings to write for each sentence. `document_state` is that of the previous batch."""
    if nbest > 1:
        found = [
            [(texts([labels])[0][0], score) for labels, score in paths]
            for paths in tagger.predict_kbest(batch, nbest, document_state=document_state)
        ]
        if not tagger.probabilistic:
            yield from ([Labelling(labels, score=score) for labels, score in paths] for paths in found)
            return
        for paths, chances in zip(found, tagger.predict_kbest(batch, nbest, probability=True)):
            yield [
                Labelling(labels, score=score, probability=p)
                for (labels, score), (_, p) in zip(paths, chances)
            ]
        return
    if min_probability is None:
        predicted, _ = texts(tagger.predict(batch, document_state=document_state))
    else:
        predicted, _ = texts(tagger.predict(batch, min_probability=min_probability))
    if not marginals:
        yield from ([Labelling(labels)] for labels in predicted)
        return
    ids = {label: index for index, label in enumerate(tagger.model_.labels)}
    for labels, table in zip(predicted, tagger.predict_marginals(batch)):
        chosen = np.fromiter((ids[label] for label in labels), dtype=np.intp, count=len(labels))
        yield [Labelling(labels, table[np.arange(len(labels)), chosen].tolist())]


def with_column_names(
    sentences: Iterator[Sentence], names: list[str], label: str | None, source: str
) -> Iterator[Sentence]:
    """Yield sentences with the column names of training, with or without the label column."""
    bare = [name for name in names if name != label]
    for sentence in sentences:
        values = list(sentence.fields.values())
        chosen = names if len(values) == len(names) else bare
        if len(values) != len(chosen):
            fail(
                "<stdin>" if source == "-" else source,
                sentence.line,
                f"{len(values)} column{'s' * (len(values) != 1)}, but the model was trained on {', '.join(names)}",
                f"Give the columns {' '.join(bare)}, with or without {label}, or name them with --columns.",
            )
        yield Sentence(
            dict(zip(chosen, values)), comments=sentence.comments, doc=sentence.doc, line=sentence.line
        )


def check_supported(
    tagger: Any, model: str, marginals: bool, nbest: int, min_probability: float | None
) -> None:
    """Reject options that the model does not support, before any input is read."""
    if tagger.model_.recipe.kind == "attributes":
        raise TagwiseError(
            f"{model}: this model was trained on lists of attributes, but files contain tokens. "
            "Use it from Python: tagwise.load(...).predict(X) with the attributes used for training."
        )
    for function in tagger.model_.missing:
        function()
    for name, used in (("--marginals", marginals), ("--min-probability", min_probability is not None)):
        if used:
            need_probabilities(tagger, name)
    if min_probability is not None:
        if nbest > 1:
            raise click.UsageError("--min-probability and --nbest cannot be combined. Omit one of them")
        tagger.predict([], min_probability=min_probability)
    if nbest > 1 and marginals:
        raise click.UsageError("--marginals and --nbest cannot be combined. Omit one of them")


def move(tagger: Any, device: str) -> None:
    """Move a tagger to the device that it decodes on."""
    if not hasattr(tagger, "to"):
        if device != "cpu":
            raise click.BadParameter(
                f"a model of {tagger.name} runs on the CPU only. Omit --device, or use --device cpu",
                param_hint="--device",
            )
        return
    try:
        tagger.to(device)
    except ParameterError as error:
        message = in_options(str(error), get_current_context().command)
        raise click.BadParameter(message, param_hint="--device") from error


def check_replace(kind: str, names: list[str] | None, rows: Rows | None, label: str | None) -> None:
    """Reject ``--replace`` for inputs without a label to replace."""
    if rows is None:
        raise click.UsageError(
            "--replace requires an output in the format of the input (conll, conllu or jsonl) with one label sequence "
            "per sentence. Omit --replace, --output-format or --nbest"
        )
    if TABLE[kind].unnamed and (names is None or label not in names):
        raise click.UsageError(
            f"--replace: the column to replace is unknown. Name the columns of the input with --columns, one of them "
            f"{label or 'label'}"
        )


def written(
    tagger: Any,
    sentences: Iterator[Sentence],
    write: Rows | Callable[[Sentence, Labelling], str],
    marginals: bool,
    nbest: int,
    min_probability: float | None = None,
) -> Iterator[str]:
    """Yield the output, batch by batch."""
    document_state = DocumentState()
    rows = write if isinstance(write, Rows) else None
    for batch in batches(sentences):
        labelled = label_batch(tagger, Corpus(batch), marginals, nbest, document_state, min_probability)
        text = "".join(write(s, labelling) for s, found in zip(batch, labelled) for labelling in found)
        yield text if rows is None else text + rows.pause()
    if rows is not None:
        yield rows.rest()


@click.command(cls=Command)
@click.argument("model", metavar="MODEL")
@click.argument("source", metavar="[INPUT]", default="-")
@option(
    "--format FORMAT",
    f"Format of the input: {', '.join(FORMATS)}.",
    DATA,
    name="form",
    type=click.Choice(FORMATS),
    show_default="by name and content",
)
@option(
    "--raw",
    "The input is text without tokens: one text per line, or JSON with texts. Write JSONL with spans.",
    DATA,
    name="untokenized",
)
@option(
    "--pretokenized",
    "The input is tokenized text: one sentence per line, tokens separated by spaces. Write word/LABEL.",
    DATA,
    hold_by=hold,
)
@encoding_option
@option(
    "--columns NAMES",
    "Names of the input's columns, such as word,pos.",
    DATA,
    show_default="those of training",
)
@option(
    "-o --output FILE",
    "File to write, or a folder if INPUT is a pattern.",
    OUTPUT,
    default="-",
    show_default="stdout",
)
@option(
    "--output-format FORMAT",
    "Format of the output.",
    OUTPUT,
    type=click.Choice(FORMATS),
    show_default="by the name of FILE, or that of the input",
)
@option("--replace", "Replace the labels of the input instead of adding a column.", OUTPUT)
@option("--marginals", "Add the probability of each label.", OUTPUT)
@option(
    "--nbest K",
    "Write the K best label sequences with their scores, and their probabilities for a CRF.",
    OUTPUT,
    type=COUNT,
    default=1,
    show_default=False,
)
@option(
    "--min-probability P",
    "Drop spans with a probability below P: their tokens are labelled O (crf, memm).",
    OUTPUT,
    type=click.FloatRange(0.0, 1.0),
)
@many_options
@function_options
@n_jobs_option
@device_option
@debug_option
def tag(
    model: str,
    source: str,
    output: str,
    form: str | None,
    untokenized: bool,
    output_format: str | None,
    columns: str | None,
    replace: bool,
    marginals: bool,
    nbest: int,
    min_probability: float | None,
    n_jobs: int | None,
    backend: str | None,
    address: str | None,
    workers: int | None,
    on_error: str | None,
    device: str | None,
    functions: dict[str, Any],
    trust: bool,
) -> None:
    """Label text or a corpus with a model.

    The output is the input, line by line, with a label appended to every token. INPUT is a corpus, by default stdin.
    It is processed as a stream in constant memory. Plain text goes through the tokenizer, and the output is one JSON
    object per text, with spans and their offsets. Text whose punctuation stands alone is tokenized already: it is split
    at spaces, and the output is word/LABEL. --raw and --pretokenized decide explicitly.

    INPUT can also be a pattern if the output is a folder. Files appear there only when they are complete, and the
    same command run again skips them.

    \b
    Examples:
      tagwise tag model.tagwise input.txt > tagged.txt
      zcat big.txt.gz | tagwise tag model.tagwise --marginals
      echo "Peter flew to London." | tagwise tag en-ner-demo
      echo "The cat sat ." | tagwise tag en-pos
      echo "I love London" | tagwise tag en-ner-demo \\
          --pretokenized --min-probability 0.5
      tagwise tag model.tagwise 'in/*.{conll,parquet}' -o out/
      tagwise tag model.tagwise 'in/*.conll' -o out/ \\
          --backend ray --address auto
    """
    options = TagOptions(
        text_form(form, untokenized),
        untokenized,
        output_format,
        columns,
        replace,
        marginals,
        nbest,
        min_probability,
        held("encoding"),
    )
    tagger = ready_tagger(model, options, functions, trust, n_jobs, device)
    many = ManyOptions(backend, address, workers, on_error)
    if is_many(output):
        loading = {"functions": functions, "trust": trust}
        tag_files(tagger, model, source, output, options, many, loading, tag_one)
        return
    many.reject()
    tag_one(tagger, source, output, options)


def ready_tagger(
    model: str,
    options: TagOptions,
    functions: dict[str, Any],
    trust: bool,
    n_jobs: int | None = None,
    device: str | None = None,
) -> Any:
    """Load a model for the given options, and raise an error if it does not support them."""
    tagger = load_model(model, functions, trust)
    if n_jobs is not None:
        tagger.set_params(n_jobs=n_jobs)
    if device is not None:
        move(tagger, device)
    check_supported(tagger, model, options.marginals, options.nbest, options.min_probability)
    return tagger


def tag_one(tagger: Any, source: str, output: str, options: TagOptions) -> None:
    """Label one input and write the output."""
    form, untokenized, nbest = options.form, options.untokenized, options.nbest
    marginals, min_probability, replace = options.marginals, options.min_probability, options.replace
    if source.endswith(".parquet"):
        tag_parquet(tagger, source, output, options)
        return
    names, label = model_columns(tagger)
    column_names = names_of(options.columns, None)[0]
    raw = Raw() if nbest == 1 else None
    among = tuple(TEXTS) if untokenized else ()
    bundled = bundled_corpus(source, "test", None)
    if bundled is not None:  # there is no file whose lines could be copied
        if untokenized:
            raise click.UsageError(f"--raw: {source} is tokenized already. Omit --raw")
        kind, sentences, raw = "conll", iter(bundled), None
    else:
        chosen = form_of(form, untokenized)
        kind, sentences = read_sentences(source, chosen, column_names, None, raw, among, options.encoding)
    if untokenized:
        check_untokenized(source, form, kind)
    if source != "-":  # an empty stream is normal in a pipe
        sentences = reported_if_empty(sentences, source)
    target = options.output_format or target_of(output, kind)
    if bundled is None and TABLE[kind].unnamed and column_names is None and names is not None:
        sentences = with_column_names(sentences, names, label, source)
    rows = None
    if raw is not None and target == kind and kind in IN_PLACE:
        rows = IN_PLACE[kind](raw, column_names or names or (), label, replace)
        rows.marginals = marginals
    elif raw is not None:
        raw.forget()
    if replace:
        check_replace(kind, column_names or names, rows, label)
    if target in TEXTS:
        if nbest > 1:
            raise click.UsageError(
                f"--nbest writes label sequences, which {target} cannot hold. Choose another --output-format"
            )
        output_of = texts_written(tagger, sentences, target, marginals, min_probability)
    else:
        output_of = written(
            tagger, sentences, rows or WRITERS[target](label), marginals, nbest, min_probability
        )
    with writer(output) as write_out:
        for text in output_of:
            write_out(text)
            if output == "-":
                sys.stdout.flush()


def target_of(output: str, kind: str) -> str:
    """Return the format of the output: that of the input, unless the file extension belongs to other formats."""
    target = span_jsonl.NAME if kind == raw_text.NAME else kind
    if output == "-":
        return target
    named = format_to_write(output)  # rejects the extensions of other programs
    return target if target in (formats_of_name(output) or (target,)) else named


def check_untokenized(source: str, form: str | None, kind: str) -> None:
    """Reject a tokenized file in place of raw text."""
    named = format_of_name(source)
    if form is None and kind == raw_text.NAME and named is not None:
        raise click.UsageError(
            f"--raw: {source} looks like {named}, which is tokenized already. Omit --raw, or add --format raw"
        )


def form_of(form: str | None, untokenized: bool) -> str | None:
    """Return the format of the input, or None to detect it."""
    if untokenized and form not in (None, *TEXTS):
        raise click.UsageError(
            f"--raw reads text without tokens, but --format {form} has tokens. Omit one of them"
        )
    return form

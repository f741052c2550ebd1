"""``tagwise encode``: encode files as a folder of shards."""

from __future__ import annotations

import os
import time
from typing import Any

import rich_click as click
from rich.console import Console
from rich.filesize import decimal

from tagwise.base.exceptions import ParameterError
from tagwise.cli.app import debug_option, say
from tagwise.cli.classes import learn
from tagwise.cli.cluster import cluster_options, connect
from tagwise.cli.files import (
    corpus_options,
    n_jobs_option,
    names_of,
)
from tagwise.cli.help import DATA, LARGE, OUTPUT, Command
from tagwise.cli.options import COUNT, held, option
from tagwise.dataset.shards.encode import SHARD_TOKENS, Encoded
from tagwise.dataset.shards.encode import encode as encode_files
from tagwise.dataset.shards.files import memory_of
from tagwise.features.derived_columns import Features, parse_features


def parse_memory(_: click.Context, __: click.Parameter, text: str | None) -> int | None:
    """Parse a size such as ``2G`` as a number of bytes. A number without a unit is rejected."""
    if text is not None and text.strip()[-1:].isdigit():
        raise click.BadParameter(f"{text!r} has no unit. Give a size such as 500M or 2G")
    try:
        return memory_of(text)
    except ParameterError as error:
        raise click.BadParameter(str(error)) from error


@click.command(cls=Command)
@click.argument("files", nargs=-1, required=True, metavar="FILES...")
@corpus_options
@option(
    "-f --features SET",
    "Features, as for tagwise train. They are computed here and stored in the shards.",
    DATA,
    default="default",
)
@option("--classes", "Learn word classes from the words of FILES first, and add them to the features.", DATA)
@option("-o --output DIR", "Folder of the shards, created if needed.", OUTPUT, required=True)
@option("-q --quiet", "Print no progress and no summary.", OUTPUT)
@option(
    "--shard-tokens N",
    "Number of tokens per shard. The weights of a model depend on it in their last digits.",
    LARGE,
    type=COUNT,
    default=SHARD_TOKENS,
)
@option(
    "--memory SIZE",
    "Maximum memory for the sentences of a shard and for the vocabulary, such as 500M or 2G. Encoding stops with "
    "an error if it needs more.",
    LARGE,
    callback=parse_memory,
)
@cluster_options("Encode in this process (local) or on a Ray cluster, file by file (ray).", LARGE, "local")
@n_jobs_option
@debug_option
def encode(
    files: tuple[str, ...],
    output: str,
    features: str,
    classes: bool,
    shard_tokens: int,
    memory: int | None,
    n_jobs: int | None,
    backend: str,
    address: str | None,
    workers: int | None,
    columns: str | None,
    label: str | None,
    form: str | None,
    quiet: bool,
) -> None:
    """Encode a corpus that does not fit in memory as shards.

    FILES are labelled files or patterns, also compressed. They are read as a stream: encoding needs memory for one
    shard and for the vocabulary. To resume an interrupted run, repeat the command. Complete shards of the same
    sentences are kept.

    \b
    Examples:
      tagwise encode 'corpus/*.conll.gz' -o encoded/
      tagwise train encoded/ --dev dev.conll -o model.tagwise
      tagwise encode train.tsv --columns word,pos,label \\
          --features S3 --memory 2G -o encoded/
      tagwise encode 'corpus/*.conll.gz' -o encoded/ \\
          --backend ray --address auto
    """
    begin = time.perf_counter()
    if backend == "ray" and n_jobs is not None:
        raise click.UsageError(
            "--n-jobs has no effect on a Ray cluster. Use --workers, or omit --backend ray"
        )
    connect(backend, address, workers=workers)
    names, label = names_of(columns, label)
    chosen: Any = parse_features(features)
    if classes:
        learned = learn(files, form, Console(stderr=True), quiet=quiet, classes="several", n_jobs=n_jobs)
        chosen = Features(chosen) + learned
    encoded: list[Encoded] = []
    with Console(stderr=True).status("encoding", spinner="line") as line:

        def report_shard(shard: Encoded) -> None:
            encoded.append(shard)
            tokens = sum(each.tokens for each in encoded)
            if not quiet:
                line.update(f"{len(encoded)} shards, {tokens:,} tokens")

        if quiet:
            line.stop()
        shards = encode_files(
            files,
            output,
            features=chosen,
            columns=names,
            label=label or "label",
            format=form,
            encoding=held("encoding"),
            shard_tokens=shard_tokens,
            memory=memory,
            callbacks=[report_shard],
            backend=backend,
            workers=workers,
            n_jobs=n_jobs,
        )
    if quiet:
        return
    size = sum(entry.stat().st_size for entry in shards.path.glob("*.arrays"))
    new = sum(shard.made for shard in encoded)
    say(
        f"encoded {shards.n_sentences:,} sentences, {shards.n_tokens:,} tokens, {len(shards.labels)} labels, "
        f"{shards.manifest['attributes']:,} attributes. Shards: {new} new, {len(shards) - new} from an earlier run\n"
        f"wrote {os.path.join(output, '')} ({decimal(size)}) in {time.perf_counter() - begin:.1f} s. "
        f"Next: tagwise train {os.path.join(output, '')} -o MODEL"
    )

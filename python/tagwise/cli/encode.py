"""``tagwise encode``: files in, a folder of encoded shards out."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import Any

import rich_click as click
from rich.console import Console

from tagwise.base.exceptions import ParameterError
from tagwise.cli.app import debug_option, say
from tagwise.cli.files import corpus_options, names_of, require
from tagwise.dataset.shards.encode import SHARD_TOKENS, Encoded
from tagwise.dataset.shards.encode import encode as encode_files
from tagwise.dataset.shards.files import memory_of
from tagwise.estimators.sharded.fit import backends
from tagwise.features.derived_columns import Features, spelled


def parse_memory(_: click.Context, __: click.Parameter, given: str | None) -> int | None:
    """``2G`` as a number of bytes."""
    try:
        return memory_of(given)
    except ParameterError as error:
        raise click.BadParameter(str(error)) from error


@click.command()
@click.argument("files", nargs=-1, required=True, metavar="FILES...")
@click.option(
    "-o",
    "--output",
    metavar="FOLDER",
    required=True,
    help="The folder of the shards, made if it is not there.",
)
@click.option(
    "--features",
    "-f",
    metavar="SET",
    default="default",
    help="Feature set, template, or sum, as `tagwise train` takes it. They are made here, and stay with the shards.",
)
@click.option(
    "--shard-tokens",
    type=click.IntRange(min=1),
    default=SHARD_TOKENS,
    show_default=True,
    help="Tokens of a shard. The model depends on it in its last digits, and on nothing else of how it was computed.",
)
@click.option(
    "--memory",
    metavar="AMOUNT",
    callback=parse_memory,
    help="The most that a shard's sentences, and the vocabulary, may need: 500M, 2G. More is refused with a word.",
)
@click.option(
    "--n-jobs", type=click.IntRange(min=1), help="Threads; all cores if not given. Shards are the same."
)
@click.option(
    "--backend",
    type=click.Choice(backends()),
    default="local",
    help="Who encodes: this process, or the workers of a Ray cluster, file by file. Shards are the same.",
)
@click.option(
    "--address", metavar="HOST:PORT", help="The Ray cluster: an address, or auto for the one of this machine."
)
@click.option(
    "--workers", type=click.IntRange(min=1), help="Workers of --backend ray; one a CPU if not given."
)
@corpus_options
@click.option("-q", "--quiet", is_flag=True, help="No progress and no summary.")
@debug_option
def encode(
    files: tuple[str, ...],
    output: str,
    features: str,
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
    """Encode labelled FILES as shards in a folder, for corpora that are larger than memory.

    FILES are paths or patterns, .gz too. They are read as a stream, so memory is needed for one shard and for the
    vocabulary. A run that was stopped is gone on with by the same command: shards that are there, whole and of the same
    sentences, stay as they are.

    \b
    Examples:
      tagwise encode 'corpus/*.conll.gz' -o encoded/
      tagwise train encoded/ --dev dev.conll -o model.tagwise
      tagwise encode 'corpus/*.conll.gz' -o encoded/ --backend ray --address auto
      tagwise encode train.tsv --columns word,pos,label --features S3 -o encoded/ --memory 2G
    """
    begin = time.perf_counter()
    engine, more = who(backend, address, workers, n_jobs)
    parts = spelled(features, functions=True)
    names, label = names_of(columns, label)
    made: list[Encoded] = []
    with Console(stderr=True).status("encoding", spinner="line") as line:

        def on_done(shard: Encoded) -> None:
            made.append(shard)
            tokens = sum(each.tokens for each in made)
            if not quiet:
                line.update(f"{len(made)} shards, {tokens:,} tokens")

        if quiet:
            line.stop()
        shards = engine(
            files,
            output,
            features=features if parts is None else Features(*parts),
            columns=names,
            label=label or "label",
            format=form,
            shard_tokens=shard_tokens,
            memory=memory,
            progress=on_done,
            **more,
        )
    if quiet:
        return
    size = sum(entry.stat().st_size for entry in shards.path.glob("*.arrays")) / 1e6
    new = sum(shard.made for shard in made)
    say(
        f"{len(shards)} shards, {new} of them made now, {len(shards) - new} as they were; "
        f"{shards.n_sentences:,} sentences, {shards.n_tokens:,} tokens, {len(shards.labels)} labels; "
        f"{shards.manifest['attributes']:,} attributes; {time.perf_counter() - begin:.1f} s\n"
        f"wrote {os.path.join(output, '')} ({size:.1f} MB); tagwise train {os.path.join(output, '')} goes on"
    )


def who(
    backend: str, address: str | None, workers: int | None, n_jobs: int | None
) -> tuple[Callable[..., Any], dict[str, Any]]:
    """Return the function that encodes and its options."""
    if backend == "ray":
        from tagwise.ray.crew import connected
        from tagwise.ray.encoding import encode as by_ray

        if n_jobs is not None:
            raise click.UsageError(
                "--n-jobs is about this machine: say --workers, or leave --backend ray out"
            )
        connected(address)
        return by_ray, {"workers": workers}
    require("--backend ray", False, address=address, workers=workers)
    return encode_files, {"n_jobs": n_jobs}

"""Encoding on a Ray cluster: the workers write the shards of `shards.encode`, byte for byte.

The boundaries of shards depend on the lengths of all sentences before them. Files are therefore read twice: first for
the lengths alone, then each worker writes the shards that begin in its file, and continues in the next file for the end
of the last shard. Vocabularies are merged by a tree of neighbouring shards, which numbers attributes like a sequential
merge. Files are written atomically and identified by digests, so that a repeated job reuses them.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tagwise.base.exceptions import CorpusError
from tagwise.corpus.sentence import Corpus
from tagwise.dataset.shards.encode import (
    Encoded,
    Piece,
    checked_memory,
    corpus_of,
    digest_of,
    encoded_shard,
    expanded,
    finish,
    read,
    recipe_of,
    source_of,
    stored_header,
    write_map,
)
from tagwise.dataset.shards.files import shard_name
from tagwise.dataset.shards.folder import Output
from tagwise.dataset.shards.merge import Vocabularies, numbers
from tagwise.dataset.shards.reader import Shards
from tagwise.ray.jobs import Failed, Jobs

#: Number of shards or parts that one job merges.
FAN = 8
#: Temporary files of the merge: parts of the vocabulary by level and number, and the numbers of all keys.
PART, NUMBERS = "merging-{}-{:05d}.arrays", "merging-numbers.arrays"


@dataclass(frozen=True)
class EncoderConfig:
    """Constructor argument of the workers."""

    names: dict[str, str]  # absolute path -> name of the file as given by the user
    folder: Path
    reading: tuple[Any, ...]  # format, columns, label, encoding
    features: Any
    first: Corpus
    memory: int | None


class Encoder:
    """Class of the actors. Each runs one job at a time."""

    def __init__(self, config: EncoderConfig) -> None:
        self.config = config

    def work(self, method: str, *arguments: Any) -> Any:
        """Call one of the methods below."""
        return getattr(self, method)(*arguments)

    def lengths(self, path: str) -> tuple[NDArray[np.int64], dict[str, Any]]:
        """Return the number of tokens of each sentence of a file, and its entry in the manifest."""
        found = np.fromiter((len(s) for _, s in read([path], *self.config.reading)), dtype=np.int64)
        return found, {**source_of(path), "path": self.config.names[path]}

    def shards(self, at: int, skip: int, first: int, sizes: list[int]) -> list[dict[str, Any]]:
        """Write the shards `first`, `first` + 1, ... of `sizes` sentences each, and return their manifest entries.

        The first of them begins in file `at` after `skip` sentences.
        """
        config = self.config
        sentences = itertools.islice(read(list(config.names)[at:], *config.reading), skip, None)
        out = []
        for k, size in enumerate(sizes, first):
            piece = Piece()
            for name, sentence in itertools.islice(sentences, size):
                piece.add(config.names[name], sentence)
            corpus = corpus_of(piece, config.first)
            recipe = recipe_of(config.features, config.first)
            path, digest = config.folder / shard_name(k), digest_of(piece, recipe)
            note = stored_header(path, digest)
            made = note is None
            out.append({**(note or encoded_shard(path, digest, piece, corpus, recipe, 1)), "made": made})
        return out

    def merge(self, paths: list[Path], into: Path, parts: bool) -> Path:
        """Write the merged vocabulary of neighbouring shards, or of parts, and return its path."""
        vocabularies = Vocabularies(self.config.memory)
        for path in paths:
            vocabularies.take(path, parts)
        vocabularies.write(into, part=True)
        return into

    def numbered(self, ks: list[int], numbers_path: Path) -> list[int]:
        """Write the maps of shards into the merged vocabulary, and return their checksums."""
        folder = self.config.folder
        return [write_map(folder, k, numbers(folder / shard_name(k), numbers_path)) for k in ks]


def encode(
    files: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    output: str | os.PathLike[str],
    features: Any,
    columns: Sequence[str] | None,
    label: str,
    format: str | None,
    encoding: str | None,
    shard_tokens: int,
    memory: int | float | str | None,
    callbacks: Sequence[Callable[[Encoded], Any]],
    workers: int | None,
) -> Shards:
    """Encode files into shards on a Ray cluster, for `tagwise.encode`. The shards are byte-identical to local ones.

    A lost worker is replaced, and its job repeated. `memory` is per worker. Shards are reported in the order in which
    their files are finished.
    """
    limit = checked_memory(memory, shard_tokens)
    listed, folder = expanded(files), Path(os.path.abspath(output))
    names = {os.path.abspath(path): path for path in listed}
    paths = list(names)
    if len(names) < len(listed):
        repeated = next(
            path for path in listed if names[os.path.abspath(path)] != path or listed.count(path) > 1
        )
        raise CorpusError(f"{repeated}: the file is listed twice. List it once, or encode without Ray.")
    target = Output(folder)
    reading = (format, columns, label, encoding)
    first = next((Corpus([sentence]) for _, sentence in read(paths, *reading)), None)
    if first is None:
        raise CorpusError(f"{', '.join(listed)}: no sentences found. Give files with labelled sentences.")
    recipe = recipe_of(features, first)
    config = EncoderConfig(names, folder, reading, features, first, limit)
    with Jobs(Encoder, config, workers) as jobs:
        measured = _results(jobs, [(path, ("lengths", path)) for path in paths])
        notes: dict[int, dict[str, Any]] = {}
        todo = list(shard_jobs([lengths for lengths, _ in measured], shard_tokens))
        target.claim(sum(len(sizes) for *_, sizes in todo))
        requests = [(f"the shards that begin in {paths[job[0]]}", ("shards", *job)) for job in todo]
        for i, found in jobs.run(requests):
            for k, note in enumerate(_unwrapped(found), todo[i][2]):
                made = note.pop("made")
                notes[k] = note
                for callback in callbacks:
                    callback(Encoded(k, note["sentences"], note["tokens"], made))
        vocabularies = _merged(jobs, folder, len(notes), limit)
        numbers_path = folder / NUMBERS
        vocabularies.write_numbers(numbers_path)
        groups = [list(range(k, min(k + FAN, len(notes)))) for k in range(0, len(notes), FAN)]
        named = [(f"the maps of shards {ks[0]} to {ks[-1]}", ("numbered", ks, numbers_path)) for ks in groups]
        maps = list(itertools.chain.from_iterable(_results(jobs, named)))
    target.remove([NUMBERS, *part_names(target.owned)])
    ordered = [notes[k] for k in range(len(notes))]
    sources = [source for _, source in measured]
    return finish(target, ordered, maps, vocabularies, recipe, first, sources, shard_tokens)


def shard_jobs(
    lengths: Sequence[NDArray[np.int64]], shard_tokens: int
) -> Iterator[tuple[int, int, int, list[int]]]:
    """Yield a job for each file in which shards begin.

    A job is the index of the file, the number of sentences before its first shard, the number of that shard, and the
    sizes of the shards in sentences.

    lengths: Number of tokens of each sentence of each file. Boundaries are those of `shards.encode.cut`.

    >>> list(shard_jobs([np.array([3, 3, 3]), np.array([1]), np.array([2, 9])], 5))
    [(0, 0, 0, [2, 3]), (2, 1, 2, [1])]
    """
    cuts: list[tuple[tuple[int, int], int]] = []  # first file and sentence of a shard, and its size
    begin, tokens, sentences = (0, 0), 0, 0
    for at, of_file in enumerate(lengths):
        for s, n in enumerate(of_file.tolist()):
            begin = begin if sentences else (at, s)
            tokens, sentences = tokens + n, sentences + 1
            if tokens >= shard_tokens or sentences >= shard_tokens:
                cuts.append((begin, sentences))
                tokens = sentences = 0
    if sentences:
        cuts.append((begin, sentences))
    k = 0
    for at, group in itertools.groupby(cuts, key=lambda cut: cut[0][0]):
        found = list(group)
        yield at, found[0][0][1], k, [size for _, size in found]
        k += len(found)


def part_names(n: int) -> list[str]:
    """Return the names of the temporary files that merging the vocabularies of n shards writes.

    >>> part_names(9), part_names(8)
    (['merging-0-00000.arrays', 'merging-0-00001.arrays'], [])
    """
    out, level = [], 0
    while n > FAN:
        n = -(-n // FAN)
        out += [PART.format(level, i) for i in range(n)]
        level += 1
    return out


def _merged(jobs: Jobs, folder: Path, n: int, memory: int | None) -> Vocabularies:
    """Merge the vocabularies of n shards by a tree, whose last level runs in the driver."""
    level, parts = 0, [folder / shard_name(k) for k in range(n)]
    while len(parts) > FAN:
        groups = [parts[i : i + FAN] for i in range(0, len(parts), FAN)]
        requests = [
            (
                f"merging {group[0].name} to {group[-1].name}",
                ("merge", group, folder / PART.format(level, i), level > 0),
            )
            for i, group in enumerate(groups)
        ]
        level, parts = level + 1, _results(jobs, requests)
    out = Vocabularies(memory)
    for part in parts:
        out.take(part, level > 0)
    return out


def _results(jobs: Jobs, requests: Sequence[tuple[str, tuple[Any, ...]]]) -> list[Any]:
    """Return the results of all jobs in order."""
    out: list[Any] = [None] * len(requests)
    for i, found in jobs.run(requests):
        out[i] = _unwrapped(found)
    return out


def _unwrapped(found: Any) -> Any:
    if isinstance(found, Failed):
        raise found.error
    return found

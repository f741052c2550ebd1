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
    SHARD_TOKENS,
    Encoded,
    Piece,
    checked_memory,
    corpus_of,
    digest_of,
    encoded_shard,
    expanded,
    finish,
    note_of,
    read,
    recipe_of,
    source_of,
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
class Told:
    """Constructor argument of the workers."""

    names: dict[str, str]  # absolute path -> name of the file as given by the user
    folder: Path
    reading: tuple[Any, ...]  # format, columns, label, encoding
    features: Any
    first: Corpus
    memory: int | None


class Encoder:
    """Class of the actors. Each runs one job at a time."""

    def __init__(self, told: Told) -> None:
        self.told = told

    def work(self, what: str, *given: Any) -> Any:
        """Call one of the methods below."""
        return getattr(self, what)(*given)

    def lengths(self, path: str) -> tuple[NDArray[np.int64], dict[str, Any]]:
        """Return the number of tokens of each sentence of a file, and its entry in the manifest."""
        found = np.fromiter((len(s) for _, s in read([path], *self.told.reading)), dtype=np.int64)
        return found, {**source_of(path), "path": self.told.names[path]}

    def shards(self, at: int, skip: int, first: int, sizes: list[int]) -> list[dict[str, Any]]:
        """Write the shards `first`, `first` + 1, ... of `sizes` sentences each, and return their manifest entries.

        The first of them begins in file `at` after `skip` sentences.
        """
        told = self.told
        sentences = itertools.islice(read(list(told.names)[at:], *told.reading), skip, None)
        out = []
        for k, size in enumerate(sizes, first):
            piece = Piece()
            for name, sentence in itertools.islice(sentences, size):
                piece.add(told.names[name], sentence)
            corpus = corpus_of(piece, told.first)
            recipe = recipe_of(told.features, told.first)
            path, digest = told.folder / shard_name(k), digest_of(piece, recipe)
            note = note_of(path, digest)
            made = note is None
            out.append({**(note or encoded_shard(path, digest, piece, corpus, recipe, 1)), "made": made})
        return out

    def merge(self, paths: list[Path], into: Path, parts: bool) -> Path:
        """Write the merged vocabulary of neighbouring shards, or of parts, and return its path."""
        vocabularies = Vocabularies(self.told.memory)
        for path in paths:
            vocabularies.take(path, parts)
        vocabularies.write(into, part=True)
        return into

    def numbered(self, ks: list[int], known: Path) -> list[int]:
        """Write the maps of shards into the merged vocabulary, and return their checksums."""
        folder = self.told.folder
        return [write_map(folder, k, numbers(folder / shard_name(k), known)) for k in ks]


def encode(
    files: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    output: str | os.PathLike[str],
    *,
    features: Any = "default",
    columns: Sequence[str] | None = None,
    label: str = "label",
    format: str | None = None,
    encoding: str = "utf-8",
    shard_tokens: int = SHARD_TOKENS,
    memory: int | float | str | None = None,
    workers: int | None = None,
    progress: Callable[[Encoded], Any] | None = None,
) -> Shards:
    """Encode files into shards on a Ray cluster. The result is byte-identical to that of `tagwise.encode`.

    Work is distributed by file, so pass many files. All machines must see the files and the output folder under the
    same paths. A lost worker is replaced, and its job repeated. To resume after the driver was killed, repeat the call.

    Args:
        files: As for `tagwise.encode`.
        output: As for `tagwise.encode`.
        features: As for `tagwise.encode`.
        columns: As for `tagwise.encode`.
        label: As for `tagwise.encode`.
        format: As for `tagwise.encode`.
        encoding: As for `tagwise.encode`.
        shard_tokens: As for `tagwise.encode`.
        memory: As for `tagwise.encode`, per worker.
        workers: Number of workers. Default: one per CPU of the cluster.
        progress: As for `tagwise.encode`. Shards are reported in the order in which their files are finished.
    """
    limit = checked_memory(memory, shard_tokens)
    given, folder = expanded(files), Path(os.path.abspath(output))
    names = {os.path.abspath(path): path for path in given}
    paths = list(names)
    if len(names) < len(given):
        raise CorpusError(f"{', '.join(given)}: a file is listed twice. List it once, or encode without Ray.")
    place = Output(folder)
    reading = (format, columns, label, encoding)
    first = next((Corpus([sentence]) for _, sentence in read(paths, *reading)), None)
    if first is None:
        raise CorpusError(f"{', '.join(given)}: no sentences found. Give files with labelled sentences.")
    recipe = recipe_of(features, first)
    told = Told(names, folder, reading, features, first, limit)
    with Jobs(Encoder, told, workers) as jobs:
        measured = _done(jobs, [(path, ("lengths", path)) for path in paths])
        notes: dict[int, dict[str, Any]] = {}
        todo = list(work([lengths for lengths, _ in measured], shard_tokens))
        place.claim(sum(len(sizes) for *_, sizes in todo))
        asked = [(f"the shards that begin in {paths[job[0]]}", ("shards", *job)) for job in todo]
        for i, found in jobs.run(asked):
            for k, note in enumerate(_answer(found), todo[i][2]):
                made = note.pop("made")
                notes[k] = note
                if progress is not None:
                    progress(Encoded(k, note["sentences"], note["tokens"], made))
        vocabularies = _merged(jobs, folder, len(notes), limit)
        known = folder / NUMBERS
        vocabularies.write_numbers(known)
        groups = [list(range(k, min(k + FAN, len(notes)))) for k in range(0, len(notes), FAN)]
        named = [(f"the maps of shards {ks[0]} to {ks[-1]}", ("numbered", ks, known)) for ks in groups]
        maps = list(itertools.chain.from_iterable(_done(jobs, named)))
    place.remove([NUMBERS, *part_names(place.owned)])
    ordered = [notes[k] for k in range(len(notes))]
    sources = [source for _, source in measured]
    return finish(place, ordered, maps, vocabularies, recipe, first, sources, shard_tokens)


def work(
    lengths: Sequence[NDArray[np.int64]], shard_tokens: int
) -> Iterator[tuple[int, int, int, list[int]]]:
    """Yield a job for each file in which shards begin.

    A job is the index of the file, the number of sentences before its first shard, the number of that shard, and the
    sizes of the shards in sentences.

    lengths: Number of tokens of each sentence of each file. Boundaries are those of `shards.encode.cut`.

    >>> list(work([np.array([3, 3, 3]), np.array([1]), np.array([2, 9])], 5))
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
        asked = [
            (
                f"merging {group[0].name} to {group[-1].name}",
                ("merge", group, folder / PART.format(level, i), level > 0),
            )
            for i, group in enumerate(groups)
        ]
        level, parts = level + 1, _done(jobs, asked)
    out = Vocabularies(memory)
    for part in parts:
        out.take(part, level > 0)
    return out


def _done(jobs: Jobs, asked: Sequence[tuple[str, tuple[Any, ...]]]) -> list[Any]:
    """Return the results of all jobs in order."""
    out: list[Any] = [None] * len(asked)
    for i, found in jobs.run(asked):
        out[i] = _answer(found)
    return out


def _answer(found: Any) -> Any:
    if isinstance(found, Failed):
        raise found.error
    return found

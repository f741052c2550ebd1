"""Encoding of files as shards: sentences are read as a stream, split into shards, and written as arrays.

Shard boundaries depend only on the sentences, not on the machine: a shard ends with the sentence that reaches
`shard_tokens` tokens. Memory holds the sentences of one shard and, at the end, the vocabulary of all shards.
"""

from __future__ import annotations

import glob
import hashlib
import json
import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import tagwise._core as _core
from tagwise.base import extensions
from tagwise.base.domains import Integer
from tagwise.base.exceptions import CorpusError, ParameterError, file_error
from tagwise.base.parameters import checked
from tagwise.base.progress import checked_callbacks, logger, progress
from tagwise.corpus.formats import open_sentences
from tagwise.corpus.sentence import Corpus, Sentence
from tagwise.dataset.encode import encode_labels
from tagwise.dataset.shards.files import (
    FORMAT,
    VOCABULARY,
    checksum,
    map_name,
    memory_of,
    open_shard,
    shard_name,
    write,
)
from tagwise.dataset.shards.folder import Output
from tagwise.dataset.shards.merge import Vocabularies, merged_labels
from tagwise.dataset.shards.reader import Shards
from tagwise.features.inputs import Inputs
from tagwise.features.recipe import Recipe
from tagwise.features.resolve import recipe_for

#: Default number of tokens per shard.
SHARD_TOKENS = 200_000
#: Bytes of memory per token of the current shard, for texts and arrays: twice the measured value.
_TOKEN = 1024


@dataclass
class Encoded:
    """Progress report of one shard.

    Attributes:
        number: Number of the shard, from 0.
        sentences: Number of sentences.
        tokens: Number of tokens.
        made: Whether this run wrote it. False if it was already up to date.
    """

    number: int
    sentences: int
    tokens: int
    made: bool


@dataclass
class Piece:
    """Sentences of one shard."""

    sentences: list[Sentence] = field(default_factory=list)
    tokens: int = 0
    files: list[tuple[str, int]] = field(default_factory=list)  # name and index of its first sentence

    def add(self, name: str, sentence: Sentence) -> None:
        if not self.files or self.files[-1][0] != name:
            self.files.append((name, len(self.sentences)))
        self.sentences.append(sentence)
        self.tokens += len(sentence)

    def place(self, s: int) -> str:
        """Return the file and line of a sentence."""
        name = next(name for name, first in reversed(self.files) if first <= s)
        line = self.sentences[s].line
        return f"{name}:{line}" if line else f"{name}, sentence {s}"


def encode(
    files: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    output: str | os.PathLike[str],
    *,
    features: Any = "default",
    columns: Sequence[str] | None = None,
    label: str = "label",
    format: str | None = None,
    encoding: str | None = None,
    shard_tokens: int = SHARD_TOKENS,
    memory: int | float | str | None = None,
    callbacks: Iterable[Callable[[Encoded], Any]] = (),
    backend: str = extensions.LOCAL,
    workers: int | None = None,
    n_jobs: int | None = None,
    verbose: int = 0,
) -> Shards:
    """Encode labelled files as shards in a folder, for training on corpora larger than memory.

    Existing shards with the same sentences and the same features are kept. Repeat the call to resume an interrupted
    run, or to add sentences at the end of the files. The folder is incomplete during the call, and `Shards` raises an
    error for an incomplete folder.

    Args:
        files: path or sequence of paths. Files, or patterns with *, ? and ** (sorted by name). Compressed files (.gz,
            .xz, .bz2) are accepted.
        output: path. A new or empty folder, or one written by `encode`. Other folders are an error. Only files named
            in the folder's manifest are replaced or removed, and links are not followed.
        features: features of a tagger, default="default". Templates that learn lists from the whole corpus (is_rare)
            are not supported.
        columns: sequence of str or None, default=None. Column names, as in `read`.
        label: str, default="label". Name of the label column.
        format: str or None, default=None. Format of the files, as in `read`. None means automatic detection.
        encoding: str or None, default=None. Encoding such as "latin-1". None means UTF-8, or
            UTF-16 and UTF-32 by their byte order mark.
        shard_tokens: int, default=200000. Number of tokens per shard. Smaller shards need less memory, and larger ones
            have less overhead.
        memory: int, float, str or None, default=None. Maximum memory for the sentences of a shard and for the
            vocabulary, such as "500M" or "2G". Exceeding it is an error. None means no limit.
        callbacks: iterable of callables, default=(). Functions that are called with an `Encoded` after each shard.
        backend: str, default="local". "local" encodes in this process, "ray" on the Ray cluster that this process is
            connected to, which must see the files and the folder under the same paths. Work is distributed by file. The
            shards are the same.
        workers: int or None, default=None. Number of workers of backend="ray". None means one per CPU of the cluster.
        n_jobs: int or None, default=None. Number of threads of backend="local". None means one per core. The shards do
            not depend on it.
        verbose: int, default=0. 1 shows a progress line on a terminal or in a notebook and logs every shard to the
            logger ``tagwise``.

    Returns:
        The `Shards` of the folder.

    Raises:
        CorpusError: A file cannot be read or is not valid, or the folder cannot be used or written.
        ParameterError: An argument is not valid, or ``memory`` is too small.

    >>> import tagwise as tw
    >>> tw.write(tw.Corpus.from_lists([["a", "b"], ["c"]], [["X", "Y"], ["X"]]), "tiny.conll")
    >>> tw.encode("tiny.conll", "tiny-encoded", features="S1")
    <Shards: tiny-encoded, 1 shards, 2 sentences, 3 tokens, 3 attributes, 2 labels>
    """
    extensions.check_backend(backend)
    verbose, functions = checked("verbose", verbose, Integer(0)), checked_callbacks(callbacks)
    with progress("encode", verbose) as line:
        functions += [_log] * bool(verbose)
        functions += (
            [] if line is None else [lambda done: line.update(done.number + 1, done.number + 1, _state(done))]
        )
        if backend == extensions.LOCAL:
            extensions.check_local(workers)
            jobs = checked("n_jobs", n_jobs, Integer(1, optional=True))
            given = (features, columns, label, format, encoding, shard_tokens, memory, functions, jobs)
            return _encoded_here(files, output, *given)
        if n_jobs is not None:
            raise ParameterError(f"n_jobs={n_jobs!r} needs backend='local'. Leave it out, or set workers")
        given = (features, columns, label, format, encoding, shard_tokens, memory, functions, workers)
        found: Shards = extensions.load("encoding", backend).encode(files, output, *given)
        return found


def _log(done: Encoded) -> None:
    logger.info("shard %d: %s", done.number, _state(done))


def _state(done: Encoded) -> str:
    """Return a shard as text for progress lines and logs."""
    return f"{done.sentences:,} sentences, {done.tokens:,} tokens{'' if done.made else ', up to date'}"


def _encoded_here(
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
    n_jobs: int | None,
) -> Shards:
    """Encode in this process."""
    limit = checked_memory(memory, shard_tokens)
    paths, folder = expanded(files), Path(output)
    place = Output(folder)
    pieces = cut(read(paths, format, columns, label, encoding), shard_tokens)
    first: Corpus | None = None
    recipe, notes = None, []
    for k, piece in enumerate(pieces):
        corpus = corpus_of(piece, first)
        if recipe is None:
            first, recipe = corpus[:1], recipe_of(features, corpus)
        path, digest = folder / shard_name(k), digest_of(piece, recipe)
        note = stored_header(path, digest)
        made = note is None
        if note is None:
            place.claim(k + 1)
            note = encoded_shard(path, digest, piece, corpus, recipe, n_jobs)
        notes.append(note)
        for callback in callbacks:
            callback(Encoded(k, note["sentences"], note["tokens"], made))
    if recipe is None or first is None:
        raise CorpusError(f"{', '.join(paths)}: no sentences found. Give files with labelled sentences.")
    if not place.has([note["digest"] for note in notes]):
        place.claim(len(notes))
    vocabularies = Vocabularies(limit)
    maps = [write_map(folder, k, vocabularies.take(folder / shard_name(k))) for k in range(len(notes))]
    sources = [source_of(path) for path in paths]
    return finish(place, notes, maps, vocabularies, recipe, first, sources, shard_tokens)


def checked_memory(memory: int | float | str | None, shard_tokens: int) -> int | None:
    """Return the memory limit in bytes. Raise a ParameterError if one shard needs more."""
    if not isinstance(shard_tokens, int) or shard_tokens < 1:
        raise ParameterError(f"shard_tokens={shard_tokens!r}: expected an integer >= 1")
    limit = memory_of(memory)
    if limit is not None and shard_tokens * _TOKEN > limit:
        raise ParameterError(
            f"shards of {shard_tokens:,} tokens need about {shard_tokens * _TOKEN / 1e6:,.0f} MB, but the limit is "
            f"{limit / 1e6:,.0f} MB. Increase the limit, or use smaller shards."
        )
    return limit


def source_of(path: str) -> dict[str, Any]:
    """Return the entry of a source file in the manifest."""
    return {"path": path, "bytes": os.path.getsize(path), "crc32": checksum(Path(path))}


def write_map(folder: Path, k: int, numbers: NDArray[np.uint32]) -> int:
    """Write the vocabulary ids of a shard's attributes. Return the checksum of the file."""
    return write(folder / map_name(k), {"kind": "map"}, {"map": numbers})


def finish(
    output: Output,
    notes: Sequence[dict[str, Any]],
    maps: Sequence[int],
    vocabularies: Vocabularies,
    recipe: Recipe,
    like: Corpus,
    sources: Sequence[dict[str, Any]],
    shard_tokens: int,
) -> Shards:
    """Write the vocabulary and the manifest. All shards and maps must be written. `maps` are the maps' checksums."""
    named = ("digest", "sentences", "tokens", "crc32")
    labels, counts = merged_labels([(note["labels"], note["label_counts"]) for note in notes])
    output.complete(
        {
            "tagwise": _core.__version__,
            "features": recipe.to_json(),
            "columns": list(like.columns),
            "label": like.label,
            "shard_tokens": shard_tokens,
            "sentences": sum(note["sentences"] for note in notes),
            "tokens": sum(note["tokens"] for note in notes),
            "node_attributes": sum(note["node_attributes"] for note in notes),
            "attributes": len(vocabularies),
            "labels": labels,
            "label_counts": counts,
            "vocabulary": vocabularies.write(output.folder / VOCABULARY),
            "shards": [{**{name: note[name] for name in named}, "map": to} for note, to in zip(notes, maps)],
            "sources": list(sources),
        }
    )
    return Shards(output.folder)


# --- from files to pieces -----------------------------------------------------------------------------------


def expanded(files: str | os.PathLike[str] | Sequence[str | os.PathLike[str]]) -> list[str]:
    """Return the files of paths and patterns, in the given order. Files of a pattern are sorted by name."""
    patterns = [files] if isinstance(files, (str, os.PathLike)) else list(files)
    out: list[str] = []
    for each in [os.fspath(path) for path in patterns]:
        found = [each] if os.path.exists(each) else sorted(glob.glob(each, recursive=True))
        found = [path for path in found if not os.path.isdir(path)]
        if not found:
            raise file_error(
                CorpusError,
                f"{each}: no such file. Give paths, or patterns such as 'corpus/*.conll.gz'.",
                each,
                2,
            )
        out += found
    if not out:
        raise CorpusError("no files to encode. Give paths, or patterns such as 'corpus/*.conll.gz'.")
    return out


def read(
    paths: Sequence[str], format: str | None, columns: Sequence[str] | None, label: str, encoding: str | None
) -> Iterator[tuple[str, Sentence]]:
    """Yield the sentences of all files, each with the name of its file."""
    for path in paths:
        kind, sentences = open_sentences(path, format, columns=columns, label=label, encoding=encoding)
        for sentence in sentences:
            if sentence.label is None:
                raise CorpusError(
                    f"{path}:{sentence.line or 1}: no label column. The file was read as {kind} with the columns "
                    f"{', '.join(sentence.fields)}. Name the columns and the label column."
                )
            yield path, sentence


def cut(sentences: Iterator[tuple[str, Sentence]], shard_tokens: int) -> Iterator[Piece]:
    """Split sentences into shards. A shard ends with the sentence that reaches `shard_tokens` tokens or sentences."""
    piece = Piece()
    for name, sentence in sentences:
        piece.add(name, sentence)
        if piece.tokens >= shard_tokens or len(piece.sentences) >= shard_tokens:
            yield piece
            piece = Piece()
    if piece.sentences:
        yield piece


def corpus_of(piece: Piece, first: Corpus | None) -> Corpus:
    """Return the sentences of a shard as a corpus. Raise a CorpusError if columns differ from the first sentence's."""
    expected = piece.sentences[0] if first is None else first[0]
    for s, sentence in enumerate(piece.sentences):
        if list(sentence.fields) != list(expected.fields) or sentence.label != expected.label:
            raise CorpusError(
                f"{piece.place(s)}: columns {', '.join(sentence.fields)} (label column {sentence.label}), but the "
                f"first sentence has {', '.join(expected.fields)} (label column {expected.label}). Give every file "
                "the same columns, or name them."
            )
    return Corpus(piece.sentences)


def recipe_of(features: Any, corpus: Corpus) -> Recipe:
    recipe = recipe_for(features, Inputs.of(corpus))
    parts = recipe.parts or (recipe,)
    if any(part.kind == "template" and part.template.is_open for part in parts):
        raise ParameterError(
            f"features={recipe.name!r} learn a list of frequent words from the whole corpus (is_rare, is_frequent), "
            "which is not possible with shards. Use features without them."
        )
    return recipe


# --- one shard ----------------------------------------------------------------------------------------------


def digest_of(piece: Piece, recipe: Recipe) -> str:
    """Return a digest of everything a shard depends on: its sentences, the features, the version."""
    found = hashlib.blake2b(digest_size=16)
    found.update(json.dumps([_core.__version__, FORMAT, recipe.to_json()], sort_keys=True).encode())
    for sentence in piece.sentences:
        fields = "\x1e".join("\x1f".join((name, *values)) for name, values in sentence.fields.items())
        found.update(f"{fields}\x1d".encode("utf-8", "surrogatepass"))
    return found.hexdigest()


def stored_header(path: Path, digest: str) -> dict[str, Any] | None:
    """Return header and checksum of an undamaged shard with this digest, or None."""
    try:
        file = open_shard(path)
    except CorpusError:
        return None
    return {**file.header, "crc32": file.checksum} if file.header["digest"] == digest else None


def encoded_shard(
    path: Path, digest: str, piece: Piece, corpus: Corpus, recipe: Recipe, n_jobs: int | None
) -> dict[str, Any]:
    """Encode and write a shard. Return its header and checksum."""
    vocabulary = _core.Vocabulary()
    try:
        data = recipe.encode(corpus, vocabulary, n_jobs)
    except CorpusError as error:
        if error.sentence is None:
            raise
        raise CorpusError(f"{piece.place(error.sentence)}: {error}") from error
    labels = Counter(label for sentence in corpus.labels for label in sentence)
    made: Any = vocabulary.__reduce__()[1]  # `arrays`, and the state of a growing vocabulary
    keys, _, text, text_end, checks, counts = made
    node_ptr, ids, values = data.node()
    arrays: dict[str, Any] = {
        "offsets": data.offsets,
        "gold": encode_labels(corpus.labels, list(labels)),
        "node_ptr": node_ptr,
        "ids": ids,
        "values": values,
        "keys": keys,
        "checks": checks,
        "counts": counts,
        "text": text,
        "text_end": text_end,
        "lines": np.array([sentence.line or 0 for sentence in piece.sentences], dtype=np.uint32),
    }
    if data.n_edge_attributes:
        arrays |= dict(zip(("edge_ptr", "edge_ids", "edge_values"), data.edge()))
    note = {
        "kind": "shard",
        "digest": digest,
        "sentences": len(data),
        "tokens": data.n_tokens,
        "node_attributes": data.n_attributes,
        "labels": list(labels),
        "label_counts": list(labels.values()),
        "files": [list(file) for file in piece.files],
    }
    return {**note, "crc32": write(path, note, arrays)}

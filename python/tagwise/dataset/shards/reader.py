"""Reader of encoded shards: vocabulary, labels, and the dataset of each shard."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Collection, Iterator, Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

import tagwise._core as _core
from tagwise.base.cached import cached
from tagwise.base.domains import DomainError
from tagwise.base.exceptions import (
    CorpusError,
    FileError,
    MissingFunctionError,
    ParameterError,
    TagwiseError,
    file_error,
)
from tagwise.base.files.arrays import ArrayFile
from tagwise.base.imports import Functions
from tagwise.base.parameters import meant
from tagwise.dataset.layout import Codes, codes_of, has_pairs, layout_of
from tagwise.dataset.shards.files import (
    AGAIN,
    MANIFEST,
    MAP_DOMAIN,
    NOWHERE,
    VOCABULARY,
    VOCABULARY_DOMAIN,
    checked,
    counted,
    damaged,
    faults,
    half_of_memory,
    map_name,
    memory_of,
    open_arrays,
    open_shard,
    read_manifest,
    shard_name,
)
from tagwise.features.recipe import Recipe
from tagwise.features.schema import FEATURES
from tagwise.features.sets import quoted

logger = logging.getLogger("tagwise")

#: Treatment of a damaged shard.
ON_ERROR = ("stop", "skip")


class Shards:
    """A folder of shards written by `encode`, for training with `fit_shards`.

    Args:
        path: path. The folder.
        functions: mapping of str to callable or None, default=None. Feature functions by import path, as in
            `tagwise.load`. Needed for scoring during training if the features contain functions.
        memory: int, float, str or None, default=None. Memory that training may use for shards, such as "500M" or
            "2G". The rest is stored in files next to the shards. None means half of the machine's memory. The model
            does not depend on it.
        on_error: str, default="stop". "stop" raises an error for a damaged shard. "skip" checks all shards first, and
            omits damaged ones with a warning.
        skipped: collection of int, default=(). Numbers of shards to omit, for example for a held-out set.

    Attributes:
        path: The folder.
        labels: Labels, most frequent first.
        n_sentences: Number of sentences of all shards in the folder.
        n_tokens: Number of tokens of all shards in the folder.
        recipe: Features of the shards.
        manifest: Content of the folder's manifest.
        memory: Memory limit in bytes, or None.

    Raises:
        CorpusError: The folder is missing, incomplete or damaged.
        ParameterError: An argument is not valid.

    >>> import tagwise as tw
    >>> tw.write(tw.Corpus.from_lists([["a", "b"], ["c"]], [["X", "Y"], ["X"]]), "tiny.conll")
    >>> shards = tw.encode("tiny.conll", "tiny-encoded", features="S1")
    >>> tagger = tw.fit_shards(tw.CRF(max_iter=5), tw.Shards("tiny-encoded"))
    >>> tagger.predict([["a", "b"]])
    [['X', 'Y']]
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        functions: Mapping[str, Callable[..., Any]] | None = None,
        memory: int | float | str | None = None,
        on_error: str = "stop",
        skipped: Collection[int] = (),
    ) -> None:
        if on_error not in ON_ERROR:
            raise ParameterError(
                f"on_error={on_error!r}: expected {' or '.join(ON_ERROR)}{meant(str(on_error), ON_ERROR)}"
            )
        self.path = Path(path)
        self.memory = memory_of(memory) or half_of_memory()
        try:
            found = read_manifest(self.path)
        except FileError as error:
            raise file_error(
                CorpusError,
                f"{self.path}: not a folder of encoded shards ({MANIFEST}: {error.strerror}). Create one with "
                "`tagwise encode FILES -o FOLDER`.",
                str(self.path),
                error.errno or 5,
            ) from error
        if found["state"] != "complete":
            raise CorpusError(
                f"{self.path}: the encoding of this folder was interrupted. Continue it with the same "
                "`tagwise encode` command."
            )
        self.manifest = found
        try:
            FEATURES.check(found["features"], "features")
            self.recipe = Recipe.from_json(found["features"], Functions(functions))
        except (MissingFunctionError, OSError):
            raise
        except (TagwiseError, ValueError) as error:
            raise damaged(self.path / MANIFEST, error, AGAIN) from error
        self.labels: list[str] = found["labels"]
        self.n_sentences: int = found["sentences"]
        self.n_tokens: int = found["tokens"]
        # Numbers of the shards in the manifest.
        self._number = [k for k in range(len(found["shards"])) if k not in skipped]
        if on_error == "skip":
            self._number = [k for k in self._number if self._is_whole(k)]
        if not self._number:
            raise damaged(self.path, "all its shards are damaged or skipped")

    def __len__(self) -> int:
        return len(self._number)

    def __iter__(self) -> NoReturn:
        raise ParameterError(
            "shards are not a list of sentences. Train on them with tagwise.fit_shards(tagger, shards)."
        )

    @property
    def skipped(self) -> tuple[int, ...]:
        """Numbers of omitted shards."""
        return tuple(sorted(set(range(len(self.manifest["shards"]))) - set(self._number)))

    def _is_whole(self, number: int) -> bool:
        """Return whether the files of a shard are undamaged. Log a warning if they are not."""
        try:
            self._file(number)
            self._map(number)
        except CorpusError as error:
            lost = self.manifest["shards"][number]["sentences"]
            logger.warning("skipping shard %d with %d sentences: %s", number, lost, error)
            return False
        return True

    def __repr__(self) -> str:
        return (
            f"<Shards: {self.path}, {len(self)} shards, {self.n_sentences} sentences, {self.n_tokens} tokens, "
            f"{self.manifest['attributes']} attributes, {len(self.labels)} labels>"
        )

    def _repr_html_(self) -> str:
        from tagwise.base.markup import object_html
        from tagwise.corpus.label_markup import labels_html

        rows = [("folder", self.path), ("features", self.recipe.name), ("labels", labels_html(self.labels))]
        return object_html(self, rows)

    @property
    def digest(self) -> str:
        """Identifier of the contents: digests of the sentences and features of each shard, in order."""
        return " ".join(self.manifest["shards"][number]["digest"] for number in self._number)

    def sentences(self, k: int) -> int:
        """Count the sentences of a shard.

        Args:
            k: int. Index of the shard, from 0.

        Returns:
            The number of sentences.
        """
        return int(self.manifest["shards"][self._number[k]]["sentences"])

    # --- attributes -------------------------------------------------------------------------------------

    @property
    @cached
    def _vocabulary(self) -> ArrayFile:
        return open_arrays(self.path / VOCABULARY, VOCABULARY_DOMAIN, self.manifest["vocabulary"])

    def _array(self, name: str, dtype: str, length: int | None = None) -> NDArray[Any]:
        with faults(self.path / VOCABULARY):
            return self._vocabulary.take(name, dtype, length)

    @property
    @cached
    def counts(self) -> NDArray[np.uint32]:
        """Number of occurrences of each attribute."""
        with faults(self.path / VOCABULARY):
            return counted(self._array("counts", "u32", self.manifest["attributes"]))

    def kept(self, min_count: int = 1) -> NDArray[np.bool_]:
        """Select the attributes with at least min_count occurrences.

        Args:
            min_count: int, default=1. Minimum number of occurrences in all shards.

        Returns:
            A mask over all attributes of the folder.
        """
        keep: NDArray[np.bool_] = self.counts >= min_count
        return keep

    def vocabulary(self, min_count: int = 1) -> _core.Vocabulary:
        """Return the vocabulary of the attributes with at least min_count occurrences.

        Args:
            min_count: int, default=1. Minimum number of occurrences in all shards.

        Returns:
            A locked vocabulary.

        Raises:
            CorpusError: The file of the vocabulary is damaged.
        """
        n = self.manifest["attributes"]
        keys, text, end = (
            self._array("keys", "u64", n),
            self._array("text", "u8"),
            self._array("text_end", "u64", n),
        )
        try:
            whole = _core.Vocabulary.from_arrays(keys, None, text, end)
        except ValueError as error:
            raise damaged(self.path / VOCABULARY, str(error)) from error
        return whole.kept(self.kept(min_count))

    # --- sentences --------------------------------------------------------------------------------------

    def note(self, k: int) -> dict[str, Any]:
        """Return the header of a shard.

        Args:
            k: int. Index of the shard, from 0.

        Returns:
            Digest, counts, labels and source files of the shard.

        Raises:
            CorpusError: The shard is damaged.
        """
        return self._file(self._number[k]).header

    def _file(self, number: int) -> ArrayFile:
        """Open a shard, and check that it is undamaged and matches the manifest."""
        known, path = self.manifest["shards"][number], self.path / shard_name(number)
        file = open_shard(path, known["crc32"])
        for name in ("digest", "sentences", "tokens"):
            if file.header[name] != known[name]:
                raise damaged(path, f"{name}: expected {known[name]!r} according to {MANIFEST}")
        return file

    def _map(self, number: int) -> NDArray[np.uint32]:
        """Return the vocabulary id of each attribute of a shard."""
        path = self.path / map_name(number)
        file = open_arrays(path, MAP_DOMAIN, self.manifest["shards"][number]["map"])
        with faults(path):
            return checked("map", file.take("map", "u32"), self.manifest["attributes"])

    def dataset(self, k: int, min_count: int = 1) -> _core.Dataset:
        """Return the sentences of a shard with their labels.

        Args:
            k: int. Index of the shard, from 0.
            min_count: int, default=1. Minimum number of occurrences of an attribute in all shards.

        Returns:
            A dataset with the attribute ids of `vocabulary`.

        Raises:
            CorpusError: The shard is damaged.
        """
        number = self._number[k]
        path, file, to = self.path / shard_name(number), self._file(number), self._map(number)
        with faults(path):
            if len(to) != file.length("keys", "u64"):
                raise DomainError(f"its map has {len(to):,} attributes, not those of the shard")
            if min_count > 1:
                keep = self.kept(min_count)
                to = np.where(keep, np.cumsum(keep) - 1, NOWHERE).astype(np.uint32)[to]
            gold = self._gold(file)
            node = _numbered(file, "node_ptr", "ids", "values", to)
            edge = None
            if "edge_ids" in file:
                edge = _numbered(file, "edge_ptr", "edge_ids", "edge_values", to)
            try:
                return _core.Dataset.from_arrays(file.take("offsets", "u64"), gold, node, edge)
            except ValueError as error:
                raise DomainError(str(error)) from error

    def iter_words(self) -> Iterator[list[str]]:
        """Yield the words of each sentence, shard by shard, as text for `WordClasses.learn`.

        Yields:
            Words of a sentence, in the order of the corpus.

        Raises:
            CorpusError: The features of the shards do not include the word itself, or a shard is damaged.
        """
        begin = f"{quoted(self.manifest['columns'][0])}[0]="
        word = {
            i: text[len(begin) :]
            for i, text in enumerate(self.vocabulary().texts())
            if text.startswith(begin) and " & " not in text
        }
        is_word = np.zeros(self.manifest["attributes"], dtype=bool)
        is_word[list(word)] = True
        for k in range(len(self)):
            data = self.dataset(k)
            _, ids, _ = data.node()
            offsets, found = data.offsets.tolist(), ids[is_word[ids]].tolist()
            if len(found) != offsets[-1]:
                raise CorpusError(
                    f"{self.path}: the features of these shards do not include each word. Encode them with a set "
                    f"that does, such as default, or with a template that has the line {begin[:-1]}."
                )
            for first, last in pairwise(offsets):
                yield [word[i] for i in found[first:last]]

    def _gold(self, file: ArrayFile) -> NDArray[np.uint16]:
        """Return the label ids of a shard's tokens, as indices into `labels`."""
        names = {label: y for y, label in enumerate(self.labels)}
        unknown = next((label for label in file.header["labels"] if label not in names), None)
        if unknown is not None:
            raise DomainError(f"labels: {unknown!a} is not in {MANIFEST}")
        here = np.array([names[label] for label in file.header["labels"]], dtype=np.uint16)
        gold: NDArray[np.uint16] = here[checked("gold", file.take("gold", "u16"), len(here))]
        return gold

    def gold(self, k: int) -> tuple[NDArray[np.uint64], NDArray[np.uint16]]:
        """Return the gold labels of a shard.

        Args:
            k: int. Index of the shard, from 0.

        Returns:
            The offset of each sentence, and the label id of each token.

        Raises:
            CorpusError: The shard is damaged.
        """
        number = self._number[k]
        file = self._file(number)
        with faults(self.path / shard_name(number)):
            return file.take("offsets", "u64"), self._gold(file)

    @property
    def label_counts(self) -> NDArray[np.int64]:
        """Number of occurrences of each label in all shards."""
        return np.array(self.manifest["label_counts"], dtype=np.int64)

    def place(self, k: int, s: int) -> str:
        """Locate a sentence in the source files.

        Args:
            k: int. Index of the shard, from 0.
            s: int. Index of the sentence in the shard, from 0.

        Returns:
            File and line, for messages.

        Raises:
            CorpusError: The shard is damaged.
        """
        file = self._file(self._number[k])
        name = next((name for name, first in reversed(file.header["files"]) if first <= s), str(self.path))
        lines = file.take("lines", "u32", file.header["sentences"])
        return f"{name}:{int(lines[s])}" if s < len(lines) and lines[s] else name

    def layout(self, *, min_count: int = 1, all_pairs: bool = False, start_end: bool = True) -> _core.Layout:
        """Collect the features that occur in the shards.

        Args:
            min_count: int, default=1. Minimum number of occurrences of an attribute in all shards.
            all_pairs: bool, default=False. Include every combination of attributes and labels.
            start_end: bool, default=True. Include features of the first and the last label.

        Returns:
            The layout of all features.

        Raises:
            CorpusError: A shard is damaged.
        """
        n_attributes, n_labels = int(self.kept(min_count).sum()), len(self.labels)
        codes: list[Codes] = [np.zeros(0, np.int64)] * 5
        pairs = False
        for k in range(len(self)):
            data = self.dataset(k, min_count)
            found = _core.Layout.build(data, n_attributes, n_labels, all_pairs=all_pairs, start_end=start_end)
            codes = [np.union1d(a, b) for a, b in zip(codes, codes_of(found))]
            pairs |= has_pairs(found)
        return layout_of(n_attributes, n_labels, codes, pairs)


def _numbered(
    file: ArrayFile, ptr_name: str, ids_name: str, values_name: str, to: NDArray[np.uint32]
) -> tuple[NDArray[np.uint64], NDArray[np.uint32], NDArray[np.float32]]:
    """Return CSR rows with attribute ids mapped by `to`. Attributes that map to NOWHERE are dropped."""
    ids: NDArray[np.uint32] = to[checked(ids_name, file.take(ids_name, "u32"), len(to))]
    ptr = checked(ptr_name, file.take(ptr_name, "u64"), len(ids) + 1)
    values: NDArray[np.float32] = file.take(values_name, "f32")
    keep = ids != NOWHERE
    if keep.all():
        return ptr, ids, values
    before = np.concatenate([np.zeros(1, np.uint64), np.cumsum(keep, dtype=np.uint64)])
    return before[ptr], ids[keep], values[keep] if len(values) else values

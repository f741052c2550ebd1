"""Encoded shards as training sees them: a vocabulary, labels, and the dataset of each shard."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Collection, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import tagwise._core as _core
from tagwise.dataset.layout import Codes, codes_of, has_pairs, layout_of
from tagwise.errors import CorpusError, ParameterError, refusal
from tagwise.features.recipe import Recipe
from tagwise.importing import Functions
from tagwise.shards.files import (
    MANIFEST,
    NOTE,
    NOWHERE,
    VOCABULARY,
    damaged,
    half_of_memory,
    memory_of,
    read_array,
    read_json,
    shard_name,
)

logger = logging.getLogger("tagwise")

#: What to do about a damaged shard.
ON_ERROR = ("stop", "skip")


class Shards:
    """A corpus that `encode` has made ready, in a folder: `fit` takes it in the place of X.

    Args:
        path: the folder.
        functions: feature functions by import path, as `tagwise.load` takes them: for scoring while training.
        memory: what training may keep of them in memory, as 500M or 2G; what is more lies in files beside the shards.
            Half of the machine's memory if not given. The model is the same to the bit.
        on_error: "stop" where a damaged shard is met, by its name; "skip" looks at the checksums of all shards first,
            warns of those that are damaged, and has the others alone.
        skipped: numbers of shards to leave out.

    >>> import tagwise as tw
    >>> tw.write_conll(tw.Corpus.from_lists([["a", "b"], ["c"]], [["X", "Y"], ["X"]]), "tiny.conll")
    >>> shards = tw.encode("tiny.conll", "tiny-encoded", features="S1")
    >>> tagger = tw.CRF(max_iter=5).fit(tw.Shards("tiny-encoded"))
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
            raise ParameterError(f"on_error={on_error!r}: expected {' or '.join(ON_ERROR)}")
        self.path = Path(path)
        self.memory = memory_of(memory) or half_of_memory()
        try:
            found = read_json(self.path / MANIFEST)
        except OSError as error:
            raise refusal(
                CorpusError,
                f"{self.path}: no folder of encoded shards ({MANIFEST}: {error.strerror}). Make one with "
                "`tagwise encode FILES -o FOLDER`; one whose encoding was stopped is gone on with by the same command.",
                str(self.path),
                error.errno or 5,
            ) from error
        self.manifest = found
        self.recipe = Recipe.from_json(found["features"], Functions(functions))
        self.labels: list[str] = found["labels"]
        self.n_sentences: int = found["sentences"]
        self.n_tokens: int = found["tokens"]
        self._sound: set[int] = set()  # shards whose checksums were looked at
        self._number = [
            k for k in range(len(found["shards"])) if k not in skipped
        ]  # as their folders have them
        if on_error == "skip":
            self._number = [k for k in self._number if self._is_whole(k)]
        if not self._number:
            raise damaged(self.path, "not one of its shards is whole")

    def __len__(self) -> int:
        return len(self._number)

    @property
    def skipped(self) -> tuple[int, ...]:
        """Numbers of shards that are left out."""
        return tuple(sorted(set(range(len(self.manifest["shards"]))) - set(self._number)))

    def _is_whole(self, number: int) -> bool:
        """Whether the files of a shard are as they were written; it is warned of where they are not."""
        place, shard = self.path / shard_name(number), self.manifest["shards"][number]
        try:
            note = self._note(number)
            for name, expected in {**note["arrays"], "map": shard["map"]}.items():
                read_array(place / f"{name}.npy", expected)
        except CorpusError as error:
            logger.warning("shard %d is skipped, with %d sentences: %s", number, shard["sentences"], error)
            return False
        return True

    def __repr__(self) -> str:
        return (
            f"<Shards: {self.path}, {len(self)} shards, {self.n_sentences} sentences, {self.n_tokens} tokens, "
            f"{self.manifest['attributes']} attributes, {len(self.labels)} labels>"
        )

    @property
    def digest(self) -> str:
        """What tells these shards from others: digests of their sentences and features, in their order."""
        return " ".join(self.manifest["shards"][number]["digest"] for number in self._number)

    def sentences(self, k: int) -> int:
        """Sentences of a shard."""
        return int(self.manifest["shards"][self._number[k]]["sentences"])

    # --- attributes -------------------------------------------------------------------------------------

    def _array(self, name: str) -> NDArray[Any]:
        path = self.path / VOCABULARY / f"{name}.npy"
        return read_array(path, self.manifest["vocabulary"].get(name))

    @cached_property
    def counts(self) -> NDArray[np.uint32]:
        """How often each attribute occurs."""
        return self._array("counts")

    def kept(self, min_count: int = 1) -> NDArray[np.bool_]:
        """The attributes that occur so often."""
        keep: NDArray[np.bool_] = self.counts >= min_count
        return keep

    def vocabulary(self, min_count: int = 1) -> _core.Vocabulary:
        """The attributes that occur so often, locked."""
        keys, text, end = self._array("keys"), self._array("text"), self._array("text_end")
        # Any table will do that names each attribute once: `kept` makes it anew.
        slots = 1 << max(10, int(2 * len(keys)).bit_length())
        table = np.full(slots, NOWHERE, np.uint32)
        table[: len(keys)] = np.arange(len(keys), dtype=np.uint32)
        try:
            whole = _core.Vocabulary.from_arrays(keys, table, text, end)
        except ValueError as error:
            raise damaged(self.path / VOCABULARY, str(error)) from error
        return whole.kept(self.kept(min_count))

    # --- sentences --------------------------------------------------------------------------------------

    def note(self, k: int) -> dict[str, Any]:
        """What a shard says of itself."""
        return self._note(self._number[k])

    def _note(self, number: int) -> dict[str, Any]:
        path = self.path / shard_name(number) / NOTE
        try:
            note = read_json(path)
        except OSError as error:
            raise damaged(path, str(error.strerror)) from error
        if note["digest"] != self.manifest["shards"][number]["digest"]:
            raise damaged(path, f"it is none of the shards of {MANIFEST}")
        return note

    def dataset(self, k: int, min_count: int = 1) -> _core.Dataset:
        """The sentences of a shard with their labels; attributes as `vocabulary` numbers them.

        Arrays are mapped and copied into the dataset. Checksums are looked at when a shard is read first.
        """
        number = self._number[k]
        place, note, known = (
            self.path / shard_name(number),
            self._note(number),
            self.manifest["shards"][number],
        )
        sums: dict[str, int] = {} if k in self._sound else {**note["arrays"], "map": known["map"]}

        def array(name: str) -> NDArray[Any]:
            return read_array(place / f"{name}.npy", sums.get(name))

        to = array("map")
        if min_count > 1:
            keep = self.kept(min_count)
            to = np.where(keep, np.cumsum(keep) - 1, NOWHERE).astype(np.uint32)[to]
        label = self._numbers(note)
        node = _numbered(array("node_ptr"), array("ids"), array("values"), to)
        edge = None
        if "edge_ids" in note["arrays"]:
            edge = _numbered(array("edge_ptr"), array("edge_ids"), array("edge_values"), to)
        try:
            data = _core.Dataset.from_arrays(array("offsets"), label[array("gold")], node, edge)
        except (ValueError, IndexError) as error:
            if isinstance(error, CorpusError):
                raise
            raise damaged(place, str(error)) from error
        self._sound.add(k)
        return data

    def _numbers(self, note: Mapping[str, Any]) -> NDArray[np.uint16]:
        """The number here of each label of a shard."""
        names = {label: y for y, label in enumerate(self.labels)}
        return np.array([names[label] for label in note["labels"]], dtype=np.uint16)

    def gold(self, k: int) -> tuple[NDArray[np.uint64], NDArray[np.uint16]]:
        """Where the sentences of a shard begin, and the labels of its tokens."""
        number = self._number[k]
        place, note = self.path / shard_name(number), self._note(number)
        return read_array(place / "offsets.npy"), self._numbers(note)[read_array(place / "gold.npy")]

    @property
    def label_counts(self) -> NDArray[np.int64]:
        """How often each label occurs, in all shards."""
        return np.array(self.manifest["label_counts"], dtype=np.int64)

    def place(self, k: int, s: int) -> str:
        """File and line of a sentence of a shard."""
        name = next((name for name, first in reversed(self.note(k)["files"]) if first <= s), str(self.path))
        lines = read_array(self.path / shard_name(self._number[k]) / "lines.npy")
        return f"{name}:{int(lines[s])}" if s < len(lines) and lines[s] else name

    def layout(self, *, min_count: int = 1, all_pairs: bool = False, start_end: bool = True) -> _core.Layout:
        """The features of all shards, found shard by shard."""
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
    ptr: NDArray[np.uint64], ids: NDArray[np.uint32], values: NDArray[np.float32], to: NDArray[np.uint32]
) -> tuple[NDArray[np.uint64], NDArray[np.uint32], NDArray[np.float32]]:
    """Rows with their attributes numbered by `to`; those that are nowhere are left out."""
    ids = to[ids]
    keep = ids != NOWHERE
    if keep.all():
        return np.ascontiguousarray(ptr), ids, np.ascontiguousarray(values)
    before = np.concatenate([np.zeros(1, np.uint64), np.cumsum(keep, dtype=np.uint64)])
    return before[ptr], ids[keep], values[keep] if len(values) else np.ascontiguousarray(values)


__all__ = ["Shards"]

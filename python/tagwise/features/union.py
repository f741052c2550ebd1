"""Union of the attributes of several recipes, token by token, without duplicates."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tagwise._core import Dataset, Vocabulary, encode_attributes

_Rows = tuple[NDArray[np.uint64], NDArray[np.uint32], NDArray[np.float32]]


def united(parts: Sequence[tuple[Dataset, Vocabulary]], vocab: Vocabulary, n_jobs: int) -> Dataset:
    """Return the dataset whose tokens have the attributes of all parts. Duplicates come from the first part only.

    `parts` are the same sentences, encoded by each recipe with a vocabulary of its own.
    """
    offsets = parts[0][0].offsets.tolist()
    numbers: dict[str, int] = {}
    maps = []
    for _, own in parts:
        places = [numbers.setdefault(text, len(numbers)) for text in own.texts()]
        maps.append(np.array(places, dtype=np.int64))
    texts = list(numbers)
    node = _rows([(data.node(), to) for (data, _), to in zip(parts, maps)], texts, offsets)
    if not any(data.n_edge_attributes for data, _ in parts):
        return encode_attributes(vocab, node, n_jobs=n_jobs)
    with_edges = [(data.edge(), to) for (data, _), to in zip(parts, maps) if data.n_edge_attributes]
    return encode_attributes(vocab, node, _rows(with_edges, texts, offsets), n_jobs=n_jobs)


def _rows(
    parts: Sequence[tuple[_Rows, NDArray[np.int64]]], texts: list[str], offsets: list[int]
) -> list[list[list[Any]]]:
    """Return the attributes of every token of every sentence, as texts, or as (text, value) if the value is not 1."""
    n = offsets[-1]
    seen: NDArray[np.int64] = np.zeros(0, dtype=np.int64)
    tokens, ids, values = [], [], []
    for (ptr, own, value), to in parts:
        token = np.repeat(np.arange(n), (ptr[1:] - ptr[:-1]).astype(np.int64))
        here = token * len(texts) + to[own]  # combined code of token and attribute
        new = ~np.isin(here, seen)
        seen = np.concatenate([seen, here])
        tokens.append(token[new])
        ids.append(to[own][new])
        values.append((value if len(value) else np.ones(len(own), dtype=np.float32))[new])
    token, joint, value = np.concatenate(tokens), np.concatenate(ids), np.concatenate(values)
    order = np.argsort(token, kind="stable")
    token, joint, value = token[order], joint[order], value[order]
    items: list[Any] = np.array(texts, dtype=object)[joint].tolist()
    for i in np.flatnonzero(value != 1.0).tolist():
        items[i] = (items[i], float(value[i]))
    ends = np.searchsorted(token, np.arange(n + 1)).tolist()
    rows = [items[begin:end] for begin, end in pairwise(ends)]
    return [rows[begin:end] for begin, end in pairwise(offsets)]

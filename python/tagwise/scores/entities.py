"""Table by which the core reads entities from label ids."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

import tagwise._core as _core
from tagwise.corpus import schemes


def entity_table(labels: Sequence[str]) -> tuple[NDArray[np.uint16], NDArray[np.uint8]]:
    """Return the type of each label, and the boundaries between every two labels, for the core."""
    return _table(tuple(labels))


@lru_cache(maxsize=8)
def _table(labels: tuple[str, ...]) -> tuple[NDArray[np.uint16], NDArray[np.uint8]]:
    """Compute `entity_table`. It is cached, since learners that update sentence by sentence call it each time."""
    split = [schemes.split_label(label)[1] for label in labels]
    types = sorted({kind for label, kind in zip(labels, split) if label != "O"})
    kind = [_core.OUTSIDE if label == "O" else types.index(t) for label, t in zip(labels, split)]
    between = [
        [sum(bit << i for i, bit in enumerate(schemes.boundary(a, b))) for b in labels]
        for a in (*labels, "O")
    ]
    table = np.array(kind, dtype=np.uint16), np.array(between, dtype=np.uint8)
    for array in table:
        array.flags.writeable = False
    return table

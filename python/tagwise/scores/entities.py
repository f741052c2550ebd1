"""How the core reads entities off label ids."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

import tagwise._core as _core
from tagwise.corpus import schemes


def entity_table(labels: Sequence[str]) -> tuple[NDArray[np.uint16], NDArray[np.uint8]]:
    """How the core reads entities off label ids: the type of each label, and what lies between two labels."""
    split = [schemes.split_label(label)[1] for label in labels]
    types = sorted({kind for label, kind in zip(labels, split) if label != "O"})
    kind = [_core.OUTSIDE if label == "O" else types.index(t) for label, t in zip(labels, split)]
    between = [
        [sum(bit << i for i, bit in enumerate(schemes.boundary(a, b))) for b in labels]
        for a in (*labels, "O")
    ]
    return np.array(kind, dtype=np.uint16), np.array(between, dtype=np.uint8)

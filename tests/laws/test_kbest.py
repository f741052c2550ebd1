"""Tests of k-best lists against enumeration: every k and ties.

Code paths, corpora and constraints are in test_paths_decoding.
"""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tagwise import _core

from .corpora import fold
from .reference import enumeration
from .strategies import Chain, chains, wholes


@given(chains(elements=wholes(), max_tokens=4, max_labels=3), st.integers(0, 3))
def test_every_k_agrees_with_enumeration(c: Chain, more: int) -> None:
    """Lists have distinct paths in order, all of them if fewer than k.

    Ties go to the lower last label, then to the lower label before it.
    """
    every = enumeration.kbest(c.scores, 1 << 20)
    for k in [*range(len(every) + 1), len(every) + more]:
        found = [(score, tuple(path)) for score, path in _core.chain_kbest(*fold(c), k)]
        assert found == every[:k]


def test_sentence_without_a_path_has_an_empty_list() -> None:
    assert _core.chain_kbest(np.full((2, 2), -np.inf), np.zeros((2, 2)), 3) == []

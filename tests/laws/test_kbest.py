"""Tests of k-best lists against enumeration: every k, ties, threads.

Corpora and constraints are in test_paths_decoding.
"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tagwise import _core

from .corpora import fold, lists, random_corpus
from .reference import chain, enumeration
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


@given(chains(), st.integers(1, 30))
def test_lists_of_real_scores_match_enumeration(c: Chain, k: int) -> None:
    found, slow = _core.chain_kbest(*fold(c), k), chain.kbest(c.scores, k)
    assert [s for s, _ in found] == pytest.approx([s for s, _ in slow], abs=1e-9)
    assert len({tuple(p) for _, p in found}) == len(slow)
    for score, path in found:
        assert score == pytest.approx(chain.score(c.scores, path), abs=1e-9)


@given(chains(elements=wholes()))
def test_first_path_is_the_viterbi_path(c: Chain) -> None:
    ((score, path),) = _core.chain_kbest(*fold(c), 1)
    best, viterbi = _core.chain_viterbi(*fold(c))
    assert score == best
    assert tuple(path) == tuple(viterbi)


def test_sentence_without_a_path_has_an_empty_list() -> None:
    assert _core.chain_kbest(np.full((2, 2), -np.inf), np.zeros((2, 2)), 3) == []


def test_scores_descend_and_do_not_depend_on_threads() -> None:
    c = random_corpus(3, 9, n=60, longest=20)
    w = np.random.default_rng(9).standard_normal(len(c.layout)).astype(np.float32)
    scorer = _core.Scorer(c.layout, w)
    found = lists(scorer, c.data, 8, n_jobs=1)
    for ranked, s in zip(found, c.scores(w.astype(float))):
        values = [score for score, _ in ranked]
        assert values == sorted(values, reverse=True)
        assert values == pytest.approx([h for h, _ in chain.kbest(s, 8)], abs=1e-4)
    one = [a.tobytes() for a in scorer.kbest(c.data, 8, n_jobs=1)]
    assert [a.tobytes() for a in scorer.kbest(c.data, 8, n_jobs=3)] == one

"""Tests of word classes against their reference implementation: objective, gains, optimum, tree, threads."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tagwise import _core

from .reference import classes as reference

Sentences = list[list[str]]
texts = st.lists(st.lists(st.sampled_from("abcdeFG"), max_size=6), min_size=1, max_size=8)


def started(sentences: Sentences, k: int, min_count: int = 1) -> _core.ClassExchange:
    counts = _core.BigramCounts()
    counts.add(sentences)
    return _core.ClassExchange(counts, k, min_count)


def letters(number: int) -> str:
    """Return a word of small letters, since all digits are equal."""
    return "".join(chr(97 + int(digit)) for digit in str(number))


def zipfian(seed: int, n: int = 400, types: int = 300) -> Sentences:
    """Return sentences whose words follow Zipf's law, with dependent neighbours."""
    draw = np.random.default_rng(seed)
    ids = np.minimum(draw.zipf(1.3, size=(n, 12)), types)
    ids[:, 1::2] = (ids[:, 0::2] * 7 + ids[:, 1::2] % 3) % types
    return [[letters(i) for i in row] for row in ids]


@given(sentences=texts, min_count=st.integers(1, 3))
def test_words_and_objective_are_the_references(sentences: Sentences, min_count: int) -> None:
    words, table = reference.bigrams(sentences, min_count)
    for k in range(1, len(words) + 1):
        native = started(sentences, k, min_count)
        assert list(zip(native.is_shape, native.words)) == words
        assert native.counts.tolist() == table[: len(words)].sum(axis=1).tolist()
        assert native.objective == pytest.approx(reference.objective(table, native.classes), abs=1e-9)


@given(sentences=texts, k=st.integers(2, 4))
def test_a_gain_is_the_difference_of_objectives(sentences: Sentences, k: int) -> None:
    words, table = reference.bigrams(sentences, 1)
    if len(words) < k:
        return
    native = started(sentences, k)
    native.sweep(1)
    before = reference.objective(table, native.classes)
    for word, to in itertools.product(range(len(words)), range(k)):
        moved = native.classes
        moved[word] = to
        gain = reference.objective(table, moved) - before
        assert native.gain(word, to) == pytest.approx(gain, abs=1e-9)


@settings(max_examples=30)
@given(sentences=texts, k=st.integers(2, 3))
def test_all_assignments_bound_the_result_and_no_single_move_improves_it(
    sentences: Sentences, k: int
) -> None:
    words, table = reference.bigrams(sentences, 1)
    if not k <= len(words) <= 6:
        return
    native = started(sentences, k)
    start = native.objective
    for _ in range(50):
        if not native.sweep(1):
            break
    every = (np.array(a) for a in itertools.product(range(k), repeat=len(words)) if len(set(a)) == k)
    assert start - 1e-9 <= native.objective <= max(reference.objective(table, a) for a in every) + 1e-9
    assert all(native.gain(w, c) < 1e-5 for w in range(len(words)) for c in range(k))


@pytest.mark.parametrize("seed", range(4))
def test_the_objective_never_falls_until_no_move_improves_it(seed: int) -> None:
    native = started(zipfian(seed), 20, 2)
    values = [native.objective]
    for _ in range(200):
        moved = native.sweep()
        values.append(native.objective)
        assert (values[-1] > values[-2]) == (moved > 0)
        if not moved:
            break
    assert not moved
    assert sum(values[1:]) > sum(values[:-1])
    best = max(native.gain(w, c) for w in range(len(native.words)) for c in range(20))
    assert best < 1e-5


def test_exchange_in_chunks_is_about_as_good_as_word_by_word() -> None:
    sentences = zipfian(1, n=60, types=40)
    _, table = reference.bigrams(sentences, 2)
    native = started(sentences, 6, 2)
    start = native.objective
    for _ in range(10):
        native.sweep()
    found = reference.objective(table, reference.exchange(table, 6, 10))
    assert native.objective - start > 0.9 * (found - start)


@settings(max_examples=30)
@given(sentences=texts, k=st.integers(2, 6))
def test_the_tree_merges_what_costs_least(sentences: Sentences, k: int) -> None:
    words, table = reference.bigrams(sentences, 1)
    if len(words) < k:
        return
    native = started(sentences, k)
    paths, changes = native.tree(1)
    if k == len(words):  # ties between mergers may be broken in another order, which changes later mergers
        assert changes[0] == pytest.approx(reference.tree(table, native.classes)[0], abs=1e-9)
    one = reference.objective(table, np.zeros(len(words), dtype=int))
    assert native.objective + sum(changes) == pytest.approx(one, abs=1e-8)
    assert all(change < 1e-9 for change in changes)
    assert len(set(paths)) == k
    assert sum(2.0 ** -len(path) for path in paths) == 1.0  # a full binary tree
    assert not any(a != b and b.startswith(a) for a in paths for b in paths)


def test_the_tree_of_a_larger_text_is_the_references() -> None:
    sentences = zipfian(3, n=80, types=60)
    _, table = reference.bigrams(sentences, 2)
    native = started(sentences, 12, 2)
    native.sweep()
    _, changes = native.tree()
    assert changes == pytest.approx(reference.tree(table, native.classes), abs=1e-8)


LEARN = """
import sys, json
from tagwise import _core
from tests.laws.test_word_classes import started, zipfian
native = started(zipfian(5, n=3000, types=2000), 60, 2)
for _ in range(4):
    native.sweep(int(sys.argv[1]))
print(json.dumps([native.classes.tolist(), native.objective, *native.tree(int(sys.argv[1]))]))
"""


def test_any_number_of_threads_gives_the_same_bytes() -> None:
    found = {
        subprocess.run(
            [sys.executable, "-c", LEARN, str(n)],
            env={**os.environ, "TAGWISE_MOST_THREADS": "4"},
            check=True,
            capture_output=True,
        ).stdout
        for n in (1, 2, 4)
    }
    assert len(found) == 1


def test_streamed_sentences_count_like_all_at_once() -> None:
    sentences = zipfian(2)
    counts = _core.BigramCounts()
    for i in range(0, len(sentences), 7):
        counts.add(sentences[i : i + 7])
    whole = _core.BigramCounts()
    whole.add(sentences)
    for name in ("n_sentences", "n_tokens", "n_words", "n_bigrams"):
        assert getattr(counts, name) == getattr(whole, name)
    assert _core.ClassExchange(counts, 9, 1).objective == _core.ClassExchange(whole, 9, 1).objective


def test_digits_are_one_digit_and_case_matters_unless_ignored() -> None:
    counts = _core.BigramCounts()
    counts.add([["In", "1984", "in", "2001", "٣"]])
    assert sorted(_core.ClassExchange(counts, 1, 1).words) == ["0", "0000", "In", "in"]
    folded = _core.BigramCounts(ignore_case=True)
    folded.add([["In", "1984", "in", "2001"]])
    assert sorted(_core.ClassExchange(folded, 1, 1).words) == ["0000", "in"]

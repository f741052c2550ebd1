"""Tests of the native engine: errors of primitives, repeated attributes, few allowed labels, single sentences."""

from __future__ import annotations

import numpy as np
import pytest

import tagwise as tw
from tagwise import _core
from tagwise.base.exceptions import TrainingError

from . import constructors
from .corpora import random_corpus
from .reference import chain, scores

# -- primitives on plain scores ---------------------------------------------------------------------------


def test_impossible_and_malformed_scores_are_errors() -> None:
    edge = np.zeros((2, 2))
    with pytest.raises(ValueError, match="no label sequence"):
        _core.chain_viterbi(np.array([[-np.inf, -np.inf]]), edge)
    with pytest.raises(ValueError, match="no label sequence"):
        _core.chain_marginals(np.zeros((2, 2)), np.full((2, 2), -np.inf))
    with pytest.raises(ValueError, match="shape"):
        _core.chain_viterbi(np.zeros((3, 2)), np.zeros((3, 3)))
    with pytest.raises(ValueError, match="NaN"):
        _core.chain_viterbi(np.full((1, 2), np.nan), edge)


# -- corpora: batches, frequent and rare attributes, all lengths ------------------------------------------


@pytest.mark.parametrize("labels", [3, 17])
@pytest.mark.parametrize("seed", range(4))
def test_repeated_attributes_count_twice(seed: int, labels: int) -> None:
    """Lists that repeat an attribute and dicts that count it agree. Words imply their classes, so rows are folded."""
    rng = np.random.default_rng(seed)
    lists: list[list[list[str]]] = []
    for length in rng.integers(1, 9, 300):
        sentence = []
        for word in rng.zipf(1.4, length) % 40:
            token = [f"word {word}", f"class {word // 3}", "all", *(["some"] if rng.random() < 0.5 else [])]
            token += [token[i] for i in rng.integers(0, len(token), seed % 3)]
            sentence.append(token)
        lists.append(sentence)
    gold = rng.integers(0, labels, sum(map(len, lists))).astype(np.uint16)
    counts = [[{name: float(token.count(name)) for name in token} for token in s] for s in lists]

    def evaluate(X: list[list[list[str]]] | list[list[dict[str, float]]]) -> tuple[float, np.ndarray]:
        vocabulary = _core.Vocabulary()
        data = _core.encode_attributes(vocabulary, X).with_gold(gold)
        layout = _core.Layout.build(data, len(vocabulary), labels)
        w = np.random.default_rng(3).standard_normal(len(layout))
        gradient = np.empty_like(w)
        return _core.Objective(data, layout).evaluate(w, gradient), gradient

    (value, gradient), (slow, slow_gradient) = evaluate(lists), evaluate(counts)
    assert value == pytest.approx(slow, rel=2e-6)
    np.testing.assert_allclose(gradient, slow_gradient, atol=1e-3)


def test_gold_outside_the_support_is_reported() -> None:
    c = random_corpus(12, 3, n=3)
    every = np.arange(9, dtype=np.uint32)
    with pytest.raises(TrainingError, match="sentence"):
        constructors.objective(c.data, c.layout, forbidden=every)


@pytest.mark.parametrize("labels", [2, 9, 17, 45])
@pytest.mark.parametrize("share", [0.0, 0.1, 0.5])
def test_few_allowed_labels_per_token(labels: int, share: float) -> None:
    """If most tokens may take few labels, only those cells are visited, with the same paths and ties."""
    c = random_corpus(labels, labels, n=60, longest=12)
    rng = np.random.default_rng(labels)
    n = c.data.n_tokens
    sets = rng.random((n, labels)) < share
    sets[np.arange(n), rng.integers(0, labels, n)] = True
    sets[rng.random(n) < 0.1] = True  # unknown words
    offsets = c.data.offsets.astype(int)
    of = np.arange(n, dtype=np.uint32)
    for forbidden in (np.zeros((labels, labels), dtype=bool), rng.random((labels, labels)) < 0.05):
        edges = np.flatnonzero(forbidden.ravel()).astype(np.uint32)
        for w in (rng.integers(-2, 3, len(c.layout)), rng.standard_normal(len(c.layout))):
            w = w.astype(np.float32)
            whole = [
                scores(s.node, s.edge, s.start, s.end, sets[offsets[i] : offsets[i + 1]], forbidden)
                for i, s in enumerate(c.scores(w.astype(float)))
            ]
            some = [i for i, s in enumerate(whole) if np.isfinite(chain.log_partition(s))]
            scorer = _core.Scorer(c.layout, w, edges)
            if len(some) < len(whole):
                with pytest.raises(ValueError, match="no label sequence is allowed"):
                    scorer.viterbi(c.data, allowed=(sets, of))
                continue
            for n_jobs in (1, 3):
                found = scorer.viterbi(c.data, allowed=(sets, of), n_jobs=n_jobs)
                paths = np.split(found, offsets[1:-1])
                assert [tuple(p) for p in paths] == [chain.viterbi(s) for s in whole]


def test_results_of_a_sentence_do_not_depend_on_the_batch() -> None:
    """Marginals and lists of a sentence have the same bits alone and in a batch, with or without edge attributes."""
    rng = np.random.default_rng(3)
    X = [[f"w{i}" for i in rng.integers(0, 60, rng.integers(1, 15))] for _ in range(60)]
    y = [[f"L{len(w) * i % 7 % 4}" for i, w in enumerate(x)] for x in X]
    unknown = [[f"u{i}" for i in rng.integers(0, 60, rng.integers(1, 15))] for _ in range(60)]
    mixed = [x for both in zip(X, unknown) for x in both]
    for template in ("U00:%x[0,0]\nU01:%x[-1,0]\nB01:%x[0,0]", "U00:%x[0,0]\nU01:%x[-1,0]\nB"):
        tagger = tw.CRF(features=template, max_iter=20, n_jobs=1).fit(X, y)
        together, lists = tagger.predict_marginals(mixed), tagger.predict_kbest(mixed, 3)
        for x, p, best in zip(mixed, together, lists):
            assert np.array_equal(tagger.predict_marginals([x])[0], p)
            assert tagger.predict_kbest([x], 3)[0] == best

"""Tests of the template's cache of known words: cached and uncached results are equal to the last bit."""

from __future__ import annotations

import numpy as np
import pytest

from tagwise import _core
from tagwise.base.exceptions import CorpusError

from .paths import forced

Sentences = list[list[list[str]]]

NODE = (
    "pad: word[-2..2].lower\nword[0].suffix(1..3)\nword[-1,1].shape\nword[-1].shape & word[0].shape\n"
    "word[0].lower & word[1].lower\nbias\nfirst\n"
)
TEMPLATE = NODE + "edge pad: word[-1].shape\nedge: word[0].shape"
CODE_PATHS = ("single", "single,table", "runs,table", "runs,table,baseline")


def sentences(seed: int, n: int = 60, words: int = 80) -> Sentences:
    """Return sentences of 0 to 8 words, few of them frequent and many rare."""
    rng = np.random.default_rng(seed)
    return [
        [[f"{'aAb1'[w % 4]}{w % words}-{seed % 3}" for w in rng.zipf(1.4, rng.integers(0, 9))]]
        for _ in range(n)
    ]


def model(labels: int) -> tuple[_core.Vocabulary, _core.Scorer]:
    """Return a locked vocabulary of some sentences, and a scorer with random weights."""
    rng, vocabulary = np.random.default_rng(labels), _core.Vocabulary()
    template = _core.Template(NODE, ["word"])
    data = _core.encode_tokens(template, vocabulary, sentences(0) + sentences(1))
    gold = rng.integers(0, labels, data.n_tokens).astype(np.uint16)
    layout = _core.Layout.build(data.with_gold(gold), len(vocabulary), labels, all_pairs=True)
    vocabulary.lock()
    return vocabulary, _core.Scorer(layout, rng.normal(size=len(layout)).astype(np.float32))


def rows(data: _core.Dataset) -> list[list[float]]:
    """Return all arrays of a dataset."""
    return [data.offsets.tolist(), *(x.tolist() for x in (*data.node(), *data.edge()))]


@pytest.mark.parametrize("code_path", ["single", "runs"])
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_cached_rows_equal_uncached_rows(code_path: str, n_jobs: int) -> None:
    """Calls with other and with the same words, short and long, do not change earlier results."""
    template, vocabulary = _core.Template(TEMPLATE, ["word"]), _core.Vocabulary()
    _core.encode_tokens(template, vocabulary, sentences(0) + sentences(1))
    vocabulary.lock()
    with forced(code_path):
        calls = [
            sentences(seed, n) for seed, n in ((0, 3), (1, 60), (0, 60), (2, 400), (1, 1), (3, 900), (0, 60))
        ]
        held = []
        for X in calls:
            fresh = _core.encode_tokens(_core.Template(TEMPLATE, ["word"]), vocabulary, X)
            held.append((_core.encode_tokens(template, vocabulary, X, n_jobs), fresh))
        assert all(rows(kept) == rows(fresh) for kept, fresh in held)


@pytest.mark.parametrize("labels", [5, 20, 40, 60, 70])
def test_scores_do_not_depend_on_earlier_calls(labels: int) -> None:
    """Probabilities of float32 weights, on every code path and number of threads: no call changes bits of another."""
    vocabulary, scorer = model(labels)
    template = _core.Template(NODE, ["word"])
    X = sentences(2, 200)
    for code_path in CODE_PATHS:
        with forced(code_path):
            fresh = _core.Scorer(scorer.layout, scorer.weights)
            data = _core.encode_tokens(_core.Template(template.source, ["word"]), vocabulary, X)
            p, log_z = fresh.marginals(data, n_jobs=1)
            for seed in (3, 0, 2):
                for n_jobs in (1, 2):
                    scorer.viterbi(
                        _core.encode_tokens(template, vocabulary, sentences(seed, 100), n_jobs), n_jobs=n_jobs
                    )
                    again = _core.encode_tokens(template, vocabulary, X, n_jobs)
                    kept, kept_z = scorer.marginals(again, n_jobs=n_jobs)
                    other, _ = scorer.marginals(
                        data, n_jobs=n_jobs
                    )  # from a template whose runs have other numbers
                    assert other.tobytes() == p.tobytes(), (code_path, seed, n_jobs)
                    assert kept.tobytes() == p.tobytes(), (code_path, seed, n_jobs)
                    assert kept_z.tobytes() == log_z.tobytes(), (code_path, seed, n_jobs)


def test_cached_ids_belong_to_one_vocabulary() -> None:
    """A template that serves two vocabularies in turn, and one that lost attributes, gives each its own ids."""
    template, X = _core.Template(TEMPLATE, ["word"]), sentences(0)
    first, second = _core.Vocabulary(), _core.Vocabulary()
    _core.encode_tokens(template, first, X)
    _core.encode_tokens(template, second, sentences(1) + X)
    first.lock()
    second.lock()
    fewer = second.kept(np.arange(len(second)) % 2 == 0)
    for vocabulary in (first, second, first, fewer, second, fewer):
        want = _core.encode_tokens(_core.Template(TEMPLATE, ["word"]), vocabulary, X)
        assert rows(_core.encode_tokens(template, vocabulary, X)) == rows(want)


def test_uncached_sums_are_bit_identical_to_cached_ones() -> None:
    """Words beyond the cache's capacity score as cached ones do, and as single attributes do."""
    source, labels = "word[0]\nword[0].suffix(1..2)", 50
    words = [f"{i:x}.{i % 7}" for i in range(70_000)]
    X = [[words[i : i + 20]] for i in range(0, len(words), 20)]
    template, vocabulary = _core.Template(source, ["word"]), _core.Vocabulary()
    rng = np.random.default_rng(0)
    data = _core.encode_tokens(template, vocabulary, X[-200:])
    gold = rng.integers(0, labels, data.n_tokens).astype(np.uint16)
    layout = _core.Layout.build(data.with_gold(gold), len(vocabulary), labels)
    w = rng.normal(size=len(layout)).astype(np.float32)
    vocabulary.lock()
    found = {}
    for code_path, part in (("runs,table", X), ("runs,table", X[-200:]), ("single,table", X[-200:])):
        with forced(code_path):
            fresh = _core.encode_tokens(_core.Template(source, ["word"]), vocabulary, part)
            p, _ = _core.Scorer(layout, w).marginals(fresh, n_jobs=1)
            found[code_path, len(part)] = p[-data.n_tokens :]
    assert found["runs,table", len(X)].tobytes() == found["runs,table", 200].tobytes()
    np.testing.assert_allclose(found["runs,table", 200], found["single,table", 200], atol=1e-5)


def test_token_lists_equal_single_column_sentences() -> None:
    """Lists of tokens are read like lists of one column, with the same error for a value that is not a string."""
    X = [["a", "B", "a"], [], ["\u00fc", "a"]]
    template = _core.Template("word[-1..0]", ["word"])
    of_columns, of_tokens = _core.Vocabulary(), _core.Vocabulary()
    want = _core.encode_tokens(template, of_columns, [[x] for x in X])
    for given in (X, tuple(map(tuple, X)), (iter(x) for x in X)):
        assert rows(_core.encode_tokens(template, of_tokens, given, bare=True)) == rows(want)
    for wrong in (["a", 3], ["a", None, "\ud800"], "ab", 7, ["a", "\ud800"]):
        messages = []
        for given, bare in (([[X[0]], [wrong]], False), ([X[0], wrong], True)):
            with pytest.raises(CorpusError) as caught:
                _core.encode_tokens(template, _core.Vocabulary(), given, bare=bare)  # type: ignore[arg-type]
            messages.append(str(caught.value))
        assert messages[0] == messages[1]
    two = _core.Template("word[0] & pos[0]", ["word", "pos"])
    with pytest.raises(ValueError, match="bare"):
        _core.encode_tokens(two, _core.Vocabulary(), X, bare=True)

"""Tests that every code path of decoding and of the other learners computes the reference implementation's value.

Sixteen sentences in lanes or single cells, each kind of back pointer, tables, runs and lists, float32 and log
space, each instruction set, and also stochastic descent and boosting.
"""

from __future__ import annotations

import numpy as np
import pytest

from tagwise import _core

from . import constructors
from .corpora import Corpus
from .paths import (
    COUNTS,
    DECODING,
    KINDS,
    LABELS,
    LISTED,
    RAGGED,
    Terms,
    corpus,
    edges_of,
    forced,
    grid,
    limited,
    reference_loss,
    rules,
)
from .reference import chain, losses
from .reference.boosting import quantities
from .reference.model import Shape
from .reference.once import NONE

# -- decoding ---------------------------------------------------------------------------------------------------


def decode(
    c: Corpus, w: np.ndarray, sets: np.ndarray | None, forbidden: np.ndarray | None, k: int, whole: bool
) -> None:
    """Best paths, k best paths and marginals of every code path match the reference implementations."""
    slow = limited(c, w.astype(float), sets, forbidden)
    some = [s for s, y in zip(slow, c.gold) if y]
    paths = [y for s in some for y in chain.viterbi(s)]
    p = np.concatenate([chain.marginals(s)[0] for s in some])
    log_z = [chain.log_partition(s) if y else 0.0 for s, y in zip(slow, c.gold)]
    few = [i for i, y in enumerate(c.gold) if len(y) <= (2 if c.labels > 20 else 4)][:6]
    lists = {i: chain.kbest(slow[i], k) if c.gold[i] else [(0.0, ())] for i in few}
    support = None if sets is None else (sets, np.arange(len(sets), dtype=np.uint32))
    scorers = {}
    for edges in ("whole", "sparse"):
        with forced(edges):
            scorers[edges] = _core.Scorer(c.layout, w, edges_of(forbidden))
    for code_path, scorer in [(code_path, scorers["whole"]) for code_path in DECODING] + [
        (code_path, scorers["sparse"]) for code_path in LISTED
    ]:
        with forced(code_path):
            assert scorer.viterbi(c.data, allowed=support, n_jobs=1).tolist() == paths, code_path
            ours, ours_z = scorer.marginals(c.data, allowed=support, n_jobs=1)
            counts, values, labels = scorer.kbest(c.data, k, allowed=support, n_jobs=1)
        np.testing.assert_allclose(ours, p, atol=1e-5, err_msg=code_path)
        np.testing.assert_allclose(ours_z, log_z, rtol=1e-5, atol=1e-5, err_msg=code_path)
        first = np.cumsum([0, *counts.tolist()])
        begin = np.cumsum([0, *(n * len(y) for n, y in zip(counts.tolist(), c.gold))])
        for i in few:
            found = labels[begin[i] : begin[i + 1]].reshape(counts[i], len(c.gold[i]))
            np.testing.assert_allclose(
                values[first[i] : first[i + 1]], [h for h, _ in lists[i]], atol=1e-4, err_msg=code_path
            )
            if whole:
                assert [tuple(path) for path in found.tolist()] == [path for _, path in lists[i]], code_path


@pytest.mark.parametrize(
    ("labels", "n"), [(L, COUNTS[i % 5]) for i, L in enumerate(LABELS)] + [(5, n) for n in COUNTS]
)
@pytest.mark.parametrize("ruled", [False, True])
def test_every_decoding_code_path_matches_the_reference(labels: int, n: int, ruled: bool) -> None:
    """Integer weights give many ties and exact sums: all code paths find equal paths in equal order."""
    c = corpus(labels + 20, labels, RAGGED[:n], "lists")
    rng = np.random.default_rng(labels)
    sets, forbidden = rules(c, labels, rng.choice([0.1, 0.5])) if ruled else (None, None)
    decode(c, rng.integers(-2, 3, len(c.layout)).astype(np.float32), sets, forbidden, 5, True)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("labels", [3, 9, 17, 33, 70])
def test_every_decoding_code_path_with_real_weights(kind: str, labels: int) -> None:
    c = corpus(labels + 50, labels, RAGGED[:17], kind, all_pairs=labels in (9, 70))
    sets, forbidden = rules(c, labels, 0.5)
    w = np.random.default_rng(labels).standard_normal(len(c.layout)).astype(np.float32)
    decode(c, w, None, None, 3, False)
    decode(c, w, sets, forbidden, 3, False)


@pytest.mark.parametrize("scale", [1e-30, 1e3, 2.0**100])
def test_decoding_scores_of_any_size(scale: float) -> None:
    """At 2^100 the number of best paths is below the precision, so the weights vary enough for a unique best path."""
    c = corpus(60, 5, RAGGED[:17])
    sets, forbidden = rules(c, 1, 0.5)
    rng = np.random.default_rng(1)
    whole = rng.integers(-2, 3, len(c.layout)) if scale < 1e20 else rng.integers(-1000, 1000, len(c.layout))
    w = (scale * whole).astype(np.float32)
    slow = limited(c, w.astype(float), sets, forbidden)
    some = [s for s, y in zip(slow, c.gold) if y]
    scorer, support = (
        _core.Scorer(c.layout, w, edges_of(forbidden)),
        (sets, np.arange(len(sets), dtype=np.uint32)),
    )
    for code_path in DECODING:
        with forced(code_path):
            p, log_z = scorer.marginals(c.data, allowed=support)
            paths = scorer.viterbi(c.data, allowed=support).tolist()
        assert paths == [y for s in some for y in chain.viterbi(s)], code_path
        np.testing.assert_allclose(
            p, np.concatenate([chain.marginals(s)[0] for s in some]), atol=1e-5, err_msg=code_path
        )
        want = [chain.log_partition(s) if y else 0.0 for s, y in zip(slow, c.gold)]
        np.testing.assert_allclose(log_z, want, rtol=1e-5, atol=1e-5, err_msg=code_path)


@pytest.mark.parametrize("scale", [1e3, 2.0**60, 2.0**100])
def test_best_paths_share_the_probability(scale: float) -> None:
    """With ties at any scale the probabilities of a token sum to 1, and labels outside the best paths have none."""
    c = corpus(60, 5, RAGGED[:17])
    sets, forbidden = rules(c, 1, 0.5)
    whole = np.random.default_rng(1).integers(-2, 3, len(c.layout))
    scorer = _core.Scorer(c.layout, (scale * whole).astype(np.float32), edges_of(forbidden))
    slow = limited(c, 1e3 * whole.astype(float), sets, forbidden)
    want = np.concatenate([chain.marginals(s)[0] for s, y in zip(slow, c.gold) if y])
    for code_path in DECODING:
        with forced(code_path):
            p, _ = scorer.marginals(c.data, allowed=(sets, np.arange(len(sets), dtype=np.uint32)))
        np.testing.assert_allclose(p.sum(axis=1), 1.0, atol=1e-5, err_msg=code_path)
        assert np.array_equal(p > 1e-5, want > 1e-5), code_path


@pytest.mark.parametrize("size", [8, 9])
def test_eight_and_nine_allowed_labels_per_token(size: int) -> None:
    """Up to eight allowed labels are processed one cell at a time, nine or more in lanes."""
    c = corpus(70, 20, RAGGED[:17])
    rng = np.random.default_rng(size)
    sets = np.zeros((c.data.n_tokens, 20), dtype=bool)
    for row in sets:
        row[rng.permutation(20)[: rng.choice([1, size])]] = True
    w = rng.integers(-2, 3, len(c.layout)).astype(np.float32)
    decode(c, w, sets, None, 2, True)


@pytest.mark.parametrize("labels", [5, 20, 60, 70])
@pytest.mark.parametrize("most", [63, 64, 65, 130])
def test_many_attributes_per_token(labels: int, most: int) -> None:
    """A table scores sixty-four attributes at a time, in rows and in lists."""
    rng = np.random.default_rng(most)
    vocabulary = _core.Vocabulary()
    X = [[[f"a{i}" for i in rng.integers(0, 300, most - 5 * t)] for t in range(3)] for _ in range(5)]
    gold = rng.integers(0, labels, 15).astype(np.uint16)
    data = _core.encode_attributes(vocabulary, X).with_gold(gold)
    layout = _core.Layout.build(data, len(vocabulary), labels)
    w = (rng.integers(-2, 3, len(layout)) * (rng.random(len(layout)) < 0.8)).astype(np.float32)
    dense = [np.zeros((3, len(vocabulary))) for _ in X]
    for x, sentence in zip(dense, X):
        for row, token in zip(x, sentence):
            for name in token:
                row[vocabulary.get(name)] += 1
    paths = [tuple(y) for y in gold.reshape(5, 3).tolist()]
    c = Corpus(data, layout, dense, [np.zeros_like(x) for x in dense], paths, labels)
    sets = rng.random((15, labels)) < 0.3
    sets[np.arange(15), gold] = True
    want = [[y for s in limited(c, w.astype(float), a, None) for y in chain.viterbi(s)] for a in (None, sets)]
    scorer = _core.Scorer(layout, w)
    for code_path in DECODING:
        with forced(code_path):
            assert scorer.viterbi(data).tolist() == want[0], code_path
            assert scorer.viterbi(data, allowed=(sets, np.arange(15, dtype=np.uint32))).tolist() == want[1], (
                code_path
            )


def test_long_sentences_decode_equally() -> None:
    c = corpus(80, 4, [1500, 3, 1])
    w = np.random.default_rng(2).integers(-2, 3, len(c.layout)).astype(np.float32)
    decode(c, w, None, None, 2, True)
    sets, forbidden = rules(c, 3)
    decode(c, w, sets, forbidden, 2, True)


@pytest.mark.parametrize("size", [1.0, 400.0, 1e4])
def test_log_space_term_by_term(size: float) -> None:
    """Products of exponentials and sums in log space agree, with forbidden edges, edges per token and large scores."""
    rng = np.random.default_rng(int(size))
    for labels, length in [(1, 3), (2, 1), (4, 6), (17, 5)]:
        node, edge = (
            size * rng.standard_normal((length, labels)),
            size * rng.standard_normal((length, labels, labels)),
        )
        edge[:, 0, -1] = -np.inf if labels > 1 else 0.0
        s = chain.Scores(node, edge, np.zeros(labels), np.zeros(labels))
        want = (chain.log_partition(s), *chain.marginals(s))
        for code_path in ("", "slow"):
            with forced(code_path):
                found = _core.chain_marginals(node, edge)
            for ours, slow in zip(found, want):
                np.testing.assert_allclose(ours, slow, rtol=1e-11, atol=1e-9, err_msg=code_path)


@pytest.mark.parametrize("far", [570.0, 600.0, 740.0, 744.0, 800.0])
def test_inaccurate_products_fall_back_to_log_space(far: float) -> None:
    """A nearly unreachable label with a large score of its own: e^-740 alone has only two digits."""
    c, w = grid([[0.0, 0.5], [0.0, far], [0.25, far]], [[0.0, -far], [0.125, -far - 0.75]], [0, 0, 0])
    s = c.scores(w)[0]
    want = (chain.log_partition(s), *chain.marginals(s))
    scorer = _core.Scorer(c.layout, w.astype(np.float32))
    free = (np.full(2, NONE, dtype=np.uint32), np.ones((3, 2), dtype=bool))
    for code_path in ("", "slow"):
        with forced(code_path):
            found = _core.chain_marginals(s.node, s.edge)
            p, log_z = _core.once_marginals(scorer, c.data, free)
        for ours, slow in zip(found, want):
            np.testing.assert_allclose(ours, slow, rtol=1e-11, atol=1e-9, err_msg=code_path)
        np.testing.assert_allclose(p, want[1], atol=1e-6, err_msg=code_path)
        assert log_z[0] == pytest.approx(want[0], rel=1e-12), code_path


# -- other learners ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("code_path", ["", "avx2", "baseline"])
@pytest.mark.parametrize("loss", list(losses.LOSSES))
@pytest.mark.parametrize("ruled", [False, True])
def test_stochastic_step_matches_the_reference_gradient(code_path: str, loss: str, ruled: bool) -> None:
    """The step uses weights, allowed labels and forbidden transitions.

    No attribute is frequent enough to shorten it.
    """
    c = corpus(90, 4, [1, 3, 2, 1, 2], "values")
    weight = 1e-4 * np.array([1.0, 0.5, 2.0, 0.0, 3.0])
    w = 0.5 * np.random.default_rng(3).standard_normal(len(c.layout))
    sets, forbidden = rules(c, 5) if ruled else (None, None)
    terms = Terms(loss, weight, sets, forbidden)
    native = {k: v for k, v in terms.native().items() if k not in ("cost", "partial", "once")}
    with forced(code_path):
        descent = constructors.stochastic(c.data, c.layout, **native)
        descent.set(w)
        met = descent.run(np.array([0], dtype=np.uint32), 100.0, 0.0, 0.0)
    want = reference_loss(c, w, terms)
    assert met == pytest.approx(want[0], rel=1e-5)
    steps = np.ones(len(w))
    steps[c.layout.n_node : c.layout.n_node + c.layout.n_edge] = (1 + 0.01 * c.data.n_tokens) ** -0.35
    steps[c.layout.n_node + c.layout.n_edge :] = (1 + 0.01 * len(c.gold)) ** -0.35
    moved = (w - descent.weights()) / 100.0 / steps
    np.testing.assert_allclose(moved, want[1], atol=2e-3 * np.abs(want[1]).max())


@pytest.mark.parametrize("span", [0.0, 229.0, 230.0, 900.0])
def test_boosting_in_log_space_agrees(span: float) -> None:
    """Losses and slopes of weighted sentences agree, scaled and in log space, around the widest span of edges."""
    node = [[span, 0.0, 0.2], [0.1, 0.0, span], [0.3, -0.2, 0.1]]
    edge = [[0.0, 0.4, -span], [0.1, 0.0, 0.2], [0.0, -0.3, 0.1]]
    c, w = grid(node, edge, [0, 2, 1], 2)
    shape = Shape(3, 3)
    full = np.concatenate([w, np.zeros(6)])
    weight = np.array([0.4, 1.7])
    want = quantities(full, c.X, c.gold, shape, weight)
    for code_path in ("", "log", "log,slow", "baseline"):
        with forced(code_path):
            b = _core.Boosting(c.data, c.layout, start=w, sample_weight=weight)
            went = _core.path_counts().get("log", 0)
        assert (went > 0) == ("log" in code_path or span > 229.6), (code_path, went)
        np.testing.assert_allclose(
            b.losses(), [losses.minus_log_p(s, y) for s, y in zip(c.scores(w), c.gold)], rtol=1e-9, atol=1e-9
        )
        assert b.log_loss == pytest.approx(np.log(want.loss), abs=1e-9)
        np.testing.assert_allclose(b.slopes(), want.m.sum(axis=0)[: len(w)], rtol=1e-6, atol=1e-9)


# -- attributes -------------------------------------------------------------------------------------------------

TEMPLATE = "word[-1..1]\nword[0].suffix(1..3)\nword[0].shape\nword[0].lower & word[1].lower\nbias"
TEXT_KEYS = [
    "0xe173cb3d9efa2720",
    "0xa558fb8d9b53bd6b",
    "0xd088e786b8184c75",
    "0xfbd96624abebe5bc",
    "0x600c68f0b448001e",
]
CRFPP_KEYS = [("U0:_B-2/The", "0xe40da607763a9194"), ("U0:_B-1/dog", "0x4fa519381c2db55a")]
TEMPLATE_KEYS = [
    ("word[0]=The", "0xa9f905fe42eca41"), ("word[0].suffix(1)=e", "0x93b1671fdf31bca1"),
    ("word[0].suffix(2)=he", "0xce6f1534050f1bbe"), ("word[0].suffix(3)=The", "0x1944024745214863"),
    ("word[0].shape=Aaa", "0xdc9b0efee612ad8e"), ("word[1]=dog", "0x4ef26aee39c99d0b"),
    ("word[0].lower=the & word[1].lower=dog", "0xfdcea1eb6d462b41"),
    ("bias", "0xc0d0592dba4070b6"), ("word[-1]=The", "0x2eb68129c18d60c4"), ("word[0]=dog", "0x37e6474e483dea73"),
    ("word[0].suffix(1)=g", "0x192055f2d19c6812"), ("word[0].suffix(2)=og", "0x7d4042e0602f3072"),
    ("word[0].suffix(3)=dog", "0x42e3b1b599d6b5d4"), ("word[0].shape=aaa", "0x9ac967f2822d5650"),
]  # fmt: skip


def test_locked_vocabulary_finds_runs_and_single_attributes() -> None:
    """A complete vocabulary finds all attributes again, in runs and single, with any number of threads."""
    rng = np.random.default_rng(0)
    X = [[[f"{'aAb1'[w % 4]}{w}x" for w in rng.zipf(1.4, rng.integers(0, 9)) % 50]] for _ in range(80)]
    template, vocabulary = _core.Template(TEMPLATE, ["word"]), _core.Vocabulary()
    growing = _core.encode_tokens(template, vocabulary, X)
    layouts = _core.Layout.build(
        growing.with_gold(rng.integers(0, 5, growing.n_tokens).astype(np.uint16)), len(vocabulary), 5
    )
    w = rng.integers(-3, 4, len(layouts)).astype(np.float32)
    scorer = _core.Scorer(layouts, w)
    want = scorer.viterbi(growing)
    vocabulary.lock()
    for code_path in ("", "runs", "single", "runs,table", "runs,table,baseline", "single,table"):
        for n_jobs in (1, 2):
            with forced(code_path):
                locked = _core.encode_tokens(template, vocabulary, X, n_jobs)
                assert ("runs" in _core.path_counts()) == ("runs" in code_path), code_path
                np.testing.assert_array_equal(scorer.viterbi(locked), want, err_msg=code_path)
            for ours, slow in zip(locked.node(), growing.node()):
                np.testing.assert_array_equal(ours, slow, err_msg=code_path)


def test_locked_vocabulary_finds_attributes_by_name() -> None:
    """For lists and mappings, node and edge attributes, a locked vocabulary has exactly the ids of the growing one."""
    X = [[["a", "b"], ["b", "c", "b"]], [["a"]], []]
    E = [[{"e": 2.0}, {"f": -1.0}], [{"e": 0.5}], []]
    vocabulary = _core.Vocabulary()
    growing = _core.encode_attributes(vocabulary, X, E)
    assert sorted(vocabulary.texts()) == list("abcef")
    vocabulary.lock()
    for n_jobs in (1, 2):
        more = [[["new", *token] for token in sentence] for sentence in X]
        locked = _core.encode_attributes(vocabulary, more, E, n_jobs)
        for ours, slow in zip((*locked.node(), *locked.edge()), (*growing.node(), *growing.edge())):
            np.testing.assert_array_equal(ours, slow)
    assert len(vocabulary) == 5


def test_attribute_keys_are_stable() -> None:
    """Model files depend on the keys, of plain texts and of a template's values and positions."""
    vocabulary = _core.Vocabulary()
    _core.encode_attributes(vocabulary, [[["", "a", "word[0]=dog", "word[0]=Straße", "x" * 100]]])
    assert [hex(key) for key in vocabulary.arrays()[0].tolist()] == TEXT_KEYS
    template, vocabulary = _core.Template(TEMPLATE, ["word"]), _core.Vocabulary()
    _core.encode_tokens(template, vocabulary, [[["The", "dog"]]])
    assert vocabulary.texts() == [text for text, _ in TEMPLATE_KEYS]
    assert [hex(key) for key in vocabulary.arrays()[0].tolist()] == [key for _, key in TEMPLATE_KEYS]
    template, vocabulary = _core.Template("U0:%x[-2,0]/%x[0,0]\nB", ["word"]), _core.Vocabulary()
    _core.encode_tokens(template, vocabulary, [[["The", "dog"]]])
    assert vocabulary.texts() == [text for text, _ in CRFPP_KEYS]
    assert [hex(key) for key in vocabulary.arrays()[0].tolist()] == [key for _, key in CRFPP_KEYS]

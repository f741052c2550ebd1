"""Tests of ranks and margins of gold paths against an enumeration of all paths."""

from __future__ import annotations

from itertools import pairwise, product

import numpy as np
import pytest

import tagwise as tw
from tagwise.decoding.plan import Query
from tagwise.decoding.ranks import BEYOND, Ranks

rng = np.random.default_rng(11)
X = [[f"w{rng.integers(6)}" for _ in range(n)] for n in (3, 1, 4, 2, 4, 3)]
Y = [[f"L{rng.integers(3)}" for _ in x] for x in X]
LEARNERS = [
    tw.CRF(features="S1", max_iter=8),
    tw.Perceptron(features="S1", max_iter=2),
    tw.HMSVM(features="S1", kernel="poly"),
]


def every(tagger: tw.Tagger, x: list[str]) -> dict[tuple[str, ...], float]:
    """Return all paths with their scores, from complete k-best lists."""
    (found,) = tagger.predict_kbest([x], k=3 ** len(x))
    assert len(found) == len(tagger.classes_) ** len(x)
    return {tuple(path): score for path, score in found}


@pytest.mark.parametrize("tagger", LEARNERS, ids=lambda t: t.name)
def test_ranks_count_paths_that_score_at_least_as_high(tagger: tw.Tagger) -> None:
    """Ranks count all paths if the list is long enough, else they are "k or more". Margins are exact in both cases."""
    tagger.fit(X, Y)
    for k in (2, 5, 81):
        found = tagger.model_.ranks(X, Y, k=k)
        for x, y, rank, margin in zip(X, Y, found.rank, found.margin):
            scores = every(tagger, x)
            mine = scores.pop(tuple(y))
            true = sum(score >= mine for score in scores.values())
            assert margin == pytest.approx(mine - max(scores.values()), abs=1e-4)
            assert rank == (true if true < k else BEYOND)
        assert found.beyond == np.mean(found.rank == BEYOND)
        assert found.risk == np.mean([k if r == BEYOND else r for r in found.rank])
    wrong = np.array([list(p) != y for p, y in zip(tagger.predict(X), Y)])
    assert ((found.rank > 0) == wrong).all()
    assert ((found.margin < 0) == wrong).all()


def test_exponential_loss_bounds_the_rank() -> None:
    """e^l - 1 = sum of e^{H(y) - H(gold)} over wrong y, and each term with H(y) >= H(gold) is at least 1."""
    tagger = tw.CRF(features="S1", max_iter=3).fit(X, Y)
    bound = 1 / tagger.sequence_probability(X, Y) - 1
    assert (tagger.model_.ranks(X, Y, k=81).rank <= bound + 1e-4).all()


def test_unknown_gold_labels_have_no_rank() -> None:
    """No path of the model is the gold one."""
    tagger = tw.CRF(features="S1", max_iter=3).fit(X, Y)
    found = tagger.model_.ranks([["w1"], ["w2"]], [["L9"], ["L0"]], k=9)
    assert found.rank[0] == BEYOND
    assert found.margin[0] == -np.inf
    assert found.rank[1] != BEYOND


def test_ranks_with_constraints_and_order_two() -> None:
    """Ranks ignore paths that the model's rules forbid. Chains of order 2 have exact lists too."""
    allowed = tw.CRF(features="S1", max_iter=3, constraints={"forbidden": [["L0", "L1"]]})
    gold = [[label if label != "L1" else "L2" for label in y] for y in Y]
    gold[0] = ["L1"] * len(gold[0])
    found = allowed.fit(X, gold).model_.ranks(X, gold, k=81)
    assert (found.rank != BEYOND).all()
    free = allowed.model_.ranks(X, gold, k=81, query=Query(constraints=False))
    assert (found.rank <= free.rank).all()
    second = tw.CRF(features="S1", order=2, max_iter=3).fit(X, Y)
    assert (second.model_.ranks(X, Y, k=81).rank != BEYOND).all()


def test_constraints_of_a_call_remove_rivals() -> None:
    """Forbidding a step of the best path that the gold path does not take removes at least that rival."""
    tagger = tw.CRF(features="S1", max_iter=1).fit(X, Y)
    tried = 0
    for x, y, (best,) in zip(X, Y, tagger.predict_kbest(X, 1)):
        steps = [pair for pair in pairwise(best[0]) if pair not in set(pairwise(y))]
        if steps:
            free = tagger.model_.ranks([x], [y], k=81)
            ruled = tagger.model_.ranks([x], [y], k=81, query=Query(constraints={"forbidden": steps[:1]}))
            assert 0 <= ruled.rank[0] < free.rank[0]
            tried += 1
    assert tried


def test_forbidden_gold_paths_have_a_margin() -> None:
    """Forbidden gold paths are on no list, and lose to the best valid path by the difference of the scores."""
    tagger = tw.CRF(features="S1", max_iter=3, constraints={"forbidden": [["L0", "L1"]]})
    gold = [[label if label != "L1" else "L2" for label in y] for y in Y]
    gold[0] = ["L1"] * len(gold[0])
    tagger.fit(X, gold)
    unlawful = ["L0", "L1", *["L2"] * (len(X[2]) - 2)]
    found = tagger.model_.ranks([X[2]], [unlawful], k=9)
    assert found.rank.tolist() == [BEYOND]
    (paths,) = tagger.predict_kbest([X[2]], 81, constraints=False)
    scores = {tuple(path): score for path, score in paths}
    best = tuple(tagger.predict([X[2]])[0])
    assert found.margin[0] == pytest.approx(scores[tuple(unlawful)] - scores[best], abs=1e-4)


@pytest.mark.parametrize("k", [2, 5, 10, 15, 16, 20])
def test_ties_beyond_the_list_leave_the_rank_unknown(k: int) -> None:
    """All 16 paths tie: the rank is 15 if it is below k, else unknown, and never k - 1 from a truncated list."""
    flat = tw.CRF(features="S1", max_iter=0).fit([["a", "b"]], [["L0", "L1"]])
    gold = [list(path) for path in product(["L0", "L1"], repeat=4)]
    found = flat.model_.ranks([["a", "b", "a", "b"]] * len(gold), gold, k=k)
    assert set(found.rank.tolist()) == {15 if k > 15 else BEYOND}
    assert found.beyond == (0.0 if k > 15 else 1.0)
    assert found.risk == min(k, 15)
    assert (found.margin == 0.0).all()


def test_ranks_and_margins_of_small_examples() -> None:
    """Ties count, a single path has no rival, labels may have other types, means and medians are right."""
    flat = tw.CRF(features="S1", max_iter=0).fit(X, Y)  # all weights are 0
    assert flat.model_.ranks([["w1"], ["w1", "w2"]], [["L0"], ["L1", "L1"]], k=9).rank.tolist() == [2, 8]
    only = tw.CRF(features="S1", max_iter=3).fit([["a"]], [["N"]]).model_.ranks([["a"]], [["N"]])
    assert (only.rank.tolist(), only.margin.tolist()) == ([0], [np.inf])
    numbers = [[int(label[1:]) for label in y] for y in Y]
    typed, named = (
        tw.CRF(features="S1", max_iter=3).fit(X, numbers),
        tw.CRF(features="S1", max_iter=3).fit(X, Y),
    )
    np.testing.assert_array_equal(typed.model_.ranks(X, numbers).rank, named.model_.ranks(X, Y).rank)
    np.testing.assert_allclose(
        typed.model_.ranks(X, numbers).margin, named.model_.ranks(X, Y).margin, atol=1e-4
    )
    hand = Ranks(np.array([0, 3, BEYOND, BEYOND]), np.array([5.0, -1.0, -2.0, -9.0]), 10)
    assert (hand.beyond, hand.risk, hand.median_margin) == (0.5, 23 / 4, -1.5)


def test_invalid_calls_are_rejected() -> None:
    """Lists of one path, labels of another length, and models without exact lists raise errors."""
    tagger = tw.CRF(features="S1", max_iter=3).fit(X, Y)
    with pytest.raises(tw.exceptions.ParameterError, match="k=1: expected integer >= 2"):
        tagger.model_.ranks(X, Y, k=1)
    with pytest.raises(tw.exceptions.CorpusError, match="Give one label"):
        tagger.model_.ranks(X, [y[:-1] for y in Y])
    history = tw.Perceptron(features="S1", max_iter=1, lookback=(1, 3)).fit(X, Y)
    with pytest.raises(tw.exceptions.ParameterError, match="no exact k-best lists"):
        history.model_.ranks(X, Y)


def test_comparisons_show_the_risks_on_request() -> None:
    """Columns appear on request. The columns of sequences and accuracy hold the 0-1 and Hamming risks."""
    table = tw.compare(
        ["crf"], corpus={"toy": (corpus(), corpus())}, features=["S1"], params={"max_iter": 3}, risks=50
    )
    (row,) = table.rows
    tagger = tw.CRF(features="S1", max_iter=3).fit(X, Y)
    found = tagger.model_.ranks(X, Y, k=50)
    assert (row.rank, row.beyond) == (found.risk, found.beyond)
    assert row.margin == pytest.approx(found.median_margin, rel=1e-4)
    head, (cells,) = table.sheet()
    assert cells[head.index("rank risk")] == ">= " * bool(found.beyond) + f"{found.risk:.2f}"
    assert table.details[0]["ranks"] == found.rank.tolist()
    plain = tw.compare(["crf"], corpus={"toy": (corpus(), corpus())}, features=["S1"], params={"max_iter": 3})
    assert not {"rank risk", "median margin"} & set(plain.sheet()[0])


def corpus() -> tw.Corpus:
    """Return the sentences as a corpus."""
    sentences = [tw.Sentence({"word": x, "label": y}, label="label") for x, y in zip(X, Y)]
    return tw.Corpus(sentences, columns=("word", "label"), label="label")

"""Tests that explanations are exact: feature votes sum to the difference of the scorer's scores of two paths."""

from __future__ import annotations

import json
import math
import random
from typing import Any

import pytest

import tagwise as tw
from tagwise.base.exceptions import CorpusError, ParameterError
from tagwise.features.inputs import Inputs
from tagwise.model.explaining import other_path
from tagwise.model.model import Model

WORDS = ["Rosa", "Lund", "runs", "to", "a", "New"]
X = [
    ["Rosa", "Lund", "runs"],
    ["a", "Rosa", "runs", "to", "Lund"],
    ["New", "Lund", "to"],
    ["Lund"],
    ["to", "New", "Lund"],
]
Y = [["B-P", "I-P", "O"], ["O", "B-P", "O", "O", "B-L"], ["B-L", "I-L", "O"], ["B-L"], ["O", "B-L", "I-L"]]
EDGES = "word[0]\nword[-1]\nedge: word[0]"


def functional(sentence: Any) -> list[dict[str, float]]:
    """Return attributes with values other than 1."""
    return [{f"w={word}": 0.5, "length": len(word) / 3, "bias": 1.0} for word in sentence]


MODELS = {
    "crf": lambda: tw.CRF(features="S2", max_iter=15),
    "crf all pairs": lambda: tw.CRF(features="S1", max_iter=15, all_pairs=True, l2=0.1),
    "crf without ends": lambda: tw.CRF(features="S1", max_iter=15, start_end=False),
    "crf ruled": lambda: tw.CRF(features="S2", max_iter=15, constraints="auto"),
    "crf exp": lambda: tw.CRF(features="S2", max_iter=15, loss="exp"),
    "perceptron": lambda: tw.Perceptron(features="S2", max_iter=4),
    "mira": lambda: tw.MIRA(features="S2", max_iter=4, k=3),
    "pa": lambda: tw.PassiveAggressive(features="S2", max_iter=3),
    "hmsvm": lambda: tw.HMSVM(features="S2"),
    "boosting": lambda: tw.Boosting(features="S2", max_iter=40),
    "hmm": lambda: tw.HMM(features="S1"),
    "memm": lambda: tw.MEMM(features="S2", max_iter=15),
    "memm without ends": lambda: tw.MEMM(features="S2", max_iter=15, start_end=False),
}


@pytest.fixture(scope="module", params=list(MODELS))
def tagger(request: pytest.FixtureRequest) -> Any:
    """Return a fitted tagger of each kind."""
    return MODELS[request.param]().fit(X, Y)


SENTENCE = ["New", "Rosa", "runs", "to", "Lund"]


def test_votes_sum_to_the_difference_of_any_two_paths(tagger: Any) -> None:
    """The scorer's list has the scores of the paths, each of which is compared with the best."""
    paths = tagger.predict_kbest([SENTENCE], 40)[0]
    assert len(paths) > 5
    best, score = paths[0]
    for other, other_score in paths[1:]:
        (decision,) = tagger.explain(SENTENCE, against=other)
        assert decision.runner_up != decision.label
        assert list(decision.labels) == best
        assert list(decision.other) == other
        assert decision.score == pytest.approx(score, abs=1e-5)
        tolerance = 1e-5 * max(1.0, abs(score))
        assert decision.difference == pytest.approx(score - other_score, abs=tolerance)
        assert math.fsum(v.amount for v in decision.votes) == decision.difference
        assert decision.other_score == pytest.approx(other_score, abs=tolerance)
        assert all(v.amount == v.weight - v.other for v in decision.votes)


def test_runner_up_is_the_best_path_with_another_label(tagger: Any) -> None:
    """The runner-up is the first path of the list that differs at the token."""
    every = tagger.predict_kbest([SENTENCE], 100_000)[0]
    best = every[0][0]
    found = tagger.explain(SENTENCE)
    assert [d.token for d in found] == list(range(len(SENTENCE)))
    for decision in found:
        t = decision.token
        expected = next((p, s) for p, s in every if p[t] != best[t])
        assert decision.difference == pytest.approx(every[0][1] - expected[1], abs=1e-4)
        assert decision.runner_up != decision.label == best[t]


#: Limits on paths that a search must respect: pairs, borders, words with known labels, both, labels that occur once.
LIMITED: dict[str, Any] = {
    "edge attributes": {"features": EDGES},
    "pairs and borders": {"constraints": {"forbidden": [("O", "I-P"), (None, "I-L"), ("B-P", None)]}},
    "dictionary": {"dictionary": 1},
    "dictionary and rules": {"dictionary": 1, "constraints": "bio"},
    "once": {"constraints": {"once": ["P"]}},
}


@pytest.mark.parametrize("limits", LIMITED.values(), ids=LIMITED)
def test_runners_up_equal_a_viterbi_search_per_token(limits: dict[str, Any]) -> None:
    """One pass in each direction finds the result of a Viterbi search without the predicted label, for every token."""
    tagger = tw.CRF(**{"features": "S2", "max_iter": 15, "l2": 0.1, **limits}).fit(X, Y)
    model, rng, differ = tagger.model_, random.Random(3), 0
    for n in (1, 2, 5, 12, 40):
        sentence = [rng.choice([*WORDS, "?"]) for _ in range(n)]
        given = Inputs.of([sentence])
        (best, score) = model.kbest(given, 1)[0][0]
        found = {d.token: d for d in tagger.explain(sentence)}
        for t in range(n):
            other = other_path(model, given, best, t, None, None)
            assert (other is None) == (t not in found)
            if other is None:
                continue
            differ += other != found[t].other
            (by_search,) = tagger.explain(sentence, token=t, against=other)
            assert found[t].difference == pytest.approx(by_search.difference, abs=1e-4)
            assert found[t].other[t] == found[t].runner_up != best[t]
            assert found[t].score == pytest.approx(score)
    assert differ < 10  # ties


def test_explanation_takes_one_search_per_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    """Explanations of all tokens take one search and two passes, and store only the places where paths differ."""
    tagger = tw.CRF(features="S2", max_iter=15).fit(X, Y)
    searches: list[int] = []
    search = Model.kbest
    monkeypatch.setattr(Model, "kbest", lambda *a, **k: searches.append(1) or search(*a, **k))
    found = tagger.explain(SENTENCE * 200)
    assert len(found) == 1000
    assert len(searches) == 1
    assert sum(len(d.detour) for d in found) < 5 * len(found)
    data = found.to_dict()
    assert sum(len(d["other"]) for d in data["decisions"]) == sum(len(d.detour) for d in found)
    assert data["labels"] == tagger.predict([SENTENCE * 200])[0]


def test_log_odds_require_probabilities(tagger: Any) -> None:
    """Log odds are log P(y | x) - log P(y' | x), with the marginals of both labels, for probabilistic models only."""
    (decision,) = tagger.explain(SENTENCE, token=1)
    assert tagger.probabilistic is (tagger.name in ("crf", "memm", "hmm"))
    if not tagger.probabilistic:
        assert decision.log_odds is None
        return
    both = tagger.predict_kbest([SENTENCE], 100_000, probability=True)[0]
    p = {tuple(path): chance for path, chance in both}
    ratio = math.log(p[tuple(decision.labels)] / p[tuple(decision.other)])
    assert decision.log_odds == pytest.approx(ratio, abs=1e-4)
    for label, chance in (
        (decision.label, decision.probability),
        (decision.runner_up, decision.other_probability),
    ):
        assert chance == pytest.approx(sum(q for path, q in p.items() if path[1] == label), abs=1e-4)


def test_rival_label_can_be_given(tagger: Any) -> None:
    """The rival is the best path with this label at this token."""
    if tagger.model_.scorer.local:
        return
    every = tagger.predict_kbest([SENTENCE], 100_000)[0]
    for label in tagger.classes_:
        expected = next((s for p, s in every if p[4] == label), None)
        if expected is not None:
            (decision,) = tagger.explain(SENTENCE, token=4, against=label)
            assert decision.runner_up == label
            assert decision.difference == pytest.approx(every[0][1] - expected, abs=1e-4)


@pytest.mark.parametrize("features", [EDGES, functional])
def test_edge_attributes_and_values(features: Any) -> None:
    """Attributes with two labels, and values other than 1."""
    tagger = tw.CRF(features=features, max_iter=15, l2=0.1).fit(X, Y)
    paths = tagger.predict_kbest([SENTENCE], 30)[0]
    for other, score in paths[1:]:
        (decision,) = tagger.explain(SENTENCE, token=0, against=other)
        assert decision.difference == pytest.approx(paths[0][1] - score, abs=1e-4)
    kinds = {v.kind for d in tagger.explain(SENTENCE) for v in d.votes}
    assert ("pair" in kinds) is (features is EDGES)


def test_tokens_without_an_alternative_are_omitted() -> None:
    """A token that the rules decide alone is left out."""
    only = tw.CRF(features="S1", max_iter=5).fit([["a", "b"]], [["N", "N"]])
    assert list(only.explain(["a", "b"])) == []
    bound = tw.CRF(features="S1", max_iter=5, constraints={"forbidden": [(None, "V")]})
    bound.fit([["a", "b"], ["a", "a"]], [["N", "V"], ["N", "N"]])
    assert [d.token for d in bound.explain(["a", "b"])] == [1]


def test_text_html_and_data_agree() -> None:
    """Text, HTML and data agree. Omitted votes are counted."""
    tagger = tw.CRF(features="S2", max_iter=10).fit(X, Y)
    found = tagger.explain(["Rosa", "<b>", "Lund"])
    text, page = str(found), found._repr_html_()
    for decision in found:
        assert decision.title in text
        sizes = [abs(v.amount) for v in decision.votes]
        assert sizes == sorted(sizes, reverse=True)
    assert "&lt;b&gt;" in page
    assert "<b>" not in page
    assert page.count("<details") == 3
    assert page.count(" open>") == 1
    data = json.loads(json.dumps(found.to_dict()))
    assert [d["word"] for d in data["decisions"]] == ["Rosa", "<b>", "Lund"]
    for entry, decision in zip(data["decisions"], found):
        assert math.fsum(v["amount"] for v in entry["votes"]) == pytest.approx(entry["difference"])
        shown = [float(cells[0]) for cells in decision.rows(3)]
        assert sum(shown) == pytest.approx(decision.difference, abs=5e-4)
        assert len(shown) <= 4


def test_unsupported_explanations_are_rejected() -> None:
    """Kernels, history, and unknown tokens and labels are errors."""
    tagger = tw.CRF(features="S1", max_iter=3).fit(X, Y)
    for wrong, word in ((5, "0 to 1"), (-1, "0 to 1")):
        with pytest.raises(ParameterError, match=word):
            tagger.explain(["a", "b"], token=wrong)
    with pytest.raises(CorpusError, match="is not a label of the model"):
        tagger.explain(["a", "b"], token=0, against="X")
    with pytest.raises(ParameterError, match="list of tokens"):
        tagger.explain("a b")
    with pytest.raises(ParameterError, match="no tokens"):
        tagger.explain([])
    for other in (
        tw.Perceptron(features="S1", max_iter=2, kernel="poly"),
        tw.CRF(features="S1", max_iter=2, order=2),
    ):
        with pytest.raises(ParameterError, match="model with"):
            other.fit(X, Y).explain(["a", "b"])

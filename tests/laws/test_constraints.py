"""Tests of constraints, labels that occur once, and tag dictionaries, by enumeration and by their guarantees."""

from __future__ import annotations

from itertools import pairwise, product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tagwise as tw
from tagwise import _core
from tagwise.base.parameters import parameters_of
from tagwise.corpus import schemes
from tagwise.scores.constraints import Constraints, intersect, scheme_of
from tagwise.scores.dictionary import TagDictionary

from . import valid_paths

# -- rules ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("scheme", schemes.SCHEMES)
def test_scheme_constraints_accept_the_valid_sequences(scheme: str) -> None:
    tags = {"IOBES": "BIES", "BILOU": "BILU"}.get(scheme, "BI" if "B" in scheme else "IE")
    labels = ["O", *(f"{t}-{k}" for k in ("PER", "LOC") for t in tags)]
    rules = Constraints.parse(scheme).rules(labels)
    for a, y in enumerate(labels):
        assert rules.start[a] == schemes.valid(None, y, scheme)
        assert rules.end[a] == schemes.valid(y, None, scheme)
        for b, z in enumerate(labels):
            assert rules.pairs[a, b] == schemes.valid(y, z, scheme)


def test_forbidden_and_required() -> None:
    rules = Constraints.parse(
        {"forbidden": [("A", "B"), (None, "C"), ("B", None)], "required": {"C": ["A", "B"]}}
    ).rules(["A", "B", "C"])
    assert rules.pairs.tolist() == [[True, False, True], [True, True, True], [True, True, False]]
    assert rules.start.tolist() == [True, True, False]
    assert rules.end.tolist() == [True, False, False]
    closing = Constraints.parse({"required": {"C": ["A", None]}}).rules(["A", "B", "C"])
    assert closing.end.tolist() == [True, True, True]
    for wrong in ({"forbidden": [("A", "X")]}, {"required": {"X": "A"}}, {"once": ["X"]}):
        with pytest.raises(tw.exceptions.ParameterError, match="'X'"):
            Constraints.parse(wrong).rules(["A", "B", "C"])
    for wrong in (3, {"banned": []}, "no-scheme", {"forbidden": [1]}):
        with pytest.raises(tw.exceptions.ParameterError, match="constraints"):
            Constraints.parse(wrong)


def test_constraints_are_parsed_from_text() -> None:
    """On the command line constraints are a name, JSON, or none. Errors in the JSON are reported."""
    spec = parameters_of(tw.CRF)["constraints"]
    assert spec.parse("None") is spec.parse("") is None
    assert spec.parse("iob2") == spec.check("iob2")
    assert spec.parse(' {"once": ["X"]}') == spec.check({"once": ["X"]})
    with pytest.raises(tw.exceptions.ParameterError, match=r"a mapping as JSON \(.*line 1 column 2"):
        spec.parse("{once: X}")


@pytest.mark.parametrize("scheme", ["IOB1", "IOB2", "IOBES"])
def test_scheme_is_inferred_from_transitions(scheme: str) -> None:
    """A model infers its scheme from the observed transitions."""
    spans = [[("PER", 0, 2), ("PER", 2, 3), ("LOC", 4, 5)], [("LOC", 1, 3)]]
    y = [schemes.from_spans(s, 6, scheme) for s in spans]
    X = [[f"w{t}" for t in range(6)] for _ in y]
    tagger = tw.Perceptron(features="S1", max_iter=1).fit(X, y)
    assert scheme_of(tagger.classes_, tagger.model_.scorer.layout) == scheme
    assert scheme_of(["NN", "VB"], None) is None


@given(st.data())
def test_allowed_label_sets_intersect(data: st.DataObject) -> None:
    n, L = data.draw(st.integers(1, 8)), data.draw(st.integers(1, 4))
    rng = np.random.default_rng(data.draw(st.integers(0, 999)))
    supports = [(rng.random((3, L)) < 0.6, rng.integers(0, 3, n).astype(np.uint32)) for _ in range(3)]
    both = intersect(*supports, None)
    assert both is not None
    want = np.logical_and.reduce([sets[of] for sets, of in supports])
    np.testing.assert_array_equal(both[0][both[1]], want)


@given(st.integers(0, 10_000))
def test_feasibility_matches_enumeration(seed: int) -> None:
    rng = np.random.default_rng(seed)
    lengths, L = rng.integers(0, 4, 5), int(rng.integers(1, 4))
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.uint64)
    sets, pairs = rng.random((4, L)) < 0.5, rng.random((L, L)) < 0.5
    of = rng.integers(0, 4, int(offsets[-1])).astype(np.uint32)
    for found, (a, b) in zip(_core.feasible(offsets, sets, of, pairs), pairwise(offsets.astype(int))):
        candidates = product(*(np.flatnonzero(sets[of[t]]) for t in range(a, b)))
        assert found == any(all(pairs[y, z] for y, z in pairwise(path)) for path in candidates)


# -- labels that occur once -------------------------------------------------------------------------------


@pytest.mark.parametrize("params", [{}, {"lookback": (1, 2)}])
def test_once_constraint_is_enforced_by_kbest_lists(params: dict[str, Any]) -> None:
    X = [["1", "a", "2", "b"], ["a", "1", "b", "2"]]
    y = [["NUM", "STR", "O", "STR"], ["STR", "NUM", "STR", "O"]]
    tagger = tw.MIRA(features="S1", max_iter=5, **params).fit(X, y)
    assert tagger.predict(X) == y
    for labels in tagger.predict(X, constraints={"once": ["STR"]}):
        assert sum(z == "STR" != a for a, z in zip(["", *labels], labels)) <= 1


# -- learners ---------------------------------------------------------------------------------------------


def noisy(scheme: str, n: int = 120, seed: int = 0) -> tuple[list[list[str]], list[list[str]]]:
    """Return chunks with uninformative words, for which a plain model predicts ill-formed sequences."""
    rng = np.random.default_rng(seed)
    X, y = [], []
    for _ in range(n):
        at, spans = 0, []
        length = int(rng.integers(3, 9))
        while at < length:
            size = int(rng.integers(1, 4))
            if rng.random() < 0.6 and at + size <= length:
                spans.append((str(rng.choice(["PER", "LOC"])), at, at + size))
            at += size
        y.append(schemes.from_spans(spans, length, scheme))
        X.append([f"{label}{rng.integers(0, 3)}" if rng.random() < 0.7 else "x" for label in y[-1]])
    return X, y


LEARNERS = [
    lambda **p: tw.CRF(features="S1", max_iter=30, **p),
    lambda **p: tw.CRF(features="S1", max_iter=20, loss="pointwise_log", **p),
    lambda **p: tw.Perceptron(features="S1", max_iter=3, **p),
    lambda **p: tw.MIRA(features="S1", max_iter=3, **p),
    lambda **p: tw.MIRA(features="S1", max_iter=3, lookback=(2, 3), **p),
    lambda **p: tw.AROW(features="S1", max_iter=3, **p),
]


@pytest.mark.parametrize("make", LEARNERS)
@pytest.mark.parametrize("scheme", ["IOB2", "IOBES"])
def test_predictions_are_always_well_formed(make: Any, scheme: str, tmp_path: Path) -> None:
    train, test = noisy(scheme), noisy(scheme, seed=1)

    def ill(labels: list[str]) -> bool:
        return not all(schemes.valid(a, b, scheme) for a, b in zip([None, *labels], [*labels, None]))

    rng = np.random.default_rng(2)
    mixed = [rng.permutation(words).tolist() for words in test[0]]  # words in an order that no chunk has
    plain = make().fit(*train)
    assert any(map(ill, plain.predict(mixed)))
    assert not any(map(ill, plain.predict(mixed, constraints="auto")))
    bound = make(constraints="auto").fit(*train)
    found = bound.predict(mixed)
    assert not any(map(ill, found))
    assert any(map(ill, bound.predict(mixed, constraints=False)))
    assert bound.evaluate(test[0], test[1]).f1 >= plain.evaluate(test[0], test[1]).f1 - 0.05
    bound.save(tmp_path / "m.tagwise")
    assert tw.load(tmp_path / "m.tagwise").predict(mixed) == found
    if isinstance(bound, tw.CRF):
        p = bound.predict_marginals(test[0])[0]
        assert p[0][[bound.classes_.index(y) for y in bound.classes_ if y[0] in "IE"]].max() == 0.0
        np.testing.assert_allclose(p.sum(axis=1), 1.0, atol=1e-5)


def test_ill_formed_gold_is_rejected_or_converted() -> None:
    X, y = noisy("IOB2")
    y[3] = ["I-PER", *y[3][1:]]
    with pytest.raises(tw.exceptions.TrainingError, match=r"sentence 3.*IOB2"):
        tw.Perceptron(features="S1", constraints="bio").fit(X, y)
    right = [*y[:3], schemes.convert(y[3], None, "IOB2"), *y[4:]]
    wrong = tw.Perceptron(features="S1", constraints="auto").fit(X, y)
    np.testing.assert_array_equal(
        wrong.model_.scorer.weights,
        tw.Perceptron(features="S1", constraints="auto").fit(X, right).model_.scorer.weights,
    )


def test_gold_outside_the_constraints_is_named() -> None:
    with pytest.raises(tw.exceptions.TrainingError, match="sentence 1"):
        tw.CRF(features="S1", constraints="bio").fit([["a"], ["b"]], [["B-X"], ["I-X"]])


# -- tag dictionary ---------------------------------------------------------------------------------------


def test_dictionary_equals_counts() -> None:
    words = [["a", "a", "a", "b", "b"], ["a", "c"]]
    gold = np.array([0, 0, 1, 1, 1, 0, 2], dtype=np.uint16)
    found = TagDictionary.build(words, gold, 3, 2)
    assert {w: np.flatnonzero(found.sets[row]).tolist() for w, row in found.of.items()} == {
        "a": [0, 1],
        "b": [1],
    }
    strict = TagDictionary.build(words, gold, 3, 2, share=0.5)
    assert np.flatnonzero(strict.sets[strict.of["a"]]).tolist() == [0]
    sets, of = found.support([["c", "b"], ["a"]])
    assert sets[of].tolist() == [[True, True, True], [False, True, False], [True, True, False]]
    again = TagDictionary.from_arrays(found.arrays(), 3)
    assert again.of == found.of
    np.testing.assert_array_equal(again.sets, found.sets)


@pytest.mark.parametrize("make", LEARNERS)
@pytest.mark.parametrize("share", [0.0, 0.3])
def test_known_words_get_labels_of_the_dictionary(make: Any, share: float, tmp_path: Path) -> None:
    """By counting, a known word has one of its labels, in sentences that keep a well-formed path."""
    (X, y), (test, _) = noisy("IOB2", 60), noisy("IOB2", 40, seed=1)
    rng = np.random.default_rng(2)
    test += [rng.permutation(words).tolist() for words in test]  # in an order that no chunk has
    seen, bio = valid_paths.counted(X, y, 3, share), valid_paths.of_scheme("IOB2")
    assert (
        len(seen["x"]) < 5 if share else len(seen["x"]) == 5
    )  # x occurs with every label, with most of them rarely
    tagger = make(dictionary=tw.Dictionary(3, share=share), constraints="auto").fit(X, y)
    kept = free = 0
    found = tagger.predict(test)
    for words, path in zip(test, found):
        assert bio(tuple(path))
        known = [seen.get(word, set(tagger.classes_)) for word in words]
        if any(map(bio, product(*known))):
            assert all(label in names for label, names in zip(path, known))
            kept += 1
        else:
            free += 1
    assert kept > 20
    assert free > 5
    plain = make(constraints="auto").fit(X, y).predict(test)
    assert any(
        y not in seen.get(w, tagger.classes_) for words, path in zip(test, plain) for w, y in zip(words, path)
    )
    tagger.save(tmp_path / "m.tagwise")
    assert tw.load(tmp_path / "m.tagwise").predict(test) == found


def test_allowed_overrides_the_dictionary() -> None:
    tagger = tw.CRF(features="S1", dictionary=1, max_iter=5).fit([["a", "b"]] * 3, [["A", "B"]] * 3)
    assert tagger.predict([["a", "b"]], allowed=[["B", None]]) == [["B", "B"]]
    assert tagger.predict([["b", "a", "new"]])[0][:2] == ["B", "A"]

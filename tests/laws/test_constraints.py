"""Tests of constraints, labels that occur once, and tag dictionaries, by enumeration and by their guarantees."""

from __future__ import annotations

from itertools import pairwise, product

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

# -- rules ------------------------------------------------------------------------------------------------


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

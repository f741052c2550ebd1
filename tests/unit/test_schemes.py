"""Laws of the label schemes."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tagwise.base.exceptions import CorpusError
from tagwise.corpus import schemes
from tagwise.corpus.schemes import (
    SCHEMES,
    Span,
    allowed,
    convert,
    detect,
    from_spans,
    has_chunks,
    spans,
    valid,
)

TYPES = ["PER", "LOC", "creative-work", ""]


@st.composite
def chunkings(draw: st.DrawFn, types: list[str] = TYPES) -> tuple[list[Span], int]:
    """Disjoint chunks of a sequence, often touching, and its length."""
    at, found = 0, []
    for gap, size, kind in draw(
        st.lists(st.tuples(st.integers(0, 2), st.integers(1, 3), st.sampled_from(types)), max_size=6)
    ):
        found.append(Span(kind, at + gap, at + gap + size))
        at += gap + size
    return found, at + draw(st.integers(0, 2))


def brute_force_valid(labels: list[str], scheme: str) -> bool:
    """A sequence is well-formed if writing its chunks gives it back."""
    return from_spans(spans(labels), len(labels), scheme) == labels


@given(chunkings(), st.sampled_from(SCHEMES), st.sampled_from(SCHEMES))
def test_round_trips_between_all_schemes_keep_spans(chunking: tuple[list[Span], int], a: str, b: str) -> None:
    chunks, length = chunking
    labels = from_spans(chunks, length, a)
    assert len(labels) == length
    assert spans(labels) == spans(labels, a) == chunks
    other = convert(labels, a, b)
    assert spans(other, b) == chunks
    assert convert(other, b, a) == labels
    assert convert(labels, None, a) == labels


@given(chunkings(), st.sampled_from(SCHEMES))
def test_written_labels_are_valid_and_within_allowed(chunking: tuple[list[Span], int], scheme: str) -> None:
    chunks, length = chunking
    labels = from_spans(chunks, length, scheme)
    assert all(valid(p, n, scheme) for p, n in zip([None, *labels], [*labels, None]))
    ids = sorted(set(labels))
    mask = allowed(ids, scheme)
    index = {y: i for i, y in enumerate(ids)}
    assert all(mask.pairs[index[p]][index[n]] for p, n in pairwise(labels))
    if labels:
        assert mask.start[index[labels[0]]]
        assert mask.end[index[labels[-1]]]


@pytest.mark.parametrize("scheme", SCHEMES)
@given(data=st.data())
def test_valid_pairs_are_exactly_the_well_formed_sequences(scheme: str, data: st.DataObject) -> None:
    alphabet = ["O", *(f"{t}-{k}" for t in sorted(set(scheme) & set("BIESLU")) for k in ("X", "Y"))]
    labels = data.draw(st.lists(st.sampled_from(alphabet), min_size=1, max_size=5))
    by_pairs = all(valid(p, n, scheme) for p, n in zip([None, *labels], [*labels, None]))
    assert by_pairs == brute_force_valid(labels, scheme)


@given(st.lists(chunkings(["PER", "LOC"]), min_size=1, max_size=4), st.sampled_from(SCHEMES))
def test_detect_finds_a_scheme_in_which_all_is_valid(
    chunkings_: list[tuple[list[Span], int]], scheme: str
) -> None:
    labels = [from_spans(c, n, scheme) for c, n in chunkings_]
    found = detect(labels)
    if not any(c for c, _ in chunkings_):
        assert found is None
        return
    assert found is not None
    for y, (c, n) in zip(labels, chunkings_):
        assert from_spans(c, n, found) == y


@pytest.mark.parametrize("scheme", SCHEMES)
def test_detect_tells_schemes_apart(scheme: str) -> None:
    chunks = [Span("X", 0, 2), Span("X", 2, 3), Span("Y", 3, 4), Span("Y", 5, 8), Span("Y", 8, 9)]
    labels = from_spans(chunks, 10, scheme)
    assert detect([labels]) == detect(labels) == scheme


def test_detect_takes_the_scheme_with_fewest_violations() -> None:
    assert detect(["B-X", "I-X", "O", "B-Y", "I-Y", "O", "I-X"]) == "IOB2"
    assert detect(["NN", "VBZ", "-LRB-", "O"]) is None
    assert detect(["O", "O"]) is None
    assert detect([]) is None


def test_has_chunks() -> None:
    assert has_chunks(["O", "B-x"])
    assert has_chunks(["B", "I", "O"])
    assert not has_chunks(["NN", "IN", "-LRB-", "."])
    assert not has_chunks(["O"])
    assert not has_chunks([])


def test_names_and_aliases() -> None:
    assert schemes.scheme_name("bio") == "IOB2"
    assert schemes.scheme_name("bilou") == "BILOU"
    with pytest.raises(CorpusError, match=r"'XYZ'.*IOB2"):
        schemes.scheme_name("XYZ")


def test_errors_name_the_token() -> None:
    with pytest.raises(CorpusError, match=r"token 1.*'NN'"):
        convert(["O", "NN"], None, "IOB2")
    with pytest.raises(CorpusError, match=r"token 0.*'S-X'.*IOB2"):
        spans(["S-X"], "IOB2")
    with pytest.raises(CorpusError, match="overlaps"):
        from_spans([("X", 0, 2), ("X", 1, 3)], 4, "IOB2")

"""Tests of label schemes against their definitions, on all chunkings of a few tokens."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from itertools import pairwise, product

import numpy as np
import pytest

from tagwise.base.exceptions import CorpusError
from tagwise.corpus.schemes import (
    SCHEMES,
    Span,
    allowed,
    convert,
    detect,
    from_spans,
    has_chunks,
    is_chunk_label,
    scheme_name,
    spans,
    split_label,
    valid,
)

TYPES = ("X", "Y-z")
TAGS = {"IOB1": "BI", "IOB2": "BI", "IOE1": "IE", "IOE2": "IE", "IOBES": "BIES", "BILOU": "BILU"}
Pair = tuple[str | None, str | None]


@cache
def chunkings(length: int, types: Sequence[str] = TYPES) -> tuple[tuple[Span, ...], ...]:
    """Return all chunkings of `length` tokens."""

    def lay(begin: int) -> Iterator[tuple[Span, ...]]:
        if begin >= length:
            yield ()
            return
        yield from lay(begin + 1)
        for end in range(begin + 1, length + 1):
            for kind, rest in product(types, lay(end)):
                yield (Span(kind, begin, end), *rest)

    return tuple(lay(0))


def tag_of(t: int, chunk: Span, chunks: Sequence[Span], scheme: str) -> str:
    """Return the tag of a token in a chunk, by the table of the schemes."""
    first, last = t == chunk.begin, t == chunk.end - 1
    follows = any(c.end == chunk.begin and c.type == chunk.type for c in chunks)
    followed = any(c.begin == chunk.end and c.type == chunk.type for c in chunks)
    match scheme:
        case "IOB1":
            return "B" if first and follows else "I"
        case "IOB2":
            return "B" if first else "I"
        case "IOE1":
            return "E" if last and followed else "I"
        case "IOE2":
            return "E" if last else "I"
        case "IOBES":
            return {(True, True): "S", (True, False): "B", (False, True): "E"}.get((first, last), "I")
        case "BILOU":
            return {(True, True): "U", (True, False): "B", (False, True): "L"}.get((first, last), "I")
    raise AssertionError(scheme)


def written(chunks: Sequence[Span], length: int, scheme: str) -> list[str]:
    """Return the labels of a chunking, token by token."""
    labels = []
    for t in range(length):
        here = [c for c in chunks if c.begin <= t < c.end]
        kind = f"-{here[0].type}" if here and here[0].type else ""
        labels.append(tag_of(t, here[0], chunks, scheme) + kind if here else "O")
    return labels


@cache
def legal(scheme: str) -> frozenset[Pair]:
    """Return the neighbours that occur in well-formed sequences, including the ends (None)."""
    found: set[Pair] = set()
    for length in range(5):
        for chunks in chunkings(length):
            labels = written(chunks, length, scheme)
            found.update(pairwise([None, *labels, None]))
    return frozenset(found)


def alphabet(scheme: str) -> list[str]:
    """Return all labels of a scheme."""
    return ["O", *(f"{tag}-{kind}" for tag in TAGS[scheme] for kind in TYPES)]


@pytest.mark.parametrize("scheme", SCHEMES)
def test_chunks_are_encoded_by_the_definition(scheme: str) -> None:
    """Writing gives the reference labels and reading gives the chunks back, with and without types."""
    for length in range(6):
        for types in (TYPES, ("",)):
            for chunks in chunkings(length, types):
                labels = written(chunks, length, scheme)
                assert from_spans(chunks, length, scheme) == labels
                assert from_spans(map(tuple, chunks), length, scheme.lower()) == labels
                assert spans(labels) == spans(labels, scheme) == list(chunks)


@pytest.mark.parametrize("target", SCHEMES)
@pytest.mark.parametrize("source", SCHEMES)
def test_conversion_keeps_the_chunks(source: str, target: str) -> None:
    """Conversion between any two schemes gives the reference labels of the same chunks."""
    for chunks in chunkings(4):
        labels = written(chunks, 4, source)
        expected = written(chunks, 4, target)
        assert convert(labels, source, target) == expected
        assert convert(labels, None, target) == expected


@pytest.mark.parametrize("scheme", SCHEMES)
def test_valid_neighbours_are_those_of_well_formed_sequences(scheme: str) -> None:
    """Two labels may be neighbours if they are in some well-formed sequence. Labels of other schemes never are."""
    every = {*alphabet(scheme), *(y for other in SCHEMES for y in alphabet(other))}
    every |= {"B-", "I-", "E-", "S-", "O-", "-X", "NN", ".", ".-X", "[-X", "]-X", ""}
    for p, f in product([None, *sorted(every)], repeat=2):
        assert valid(p, f, scheme) == ((p, f) in legal(scheme)), (p, f)
        assert valid(p, f, scheme.lower()) == valid(p, f, scheme)


@pytest.mark.parametrize("scheme", SCHEMES)
def test_sequences_of_valid_neighbours_are_well_formed(scheme: str) -> None:
    """Neighbours define a scheme: the sequences of valid pairs are exactly the well-formed ones."""
    length = 4 if len(alphabet(scheme)) < 6 else 3
    well_formed = {tuple(written(c, length, scheme)) for c in chunkings(length)}
    found = {
        labels
        for labels in product(alphabet(scheme), repeat=length)
        if all(valid(p, f, scheme) for p, f in pairwise([None, *labels, None]))
    }
    assert found == well_formed


@pytest.mark.parametrize("scheme", SCHEMES)
def test_allowed_is_valid_as_a_table(scheme: str) -> None:
    """The table has start, pairs (from, to) and end of the labels, in their order."""
    labels = alphabet(scheme)[::-1]
    start, pairs, end = allowed(labels, scheme)
    assert start == [(None, y) in legal(scheme) for y in labels]
    assert pairs == [[(y, z) in legal(scheme) for z in labels] for y in labels]
    assert end == [(y, None) in legal(scheme) for y in labels]


ORDER = (
    "IOB2",
    "IOE2",
    "IOBES",
    "BILOU",
    "IOB1",
    "IOE1",
)  # as documented: the first of equally good fits


def reference_detect(sequences: Sequence[Sequence[str]]) -> str | None:
    """Return the scheme that has all tags and the fewest illegal neighbours, or None without chunks."""
    tags = {y.split("-")[0] for labels in sequences for y in labels} - {"O"}
    if not tags:
        return None
    fits = [s for s in ORDER if tags <= set(TAGS[s])]
    bad = {
        s: sum(pair not in legal(s) for labels in sequences for pair in pairwise([None, *labels, None]))
        for s in fits
    }
    return next((s for s in fits if bad[s] == min(bad.values())), None)


def test_detection_of_every_short_sequence() -> None:
    """A sequence of up to three labels of any scheme, as a list of labels and as a list of one sequence."""
    labels = ["O", *(f"{tag}-{kind}" for tag in "BIESLU" for kind in TYPES)]
    for length in range(4):
        for sequence in product(labels, repeat=length):
            expected = reference_detect([sequence])
            assert detect(sequence) == expected, sequence
            assert detect([sequence]) == expected, sequence


def test_detection_counts_violations_over_sequences() -> None:
    """Ill-formed corpora get the scheme with the fewest violations, counting every occurrence."""
    rng = np.random.default_rng(4)
    found = set()
    for tags in ("BI", "IE", "BIES", "BILU", "I"):
        labels = ["O", *(f"{tag}-{kind}" for tag in tags for kind in TYPES)]
        for _ in range(150):
            sequences = [list(rng.choice(labels, size=rng.integers(1, 7))) for _ in range(rng.integers(1, 4))]
            expected = reference_detect(sequences)
            assert detect(sequences) == expected, sequences
            found.add(expected)
    assert found >= set(SCHEMES)


@pytest.mark.parametrize("scheme", SCHEMES)
def test_written_schemes_are_detected(scheme: str) -> None:
    """A corpus of all chunkings of four tokens is detected in each scheme."""
    assert detect([written(c, 4, scheme) for c in chunkings(4)]) == scheme


@pytest.mark.parametrize(
    ("label", "chunk"),
    [
        ("O", True), ("B", True), ("I", True), ("B-X", True), ("U-X-Y", True), ("[-X", True), ("]", True), ("L", True),
        ("B-", False), ("O-X", False), ("O-", False), ("-X", False), ("", False), ("NN", False), (".", False),
        ("b-X", False), ("BI-X", False),
    ],
)  # fmt: skip
def test_labels_of_chunks(label: str, chunk: bool) -> None:
    """A chunk label is O or a known tag, with a type after a hyphen."""
    assert is_chunk_label(label) is chunk


@pytest.mark.parametrize(
    ("labels", "chunks"),
    [
        (["B-X"], True), (["O", "I-X"], True), (["B", "O"], True), (["I", "O"], True), (["B", "I"], True),
        (["O"], False), ([], False), (["B"], False), (["I"], False), (["E", "O"], False), (["S", "E"], False),
        (["B-X", "NN"], False), (["B-X", "B-"], False), (["B-X", "B"], True),
    ],
)  # fmt: skip
def test_label_sets_with_chunks_are_recognised(labels: list[str], chunks: bool) -> None:
    """Chunks are detected by a type, or by B or I together with O or each other. Any other label rules them out."""
    assert has_chunks(labels) is chunks
    assert has_chunks(iter(labels * 2)) is chunks


@pytest.mark.parametrize(
    ("name", "scheme"),
    [
        ("BIO", "IOB2"), ("bio2", "IOB2"), ("iob", "IOB1"), ("ioe", "IOE2"), ("BIOES", "IOBES"), ("bioul", "BILOU"),
        *((s, s) for s in SCHEMES), *((s.lower(), s) for s in SCHEMES),
    ],
)  # fmt: skip
def test_names_of_schemes(name: str, scheme: str) -> None:
    """Aliases and lower-case names are accepted wherever a scheme is named."""
    assert scheme_name(name) == scheme
    chunks = [Span("X", 0, 2), Span("X", 2, 3), Span("Y", 4, 5)]
    labels = written(chunks, 6, scheme)
    assert from_spans(chunks, 6, name) == labels
    assert convert(labels, name, name) == labels
    assert allowed(alphabet(scheme), name) == allowed(alphabet(scheme), scheme)


def test_labels_are_split_at_the_first_hyphen() -> None:
    """A label consists of tag and type. Without a hyphen the type is empty."""
    assert [split_label(y) for y in ("O", "B-X", "B-a-b", "B-", "-LRB-", "")] == [
        ("O", ""), ("B", "X"), ("B", "a-b"), ("B", ""), ("", "LRB-"), ("", ""),
    ]  # fmt: skip


def test_invalid_labels_and_chunks_are_rejected() -> None:
    """The error names the token, the label and the scheme. Chunks must be in order and inside the sentence."""
    with pytest.raises(
        CorpusError,
        match=r"unknown label scheme 'IOX'\. Use one of IOB2, IOE2, IOBES, BILOU",
    ):
        scheme_name("IOX")
    with pytest.raises(CorpusError, match=r"token 1: 'E-X' is not a label of IOB2\..*Name the right scheme"):
        spans(["B-X", "E-X"], "bio")
    with pytest.raises(CorpusError, match=r"token 2: label 'Q-X' does not belong to a chunk scheme\."):
        spans(["O", "O", "Q-X"])
    with pytest.raises(CorpusError, match=r"token 1: label 'B-' does not belong to a chunk scheme\."):
        convert(["B-X", "B-"], None, "IOB2")
    for chunks in (
        [("X", 0, 2), ("Y", 1, 3)],
        [("X", 2, 4), ("X", 0, 1)],
        [("X", 1, 1)],
        [("X", -1, 1)],
        [("X", 2, 5)],
    ):
        with pytest.raises(
            CorpusError,
            match=r"chunk [XY] from -?\d to \d overlaps another one or is not inside the 4 tokens",
        ):
            from_spans(chunks, 4, "IOB2")
    with pytest.raises(CorpusError, match=r"chunk \(no type\) from 3 to 2"):
        from_spans([("", 3, 2)], 4, "IOBES")

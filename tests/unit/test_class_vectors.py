"""Word classes from word vectors: files of several programs, arrays, invalid input, clusters."""

from __future__ import annotations

import bz2
import gzip
import lzma
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tagwise as tw
from tagwise.exceptions import CorpusError, ParameterError
from tagwise.features.class_vectors import read as read_vectors

WORDS = ["Rome", "Oslo", "Monday", "Friday", "1984"]
VALUES = np.array([[1, 0, 0], [0.9, 0.1, 0], [0, 1, 0], [0.1, 0.9, 0], [0, 0, 1]], dtype=np.float32)


def test_vectors_of_every_kind_give_the_same_classes(tmp_path: Path) -> None:
    lines = [" ".join([w, *(repr(float(x)) for x in row)]) for w, row in zip(WORDS, VALUES)]
    names = ("glove.txt", "w2v.txt", "tabs.txt", "w2v.bin", "packed.bin", "array.npy")
    glove, word2vec, tabs, binary, packed, array = (tmp_path / name for name in names)
    glove.write_text("\n".join(lines) + "\n")
    word2vec.write_text("5 3\n" + "\n".join(lines) + "\n")
    tabs.write_text("\n".join(lines).replace(" ", "\t") + "\n")
    np.save(array, VALUES)
    rows = [w.encode() + b" " + struct.pack("<3f", *row) for w, row in zip(WORDS, VALUES)]
    binary.write_bytes(b"5 3\n" + b"\n".join(rows) + b"\n")
    packed.write_bytes(b"5 3\n" + b"".join(rows))
    compressed = []
    for i, module in enumerate((gzip, lzma, bz2)):
        compressed.append(tmp_path / f"compressed{i}")
        compressed[-1].write_bytes(module.compress(binary.read_bytes()))
    found = [
        tw.WordClasses.from_vectors(*source, classes=3)
        for source in (
            *((path,) for path in compressed),
            (glove,),
            (str(word2vec),),
            (binary,),
            (packed,),
            (tabs,),
            (array, WORDS),
            (dict(zip(WORDS, VALUES)),),
            (VALUES, WORDS),
        )
    ]
    assert all(one == found[0] for one in found)
    assert found[0]["Rome"] == found[0]["Oslo"] != found[0]["Friday"] == found[0]["Monday"]
    assert found[0]["2001"] not in (found[0]["Rome"], found[0]["Monday"])


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "0 vectors"),
        (b"a 1 2\nb 1\n", "line 2 has 1 numbers, expected 2"),
        (b"a 1 x\n", "line 1 has a value that is not a number"),
        (b"\xff 1 2\n", "word 0 .* is not UTF-8"),
        (b"2 3\na " + struct.pack("<3f", 1, 2, 3) + b"b " + b"\0" * 5, "vector 1 .* is incomplete"),
        (b"a 1 2\nb 1 2 3\n", "line 2 has 3 numbers, expected 2"),
        (b"2 2\na 1\nb 1 2\n", "line 2 has 1 numbers, expected 2"),
        (b"3 2\na 1 2\nb 1 2\n", "has 2 vectors, its first line says 3"),
        (b"1 3\na " + struct.pack("<3f", 1, 2, 3) + b"b " + b"\0" * 12, "does not end after 1 vectors"),
        (b"x 1 2\na nan 1\nb 1 2\n", "the vector of 'a' has numbers that are not finite"),
        (b"a 1e39 1\nb 1 2\n", "the vector of 'a' has numbers that are not finite"),
        (b"a 0 0\nb 0 0\n", "vectors of 0 words"),
        (gzip.compress(b"a 1 2\n" * 9, mtime=0)[:20], "ended before"),
        (b"\x93NUMPY\1\0", "version|EOF|expected"),
    ],
)
def test_damaged_vectors_are_refused(tmp_path: Path, content: bytes, message: str) -> None:
    (tmp_path / "v").write_bytes(content)
    with pytest.raises(CorpusError, match=message):
        tw.WordClasses.from_vectors(tmp_path / "v", classes=2)


def test_k_means_fills_every_cluster() -> None:
    same = {f"w{chr(97 + i)}": [1.0, 0.0] for i in range(6)} | {"x": [0.0, 1.0]}
    found = tw.WordClasses.from_vectors(same, classes=4)
    assert all(found.members(path) for path in found.paths)
    assert read_vectors({"a": [1, 2]}, None)[0] == ["a"]
    with pytest.raises(ParameterError, match="7 words"):
        tw.WordClasses.from_vectors(same, classes=8)


def test_a_word_of_glove_may_contain_spaces(tmp_path: Path) -> None:
    (tmp_path / "v").write_text("a 1 2\nat name@domain.com 3 4\n. . . 5 6\n")
    assert read_vectors(tmp_path / "v", None)[0] == ["a", "at name@domain.com", ". . ."]


@pytest.mark.parametrize(
    ("source", "words", "message"),
    [
        ({}, None, "shape"),
        ({"a": [1, 2, 3], "b": [1]}, None, "the vector of 'b' has the shape"),
        ({"a": ["x"], "b": ["y"]}, None, "Give one row of numbers per word"),
        ({1: [1.0, 2.0], 2: [2.0, 1.0]}, None, "1 is not a word"),
        ({"a\ud800": [1.0, 0.0], "b": [0.0, 1.0]}, None, "is not a word"),
        (VALUES, WORDS[:2], "5 vectors for 2 words"),
        (VALUES.astype(complex), WORDS, "Give one row of numbers per word"),
    ],
)
def test_vectors_that_are_not_vectors_are_refused(source: Any, words: Any, message: str) -> None:
    with pytest.raises(CorpusError, match=message):
        tw.WordClasses.from_vectors(source, words, classes=2)


def test_the_number_of_classes_follows_the_words() -> None:
    draw = np.random.default_rng(0)
    names = [f"{a}{b}" for a in "abcdefghij" for b in "abcdefghij"]
    assert len(tw.WordClasses.from_vectors(draw.normal(size=(100, 4)), names)) == 30

"""Synthetic sentences (public domain), and a feature function, a kernel and a cost that model files import by path.

Golden model files were trained on these sentences and name these functions: none of it may change.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

import tagwise as tw
from tagwise.scores.kernels import TokenMatrix

#: word/part of speech/label, one line per sentence, an empty line before each document.
TEXT = """
Dr/N/O Ada/N/B-PER Moss/N/I-PER met/V/O Lund/N/B-PER
Lund/N/B-PER left/V/O for/P/O New/A/B-LOC Oslo/N/I-LOC
she/R/O likes/V/O Oslo/N/B-LOC ././O

in/P/O Lund/N/B-LOC it/R/O rained/V/O ././O
Ada/N/B-PER stayed/V/O in/P/O Lund/N/B-LOC
the/D/O new/A/O house/N/O was/V/O cold/A/O

Oslo/N/B-LOC is/V/O cold/A/O
Mr/N/O Moss/N/B-PER likes/V/O the/D/O house/N/O
they/R/O met/V/O in/P/O Oslo/N/B-LOC Ada/N/B-PER said/V/O
Moss/N/B-PER

it/R/O was/V/O New/A/B-LOC Lund/N/I-LOC ././O
Ada/N/B-PER Lund/N/I-PER left/V/O
"""
#: Test sentences: known words in other places, and unknown words.
TEST_TEXT = """
Ada/N/B-PER met/V/O Mr/N/O Lund/N/B-PER in/P/O New/A/B-LOC Oslo/N/I-LOC ././O
Lund/N/B-PER was/V/O cold/A/O

Zoë/N/B-PER Bergmann/N/I-PER likes/V/O the/D/O new/A/O Oslo/N/B-LOC
Moss/N/B-PER
"""


def _parsed(text: str) -> tw.Corpus:
    sentences = []
    for number, document in enumerate(text.strip().split("\n\n")):
        for i, line in enumerate(document.split("\n")):
            word, pos, label = zip(*(token.rsplit("/", 2) for token in line.split()))
            fields = {"word": list(word), "pos tag": list(pos), "label": list(label)}
            sentences.append(tw.Sentence(fields, "label", doc=f"d{number}" if i == 0 else None))
    return tw.Corpus(sentences)


TRAIN, TEST = _parsed(TEXT), _parsed(TEST_TEXT)
LABELS = [list(sentence.fields["label"]) for sentence in TRAIN]

#: Replacement labels with characters that could confuse files, shells and separators.
ODD = {"O": "", "B-PER": "Ö b", "I-PER": "·|_", "B-LOC": "名" * 40, "I-LOC": "I-LOC."}
#: The labels as numbers and booleans.
TYPED: dict[str, dict[str, Any]] = {
    "int": {"O": 0, "B-PER": 7, "I-PER": -3, "B-LOC": 12, "I-LOC": 5},
    "float": {"O": 0.0, "B-PER": 0.1, "I-PER": -2.5, "B-LOC": 1e300, "I-LOC": 3.0},
    "bool": {"O": False, "B-PER": True, "I-PER": True, "B-LOC": True, "I-LOC": True},
}


def words(corpus: tw.Corpus) -> list[list[str]]:
    """Return the tokens only."""
    return [list(sentence.fields["word"]) for sentence in corpus]


def shapes(sentence: Any) -> list[Any]:
    """Return attributes with and without values, one of them the empty text (a feature function)."""
    tokens = list(sentence.fields["word"] if hasattr(sentence, "fields") else sentence)
    out: list[Any] = []
    for t, word in enumerate(tokens):
        found = {"w=" + word: 1.0, "length": len(word) / 8, "": 0.5}
        if t:
            found["before=" + tokens[t - 1]] = -0.25
        out.append(found)
    return out


def attributes(corpus: tw.Corpus) -> list[list[Any]]:
    """Return sentences as attributes: lists, pairs with values, dicts with numbers, texts and booleans."""
    out: list[list[Any]] = []
    for sentence in words(corpus):
        rows: list[Any] = []
        for t, word in enumerate(sentence):
            if t % 3 == 0:
                rows.append([f"w={word}", ("length", len(word) / 4), "", "Ä ö:é\t=", "long" * 60])
            elif t % 3 == 1:
                rows.append([f"w={word}", "second"])
            else:
                rows.append({"w": word, "title": word.istitle(), "length": len(word) / 4, "naïve": -1.5})
        out.append(rows)
    return out


def arrays(corpus: tw.Corpus) -> list[NDArray[np.float32]]:
    """Return sentences as vectors of three numbers per token: length, letters, whether it is title case."""
    return [
        np.array([[len(w) / 8, sum(map(ord, w)) % 7 / 7, w.istitle()] for w in sentence], dtype=np.float32)
        for sentence in words(corpus)
    ]


def misses(gold: list[str], found: list[str]) -> float:
    """Return a custom cost in which misses count twice."""
    return float(sum((a != b) * (2 if b == "O" else 1) for a, b in zip(gold, found, strict=True)))


def cosine(a: TokenMatrix, b: TokenMatrix) -> NDArray[np.float64]:
    """Return a custom kernel: the cosine of two tokens' attributes, plus a constant."""
    norms = np.sqrt(np.outer(a.squares(), b.squares()))
    return a.dots(b) / np.where(norms == 0.0, 1.0, norms) + 0.125


#: Functions to pass to `load` for the names in files.
FUNCTIONS = {"shapes": shapes, "cosine": cosine, "misses": misses}

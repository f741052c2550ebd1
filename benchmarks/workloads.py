"""The three fixed workloads of all speed figures, with the same attribute lists for every tagger.

chunk   conll2000 with the chunking attributes of CRFsuite (words, POS, bigrams and trigrams, window of two)
ner     conll2002-es: words, POS, shapes, affixes
pos     ptb-sample: words, affixes, shapes, where the first 3,400 sentences are for training

The corpora may not be bundled. They are read from the folder that TAGWISE_DATA names.
"""

from __future__ import annotations

import gzip
import os
import re
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

Rows = list[list[str]]  # tokens of one sentence, each a list of columns
Attributes = list[list[str]]  # tokens of one sentence, each a list of attributes


class Peer(NamedTuple):
    """Results of python-crfsuite 0.9.12 (lbfgs, c2=1.0, max_iterations=1000) on the training part."""

    features: int
    loss: float
    iterations: int


class NoData(Exception):
    """Raised if the corpora of the benchmarks are missing."""


PEER = {
    "chunk": Peer(452_755, 13139.36, 166),
    "ner": Peer(419_035, 7309.38, 280),
    "pos": Peer(170_792, 10708.03, 132),
}
_FILES = {
    ("chunk", "train"): "conll2000/train.txt.gz",
    ("chunk", "test"): "conll2000/test.txt.gz",
    ("ner", "train"): "conll2002-es/train.txt.gz",
    ("ner", "test"): "conll2002-es/testb.txt.gz",
    ("pos", "train"): "ptb-sample/all.txt.gz",
    ("pos", "test"): "ptb-sample/all.txt.gz",
}
_POS_TRAIN = 3400


def data_folder() -> Path:
    """Return the folder of TAGWISE_DATA or raise NoData."""
    folder = os.environ.get("TAGWISE_DATA")
    if not folder or not Path(folder).is_dir():
        found = "is not set" if not folder else f"names {folder!r}, which is not a folder"
        raise NoData(
            f"TAGWISE_DATA {found}. Set it to the folder with conll2000, conll2002-es and ptb-sample"
        )
    return Path(folder)


def read_rows(path: Path) -> list[Rows]:
    """Read the sentences of a gz file with tab-separated columns and blank lines between sentences."""
    if not path.is_file():
        raise NoData(f"{path.name} is missing from {path.parent.name} in TAGWISE_DATA")
    with gzip.open(path, "rt", encoding="utf-8") as file:
        blocks = file.read().split("\n\n")
    return [[line.split("\t") for line in block.split("\n") if line] for block in blocks if block.strip("\n")]


def _ends(t: int, length: int) -> list[str]:
    return (["__BOS__"] if t == 0 else []) + (["__EOS__"] if t == length - 1 else [])


def _bigrams(word: list[str], t: int) -> list[str]:
    before = [f"w[-1]|w[0]={word[t - 1]}|{word[t]}"] if t > 0 else []
    after = [f"w[0]|w[1]={word[t]}|{word[t + 1]}"] if t + 1 < len(word) else []
    return before + after


def _window(t: int, length: int) -> range:
    """Return the offsets -2..2 that stay inside the sentence."""
    return range(max(-2, -t), min(3, length - t))


def chunk(sentence: Rows) -> Attributes:
    """Return words and POS in a window of two, word bigrams at the token, POS n-grams up to three, without padding."""
    word, pos = [r[0] for r in sentence], [r[1] for r in sentence]
    n, out = len(sentence), []
    for t in range(n):
        a = [f"w[{o}]={word[t + o]}" for o in _window(t, n)] + _bigrams(word, t)
        for size in (1, 2, 3):
            for o in range(-2, 4 - size):
                if t + o >= 0 and t + o + size <= n:
                    name = "|".join(f"pos[{o + i}]" for i in range(size))
                    a.append(f"{name}={'|'.join(pos[t + o : t + o + size])}")
        out.append(a + _ends(t, n))
    return out


@lru_cache(maxsize=1 << 17)
def _shape(word: str) -> str:
    s = re.sub("[A-ZÁÉÍÓÚÑÜ]", "A", word)
    s = re.sub("[a-záéíóúñü]", "a", s)
    return re.sub("[0-9]", "0", s)


@lru_cache(maxsize=1 << 17)
def _short(word: str) -> str:
    return re.sub(r"(.)\1+", r"\1", _shape(word))


def _affixes(word: str) -> list[str]:
    return [x for n in range(1, 5) if len(word) >= n for x in (f"p{n}={word[:n]}", f"s{n}={word[-n:]}")]


def ner(sentence: Rows) -> Attributes:
    """Return lower-cased words, POS and collapsed shapes in a window of two, affixes, shape, word bigrams."""
    word, pos = [r[0] for r in sentence], [r[1] for r in sentence]
    n, out = len(sentence), []
    for t in range(n):
        a = ["bias"]
        for o in _window(t, n):
            w = word[t + o]
            a += [f"w[{o}]={w.lower()}", f"pos[{o}]={pos[t + o]}", f"ss[{o}]={_short(w)}"]
        a += [*_affixes(word[t]), "sh=" + _shape(word[t]), *_bigrams(word, t)]
        out.append(a + _ends(t, n))
    return out


def pos(sentence: Rows) -> Attributes:
    """Return words in a window of two, affixes, collapsed shape, last three letters of the neighbours."""
    word = [r[0] for r in sentence]
    n, out = len(sentence), []
    for t in range(n):
        a = ["bias"] + [f"w[{o}]={word[t + o]}" for o in _window(t, n)]
        a += [*_affixes(word[t]), "sh=" + _short(word[t])]
        if t > 0:
            a.append("s3[-1]=" + word[t - 1][-3:])
        if t + 1 < n:
            a.append("s3[1]=" + word[t + 1][-3:])
        out.append(a + _ends(t, n))
    return out


ATTRIBUTES: dict[str, Callable[[Rows], Attributes]] = {"chunk": chunk, "ner": ner, "pos": pos}


def sentences(name: str, part: str = "train") -> list[Rows]:
    """Return the sentences of a workload before attribute extraction."""
    rows = read_rows(data_folder() / _FILES[name, part])
    if name == "pos":
        return rows[:_POS_TRAIN] if part == "train" else rows[_POS_TRAIN:]
    return rows


def workload(name: str, part: str = "train") -> tuple[list[Attributes], list[list[str]]]:
    """Return (X, y): attribute strings of tokens of sentences, and labels of sentences."""
    rows = sentences(name, part)
    return [ATTRIBUTES[name](s) for s in rows], [[r[-1] for r in s] for s in rows]

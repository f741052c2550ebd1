"""Every reader, given damaged files, returns a corpus or raises CorpusError: 10,000 mutations each."""

from __future__ import annotations

import gzip
import io
import random

import pytest

from tagwise import corpus as tc
from tagwise.errors import CorpusError

from ..corpora import CONLL, CONLL_TEXT, CONLLU, JSONL

MUTATIONS = 10_000
READERS = {
    "conll": (tc.read_conll, [CONLL, CONLL_TEXT]),
    "conllu": (tc.read_conllu, [CONLLU]),
    "jsonl": (tc.read_jsonl, [JSONL, '["a", "b"]\n["c"]\n']),
    "text": (tc.read_text, ["a b c\nd e\n\nf\n"]),
}
ODD = [
    *[b"\0", b"\r", b"\n", b"\r\n", b"\t", b" ", b"\n\n\n", b"\x1c", b"\x85", b"\xe2\x80\xa8"],
    *[
        b"\xff",
        b"\xc3",
        b"\xed\xa0\x80",
        b"\xef\xbb\xbf",
        b"\x1f\x8b",
        b"9" * 30,
        b"1-2\t",
        b"1.1",
        b"-",
        b"_",
    ],
    *[b"#", b"# newdoc\n", b"-DOCSTART-", b'"', b"{", b"]", b"\\ud800", b"1e999", b"null"],
]


def mutated(rng: random.Random, data: bytes) -> bytes:
    """A valid file after one to four random damages."""
    for _ in range(rng.randint(1, 4)):
        i = rng.randrange(len(data) + 1)
        j = min(len(data), i + rng.randrange(8))
        kind = rng.randrange(6)
        if kind == 0:
            data = data[:i] + bytes([rng.randrange(256)]) + data[i + 1 :]
        elif kind == 1:
            data = data[:i] + rng.choice(ODD) + data[i:]
        elif kind == 2:
            data = data[:i] + data[j:]
        elif kind == 3:
            data = data[:i]
        elif kind == 4:
            data = data[:j] + data[i:]
        else:
            data = data[:i] + rng.choice(ODD) + data[j:]
    return data


@pytest.mark.parametrize("format", READERS)
def test_random_damage_gives_a_corpus_or_a_typed_error(format: str) -> None:
    read, texts = READERS[format]
    rng = random.Random(f"tagwise {format}")
    outcomes = {"read": 0, "refused": 0}  # refused with the name of the file
    for n in range(MUTATIONS):
        data = rng.choice(texts).encode()
        packed = n % 10 == 0
        data = mutated(rng, gzip.compress(data, mtime=0) if packed else data)
        for reader in (read, tc.read):
            try:
                c = reader(io.BytesIO(data))  # type: ignore[operator]
            except CorpusError as e:
                outcomes["refused"] += str(e).startswith("<stream>")
            else:
                outcomes["read"] += 1
                out = io.BytesIO()
                tc.write_jsonl(c, out)  # what was read is sound enough to be written and read again
                assert tc.read_jsonl(io.BytesIO(out.getvalue())).tokens == c.tokens
    assert sum(outcomes.values()) == 2 * MUTATIONS
    assert min(outcomes.values()) > 100


def test_what_is_read_can_be_written_back() -> None:
    rng = random.Random(11)
    for _ in range(500):
        try:
            c = tc.read_conll(io.BytesIO(mutated(rng, CONLL_TEXT.encode())), separator="\t", comments=False)
        except CorpusError:
            continue
        out = io.BytesIO()
        tc.write_conll(c, out)
        again = tc.read_conll(io.BytesIO(out.getvalue()), c.columns or None, separator="\t", comments=False)
        assert again == c

"""Damaged corpora and templates, each drawn from a seed, and the laws they must obey."""

from __future__ import annotations

import gzip
import io
import random

import tagwise as tw
from tagwise import _core
from tagwise.base.exceptions import CorpusError, TemplateError

from ..corpora import CONLL, CONLL_TEXT, CONLLU, JSONL, SPANS

TEXTS = {
    "conll": [CONLL, CONLL_TEXT],
    "conllu": [CONLLU],
    "jsonl": [JSONL, '["a", "b"]\n["c"]\n'],
    "text": ["a b c\nd e\n\nf\n"],
    "spans": [SPANS],
    "raw": ["A dog. It\u2019s here \U0001f44d\U0001f3fd!\n\nhttps://a.b\n"],
}
ODD = [
    *[b"\0", b"\r", b"\n", b"\r\n", b"\t", b" ", b"\n\n\n", b"\x1c", b"\x85", b"\xe2\x80\xa8"],
    *[b"\xff", b"\xc3", b"\xed\xa0\x80", b"\xef\xbb\xbf", b"\x1f\x8b", b"9" * 30, b"1-2\t", b"1.1", b"-", b"_"],
    *[b"#", b"# newdoc\n", b"-DOCSTART-", b'"', b"{", b"]", b"\\ud800", b"1e999", b"null"],
]  # fmt: skip


def mutated(rng: random.Random, data: bytes) -> bytes:
    """Return a valid file after one to four random damages."""
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


def damaged(rng: random.Random, format: str) -> bytes:
    """Return a damaged file of a format. One in ten is compressed before the damage."""
    data = rng.choice(TEXTS[format]).encode()
    return mutated(rng, gzip.compress(data, mtime=0) if rng.random() < 0.1 else data)


def read_damaged(rng: random.Random, format: str) -> str:
    """Return "read" or "refused", and raise anything else. Sentences that were read survive a round trip."""
    name = rng.choice((format, None))
    try:
        corpus = tw.read(io.BytesIO(damaged(rng, format)), name)
    except CorpusError as error:
        return "refused" if str(error).startswith("<stream>") else f"refused without its name: {error}"
    out = io.BytesIO()
    tw.write(corpus, out, "jsonl")
    assert tw.read(io.BytesIO(out.getvalue()), "jsonl").tokens == corpus.tokens
    return "read"


TEMPLATES = (
    "word[-1..1]\nword[0].prefix(1..4)\n",
    "word[0].lower & word[1].shape\nword[0].is_capitalized?\nedge: word[0]\n",
    'word[-2,0].matches("[0-9]+")?\npos[0..1].suffix(3)\nword[0].in_list("names")?\n',
    "U00:%x[-1,0]\nU01:%x[0,0]/%x[1,1]\nB\n",
)
PARTS = (
    b"..", b"[", b"]", b"(", b")", b"&", b"?", b"word", b"-9223372036854775808", b"9" * 25, b",", b"edge:", b"%x[",
    b"\n",
)  # fmt: skip


def parse_damaged(rng: random.Random) -> str:
    """Return "read" or "refused" for damaged templates. Accepted ones must render."""
    text = bytes(rng.choice(TEMPLATES), "utf-8")
    for _ in range(rng.randint(1, 4)):
        i = rng.randrange(len(text) + 1)
        text = text[:i] + rng.choice(PARTS) + text[i + rng.randrange(4) :]
    text = mutated(rng, text) if rng.random() < 0.3 else text
    try:
        template = _core.Template(text.decode("utf-8", "replace"), ["word", "pos"])
    except TemplateError:
        return "refused"
    template.render([["a", "B", "c1"], ["X", "Y", "Z"]])
    return "read"


#: Trials by name. Each takes a generator.
TRIALS = {
    **{name: lambda rng, name=name: read_damaged(rng, name) for name in TEXTS},
    "template": parse_damaged,
}

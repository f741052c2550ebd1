"""Limits of decompression and of sentence length, and errors that give their name and value."""

from __future__ import annotations

import bz2
import gzip
import io
import itertools
import lzma
import re
import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import tagwise as tw
import tagwise.corpus.streams as streams
from tagwise.base.exceptions import CorpusError
from tagwise.corpus.formats import open_sentences

LINES = b"abcdefgh " * 1000 + b"\n"
PACKERS: dict[str, Callable[[bytes], bytes]] = {"gz": gzip.compress, "xz": lzma.compress, "bz2": bz2.compress}


class Endless(io.RawIOBase):
    """An endless stream that counts the bytes read from it."""

    def __init__(self, start: str, piece: str) -> None:
        self.start, self.piece, self.taken = start.encode(), piece.encode(), 0

    def read(self, size: int = -1) -> bytes:
        data, self.start = self.start, b""
        data += self.piece * (1 + size // len(self.piece))
        self.taken += len(data)
        return data


def consumed(file: Any, format: str | None = None) -> int:
    """Count the sentences without keeping them."""
    return sum(1 for _ in open_sentences(file, format)[1])


@pytest.mark.parametrize("packed", PACKERS)
def test_decompression_bombs_are_rejected(
    tmp_path: Path, packed: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The error names the file, both sizes and the limit, in bounded memory."""
    path = tmp_path / f"bomb.{packed}"
    monkeypatch.setattr(streams, "FREE", 1 << 22)
    path.write_bytes(PACKERS[packed](LINES * 50) * 60)  # 27 MB of text
    assert path.stat().st_size < 100_000
    tracemalloc.start()
    try:
        with pytest.raises(CorpusError, match=r"bomb\.\w+:\d+: .* more than 200 times as many") as found:
            for _ in streams.byte_chunks(str(path), str(path)):
                pass
        assert tracemalloc.get_traced_memory()[1] < 10_000_000
    finally:
        tracemalloc.stop()
    text, taken = (
        int(n.replace(",", "")) for n in re.findall(r"([\d,]+) (?:bytes|compressed)", str(found.value))
    )
    assert text > 200 * taken
    assert text < streams.FREE + 2 * streams.CHUNK + 200 * 2 * streams.CHUNK


def test_expansion_limit_is_configurable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A repetitive file is read if the environment allows it. Short files are always read."""
    monkeypatch.setattr(streams, "FREE", 1 << 20)
    path = tmp_path / "again.txt.gz"
    path.write_bytes(gzip.compress(LINES * 400))
    with pytest.raises(CorpusError, match="TAGWISE_MAX_EXPANSION=TIMES"):
        tw.read(path, "text")
    monkeypatch.setenv("TAGWISE_MAX_EXPANSION", "1500")
    assert len(tw.read(path, "text")) == 400
    monkeypatch.delenv("TAGWISE_MAX_EXPANSION")
    monkeypatch.setattr(streams, "FREE", 1 << 23)
    assert len(tw.read(path, "text")) == 400


def test_ordinary_compressed_files_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """Plain text never counts as expanded, and a corpus expands far less than the limit."""
    monkeypatch.setattr(streams, "FREE", 0)
    words = tw.load_corpus("ewt-pos")[2]
    assert words is not None
    text = "".join(" ".join(sentence.tokens) + "\n" for sentence in words[:300]).encode()
    for pack in (bytes, *PACKERS.values()):
        assert consumed(io.BytesIO(pack(text)), "text") == 300
        assert len(text) < 20 * len(pack(text))


ENDLESS = {
    "text": ("", "word "),
    "conll": ("", "word O\n"),
    "conllu": ("", "1\ta\ta\tX\t_\t_\t0\troot\t_\t_\n"),
    "jsonl": ('{"tokens": [', '"a", '),
}


@pytest.mark.parametrize("format", ENDLESS)
@pytest.mark.parametrize("most", [1 << 20, 3 << 20])
def test_endless_sentences_are_rejected(monkeypatch: pytest.MonkeyPatch, format: str, most: int) -> None:
    """A sentence without end is refused near the limit, which the error names, in bounded memory."""
    monkeypatch.setenv("TAGWISE_MAX_SENTENCE", str(most))
    source = Endless(*ENDLESS[format])
    tracemalloc.start()
    try:
        with pytest.raises(
            CorpusError, match=rf"<stream>:1: .* more than {most:,} bytes\. .*TAGWISE_MAX_SENTENCE"
        ):
            consumed(source, format)
        assert tracemalloc.get_traced_memory()[1] < 6 * most + 12 * streams.CHUNK
    finally:
        tracemalloc.stop()
    assert source.taken <= most + 3 * streams.CHUNK


@pytest.mark.parametrize("format", ["conll", "conllu"])
@pytest.mark.parametrize("comments", ["# note\tx\n", "# note\n\n", "# note\n"])
def test_endless_comments_are_rejected(monkeypatch: pytest.MonkeyPatch, format: str, comments: str) -> None:
    """Comments without a sentence are bounded too, even with blank lines between them."""
    monkeypatch.setenv("TAGWISE_MAX_SENTENCE", str(1 << 19))
    source = Endless("a\tb\tX\n\n" if format == "conll" else "", comments)
    with pytest.raises(CorpusError, match=r"<stream>:\d+: "):
        consumed(source, format)
    assert source.taken <= 8 * streams.CHUNK


def test_endless_blank_lines_are_rejected(monkeypatch: pytest.MonkeyPatch) -> None:
    """An endless stream without any token is refused as well."""
    monkeypatch.setenv("TAGWISE_MAX_SENTENCE", str(1 << 20))
    with pytest.raises(CorpusError, match="more than 1,048,576 bytes"):
        consumed(Endless("", "\n"), "conll")


def test_sentences_below_the_limit_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sentences below the limit are read, whatever the number of chunks they arrive in."""
    monkeypatch.setenv("TAGWISE_MAX_SENTENCE", str(1 << 20))
    n = 130_000

    def sentences(format: str) -> Iterator[int]:
        text = "word O\n" * n + "\n" if format == "conll" else "word " * n + "\n"
        return (len(s) for s in open_sentences(io.StringIO(text * 2), format)[1])

    for format in ("conll", "text"):
        assert list(sentences(format)) == [n, n]


@pytest.mark.parametrize("value", ["0", "-1", "many", "1e6", "²"])
@pytest.mark.parametrize("variable", streams.LIMITS)
def test_non_numeric_limits_are_rejected(monkeypatch: pytest.MonkeyPatch, variable: str, value: str) -> None:
    """Any other value of the variables is reported."""
    monkeypatch.setenv(variable, value)
    with pytest.raises(CorpusError, match=f"{variable}='{value}' is not a valid limit"):
        consumed(io.StringIO("a b\n"))


def test_many_comments_before_a_sentence_take_linear_time() -> None:
    """Each comment is removed once, without copying the rest of the sentence."""
    comments = [f"# {i}" for i in range(100_000)]
    (sentence,) = open_sentences(
        io.StringIO("\n".join(itertools.chain(comments, ["1\ta\ta\tX\t_\t_\t0\troot\t_\t_"])) + "\n"),
        "conllu",
    )[1]
    assert list(sentence.comments) == comments

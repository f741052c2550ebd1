"""Byte streams: errors with name and line number, streams with short reads, atomic output."""

from __future__ import annotations

import bz2
import errno
import gzip
import io
import lzma
import os
import random
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tagwise.base.exceptions import CorpusError
from tagwise.corpus.streams import (
    byte_chunks,
    check_encoding,
    open_text,
    source_name,
    text_chunks,
    writer,
)

TEXT = "der Hund\nüber\n\nBBB\n"


class Trickle(io.RawIOBase):
    """A stream that returns a few bytes at a time, as pipes may."""

    def __init__(self, data: bytes, size: int) -> None:
        self.data, self.size = data, size

    def read(self, size: int = -1) -> bytes:
        part, self.data = self.data[: self.size], self.data[self.size :]
        return part


@pytest.mark.parametrize("size", [1, 2, 7, 10, 1000])
@pytest.mark.parametrize(
    "pack", [bytes, gzip.compress, lzma.compress, bz2.compress], ids=lambda f: f.__name__
)
def test_compression_is_detected_with_short_reads(pack: Callable[[bytes], bytes], size: int) -> None:
    """The first bytes identify the compression, even if a pipe returns one at a time."""
    name, chunks = open_text(Trickle(pack(TEXT.encode()), size))
    assert name == "<stream>"
    assert "".join(chunks) == TEXT


@pytest.mark.parametrize("text", ["B", "BZ", "BZh", "BZh9 is no archive\n", "\x1f", "\x1f\n"])
def test_partial_magic_numbers_are_text(text: str) -> None:
    """One or three letters of a magic number are not an archive."""
    assert "".join(open_text(io.BytesIO(text.encode()))[1]) == text.rstrip("\n") + "\n"


@pytest.mark.parametrize("cut", [12, 30, -4])
@pytest.mark.parametrize("pack", [gzip.compress, lzma.compress, bz2.compress], ids=lambda f: f.__name__)
def test_truncated_archives_are_reported(pack: Callable[[bytes], bytes], cut: int) -> None:
    """The error gives the file, the approximate line number and the remedy."""
    data = pack(random.Random(0).randbytes(50).hex().encode() * 10)
    with pytest.raises(
        CorpusError, match=r"<stream>:1: reading failed near this line .*truncated or damaged"
    ):
        list(byte_chunks(io.BytesIO(data[:cut]), "<stream>"))


def test_damaged_archives_are_reported_by_line() -> None:
    """Lines are counted up to the last readable one."""
    draw = random.Random(0)
    lines = b"".join(b"%d %s\n" % (i, draw.randbytes(40).hex().encode()) for i in range(20000))
    data = gzip.compress(lines)
    with pytest.raises(CorpusError, match=r"x\.gz:\d{4,}: reading failed near this line"):
        list(byte_chunks(io.BytesIO(data[: len(data) // 2]), "x.gz"))


def test_text_streams_are_checked_too() -> None:
    """A lone surrogate and a wrong encoding are reported by line. A string stream ignores `encoding`."""
    with pytest.raises(CorpusError, match=r"<stream>:2: a character that is not Unicode .*binary mode"):
        list(open_text(io.StringIO("a\nb\ud800\n"))[1])
    latin = io.TextIOWrapper(io.BytesIO("ä\n".encode("latin-1")), encoding="utf-8")
    with pytest.raises(
        CorpusError, match=r":1: not valid utf-8 \(invalid continuation byte\)|invalid start|unexpected"
    ):
        list(open_text(latin)[1])
    assert list(open_text(io.StringIO("ä\n"), "latin-1")[1]) == ["ä\n"]


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"a\nb\n\xff\n", r"n:3: not valid UTF-8 \(byte 0xff\)\. Pass the encoding of the file"),
        (b"\xff\xfea\n", r"n:1: not valid UTF-8 \(byte 0xff\)"),
        (b"a\n\0\n", r"n:2: a NUL byte\. The file is binary or damaged, or UTF-16 without"),
        (b"a\nb\rc\n", r"n:2: a carriage return inside a line\. End lines with"),
    ],
)
def test_undecodable_bytes_are_reported_by_line(data: bytes, message: str) -> None:
    """The error gives line number, byte, probable encoding and remedy, for one chunk or many."""
    for size in (1, 2, 100):
        with pytest.raises(CorpusError, match=message):
            list(text_chunks(iter([data[i : i + size] for i in range(0, len(data), size)]), "n"))


def test_codecs_without_error_positions() -> None:
    """Not every codec reports the offending byte."""
    with pytest.raises(CorpusError, match=r"(?s)n:2: not valid IDNA \(.*\)\. Pass encoding="):
        list(text_chunks(iter([b"a\n", b"xn--a-\n"]), "n", check_encoding("idna")))


def test_line_ends_and_byte_order_marks_are_removed() -> None:
    """A leading byte-order mark and carriage returns before a newline are removed. The last newline is optional."""
    data = b"\xef\xbb\xbfa\r\nb\r\r\n\xef\xbb\xbfc\r"
    assert "".join(text_chunks(iter([data]), "n")) == "a\nb\n\ufeffc\n"
    assert "".join(text_chunks(iter([b"\xef\xbb\xbfa\n"]), "n", "latin-1")) == "ï»¿a\n"
    assert list(text_chunks(iter([]), "n")) == []


@pytest.mark.parametrize("encoding", ["no-such", "rot13", "hex", 3, "\0"])
def test_unknown_encodings_are_refused(encoding: Any) -> None:
    """Names of no codec, and of codecs that are not encodings of text."""
    with pytest.raises(
        CorpusError,
        match=r"is not a known encoding of text\. Use one that Python knows, such as encoding='utf-8'",
    ):
        check_encoding(encoding)


def test_encoding_aliases_are_accepted() -> None:
    """Aliases map to the canonical name."""
    assert [check_encoding(e) for e in ("UTF8", "latin1", "cp1252")] == ["utf-8", "iso8859-1", "cp1252"]


def test_objects_that_are_not_files_are_rejected(tmp_path: Path) -> None:
    """A number, a folder, a missing path, a text instead of a path."""
    with pytest.raises(CorpusError, match=r"<stream>: a int is not a file\. Give a path, '-' for stdin"):
        list(byte_chunks(3, "<stream>"))  # type: ignore[arg-type]
    with pytest.raises(CorpusError, match=r"none\.txt: cannot be opened \(No such file or directory\)"):
        list(byte_chunks(tmp_path / "none.txt", str(tmp_path / "none.txt")))
    with pytest.raises(CorpusError, match="cannot be"):
        list(byte_chunks(tmp_path, str(tmp_path)))
    with pytest.raises(CorpusError, match=r"'a\\nb': cannot be opened .*io\.StringIO"):
        list(byte_chunks("a\nb", "a\nb"))
    with pytest.raises(CorpusError, match=r"cannot be opened \(embedded null byte\)"):
        list(byte_chunks("a\0b", "a0b"))


def test_names_of_streams(tmp_path: Path) -> None:
    """A path unchanged, <stdin>, or the name of a stream if it is a string."""
    assert source_name("-") == "<stdin>"
    assert source_name(tmp_path) == str(tmp_path)
    with open(tmp_path / "a", "wb") as file:
        assert source_name(file) == str(tmp_path / "a")
    with os.fdopen(os.open(tmp_path / "a", os.O_RDONLY), "rb") as file:
        assert source_name(file) == "<stream>"  # the stream's name is a number


# -- writing --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "unpack"),
    [("a.txt", bytes), ("a.txt.gz", gzip.decompress), ("a.xz", lzma.decompress), ("a.bz2", bz2.decompress)],
)
def test_suffixes_select_the_compression(name: str, unpack: Callable[[bytes], bytes], tmp_path: Path) -> None:
    """The bytes are those of the text, compressed as the suffix says."""
    with writer(tmp_path / name) as write:
        write(TEXT)
        write("more\n")
    assert unpack((tmp_path / name).read_bytes()) == (TEXT + "more\n").encode()
    assert os.listdir(tmp_path) == [name]


def test_text_and_byte_streams_are_written(monkeypatch: pytest.MonkeyPatch) -> None:
    """Text streams get text, byte streams get UTF-8. '-' is standard output, with or without a byte buffer."""
    text, data, named = io.StringIO(), io.BytesIO(), io.StringIO()
    for out in (text, data):
        with writer(out) as write:
            write("ü\n")
    assert text.getvalue() == "ü\n"
    assert data.getvalue() == "ü\n".encode()
    below = io.BytesIO()
    over = io.TextIOWrapper(below, encoding="latin-1", write_through=False)
    over.write("first\n")
    monkeypatch.setattr(sys, "stdout", over)
    with writer("-") as write:
        write("ü\n")
    assert below.getvalue() == b"first\n" + "ü\n".encode()  # earlier output comes first
    monkeypatch.setattr(sys, "stdout", named)
    with writer("-") as write:
        write("ü\n")
    assert named.getvalue() == "ü\n"


class Bare:
    """A byte stream with `write` and `flush` only."""

    def __init__(self) -> None:
        self.data = b""

    def write(self, data: bytes) -> None:
        self.data += data

    def flush(self) -> None:
        pass


def test_streams_without_isatty_are_not_terminals(monkeypatch: pytest.MonkeyPatch) -> None:
    """Control sequences are written unchanged, as to a file."""
    out, over = Bare(), io.StringIO()
    over.buffer = out  # type: ignore[attr-defined]
    monkeypatch.setattr(sys, "stdout", over)
    with writer("-") as write:
        write("\x1b[31m\tü\n")
    assert out.data == "\x1b[31m\tü\n".encode()


def test_missing_corpora_raise_file_not_found(tmp_path: Path) -> None:
    """FileNotFoundError with errno and filename."""
    missing = str(tmp_path / "none.txt")
    with pytest.raises(FileNotFoundError) as found:
        list(byte_chunks(missing, missing))
    assert isinstance(found.value, CorpusError)
    assert (found.value.errno, found.value.filename) == (errno.ENOENT, missing)

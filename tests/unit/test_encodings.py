"""Encodings of corpus files: detection by byte order mark, explicit names, and clear errors."""

from __future__ import annotations

import codecs
import io
from pathlib import Path

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

import tagwise as tw
from tagwise.base.exceptions import CorpusError
from tagwise.cli import cli
from tagwise.corpus.streams import open_text

TEXT = "Zoë\tB-PER\nißt\tO\n\n東京\tB-LOC\n"
LATIN = "Zoë\tB-PER\nißt\tO\n"


class Slow(io.RawIOBase):
    """A stream that returns one byte at a time."""

    def __init__(self, data: bytes) -> None:
        self.data = io.BytesIO(data)

    def read(self, size: int = -1) -> bytes:
        return self.data.read(1)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-32"])
def test_byte_order_marks_are_detected(encoding: str) -> None:
    """Without an encoding, UTF-8, UTF-16 and UTF-32 are read, also in pieces of one byte."""
    data = TEXT.encode(encoding)
    expected = tw.read(io.StringIO(TEXT))
    assert tw.read(io.BytesIO(data)) == expected
    assert tw.read(Slow(data)) == expected  # type: ignore[arg-type]


@pytest.mark.parametrize("mark", [codecs.BOM_UTF16_BE, codecs.BOM_UTF16_LE])
def test_both_byte_orders(mark: bytes) -> None:
    """The mark gives the byte order."""
    order = "utf-16-be" if mark == codecs.BOM_UTF16_BE else "utf-16-le"
    assert tw.read(io.BytesIO(mark + TEXT.encode(order))) == tw.read(io.StringIO(TEXT))


@given(
    st.text(
        st.characters(codec="utf-8", exclude_characters="\r\0\ufeff", exclude_categories=["Cs"]), max_size=60
    ),
    st.sampled_from(["utf-16", "utf-32", "utf-16-le", "utf-7", "utf-8"]),
)
def test_every_encoding_decodes_to_the_same_text(text: str, encoding: str) -> None:
    """Decoding by the reader equals that of Python."""
    data = io.BytesIO(text.encode(encoding))
    found = "".join(open_text(data, None if encoding in ("utf-16", "utf-32") else encoding)[1])
    assert found == (text if text.endswith("\n") or not text else text + "\n")


@pytest.mark.parametrize("encoding", ["latin-1", "cp1252", "utf-16-le", "utf-16-be"])
def test_named_encodings(encoding: str) -> None:
    """An explicit encoding is used, also one without a mark that does not contain ASCII."""
    assert tw.read(io.BytesIO(LATIN.encode(encoding)), encoding=encoding) == tw.read(io.StringIO(LATIN))


@pytest.mark.parametrize(
    ("data", "encoding", "message"),
    [
        (LATIN.encode("latin-1"), None, r":1: not valid UTF-8 \(byte 0xeb\)\. Pass .*encoding='cp1252'"),
        ("a\n".encode("utf-16-le"), None, r"NUL byte.*encoding='utf-16-le'"),
        (codecs.BOM_UTF16_LE + b"a", None, r":1: not valid UTF-16 near this line"),
        (b"a\n\xd8\x00", "utf-16-be", r"not valid UTF-16-BE"),
        (b"a\n", "no-such", r"encoding='no-such' is not a known encoding"),
        (b"a\n", "rot13", r"encoding='rot13' is not a known encoding"),
        (b"PAR1\x15\0", None, r"Parquet file.*format='parquet'"),
    ],
)
def test_wrong_encodings_are_explained(data: bytes, encoding: str | None, message: str) -> None:
    """The error gives the line, the reason and an encoding to try."""
    with pytest.raises(CorpusError, match=message):
        tw.read(io.BytesIO(data), encoding=encoding)


def test_the_command_line_has_an_encoding(tmp_path: Path) -> None:
    """--encoding reads the file, and the error without it names the option."""
    path = tmp_path / "latin.tsv"
    path.write_bytes(LATIN.encode("latin-1"))
    refused = CliRunner().invoke(cli, ["convert", str(path), "-"])
    assert refused.exit_code == 2
    assert "--encoding cp1252" in refused.stderr
    found = CliRunner().invoke(cli, ["convert", str(path), "-", "--encoding", "latin-1"])
    assert found.stdout == LATIN + "\n"

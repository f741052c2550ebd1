"""Bytes in and out: files, gz/xz/bz2 seen by their first bytes, '-' for stdin/stdout."""

from __future__ import annotations

import codecs
import contextlib
import errno
import gzip
import io
import os
import re
import sys
import zlib
from collections.abc import Callable, Iterator, Sequence
from typing import IO, Any, NoReturn, TypeAlias

from tagwise.base.exceptions import CorpusError, refusal
from tagwise.base.writing import atomic
from tagwise.corpus.labels import broken, first_break

File: TypeAlias = "str | os.PathLike[str] | IO[bytes] | IO[str]"

CHUNK = 1 << 18  # bytes read at once

#: Environment variables with limits of what is read, and their values where they are not set: bytes of one sentence
#: (its line, or its rows and comments), and how many times as long as a compressed file its text may be. The longest
#: sentences of corpora have some ten thousand bytes, and text is 3 to 20 times as long as its gz.
LIMITS = {"TAGWISE_MAX_SENTENCE": 1 << 24, "TAGWISE_MAX_EXPANSION": 200}
#: Bytes of text that a compressed file may have whatever its size.
FREE = 1 << 26

_MAGIC_STARTS = (b"\x1f", b"\xfd", b"B")  # first bytes of gz, xz, bz2

_CR_LF = re.compile(r"\r+\n")


def fail(
    source: str, line: int | None, what: str, remedy: str, cause: BaseException | None = None
) -> NoReturn:
    """Raise a CorpusError that names the file, the line, what was wrong and what to do."""
    place = f"{source}:{line}" if line else source
    raise CorpusError(f"{place}: {what}. {remedy}") from cause


def refuse_breaks(source: str, labels: Sequence[str] | None, line: int, rows: int = 0) -> None:
    """Refuse a sentence with a label that no file of columns can hold; `rows`: 1 if each token has its own line."""
    at = None if labels is None else first_break(labels)
    if labels is not None and at is not None:
        place = "" if rows else f"token {at}: "
        fail(
            source,
            line + rows * at,
            f"{place}{broken(labels[at])}",
            "Give the label a name of plain characters.",
        )


def limit(variable: str) -> int:
    """A limit of what is read: the environment's, or the usual one."""
    given = os.environ.get(variable, "").strip()
    if not given:
        return LIMITS[variable]
    if not given.isdecimal() or int(given) < 1:
        raise CorpusError(
            f"{variable}={given!r} is no limit. Set it to a whole number from 1, or leave it unset."
        )
    return int(given)


def check_size(source: str, line: int, size: int, most: int) -> None:
    """Refuse a sentence that is longer than a limit before more of it is read."""
    if size > most:
        fail(
            source,
            line,
            f"a sentence that goes on for more than {most:,} bytes",
            "Give one sentence a line, or a blank line between sentences; "
            "TAGWISE_MAX_SENTENCE=BYTES in the environment sets another limit.",
        )


def shown(text: str, width: int = 60) -> str:
    """A piece of a file as it can stand in a message."""
    return repr(text if len(text) <= width else text[: width - 3] + "...")


class _Rejoined(io.RawIOBase):
    """A stream put together again from the bytes already taken off it and the rest."""

    def __init__(self, head: bytes, read: Callable[[int], Any]) -> None:
        self._head = head
        self._read = read
        self.taken = 0  # bytes handed out

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        if self._head:
            data, self._head = self._head[: len(buffer)], self._head[len(buffer) :]
        else:
            data = self._read(len(buffer))
        buffer[: len(data)] = data
        self.taken += len(data)
        return len(data)


def source_name(file: File) -> str:
    """The name of a file as messages show it."""
    if isinstance(file, (str, os.PathLike)):
        return "<stdin>" if os.fspath(file) == "-" else os.fspath(file)
    name = getattr(file, "name", None)
    return name if isinstance(name, str) else "<stream>"


def _open(file: File, name: str) -> tuple[Any, bool]:
    """The stream to read from, and whether it is ours to close."""
    if not isinstance(file, (str, os.PathLike)):
        return file, False
    if os.fspath(file) == "-":
        return getattr(sys.stdin, "buffer", sys.stdin), False
    try:
        return open(file, "rb", buffering=0), True
    except (OSError, ValueError) as e:
        why = getattr(e, "strerror", None) or str(e)
        raise refusal(
            CorpusError,
            f"{shown(name) if chr(10) in name else name}: cannot be opened ({why}). "
            "Give the path of a readable file, '-' for stdin, or an open file (io.StringIO(text) for text).",
            name,
            getattr(e, "errno", None) or errno.EINVAL,
        ) from e


def _decompressed(head: bytes, read: Callable[[int], Any]) -> tuple[Callable[[int], Any], _Rejoined] | None:
    """A reader of the plain bytes where the first bytes are those of a compressed file, and what it reads from."""
    packed = _Rejoined(head, read)
    below = io.BufferedReader(packed)
    if head[:2] == b"\x1f\x8b":
        return gzip.GzipFile(fileobj=below).read1, packed
    if head[:6] == b"\xfd7zXZ\0":
        import lzma

        return lzma.LZMAFile(below).read1, packed
    if head[:3] == b"BZh" and head[4:10] == b"1AY&SY":
        import bz2

        return bz2.BZ2File(below).read1, packed
    return None


def _damage() -> tuple[type[BaseException], ...]:
    """What decompressors raise on a damaged file."""
    lzma = sys.modules.get("lzma")
    return (OSError, EOFError, zlib.error, *((lzma.LZMAError,) if lzma else ()))


def byte_chunks(file: File, name: str) -> Iterator[bytes]:
    """The plain bytes of a file, a chunk at a time."""
    stream, ours = _open(file, name)
    try:
        read = getattr(stream, "read1", None) or getattr(stream, "read", None)
        if read is None:
            fail(
                name,
                None,
                f"a {type(file).__name__} is not a file",
                "Give a path, '-' for stdin, or an open file.",
            )
        line = 1
        plain = False
        packed: _Rejoined | None = None
        text, most = 0, limit("TAGWISE_MAX_EXPANSION")
        while True:
            try:
                data = read(CHUNK)
                if isinstance(data, str):
                    data = data.encode("utf-8")
                    plain = True
                if not plain:
                    while 0 < len(data) < 10 and data.startswith(_MAGIC_STARTS):  # a pipe may give a byte
                        more = read(CHUNK)
                        if not more:
                            break
                        data += more
                    unpacked = _decompressed(data, read)
                    plain = True
                    if unpacked is not None:
                        read, packed = unpacked
                        continue
            except UnicodeEncodeError as e:
                line += e.object.count("\n", 0, e.start)
                fail(
                    name,
                    line,
                    "a character that is not Unicode (a lone surrogate)",
                    "Open the file in binary mode.",
                    e,
                )
            except UnicodeDecodeError as e:
                fail(name, line, f"not valid {e.encoding} ({e.reason})", "Open the file in binary mode.", e)
            except _damage() as e:
                fail(
                    name,
                    line,
                    f"cannot be read on from about here ({e})",
                    "The file is truncated or damaged; fetch or compress it again.",
                    e,
                )
            if not data:
                return
            text += len(data)
            if packed is not None and text > FREE and text > most * packed.taken:
                fail(
                    name,
                    line,
                    f"{text:,} bytes of text out of {packed.taken:,} compressed ones, more than {most} times as many",
                    "The file is made to fill the memory of whoever reads it, or very repetitive; "
                    "TAGWISE_MAX_EXPANSION=TIMES in the environment sets another limit.",
                )
            yield data
            line += data.count(b"\n")
    finally:
        if ours:
            stream.close()


def check_encoding(encoding: str) -> str:
    """The canonical name of an encoding in which a newline is the byte 10 and nothing else."""
    try:
        name = codecs.lookup(encoding).name
        plain = "a\n\t ".encode(name) == b"a\n\t "
    except (LookupError, TypeError, ValueError):
        plain = False
    if not plain:
        raise CorpusError(
            f"encoding {encoding!r} is unknown or does not contain ASCII. "
            "Use 'utf-8', 'latin-1' or the like, or convert the file with iconv."
        )
    return name


def open_text(
    file: File, encoding: str = "utf-8", keep: Callable[[str], Any] | None = None
) -> tuple[str, Iterator[str]]:
    """The name of a file and its text in chunks of whole lines (see text_chunks)."""
    name = source_name(file)
    encoding = check_encoding(encoding)
    if isinstance(file, io.TextIOBase):  # already text: byte_chunks hands it on as UTF-8
        encoding = "utf-8"
    return name, text_chunks(byte_chunks(file, name), name, encoding, keep)


def text_chunks(
    chunks: Iterator[bytes], name: str, encoding: str = "utf-8", keep: Callable[[str], Any] | None = None
) -> Iterator[str]:
    """Text made of whole lines, each ended by one ``\\n``; BOM and ``\\r`` before ``\\n`` are gone.

    `keep` is called with the same text as it stands in the file.

    Lines end at ``\\n`` only: str.splitlines would also cut tokens at U+0085, U+2028, \\x0b, \\x0c, \\x1c...
    """
    line = 1
    parts: list[bytes] = []
    held, most = 0, limit("TAGWISE_MAX_SENTENCE")
    first = True

    def decoded(data: bytes, *, last: bool = False) -> str:
        nonlocal first
        mark = first and encoding == "utf-8" and data.startswith(codecs.BOM_UTF8)
        data = data[len(codecs.BOM_UTF8) :] if mark else data
        first = False
        try:
            text = data.decode(encoding)
        except UnicodeDecodeError as e:
            at = line + data.count(b"\n", 0, e.start)
            utf16 = line == 1 and data[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
            kind = "; it looks like UTF-16" if utf16 else ""
            fail(
                name,
                at,
                f"not valid {encoding.upper()} (byte 0x{data[e.start]:02x}{kind})",
                "Convert the file to UTF-8 (iconv -f ... -t UTF-8), or pass the encoding it is in.",
                e,
            )
        except (UnicodeError, ValueError) as e:
            fail(name, line, f"not valid {encoding.upper()} ({e})", "Convert the file to UTF-8 (iconv).", e)
        if keep is not None:
            keep(f"\ufeff{text}" if mark else text)
        if last:
            text = text.rstrip("\r") + "\n"
        if "\r" in text:
            text = _CR_LF.sub("\n", text)
            bare = text.find("\r")
            if bare >= 0:
                at = line + text.count("\n", 0, bare)
                fail(
                    name,
                    at,
                    "a carriage return inside a line",
                    "End lines with \\n or \\r\\n (tr '\\r' '\\n' for old Mac files).",
                )
        return text

    for chunk in chunks:
        nul = chunk.find(b"\0")
        if nul >= 0:
            fail(
                name,
                line + chunk.count(b"\n", 0, nul),
                "a NUL byte",
                "The file is binary, damaged or UTF-16; give UTF-8 text (iconv -f UTF-16 -t UTF-8).",
            )
        cut = chunk.rfind(b"\n") + 1
        if not cut:
            parts.append(chunk)
            held += len(chunk)
            check_size(name, line, held, most)
            continue
        data = b"".join([*parts, chunk[:cut]])
        parts = [chunk[cut:]]
        held = len(chunk) - cut
        yield decoded(data)
        line += data.count(b"\n")
    tail = b"".join(parts)
    if tail:
        yield decoded(tail, last=True)


@contextlib.contextmanager
def writer(file: File) -> Iterator[Callable[[str], Any]]:
    """A function that writes text as UTF-8; .gz, .xz, .bz2 compress. A path appears when all is written.

    What goes to a terminal ('-') has its control characters made visible. Everything else is true to the byte.
    """
    if not isinstance(file, (str, os.PathLike)):
        yield _text_write(file)
        return
    path = os.fspath(file)
    if path == "-":
        out = getattr(sys.stdout, "buffer", None)
        if out is None:
            yield sys.stdout.write
        else:
            sys.stdout.flush()
            write = _text_write(out)
            yield _shown_write(write) if _shows(out) else write
            out.flush()
        return
    with atomic(path, CorpusError) as raw, _compressor(path, raw) as stream:
        yield lambda text: stream.write(text.encode("utf-8"))


def _shown_write(write: Callable[[str], Any]) -> Callable[[str], Any]:
    """Text onto a terminal."""
    from tagwise.base.terminal import visible

    return lambda text: write(visible(text, keep="\n\t"))


def _shows(stream: Any) -> bool:
    """Whether a stream is a terminal."""
    try:
        return bool(stream.isatty())
    except (AttributeError, ValueError):
        return False


def _text_write(stream: Any) -> Callable[[str], Any]:
    """Text onto a stream of either kind."""
    if isinstance(stream, io.TextIOBase) or hasattr(stream, "encoding"):
        return stream.write  # type: ignore[no-any-return]
    return lambda text: stream.write(text.encode("utf-8"))


def _compressor(path: str, raw: IO[bytes]) -> Any:
    """The stream that compresses as the path's ending says; gz without a time stamp: same text and bytes."""
    if path.endswith(".gz"):
        return gzip.GzipFile(filename="", mode="wb", compresslevel=9, fileobj=raw, mtime=0)
    if path.endswith(".xz"):
        import lzma

        return lzma.LZMAFile(raw, "wb", preset=9)
    if path.endswith(".bz2"):
        import bz2

        return bz2.BZ2File(raw, "wb")
    return contextlib.nullcontext(raw)

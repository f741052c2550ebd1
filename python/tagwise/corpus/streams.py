"""Input and output streams: files, compressed files (gz, xz, bz2), and '-' for stdin and stdout."""

from __future__ import annotations

import codecs
import contextlib
import errno
import gzip
import io
import itertools
import os
import re
import sys
import zlib
from collections.abc import Callable, Iterator, Sequence
from typing import IO, Any, NoReturn, TypeAlias

from tagwise.base.exceptions import CorpusError, file_error
from tagwise.base.parameters import meant
from tagwise.base.writing import atomic
from tagwise.corpus.labels import broken, first_break

File: TypeAlias = "str | os.PathLike[str] | IO[bytes] | IO[str]"

CHUNK = 1 << 18  # bytes per read
_ENTRIES = 1000  # files of a folder that are compared with a name that does not exist

#: Environment variables that limit the input, with their defaults: bytes of one sentence (its line, or its rows and
#: comments), and the ratio of decompressed to compressed size. The longest sentences of corpora have about ten
#: thousand bytes, and gzip compresses text by a factor of 3 to 20.
LIMITS = {"TAGWISE_MAX_SENTENCE": 1 << 24, "TAGWISE_MAX_EXPANSION": 200}
#: Decompressed size up to which TAGWISE_MAX_EXPANSION does not apply.
FREE = 1 << 26

_MAGIC_STARTS = (b"\x1f", b"\xfd", b"B")  # first bytes of gz, xz, bz2

_CR_LF = re.compile(r"\r+\n")


def fail(
    source: str, line: int | None, problem: str, remedy: str, cause: BaseException | None = None
) -> NoReturn:
    """Raise a CorpusError with file, line, problem and remedy."""
    place = f"{source}:{line}" if line else source
    raise CorpusError(f"{place}: {problem}. {remedy}") from cause


def refuse_breaks(source: str, labels: Sequence[str] | None, line: int, rows: int = 0) -> None:
    """Raise a CorpusError if a label contains a control character or a line end.

    `rows` is 1 if each token has its own line, else 0.
    """
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
    """Return a limit from the environment, or its default."""
    setting = os.environ.get(variable, "").strip()
    if not setting:
        return LIMITS[variable]
    if not setting.isdecimal() or int(setting) < 1:
        raise CorpusError(
            f"{variable}={setting!r} is not a valid limit. Set it to an integer >= 1, or leave it unset."
        )
    return int(setting)


def check_size(source: str, line: int, size: int, most: int) -> None:
    """Raise a CorpusError if a sentence is longer than a limit. Call this before reading more of it."""
    if size > most:
        fail(
            source,
            line,
            f"a sentence of more than {most:,} bytes",
            "Write one sentence per line, or a blank line between sentences. "
            "TAGWISE_MAX_SENTENCE=BYTES in the environment sets another limit.",
        )


def shown(text: str, width: int = 60) -> str:
    """Return a quoted and shortened piece of a file, for messages."""
    return repr(text if len(text) <= width else text[: width - 3] + "...")


class _Rejoined(io.RawIOBase):
    """A stream of bytes that were already read, followed by the rest of the original stream."""

    def __init__(self, head: bytes, read: Callable[[int], Any]) -> None:
        self._head = head
        self._read = read
        self.taken = 0  # bytes returned so far

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
    """Return the name of a file for messages."""
    if isinstance(file, (str, os.PathLike)):
        return "<stdin>" if os.fspath(file) == "-" else os.fspath(file)
    name = getattr(file, "name", None)
    return name if isinstance(name, str) else "<stream>"


def _similar(name: str) -> str:
    """Return a suggestion for a file that does not exist: the closest name in its folder."""
    try:
        with os.scandir(os.path.dirname(name) or ".") as entries:
            known = [entry.name for entry in itertools.islice(entries, _ENTRIES)]
    except OSError:
        return ""
    return meant(os.path.basename(name), known)


def _open(file: File, name: str) -> tuple[Any, bool]:
    """Return the stream of a file, and whether the caller has to close it."""
    if not isinstance(file, (str, os.PathLike)):
        return file, False
    if os.fspath(file) == "-":
        return getattr(sys.stdin, "buffer", sys.stdin), False
    try:
        return open(file, "rb", buffering=0), True
    except (OSError, ValueError) as e:
        reason = getattr(e, "strerror", None) or str(e)
        is_text = "\n" in name
        remedy = "or io.StringIO(text) for a text" if is_text else "or '-' for stdin"
        if "://" in name:
            remedy = "since addresses are not downloaded"
        hint = _similar(name) if isinstance(e, FileNotFoundError) and not is_text else ""
        raise file_error(
            CorpusError,
            f"{shown(name) if is_text else name}: cannot be opened ({reason}){hint}. "
            f"Give the path of a readable file, {remedy}.",
            name,
            getattr(e, "errno", None) or errno.EINVAL,
        ) from e


def _decompressed(head: bytes, read: Callable[[int], Any]) -> tuple[Callable[[int], Any], _Rejoined] | None:
    """Return a decompressing read function and the stream below it, or None if the file is not compressed."""
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
    """Return the exceptions that decompressors raise on a damaged file."""
    lzma = sys.modules.get("lzma")
    return (OSError, EOFError, zlib.error, *((lzma.LZMAError,) if lzma else ()))


def byte_chunks(file: File, name: str) -> Iterator[bytes]:
    """Yield the decompressed bytes of a file in chunks."""
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
                    while 0 < len(data) < 10 and data.startswith(_MAGIC_STARTS):  # a pipe may give one byte
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
                    f"reading failed near this line ({e})",
                    "The file is truncated or damaged. Download or compress it again.",
                    e,
                )
            if not data:
                return
            text += len(data)
            if packed is not None and text > FREE and text > most * packed.taken:
                fail(
                    name,
                    line,
                    f"{text:,} bytes of text from {packed.taken:,} compressed bytes, more than {most} times as many",
                    "The file is a decompression bomb or very repetitive. "
                    "TAGWISE_MAX_EXPANSION=TIMES in the environment sets another limit.",
                )
            yield data
            line += data.count(b"\n")
    finally:
        if ours:
            stream.close()


#: Encodings by byte order mark. That of UTF-32 begins like that of UTF-16, so it is tried first.
_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)


def check_encoding(encoding: str | None) -> str | None:
    """Return the canonical name of an encoding of text, or None for detection."""
    if encoding is None:
        return None
    try:
        found = codecs.lookup(encoding)
        if not isinstance("a\n".encode(found.name), bytes):
            raise LookupError(encoding)
    except (LookupError, TypeError, ValueError, AttributeError, UnicodeError) as e:
        raise CorpusError(
            f"encoding={encoding!r} is not a known encoding of text. Use one that Python knows, such as "
            "encoding='utf-8' or encoding='latin-1'."
        ) from e
    return found.name


def open_text(
    file: File, encoding: str | None = None, keep: Callable[[str], Any] | None = None
) -> tuple[str, Iterator[str]]:
    """Return the name of a file and its text in chunks of whole lines (see `text_chunks`).

    Without an encoding, the byte order mark decides between UTF-8, UTF-16 and UTF-32. Files without one are UTF-8.
    """
    name = source_name(file)
    encoding = check_encoding(encoding)
    chunks = byte_chunks(file, name)
    if not isinstance(file, io.TextIOBase):  # byte_chunks encodes text as UTF-8
        chunks = _utf8(chunks, name, encoding)
        if encoding is not None and is_ascii_superset(encoding):
            return name, text_chunks(chunks, name, encoding, keep)
    return name, text_chunks(chunks, name, "utf-8", keep)


def is_ascii_superset(encoding: str) -> bool:
    """Return whether line ends of an encoded text can be found in its bytes."""
    return "a\n\t ".encode(encoding) == b"a\n\t " and not encoding.startswith(
        ("utf-7", "utf_7", "iso2022", "hz")
    )


def _utf8(chunks: Iterator[bytes], name: str, encoding: str | None) -> Iterator[bytes]:
    """Convert bytes to UTF-8 if their encoding does not contain ASCII, and keep all other bytes."""
    if encoding is not None and is_ascii_superset(encoding):
        yield from chunks
        return
    head = b""
    if encoding is None:
        for chunk in chunks:  # a pipe may deliver one byte at a time
            head += chunk
            if len(head) >= 4 or not any(mark.startswith(head) for mark, _ in _MARKS):
                break
        if head.startswith(b"PAR1"):
            fail(
                name,
                None,
                "this is a Parquet file",
                "Give it the extension .parquet, or pass format='parquet'.",
            )
        encoding = next((found for mark, found in _MARKS if head.startswith(mark)), "utf-8")
        if encoding == "utf-8":
            if head:
                yield head
            yield from chunks
            return
    decoder = codecs.getincrementaldecoder(encoding)()
    line = 1
    for data in itertools.chain([head] if head else [], chunks, [b""]):
        try:
            text = decoder.decode(data, final=not data)
            converted = text.encode("utf-8")
        except (UnicodeError, ValueError) as e:
            reason = getattr(e, "reason", None) or str(e)
            fail(
                name,
                line,
                f"not valid {encoding.upper()} near this line ({reason})",
                "The file is damaged or in another encoding. Pass encoding='...' with the name of the encoding.",
                e,
            )
        if converted:
            yield converted
        line += text.count("\n")


def text_chunks(
    chunks: Iterator[bytes], name: str, encoding: str = "utf-8", keep: Callable[[str], Any] | None = None
) -> Iterator[str]:
    """Yield text in whole lines that end in ``\\n``, without a BOM and without ``\\r`` before ``\\n``.

    `keep` is called with the unmodified text of each chunk.

    Lines end only at ``\\n``. `str.splitlines` would also split tokens at U+0085, U+2028, \\x0b, \\x0c, \\x1c...
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
            other = "encoding='utf-8'" if encoding != "utf-8" else "encoding='cp1252' or encoding='latin-1'"
            fail(
                name,
                at,
                f"not valid {encoding.upper()} (byte 0x{data[e.start]:02x})",
                f"Pass the encoding of the file, such as {other}.",
                e,
            )
        except (UnicodeError, ValueError) as e:
            fail(
                name, line, f"not valid {encoding.upper()} ({e})", "Pass encoding='...' with its encoding.", e
            )
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
        if nul >= 0 and line == 1 and b"".join([*parts, chunk]).startswith(b"tagwise\n"):
            fail(
                name,
                None,
                "a model file, not a corpus",
                "Give a file of sentences.",
            )
        if nul >= 0 and line == 1 and b"".join([*parts, chunk]).startswith(b"PK\x03\x04"):
            fail(
                name, None, "a ZIP archive, such as .docx or .xlsx", "Save the text or table as .txt or .csv."
            )
        if nul >= 0:
            fail(
                name,
                line + chunk.count(b"\n", 0, nul),
                "a NUL byte",
                "The file is binary or damaged, or UTF-16 without a byte order mark: pass encoding='utf-16-le'.",
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
    """Open a file for writing, and yield a function that writes text as UTF-8.

    The extensions .gz, .xz and .bz2 compress. A file at a path appears only when it is complete. On a terminal ('-'),
    control characters are made visible. All other output is exact.
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
            yield _visible_write(write) if _is_terminal(out) else write
            out.flush()
        return
    with atomic(path, CorpusError) as raw, _compressor(path, raw) as stream:
        yield lambda text: stream.write(text.encode("utf-8"))


def _visible_write(write: Callable[[str], Any]) -> Callable[[str], Any]:
    """Return a function that writes text to a terminal, with visible control characters."""
    from tagwise.base.terminal import visible

    return lambda text: write(visible(text, keep="\n\t"))


def _is_terminal(stream: Any) -> bool:
    """Return whether a stream is a terminal."""
    try:
        return bool(stream.isatty())
    except (AttributeError, ValueError):
        return False


def _text_write(stream: Any) -> Callable[[str], Any]:
    """Return a function that writes text to a stream of text or bytes."""
    if isinstance(stream, io.TextIOBase) or hasattr(stream, "encoding"):
        return stream.write  # type: ignore[no-any-return]
    return lambda text: stream.write(text.encode("utf-8"))


def _compressor(path: str, raw: IO[bytes]) -> Any:
    """Return a stream that compresses according to the extension. gz has no time stamp, so output is reproducible."""
    if path.endswith(".gz"):
        return gzip.GzipFile(filename="", mode="wb", compresslevel=9, fileobj=raw, mtime=0)
    if path.endswith(".xz"):
        import lzma

        return lzma.LZMAFile(raw, "wb", preset=9)
    if path.endswith(".bz2"):
        import bz2

        return bz2.BZ2File(raw, "wb")
    return contextlib.nullcontext(raw)

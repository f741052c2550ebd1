"""Word classes from word vectors: files of word2vec and GloVe, k-means, and a tree by Ward's criterion."""

from __future__ import annotations

import bz2
import gzip
import lzma
import os
import zlib
from collections.abc import Mapping, Sequence
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

import tagwise._core as _core
from tagwise.base.domains import is_text
from tagwise.base.exceptions import CorpusError, ParameterError, TagwiseError
from tagwise.base.files.regular import open_regular
from tagwise.features.class_learning import default_classes
from tagwise.features.vectors import MOST, Matrix

REMEDY = "Give a file of word2vec or GloVe: a word and its numbers per line, or word2vec's binary format."
#: Longest word in bytes, and rows of vectors that are compared with all centres at a time.
LONGEST, ROWS = 1 << 12, 1 << 12
#: Bytes that a text does not have.
_CONTROL = frozenset(range(32)) - {*b"\t\n\v\f\r"}


def read(source: Any, words: Sequence[str] | None) -> tuple[list[str], Matrix]:
    """Return words and their vectors [V, D] from a file, a mapping or an array."""
    if isinstance(source, (str, os.PathLike)):
        with open_regular(source, None, CorpusError, REMEDY) as file:
            try:
                head = file.read(6)
                file.seek(0)
                if head == b"\x93NUMPY":
                    return _paired(np.load(file, allow_pickle=False), words)
                if words is not None:
                    raise ParameterError(
                        "words belong to an array. A file of word2vec or GloVe has its own: drop the argument."
                    )
                opened = _decompressed(file, head)
                return _read_binary(opened) if _is_binary(opened) else _read_text(opened)
            except (ValueError, OSError, EOFError, zlib.error, lzma.LZMAError) as error:
                if isinstance(error, TagwiseError):
                    raise
                raise CorpusError(f"{os.fspath(source)}: {error}. {REMEDY}") from None
    if isinstance(source, Mapping):
        source, words = list(source.values()), list(source)
    return _paired(source, words)


def _paired(values: Any, words: Sequence[str] | None) -> tuple[list[str], Matrix]:
    """Return words and an array of their vectors. Raise an error if they do not belong together."""
    if words is None:
        raise ParameterError("an array of vectors needs its words: from_vectors(array, words).")
    words = list(words)
    if len(words) != len(values):
        raise CorpusError(f"{len(values):,} vectors for {len(words):,} words. Give one vector per word.")
    for word, row in zip(words, values):
        if not is_text(word):
            raise CorpusError(f"{word!a:.80} is not a word. Give strings.")
        if np.shape(row) != np.shape(values[0]):
            raise CorpusError(
                f"the vector of {word!r:.80} has the shape {np.shape(row)}, that of {words[0]!r:.80} "
                f"{np.shape(values[0])}. Give vectors of one length."
            )
    found = np.asarray(values)
    if found.dtype.kind not in "fiub" or found.ndim != 2 or not found.size:
        raise CorpusError(
            f"the vectors are an array of {found.dtype} with the shape {found.shape}. Give one row of numbers per word."
        )
    with np.errstate(over="ignore"):
        return words, found.astype(np.float32)


def _decompressed(file: IO[bytes], head: bytes) -> Any:
    """Return a file, decompressed if it is compressed by gzip, xz or bzip2."""
    if head[:2] == b"\x1f\x8b":
        return gzip.GzipFile(fileobj=file)
    if head == b"\xfd7zXZ\0":
        return lzma.LZMAFile(file)
    if head[:3] == b"BZh":
        return bz2.BZ2File(file)
    return file


def _is_binary(file: IO[bytes]) -> bool:
    """Return whether a file has word2vec's binary format: a line of two numbers, then bytes that are not numbers."""
    head, rest = file.readline(LONGEST), file.read(1 << 16)
    file.seek(0)
    parts = head.split()
    if len(parts) != 2 or not all(part.isdigit() for part in parts):
        return False
    return bool(_CONTROL.intersection(rest)) or not any(map(_is_number, rest.split(b"\n", 1)[0].split()[1:]))


def _size(n: int, size: int) -> None:
    """Raise an error unless vectors have a valid size and fit in memory."""
    if not 0 < size <= MOST or n < 1:
        raise ValueError(f"{n:,} vectors of {size:,} numbers, expected at least 1 and 1 to {MOST:,} numbers")
    _core.claim("the word vectors", 4 * n * size, "use fewer words")


def _read_binary(file: IO[bytes]) -> tuple[list[str], Matrix]:
    """Read word2vec's binary format: for each word its bytes, a space, and D float32 numbers."""
    n, size = map(int, file.readline(LONGEST).split())
    _size(n, size)
    words, values = [], np.empty((n, size), dtype=np.float32)
    for i in range(n):
        word = bytearray()
        while (byte := file.read(1)) != b" ":
            if not byte or len(word) > LONGEST:
                raise ValueError(f"vector {i} (from 0) of {n:,} is incomplete")
            word += byte
        data = file.read(4 * size)
        if len(data) < 4 * size:
            raise ValueError(f"vector {i} (from 0) of {n:,} is incomplete")
        words.append(_decoded(bytes(word).lstrip(b"\n"), i))
        values[i] = np.frombuffer(data, dtype="<f4")
    if file.read(4).strip():
        raise ValueError(f"the file does not end after {n:,} vectors, which its first line says")
    return words, values


def _read_text(file: IO[bytes]) -> tuple[list[str], Matrix]:
    """Read a word and its numbers per line. A first line of two integers is the header of word2vec."""
    words: list[str] = []
    rows: list[NDArray[np.float32]] = []
    header: tuple[int, ...] | None = None
    for i, line in enumerate(file):
        parts = line.split()
        if i == 0 and len(parts) == 2 and all(part.isdigit() for part in parts):
            header = tuple(map(int, parts))
            continue
        word, *numbers = line.replace(b"\t", b" ").rstrip(b"\r\n").rstrip(b" ").split(b" ")
        size = header[1] if header else len(rows[0]) if rows else len(numbers)
        cut = len(numbers) - size
        if cut > 0 and not _is_number(numbers[cut - 1]):  # a word of GloVe may contain spaces
            word, numbers = b" ".join([word, *numbers[:cut]]), numbers[cut:]
        try:
            with np.errstate(over="ignore"):
                row = np.array(numbers, dtype=np.float32)
        except ValueError:
            raise ValueError(f"line {i + 1} has a value that is not a number") from None
        if not len(row) or len(row) != size:
            expected = f", expected {size}" if rows or header else ""
            raise ValueError(f"line {i + 1} has {len(row)} numbers{expected}")
        words.append(_decoded(word, i))
        rows.append(row)
        if not len(rows) % (1 << 14):
            _size(len(rows), len(row))
    if header and len(rows) != header[0]:
        raise ValueError(f"the file has {len(rows):,} vectors, its first line says {header[0]:,}")
    _size(len(rows), len(rows[0]) if rows else 0)
    return words, np.stack(rows)


def _is_number(text: bytes) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _decoded(word: bytes, i: int) -> str:
    try:
        return word.decode("utf-8")
    except UnicodeDecodeError:
        raise ValueError(f"word {i} (from 0) is not UTF-8") from None


def distinct(words: Sequence[str], values: Matrix, ignore_case: bool) -> tuple[list[str], Matrix]:
    """Return normalized words that are distinct, each with the first of its vectors scaled to length 1.

    Empty words and zero vectors are left out.
    """
    wrong = np.flatnonzero(~np.isfinite(values).all(axis=1))
    if len(wrong):
        raise CorpusError(
            f"the vector of {words[wrong[0]]!r:.80} has numbers that are not finite in float32. Replace them."
        )
    length = np.linalg.norm(values, axis=1)
    first: dict[str, int] = {}
    for i, word in enumerate(_core.normalized_words(list(words), ignore_case)):
        if word and length[i] > 0:
            first.setdefault(word, i)
    rows = np.fromiter(first.values(), dtype=np.int64, count=len(first))
    return list(first), np.ascontiguousarray(values[rows] / length[rows, None])


def clustered(
    words: Sequence[str], values: Matrix, n_classes: int | None, max_iter: int, seed: int
) -> tuple[dict[str, list[str]], dict[str, Any]]:
    """Return the words of each cluster by its path in the tree, and facts about the clusters.

    The number of classes None means `default_classes`.
    """
    if len(words) < 2:
        raise CorpusError(f"there are vectors of {len(words):,} words, not counting zeros. Give more.")
    if n_classes is None:
        n_classes = default_classes(len(words))
    if len(words) < n_classes:
        raise ParameterError(
            f"classes={n_classes}: there are vectors of {len(words):,} words. Use at most as many classes."
        )
    of, centres, iterations = _k_means(values, n_classes, max_iter, seed)
    paths = _ward(centres, np.bincount(of, minlength=n_classes))
    found: dict[str, list[str]] = {path: [] for path in sorted(paths)}
    for word, c in zip(words, of.tolist()):
        found[paths[c]].append(word)
    return found, {"vectors": len(words), "size": values.shape[1], "sweeps": iterations}


def _nearest(values: Matrix, centres: Matrix) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """Return the nearest centre of each row and the squared distance, up to the norm of the row."""
    of, far = np.empty(len(values), dtype=np.int64), np.empty(len(values), dtype=np.float32)
    norms = (centres * centres).sum(axis=1)
    for begin in range(0, len(values), ROWS):
        _core.Stop.check()
        distance = norms - 2.0 * (values[begin : begin + ROWS] @ centres.T)
        of[begin : begin + ROWS] = distance.argmin(axis=1)
        far[begin : begin + ROWS] = distance.min(axis=1)
    return of, far


def _k_means(values: Matrix, k: int, max_iter: int, seed: int) -> tuple[NDArray[np.int64], Matrix, int]:
    """Return the cluster of each row, the centres [k, D], and the number of iterations.

    Initial centres are distinct random rows. An empty cluster gets the row that is farthest from its centre.
    """
    draw = np.random.default_rng(seed)
    centres = values[np.sort(draw.choice(len(values), size=k, replace=False))].copy()
    of, far = _nearest(values, centres)
    iterations = 0
    for _ in range(max_iter):
        iterations += 1
        for empty in np.flatnonzero(np.bincount(of, minlength=k) == 0).tolist():
            crowded = np.bincount(of, minlength=k)[of] > 1
            row = int(np.argmax(np.where(crowded, far, -np.inf)))
            of[row], far[row] = empty, -np.inf
        order = np.argsort(of, kind="stable")
        starts = np.searchsorted(of[order], np.arange(k))
        sizes = np.bincount(of, minlength=k)
        centres = (np.add.reduceat(values[order], starts, axis=0) / sizes[:, None]).astype(np.float32)
        before = of
        of, far = _nearest(values, centres)
        if (before == of).all():
            break
    else:
        of = before  # without empty clusters
    return of, centres, iterations


def _ward(centres: Matrix, sizes: NDArray[Any]) -> list[str]:
    """Return the path of each cluster in the tree that merges the clusters whose merger costs least (Ward 1963).

    Merging clusters of m and n rows whose centres differ by d costs |d|^2 m n / (m + n).
    """
    k = len(centres)
    mean, weight = centres.astype(np.float64), np.maximum(sizes, 1).astype(np.float64)
    cost = np.full((k, k), np.inf)
    for c in range(1, k):
        cost[c, :c] = (
            ((mean[:c] - mean[c]) ** 2).sum(axis=1) * weight[:c] * weight[c] / (weight[:c] + weight[c])
        )
    active = np.ones(k, dtype=bool)
    mergers: list[tuple[int, int]] = []
    for _ in range(k - 1):
        _core.Stop.check()
        gone, into = divmod(int(np.argmin(cost)), k)
        both = weight[into] + weight[gone]
        mean[into] = (weight[into] * mean[into] + weight[gone] * mean[gone]) / both
        weight[into], active[gone] = both, False
        cost[gone, :], cost[:, gone] = np.inf, np.inf
        others = np.flatnonzero(active)
        others = others[others != into]
        merged = (
            ((mean[others] - mean[into]) ** 2).sum(axis=1) * weight[others] * both / (weight[others] + both)
        )
        low = others < into
        cost[into, others[low]], cost[others[~low], into] = merged[low], merged[~low]
        mergers.append((into, gone))
    paths = [""] * k
    for into, gone in reversed(mergers):
        paths[gone] = paths[into] + "1"
        paths[into] += "0"
    return paths

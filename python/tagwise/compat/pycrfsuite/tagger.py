"""Taggers: a model that is open, and the sequence that was set last."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

import tagwise._core as _core
from tagwise.compat.pycrfsuite._dumpparser import ParsedDump
from tagwise.compat.pycrfsuite.chains import path_score
from tagwise.compat.pycrfsuite.items import ItemSequence, flat_sequence, name_of
from tagwise.errors import ModelFileError
from tagwise.features.escape import is_plain, raw
from tagwise.foreign import crfsuite
from tagwise.foreign.chain import Chain, parts_of
from tagwise.writing import atomic

Table = NDArray[np.float64]
Ids = NDArray[np.int64]
#: Scores of paths that differ by less may be equal: far more than what float32 rounds.
CLOSE = 1e-3


class Opened:
    """A model that is open: its file's header, its chain, and the scorer where it has labels."""

    def __init__(self, data: bytes) -> None:
        self.header = crfsuite.header_of(data)
        self.chain: Chain = crfsuite.read(data)
        self.labels = [raw(label).decode("utf-8", "surrogateescape") for label in self.chain.labels]
        self.numbers = {label: i for i, label in enumerate(self.chain.labels)}
        self.escapes = not is_plain("".join(self.chain.texts))
        if self.labels:
            parts = parts_of(self.chain)
            self.scorer: _core.Scorer = parts["scorer"]
            self.vocabulary: _core.Vocabulary = parts["vocabulary"]
            n = len(self.labels)
            self.edge = np.zeros((n, n))
            self.edge.ravel()[self.chain.edge.codes] = self.chain.edge.weights
            self.ptr = self.scorer.layout.arrays()["node_ptr"].astype(np.int64)

    def encoded(self, xseq: Any) -> _core.Dataset:
        """The attributes of a sequence; the engine's own reading first, ours where it has none."""
        if not isinstance(xseq, ItemSequence) and not self.escapes:
            if not isinstance(xseq, (list, tuple, str, bytes)):
                xseq = list(xseq)
            try:
                return _core.encode_attributes(self.vocabulary, [xseq])
            except (ValueError, TypeError):
                pass
        return _core.encode_attributes(self.vocabulary, [flat_sequence(xseq)])

    def node_scores(self, ptr: Ids, ids: Ids, values: Table | None) -> Table:
        """Node scores [T, L] of a sequence's attributes in double precision, added up in their order."""
        n, tokens = len(self.labels), len(ptr) - 1
        begin = self.ptr[ids]
        counts = self.ptr[ids + 1] - begin
        at = np.repeat(begin - np.cumsum(counts) + counts, counts) + np.arange(int(counts.sum()))
        token = np.repeat(np.repeat(np.arange(tokens), np.diff(ptr)), counts)
        weights = self.chain.node.weights[at]
        if values is not None:
            weights = weights * np.repeat(values, counts)
        cells = token * n + self.chain.node.codes[at] % n
        sums = np.bincount(cells, weights, minlength=tokens * n)
        return sums.astype(np.float64).reshape(tokens, n)

    def best(self, data: _core.Dataset, n_jobs: int) -> NDArray[np.int64]:
        """The best path of each sequence, [tokens].

        The engine scores in float32. Where its two best paths are that close, double precision decides, and between
        paths that are level there, as the original does, the lower label.
        """
        counts, scores, labels = self.scorer.kbest(data, 2, n_jobs=n_jobs)
        bounds = data.offsets.astype(np.int64)
        length, paths = np.diff(bounds), counts.astype(np.int64)
        first = np.cumsum(paths * length) - paths * length
        out = labels[np.repeat(first - bounds[:-1], length) + np.arange(int(bounds[-1]))].astype(np.int64)
        rank = np.cumsum(paths) - paths
        two = np.flatnonzero((paths > 1) & (length > 0))
        close = two[scores[rank[two]] - scores[rank[two] + 1] < CLOSE]
        if len(close):
            ptr, ids, values = _rows(data)
            for s in close.tolist():
                a, b = bounds[s], bounds[s + 1]
                part = slice(ptr[a], ptr[b])
                node = self.node_scores(
                    ptr[a : b + 1] - ptr[a], ids[part], None if values is None else values[part]
                )
                out[a:b] = _core.chain_viterbi(node, self.edge)[1]
        return out


def _rows(data: _core.Dataset) -> tuple[Ids, Ids, Table | None]:
    ptr, ids, values = data.node()
    return ptr.astype(np.int64), ids.astype(np.int64), values.astype(np.float64) if len(values) else None


class Tagger:
    """Labels sequences by a model of CRFsuite. One object may be used by one thread at a time."""

    def __init__(self) -> None:
        self._model: Opened | None = None
        self._data: _core.Dataset | None = None
        self._known: tuple[Table, float, Table] | None = None

    # --- the model ------------------------------------------------------------------------------------------

    def open(self, name: str | bytes | os.PathLike[str]) -> contextlib.closing[Tagger]:
        """Open a model file; what is returned closes it at the end of a `with`."""
        with open(name, "rb") as file:
            data = file.read()
        if data[:4] != b"lCRF":
            raise ValueError(f"Invalid model file {name!r}")
        if len(data) <= 48:
            raise ValueError(f"Model file {name!r} doesn't have a complete header")
        try:
            return self._opened(data)
        except ModelFileError as error:
            raise ModelFileError(f"{os.fsdecode(name)}: {error}") from None

    def open_inmemory(self, value: bytes) -> contextlib.closing[Tagger]:
        """Open a model that is in memory: the bytes of a model file."""
        if not isinstance(value, bytes):
            raise TypeError(
                f"Argument 'value' has incorrect type (expected bytes, got {type(value).__name__})"
            )
        if value[:4] != b"lCRF":
            raise ValueError("Invalid model")
        if len(value) < 48:
            raise ValueError("Invalid model: incomplete header")
        return self._opened(value)

    def _opened(self, data: bytes) -> contextlib.closing[Tagger]:
        self.close()
        self._model = Opened(data)
        return contextlib.closing(self)

    def close(self) -> None:
        """Close the model."""
        self._model = self._data = self._known = None

    def _open(self, error: type[Exception] = ValueError) -> Opened:
        if self._model is None:
            raise error("The tagger is not opened")
        return self._model

    def labels(self) -> list[str]:
        """The labels, by number."""
        return list(self._open().labels)

    # --- sequences ------------------------------------------------------------------------------------------

    def set(self, xseq: Any) -> None:
        """Set the sequence that `tag`, `probability` and `marginal` are about."""
        model = self._open()
        self._known = None
        if not model.labels:
            if len(flat_sequence(xseq)):
                raise ValueError("The model has no labels: it was trained on nothing")
            self._data = None
            return
        self._data = model.encoded(xseq)

    def tag(self, xseq: Any = None) -> list[str]:
        """The labels of a sequence, or of the one set last."""
        if xseq is not None:
            self.set(xseq)
        model = self._open()
        if self._data is None or not self._data.n_tokens:
            return []
        names = model.labels
        return [names[y] for y in model.best(self._data, 1).tolist()]

    def tag_many(self, sequences: Sequence[Any]) -> list[list[str]]:
        """Labels of many sequences at once, on all cores; the one set last stays. Not in the original."""
        model = self._open()
        if not model.labels:
            if any(len(flat_sequence(xseq)) for xseq in sequences):
                raise ValueError("The model has no labels: it was trained on nothing")
            return [[] for _ in sequences]
        rows = [x if isinstance(x, (list, tuple)) else flat_sequence(x) for x in sequences]
        try:
            if model.escapes:
                raise ValueError
            data = _core.encode_attributes(model.vocabulary, rows, n_jobs=os.cpu_count() or 1)
        except (ValueError, TypeError):
            data = _core.encode_attributes(model.vocabulary, [flat_sequence(row) for row in rows])
        names, path, bounds = model.labels, model.best(data, 0).tolist(), data.offsets.tolist()
        return [[names[y] for y in path[a:b]] for a, b in pairwise(bounds)]

    def _scores(self) -> tuple[Table, float, Table] | None:
        """Node scores, log Z and marginals of the sequence set last; None where it is empty."""
        model = self._open()
        if self._data is None or not self._data.n_tokens:
            return None
        if self._known is None:
            node = model.node_scores(*_rows(self._data))
            log_z, p, _ = _core.chain_marginals(node, model.edge)
            self._known = node, log_z, p
        return self._known

    def _number(self, label: str | bytes) -> int:
        found = self._open().numbers.get(name_of(label))
        if found is None:
            raise RuntimeError(f"Failed to convert into label identifier: {label!r}")
        return found

    def probability(self, yseq: Iterable[str | bytes]) -> float:
        """P(yseq | the sequence set last)."""
        known = self._scores()
        if known is None:
            return 0.0
        given = list(yseq)
        node, log_z, _ = known
        if len(given) != len(node):
            raise ValueError(f"The numbers of items and labels differ: |x| = {len(node)}, |y| = {len(given)}")
        path = np.array([self._number(y) for y in given], np.int64)
        return float(np.exp(path_score(node, self._open().edge, path) - log_z))

    def marginal(self, y: str | bytes, pos: int) -> float:
        """P(the label at pos is y | the sequence set last)."""
        known = self._scores()
        if known is None:
            return 0.0
        p = known[2]
        if not 0 <= pos < len(p):
            raise ValueError(f"The position, {pos} is out of range of {len(p)}")
        return float(p[pos, self._number(y)])

    def marginals(self) -> list[dict[str, float]]:
        """Probabilities of all labels at all positions of the sequence set last. Not in the original."""
        known, names = self._scores(), self._open().labels
        return [] if known is None else [dict(zip(names, row)) for row in known[2].tolist()]

    # --- looking inside -------------------------------------------------------------------------------------

    def dump(self, filename: str | os.PathLike[str] | None = None) -> None:
        """Write the model as text to a file, or to the descriptor of stdout."""
        text = dumped(self._open(RuntimeError))
        if filename is not None:
            with atomic(filename) as file:
                file.write(text)
            return
        sys.stdout.flush()
        with os.fdopen(os.dup(sys.stdout.fileno()), "wb") as out:
            out.write(text)

    def info(self) -> ParsedDump:
        """What the model says of itself; weights have the six decimals of `dump`."""
        model, found = self._open(RuntimeError), ParsedDump()
        chain, n = model.chain, len(model.labels)
        texts = [raw(text).decode("utf-8", "surrogateescape") for text in chain.texts]
        found.header = dict(header_lines(model))
        found.labels = {label: str(i) for i, label in enumerate(model.labels)}
        found.attributes = {text: str(i) for i, text in enumerate(texts)}
        for code, weight in zip(chain.edge.codes.tolist(), chain.edge.weights.tolist()):
            found.transitions[model.labels[code // n], model.labels[code % n]] = float(f"{weight:f}")
        for code, weight in zip(chain.node.codes.tolist(), chain.node.weights.tolist()):
            found.state_features[texts[code // n], model.labels[code % n]] = float(f"{weight:f}")
        return found


def header_lines(model: Opened) -> list[tuple[str, str]]:
    """The header by name, as the dump has it."""
    size, features, *rest = model.header
    numbers: list[Any] = ["lCRF", size, "FOMC", 100, features, *rest]
    return [
        (name, f"0x{value:X}" if name.startswith("off_") else str(value))
        for name, value in zip(crfsuite.FIELDS, numbers)
    ]


def dumped(model: Opened) -> bytes:
    """The text dump: header, labels, attributes, transitions, state features."""
    chain, n = model.chain, len(model.labels)
    labels, texts = [raw(y) for y in chain.labels], [raw(text) for text in chain.texts]
    edges = zip(chain.edge.codes.tolist(), chain.edge.weights.tolist())
    nodes = zip(chain.node.codes.tolist(), chain.node.weights.tolist())
    sections = (
        (b"FILEHEADER", [f"  {name}: {value}".encode() for name, value in header_lines(model)]),
        (b"LABELS", [b"  %5d: %s" % pair for pair in enumerate(labels)]),
        (b"ATTRIBUTES", [b"  %5d: %s" % pair for pair in enumerate(texts)]),
        (b"TRANSITIONS", [b"  (1) %s --> %s: %f" % (labels[c // n], labels[c % n], w) for c, w in edges]),
        (b"STATE_FEATURES", [b"  (0) %s --> %s: %f" % (texts[c // n], labels[c % n], w) for c, w in nodes]),
    )
    return b"".join(
        b"%s = {\n%s}\n\n" % (name, b"".join(x + b"\n" for x in lines)) for name, lines in sections
    )


__all__ = ["Tagger"]

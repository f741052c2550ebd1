"""Taggers: a model that is open, and the sequence that was set last."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

import tagwise._core as _core
from tagwise.base.exceptions import ModelFileError
from tagwise.base.files.regular import handle_of
from tagwise.base.writing import atomic
from tagwise.compat.pycrfsuite._dumpparser import ParsedDump
from tagwise.compat.pycrfsuite.bulk import WORTH, Bulk, pairs_of, sequence_of
from tagwise.compat.pycrfsuite.items import name_of
from tagwise.features.escape import raw
from tagwise.model.formats import crfsuite
from tagwise.model.formats.chain import Chain

Table = NDArray[np.float64]


class Opened:
    """A model that is open; the engine reads its file as it lies, and checks what it uses."""

    def __init__(self, engine: _core.CrfsuiteModel) -> None:
        self.engine = engine
        self.labels = self.engine.labels
        self.numbers = {y.encode("utf-8", "surrogateescape"): i for i, y in enumerate(self.labels)}

    @cached_property
    def header(self) -> tuple[int, ...]:
        """Numbers of the file's header."""
        return crfsuite.header_of(self.engine.data())

    @cached_property
    def chain(self) -> Chain:
        """Everything that the file says, for those who look inside."""
        return crfsuite.read(self.engine.data())

    @cached_property
    def bulk(self) -> Bulk:
        """The model for many sequences at once."""
        return Bulk(self.chain, self.labels)


class Tagger:
    """Labels sequences by a model of CRFsuite. One object may be used by one thread at a time."""

    def __init__(self) -> None:
        self._model: Opened | None = None
        self._data: _core.CrfsuiteSequence | None = None
        self._known: tuple[Table, float, Table] | None = None

    # --- the model ------------------------------------------------------------------------------------------

    def open(self, name: str | bytes | os.PathLike[str]) -> contextlib.closing[Tagger]:
        """Open a model file; what is returned closes it at the end of a `with`."""
        with open(name, "rb", buffering=0) as file:
            head = file.read(49)
            if head[:4] != b"lCRF":
                raise ValueError(f"Invalid model file {name!r}")
            if len(head) <= 48:
                raise ValueError(f"Model file {name!r} doesn't have a complete header")
            try:
                return self._opened(_core.CrfsuiteModel.open(handle_of(file)))
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
        return self._opened(_core.CrfsuiteModel(value))

    def _opened(self, engine: _core.CrfsuiteModel) -> contextlib.closing[Tagger]:
        self.close()
        self._model = Opened(engine)
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
        self._open()
        self._known, self._data = None, sequence_of(xseq)

    def tag(self, xseq: Any = None) -> list[str]:
        """The labels of a sequence, or of the one set last."""
        if xseq is not None:
            self.set(xseq)
        model = self._open()
        return [] if self._data is None else model.engine.tag(self._data)

    def tag_many(self, sequences: Sequence[Any]) -> list[list[str]]:
        """Labels of many sequences at once, on all cores; the one set last stays. Not in the original."""
        model, sequences = self._open(), list(sequences)
        lengths = (len(x) if hasattr(x, "__len__") else 0 for x in sequences)
        if model.labels and sum(lengths) >= WORTH:
            return model.bulk.tag(sequences, model.engine)
        return model.engine.tag_many(sequences, pairs_of)

    def _scores(self) -> tuple[Table, float, Table] | None:
        """Node scores, log Z and marginals of the sequence set last; None where it is empty."""
        model = self._open()
        if self._data is None or not len(self._data):
            return None
        if self._known is None:
            self._known = model.engine.marginals(self._data)
        return self._known

    def _number(self, label: str | bytes) -> int:
        found = self._open().numbers.get(raw(name_of(label)))
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
        edge = self._open().engine.edge()
        score = node[np.arange(len(path)), path].sum() + edge[path[:-1], path[1:]].sum()
        return float(np.exp(score - log_z))

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

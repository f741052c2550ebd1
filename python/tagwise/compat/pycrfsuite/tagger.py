"""Taggers, which hold an open model and the current sequence."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

import tagwise._core as _core
from tagwise.base.cached import cached
from tagwise.base.exceptions import ModelFileError
from tagwise.base.files.regular import handle_of
from tagwise.base.writing import atomic
from tagwise.compat.pycrfsuite._dumpparser import ParsedDump
from tagwise.compat.pycrfsuite.bulk import MIN_ITEMS, Bulk, pairs_of, sequence_of
from tagwise.compat.pycrfsuite.items import name_of
from tagwise.features.escape import encode_name
from tagwise.model.formats import crfsuite
from tagwise.model.formats.chain import ForeignModel

Table = NDArray[np.float64]


class OpenModel:
    """Open model. The core reads the file in place, and checks the parts that it uses."""

    def __init__(self, engine: _core.CrfsuiteModel) -> None:
        self.engine = engine
        self.labels = self.engine.labels
        self.numbers = {y.encode("utf-8", "surrogateescape"): i for i, y in enumerate(self.labels)}

    @property
    @cached
    def header(self) -> tuple[int, ...]:
        """Numbers in the header of the file."""
        return crfsuite.header_of(self.engine.data())

    @property
    @cached
    def chain(self) -> ForeignModel:
        """The whole content of the file, for inspection."""
        return crfsuite.read(self.engine.data())

    @property
    @cached
    def bulk(self) -> Bulk:
        """The model in the layout for many sequences."""
        return Bulk(self.chain, self.labels)


class Tagger:
    """Tagger with a model of CRFsuite. An object can be used by one thread at a time."""

    def __init__(self) -> None:
        self._model: OpenModel | None = None
        self._data: _core.CrfsuiteSequence | None = None
        self._inference: tuple[Table, float, Table] | None = None

    # --- the model ------------------------------------------------------------------------------------------

    def open(self, name: str | bytes | os.PathLike[str]) -> contextlib.closing[Tagger]:
        """Open a model file, and return a context manager that closes it."""
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
        """Open a model from the bytes of a model file."""
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
        self._model = OpenModel(engine)
        return contextlib.closing(self)

    def close(self) -> None:
        """Close the model."""
        self._model = self._data = self._inference = None

    def _open(self, error: type[Exception] = ValueError) -> OpenModel:
        if self._model is None:
            raise error("The tagger is not opened")
        return self._model

    def labels(self) -> list[str]:
        """Return the labels, in the order of their numbers."""
        return list(self._open().labels)

    # --- sequences ------------------------------------------------------------------------------------------

    def set(self, xseq: Any) -> None:
        """Set the current sequence for `tag`, `probability` and `marginal`."""
        self._open()
        self._inference, self._data = None, sequence_of(xseq)

    def tag(self, xseq: Any = None) -> list[str]:
        """Return the labels of a sequence, which becomes the current one. None means the current sequence."""
        if xseq is not None:
            self.set(xseq)
        model = self._open()
        return [] if self._data is None else model.engine.tag(self._data)

    def tag_many(self, sequences: Sequence[Any]) -> list[list[str]]:
        """Return the labels of many sequences, using all cores. The current sequence does not change.

        python-crfsuite does not have this method.
        """
        model, sequences = self._open(), list(sequences)
        lengths = (len(x) if hasattr(x, "__len__") else 0 for x in sequences)
        if model.labels and sum(lengths) >= MIN_ITEMS:
            return model.bulk.tag(sequences, model.engine)
        return model.engine.tag_many(sequences, pairs_of)

    def _scores(self) -> tuple[Table, float, Table] | None:
        """Return node scores, log Z and marginals of the current sequence, or None if it is empty."""
        model = self._open()
        if self._data is None or not len(self._data):
            return None
        if self._inference is None:
            self._inference = model.engine.marginals(self._data)
        return self._inference

    def _number(self, label: str | bytes) -> int:
        found = self._open().numbers.get(encode_name(name_of(label)))
        if found is None:
            raise RuntimeError(f"Failed to convert into label identifier: {label!r}")
        return found

    def probability(self, yseq: Iterable[str | bytes]) -> float:
        """Return P(yseq | current sequence)."""
        inference = self._scores()
        if inference is None:
            return 0.0
        labels = list(yseq)
        node, log_z, _ = inference
        if len(labels) != len(node):
            raise ValueError(
                f"The numbers of items and labels differ: |x| = {len(node)}, |y| = {len(labels)}"
            )
        path = np.array([self._number(y) for y in labels], np.int64)
        edge = self._open().engine.edge()
        score = node[np.arange(len(path)), path].sum() + edge[path[:-1], path[1:]].sum()
        return float(np.exp(score - log_z))

    def marginal(self, y: str | bytes, pos: int) -> float:
        """Return P(the label at pos is y | current sequence)."""
        inference = self._scores()
        if inference is None:
            return 0.0
        p = inference[2]
        if not 0 <= pos < len(p):
            raise ValueError(f"The position, {pos} is out of range of {len(p)}")
        return float(p[pos, self._number(y)])

    def marginals(self) -> list[dict[str, float]]:
        """Return the probabilities of all labels at all positions of the current sequence.

        python-crfsuite does not have this method.
        """
        inference, names = self._scores(), self._open().labels
        return [] if inference is None else [dict(zip(names, row)) for row in inference[2].tolist()]

    # --- inspection -----------------------------------------------------------------------------------------

    def dump(self, filename: str | os.PathLike[str] | None = None) -> None:
        """Write the model as text to a file, or to the file descriptor of stdout."""
        text = dumped(self._open(RuntimeError))
        if filename is not None:
            with atomic(filename) as file:
                file.write(text)
            return
        sys.stdout.flush()
        with os.fdopen(os.dup(sys.stdout.fileno()), "wb") as out:
            out.write(text)

    def info(self) -> ParsedDump:
        """Return the content of the model. Weights have six decimals, as in `dump`."""
        model, found = self._open(RuntimeError), ParsedDump()
        chain, n = model.chain, len(model.labels)
        texts = [encode_name(text).decode("utf-8", "surrogateescape") for text in chain.texts]
        found.header = dict(header_lines(model))
        found.labels = {label: str(i) for i, label in enumerate(model.labels)}
        found.attributes = {text: str(i) for i, text in enumerate(texts)}
        for code, weight in zip(chain.edge.codes.tolist(), chain.edge.weights.tolist()):
            found.transitions[model.labels[code // n], model.labels[code % n]] = float(f"{weight:f}")
        for code, weight in zip(chain.node.codes.tolist(), chain.node.weights.tolist()):
            found.state_features[texts[code // n], model.labels[code % n]] = float(f"{weight:f}")
        return found


def header_lines(model: OpenModel) -> list[tuple[str, str]]:
    """Return the fields of the header, formatted for the dump."""
    size, features, *rest = model.header
    numbers: list[Any] = ["lCRF", size, "FOMC", 100, features, *rest]
    return [
        (name, f"0x{value:X}" if name.startswith("off_") else str(value))
        for name, value in zip(crfsuite.FIELDS, numbers)
    ]


def dumped(model: OpenModel) -> bytes:
    """Return the text dump: header, labels, attributes, transitions, state features."""
    chain, n = model.chain, len(model.labels)
    labels, texts = [encode_name(y) for y in chain.labels], [encode_name(text) for text in chain.texts]
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

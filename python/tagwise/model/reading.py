"""Reader of model files. Errors are ModelFileErrors that name the file and the field."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Mapping, Sequence
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

import tagwise._core as _core
from tagwise.base import domains
from tagwise.base.exceptions import MemoryLimitError, MissingFunctionError, ModelFileError, TagwiseError
from tagwise.base.files.regular import handle_of, open_regular
from tagwise.base.imports import Functions
from tagwise.base.parameters import checked_path
from tagwise.corpus.labels import broken, first_break, reads_as
from tagwise.features.recipe import Recipe
from tagwise.model import schema
from tagwise.model.formats.chain import parts_of as foreign_parts
from tagwise.model.formats.table import HEAD, ModelFormat, format_of
from tagwise.scores.constraints import Constraints
from tagwise.scores.dictionary import TagDictionary
from tagwise.scores.kernels import KernelFunction, KernelScorer
from tagwise.scores.lookback import LookbackWeights
from tagwise.scores.protocols import Scorer
from tagwise.scores.voters import Voters

Path = str | os.PathLike[str]
#: Remedy in messages about files that cannot be read.
REMEDY = "Give the path of a file written by `tagwise train` or `save`."


@contextlib.contextmanager
def error_prefix(place: str) -> Iterator[None]:
    """Turn errors raised inside into ModelFileErrors that name this file, or this part of it."""
    try:
        yield
    except (MissingFunctionError, MemoryLimitError, OSError):
        raise
    except (TagwiseError, ValueError) as error:
        message = str(error)
        raise ModelFileError(message if message.startswith(place) else f"{place}: {message}") from error


def parts_of(path: Path, functions: Functions, *, mmap: bool = False) -> dict[str, Any]:
    """Return the parts of the model in a file, by the names of `Model`.

    Files of other programs are detected by their first bytes. The path is opened once, so that replacing the file
    meanwhile has no effect. `functions` resolves the functions that the file names.
    """
    name = os.fspath(checked_path(path))
    with error_prefix(name):
        with open_regular(name, None, ModelFileError, REMEDY) as raw:
            format = format_of(raw.read(HEAD))
            if format is not None:
                return _foreign(raw, format)
            shown = name.encode("utf-8", "backslashreplace").decode("utf-8")
            file = _core.ModelFile(handle_of(raw), shown, mmap=mmap)
        header = schema.parsed(file.header)
        types = schema.check_arrays(file.arrays, header)
        arrays = {
            name: file.array(name)
            for name in types
            if name.split(".")[0] in ("support", "beta", "dictionary", "lookback")
            or name in header.get("arrays", ())
        }
        labels, n_attributes = tuple(header["labels"]), header["n_attributes"]
        kind = header.get("label_type", "str")
        for label in labels:
            if not reads_as(label, kind):
                raise ModelFileError(
                    f"labels: expected texts of type {kind}, the label_type of the file, found {label!r}"
                )
        check_line_breaks(labels)
        with error_prefix("features"):
            recipe = Recipe.from_json(header["features"], functions)
        lookback = constraints = forbidden = dictionary = None
        if "lookback" in header:
            lookback = _lookback(header["lookback"], arrays.pop("lookback"), len(labels))
        if "constraints" in header:
            with error_prefix("constraints"):
                constraints = Constraints.parse(header["constraints"])
                forbidden = constraints.rules(labels).forbidden
        if "dictionary.of" in types:
            with error_prefix("dictionary"):
                dictionary = TagDictionary.from_arrays(arrays, len(labels))
        vocabulary = file.vocabulary()
        if len(vocabulary) != n_attributes:
            raise ModelFileError(
                f"n_attributes: expected {len(vocabulary)}, the size of the vocabulary, found {n_attributes}"
            )
        base = file.scorer(n_attributes, len(labels), forbidden, local=header.get("local", False))
        check_finite("weights", base.weights)
        scorer: Scorer = base
        if "kernel" in header:
            for name in ("support.values", "beta.value"):
                check_finite(name, arrays[name])
            with error_prefix("kernel"):
                kernel = KernelFunction.from_json(header["kernel"], functions)
                scorer = KernelScorer.of_arrays(
                    base, kernel, {name: arrays[name] for name in schema.GROUPS["kernel"]}
                )
        own = {name: arrays[name] for name in header.get("arrays", ())}
        if "boosting.feature" in types:
            _check_rounds(own, base.layout)
        if "voters.counts" in types:
            _check_voters(own, base)
        if "state" in header["meta"]:
            _check_state(file, len(base.layout))
    return {
        "labels": labels,
        "recipe": recipe,
        "vocabulary": vocabulary,
        "scorer": scorer,
        "meta": header["meta"],
        "lookback": lookback,
        "constraints": constraints,
        "dictionary": dictionary,
        "arrays": own,
        "file": file,
        "label_type": kind,
    }


def _foreign(raw: IO[bytes], format: ModelFormat) -> dict[str, Any]:
    """Return the parts of a model of another program, from its open file."""
    with error_prefix(f"a model of {format.program}"):
        raw.seek(0)
        size = os.fstat(raw.fileno()).st_size
        _core.claim("the bytes of the file", size, "check that it is the model that you want")
        data = raw.read(size)
        if len(data) < size:
            raise ModelFileError("the file was truncated while it was read. Copy it again")
        chain = format.read(data)
        check_line_breaks(chain.labels)
        return foreign_parts(chain)


def check_line_breaks(labels: Sequence[str]) -> None:
    """Raise a ModelFileError for labels that a file of columns cannot hold."""
    at = first_break(labels)
    if at is not None:
        raise ModelFileError(f"labels: {broken(labels[at])}. Train again with another name")


def check_finite(name: str, array: NDArray[Any]) -> None:
    """Raise a ModelFileError for NaN and infinite numbers."""
    try:
        domains.check_finite(name, array)
    except domains.DomainError as error:
        raise ModelFileError(f"{error}. Train again, or copy the file again") from None


def _lookback(data: Mapping[str, Any], weights: NDArray[Any], n_labels: int) -> LookbackWeights:
    found = LookbackWeights.from_json(data, weights)
    wanted = found.n_weights(n_labels)
    if len(weights) != wanted:
        raise ModelFileError(
            f"lookback: expected {wanted} weights for {n_labels} labels, found {len(weights)}"
        )
    check_finite("lookback", weights)
    return found


def _check_rounds(own: Mapping[str, NDArray[Any]], layout: _core.Layout) -> None:
    """Check the rounds of a boosted model: columns of equal length and valid feature numbers."""
    columns = [own.get(name) for name in schema.GROUPS["boosting"]]
    known = [column for column in columns if column is not None]
    if len(known) < len(columns) or len({len(column) for column in known}) > 1:
        raise ModelFileError(
            "boosting: expected columns of equal length, all listed under `arrays` in the header"
        )
    if "pair" in layout.arrays() and len(layout.arrays()["pair"]):
        raise ModelFileError("boosting: expected a model without edge attributes")
    if len(own["boosting.feature"]) and int(own["boosting.feature"].max()) >= len(layout):
        raise ModelFileError(f"boosting.feature: expected features below {len(layout)}")
    for name, column in own.items():
        if column.dtype == np.float64:
            check_finite(name, column)


def _check_voters(own: Mapping[str, NDArray[Any]], base: _core.Scorer) -> None:
    """Check the voters of a model: named by the header, with a finite weight per feature."""
    voters = Voters.from_arrays(own, base, None)
    if voters is None:
        raise ModelFileError("voters: expected their arrays to be listed under `arrays` in the header")
    check_finite("voters.weights", voters.weights.ravel())


def _check_state(file: _core.ModelFile, n_features: int) -> None:
    """Check the state of training: one number per feature, or none if the learner has none."""
    for name in schema.GROUPS["state"]:
        array = file.array(name)
        if len(array) != n_features and (len(array) or name == "state.weights"):
            raise ModelFileError(f"{name}: expected {n_features} numbers, found {len(array)}")
        check_finite(name, array.view(np.float32) if name == "state.weights" else array)


def forbidden_of(constraints: Constraints | None, labels: Sequence[str]) -> NDArray[np.uint32] | None:
    """Return the forbidden label pairs as the core numbers them, or None without constraints."""
    return None if constraints is None else constraints.rules(labels).forbidden

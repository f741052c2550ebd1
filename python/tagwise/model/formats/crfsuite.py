"""lCRF, the model file of CRFsuite (FOMC, version 100), as python-crfsuite and sklearn-crfsuite write it.

    header 48 B · FEAT · labels · attributes · padding to 4 · LFRF · AFRF

The core reads and writes it (`rust/src/foreign`). The lists of LFRF and AFRF give the features of each label and
attribute. The number of features in the header is ignored, since writers leave it at 0.
"""

from __future__ import annotations

import struct

import numpy as np
from numpy.typing import NDArray

import tagwise._core as _core
from tagwise.base.exceptions import ModelFileError
from tagwise.features.escape import decode_name, encode_name
from tagwise.features.recipe import Recipe
from tagwise.model.formats.chain import FeatureWeights, ForeignModel, check_no_border

MAGIC, HEAD = b"lCRF", 48
#: Names of the header fields, as in the text dump.
FIELDS = (
    *("magic", "size", "type", "version", "num_features", "num_labels", "num_attrs"),
    *("off_features", "off_labels", "off_attrs", "off_labelrefs", "off_attrrefs"),
)


def matches(head: bytes) -> bool:
    """Return whether a file begins like a model of CRFsuite."""
    return head[:4] == MAGIC


def header_of(data: bytes) -> tuple[int, ...]:
    """Return the numbers of the header from `size` on, checked against the file."""
    if len(data) < HEAD:
        raise ModelFileError(
            f"{len(data)} bytes, expected at least {HEAD}: the file is truncated, copy it again"
        )
    magic, size, kind, version, *rest = struct.unpack_from("<4sI4s9I", data)
    if magic != MAGIC or kind != b"FOMC" or version != 100:
        raise ModelFileError(
            f"a CRFsuite model of type {kind!a}, version {version}, expected b'FOMC', version 100"
        )
    if size > len(data):
        raise ModelFileError(f"{len(data)} bytes of {size}: the file is truncated, copy it again")
    offsets = rest[3:]
    if min(offsets) < HEAD or max(offsets) + 12 > len(data):
        raise ModelFileError(f"parts at {offsets}, outside the file of {len(data)} bytes. Copy it again")
    return (size, *rest)


def read(data: bytes) -> ForeignModel:
    """Read a model from the bytes of a file, with all checks."""
    model = _core.CrfsuiteModel(data)
    texts, node, edge = model.whole(decode_name)
    return ForeignModel(
        tuple(decode_name(label.encode("utf-8", "surrogateescape")) for label in model.labels),
        texts,
        _summed(*node),
        _last(*edge),
        FeatureWeights.none(),
        Recipe("attributes", "attributes"),
        about={"format": "crfsuite"},
    )


def _summed(codes: NDArray[np.int64], weights: NDArray[np.float64]) -> FeatureWeights:
    """Return the state features. Weights of duplicates are added."""
    if (np.diff(codes) > 0).all():
        return FeatureWeights(codes, weights)
    kept, at = np.unique(codes, return_inverse=True)
    if len(kept) == len(codes):
        return FeatureWeights.sorted(codes, weights)
    return FeatureWeights(kept, np.bincount(at, weights, minlength=len(kept)).astype(np.float64))


def _last(codes: NDArray[np.int64], weights: NDArray[np.float64]) -> FeatureWeights:
    """Return the transitions. The last one of duplicates counts."""
    if (np.diff(codes) > 0).all():
        return FeatureWeights(codes, weights)
    kept, at = np.unique(codes[::-1], return_index=True)
    return FeatureWeights(kept, weights[::-1][at])


# --- writing -------------------------------------------------------------------------------------------------


def check_supported(chain: ForeignModel) -> None:
    """Raise a ModelFileError for parts that a model of CRFsuite cannot express."""
    check_no_border(chain, "crfsuite")
    if len(chain.pair.present.codes):
        raise ModelFileError(
            "crfsuite cannot express attributes of label pairs. Train without edge attributes"
        )
    if chain.local:
        raise ModelFileError(
            "crfsuite cannot express a model that is normalised at every step (a MEMM). Train a CRF"
        )


def write(chain: ForeignModel) -> bytes:
    """Return the file of a model, byte for byte as CRFsuite writes it."""
    check_supported(chain)
    node, edge = chain.node, chain.edge
    return _core.crfsuite_model_bytes(
        list(chain.labels),
        list(chain.texts),
        (node.codes, node.weights),
        (edge.codes, edge.weights),
        encode_name,
    )

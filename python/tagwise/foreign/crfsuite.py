"""lCRF, the model file of CRFsuite (FOMC, version 100), as python-crfsuite and sklearn-crfsuite write it.

    header 48 B · FEAT · labels · attributes · padding to 4 · LFRF · AFRF

Features are sorted by (type, from, to); a weight of 0 is never written, an attribute without a feature neither; all
labels stay. The lists of LFRF and AFRF say which features leave a label or an attribute: those count, and the
header's number of features, which writers leave at 0, does not.
"""

from __future__ import annotations

import struct

import numpy as np
from numpy.typing import NDArray

from tagwise.errors import ModelFileError
from tagwise.features.escape import all_raw, all_told
from tagwise.features.recipe import Recipe
from tagwise.foreign import cqdb
from tagwise.foreign.chain import Block, Chain, refuse_border

MAGIC, HEAD = b"lCRF", 48
RECORD = np.dtype([("type", "<u4"), ("src", "<u4"), ("dst", "<u4"), ("weight", "<f8")])
#: The header by name, as the text dump has it.
FIELDS = (
    *("magic", "size", "type", "version", "num_features", "num_labels", "num_attrs"),
    *("off_features", "off_labels", "off_attrs", "off_labelrefs", "off_attrrefs"),
)


def looks(head: bytes) -> bool:
    """Whether a file begins as a model of CRFsuite."""
    return head[:4] == MAGIC


def header_of(data: bytes) -> tuple[int, ...]:
    """Numbers of the header from `size` on, checked against the file."""
    if len(data) < HEAD:
        raise ModelFileError(
            f"{len(data)} bytes; a CRFsuite model has {HEAD} and more: the file is cut short"
        )
    magic, size, kind, version, *rest = struct.unpack_from("<4sI4s9I", data)
    if magic != MAGIC or kind != b"FOMC" or version != 100:
        raise ModelFileError(
            f"a CRFsuite model of type {kind!a}, version {version}; expected b'FOMC', version 100"
        )
    if size > len(data):
        raise ModelFileError(f"{len(data)} bytes of {size}: the file is cut short, copy it again")
    offsets = rest[3:]
    if min(offsets) < HEAD or max(offsets) + 12 > len(data):
        raise ModelFileError(f"parts at {offsets}, outside the file of {len(data)} bytes; copy it again")
    return (size, *rest)


def read(data: bytes) -> Chain:
    """The model of a file's bytes."""
    _, _, n, n_attributes, off_features, off_labels, off_attrs, off_out, off_of = header_of(data)
    bytes_ = np.frombuffer(data, np.uint8)
    name, _, count = struct.unpack_from("<4sII", data, off_features)
    if name != b"FEAT" or 12 + 20 * count > len(data) - off_features:
        raise ModelFileError(f"{count} features outside the file of {len(data)} bytes; copy it again")
    features = np.frombuffer(data, RECORD, count, off_features + 12)
    labels = cqdb.read(bytes_, off_labels, n, "labels")
    texts = cqdb.read(bytes_, off_attrs, n_attributes, "attributes")
    owner, ids = _lists(bytes_, off_out, b"LFRF", n, count)
    edge = _owned(features[ids], owner, 1, n, "label")
    owner, ids = _lists(bytes_, off_of, b"AFRF", n_attributes, count)
    node = _owned(features[ids], owner, 0, n, "attribute")
    return Chain(
        tuple(all_told(labels)),
        all_told(texts),
        _summed(*node),
        _last(*edge),
        Block.none(),
        Recipe("attributes", "attributes"),
        about={"format": "crfsuite"},
    )


Owned = tuple[NDArray[np.int64], NDArray[np.int64]]


def _lists(data: cqdb.Bytes, at: int, name: bytes, owners: int, count: int) -> Owned:
    """(owner, feature) of every entry of the lists of LFRF or AFRF, in the order of the lists."""
    found, _, n = struct.unpack("<4sII", data[at : at + 12].tobytes())
    if found != name or n < owners or at + 12 + 4 * n > len(data):
        raise ModelFileError(
            f"{name.decode()}: lists of {owners} outside the file; it is damaged, copy it again"
        )
    begin = cqdb.u32_at(data, at + 12 + 4 * np.arange(owners, dtype=np.int64))
    if (begin + 4 > len(data)).any() or (begin < HEAD).any():
        raise ModelFileError(f"{name.decode()}: a list outside the file; it is damaged, copy it again")
    sizes = cqdb.u32_at(data, begin)
    if (begin + 4 + 4 * sizes > len(data)).any() or int(sizes.sum()) > count:
        raise ModelFileError(f"{name.decode()}: lists longer than the file; it is damaged, copy it again")
    inside = np.arange(int(sizes.sum())) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    ids = cqdb.u32_at(data, np.repeat(begin + 4, sizes) + 4 * inside)
    if (ids >= count).any():
        raise ModelFileError(f"{name.decode()}: feature {int(ids.max())} of {count}; the file is damaged")
    return np.repeat(np.arange(owners, dtype=np.int64), sizes), ids


def _owned(
    features: NDArray[np.void], owner: NDArray[np.int64], kind: int, n: int, what: str
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Codes and weights of the features in lists, which must be of their kind and of the list's owner."""
    if (features["type"] != kind).any() or (features["src"] != owner).any():
        raise ModelFileError(
            f"a list of a {what} names a feature of another; the file is damaged, copy it again"
        )
    if (features["dst"] >= n).any():
        raise ModelFileError(f"a feature of label {int(features['dst'].max())} of {n}; the file is damaged")
    return owner * n + features["dst"], features["weight"].astype(np.float64)


def _summed(codes: NDArray[np.int64], weights: NDArray[np.float64]) -> Block:
    """State features: those given twice add up."""
    if (np.diff(codes) > 0).all():
        return Block(codes, weights)
    kept, at = np.unique(codes, return_inverse=True)
    if len(kept) == len(codes):
        return Block.sorted(codes, weights)
    return Block(kept, np.bincount(at, weights, minlength=len(kept)).astype(np.float64))


def _last(codes: NDArray[np.int64], weights: NDArray[np.float64]) -> Block:
    """Transitions: of those given twice the last counts."""
    if (np.diff(codes) > 0).all():
        return Block(codes, weights)
    kept, at = np.unique(codes[::-1], return_index=True)
    return Block(kept, weights[::-1][at])


# --- writing -------------------------------------------------------------------------------------------------


def _referenced(name: bytes, at: int, owner: NDArray[np.int64], n: int, more: int, first: int) -> bytes:
    """LFRF or AFRF at a byte of the file: features from `first` on, ascending in their owners, as lists."""
    sizes = np.bincount(owner, minlength=n).astype(np.int64)
    begin = at + 12 + 4 * (n + more) + np.concatenate([[0], np.cumsum(4 + 4 * sizes)]).astype(np.int64)
    total = int(begin[-1]) - at
    body = np.zeros(n + len(owner), "<u4")
    heads = np.arange(n) + np.cumsum(sizes) - sizes
    is_head = np.zeros(len(body), bool)
    is_head[heads] = True
    body[is_head], body[~is_head] = sizes, first + np.arange(len(owner))
    offsets = np.concatenate([begin[:-1], np.zeros(more, np.int64)]).astype("<u4")
    return struct.pack("<4sII", name, total, n + more) + offsets.tobytes() + body.tobytes()


def refuse(chain: Chain) -> None:
    """Refuse what a CRFsuite model has no place for."""
    refuse_border(chain, "crfsuite")
    if len(chain.pair.present.codes):
        raise ModelFileError(
            "crfsuite cannot express attributes of label pairs; train without edge attributes"
        )
    if chain.local:
        raise ModelFileError("crfsuite cannot express a model that is normalised at every step (a MEMM)")


def write(chain: Chain) -> bytes:
    """The file of a model, byte for byte as CRFsuite writes it."""
    refuse(chain)
    n, node, edge = len(chain.labels), chain.node.present, chain.edge.present
    used = np.unique(node.codes // n) if n else np.zeros(0, np.int64)
    source = np.searchsorted(used, node.codes // n) if n else node.codes
    records = np.zeros(len(node.codes) + len(edge.codes), RECORD)
    records["type"][len(node.codes) :] = 1
    if n:
        records["src"] = np.concatenate([source, edge.codes // n])
        records["dst"] = np.concatenate([node.codes % n, edge.codes % n])
    records["weight"] = np.concatenate([node.weights, edge.weights])
    feat = struct.pack("<4sII", b"FEAT", 12 + 20 * len(records), len(records)) + records.tobytes()
    texts = chain.texts
    names = all_raw(chain.labels), all_raw([texts[i] for i in used.tolist()])
    for strings, what in zip(names, ("label", "attribute")):
        if b"\0" in b"".join(strings):
            name = next(name for name in strings if b"\0" in name)
            raise ModelFileError(f"crfsuite cannot express the {what} {name!a}, which contains NUL")
    labels, attributes = map(cqdb.written, names)
    off_labels = HEAD + len(feat)
    off_attrs = off_labels + len(labels)
    off_out = (off_attrs + len(attributes) + 3) & ~3
    padding = bytes(off_out - off_attrs - len(attributes))
    edges = edge.codes // n if n else edge.codes
    leaving = _referenced(b"LFRF", off_out, edges, n, 2, len(node.codes))
    off_of = off_out + len(leaving)
    of = _referenced(b"AFRF", off_of, source, len(used), 0, 0)
    size = off_of + len(of)
    if size >= 1 << 32:
        raise ModelFileError(f"crfsuite cannot express a model of {size} bytes; expected less than 4 GiB")
    head = struct.pack(
        "<4sI4s9I",
        *(MAGIC, size, b"FOMC", 100, 0, n, len(used)),
        *(HEAD, off_labels, off_attrs, off_out, off_of),
    )
    return b"".join((head, feat, labels, attributes, padding, leaving, of))

"""Models of CRF++: the binary file, and the text file that `-t` writes.

    version · type · cost factor · three counts · labels · templates · dictionary · weights

A key is an expanded template with its name (`U00:The`, `B`). Its value is the index of its first weight. A key of U has
Y weights (value + y), a key of B has Y^2 (value + y' Y + y).
"""

from __future__ import annotations

import re
import struct
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tagwise.base.exceptions import ModelFileError, TemplateError
from tagwise.features.escape import decode_name, encode_name
from tagwise.features.patterns import Patterns
from tagwise.features.recipe import Recipe
from tagwise.model.formats import darts
from tagwise.model.formats.chain import FeatureWeights, ForeignModel, check_no_border

HEAD = struct.Struct("<IidIIII")
Keys = Sequence[tuple[bytes, int]]


def matches(head: bytes) -> bool:
    """Return whether a file begins like a binary model of CRF++: version 1xx, type 0, small cost factor, counts."""
    if len(head) < HEAD.size:
        return False
    version, kind, cost, _, columns, _, _ = HEAD.unpack_from(head)
    return bool(version // 100 == 1 and kind == 0 and 0.0 <= cost < 1e6 and columns < 1 << 16)


def matches_text(head: bytes) -> bool:
    """Return whether a file begins like a text model of CRF++."""
    return head.startswith(b"version: ")


def _damaged(problem: str) -> ModelFileError:
    return ModelFileError(f"{problem}. The file is damaged, copy it again")


# --- reading -------------------------------------------------------------------------------------------------


def read(data: bytes) -> ForeignModel:
    """Read a model from the bytes of a binary file."""
    if len(data) < HEAD.size + 4:
        raise _damaged(f"the file is truncated ({len(data)} bytes)")
    version, _, cost, maxid, columns, dsize, n = HEAD.unpack_from(data)
    at = HEAD.size
    if version // 100 != 1:
        raise ModelFileError(f"the model has version {version}, expected 100")
    if at + n + 4 > len(data):
        raise _damaged("the labels extend beyond the end of the file")
    labels = _strings(data[at : at + n], "labels")
    (m,) = struct.unpack_from("<I", data, at + n)
    at += n + 4
    if at + m + dsize + 4 * maxid != len(data) or dsize % 8:
        raise _damaged(f"{len(data)} bytes, but its parts have {at + m + dsize + 4 * maxid}")
    templates = _strings(data[at : at + m].rstrip(b"\0") + b"\0", "templates") if m else []
    if m and data[at + m - 1]:
        raise _damaged("the templates do not end in NUL")
    units = np.frombuffer(data, darts.UNIT, dsize // 8, at + m)
    with np.errstate(invalid="ignore"):  # signalling NaN (weights that are not finite are rejected later)
        weights = np.frombuffer(data, "<f4", maxid, at + m + dsize).astype(np.float64)
    keys = darts.keys_of(units, 64 * len(data) + (1 << 20))
    about = {"format": "crfpp", "version": version, "cost": cost, "columns": columns}
    return _chain(labels, templates, keys, weights, about)


def _strings(data: bytes, name: str) -> list[bytes]:
    if not data or data[-1]:
        raise _damaged(f"the {name} do not end in NUL")
    return data[:-1].split(b"\0")


def _chain(
    labels: list[bytes],
    templates: list[bytes],
    keys: Keys,
    weights: NDArray[np.float64],
    about: dict[str, Any],
) -> ForeignModel:
    """Return the chain of the parts of a model, with keys in the order of their values."""
    y = len(labels)
    if len(set(labels)) < y or not all(labels):
        raise _damaged("a label is empty, or occurs twice")
    lines = [decode_name(line) for line in templates]
    try:
        patterns = Patterns.of("crfpp", "\n".join(lines))
        if [pattern.source for pattern in patterns.lines] != lines:
            raise TemplateError("a template is not one of CRF++")
        names = ["word", *(f"x{i}" for i in range(1, max(1, patterns.n_columns)))]
        recipe = Recipe.of_patterns("crfpp", patterns.text, names)
    except TemplateError as error:
        raise _damaged(str(error)) from None
    if not lines or not keys:
        raise _damaged("the model has no templates, or no keys")
    keys = sorted(keys, key=lambda entry: entry[1])
    texts = [key for key, _ in keys]
    first = np.array([value for _, value in keys], np.int64)
    letters = np.frombuffer(b"".join(text[:1] or b"\0" for text in texts), np.uint8)
    is_node = letters == ord("U")
    if not (is_node | (letters == ord("B"))).all():
        raise _damaged("a key begins with neither U nor B")
    sizes = np.where(is_node, y, y * y)
    if len(first) and ((first < 0).any() or (first + sizes > len(weights)).any()):
        raise _damaged("the weights of a key are outside the file")
    if len(set(texts)) < len(texts):
        raise _damaged("a key occurs twice")
    if int(sizes.sum()) > len(weights):
        raise _damaged("two keys share weights")
    bare = patterns.bare
    edges = texts.index(encode_name(bare)) if bare is not None and encode_name(bare) in texts else -1
    ids = np.arange(len(texts))
    chosen = ~is_node & (ids != edges)
    edge = _features_of(ids[ids == edges] * 0, first[ids == edges], y * y, weights)
    node, pair = (_features_of(ids[k], first[k], int(w), weights) for k, w in ((is_node, y), (chosen, y * y)))
    return ForeignModel(
        tuple(map(decode_name, labels)), list(map(decode_name, texts)), node, edge, pair, recipe, about=about
    )


def _features_of(
    ids: NDArray[np.int64], first: NDArray[np.int64], width: int, weights: NDArray[np.float64]
) -> FeatureWeights:
    """Return the weights of keys, `width` each from `first` on. A weight of 0 (but not -0) is not a feature."""
    inside = np.arange(width)
    values = weights[(first[:, None] + inside).ravel()]
    codes = (ids[:, None] * width + inside).ravel()
    keep = (values != 0.0) | np.signbit(values)
    return FeatureWeights(codes[keep], values[keep])


_HEADER = re.compile(rb"version: (\d{1,9})\ncost-factor: (\S{1,40})\nmaxid: (\d{1,18})\nxsize: (\d{1,9})\n")


def read_text(data: bytes) -> ForeignModel:
    """Read a model from the bytes of a text file."""
    found = _HEADER.match(data)
    if found is None or not data.endswith(b"\n"):
        raise _damaged("expected version, cost-factor, maxid and xsize, and whole lines")
    blocks = data[found.end() + 1 : -1].split(b"\n\n")
    if data[found.end() : found.end() + 1] != b"\n" or len(blocks) != 4:
        raise _damaged(f"{len(blocks)} blocks of lines, expected labels, templates, keys and weights")
    labels, templates, keys, weights = (block.split(b"\n") for block in blocks)
    if int(found[1]) // 100 != 1:
        raise ModelFileError(f"the model has version {int(found[1])}, expected 100")
    if len(weights) != int(found[3]):
        raise _damaged(f"{len(weights)} weights, expected {int(found[3])}")
    entries = []
    for line in keys:
        number, blank, key = line.partition(b" ")
        if not blank or not number.isdigit() or len(number) > 18:
            raise _damaged(f"expected ID KEY, found {line[:40]!a}")
        entries.append((key, int(number)))
    try:
        numbers = np.array([float(text) for text in weights])
    except ValueError as error:
        raise _damaged(f"a weight: {error}") from None
    about = {
        "format": "crfpp-text",
        "version": int(found[1]),
        "cost": 1.0,
        "columns": int(found[4]),
        "factor": found[2].decode("latin-1"),
    }
    return _chain(labels, templates, entries, numbers, about)


# --- writing -------------------------------------------------------------------------------------------------


def _parts(
    chain: ForeignModel,
) -> tuple[list[bytes], list[bytes], list[tuple[bytes, int]], NDArray[np.float64]]:
    """Return labels, templates, keys with their values, and all weights."""
    check_no_border(chain, "crfpp")
    if chain.local:
        raise ModelFileError(
            "crfpp cannot express a model that is normalised at every step (a MEMM). Train a CRF"
        )
    recipe, y = chain.recipe, len(chain.labels)
    is_crfpp = recipe.kind == "template" and all(line[:1] in "UB#" for line in recipe.text.splitlines())
    if not is_crfpp and (recipe.kind != "patterns" or recipe.name != "crfpp"):
        raise ModelFileError(
            f"crfpp cannot express the features {recipe.name!r}. Train with templates of CRF++ (U00:%x[0,0])"
        )
    patterns = Patterns.of("crfpp", recipe.text)
    lines = [pattern.source for pattern in patterns.lines]
    texts, bare = [encode_name(text) for text in chain.texts], patterns.bare
    edge = chain.edge.present
    if len(edge.codes) and bare is None:
        if any(pattern.is_bare for pattern in patterns.lines):
            raise ModelFileError(
                "crfpp cannot express weights of label pairs together with two plain B templates. Keep one of them"
            )
        bare = "B"
        lines.append(bare)
    name = b"" if bare is None else encode_name(bare)
    if len(edge.codes) and name not in texts:
        texts.append(name)
    if not texts:
        raise ModelFileError("crfpp cannot express a model without attributes. Train on a larger corpus")
    is_node = np.array([text[:1] == b"U" for text in texts], bool)
    sizes = np.where(is_node, y, y * y)
    first = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    weights = np.zeros(int(first[-1]))
    weights[first[chain.node.codes // y] + chain.node.codes % y] = chain.node.weights
    owner = chain.pair.codes // (y * y)
    if not is_node[chain.node.codes // y].all() or is_node[owner].any():
        raise ModelFileError(
            "crfpp cannot express label weights of a B template, or label-pair weights of a U template"
        )
    weights[first[owner] + chain.pair.codes % (y * y)] = chain.pair.weights
    if len(edge.codes):
        weights[first[texts.index(name)] + edge.codes] = edge.weights
    for text in (*texts, *map(encode_name, chain.labels)):
        if not text or b"\0" in text:
            raise ModelFileError(f"crfpp cannot express the text {text!a}, which is empty or contains NUL")
    templates = [encode_name(line) for line in sorted(lines, key=lambda line: line[0] == "B")]
    keys = sorted(zip(texts, first[:-1].tolist()))
    return [encode_name(label) for label in chain.labels], templates, keys, weights


def _columns(chain: ForeignModel, templates: list[bytes]) -> int:
    known = chain.about.get("columns")
    return (
        known if known is not None else Patterns.of("crfpp", "\n".join(map(decode_name, templates))).n_columns
    )


def write(chain: ForeignModel) -> bytes:
    """Return the binary file of a model, byte for byte as CRF++ writes it."""
    labels, templates, keys, weights = _parts(chain)
    with np.errstate(over="ignore", under="ignore"):
        floats = weights.astype("<f4")
    units = darts.built([key for key, _ in keys], [value for _, value in keys])
    names = b"".join(label + b"\0" for label in labels)
    lines = b"".join(line + b"\0" for line in templates)
    lines += bytes(-(len(names) + len(lines)) % 4)
    array = units.tobytes()
    head = HEAD.pack(
        *(chain.about.get("version", 100), 0, chain.about.get("cost", 1.0), len(floats)),
        *(_columns(chain, templates), len(array), len(names)),
    )
    return b"".join((head, names, struct.pack("<I", len(lines)), lines, array, floats.tobytes()))


def write_text(chain: ForeignModel) -> bytes:
    """Return the text file of a model, as CRF++ writes it together with the binary one."""
    labels, templates, keys, weights = _parts(chain)
    factor = chain.about.get("factor", "1")
    head = f"version: {chain.about.get('version', 100)}\ncost-factor: {factor}\nmaxid: {len(weights)}\n"
    head += f"xsize: {_columns(chain, templates)}\n"
    blocks = [
        head.encode("latin-1"),
        b"".join(label + b"\n" for label in labels),
        b"".join(line + b"\n" for line in templates),
        b"".join(b"%d %s\n" % (value, key) for key, value in keys),
        b"".join(b"%.16f\n" % weight for weight in weights.tolist()),
    ]
    return b"\n".join(blocks)

"""Models of Wapiti, text files: patterns, labels and observations as netstrings, then the weights that are not 0.

    #mdl#TYPE#NACT · #rdr#NPAT/MAXCOL/AUTO · patterns · #qrk#Y · labels · #qrk#O · observations · INDEX=WEIGHT

Weights are numbered in the order of the observations, from F = 0 on. An observation of u has Y weights (F + y), one of
b has Y^2 (F + y' Y + y), one of * has both, u first. F then grows by their number.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tagwise.base.exceptions import ModelFileError, TemplateError
from tagwise.features.escape import decode_name, encode_name
from tagwise.features.patterns import Patterns
from tagwise.features.recipe import Recipe
from tagwise.model.formats.chain import FeatureWeights, ForeignModel, check_no_border

CRF, MAXENT, MEMM = 2, 0, 1
#: Maximum number of digits of a count or index: those of a 64-bit number.
DIGITS = 19


def matches(head: bytes) -> bool:
    """Return whether a file begins like a model of Wapiti."""
    return head[:5] == b"#mdl#"


class Reader:
    """Reader of the lines and netstrings of a file."""

    def __init__(self, data: bytes) -> None:
        self.data, self.at = data, 0

    def wrong(self, problem: str) -> ModelFileError:
        """Return an error that names the line."""
        line = self.data.count(b"\n", 0, self.at) + 1
        return ModelFileError(f"line {line}: {problem}. The file is damaged, copy it again")

    def line(self) -> bytes:
        """Return the next line without its end."""
        end = self.data.find(b"\n", self.at)
        if end < 0:
            raise self.wrong("the file is truncated")
        found = self.data[self.at : end]
        self.at = end + 1
        return found

    def netstring(self) -> bytes:
        """Return the next netstring, `length:bytes,`."""
        colon = self.data.find(b":", self.at, self.at + DIGITS + 1)
        digits = self.data[self.at : max(colon, self.at)]
        if not digits.isdigit():
            raise self.wrong("expected length:text,")
        length = int(digits)
        end = colon + 1 + length
        if not length or end + 2 > len(self.data) or self.data[end : end + 2] != b",\n":
            raise self.wrong(f"a text does not end after its {length} bytes")
        found = self.data[colon + 1 : end]
        self.at = end + 2
        if b"\0" in found:
            raise self.wrong("a text contains NUL")
        return found

    def netstrings(self, count: int, items: str) -> list[bytes]:
        """Return the next `count` netstrings, which must be distinct."""
        if count > (len(self.data) - self.at) // 5 + 1:
            raise self.wrong(f"{count} {items}, more than the file can contain")
        found = [self.netstring() for _ in range(count)]
        if len(set(found)) < count:
            raise self.wrong(f"one of the {items} occurs twice")
        return found


def _numbers(reader: Reader, pattern: bytes, expected: str) -> list[int]:
    line = reader.line()
    found = re.fullmatch(pattern, line)
    if found is None:
        raise reader.wrong(f"expected {expected}, found {line[:40]!a}")
    return [int(x) for x in found.groups() if x is not None]


def read(data: bytes) -> ForeignModel:
    """Read a model from the bytes of a file."""
    reader = Reader(data)
    *types, active = _numbers(reader, rb"#mdl#(?:(\d{1,19})#)?(\d{1,19})", "#mdl#TYPE#WEIGHTS")
    kind = types[0] if types else MAXENT
    if kind not in (CRF, MAXENT, MEMM):
        raise reader.wrong(f"the model has type {kind}, expected 0 (maxent), 1 (memm) or 2 (crf)")
    n_patterns, last, *auto = _numbers(
        reader, rb"#rdr#(\d{1,19})/(\d{1,19})(?:/([01]))?", "#rdr#PATTERNS/COLUMN/AUTO"
    )
    lines = reader.netstrings(n_patterns, "patterns") if n_patterns else []
    (y,) = _numbers(reader, rb"#qrk#(\d{1,19})", "#qrk#LABELS")
    labels = reader.netstrings(y, "labels")
    (o,) = _numbers(reader, rb"#qrk#(\d{1,19})", "#qrk#OBSERVATIONS")
    texts = reader.netstrings(o, "observations")
    if not y or not o:
        raise reader.wrong(f"{y} labels and {o} observations, expected at least one of each")
    index, weights = _weights(reader, active)
    is_auto = bool(auto and auto[0])
    recipe = _recipe(reader, [decode_name(line) for line in lines], is_auto, last)
    bare = recipe.patterns.bare if recipe.kind == "patterns" and lines else None
    node, edge, pair = _blocks(reader, texts, y, index, weights, bare)
    about: dict[str, Any] = {"format": "wapiti", "type": kind, "last": last}
    return ForeignModel(
        tuple(map(decode_name, labels)),
        list(map(decode_name, texts)),
        node,
        edge,
        pair,
        recipe,
        kind == MEMM,
        about,
    )


def _weights(reader: Reader, count: int) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Read INDEX=WEIGHT lines to the end of the file and return them in ascending order."""
    lines = reader.data[reader.at :].split(b"\n")
    if lines[-1] or len(lines) - 1 != count:
        raise reader.wrong(f"{len(lines) - 1} weights, expected {count} and then the end of the file")
    index, weights = np.zeros(count, np.int64), np.zeros(count)
    for i, line in enumerate(lines[:-1]):
        number, _, text = line.partition(b"=")
        try:
            if not number.isdigit() or len(number) > 18:
                raise ValueError
            index[i] = int(number)
            word = text.decode("ascii")
            weights[i] = float.fromhex(word) if "x" in word else float(word)
        except (ValueError, OverflowError):
            raise reader.wrong(f"expected INDEX=WEIGHT, found {line[:40]!a}") from None
    order = np.argsort(index, kind="stable")
    if (np.diff(index[order]) == 0).any():
        raise reader.wrong("a weight is given twice")
    return index[order], weights[order]


def _recipe(reader: Reader, lines: list[str], auto: bool, last: int) -> Recipe:
    """Return the features. Without patterns, tokens come with their observations."""
    dialect = "wapiti-auto" if auto else "wapiti"
    try:
        found = Patterns.of(dialect, "\n".join(lines))
        if [pattern.source for pattern in found.lines] != lines:
            raise TemplateError("a pattern is not one of Wapiti")
        names = ["word", *(f"x{i}" for i in range(1, max(1, found.n_columns)))]
        return Recipe.of_patterns(dialect, found.text, names)
    except TemplateError as error:
        raise reader.wrong(str(error)) from None


def _sizes(texts: list[bytes], y: int) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Return the first letters of the observations, and the first weight of each with the total number last."""
    letters = np.frombuffer(b"".join(text[:1] for text in texts), np.uint8)
    sizes = np.where(letters == ord("u"), y, np.where(letters == ord("b"), y * y, y + y * y))
    return letters, np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)


def _blocks(
    reader: Reader,
    texts: list[bytes],
    y: int,
    index: NDArray[np.int64],
    weights: NDArray[np.float64],
    bare: str | None,
) -> tuple[FeatureWeights, FeatureWeights, FeatureWeights]:
    """Split the weights into those of nodes, edges (the observation `bare`) and pairs."""
    letters, begin = _sizes(texts, y)
    if not np.isin(letters, np.frombuffer(b"ub*", np.uint8)).all():
        raise reader.wrong("an observation does not begin with u, b or *")
    if len(index) and index[-1] >= begin[-1]:
        raise reader.wrong(f"weight {index[-1]}, but the observations have {begin[-1]} weights")
    of = np.searchsorted(begin, index, side="right") - 1
    inside = index - begin[of]
    letter = letters[of]
    is_node = (letter == ord("u")) | ((letter == ord("*")) & (inside < y))
    rest = np.where(letter == ord("*"), inside - y, inside)
    name = None if bare is None else encode_name(bare)
    is_edge = (
        ~is_node & (of == (texts.index(name) if name in texts else -1))
        if name is not None
        else ~is_node & False
    )
    is_pair = ~is_node & ~is_edge
    return (
        FeatureWeights(of[is_node] * y + inside[is_node], weights[is_node]),
        FeatureWeights(rest[is_edge], weights[is_edge]),
        FeatureWeights(of[is_pair] * (y * y) + rest[is_pair], weights[is_pair]),
    )


# --- writing -------------------------------------------------------------------------------------------------


def hexadecimal(x: float) -> str:
    """Format a number as %la of C, with the shortest mantissa.

    >>> hexadecimal(0.375), hexadecimal(-2.0)
    ('0x1.8p-2', '-0x1p+1')
    """
    mantissa, _, exponent = x.hex().partition("p")
    if "." in mantissa:
        mantissa = mantissa.rstrip("0").rstrip(".")
    return f"{mantissa}p{exponent}"


def _netstring(data: bytes) -> bytes:
    return b"%d:%s,\n" % (len(data), data)


def write(chain: ForeignModel) -> bytes:
    """Return the file of a model, byte for byte as Wapiti writes it."""
    check_no_border(chain, "wapiti")
    lines, texts, bare = _observed(chain)
    y, edge = len(chain.labels), chain.edge.present
    letters, begin = _sizes(texts, y)
    node, pair = chain.node.present, chain.pair.present
    owner, rest = pair.codes // (y * y), pair.codes % (y * y)
    wide = letters == ord("*")
    index = [begin[node.codes // y] + node.codes % y, begin[owner] + np.where(wide[owner], y, 0) + rest]
    weights = [node.weights, pair.weights]
    if (letters[node.codes // y] == ord("b")).any() or (letters[owner] == ord("u")).any():
        raise ModelFileError(
            "wapiti cannot express label weights of a b observation, or label-pair weights of a u observation"
        )
    if len(edge.codes):
        index.append(begin[texts.index(bare)] + edge.codes)
        weights.append(edge.weights)
    every, values = np.concatenate(index), np.concatenate(weights)
    order = np.argsort(every, kind="stable")
    about: Mapping[str, Any] = chain.about if chain.about.get("format") == "wapiti" else {}
    kind = about.get("type", MEMM if chain.local else CRF)
    auto = int(chain.recipe.kind == "patterns" and chain.recipe.name == "wapiti-auto")
    last = about.get("last", max(0, Patterns.of("wapiti", "\n".join(lines)).n_columns - 1))
    out = [b"#mdl#%d#%d\n#rdr#%d/%d/%d\n" % (kind, len(values), len(lines), last, auto)]
    out += [_netstring(encode_name(line)) for line in lines]
    out.append(b"#qrk#%d\n" % y)
    out += [_netstring(encode_name(label)) for label in chain.labels]
    out.append(b"#qrk#%d\n" % len(texts))
    out += [_netstring(text) for text in texts]
    pairs = zip(every[order].tolist(), values[order].tolist())
    out += [f"{i}={hexadecimal(w)}\n".encode() for i, w in pairs]
    return b"".join(out)


def _observed(chain: ForeignModel) -> tuple[list[str], list[bytes], bytes]:
    """Return the patterns, the observations, and the observation of plain label pairs."""
    recipe, texts = chain.recipe, [encode_name(text) for text in chain.texts]
    patterns = Patterns.of("wapiti", "")
    if recipe.kind == "patterns" and recipe.name != "crfpp":
        patterns = recipe.patterns
    elif recipe.kind != "attributes":
        raise ModelFileError(
            f"wapiti cannot express the features {recipe.name!r}. Train with patterns of Wapiti, or on attributes"
        )
    lines = [pattern.source for pattern in patterns.lines]
    wrong = next(
        (text for text in (*texts, *map(encode_name, chain.labels)) if not text or b"\0" in text), None
    )
    if wrong is not None:
        raise ModelFileError(f"wapiti cannot express the text {wrong!a}, which is empty or contains NUL")
    wrong = next((text for text in texts if text[:1] not in (b"u", b"b", b"*")), None)
    if wrong is not None:
        raise ModelFileError(
            f"wapiti cannot express the attribute {wrong!a}, which does not begin with u, b or *"
        )
    bare = patterns.bare
    if bare is None and len(chain.edge.present.codes):
        if not lines:
            raise ModelFileError(
                "wapiti cannot express weights of label pairs without patterns. Add the pattern b and train again"
            )
        if b"b" in texts or "b" in lines:
            raise ModelFileError(
                "wapiti cannot express weights of label pairs together with two plain patterns b. Keep one of them"
            )
        bare = "b"
        lines.append(bare)
    name = b"b" if bare is None else encode_name(bare)
    if bare is not None and len(chain.edge.present.codes) and name not in texts:
        texts.append(name)
    if not texts:
        raise ModelFileError("wapiti cannot express a model without observations. Train on a larger corpus")
    return lines, texts, name

"""Reading and writing of CRFsuite files by the core, compared with a reader based on `struct`."""

from __future__ import annotations

import os
import random
import struct
from pathlib import Path

import numpy as np
import pytest

import tagwise as tw
from tagwise.base.exceptions import ModelFileError
from tagwise.compat.pycrfsuite import Tagger
from tagwise.features.escape import decode_name, encode_name
from tagwise.features.recipe import Recipe
from tagwise.model.formats import crfsuite
from tagwise.model.formats.chain import FeatureWeights, ForeignModel

from .test_model_files import lcrf

Feature = tuple[int, bytes, bytes, float]


def read_with_struct(data: bytes) -> tuple[list[bytes], list[bytes], list[Feature]]:
    """Return labels, attributes and features of a file, following the description of its format."""

    def numbers(at: int, n: int) -> tuple[int, ...]:
        return struct.unpack_from(f"<{n}I", data, at)

    _, _, n, n_attributes, feat, labels, attributes, out, of = numbers(12, 9)
    assert numbers(4, 1)[0] == len(data)

    def strings(at: int, n: int) -> list[bytes]:
        size, _, _, m, back = numbers(at + 4, 5)
        assert (m, size) == (n, back + 4 * n if n else 2072)
        found = []
        for i, place in enumerate(numbers(at + back, n)):
            assert numbers(at + place, 1) == (i,)
            length = numbers(at + place + 4, 1)[0]
            found.append(data[at + place + 8 : at + place + 7 + length])
        return found

    names = strings(labels, n), strings(attributes, n_attributes)

    def features(kind: int, at: int) -> list[Feature]:
        found = []
        for owner, place in enumerate(numbers(at + 12, (n_attributes, n)[kind])):
            for id in numbers(place + 4, numbers(place, 1)[0]):
                type_, source, label, weight = struct.unpack_from("<3Id", data, feat + 12 + 20 * id)
                assert (type_, source) == (kind, owner)
                found.append((kind, names[1 - kind][owner], names[0][label], weight))
        return found

    return *names, features(0, of) + features(1, out)


def model(seed: int, attributes: int, labels: int) -> ForeignModel:
    """Return random features, some of weight 0, with names of every length, some of them not valid text."""
    rng = random.Random(seed)
    odd = [b"", b"\xff\xfe", "\U0010ff80".encode(), "日本".encode(), b"x" * 12, b"y" * 300]
    names = odd + [f"w[{rng.randint(-2, 2)}]={i}".encode() for i in range(attributes - len(odd))]
    rng.shuffle(names)

    def block(sources: int, share: float) -> FeatureWeights:
        codes = [c for c in range(sources * labels) if rng.random() < share]
        weights = [0.0 if rng.random() < 0.2 else rng.gauss(0.0, 2.0) for _ in codes]
        return FeatureWeights(np.array(codes, np.int64), np.array(weights))

    return ForeignModel(
        tuple(decode_name(name) for name in [b"\xe9", *(f"L{i}".encode() for i in range(labels - 1))]),
        [decode_name(name) for name in names],
        block(attributes, 0.3),
        block(labels, 0.6),
        FeatureWeights.none(),
        Recipe("attributes", "attributes"),
    )


@pytest.mark.parametrize("seed", range(4))
def test_written_files_contain_labels_attributes_and_features(seed: int) -> None:
    """All labels, attributes with a feature, and features of nonzero weight are written and read back."""
    chain = model(seed, 40 + 200 * seed, 3 + seed)
    data = crfsuite.write(chain)
    labels, attributes, features = read_with_struct(data)
    n = len(chain.labels)
    names, owners = (
        [encode_name(text) for text in chain.texts],
        [encode_name(label) for label in chain.labels],
    )
    node, edge = chain.node.present, chain.edge.present
    assert labels == owners
    assert attributes == [names[a] for a in sorted({int(c) // n for c in node.codes})]
    wanted = [(0, names[c // n], owners[c % n], w) for c, w in zip(node.codes, node.weights)]
    wanted += [(1, owners[c // n], owners[c % n], w) for c, w in zip(edge.codes, edge.weights)]
    assert features == wanted
    back = crfsuite.read(data)
    assert [encode_name(label) for label in back.labels] == labels
    assert [encode_name(text) for text in back.texts] == attributes
    found = [(0, attributes[c // n], owners[c % n], w) for c, w in zip(back.node.codes, back.node.weights)]
    found += [(1, owners[c // n], owners[c % n], w) for c, w in zip(back.edge.codes, back.edge.weights)]
    assert found == wanted
    assert crfsuite.write(back) == data


def test_names_with_nul_cannot_be_written() -> None:
    """A name with NUL, which terminates names in the file."""
    one = FeatureWeights(np.zeros(1, np.int64), np.ones(1))
    recipe = Recipe("attributes", "attributes")
    for labels, texts, kind_of_name in ((("X\0",), ["a"], "label"), (("X",), ["a\0b"], "attribute")):
        with pytest.raises(ModelFileError, match=f"the {kind_of_name} b'.*00.*NUL"):
            crfsuite.write(
                ForeignModel(labels, texts, one, FeatureWeights.none(), FeatureWeights.none(), recipe)
            )


@pytest.mark.parametrize(("at", "name"), [(0x3C, "'a' -> 'X'"), (0x64, "'X' -> 'Y'")])
@pytest.mark.parametrize("bits", [0x7FF00000, 0x7FF80000, 0x47F00000])
def test_nan_weights_are_reported_by_attribute_and_label(
    at: int, name: str, bits: int, tmp_path: Path
) -> None:
    """Reading the whole file raises: `tw.load`, `info` and `dump`. Opening it reads no attribute."""
    data = bytearray(lcrf())
    struct.pack_into("<I", data, at + 16, bits)
    (tmp_path / "m").write_bytes(data)
    with pytest.raises(ModelFileError, match=name):
        tw.load(tmp_path / "m")
    if at == 0x64:  # transitions are checked when the file is opened
        with pytest.raises(ModelFileError, match="float32"):
            Tagger().open_inmemory(bytes(data))
        return
    tagger = Tagger()
    tagger.open_inmemory(bytes(data))
    for call in (tagger.info, lambda: tagger.dump(tmp_path / "text")):
        with pytest.raises(ModelFileError, match=name):
            call()
    assert not (tmp_path / "text").exists()
    assert tagger.tag([["b"]]) == ["Y"]


def test_open_models_ignore_later_changes_of_the_file(tmp_path: Path) -> None:
    """A file of several large pages, each read by some thread. Later changes of the file have no effect."""
    n = 80_000
    texts = [f"attribute number {i}" for i in range(n)]
    node = FeatureWeights(np.arange(n, dtype=np.int64) * 2 + np.arange(n) % 2, np.ones(n))
    recipe = Recipe("attributes", "attributes")
    data = crfsuite.write(
        ForeignModel(("even", "odd"), texts, node, FeatureWeights.none(), FeatureWeights.none(), recipe)
    )
    assert len(data) > 3 << 21
    path = tmp_path / "m"
    path.write_bytes(data)
    tagger = Tagger()
    tagger.open(str(path))
    os.truncate(path, 0)
    rows = [[texts[i]] for i in range(0, n, 997)]
    assert tagger.tag(rows) == [("even", "odd")[i % 2] for i in range(0, n, 997)]

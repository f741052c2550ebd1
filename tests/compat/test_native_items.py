"""The core and the Python package read items, instances and model files alike."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tagwise._core as _core
from tagwise.base.exceptions import ModelFileError
from tagwise.compat.pycrfsuite import ItemSequence, Tagger, Trainer
from tagwise.compat.pycrfsuite import tagger as tagger_module
from tagwise.compat.pycrfsuite.bulk import Bulk
from tagwise.features.recipe import Recipe
from tagwise.model.formats import crfsuite
from tagwise.model.formats.chain import FeatureWeights, ForeignModel
from tests.foreign.test_model_files import lcrf

#: Sequences of items of every kind, with one label per item.
SEQUENCES: list[tuple[list[Any], list[str]]] = [
    ([["a", "b"], ["b", "b"], []], ["X", "Y", "X"]),
    ([{"w": "cat", "n": {"x": 2, "deep": {"y": -0.5}}, "tags": ["a", "b"]}, {"up": False}], ["X", "Y"]),
    ([{"bias": 1.0, "len": 3, "yes": True, "é": "ü"}, {"b"}, ("a", "b")], ["Y", "X", "Y"]),
    ([{"big": 2**40, "np": np.float32(0.25)}, [b"a", "b"], {b"k": b"v"}], ["X", "X", "Y"]),
    ([["\U0010ff80", b"\xff"], ["z" * 100]], ["Z", "X"]),
    ([{"": 1.0, "empty": "", "none": {}}], ["X"]),
    ([{"negative": -1.0}], ["X"]),
    ([], []),
]


@pytest.mark.filterwarnings("ignore:.*less than 0")
@pytest.mark.parametrize("algorithm", ["lbfgs", "pa"])
def test_core_and_python_read_equal_instances(algorithm: str, tmp_path: Path) -> None:
    """Models are byte-identical whether Python (ItemSequence) or the core converts the items."""
    files = []
    for name, wrap in (("engine", lambda x: x), ("package", ItemSequence)):
        trainer = Trainer(algorithm, {"max_iterations": 5}, verbose=False)
        for xseq, yseq in SEQUENCES:
            trainer.append(wrap(xseq), yseq)
        trainer.train(str(tmp_path / name))
        files.append((tmp_path / name).read_bytes())
    assert files[0] == files[1]
    tagger = Tagger()
    tagger.open_inmemory(files[0])
    rows = [xseq for xseq, _ in SEQUENCES]
    paths = [tagger.tag(xseq) for xseq in rows]
    assert paths == [tagger.tag(ItemSequence(xseq)) for xseq in rows] == tagger.tag_many(rows)
    for xseq, path in zip(rows, paths):
        tagger.set(xseq)
        native = tagger.probability(path)
        tagger.set(ItemSequence(xseq))
        assert native == tagger.probability(path)


def test_rejected_instances_leave_no_trace() -> None:
    """`append` returns False and adds no names and no labels."""
    data = _core.CrfsuiteInstances()
    for xseq, yseq in (
        ([["a"], ["b", 3]], ["X", "Y"]),
        ([["a"], ["b\0"]], ["X", "Y"]),
        ([{"a": float("nan")}], ["X"]),
        ([["a"]], ["X", "Y"]),
        ([["a"]], [b"X"]),
        ((["a"] for _ in range(1)), ["X"]),
    ):
        assert not data.append(xseq, yseq, 0)
    assert data.texts() == []
    assert data.labels == []


@pytest.mark.parametrize(
    ("at", "number", "message"),
    [
        (0x1174 + 4, 9, "feature 9 of 4"),  # the list of a
        (0x1174, 99, "a list outside"),
        (0x116C, 0xFFFFFFF0, "a list outside"),  # its offset
        (0x3C + 8, 7, "label 7 of 2"),  # its feature
        (0x3C + 4, 1, "a feature of another"),
        (0x3C + 16, 0x7FF00000, "float32"),
        (0x8E0 + 0x818, 5, "number 5 of 2"),  # its record
    ],
)
def test_damaged_attributes_raise_when_used(at: int, number: int, message: str) -> None:
    """Only the attributes of a sequence are read, so that other sequences are not affected by the damage."""
    data = bytearray(lcrf())
    struct.pack_into("<I", data, at, number)
    tagger = Tagger()
    tagger.open_inmemory(bytes(data))
    for call in (lambda: tagger.tag([["a"]]), lambda: tagger.tag_many([[["a"]]])):
        with pytest.raises(ModelFileError, match=message):
            call()
    assert tagger.tag([["b"]]) == ["Y"]


def test_mutated_models_tag_or_raise() -> None:
    """A file with a random byte or number changed is either used or rejected with ModelFileError or ValueError."""
    whole, random = lcrf(), np.random.default_rng(1)
    for _ in range(3000):
        data = bytearray(whole)
        at = int(
            random.choice([random.integers(len(data)), random.integers(160), 0x8A4 + random.integers(2200)])
        )
        if random.random() < 0.5:
            data[at] = int(random.integers(256))
        else:
            at = min(at, len(data) - 4)
            struct.pack_into("<I", data, at, int(random.choice([0, 1, 0x80, 0x7FFFFFFF, 0xFFFFFFFF])))
        tagger = Tagger()
        try:
            tagger.open_inmemory(bytes(data[: len(data) - int(random.random() < 0.05)]))
            assert len(tagger.tag([["a", "b", "c"], ["a"]])) == 2
        except (ModelFileError, ValueError):
            continue


def test_line_search_parameters_warn() -> None:
    """Line search parameters have no effect, so values other than the defaults cause a warning."""
    for params in ({"linesearch": "Backtracking"}, {"max_linesearch": 3}):
        trainer = Trainer("lbfgs", params, verbose=False)
        trainer.append([["a"], ["b"]], ["X", "Y"])
        with pytest.warns(RuntimeWarning, match=next(iter(params))):
            trainer.train("")
    trainer = Trainer("lbfgs", {"linesearch": "MoreThuente", "max_linesearch": 20}, verbose=False)
    trainer.append([["a"], ["b"]], ["X", "Y"])
    trainer.train("")


def test_label_pairs_respect_the_memory_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tables of label pairs are quadratic in the labels. Beyond the memory limit they raise MemoryError at once."""
    monkeypatch.setenv("TAGWISE_MEMORY", "0.01")
    data = _core.CrfsuiteInstances()
    labels = [f"L{i}" for i in range(2000)]
    assert data.append([["a"]] * len(labels), labels, 0)
    with pytest.raises(MemoryError, match="2000 by 2000 label pairs"):
        data.features(-1, 0.0, False, False)
    none = np.zeros(0, np.int64)
    with pytest.raises(MemoryError, match="2000 by 2000 label pairs"):
        _core.CrfsuiteOnline(data, -1, none, none, "ap", [])
    block = FeatureWeights(none, np.zeros(0))
    chain = ForeignModel(
        tuple(labels), ["a"], block, block, FeatureWeights.none(), Recipe("attributes", "attributes")
    )
    with pytest.raises(MemoryError, match="2000 by 2000 label pairs"):
        _core.CrfsuiteModel(crfsuite.write(chain))


@pytest.mark.filterwarnings("ignore:.*less than 0")
def test_tag_many_equals_tag(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The converted model in float32 and the file itself give equal labels, including ties."""
    rng = np.random.default_rng(0)
    rows: list[Any] = [xseq for xseq, _ in SEQUENCES]
    rows += [
        [[f"w{rng.integers(5)}", f"v{rng.integers(3)}"] for _ in range(rng.integers(1, 9))] for _ in range(60)
    ]
    rows += [ItemSequence([["w1"], {"n": 0.5, "w2": 1.0}]), (["w0"], ["unknown"]), [["none"]] * 4]
    trainer = Trainer("lbfgs", {"max_iterations": 12}, verbose=False)
    for xseq, yseq in SEQUENCES:
        trainer.append(xseq, yseq)
    for xseq in rows[len(SEQUENCES) : -3]:
        trainer.append(xseq, [["X", "Y", "Z"][rng.integers(3)] for _ in xseq])
    trainer.train(str(tmp_path / "m"))
    level = ForeignModel(
        ("X", "Y"),
        ["w1", "odd\u2028name"],
        FeatureWeights.none(),
        FeatureWeights.none(),
        FeatureWeights.none(),
        Recipe("attributes", "attributes"),
    )
    for data in ((tmp_path / "m").read_bytes(), lcrf(), crfsuite.write(level)):
        tagger = Tagger()
        tagger.open_inmemory(data)
        alone = [tagger.tag(xseq) for xseq in rows]
        made: list[Any] = []
        monkeypatch.setattr(tagger_module, "MIN_ITEMS", 10**9)
        assert tagger.tag_many(rows) == alone
        monkeypatch.setattr(tagger_module, "MIN_ITEMS", 1)
        monkeypatch.setattr(
            tagger_module, "Bulk", lambda *parts, made=made: made.append(Bulk(*parts)) or made[0]
        )
        assert tagger.tag_many(rows) == alone
        assert tagger.tag_many(rows) == alone
        assert len(made) == 1  # converted once, and used
        monkeypatch.undo()

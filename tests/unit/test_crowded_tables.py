"""Files whose tables make every search long are refused or read in linear time, and Ctrl-C works meanwhile."""

from __future__ import annotations

import struct
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tagwise as tw
from tagwise import _core
from tagwise.compat.pycrfsuite import Tagger
from tagwise.model.formats import crfpp, darts

from ..foreign import samples
from ..foreign.test_model_files import lcrf
from ..forge.forgery import Forgery

NONE = 2**32 - 1


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a model with a few thousand attributes."""
    path = tmp_path_factory.mktemp("models") / "m.tagwise"
    X = [[f"w{i}" for i in range(s, s + 50)] for s in range(0, 5000, 50)]
    tw.Perceptron(max_iter=1, features="S2").fit(X, [["A", "B"] * 25 for _ in X]).save(path)
    return path


def test_vocabulary_table_with_one_run(model: Path) -> None:
    """All attributes in adjacent slots: a search would visit all of them."""
    forged = Forgery.of(model)
    table = forged.array("vocab.table").data
    assert len(tw.load(model).predict([["w1", "w2"]])[0]) == 2
    ids = table[table != NONE]
    table[:] = NONE
    table[: len(ids)] = ids
    model.with_name("crowded").write_bytes(forged.bytes())
    with pytest.raises(tw.exceptions.ModelFileError, match="run of more taken slots"):
        tw.load(model.with_name("crowded"))


def test_oversized_vocabulary_table(model: Path) -> None:
    """A table that no writer produces: mostly empty, and larger than its attributes need."""
    forged = Forgery.of(model)
    old = forged.array("vocab.table").data
    forged.replace("vocab.table", np.concatenate([old, np.full(15 * len(old), NONE, np.uint32)]))
    model.with_name("vast").write_bytes(forged.bytes())
    with pytest.raises(tw.exceptions.ModelFileError, match="its table has a wrong size"):
        tw.load(model.with_name("vast"))


def crowded_cqdb(n: int) -> bytes:
    """Return a CRFsuite model with n attributes, all as far from their hash slots as the table allows."""
    names = [f"a{i}" for i in range(n)]
    codes = np.arange(n, dtype=np.int64)
    none = np.zeros(0, np.int64), np.zeros(0)
    data = bytearray(_core.crfsuite_model_bytes(["X"], names, (codes, np.ones(n)), none, str.encode))
    (at,) = struct.unpack_from("<I", data, 36)
    for t in range(256):
        begin, slots = struct.unpack_from("<II", data, at + 24 + 8 * t)
        if not slots:
            continue
        table = np.frombuffer(data, "<u4", 2 * slots, at + begin).reshape(slots, 2).copy()
        taken = table[table[:, 1] != 0]
        table[:] = 0
        table[: len(taken)] = taken[np.argsort((taken[:, 0] >> 8) % slots, kind="stable")[::-1]]
        data[at + begin : at + begin + 8 * slots] = table.tobytes()
    return bytes(data)


def test_crfsuite_attribute_table_with_one_run(tmp_path: Path) -> None:
    """About 2,000 strings per table, in one run."""
    path = tmp_path / "m.crfsuite"
    path.write_bytes(crowded_cqdb(600_000))
    begin = time.process_time()
    with pytest.raises(tw.exceptions.ModelFileError, match="the attributes: a"):
        tw.load(path)
    with pytest.raises(tw.exceptions.ModelFileError, match="run of more taken slots"):
        Tagger().open(str(path)).thing.tag([[f"none{i}" for i in range(2000)]])
    assert time.process_time() - begin < 10


def chain_of_units(n: int) -> bytes:
    """Return the units of a dictionary with one key, n times the letter T: bases are odd, units of children even."""
    units = np.zeros(2 * n + 600, darts.UNIT)
    bases = 2 * np.arange(n + 1) + 1
    children = bases[:-1] + ord("T") + 1
    units["base"][0], units["base"][children] = 1, bases[1:]
    units["check"][children] = bases[:-1]
    units["base"][bases[-1]], units["check"][bases[-1]] = -1, bases[-1]
    return units.tobytes()


def seconds(call: Any) -> float:
    begin = time.process_time()
    call()
    return time.process_time() - begin


def test_crfpp_key_chain_is_read_in_linear_time() -> None:
    """Reading a chain of nodes takes linear time: 16 times the length takes far less than 256 times the time."""

    def read(n: int) -> None:
        units = np.frombuffer(chain_of_units(n), darts.UNIT)
        ((key, value),) = darts.keys_of(units, 10 * n)
        assert (key, value) == (b"T" * n, 0)

    read(1000)
    short, long = min(seconds(lambda: read(40_000)) for _ in range(3)), seconds(lambda: read(640_000))
    assert long < 40 * short + 0.5


def test_read_keys_equal_built_keys() -> None:
    """Keys with common prefixes, a key that is a prefix of another, all bytes."""
    rng = np.random.default_rng(0)
    keys = {bytes(rng.integers(1, 256, rng.integers(1, 6)).astype(np.uint8)) for _ in range(500)}
    keys |= {b"U", b"U0", b"U00:a", b"U00:ab", b"B"}
    ordered = sorted(keys)
    units = darts.built(ordered, list(range(len(ordered))))
    assert darts.keys_of(units, 1 << 20) == list(zip(ordered, range(len(ordered))))
    with pytest.raises(tw.exceptions.ModelFileError, match="exceed 100 bytes"):
        darts.keys_of(units, 100)
    assert crfpp.read_text(samples.CRFPP_TEXT).labels == ("N", "V")
    assert lcrf()


def sparse(path: Path, head: bytes, size: int) -> Path:
    """Write a sparse file with these bytes and this size, which takes no space on the disk."""
    with open(path, "wb") as file:
        file.write(head)
        file.truncate(size)
    return path


def test_sparse_terabyte_files_are_rejected_before_reading(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """For terabytes, the size check or the budget check fails before any array is read."""
    size = 1 << 42
    head = struct.pack("<8sIIQQ", b"tagwise\n", 1, 0, 2, 1) + b"{}"
    table = struct.pack("<24s8sQQ", b"weights", b"u8", 128, size - 128)
    for mmap in (False, True):
        path = sparse(tmp_path / "size", head + table[:-8] + struct.pack("<Q", 100), size)
        with pytest.raises(
            tw.exceptions.ModelFileError,
            match=f"{size} bytes: the file is longer than its arrays, which end at 228",
        ):
            tw.load(path, mmap=mmap)
        path = sparse(tmp_path / "version", b"tagwise\n" + struct.pack("<I", 7), size)
        with pytest.raises(tw.exceptions.ModelFileError, match="model format 7"):
            tw.load(path, mmap=mmap)
    with pytest.raises(tw.exceptions.MemoryLimitError, match=r"the model would take 4096\.0 GiB.*mmap=True"):
        tw.load(sparse(tmp_path / "whole", head + table, size))
    header = struct.pack("<8sIIQQ", b"tagwise\n", 1, 0, size - 32, 0)
    with pytest.raises(tw.exceptions.MemoryLimitError, match="the header of the model"):
        tw.load(sparse(tmp_path / "header", header, size))
    for name, begin in (("crfsuite", b"lCRF"), ("wapiti", samples.WAPITI), ("crfpp", samples.CRFPP_TEXT)):
        path = sparse(tmp_path / name, begin, size)
        with pytest.raises(tw.exceptions.MemoryLimitError, match="the bytes of the file"):
            tw.load(path)
    monkeypatch.setenv("TAGWISE_MEMORY", "0.01")
    with pytest.raises(tw.exceptions.MemoryLimitError, match="12 MiB"):
        tw.load(sparse(tmp_path / "small", head + table[:-8] + struct.pack("<Q", 12 << 20), 128 + (12 << 20)))


def test_arrays_must_be_contiguous(model: Path) -> None:
    """Gaps, overlaps, duplicate names and trailing bytes are refused."""
    whole = Forgery.of(model)
    faults = {
        "is not where the one before": lambda f: setattr(f.arrays[3], "offset", 64),
        "two arrays have the same name": lambda f: f.add("weights", np.zeros(3, np.float32)),
    }
    path = model.with_name("faulty")
    for words, change in faults.items():
        forged = whole.copy()
        change(forged)
        path.write_bytes(forged.bytes())
        with pytest.raises(tw.exceptions.ModelFileError, match=words):
            tw.load(path)
    path.write_bytes(whole.bytes() + b"more")
    with pytest.raises(tw.exceptions.ModelFileError, match="longer than its arrays"):
        tw.load(path)

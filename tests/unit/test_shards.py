"""Encoded shards as files: made once, made again where they are damaged, refused with a word where they are wrong."""

from __future__ import annotations

import json
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tagwise as tw
from tagwise.shards import files
from tagwise.shards.files import memory_of, read_array, write_array, write_json

WORDS = [["the", "dog"], ["a", "cat", "sees"], ["dogs", "bark"], ["the", "old", "cat"], ["it", "sees"]]
LABELS = [["D", "N"], ["D", "N", "V"], ["N", "V"], ["D", "A", "N"], ["P", "V"]]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "a.conll"
    tw.write_conll(tw.Corpus.from_lists(WORDS, LABELS), path)
    return path


def encode(file: Path, **options: Any) -> tuple[tw.Shards, list[bool]]:
    """Shards of some two sentences each, and which of them were made."""
    made: list[bool] = []
    given = {
        "features": "S1",
        "shard_tokens": 4,
        "progress": lambda shard: made.append(shard.made),
        **options,
    }
    return tw.encode(given.pop("files", file), file.parent / "enc", **given), made


def stamps(folder: Path) -> dict[str, int]:
    return {
        str(path): path.stat().st_mtime_ns for path in folder.glob("shard-*/*.npy") if path.name != "map.npy"
    }


def test_what_is_there_is_not_made_again(file: Path) -> None:
    """The same call leaves shards alone; more sentences at the end make those behind them."""
    shards, made = encode(file)
    assert made == [True, True, True]
    before = stamps(shards.path)
    assert encode(file)[1] == [False, False, False]
    assert stamps(shards.path) == before
    more = tw.Corpus.from_lists([*WORDS, ["x", "y"]], [*LABELS, ["D", "N"]])
    tw.write_conll(more, file)
    again, made = encode(file)
    assert made == [False, False, True]
    assert (again.n_sentences, again.n_tokens) == (6, 14)
    assert again.digest != shards.digest


def test_a_run_that_was_stopped_goes_on(file: Path) -> None:
    """Without the manifest there are no shards yet; those that are whole stay."""
    shards, _ = encode(file)
    (shards.path / "manifest.json").unlink()
    (shards.path / "shard-00001" / "shard.json").unlink()
    with pytest.raises(FileNotFoundError, match="encode"):
        tw.Shards(shards.path)
    again, made = encode(file)
    assert made == [False, True, False]
    assert again.manifest == shards.manifest


def test_other_features_and_sizes_make_other_shards(file: Path) -> None:
    encode(file)
    assert encode(file, features="S2")[1] == [True] * 3
    larger, made = encode(file, features="S2", shard_tokens=100)
    assert made == [True]
    assert sorted(path.name for path in larger.path.glob("shard-*")) == ["shard-00000"]


def test_a_damaged_shard_is_named_and_made_again(file: Path) -> None:
    shards, _ = encode(file)
    for name in ("ids", "gold", "map"):
        path = shards.path / "shard-00001" / f"{name}.npy"
        whole = path.read_bytes()
        path.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
        with pytest.raises(tw.CorpusError, match=rf"shard-00001.{name}\.npy: a damaged file.*encode"):
            tw.CRF(max_iter=1).fit(tw.Shards(shards.path))
        path.unlink()
        with pytest.raises(tw.CorpusError, match=rf"{name}\.npy"):
            tw.Shards(shards.path).dataset(1)
        assert encode(file)[1] == [False, name != "map", False]  # the map is of all shards, and always made
    assert tw.CRF(max_iter=1).fit(tw.Shards(shards.path)).classes_
    (shards.path / "vocabulary" / "text.npy").write_bytes(b"")
    with pytest.raises(tw.CorpusError, match="text"):
        tw.Shards(shards.path).vocabulary()


def test_a_manifest_of_others_is_refused(file: Path) -> None:
    shards, _ = encode(file)
    manifest = json.loads((shards.path / "manifest.json").read_text("utf-8"))
    write_json(shards.path / "manifest.json", {**manifest, "format": 99})
    with pytest.raises(tw.CorpusError, match="format"):
        tw.Shards(shards.path)
    manifest["shards"].reverse()
    write_json(shards.path / "manifest.json", manifest)
    with pytest.raises(tw.CorpusError, match=r"none of the shards"):
        tw.Shards(shards.path).dataset(0)


def test_what_cannot_be_encoded_is_refused(file: Path, tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="no such file"):
        encode(file, files=tmp_path / "absent*.conll")
    with pytest.raises(tw.CorpusError, match="no files"):
        encode(file, files=[])
    (tmp_path / "empty.conll").write_text("")
    with pytest.raises(tw.CorpusError, match=r"empty\.conll: there is no sentence"):
        encode(file, files=tmp_path / "empty.conll")
    (tmp_path / "other.conll").write_text("a\tNN\tD\n\nb\tNN\tN\n\n")
    with pytest.raises(tw.CorpusError, match=r"other\.conll:1: columns word, pos, label"):
        encode(file, files=[file, tmp_path / "other.conll"])
    (tmp_path / "text.txt").write_text("one line of text\n")
    with pytest.raises(tw.CorpusError, match=r"text\.txt:1: no column is the label"):
        encode(file, files=tmp_path / "text.txt", format="text")
    with pytest.raises(tw.ParameterError, match="is_rare"):
        encode(file, features="pos")
    with pytest.raises(tw.ParameterError, match="shard_tokens"):
        encode(file, shard_tokens=0)
    with pytest.raises(tw.ParameterError, match="smaller shards"):
        encode(file, shard_tokens=10**6, memory="1M")
    with pytest.raises(tw.CorpusError, match=r"attributes so far"):
        encode(file, features="S2", shard_tokens=1, memory=1100)
    with pytest.raises(NotADirectoryError):
        tw.encode(file, file / "enc")


def test_what_cannot_be_trained_is_refused(file: Path) -> None:
    shards, _ = encode(file)
    for given in (
        {"order": 2},
        {"constraints": "auto"},
        {"optimizer": "sgd"},
        {"dictionary": 1},
        {"pi": 0.5},
        {"max_length": 5},
        {"partial": True},
    ):
        with pytest.raises(tw.ParameterError, match=next(iter(given))):
            tw.CRF(**given).fit(shards)
    with pytest.raises(tw.ParameterError, match="encoded with 'S1'"):
        tw.CRF(features="S2").fit(shards)
    with pytest.raises(tw.ParameterError, match="y and"):
        tw.CRF().fit(shards, LABELS)
    with pytest.raises(tw.ParameterError, match="hmm is not trained on shards"):
        tw.HMM().fit(shards)
    with pytest.raises(tw.ParameterError, match="expected one of local"):
        tw.CRF().fit(shards, backend="nowhere")
    with pytest.raises(tw.ParameterError, match="about Shards"):
        tw.CRF().fit(WORDS, LABELS, backend="local")
    with pytest.raises(tw.ParameterError, match="forget"):
        tw.CRF().fit(shards, warm_start=tw.CRF(features="S1", max_iter=1).fit(WORDS, LABELS))


def test_a_model_to_start_from(file: Path) -> None:
    """Weights of features that the shards have too are those of the model."""
    shards, _ = encode(file)
    before = tw.CRF(features="S1", max_iter=3, optimizer="lbfgs").fit(WORDS, LABELS)
    after = tw.CRF(features="S1", max_iter=0).fit(shards, warm_start=before, forget=True)
    np.testing.assert_array_equal(after.model_.scorer.weights, before.model_.scorer.weights)


def test_sentences_know_their_files(file: Path, tmp_path: Path) -> None:
    (tmp_path / "b.conll").write_text("# a comment\nx\tD\n\ny\tN\n\n")
    shards, _ = encode(file, files=[file, tmp_path / "b.conll"], shard_tokens=13)
    assert len(shards) == 2
    assert shards.place(0, 1) == f"{file}:4"
    assert shards.place(0, 5) == f"{tmp_path / 'b.conll'}:2"
    assert shards.place(1, 0) == f"{tmp_path / 'b.conll'}:4"


@pytest.mark.parametrize("wrong", ["", "0", "-1", "2X", "lots", True])
def test_an_amount_of_memory(wrong: Any) -> None:
    assert memory_of("2G") == 2 << 30 == memory_of("2GiB") == memory_of(2 << 30)
    with pytest.raises(tw.ParameterError, match="500M"):
        memory_of(wrong)


def test_heads_are_read_one_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """CPython 3.11's parser, which NumPy reads them with, counts its depth for all threads together."""
    write_array(tmp_path / "a.npy", np.arange(3))
    met, load = threading.Barrier(2), np.load

    def watched(*args: Any, **options: Any) -> Any:
        with pytest.raises(threading.BrokenBarrierError):
            met.wait(0.05)  # nobody else comes
        met.reset()
        return load(*args, **options)

    monkeypatch.setattr(files.np, "load", watched)
    with ThreadPoolExecutor(2) as threads:
        found = list(threads.map(lambda _: read_array(tmp_path / "a.npy").tolist(), range(2)))
    assert found == [[0, 1, 2]] * 2

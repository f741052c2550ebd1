"""Encoded shards as files: written once, written again if damaged, refused with an error if wrong."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tagwise as tw
from tagwise.dataset.shards import encode as encoding
from tagwise.dataset.shards.files import memory_of, read_manifest, write_manifest

from ..forge.forgery import Forgery

WORDS = [["the", "dog"], ["a", "cat", "sees"], ["dogs", "bark"], ["the", "old", "cat"], ["it", "sees"]]
LABELS = [["D", "N"], ["D", "N", "V"], ["N", "V"], ["D", "A", "N"], ["P", "V"]]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "a.conll"
    tw.write(tw.Corpus.from_lists(WORDS, LABELS), path, "conll")
    return path


def encode(file: Path, **options: Any) -> tuple[tw.Shards, list[bool]]:
    """Encode shards of about two sentences each. Return them and which of them were written."""
    made: list[bool] = []
    given = {
        "features": "S1",
        "shard_tokens": 4,
        "callbacks": [lambda shard: made.append(shard.made)],
        **options,
    }
    return tw.encode(given.pop("files", file), file.parent / "enc", **given), made


def stamps(folder: Path) -> dict[str, int]:
    return {str(path): path.stat().st_mtime_ns for path in folder.glob("shard-*") if ".map." not in path.name}


def test_existing_shards_are_kept(file: Path) -> None:
    """Repeating a call keeps the shards. Additional sentences at the end add shards."""
    shards, made = encode(file)
    assert made == [True, True, True]
    before = stamps(shards.path)
    assert encode(file)[1] == [False, False, False]
    assert stamps(shards.path) == before
    more = tw.Corpus.from_lists([*WORDS, ["x", "y"]], [*LABELS, ["D", "N"]])
    tw.write(more, file, "conll")
    again, made = encode(file)
    assert made == [False, False, True]
    assert (again.n_sentences, again.n_tokens) == (6, 14)
    assert again.digest != shards.digest


def test_an_interrupted_run_continues(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`Shards` reports the incomplete folder, and complete shards are kept."""
    whole, _ = encode(file)
    expected = whole.manifest
    write, calls = encoding.encoded_shard, []

    def failing(path: Path, *given: Any) -> Any:
        calls.append(path.name)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return write(path, *given)

    monkeypatch.setattr(encoding, "encoded_shard", failing)
    with pytest.raises(KeyboardInterrupt):
        encode(file, features="S2")
    with pytest.raises(tw.exceptions.CorpusError, match=r"interrupted.*same `tagwise encode`"):
        tw.Shards(whole.path)
    again, made = encode(file, features="S2")
    assert made == [False, True, True]
    assert again.manifest != expected
    assert encode(file)[0].manifest == expected


def test_other_features_and_sizes_encode_again(file: Path) -> None:
    encode(file)
    assert encode(file, features="S2")[1] == [True] * 3
    larger, made = encode(file, features="S2", shard_tokens=100)
    assert made == [True]
    names = ["manifest.json", "shard-00000.arrays", "shard-00000.map.arrays", "vocabulary.arrays"]
    assert sorted(os.listdir(larger.path)) == names


def test_foreign_folders_are_rejected_and_unchanged(file: Path, tmp_path: Path) -> None:
    """Nothing in the folder changes, whatever its files are called."""
    for name in ("shard-00007", "shard-00000.arrays", "notes.txt", "vocabulary.arrays"):
        folder = tmp_path / f"their-{name}"
        folder.mkdir()
        if name == "shard-00007":
            (folder / name).mkdir()
            (folder / name / "precious.txt").write_text("precious")
        else:
            (folder / name).write_text("precious")
        before = {path: path.stat().st_mtime_ns for path in folder.rglob("*")}
        with pytest.raises(tw.exceptions.CorpusError, match=rf"{name}.*empty or does not exist") as caught:
            tw.encode(file, folder, features="S1", shard_tokens=4)
        assert isinstance(caught.value, OSError)
        assert {path: path.stat().st_mtime_ns for path in folder.rglob("*")} == before


def test_only_files_that_the_manifest_names_are_removed(file: Path) -> None:
    """Other files stay, even with the names of shards that encoding would write next."""
    shards, _ = encode(file)
    theirs = [shards.path / name for name in ("shard-00003.arrays", "shard-00007.arrays", "notes.txt")]
    for path in theirs:
        path.write_text("precious")
    assert len(encode(file, shard_tokens=100)[0]) == 1
    assert not (shards.path / "shard-00002.arrays").exists()
    with pytest.raises(
        tw.exceptions.CorpusError, match=r"shard-00003\.arrays: not written.*does not name it"
    ):
        encode(file, shard_tokens=1)
    assert [path.read_text() for path in theirs] == ["precious"] * 3


@pytest.mark.parametrize(
    "name", ["shard-00000.arrays", "shard-00001.map.arrays", "vocabulary.arrays", "manifest.json"]
)
def test_links_are_not_followed(file: Path, tmp_path: Path, name: str) -> None:
    """Neither a link nor its target changes, and nothing is read through a link."""
    shards, _ = encode(file)
    victim = tmp_path / "victim"
    victim.write_bytes((shards.path / name).read_bytes())
    (shards.path / name).unlink()
    (shards.path / name).symlink_to(victim)
    before = victim.read_bytes()
    for options in ({}, {"features": "S2"}, {"shard_tokens": 100}):
        with pytest.raises(tw.exceptions.CorpusError, match=rf"{name}.*link"):
            encode(file, **options)
    with pytest.raises(tw.exceptions.CorpusError, match="link"):
        tw.fit_shards(tw.CRF(max_iter=1), tw.Shards(shards.path))
    assert victim.read_bytes() == before
    assert (shards.path / name).is_symlink()


def test_shard_folder_may_be_a_link(file: Path, tmp_path: Path) -> None:
    """The user may choose a linked folder, for example on another disk."""
    (tmp_path / "there").mkdir()
    (tmp_path / "here").symlink_to(tmp_path / "there")
    tw.encode(file, tmp_path / "here", features="S1")
    assert len(tw.Shards(tmp_path / "there")) == 1


def test_damaged_shards_are_named_and_encoded_again(file: Path) -> None:
    shards, _ = encode(file)
    for name in ("shard-00001.arrays", "shard-00001.map.arrays"):
        path = shards.path / name
        whole = path.read_bytes()
        path.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
        with pytest.raises(tw.exceptions.CorpusError, match=rf"{name}: a damaged file.*encode"):
            tw.fit_shards(tw.CRF(max_iter=1), tw.Shards(shards.path))
        path.unlink()
        with pytest.raises(tw.exceptions.CorpusError, match=name):
            tw.Shards(shards.path).dataset(1)
        assert encode(file)[1] == [
            False,
            ".map." not in name,
            False,
        ]  # the map covers all shards and is always written
    assert tw.fit_shards(tw.CRF(max_iter=1), tw.Shards(shards.path)).classes_
    (shards.path / "vocabulary.arrays").write_bytes(b"")
    with pytest.raises(tw.exceptions.CorpusError, match="vocabulary"):
        tw.Shards(shards.path).vocabulary()


def test_foreign_manifests_are_rejected(file: Path) -> None:
    shards, _ = encode(file)
    manifest = read_manifest(shards.path)
    write_manifest(shards.path, {**manifest, "format": 99})
    with pytest.raises(tw.exceptions.CorpusError, match="format 99"):
        tw.Shards(shards.path)
    manifest["shards"].reverse()
    write_manifest(shards.path, manifest)
    with pytest.raises(tw.exceptions.CorpusError, match=r"not the file that manifest\.json names"):
        tw.Shards(shards.path).dataset(0)


def test_attributes_without_occurrences_are_rejected(file: Path) -> None:
    """The vocabulary would omit it, but the shards would not."""
    shards, _ = encode(file)
    path = shards.path / "vocabulary.arrays"
    Forgery.of(path).change("counts", 0, 0).write(path)
    crc = int.from_bytes(path.read_bytes()[12:16], "little")
    write_manifest(shards.path, {**read_manifest(shards.path), "vocabulary": crc})
    with pytest.raises(tw.exceptions.CorpusError, match=r"vocabulary\.arrays.*'counts' contains 0"):
        tw.fit_shards(tw.Perceptron(max_iter=1), tw.Shards(shards.path))


def test_any_changed_byte_of_the_manifest_is_detected(file: Path) -> None:
    shards, _ = encode(file)
    path = shards.path / "manifest.json"
    whole = path.read_bytes()
    for at in range(0, len(whole), 7):
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
        with pytest.raises(tw.exceptions.CorpusError, match=r"manifest\.json"):
            tw.Shards(shards.path)


def test_unsupported_input_is_not_encoded(file: Path, tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="no such file"):
        encode(file, files=tmp_path / "absent*.conll")
    with pytest.raises(tw.exceptions.CorpusError, match="no files"):
        encode(file, files=[])
    (tmp_path / "empty.conll").write_text("")
    with pytest.raises(tw.exceptions.CorpusError, match=r"empty\.conll: no sentences found"):
        encode(file, files=tmp_path / "empty.conll")
    (tmp_path / "other.conll").write_text("a\tNN\tD\n\nb\tNN\tN\n\n")
    with pytest.raises(tw.exceptions.CorpusError, match=r"other\.conll:1: columns word, pos, label"):
        encode(file, files=[file, tmp_path / "other.conll"])
    (tmp_path / "text.txt").write_text("one line of text\n")
    with pytest.raises(tw.exceptions.CorpusError, match=r"text\.txt:1: no label column"):
        encode(file, files=tmp_path / "text.txt", format="text")
    with pytest.raises(tw.exceptions.ParameterError, match="is_rare"):
        encode(file, features="pos")
    with pytest.raises(tw.exceptions.ParameterError, match="shard_tokens"):
        encode(file, shard_tokens=0)
    with pytest.raises(tw.exceptions.ParameterError, match="smaller shards"):
        encode(file, shard_tokens=10**6, memory="1M")
    with pytest.raises(tw.exceptions.CorpusError, match=r"attributes so far"):
        encode(file, features="S2", shard_tokens=1, memory=1100)
    with pytest.raises(NotADirectoryError):
        tw.encode(file, file / "enc")


def test_unsupported_parameters_are_rejected_for_shards(file: Path) -> None:
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
        with pytest.raises(tw.exceptions.ParameterError, match=next(iter(given))):
            tw.fit_shards(tw.CRF(**given), shards)
    with pytest.raises(tw.exceptions.ParameterError, match="encoded with 'S1'"):
        tw.fit_shards(tw.CRF(features="S2"), shards)
    with pytest.raises(tw.exceptions.ParameterError, match="fit_shards"):
        tw.CRF().fit(shards)
    with pytest.raises(tw.exceptions.ParameterError, match="hmm cannot be trained on shards"):
        tw.fit_shards(tw.HMM(), shards)
    with pytest.raises(tw.exceptions.ParameterError, match="expected one of local"):
        tw.fit_shards(tw.CRF(), shards, backend="nowhere")
    with pytest.raises(tw.exceptions.ParameterError, match="workers=2 needs backend='ray'"):
        tw.fit_shards(tw.CRF(), shards, workers=2)
    named, usual = (
        tw.fit_shards(tw.CRF(max_iter=2), shards, **given) for given in ({"backend": "local"}, {})
    )
    assert named.model_.scorer.weights.tobytes() == usual.model_.scorer.weights.tobytes()
    with pytest.raises(tw.exceptions.ParameterError, match="forget"):
        tw.fit_shards(tw.CRF(), shards, warm_start=tw.CRF(features="S1", max_iter=1).fit(WORDS, LABELS))


def test_warm_start_uses_weights_of_shared_features(file: Path) -> None:
    """Features that the shards share with the model start with its weights."""
    shards, _ = encode(file)
    before = tw.CRF(features="S1", max_iter=3, optimizer="lbfgs").fit(WORDS, LABELS)
    after = tw.fit_shards(tw.CRF(features="S1", max_iter=0), shards, warm_start=before, forget=True)
    np.testing.assert_array_equal(after.model_.scorer.weights, before.model_.scorer.weights)


def fails_as_if_by_number(sentence: Any) -> list[list[str]]:
    """Raise an error that names a sentence that does not exist."""
    raise tw.exceptions.CorpusError("sentence 99: as the function words it")


def fails_by_length(sentence: Any) -> list[list[str]]:
    """Return attributes with a token missing in longer sentences."""
    return [["1"]] * min(len(sentence.tokens), 2)


def test_error_line_comes_from_its_number_not_its_text(file: Path) -> None:
    """The text of an error may look like one about another sentence."""
    with pytest.raises(tw.exceptions.CorpusError, match=r"^sentence 99: as the function words it$"):
        encode(file, features=fails_as_if_by_number)
    with pytest.raises(
        tw.exceptions.CorpusError, match=rf"^{file}:4: sentence 1 has 3 tokens, .* attributes for 2"
    ):
        encode(file, features=fails_by_length)


def test_sentence_positions_name_file_and_line(file: Path, tmp_path: Path) -> None:
    (tmp_path / "b.conll").write_text("# a comment\nx\tD\n\ny\tN\n\n")
    shards, _ = encode(file, files=[file, tmp_path / "b.conll"], shard_tokens=13)
    assert len(shards) == 2
    assert shards.place(0, 1) == f"{file}:4"
    assert shards.place(0, 5) == f"{tmp_path / 'b.conll'}:2"
    assert shards.place(1, 0) == f"{tmp_path / 'b.conll'}:4"


@pytest.mark.parametrize("wrong", ["", "0", "-1", "2X", "lots", True])
def test_memory_amounts_are_parsed(wrong: Any) -> None:
    assert memory_of("2G") == 2 << 30 == memory_of("2GiB") == memory_of(2 << 30)
    with pytest.raises(tw.exceptions.ParameterError, match="500M"):
        memory_of(wrong)

"""The model file follows docs/reference/model-file.md, read with the standard library and NumPy only."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import tagwise as tw

from .files import read


@pytest.fixture(scope="module")
def tagger() -> tw.Tagger:
    return tw.CRF(features="S2", max_iter=8).fit(tw.load_corpus("wnut17-ner")[0][:100])


def test_model_files_follow_the_documented_format(tagger: tw.Tagger, tmp_path: Path) -> None:
    path = tmp_path / "m.tagwise"
    tagger.save(path)
    header, arrays = read(path)
    assert header["labels"] == list(tagger.classes_)
    assert header["meta"]["params"]["features"] == "S2"
    assert len(arrays["weights"]) == tagger.n_features_
    ends = arrays["vocab.end"].tolist()
    text = arrays["vocab.text"].tobytes()
    texts = [text[a:b].decode() for a, b in zip([0, *ends], ends)]
    assert len(texts) == header["n_attributes"]
    # Strongest features, computed again by hand.
    for label, found in tagger.inspect(top=3).labels.items():
        y = header["labels"].index(label)
        mine = np.flatnonzero(arrays["node_label"] == y)
        owners = np.searchsorted(arrays["node_ptr"], mine, side="right") - 1
        weight_of = {texts[a]: w for a, w in zip(owners, arrays["weights"][mine].tolist())}
        assert [weight_of[attribute] for attribute, _ in found] == [weight for _, weight in found]
        assert sorted(map(abs, weight_of.values()))[-len(found) :] == sorted(abs(w) for _, w in found)


def test_damaged_and_truncated_files_are_rejected(tagger: tw.Tagger, tmp_path: Path) -> None:
    path = tmp_path / "m.tagwise"
    tagger.save(path)
    whole = path.read_bytes()
    broken = tmp_path / "broken.tagwise"
    for cut in (0, 1, 8, 31, 32, 100, len(whole) // 2, len(whole) - 1):
        broken.write_bytes(whole[:cut])
        with pytest.raises((tw.exceptions.ModelFileError, OSError), match=r"broken\.tagwise"):
            tw.load(broken)
    for place in range(0, len(whole), max(1, len(whole) // 97)):
        broken.write_bytes(whole[:place] + bytes([whole[place] ^ 0x40]) + whole[place + 1 :])
        with pytest.raises(tw.exceptions.ModelFileError, match=r"broken\.tagwise"):
            tw.load(broken)


def test_changing_any_byte_is_detected(tmp_path: Path) -> None:
    path = tmp_path / "m.tagwise"
    tw.CRF(features="S1", max_iter=2).fit([["a", "b"]], [["X", "Y"]]).save(path)
    whole = path.read_bytes()
    assert tw.load(path).predict([["a", "b"]])
    for place, byte in enumerate(whole):  # each of the eight bits in turn
        path.write_bytes(whole[:place] + bytes([byte ^ (1 << place % 8)]) + whole[place + 1 :])
        with pytest.raises(tw.exceptions.ModelFileError):
            tw.load(path)

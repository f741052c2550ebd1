"""Ready taggers: trained at first use, cached under a key of their inputs, and available without the cache."""

from __future__ import annotations

import errno
import logging
import os
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import tagwise as tw
from tagwise.apps import pretrained
from tagwise.apps.compare.cache import default_folder
from tagwise.apps.pretrained import TAGGERS, TaggerInfo

SENTENCES = [["I", "love", "London", "!"], ["Justin", "Bieber", "is", "back"]]
TINY = TaggerInfo("tiny", "names", "wnut17-ner", "ner", "crf", {"features": "S1", "max_iter": 3})


@pytest.fixture
def trained(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Register a ready tagger of a few sentences. Return a list that records the names of trained taggers."""
    done: list[str] = []
    train, dev, test = tw.load_corpus("wnut17-ner")
    assert dev is not None
    inner = TaggerInfo.train

    def noting(info: TaggerInfo, verbose: int = 0) -> tw.Tagger:
        done.append(info.name)
        return inner(info, verbose)

    monkeypatch.setattr(pretrained, "load_corpus", lambda *_: (train[:60], dev[:10], test[:20]))
    monkeypatch.setattr(TaggerInfo, "train", noting)
    monkeypatch.setitem(TAGGERS, "tiny", TINY)
    return done


def test_pretrained_taggers_are_trained_once(trained: list[str], tmp_path: Path) -> None:
    """Training happens at first use. Later calls load the file, which holds a bit-identical tagger."""
    first = tw.pretrained("tiny", cache=tmp_path / "deep" / "er")
    (path,) = (tmp_path / "deep" / "er").iterdir()
    whole = path.read_bytes()
    again = tw.pretrained("tiny", cache=tmp_path / "deep" / "er")
    assert trained == ["tiny"]
    assert first.predict(SENTENCES) == again.predict(SENTENCES)
    for number, tagger in enumerate((first, again)):
        tagger.save(tmp_path / str(number))
        assert (tmp_path / str(number)).read_bytes() == whole
        assert tagger.get_params()["verbose"] == 0


def test_stored_scores_equal_test_predictions(trained: list[str], tmp_path: Path) -> None:
    """The scores in the file are those of its predictions on the test part. Licence and corpus are stored with them."""
    tagger = tw.pretrained("tiny", cache=tmp_path)
    details = tagger.model_.meta["pretrained"]
    test = tw.load_corpus("wnut17-ner")[2][:20]
    report = tw.evaluate(test.labels, tagger.predict(test))
    assert details["test"] == {
        "accuracy": report.accuracy,
        "sequence_accuracy": report.sequence_accuracy,
        "precision": report.precision,
        "recall": report.recall,
        "f1": report.f1,
    }
    assert (details["name"], details["corpus"]) == ("tiny", "wnut17-ner")
    assert "CC BY 4.0" in details["licence"] == TINY.licence
    tags = replace(TINY, corpus="ewt-pos", label="upos")
    assert tags.licence != TINY.licence


def test_file_name_depends_on_everything_that_trains(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Code, corpus, label, learner and parameters determine the file name, and nothing else does."""
    others = [
        replace(TINY, corpus="ewt-pos"),
        replace(TINY, label="upos"),
        replace(TINY, learner="perceptron"),
        replace(TINY, params={"features": "S1", "max_iter": 4}),
        replace(TINY, params={}),
    ]
    paths = [info.path(tmp_path) for info in (TINY, *others)]
    monkeypatch.setattr(pretrained, "code_version", lambda: "other code")
    paths.append(TINY.path(tmp_path))
    monkeypatch.undo()
    monkeypatch.setattr(pretrained, "corpus_digest", lambda _: "other sentences")
    paths.append(TINY.path(tmp_path))
    monkeypatch.undo()
    assert len(set(paths)) == len(paths)
    assert TINY.path(tmp_path) == paths[0] == replace(TINY, task="the same in other words").path(tmp_path)


def test_default_folder_is_in_the_user_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`models` next to the comparison results, or in the folder of TAGWISE_CACHE. None without a home folder."""
    monkeypatch.setenv("TAGWISE_CACHE", str(tmp_path / "named"))
    path = TINY.path()
    assert path is not None
    assert path.parent == tmp_path / "named" / "models"
    monkeypatch.delenv("TAGWISE_CACHE")
    path = TINY.path()
    assert path is not None
    assert path.parent == default_folder().with_name("models")


def test_missing_home_folder_warns_and_trains(
    trained: list[str], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A warning reports the missing folder, and the tagger is returned."""

    def unknown(number: int) -> None:
        raise KeyError(number)

    monkeypatch.delenv("TAGWISE_CACHE", raising=False)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.delenv("HOME", raising=False)
    monkeypatch.setattr("pwd.getpwuid", unknown)
    assert tw.pretrained("tiny").predict(SENTENCES)
    assert "Set TAGWISE_CACHE" in caplog.text


def test_cache_false_writes_no_file(
    trained: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("TAGWISE_CACHE", str(tmp_path))
    for _ in range(2):
        tw.pretrained("tiny", cache=False)
    assert trained == ["tiny", "tiny"]
    assert list(tmp_path.iterdir()) == []
    assert not caplog.records


def test_damaged_or_foreign_files_are_replaced(
    trained: list[str], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A warning names the file, and the correct model replaces it."""
    expected = tw.pretrained("tiny", cache=tmp_path).predict(SENTENCES)
    (path,) = tmp_path.iterdir()
    whole = path.read_bytes()
    tw.CRF(features="S1", max_iter=1).fit([["a"]], [["X"]]).save(tmp_path / "other")
    stranger = (tmp_path / "other").read_bytes()
    (tmp_path / "other").unlink()
    for text in (b"", whole[:-7], whole[:900] + bytes([whole[900] ^ 1]) + whole[901:], b"junk", stranger):
        path.write_bytes(text)
        caplog.clear()
        assert tw.pretrained("tiny", cache=tmp_path).predict(SENTENCES) == expected
        (record,) = caplog.records
        assert record.levelno == logging.WARNING
        assert str(path) in record.getMessage()
        assert re.search(r"\. Training (it|tiny) again$", record.getMessage())
        assert path.read_bytes() == whole


@pytest.mark.parametrize("trouble", ["full", "no folder"])
def test_unwritable_cache_warns_once_and_tags(
    trained: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    trouble: str,
) -> None:
    """One warning names the folder, predictions are unchanged, and no partial file is left."""
    folder = tmp_path / "kept"
    if trouble == "full":

        def full(_: int) -> None:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

        monkeypatch.setattr(os, "fsync", full)
    else:
        folder.write_text("a file where the folder should be")
    found = tw.pretrained("tiny", cache=folder)
    (record,) = caplog.records
    assert str(folder) in record.getMessage()
    assert "the model was not saved" in record.getMessage()
    assert found.predict(SENTENCES) == TINY.train().predict(SENTENCES)
    assert folder.is_file() or list(folder.iterdir()) == []


TWO = """
import sys
import tagwise as tw
import tagwise.apps.pretrained as taggers
train, dev, test = tw.load_corpus("wnut17-ner")
taggers.load_corpus = lambda *_: (train[:60], dev[:10], test[:20])
info = taggers.TaggerInfo("tiny", "names", "wnut17-ner", "ner", "crf", {"features": "S1", "max_iter": 3})
taggers.TAGGERS["tiny"] = info
sys.stdin.readline()
print(tw.pretrained("tiny", cache=sys.argv[1]).predict([["I", "love", "London", "!"]]))
"""


def test_concurrent_processes_both_get_the_tagger(trained: list[str], tmp_path: Path) -> None:
    """Both processes get the tagger, and the file is complete whichever wrote last."""
    at_once: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    both = [
        subprocess.Popen([sys.executable, "-c", TWO, str(tmp_path)], stderr=subprocess.PIPE, **at_once)
        for _ in range(2)
    ]
    for process in both:  # both block on this line before they begin
        process.stdin.write("go\n")
        process.stdin.flush()
    outputs = [process.communicate(timeout=600) for process in both]
    assert [process.returncode for process in both] == [0, 0], outputs
    assert outputs[0] == outputs[1]
    assert outputs[0][1] == ""
    (path,) = tmp_path.iterdir()
    assert tw.pretrained("tiny", cache=tmp_path).predict(SENTENCES[:1]) == eval(outputs[0][0])
    assert path == TINY.path(tmp_path)
    assert trained == []


def test_unknown_names_are_rejected_with_a_suggestion() -> None:
    """The error lists the valid names and suggests the closest one."""
    with pytest.raises(
        tw.exceptions.ParameterError,
        match=r"unknown pretrained tagger 'en-poss' \(did you mean 'en-pos'\?\)\. Use one of en-pos, ",
    ):
        tw.pretrained("en-poss")
    assert [info.name for info in tw.list_pretrained()] == list(TAGGERS)

"""Every option of ``pretrained`` changes the outcome as its help says, and other commands accept pretrained names."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

import tagwise as tw
from tagwise.apps import pretrained
from tagwise.apps.pretrained import TaggerInfo

from .options import DEV, TEST, TRAIN, Bench, cases, debug, invoke, row

TINY = TaggerInfo("en-tiny", "names of a few", "wnut17-ner", "ner", "crf", {"features": "S1", "max_iter": 4})


def given(bench: Bench) -> None:
    """Replace the pretrained taggers by one that is trained on a few sentences."""
    bench.patch.setattr(pretrained, "load_corpus", lambda *_: (TRAIN, DEV, TEST))
    bench.patch.setattr(pretrained, "TAGGERS", {"en-tiny": TINY})


def models(bench: Bench) -> list[Path]:
    """Return the model files in the cache."""
    return sorted(bench.path("usual").rglob("*.tagwise"))


@row("pretrained", "names")
def pretrained_names(bench: Bench) -> None:
    """Named taggers are trained on first use. Without a name, all are listed and none is trained."""
    given(bench)
    listed = bench.ok("pretrained")
    assert "not trained yet: tagwise pretrained en-tiny" in listed.stdout
    assert (listed.stderr, models(bench)) == ("", [])
    made = bench.ok("pretrained", "en-tiny")
    assert "training en-tiny on wnut17-ner at first use. The model is kept in" in made.stderr
    assert re.search(r"^trained en-tiny in \d+\.\d s$", made.stderr, re.M)
    (path,) = models(bench)
    scores = tw.load(path).evaluate(TEST)
    for text in (made.stdout, bench.ok("pretrained").stdout):
        assert f"F1 {100 * scores.f1:.2f}, accuracy {100 * scores.accuracy:.2f}" in text
        assert "names of a few" in text
        assert "CC BY 4.0" in text
    assert bench.ok("pretrained", "en-tiny").stderr == ""
    wrong = invoke("pretrained", "en-tony")
    assert (wrong.exit_code, wrong.stdout) == (2, "")
    assert "did you mean 'en-tiny'?" in wrong.stderr


@row("pretrained", "--json")
def pretrained_json(bench: Bench) -> None:
    """--json prints the same facts as JSON."""
    given(bench)
    (before,) = json.loads(bench.ok("pretrained", "--json").stdout)
    (after,) = json.loads(bench.ok("pretrained", "en-tiny", "--json").stdout)
    assert (before["test"], before["file"]) == (None, None)
    (path,) = models(bench)
    assert after["test"]["f1"] == tw.load(path).evaluate(TEST).f1
    assert after["file"] == str(path)
    assert {**after, "test": None, "file": None} == before
    assert (after["name"], after["params"]) == ("en-tiny", dict(TINY.params))


@row("pretrained", "--debug")
def pretrained_debug(bench: Bench) -> None:
    """--debug shows the traceback of an error, here of a missing corpus."""
    given(bench)
    bench.patch.delenv("TAGWISE_DATA", raising=False)
    bench.patch.setattr(pretrained, "TAGGERS", {"en-tiny": replace(TINY, corpus="conll2000")})
    debug("pretrained", "en-tiny")


@pytest.mark.parametrize("case", cases("pretrained"))
def test_options(bench: Bench, case: str) -> None:
    """Run the check of one option."""
    cases("pretrained")[case](bench)


def test_pretrained_names_are_accepted_as_models(bench: Bench) -> None:
    """Every command that takes a model accepts a pretrained name. A file of that name takes precedence."""
    given(bench)
    bench.ok("pretrained", "en-tiny")
    (path,) = models(bench)
    for args in (
        ("tag", "MODEL", bench.test),
        ("eval", "MODEL", bench.test, "--json"),
        ("errors", "MODEL", bench.test, "--json"),
        ("explain", "MODEL", "Rosa runs", "--json"),
        ("inspect", "MODEL", "--json"),
    ):
        by_name, by_file = (
            bench.ok(*(name if arg == "MODEL" else arg for arg in args)).stdout for name in ("en-tiny", path)
        )
        assert by_name == by_file != ""
    facts = bench.ok("inspect", "en-tiny").stdout
    assert str(path) in "".join(facts.split())
    assert "names of a few" in facts
    warm = bench.made(bench.train, "--warm-start", "en-tiny")
    assert warm == bench.made(bench.train, "--warm-start", path)
    rejected = invoke("eval", "en-tiny")
    assert (rejected.exit_code, rejected.stdout) == (2, "")
    assert "en-tiny is a model" in rejected.stderr
    bench.patch.chdir(bench.folder)
    bench.path("en-tiny").write_bytes(bench.model.read_bytes())
    assert bench.ok("tag", "en-tiny", bench.test).stdout == bench.ok("tag", bench.model, bench.test).stdout
    nearly = invoke("tag", "en-tinny", bench.test)
    assert (nearly.exit_code, nearly.stderr.count("\n")) == (2, 1)
    assert "did you mean 'en-tiny'?" in nearly.stderr


def test_pretrained_taggers_work_without_a_writable_cache(bench: Bench) -> None:
    """Tagging works without a writable cache, and ``inspect`` reports that the cache cannot be written."""
    given(bench)
    bench.path("usual").write_text("a file where the folder should be")
    assert bench.ok("tag", "en-tiny", bench.test).stdout == bench.ok("tag", bench.model, bench.test).stdout
    assert "the cache cannot be written" in bench.ok("inspect", "en-tiny").stdout

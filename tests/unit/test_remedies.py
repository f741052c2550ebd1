"""Common mistakes raise errors that name the remedy."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import tagwise as tw
from tagwise.cli import cli

X = [["Ada", "left"], ["Bob", "slept"]]
Y = [["B-PER", "O"], ["B-PER", "O"]]


@pytest.fixture(scope="module")
def tagger() -> tw.Tagger:
    return tw.CRF(features="S1", max_iter=3).fit(X, Y)


@pytest.mark.parametrize("text", ["Ada left", ["Ada left", "Bob slept"]])
def test_predict_of_text_suggests_tag(tagger: tw.Tagger, text: Any) -> None:
    with pytest.raises(tw.exceptions.CorpusError, match=r"is str, .* Label text with tag\(\.\.\.\)"):
        tagger.predict(text)
    assert tagger.tag("Ada left")


@pytest.mark.parametrize("kind", [tw.CRF, tw.HMM, tw.MEMM, tw.HMSVM, tw.Boosting])
def test_missing_partial_fit_names_learners_that_have_it(kind: type[tw.Tagger]) -> None:
    with pytest.raises(AttributeError, match="AROW, MIRA, PassiveAggressive, Perceptron have it"):
        kind().partial_fit  # type: ignore[attr-defined]  # noqa: B018
    assert not hasattr(kind(), "partial_fit")
    with pytest.raises(AttributeError, match=r"has no attribute 'nothing'$"):
        kind().nothing  # type: ignore[attr-defined]  # noqa: B018


def test_unknown_constraints_suggest_auto(tagger: tw.Tagger) -> None:
    for wrong, meant in (("atuo", "auto"), ("iobse", "IOBES")):
        with pytest.raises(tw.exceptions.ParameterError, match=rf"did you mean '{meant}'.* auto, IOB2"):
            tagger.predict(X, constraints=wrong)


@pytest.mark.parametrize("kind", [tw.CRF, tw.MIRA, tw.HMM])
def test_none_is_not_a_label(kind: type[tw.Tagger]) -> None:
    with pytest.raises(tw.exceptions.CorpusError, match=r"sentence 1, token 0: .*None.*partial=True"):
        kind().fit(X, [["A", "B"], [None, "B"]])
    tw.CRF(partial=True).fit(X, [["A", "B"], [None, "B"]])


def test_empty_tokens_are_reported(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "tagwise"):
        tw.CRF(max_iter=1).fit([["a"], ["b", ""]], [["A"], ["B", "A"]])
    assert "sentence 1, token 1 is an empty string" in caplog.text


def test_corpora_are_not_written_to_files_of_other_programs(tmp_path: Path) -> None:
    (tmp_path / "a.tsv").write_text("Ada\tN\n\n")
    done = CliRunner().invoke(cli, ["convert", str(tmp_path / "a.tsv"), str(tmp_path / "x.docx")])
    assert done.exit_code == 2
    assert "does not write .docx files" in done.stderr
    assert not (tmp_path / "x.docx").exists()


def test_unknown_presets_are_suggested() -> None:
    done = CliRunner().invoke(cli, ["compare", "spanish-nre"])
    assert done.exit_code == 2
    assert "did you mean 'spanish-ner'?" in done.stderr

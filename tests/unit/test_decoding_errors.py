"""Errors of decoding, constraints and confidence on wrong input, and taggers fitted in Python on the command line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tagwise as tw
from tagwise.corpus.sentence import Corpus

X = [["London", "is"], ["a"]]
Y = [["B-LOC", "O"], ["O"]]


@pytest.fixture(scope="module")
def crf() -> tw.CRF:
    return tw.CRF(features="S1", max_iter=5).fit(X, Y)


@pytest.mark.parametrize(
    ("allowed", "words"),
    [
        ([[None, None]], "allowed has 1 sentences, X has 2"),
        ([[None], [None]], "sentence 0 has 2 tokens, but allowed has 1"),
        ([["XX", None], [None]], "sentence 0, token 0: unknown label 'XX'"),
        ([[None, None], [set()]], "sentence 1, token 0: no label in allowed"),
        ([[3, None], [None]], "sentence 0, token 0: allowed is 3"),
        (["OO", [None]], "sentence 0: allowed is 'OO'"),
        ([7, [None]], "sentence 0: allowed is 7"),
    ],
)
def test_invalid_allowed_labels_raise(crf: tw.CRF, allowed: Any, words: str) -> None:
    with pytest.raises(tw.exceptions.CorpusError, match=words):
        crf.predict(X, allowed=allowed)


def test_allowed_none_permits_every_label(crf: tw.CRF) -> None:
    assert crf.predict(X, allowed=[None, ["B-LOC"]]) == [*crf.predict(X[:1]), ["B-LOC"]]


@pytest.mark.parametrize("beam", [0, -1, 2.5, "8"])
def test_invalid_beams_raise(crf: tw.CRF, beam: Any) -> None:
    with pytest.raises(tw.exceptions.ParameterError, match="expected integer >= 1"):
        crf.predict(X, decoder="beam", beam=beam)


def test_local_models_reject_beam_search() -> None:
    memm = tw.MEMM(features="S1", max_iter=3).fit(X, Y)
    with pytest.raises(tw.exceptions.ParameterError, match="MEMM"):
        memm.predict(X, decoder="beam")
    assert [len(y) for y in memm.predict(X, decoder="pointwise")] == [2, 1]
    assert [len(y) for y in memm.predict(X, constraints={"once": ["LOC"]})] == [2, 1]


@pytest.mark.parametrize(
    ("chunk", "words"),
    [
        (("LOC", 0), "expected a chunk"),
        ("LOC", "expected a chunk"),
        (("LOC", -1, 1), "not inside its 2 tokens"),
        (("LOC", 1, 1), "not inside its 2 tokens"),
        (("LOC", 0, 9), "not inside its 2 tokens"),
        (("PER", 0, 1), "no chunks of type 'PER'"),
    ],
)
def test_invalid_chunks_raise(crf: tw.CRF, chunk: Any, words: str) -> None:
    with pytest.raises(tw.exceptions.CorpusError, match=words):
        crf.chunk_probability(X, [[chunk], []])


@pytest.mark.parametrize(
    ("constraints", "words"),
    [
        ({"once": object()}, "once as a list"),
        ({"once": 3}, "once names '3'"),
        ({"once": ["PER"]}, "once names 'PER'"),
        ({"forbidden": [(None, None)]}, "None, None"),
        ({"forbidden": [("O", "B-LOC", "O")]}, "list of pairs"),
    ],
)
def test_constraints(crf: tw.CRF, constraints: Any, words: str) -> None:
    with pytest.raises(tw.exceptions.ParameterError, match=words):
        crf.predict(X, constraints=constraints)


def test_empty_sentences(crf: tw.CRF) -> None:
    for rule in (None, {"once": ["LOC"]}):
        assert crf.predict([[], ["a"]], constraints=rule)[0] == []
        assert crf.predict_kbest([[]], 3, probability=True, constraints=rule) == [[([], 1.0)]]
        assert crf.predict_marginals([[]], constraints=rule)[0].shape == (0, 2)


# -- taggers fitted in Python, files on the command line -----------------------------------------------------


def tag(model: Path, text: str, folder: Path) -> tuple[int, str]:
    from click.testing import CliRunner

    from tagwise.cli import cli

    source = folder / "in.txt"
    source.write_text(text, encoding="utf-8")
    result = CliRunner().invoke(cli, ["tag", str(model), str(source)])
    return result.exit_code, result.output


@pytest.mark.parametrize("given", ["lists", "corpus", "columns"])
def test_command_reads_files_with_the_columns_of_fit(given: str, tmp_path: Path) -> None:
    tagger = tw.Perceptron(features="S1", max_iter=5)
    if given == "lists":
        tagger.fit(X, Y)
    elif given == "corpus":
        tagger.fit(Corpus.from_lists(X, Y))
    else:
        tagger.fit([{"word": x} for x in X], Y)
    tagger.save(tmp_path / "m")
    for text in ("London\nis\n\na\n", "London\tO\nis\tO\n\na\tO\n"):
        code, out = tag(tmp_path / "m", text, tmp_path)
        assert code == 0
        found = [line.split("\t")[-1] for line in out.splitlines() if line]
        assert found == [y for labels in Y for y in labels]


def test_models_of_bare_attributes_cannot_tag_files(tmp_path: Path) -> None:
    tw.Perceptron(max_iter=1).fit([[["a"], ["b"]]], [["X", "Y"]]).save(tmp_path / "m")
    code, out = tag(tmp_path / "m", "a\nb\n", tmp_path)
    assert code == 2
    assert "trained on lists of attributes" in out
    assert np.isfinite(tw.load(tmp_path / "m").model_.scorer.weights).all()

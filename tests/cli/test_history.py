"""History, documents and constraints from the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import tagwise as tw
from tagwise.cli.stream import BATCH

from ..corpora import documents
from .conftest import Run


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    """Return training and test files with -DOCSTART- rows. The test file is longer than a batch."""
    paths = tmp_path / "train.txt", tmp_path / "test.txt"
    tw.write(documents(20), paths[0], "conll")
    tw.write(documents(90, seed=1), paths[1], "conll")
    return paths


def test_streamed_documents_keep_labels_and_marks(run: Run, files: tuple[Path, Path], tmp_path: Path) -> None:
    """Labels equal those of the whole file although batches end within documents. The output keeps document marks."""
    train, test, model = files[0], tmp_path / "shifted.txt", tmp_path / "m.tagwise"
    short = [tw.Sentence({"word": ["in"], "label": ["O"]}, "label", doc=f"short {i}") for i in range(3)]
    tw.write(tw.Corpus([*short, *documents(90, seed=1)]), test, "conll")
    template = "word[0]\nword[-1]"
    options = ("--learner", "mira", "--features", template, "--lookback", "1,2:document=true", "-q")
    assert run("train", train, *options, "-o", model).exit_code == 0
    tagger = tw.load(model)
    assert tagger.get_params()["lookback"] == tw.Lookback(1, 2, document=True)
    corpus = tw.read(test, "conll")
    (cut,) = [d for d in corpus.documents if d.start < BATCH < d.stop]
    whole = tagger.predict(corpus)
    assert tagger.predict(corpus[BATCH : cut.stop]) != whole[BATCH : cut.stop]  # without earlier sentences
    result = run("tag", model, test)
    assert result.exit_code == 0
    tagged = tmp_path / "tagged.txt"
    tagged.write_text(result.stdout, encoding="utf-8")
    found = tw.read(tagged, "conll")
    assert found.labels == whole
    assert [d.start for d in found.documents] == [d.start for d in corpus.documents]
    nbest = run("tag", model, test, "--nbest", "2", "--output-format", "jsonl")
    assert nbest.exit_code == 0
    lists = [json.loads(line)["predicted"] for line in nbest.stdout.splitlines()]
    assert lists == [labels for ranked in tagger.predict_kbest(corpus, 2) for labels, _ in ranked]


def test_set_and_dedicated_options_train_identical_models(
    run: Run, files: tuple[Path, Path], tmp_path: Path
) -> None:
    one, two = tmp_path / "1.tagwise", tmp_path / "2.tagwise"
    common = ("train", files[0], "--learner", "perceptron", "--features", "S1", "-q")
    assert run(*common, "--lookback", "2,inf:document=true", "-o", one).exit_code == 0
    settings = ("--set", "lookback=2,inf:document=true", "--set", "max_iter=20")
    assert run(*common, *settings, "-o", two).exit_code == 0
    assert one.read_bytes() == two.read_bytes()


def test_wrong_settings_are_usage_errors(run: Run, files: tuple[Path, Path], tmp_path: Path) -> None:
    base = ("train", files[0], "-o", tmp_path / "m.tagwise")
    for options, message in (
        (("--learner", "mira", "--lookback", "9,1"), "lookback='9,1'"),
        (("--learner", "crf", "--lookback", "1,2"), "'lookback'"),
        (("--set", "constraints=nonsense"), "constraints='nonsense'"),
        (("--set", "dictionary=0"), "dictionary='0'"),
    ):
        result = run(*base, *options)
        assert (result.exit_code, result.stdout) == (2, ""), result.output
        assert message in result.stderr
        assert not (tmp_path / "m.tagwise").exists()


def test_constraints_are_accepted_by_name_or_json(run: Run, files: tuple[Path, Path], tmp_path: Path) -> None:
    model = tmp_path / "m.tagwise"
    rules = 'constraints={"once": ["PER"], "forbidden": [[null, "LOC"]]}'
    options = ("--features", "S1", "--set", rules, "--set", "max_iter=5", "-q")
    first = run("train", files[0], *options, "-o", model)
    assert first.exit_code == 2
    assert "sentence" in first.stderr
    lenient = 'constraints={"once": ["PER"]}'
    template = ("--features", "word[0]\nword[-1]")
    assert run("train", files[0], *template, "--set", lenient, "-q", "-o", model).exit_code == 0
    text = "Dr Rosa Dr Ines Dr Rosa"
    (line,) = run("tag", model, "--format", "text", text=text + "\n").stdout.splitlines()
    free = tw.load(model).predict([text.split()], constraints=False)[0]
    found = [token.rsplit("/", 1)[1] for token in line.split()]
    assert [labels.count("PER") for labels in (found, free)] == [1, 3]

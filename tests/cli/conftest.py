"""A small model, and helpers that run commands in this process or in a separate one."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

import tagwise as tw
from tagwise.cli import cli

from .options import Bench

Run = Callable[..., Result]


@pytest.fixture
def run() -> Run:
    """Return a function that runs a command in this process."""

    def invoke(*args: object, text: str | bytes | None = None) -> Result:
        result = CliRunner().invoke(cli, [str(a) for a in args], input=text)
        assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
        return result

    return invoke


def command(*args: object) -> list[str]:
    """Return the command line for a separate process."""
    return [sys.executable, "-m", "tagwise", *map(str, args)]


def environment() -> dict[str, str]:
    """Return the environment of a plain terminal, wide enough not to wrap messages."""
    return {**os.environ, "COLUMNS": "200", "NO_COLOR": "1", "PYTHONUNBUFFERED": ""}


def shell(*args: object, text: str = "") -> subprocess.CompletedProcess[str]:
    """Run a command in a separate process."""
    return subprocess.run(
        command(*args),
        input=text,
        capture_output=True,
        text=True,
        timeout=600,
        env=environment(),
        check=False,
    )


def columns(sentences: Sequence[Sequence[Sequence[str]]]) -> str:
    """Format sentences, each a list of rows, as CoNLL text."""
    return "".join("\n".join(map("\t".join, rows)) + "\n\n" for rows in sentences)


@pytest.fixture(scope="session")
def small() -> tuple[tw.Corpus, tw.Corpus]:
    """Return training and test sentences from a bundled corpus."""
    train, _, test = tw.load_corpus("wnut17-ner")
    return train[:150], test[:40]


@pytest.fixture(scope="session")
def tagger(small: tuple[tw.Corpus, tw.Corpus]) -> tw.CRF:
    """Return a quickly trained tagger."""
    return tw.CRF(features="S2", max_iter=12).fit(small[0])


@pytest.fixture(scope="session")
def model(tagger: tw.CRF, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the path of the tagger's model file."""
    path = tmp_path_factory.mktemp("model") / "ner.tagwise"
    tagger.save(path)
    return path


@pytest.fixture
def train_file(small: tuple[tw.Corpus, tw.Corpus], tmp_path: Path) -> Path:
    """Return the path of a file with the training sentences."""
    path = tmp_path / "train.txt"
    tw.write(small[0], path, "conll")
    return path


@pytest.fixture
def test_file(small: tuple[tw.Corpus, tw.Corpus], tmp_path: Path) -> Path:
    """Return the path of a file with the test sentences."""
    path = tmp_path / "test.txt"
    tw.write(small[1], path, "conll")
    return path


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Bench:
    """Return a folder with corpora and a model, separate from the user's cache."""
    monkeypatch.setenv("TAGWISE_CACHE", str(tmp_path / "usual"))
    monkeypatch.setenv("COLUMNS", "200")
    return Bench(tmp_path, monkeypatch)

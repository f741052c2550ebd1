"""Fixtures: small taggers of names, with and without probabilities, and a model file."""

from __future__ import annotations

import importlib.util
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import tagwise as tw
from tests.web.browser import CHROMIUM

#: The servers need tagwise[web], which `make test-browser` installs.
collect_ignore_glob = [] if importlib.util.find_spec("starlette") else ["test_*.py"]

LABELS = {"Rosa": "B-PER", "Lund": "B-LOC", "Berg": "I-PER", "runs": "O", "to": "O", ".": "O"}


def corpus(seed: int = 0, n: int = 40) -> tw.Corpus:
    """Return random sentences. A label is that of its word in LABELS, or O with probability 0.05."""
    rng = random.Random(seed)
    out = []
    for _ in range(n):
        words = [rng.choice(["Rosa", "Lund", "runs", "to"]) for _ in range(rng.randint(2, 5))]
        words = [w for word in words for w in ([word, "Berg"] if word == "Rosa" else [word])] + ["."]
        labels = [LABELS[w] if rng.random() < 0.95 else "O" for w in words]
        out.append(tw.Sentence({"word": words, "label": labels}, "label"))
    return tw.Corpus(out)


@pytest.fixture(scope="session")
def tagger() -> tw.CRF:
    """A fitted CRF."""
    return tw.CRF(features="S1", max_iter=10).fit(corpus())


@pytest.fixture(scope="session")
def perceptron() -> tw.Perceptron:
    """A fitted perceptron, whose scores are not probabilities."""
    return tw.Perceptron(features="S1", max_iter=2).fit(corpus())


@pytest.fixture
def model(tagger: tw.CRF, tmp_path: Path) -> Path:
    """Path of the model file of `tagger`."""
    path = tmp_path / "names.tagwise"
    tagger.save(path)
    return path


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    """A browser. Its event loop runs until the end of the module, and other modules start loops of their own."""
    api = pytest.importorskip(
        "playwright.sync_api", reason="playwright is not installed: make test-browser has it"
    )
    with api.sync_playwright() as play:
        browser = play.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()

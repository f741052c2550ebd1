"""A small tagger of names, of a learner with probabilities and one without, and its file."""

from __future__ import annotations

import importlib.util
import random
from pathlib import Path

import pytest

import tagwise as tw

#: The servers need tagwise[web]: `make test-browser` has it.
collect_ignore_glob = [] if importlib.util.find_spec("starlette") else ["test_*.py"]

LABELS = {"Rosa": "B-PER", "Lund": "B-LOC", "Berg": "I-PER", "runs": "O", "to": "O", ".": "O"}


def corpus(seed: int = 0, n: int = 40) -> tw.Corpus:
    """Sentences whose labels are nearly what their words say."""
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
    """Fitted once."""
    return tw.CRF(features="S1", max_iter=10).fit(corpus())


@pytest.fixture(scope="session")
def perceptron() -> tw.Perceptron:
    """A learner whose scores are no probabilities."""
    return tw.Perceptron(features="S1", epochs=2).fit(corpus())


@pytest.fixture
def model(tagger: tw.CRF, tmp_path: Path) -> Path:
    """Its file."""
    path = tmp_path / "names.tagwise"
    tagger.save(path)
    return path

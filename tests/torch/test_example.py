"""examples/bilstm_crf.py trains, stops, keeps the best epoch and tags with it."""

from __future__ import annotations

import importlib.util
import itertools
import sys
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed: make test-torch")

import tagwise as tw  # noqa: E402
import tests.torch.common  # noqa: E402, F401  (threads)
from tagwise.corpus.schemes import valid  # noqa: E402

SOURCE = Path(__file__).parents[2] / "examples" / "bilstm_crf.py"


@pytest.fixture(scope="module")
def example() -> Any:
    spec = importlib.util.spec_from_file_location("bilstm_crf", SOURCE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["bilstm_crf"] = module  # dataclasses look there
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Twenty short sentences to learn, ten to look at."""
    parts = [
        tw.Corpus([s for s in part[:300] if len(s) <= 7][:many])
        for part, many in zip(tw.load_corpus("wnut17-ner"), (20, 10, 10))
    ]
    monkeypatch.setattr(tw, "load_corpus", lambda name: parts)
    return parts[0]


@pytest.mark.parametrize("loss", ["log", "pointwise_exp"])
def test_the_example_learns(example: Any, small: Any, tmp_path: Path, capsys: Any, loss: str) -> None:
    """It fits the sentences; its labels are lawful; the file tags the same, and from a command line."""
    out = tmp_path / "model.pt"
    args = ["--loss", loss, "--epochs", "2", "--hidden", "16", "--batch", "10", "--output", str(out)]
    example.main([*args, "--device", "cpu"])
    tagger = example.Tagger.load(out)
    optimizer = torch.optim.Adam(tagger.parameters(), lr=0.01)
    values = []
    for _ in range(5):
        optimizer.zero_grad()
        value = tagger.loss(small.tokens, small.labels)
        value.backward()
        optimizer.step()
        values.append(value.item())
    assert values[-1] < values[0]
    for path in tagger.predict(small.tokens):
        assert all(valid(a, b, "IOB2") for a, b in itertools.pairwise([None, *path, None]))
    example.main(["--load", str(out), "Peter flew to London", "--device", "cpu"])
    said = capsys.readouterr().out.split()
    assert [pair.partition("/")[0] for pair in said] == ["Peter", "flew", "to", "London"]

"""examples/bilstm_crf.py trains, stops, keeps the best epoch and tags with it."""

from __future__ import annotations

import importlib.util
import itertools
import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

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
    sys.modules["bilstm_crf"] = module  # dataclasses look up modules there
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Replace the corpus by 20 short sentences for training, 10 for development and 10 for testing."""
    parts = [
        tw.Corpus([s for s in part[:300] if len(s) <= 7][:many])
        for part, many in zip(tw.load_corpus("wnut17-ner"), (20, 10, 10))
    ]
    monkeypatch.setattr(tw, "load_corpus", lambda name: parts)
    return parts[0]


@pytest.mark.parametrize("loss", ["log", "pointwise_exp"])
def test_example_trains_saves_and_tags(
    example: Any, small: Any, tmp_path: Path, capsys: Any, loss: str
) -> None:
    """The loss decreases, predicted labels obey the scheme, and a saved model tags from the command line."""
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
    output = capsys.readouterr().out.split()
    assert [pair.partition("/")[0] for pair in output] == ["Peter", "flew", "to", "London"]


def test_losses_are_compared(example: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The table has one line per loss with means over seeds, and the picture one curve per loss."""
    monkeypatch.syspath_prepend(str(SOURCE.parent))
    spec = importlib.util.spec_from_file_location("compare_losses", SOURCE.with_name("compare_losses.py"))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    rows = [
        {"loss": loss, "seed": seed, "dev": [0.1, top], "test": 0.25, "precision": 0.5, "recall": 0.125}
        for loss, seed, top in (("log", 1, 0.2), ("log", 2, 0.4), ("hinge", 1, 0.05))
    ]
    assert module.table(rows).splitlines()[2:] == [
        "| `log` | 30.0 | 2.0 | 25.0 | 50.0 | 12.5 |",
        "| `hinge` | 10.0 | 1.0 | 25.0 | 50.0 | 12.5 |",
    ]
    drawn = ElementTree.fromstring(module.picture(rows))
    curves = [line for line in drawn.iter() if line.tag.endswith("}polyline") and line.get("class") == "line"]
    assert [curve.findtext("{*}title") for curve in curves] == ["log", "hinge"]

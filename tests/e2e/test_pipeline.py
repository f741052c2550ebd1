"""The whole pipeline: a corpus, features, training, a model file, tagging, scores."""

from __future__ import annotations

from pathlib import Path

import pytest

import tagwise as tw


@pytest.mark.parametrize(("name", "floor"), [("ewt-pos", 0.80), ("wnut17-ner", 0.90)])
def test_from_corpus_to_scores(name: str, floor: float, tmp_path: Path) -> None:
    train, dev, test = tw.load_corpus(name)
    assert dev is not None
    seen: list[float] = []
    tagger = tw.CRF(features="S2", max_iter=30)
    tagger.fit(train[:800], dev=dev[:100], callbacks=[lambda step: seen.append(step.objective)])
    assert seen[-1] < seen[0]
    path = tmp_path / "m.tagwise"
    tagger.save(path)
    loaded = tw.load(path)
    predicted = loaded.predict(test)
    assert predicted == tagger.predict(test)
    report = tw.evaluate(test, predicted)
    assert report.accuracy >= floor
    assert loaded.score(test) == pytest.approx(report.score)

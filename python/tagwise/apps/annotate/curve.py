"""Scores on the dev corpus of a session, kept in the folder of the project."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tagwise.base.domains import Domain, Integer, ListOf, Real, Record
from tagwise.base.exceptions import FileError, TagwiseError
from tagwise.base.files.regular import read_regular
from tagwise.base.files.sealed import parsed
from tagwise.base.writing import write_text
from tagwise.corpus import schemes
from tagwise.corpus.sentence import Corpus
from tagwise.decoding.plan import Query
from tagwise.model.model import Model

#: File with the scores on the dev corpus, in the folder of the project.
CURVE = "curve.jsonl"
#: Its maximum size in bytes, and the schema of a line.
MOST_CURVE = 1 << 20
POINT: Domain = Record({"sentences": Integer(0, 2**53), "score": Real(0.0, 1.0)})


def read_curve(folder: Path) -> list[dict[str, float]]:
    """Return the learning curve of earlier sessions, or an empty one if the file is damaged."""
    try:
        data = read_regular(folder / CURVE, MOST_CURVE, FileError, "", follow=False)
        points = [parsed(line) for line in data.splitlines()]
        ListOf(POINT).check(points, CURVE)
        return points
    except TagwiseError:
        return []


def keep_curve(folder: Path, curve: Sequence[Any]) -> None:
    """Write the learning curve. An error is ignored, since scores can be computed again."""
    with contextlib.suppress(FileError):
        write_text(folder / CURVE, "".join(json.dumps(point) + "\n" for point in curve))


def score_of(model: Model, dev: Corpus, n_jobs: int | None) -> float:
    """Return F1 of spans, or accuracy, on a labelled corpus."""
    from tagwise.evaluation.metrics import evaluate

    found = model.predict(dev, Query(n_jobs=n_jobs))
    gold = dev.labels
    if schemes.has_chunks({y for labels in gold for y in labels}):
        gold = [schemes.convert(labels, None, "IOB2") for labels in gold]
    return evaluate(gold, found).score

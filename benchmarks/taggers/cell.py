"""One tagger on one corpus: `python -m benchmarks.taggers.cell TOOL CORPUS_FOLDER SECONDS`, JSON on standard output.

The process imports one tagger. Its peak memory is that of training, with the sentences as lists and the tagger's
packages, or that of the program that trains.
"""

from __future__ import annotations

import gc
import importlib
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from ..memory import resident
from . import linear, neural
from .corpora import Task, read_task
from .linear import cpu_seconds

MB = 1e6
PROGRAMS = ("wapiti", "crf_learn")
#: Tagging is repeated for this long, at least twice and at most nine times.
TAGGING_SECONDS = 3.0


class Tool(NamedTuple):
    """A tagger: kind of features ("usual" or "same"), what it reads, group, package or command, and its side."""

    kind: str
    reads: str
    group: str
    needs: str
    side: Callable[[Task, Path, float], linear.Side]


def _tools() -> dict[str, Tool]:
    columns, given = "words and POS", "attributes"
    return {
        "tagwise CRF": Tool(
            "usual", columns, "tagwise", "tagwise", lambda *_: linear.Tagwise("CRF", "columns")
        ),
        "tagwise MIRA": Tool(
            "usual", columns, "tagwise", "tagwise", lambda *_: linear.Tagwise("MIRA", "columns")
        ),
        "tagwise CRF, words alone": Tool(
            "usual", "words", "tagwise", "tagwise", lambda *_: linear.Tagwise("CRF", "words")
        ),
        "tagwise drop-in for sklearn-crfsuite": Tool(
            "usual",
            columns,
            "tagwise",
            "tagwise.compat.sklearn_crfsuite",
            lambda *_: linear.SklearnCrfsuite(True),
        ),
        "sklearn-crfsuite": Tool(
            "usual", columns, "linear", "sklearn_crfsuite", lambda *_: linear.SklearnCrfsuite(False)
        ),
        "CRFsuite": Tool(
            "usual", columns, "linear", "pycrfsuite", lambda *_: linear.Crfsuite(False, **TUTORIAL)
        ),
        "CRF++": Tool(
            "usual", columns, "linear", "crf_learn", lambda _, folder, s: linear.Crfpp(folder, False)
        ),
        "Wapiti": Tool(
            "usual", columns, "linear", "wapiti", lambda _, folder, s: linear.Wapiti(folder, False)
        ),
        "NLTK": Tool("usual", "words", "linear", "nltk", lambda *_: linear.Nltk()),
        "spaCy": Tool("usual", "words", "neural", "spacy", neural.Spacy),
        "BiLSTM-CRF": Tool("usual", "words", "neural", "torch", neural.Bilstm),
        "tagwise CRF, given attributes": Tool(
            "same",
            given,
            "tagwise",
            "tagwise",
            lambda *_: linear.Tagwise("CRF", "attributes", features="attributes", l2=1.0),
        ),
        "CRFsuite, given attributes": Tool(
            "same", given, "linear", "pycrfsuite", lambda *_: linear.Crfsuite(True, c1=0.0, c2=1.0)
        ),
        "CRF++, given attributes": Tool(
            "same", given, "linear", "crf_learn", lambda _, folder, s: linear.Crfpp(folder, True)
        ),
        "Wapiti, given attributes": Tool(
            "same", given, "linear", "wapiti", lambda _, folder, s: linear.Wapiti(folder, True)
        ),
        "tagwise perceptron, given attributes": Tool(
            "same",
            given,
            "tagwise",
            "tagwise",
            lambda *_: linear.Tagwise(
                "Perceptron", "attributes", features="attributes", max_iter=linear.EPOCHS
            ),
        ),
        "NLTK perceptron, given attributes": Tool(
            "same", given, "linear", "nltk", lambda *_: linear.NltkAttributes()
        ),
    }


#: Modules that are imported before the clock starts, if they are not those that a tagger needs.
MODULES = {"nltk": "nltk.tag.perceptron", "spacy": "spacy.cli.init_config", "torch": "examples.bilstm_crf"}
#: Parameters of the CoNLL-2002 tutorial of python-crfsuite.
TUTORIAL = {"c1": 1.0, "c2": 1e-3, "max_iterations": 50, "feature.possible_transitions": True}
TOOLS = _tools()


def size(path: Path) -> int:
    """Return the bytes of a file or of the files in a folder."""
    if path.is_file():
        return path.stat().st_size
    return sum(file.stat().st_size for file in path.rglob("*") if file.is_file())


def measure(name: str, task: Task, folder: Path, seconds: float) -> dict[str, Any]:
    """Train and tag."""
    side = TOOLS[name].side(task, folder, seconds)
    needs = TOOLS[name].needs
    if needs not in PROGRAMS:
        importlib.import_module(MODULES.get(needs, needs))
    train, test = side.prepare(task.train, "train"), side.prepare(task.test, "test")
    model = folder / "model"
    gc.collect()
    wall, cpu = time.perf_counter(), cpu_seconds()
    side.train(train, task.train.labels, model)
    training, cpu = time.perf_counter() - wall, cpu_seconds() - cpu
    peak = side.peak or resident("VmHWM")
    tag, idle = side.tagger(model), side.idle(model)
    times: list[float] = []
    while len(times) < 2 or (sum(times) < TAGGING_SECONDS and len(times) < 9):
        begin = cpu_seconds()
        found = tag(test)
        times.append(cpu_seconds() - begin - idle)
    kept = model / "model-best" if (model / "model-best").is_dir() else model
    return {
        "training": training,
        "cpu": cpu,
        "tokens_per_cpu_second": task.test.n_tokens / statistics.median(times),
        "peak_mb": peak / MB,
        "model_mb": size(kept) / MB,
        "stopped": getattr(side, "stopped", False),
        "labels": found,
    }


def main(arguments: list[str]) -> int:
    """Measure and print."""
    name, data, seconds = arguments
    task = read_task(Path(data))
    with tempfile.TemporaryDirectory() as folder:
        found = measure(name, task, Path(folder), float(seconds))
    sys.stdout.write(json.dumps(found) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""Opening of the conll2000 model file, compared with the CRFsuite tagger on its own file."""

from __future__ import annotations

import statistics
import tempfile
from dataclasses import asdict
from pathlib import Path

from . import ours, peer
from .harness import Context, Result, alternate, milliseconds
from .workloads import workload

ITERATIONS = 20


def run(context: Context) -> Result:
    """Time loading, and loading with tagging of one sentence, so that lazily mapped pages count too."""
    result = Result("loading", "Model load, conll2000 (`chunk` attributes)")
    theirs = peer.model("chunk", ITERATIONS)
    X, _ = workload("chunk", "test")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "chunk.tagwise"
        ours.trained("chunk", ITERATIONS).save(path)
        sides = {
            "CRFsuite": lambda: peer.tagger(theirs),
            "ours": lambda: ours.load(path),
            "CRFsuite, first sentence": lambda: peer.tagger(theirs).tag(X[0]),
            "ours, first sentence": lambda: ours.load(path).predict(X[:1]),
        }
        times = alternate(sides, context.repeat + 4)
        sizes = {"CRFsuite": theirs.stat().st_size, "ours": path.stat().st_size}
    for name, each in times.items():
        cells = {
            "time": milliseconds(each.wall),
            "CPU time": milliseconds(each.cpu),
            "file": f"{sizes[name.split(',')[0]] / 2**20:.1f} MiB",
        }
        quick = statistics.median(each.wall) < 0.020
        result.add(name, cells, "< 20 ms" if name == "ours" else "", quick if name == "ours" else None)
    result.raw = {"seconds": {name: asdict(each) for name, each in times.items()}, "bytes": sizes}
    return result

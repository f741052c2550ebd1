"""Model files for different numbers of threads, which must be equal byte for byte."""

from __future__ import annotations

import hashlib
import tempfile
from pathlib import Path

from . import ours
from .harness import Context, Result
from .workloads import workload

THREADS = (1, 2, 4)
ITERATIONS = 20


def digests(name: str) -> dict[int, str]:
    """Return the SHA-256 of the model file for each number of threads."""
    X, y = workload(name)
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        for n in THREADS:
            path = Path(folder) / f"{n}.tagwise"
            ours.crf(n_jobs=n, max_iter=ITERATIONS).fit(X, y).save(path)
            found[n] = hashlib.sha256(path.read_bytes()).hexdigest()
    return found


def run(context: Context) -> Result:
    """Train with 1, 2 and 4 threads and compare the files."""
    result = Result("determinism", f"Model files after {ITERATIONS} iterations, by thread count")
    for name in context.workloads[:1] if context.quick else context.workloads:
        found = digests(name)
        cells = {f"{n} threads": text[:12] for n, text in found.items()}
        result.add(name, cells, "identical", len(set(found.values())) == 1)
        result.raw[name] = found
    return result

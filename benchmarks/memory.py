"""Peak memory of training in separate processes, compared with python-crfsuite on the same lists.

Each side runs as ``python -m benchmarks.memory SIDE WORKLOAD``: it imports its packages, builds the attribute lists,
records the resident size, trains for a few iterations, by when all of its memory is in use, and records the peak.
"""

from __future__ import annotations

import gc
import json
import sys
import tempfile
from pathlib import Path

from .harness import Context, Result, child
from .workloads import data_folder, workload

ITERATIONS = 15  # more than either side's L-BFGS memory


def resident(field: str, process: int | str = "self") -> int:
    """Return VmRSS (current) or VmHWM (peak) of a process in bytes, this one by default.

    Unlike ru_maxrss of getrusage, VmHWM is not inherited from the parent across exec.
    """
    for line in Path(f"/proc/{process}/status").read_text(encoding="ascii").splitlines():
        if line.startswith(field + ":"):
            return int(line.split()[1]) * 1024
    raise RuntimeError(f"no {field} in /proc/{process}/status")


def measure(side: str, name: str) -> dict[str, int]:
    """Train once in the child process and return the memory used."""
    from . import ours, peer

    X, y = workload(name)
    gc.collect()
    lists = resident("VmRSS")
    if side == "crfsuite":
        with tempfile.TemporaryDirectory() as folder:
            peer.train(X, y, Path(folder) / "model", ITERATIONS)
    elif side == "ours":
        ours.crf(n_jobs=2, max_iter=ITERATIONS).fit(X, y)
    return {"lists": lists, "peak": resident("VmHWM")}


def run(context: Context) -> Result:
    """Run each side in a child process. The increment is relative to the state with the attribute lists built."""
    result = Result("memory", "Peak memory of training, each side in its own process")
    data_folder()
    for name in context.workloads:
        sides = {side: child("memory", side, name) for side in ("crfsuite", "ours")}
        mib = {side: (m["peak"] / 2**20, (m["peak"] - m["lists"]) / 2**20) for side, m in sides.items()}
        cells = {
            "CRFsuite": f"{mib['crfsuite'][0]:.0f} MiB (+{mib['crfsuite'][1]:.0f})",
            "ours": f"{mib['ours'][0]:.0f} MiB (+{mib['ours'][1]:.0f})",
            "ours / theirs": f"{mib['ours'][0] / mib['crfsuite'][0]:.2f} "
            f"(+{mib['ours'][1] / mib['crfsuite'][1]:.2f})",
        }
        result.add(name, cells, "peak <= CRFsuite's", mib["ours"][0] <= mib["crfsuite"][0])
        result.raw[name] = sides
    result.notes.append("in parentheses: increase over the state with the attribute lists built")
    return result


if __name__ == "__main__":
    sys.stdout.write(json.dumps(measure(sys.argv[1], sys.argv[2])) + "\n")

"""Corpora larger than memory: seconds and peak memory of encoding and training on shards, and in memory.

    TAGWISE_DATA=... python -m benchmarks.shards --times 10,50 --iterations 3 --memory 200M

The corpus is a number of copies of conll2002-es, one file each, with the default feature set. Every step runs in its
own process, whose peak memory the system reports. With --limit 1G the system limits its heap (RLIMIT_DATA, which does
not count mapped files). The smallest number of copies is also trained on in memory, to compare the time of a pass per
token. With a limit, so is the largest.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import tagwise as tw
from tagwise.dataset.shards.files import memory_of

CORPUS = "conll2002-es"


def make(folder: Path, times: int) -> list[str]:
    """Write that many copies of the corpus and return their paths."""
    source = Path(os.environ["TAGWISE_DATA"]) / CORPUS / "train.txt.gz"
    folder.mkdir(parents=True, exist_ok=True)
    out = []
    for i in range(times):
        path = folder / f"part-{i:03d}.txt.gz"
        if not path.exists():
            shutil.copyfile(source, path)
        out.append(str(path))
    return out


def job(name: str, **given: Any) -> dict[str, Any]:
    """Run a step in its own process and return its result, its seconds and its peak memory in MB."""
    command = [sys.executable, "-m", "benchmarks.shards", "--job", name, json.dumps(given)]
    begin = time.perf_counter()
    child = subprocess.Popen(command, stdout=subprocess.PIPE)
    assert child.stdout is not None
    output = child.stdout.read()
    _, status, used = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    seconds = time.perf_counter() - begin
    if child.returncode:
        return {"failed": child.returncode, "seconds": seconds, "peak MB": used.ru_maxrss / 1024}
    return {**json.loads(output), "seconds": seconds, "peak MB": used.ru_maxrss / 1024}


def timed(tagger: tw.CRF, *given: Any) -> dict[str, Any]:
    """Train and return the seconds per evaluation of the objective, without the first one, which reads cold pages."""
    times: list[tuple[int, float]] = []
    tagger.fit(*given, callbacks=[lambda entry: times.append((entry.evaluations, entry.seconds)) or None])
    (n, begin), (m, end) = times[0], times[-1]
    return {"seconds per pass": (end - begin) / max(m - n, 1), "objective": tagger.objective_}


def work(name: str, given: dict[str, Any]) -> dict[str, Any]:
    """Run one step."""
    if given.get("limit"):
        resource.setrlimit(resource.RLIMIT_DATA, (given["limit"], given["limit"]))
    settings = {"optimizer": "lbfgs", "max_iter": given.get("iterations", 0), "n_jobs": given.get("n_jobs")}
    if name == "encode":
        shards = tw.encode(given["files"], given["folder"], memory=given["memory"])
        return {"tokens": shards.n_tokens, "shards": len(shards), "attributes": shards.manifest["attributes"]}
    if name == "shards":
        return timed(tw.CRF(**settings), tw.Shards(given["folder"], memory=given["memory"]))
    corpus = sum((tw.read(path) for path in given["files"]), tw.Corpus([]))
    return {"tokens": corpus.n_tokens, **timed(tw.CRF(**settings), corpus)}


def show(name: str, found: dict[str, Any]) -> None:
    """Print a line of the table."""
    line = f"{name:24}{found['seconds']:8.1f} s {found['peak MB']:8.0f} MB"
    if "failed" in found:
        print(f"{line}  failed with exit code {found['failed']}", flush=True)
        return
    rate = found["tokens"] / found.get("seconds per pass", found["seconds"]) / 1e6
    print(
        f"{line} {rate:7.2f} M tokens/s {found['tokens']:>12,} tokens {found.get('objective', '')}",
        flush=True,
    )


def main() -> None:
    """Measure and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--times", default="10,50")
    parser.add_argument("--iterations", type=int, default=3)
    parser.add_argument("--memory", default="200M", help="memory for shards")
    parser.add_argument("--encode-memory", default="2G")
    parser.add_argument("--limit", help="memory limit of each process, such as 1G")
    parser.add_argument("--n-jobs", type=int)
    parser.add_argument("--folder", help="folder for files, which is kept (default: a temporary folder)")
    parser.add_argument("--job", nargs=2)
    options = parser.parse_args()
    if options.job:
        print(json.dumps(work(options.job[0], json.loads(options.job[1]))))
        return
    place = Path(options.folder or tempfile.mkdtemp(prefix="tagwise-shards-"))
    common = {"iterations": options.iterations, "n_jobs": options.n_jobs, "limit": memory_of(options.limit)}
    sizes = sorted(map(int, options.times.split(",")))
    for times in sizes:
        files, folder = make(place / "files", times), str(place / f"encoded-{times}")
        made = job("encode", files=files, folder=folder, memory=options.encode_memory)
        show(f"{times}x encode", made)
        given: dict[str, dict[str, Any]] = {f"shards, {options.memory}": {"memory": options.memory}}
        if times == sizes[0]:
            given["shards, held"] = {"memory": "1T"}
        for name, more in given.items():
            show(f"{times}x {name}", {**made, **job("shards", folder=folder, **common, **more)})
        if times == sizes[0] or (options.limit and times == sizes[-1]):
            show(f"{times}x in memory", {**made, **job("memory", files=files, **common)})
    if options.folder is None:
        shutil.rmtree(place)


if __name__ == "__main__":
    main()

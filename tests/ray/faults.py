"""Kill workers (SIGKILL) at random moments of an evaluation, an encoding and a tagging run, and check the results.

    $(python tools/environments.py ray) -m tests.ray.faults --kills 10 --log faults.txt

The result of every run is compared, byte for byte, with that of an undisturbed single process. The log has one line per
kill: the kind of work, the time, the process, the number of lost workers that the run reports, and whether the bytes
are equal.
"""

from __future__ import annotations

import argparse
import logging
import os
import random
import signal
import socket
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import numpy as np

import tagwise as tw
import tagwise.ray
from tagwise.learners.sharded.config import LocalParts
from tagwise.learners.sharded.objective import ObjectiveConfig, OverShards

ROOT = Path(__file__).parents[2]


def agent_ports() -> dict[str, int]:
    """Return free ports for the agents of a node. A node dies if its agents take too long to find ports."""
    names = (
        "metrics_agent_port",
        "metrics_export_port",
        "runtime_env_agent_port",
        "dashboard_agent_listen_port",
    )
    with ExitStack() as stack:
        bound = [stack.enter_context(socket.socket()) for _ in names]
        for each in bound:
            each.bind(("127.0.0.1", 0))
        return {name: each.getsockname()[1] for name, each in zip(names, bound)}


def started(n: int, small: dict[str, Any], tries: int = 4) -> Any:
    """Start n nodes. On a busy machine this can take several attempts."""
    from ray.cluster_utils import Cluster

    for attempt in range(tries):
        nodes = Cluster()
        try:
            for i in range(n):
                nodes.add_node(**small, **agent_ports(), **({"include_dashboard": False} if i == 0 else {}))
        except Exception:
            nodes.shutdown()
            if attempt == tries - 1:
                raise
        else:
            return nodes
    return None


@contextmanager
def cluster(n: int = 2) -> Iterator[Any]:
    """Run n nodes on loopback, with a small object store, and connect the driver."""
    os.environ |= {
        "RAY_USAGE_STATS_ENABLED": "0",
        "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
        "RAY_raylet_start_wait_time_s": "120",  # a busy machine is slow
        "RAY_agent_register_timeout_ms": "120000",
        "RAY_worker_register_timeout_seconds": "300",
        "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",  # keeps nodes on loopback
    }
    import ray

    nodes = started(n, {"num_cpus": 4, "object_store_memory": 80 << 20})
    ray.init(
        address=nodes.address,
        log_to_driver=False,
        logging_level=logging.ERROR,
        runtime_env={"env_vars": {"PYTHONPATH": f"{ROOT / 'python'}:{ROOT}"}},
    )
    try:
        yield nodes
    finally:
        ray.shutdown()
        nodes.shutdown()


def _parent(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text("utf-8").rpartition(")")[2].split()[1])


def workers_of(kind: str) -> list[int]:
    """Return the processes of busy actors of a class, of the nodes that this process has started."""
    out = []
    for place in Path("/proc").iterdir():
        try:
            if (
                place.name.isdigit()
                and f"ray::{kind}".encode() in (place / "cmdline").read_bytes()
                and _parent(_parent(int(place.name))) == os.getpid()
            ):
                out.append(int(place.name))
        except (OSError, ValueError, IndexError):  # the process has ended
            continue
    return sorted(out)


class Killer(threading.Thread):
    """Thread that kills the first worker of a class that it finds after a delay, unless `over` is set before."""

    def __init__(self, kind: str, moment: float, chance: random.Random) -> None:
        super().__init__(daemon=True)
        self.kind, self.moment, self.chance = kind, moment, chance
        self.over = threading.Event()
        self.killed: tuple[float, int] | None = None  # seconds since the start, and process id

    def run(self) -> None:
        """Wait for the delay, then for a worker."""
        begin = time.monotonic()
        if self.over.wait(self.moment):
            return
        while not self.over.is_set():
            for pid in self.chance.sample(found := workers_of(self.kind), len(found)):
                try:
                    os.kill(pid, signal.SIGKILL)
                except ProcessLookupError:
                    continue
                self.killed = (time.monotonic() - begin, pid)
                return
            self.over.wait(0.005)


class LostWorkers(logging.Handler):
    """Log handler that counts reports of lost workers."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.count = 0

    def emit(self, record: logging.LogRecord) -> None:
        """Count the record if it reports a lost worker."""
        self.count += "was lost" in record.getMessage()


def bytes_below(folder: Path, but: tuple[str, ...] = ()) -> dict[str, bytes]:
    """Return the content of every file in a folder, recursively."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name not in but
    }


class Work:
    """Repeatable work for Ray, and its expected result."""

    kind = ""

    def __init__(self, folder: Path, sentences: int = 1000) -> None:
        self.folder = folder
        corpus = tw.load_corpus("wnut17-ner")[0][:sentences]
        step = max(1, len(corpus) // 8)
        (folder / "in").mkdir(parents=True)
        for i in range(0, len(corpus), step):
            tw.write(corpus[i : i + step], folder / "in" / f"{i:05d}.conll", "conll")
        self.times = 0

    def place(self) -> Path:
        """Return the path of a new folder."""
        self.times += 1
        return self.folder / f"out-{self.times}"

    def by_ray(self) -> Any:
        """Return the result of Ray."""
        raise NotImplementedError

    def here(self) -> Any:
        """Return the result of a single process."""
        raise NotImplementedError


class Encoding(Work):
    """Encode files into shards."""

    kind = "Encoder"

    def by_ray(self) -> Any:
        """Encode with Ray."""
        place = self.place()
        tw.encode(self.folder / "in" / "*.conll", place, shard_tokens=900, backend="ray", workers=2)
        return bytes_below(place)

    def here(self) -> Any:
        """Encode in a single process."""
        place = self.place()
        tw.encode(self.folder / "in" / "*.conll", place, shard_tokens=900)
        return bytes_below(place)


class Tagging(Work):
    """Tag files."""

    kind = "FileTagger"

    def __init__(self, folder: Path, sentences: int = 1000) -> None:
        super().__init__(folder, sentences)
        train = tw.load_corpus("wnut17-ner")[0][:200]
        tw.CRF(features="S2", max_iter=3).fit(train).save(folder / "model.tagwise")

    def _tagged(self, *more: str) -> Any:
        from click.testing import CliRunner

        from tagwise.cli import cli

        place = self.place()
        given = ["tag", str(self.folder / "model.tagwise"), str(self.folder / "in" / "*.conll")]
        done = CliRunner().invoke(cli, [*given, "-o", f"{place}/", *more], catch_exceptions=False)
        assert done.exit_code == 0, done.output
        return {name: found for name, found in bytes_below(place).items() if not name.startswith(".")}

    def by_ray(self) -> Any:
        """Tag with Ray."""
        return self._tagged("--backend", "ray", "--workers", "2")

    def here(self) -> Any:
        """Tag in a single process."""
        return self._tagged()


class Evaluation(Work):
    """Evaluate values and gradients at fixed weights."""

    kind = "Worker"

    def __init__(self, folder: Path, sentences: int = 1000) -> None:
        from tagwise.ray.backend import RayParts

        super().__init__(folder, sentences)
        self.shards = tw.encode(folder / "in" / "*.conll", folder / "enc", features="S2", shard_tokens=2000)
        self.config = ObjectiveConfig(self.shards.layout())
        self.points = np.random.default_rng(1).normal(size=(30, len(self.config.layout)))
        self.workers = RayParts(self.shards, self.config, 2)

    def _all(self, objective: Any) -> Any:
        out, gradient = [], np.empty(self.points.shape[1])
        for w in self.points:
            out.append((objective.value(w, gradient), gradient.tobytes()))
        return out

    def by_ray(self) -> Any:
        """Evaluate with Ray."""
        return self._all(OverShards(self.workers))

    def here(self) -> Any:
        """Evaluate in a single process."""
        return self._all(OverShards(LocalParts(self.shards, self.config)))


WORKS: dict[str, type[Work]] = {"evaluation": Evaluation, "encoding": Encoding, "tagging": Tagging}


def run_with_kill(
    work: Work, expected: Any, seconds: float, chance: random.Random
) -> tuple[Killer, int, bool]:
    """Run once and kill a worker meanwhile.

    Return the killer, the number of lost workers that the run reports, and whether the result is the expected one. If
    the run ends before a worker is killed, run again.
    """
    logger = logging.getLogger("tagwise")
    while True:
        killer, lost = Killer(work.kind, chance.uniform(0.0, 0.8) * seconds, chance), LostWorkers()
        logger.addHandler(lost)
        killer.start()
        try:
            found = work.by_ray()
        finally:
            killer.over.set()
            killer.join()
            logger.removeHandler(lost)
        if killer.killed is not None:
            return killer, lost.count, found == expected


def main(say: Callable[[str], Any] = print) -> int:
    """Run the kills and write the log."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=10)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--sentences", type=int, default=3000)
    parser.add_argument("--only", choices=WORKS, help="one of the works")
    parser.add_argument("--log", type=Path)
    options = parser.parse_args()
    chance, lines, survived = random.Random(options.seed), list[str](), 0
    with cluster(), tempfile.TemporaryDirectory(prefix="tagwise-faults-") as folder:
        logging.getLogger("tagwise").propagate = False
        chosen = WORKS if options.only is None else {options.only: WORKS[options.only]}
        for name, kind in chosen.items():
            work = kind(Path(folder) / name, options.sentences)
            expected = work.here()
            begin = time.monotonic()
            assert work.by_ray() == expected, name
            seconds = time.monotonic() - begin
            for kill in range(options.kills):
                killer, lost, same = run_with_kill(work, expected, seconds, chance)
                assert killer.killed is not None
                survived += same
                line = (
                    f"{name:12}kill {kill + 1:3} of {options.kills} at {killer.killed[0]:6.2f} s of {seconds:5.2f}  "
                    f"process {killer.killed[1]:7}  lost {lost}  {'the same bytes' if same else 'OTHER BYTES'}"
                )
                lines.append(line)
                say(line)
    total = len(chosen) * options.kills
    lines.append(f"{survived} of {total} survived with the same bytes")
    say(lines[-1])
    if options.log is not None:
        options.log.write_text("\n".join(lines) + "\n", "utf-8")
    return survived != total


if __name__ == "__main__":
    sys.exit(main())

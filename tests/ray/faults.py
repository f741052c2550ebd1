"""Workers are killed (SIGKILL) at random moments of an evaluation, an encoding and a tagging: nothing is lost.

    $(python tools/environments.py ray) -m tests.ray.faults --kills 10 --log faults.txt

Every run is compared, to the byte, with that of one process that nobody disturbed. A line of the log is one kill: the
work, when it came, which process, how many workers the run says that it lost, and whether the bytes are the same.
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
    """Free ports for the agents of a node, which dies where it waits for long until they have found their own."""
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
    """So many nodes; on a busy machine some may have to be begun again."""
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
    """So many raylets of this machine, bound to loopback, with a small object store; the driver is connected."""
    os.environ |= {
        "RAY_USAGE_STATS_ENABLED": "0",
        "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
        "RAY_raylet_start_wait_time_s": "120",  # a busy machine takes long
        "RAY_agent_register_timeout_ms": "120000",
        "RAY_worker_register_timeout_seconds": "300",
        "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",  # which is what keeps nodes on loopback
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
    """Processes of actors of a class that are at work, of the raylets that this process has started."""
    out = []
    for place in Path("/proc").iterdir():
        try:
            if (
                place.name.isdigit()
                and f"ray::{kind}".encode() in (place / "cmdline").read_bytes()
                and _parent(_parent(int(place.name))) == os.getpid()
            ):
                out.append(int(place.name))
        except (OSError, ValueError, IndexError):  # it is gone
            continue
    return sorted(out)


class Killer(threading.Thread):
    """Kills a worker of a class: the first that there is from a moment on, unless `over` is set before."""

    def __init__(self, kind: str, moment: float, chance: random.Random) -> None:
        super().__init__(daemon=True)
        self.kind, self.moment, self.chance = kind, moment, chance
        self.over = threading.Event()
        self.killed: tuple[float, int] | None = None  # when, and which

    def run(self) -> None:
        """Wait for the moment, then for a worker."""
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


class Lost(logging.Handler):
    """Counts the workers that runs say they lost."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.count = 0

    def emit(self, record: logging.LogRecord) -> None:
        """Count it."""
        self.count += "was lost" in record.getMessage()


def bytes_below(folder: Path, but: tuple[str, ...] = ()) -> dict[str, bytes]:
    """Every file below a folder."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name not in but
    }


class Work:
    """Something to do by Ray, again and again, and what should come of it."""

    kind = ""

    def __init__(self, folder: Path, sentences: int = 1000) -> None:
        self.folder = folder
        corpus = tw.load_corpus("wnut17-ner")[0][:sentences]
        step = max(1, len(corpus) // 8)
        (folder / "in").mkdir(parents=True)
        for i in range(0, len(corpus), step):
            tw.write_conll(corpus[i : i + step], folder / "in" / f"{i:05d}.conll")
        self.times = 0

    def place(self) -> Path:
        """A new folder."""
        self.times += 1
        return self.folder / f"out-{self.times}"

    def by_ray(self) -> Any:
        """What comes of it by Ray."""
        raise NotImplementedError

    def here(self) -> Any:
        """What comes of it in one process."""
        raise NotImplementedError


class Encoding(Work):
    """Files to shards."""

    kind = "Encoder"

    def by_ray(self) -> Any:
        """Shards by Ray."""
        place = self.place()
        tagwise.ray.encode(self.folder / "in" / "*.conll", place, shard_tokens=900, workers=2)
        return bytes_below(place)

    def here(self) -> Any:
        """Shards by one process."""
        place = self.place()
        tw.encode(self.folder / "in" / "*.conll", place, shard_tokens=900)
        return bytes_below(place)


class Tagging(Work):
    """Files to tagged files."""

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
        """Files by Ray."""
        return self._tagged("--backend", "ray", "--workers", "2")

    def here(self) -> Any:
        """Files by one process."""
        return self._tagged()


class Evaluation(Work):
    """Values and gradients at the same weights, many times."""

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
        """By the workers."""
        return self._all(OverShards(self.workers))

    def here(self) -> Any:
        """By one process."""
        return self._all(OverShards(LocalParts(self.shards, self.config)))


WORKS: dict[str, type[Work]] = {"evaluation": Evaluation, "encoding": Encoding, "tagging": Tagging}


def struck(work: Work, expected: Any, seconds: float, chance: random.Random) -> tuple[Killer, int, bool]:
    """One run with a kill on the way: who, how many workers it says that it lost, whether the bytes are the same.

    A kill that finds no worker before the run is over is tried again, in a run of its own.
    """
    logger = logging.getLogger("tagwise")
    while True:
        killer, lost = Killer(work.kind, chance.uniform(0.0, 0.8) * seconds, chance), Lost()
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
    """Kill, and write the log."""
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
                killer, lost, same = struck(work, expected, seconds, chance)
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

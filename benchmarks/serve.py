"""/tag over loopback compared with python-crfsuite in a minimal Starlette handler, alternated.

    python -m benchmarks serve                     # the table (needs pip install 'tagwise[web]')
    python -m benchmarks.serve --soak --minutes 10 # mixed and hostile load with constant memory and no crash

Both sides load one model: ours, and its weights in the format of CRFsuite. Both start from tokens and create the same
attributes, which is checked. Both run on uvicorn with httptools and uvloop, in one process each. A third process
generates the load. It must not be the bottleneck, so that its CPU time is in the table. The number of requests and the
time are bounded. Since the three processes share the cores, the table has the CPU seconds of a server per thousand
requests as well as its rate. A third server is the handler without a tagger, which always returns the same answer: the
upper limit of Starlette and uvicorn.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import random
import resource
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import tagwise as tw
from tagwise.features import resolve

from .harness import Context, Result

TEMPLATE = """bias
word[-2..2]
word[0].prefix(1..4)
word[0].suffix(1..4)
word[-1] & word[0]
word[0] & word[1]
"""
#: (connections, sentences per request).
LOADS = [(c, n) for n in (1, 100) for c in (1, 16, 128)]
SECONDS, COUNT = 2.0, 20_000
GOAL, GOAL_P99 = 3.0, 0.020


def attributes(words: list[str]) -> list[list[str]]:
    """Return the attributes of TEMPLATE, in Python, as users of python-crfsuite write them."""
    out, n = [], len(words)
    for t, word in enumerate(words):
        found = ["bias"]
        found += [f"word[{o}]={words[t + o]}" for o in range(max(-2, -t), min(3, n - t))]
        for k in range(1, min(4, len(word)) + 1):
            found += (f"word[0].prefix({k})={word[:k]}", f"word[0].suffix({k})={word[-k:]}")
        if t > 0:
            found.append(f"word[-1]={words[t - 1]} & word[0]={word}")
        if t + 1 < n:
            found.append(f"word[0]={word} & word[1]={words[t + 1]}")
        out.append(found)
    return out


def material(folder: Path) -> tuple[Path, Path, list[list[str]]]:
    """Return a model in both formats, and sentences with equal attributes on both sides."""
    train, _, test = tw.load_corpus("wnut17-ner")
    tagger = tw.CRF(features=TEMPLATE, max_iter=30, start_end=False).fit(train[:2000])
    mine, theirs = folder / "model.tagwise", folder / "model.crfsuite"
    tagger.save(mine)
    tagger.save(theirs, format="crfsuite")
    recipe = resolve(TEMPLATE, ["word"])
    words = [sentence.fields["word"] for sentence in test]
    same = [
        x
        for x in words
        if len(x) >= 5 and [sorted(a) for a in recipe.render(x)] == [sorted(a) for a in attributes(x)]
    ]
    assert len(same) > 0.5 * len(words), "the two sides create different attributes"
    return mine, theirs, same[:500]


# --- the other side -----------------------------------------------------------------------------------------


def peer(path: str) -> None:
    """Serve a minimal handler: JSON in, attributes, Tagger.tag, JSON out. Without a path, only JSON in and out."""
    import pycrfsuite
    import uvicorn
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import JSONResponse
    from starlette.routing import Route

    tagger = pycrfsuite.Tagger()
    if path:
        tagger.open(path)

    async def tag(request: Request) -> JSONResponse:
        given = (await request.json())["sentences"]
        if not path:
            return JSONResponse({"results": [{"labels": ["O"] * len(words)} for words in given]})
        return JSONResponse({"results": [{"labels": tagger.tag(attributes(words))} for words in given]})

    listening = socket.socket()
    listening.bind(("127.0.0.1", 0))
    listening.listen(2048)
    print(f"serving at http://127.0.0.1:{listening.getsockname()[1]}", file=sys.stderr, flush=True)
    app = Starlette(routes=[Route("/tag", tag, methods=["POST"])])
    uvicorn.Server(uvicorn.Config(app, log_level="critical", access_log=False)).run(sockets=[listening])


@contextlib.contextmanager
def server(*command: str) -> Iterator[tuple[subprocess.Popen[str], int]]:
    """Run a server and yield its process and port."""
    process = subprocess.Popen([sys.executable, "-m", *command], stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    try:
        line = process.stderr.readline()
        if "serving" not in line:
            raise RuntimeError(line + process.stderr.read())
        threading.Thread(target=process.stderr.read, daemon=True).start()  # a full pipe blocks the server
        yield process, int(line.rstrip().rpartition(":")[2])
    finally:
        process.terminate()
        process.wait()


def cpu_seconds(pid: int) -> float:
    """Return the CPU time of a process so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


# --- load ---------------------------------------------------------------------------------------------------


@dataclass
class Load:
    """Load of several connections until time or count is used up. Each sends its next request after an answer."""

    requests: list[bytes]
    end: float
    left: int
    seconds: list[float] = field(default_factory=list)
    wrong: int = 0


class Client(asyncio.Protocol):
    """Connection that always has a pending request. Answers have a Content-Length."""

    def __init__(self, load: Load, done: asyncio.Future[None], seed: int) -> None:
        self.load, self.done, self.at = load, done, seed
        self.buffer = b""

    def connection_made(self, transport: Any) -> None:
        self.transport = transport
        self.send()

    def send(self) -> None:
        load = self.load
        self.begin = time.perf_counter()
        if load.left <= 0 or self.begin >= load.end:
            self.transport.close()
            return
        load.left -= 1
        self.at += 1
        self.transport.write(load.requests[self.at % len(load.requests)])

    def data_received(self, data: bytes) -> None:
        self.buffer += data
        head, found, body = self.buffer.partition(b"\r\n\r\n")
        if not found:
            return
        at = head.lower().index(b"content-length:") + 15
        if len(body) < int(head[at:].split(b"\r\n", 1)[0]):
            return
        self.load.seconds.append(time.perf_counter() - self.begin)
        if not head.startswith(b"HTTP/1.1 200"):
            self.load.wrong += 1
        self.buffer = b""
        self.send()

    def connection_lost(self, exc: Exception | None) -> None:
        if not self.done.done():
            self.done.set_result(None)


def request_of(sentences: list[list[str]]) -> bytes:
    """Return a request as bytes."""
    body = json.dumps({"sentences": sentences}).encode()
    head = f"POST /tag HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: {len(body)}"
    return head.encode() + b"\r\n\r\n" + body


async def loaded(port: int, connections: int, requests: list[bytes], seconds: float, count: int) -> Load:
    """Send load to a server."""
    loop = asyncio.get_running_loop()
    load = Load(requests, time.perf_counter() + seconds, count)
    waits = []
    for i in range(connections):
        done: asyncio.Future[None] = loop.create_future()
        await loop.create_connection(lambda i=i, done=done: Client(load, done, i * 7), "127.0.0.1", port)  # type: ignore[misc]
        waits.append(done)
    await asyncio.gather(*waits)
    return load


def looped(load: Any) -> Any:
    """Run a coroutine with the event loop of the servers, so that the load is not the bottleneck."""
    try:
        import uvloop
    except ModuleNotFoundError:
        return asyncio.run(load)
    return uvloop.run(load)


@dataclass
class Side:
    """Figures of one side under one load, one number per round."""

    rate: list[float] = field(default_factory=list)
    p50: list[float] = field(default_factory=list)
    p99: list[float] = field(default_factory=list)
    cpu: list[float] = field(default_factory=list)  # seconds of the server per 1,000 requests
    load: list[float] = field(default_factory=list)  # seconds of the load generator per 1,000 requests


def measure(side: Side, pid: int, port: int, connections: int, requests: list[bytes], seconds: float) -> None:
    """Measure one round of one side."""
    before, begin, own = cpu_seconds(pid), time.perf_counter(), time.process_time()
    load = looped(loaded(port, connections, requests, seconds, COUNT))
    took, cpu = time.perf_counter() - begin, cpu_seconds(pid) - before
    assert load.seconds, "no answer"
    assert not load.wrong, f"{load.wrong} requests were rejected"
    found = sorted(load.seconds)
    side.rate.append(len(found) / took)
    side.p50.append(found[len(found) // 2])
    side.p99.append(found[min(len(found) - 1, int(0.99 * len(found)))])
    side.cpu.append(1000 * cpu / len(found))
    side.load.append(1000 * (time.process_time() - own) / len(found))


def check(ports: dict[str, int], sentences: list[list[str]]) -> None:
    """Check that both sides return the same labels."""
    import http.client

    answers = []
    for port in ports.values():
        connection = http.client.HTTPConnection("127.0.0.1", port)
        connection.request("POST", "/tag", json.dumps({"sentences": sentences}))
        answers.append([r["labels"] for r in json.loads(connection.getresponse().read())["results"]])
        connection.close()
    assert answers[0] == answers[1], "the two sides return different labels"


def run(context: Context) -> Result:
    """Measure all loads."""
    result = Result("serve", "/tag over loopback vs. python-crfsuite in a minimal Starlette handler")
    seconds = 1.0 if context.quick else SECONDS
    with tempfile.TemporaryDirectory() as folder:
        mine, theirs, sentences = material(Path(folder))
        with (
            server("benchmarks.serve", "--peer", str(theirs)) as (their, their_port),
            server("benchmarks.serve", "--peer", "") as (empty, empty_port),
            server("tagwise", "serve", str(mine), "--port", "0") as (our, our_port),
        ):
            check({"crfsuite": their_port, "ours": our_port}, sentences)
            sides = {
                "crfsuite": (their.pid, their_port),
                "empty": (empty.pid, empty_port),
                "ours": (our.pid, our_port),
            }
            for connections, n in LOADS:
                requests = [
                    request_of([*sentences, *sentences][i : i + n])
                    for i in range(0, len(sentences), max(1, n // 2))
                ]
                found = {name: Side() for name in sides}
                for _ in range(context.rounds):
                    for name, (pid, port) in sides.items():
                        measure(found[name], pid, port, connections, requests, seconds)
                add(result, connections, n, found)
    return result


def add(result: Result, connections: int, n: int, found: dict[str, Side]) -> None:
    """Add a row."""
    middle = statistics.median
    theirs, empty, ours = found["crfsuite"], found["empty"], found["ours"]
    ratios = [a / b for a, b in zip(ours.rate, theirs.rate)]
    by_cpu = [a / b for a, b in zip(theirs.cpu, ours.cpu)]
    cells = {
        "theirs/s": f"{middle(theirs.rate):,.0f}",
        "empty/s": f"{middle(empty.rate):,.0f}",
        "ours/s": f"{middle(ours.rate):,.0f}",
        "ratio": f"{middle(ratios):.1f} ({min(ratios):.1f} to {max(ratios):.1f})",
        "by server's CPU": f"{middle(by_cpu):.1f}",
        "CPU ms per request: theirs, empty, ours": ", ".join(
            f"{middle(side.cpu):.3f}" for side in (theirs, empty, ours)
        ),
        "of the load": f"{middle(ours.load):.3f}",
        "theirs p50, p99 ms": f"{1e3 * middle(theirs.p50):.1f}, {1e3 * middle(theirs.p99):.1f}",
        "ours p50, p99 ms": f"{1e3 * middle(ours.p50):.1f}, {1e3 * middle(ours.p99):.1f}",
    }
    name = f"{connections} connections, {n} sentence{'s'[: n - 1]}"
    if (connections, n) == (16, 1):
        good = middle(ratios) >= GOAL and middle(ours.p99) <= GOAL_P99
        result.add(name, cells, ">= 3x, p99 <= 20 ms", good)
    else:
        result.add(name, cells)
    result.raw[name] = {side: vars(figures) for side, figures in found.items()}


# --- soak ---------------------------------------------------------------------------------------------------

HOSTILE = (
    b"\x16\x03\x01\x02\x00\x01",
    b"GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n",
    b"POST /tag HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99999999999\r\n\r\n",
    b'POST /tag HTTP/1.1\r\nHost: localhost\r\nContent-Length: 50\r\n\r\n{"text',
    b"POST /tag HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
    b"POST /tag HTTP/1.1\r\nHost: localhost\r\nContent-Length: 4\r\n\r\n\xff\xfe{}",
    b"POST /tag HTTP/1.1\r\nHost: localhost\r\nContent-Length: 20000\r\n\r\n" + b"[" * 20000,
    b"GET / HTTP/1.1\r\n" + b"X: " + b"y" * 100_000,
    b"GET /" + b"a" * 60_000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n",
)


async def hostile(port: int, end: float, seed: int) -> int:
    """Open hostile connections one after the other until the time is up. Some stay silent."""
    rng, n = random.Random(seed), 0
    while time.perf_counter() < end:
        with contextlib.suppress(OSError, asyncio.TimeoutError):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            try:
                text = rng.choice(HOSTILE)
                cut = rng.randrange(1, len(text) + 1)
                writer.write(text[:cut])
                await asyncio.sleep(rng.choice((0.0, 0.01, 0.2)))
                writer.write(text[cut:])
                patience = min(rng.choice((0.05, 1.0, 15.0)), max(0.05, end - time.perf_counter()))
                await asyncio.wait_for(reader.read(10_000), patience)
            finally:
                writer.close()
        n += 1
    return n


def memory(pid: int) -> float:
    """Return the resident memory in MiB."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / (1 << 20)


def soak(minutes: float) -> int:
    """Send mixed and hostile load. Return 1 if the server has crashed, rejected good requests, or grown."""
    with tempfile.TemporaryDirectory() as folder:
        mine, _, sentences = material(Path(folder))
        with server("tagwise", "serve", str(mine), "--port", "0") as (process, port):
            requests = [request_of(sentences[i : i + 1 + i % 40]) for i in range(0, 400, 3)]
            sizes, answered, bad = [], 0, 0
            for turn in range(max(8, int(minutes * 12))):  # turns of five seconds

                async def both(turn: int = turn) -> tuple[Load, int]:
                    end = time.perf_counter() + 60 * minutes / max(8, int(minutes * 12))
                    good = loaded(port, 16, requests, end - time.perf_counter(), 1 << 30)
                    found = await asyncio.gather(
                        good, *(hostile(port, end, 100 * turn + i) for i in range(8))
                    )
                    return found[0], sum(found[1:])

                load, n = asyncio.run(both())
                if process.poll() is not None:
                    print(f"the server exited with {process.returncode}", file=sys.stderr)
                    return 1
                answered, bad = answered + len(load.seconds), bad + n
                sizes.append(memory(process.pid))
                if load.wrong:
                    print(f"{load.wrong} good requests were rejected", file=sys.stderr)
                    return 1
            quarter = len(sizes) // 4
            first, last = statistics.median(sizes[quarter : 2 * quarter]), statistics.median(sizes[-quarter:])
            descriptors = len(list(Path(f"/proc/{process.pid}/fd").iterdir()))
            print(
                f"{minutes:g} minutes: {answered:,} good requests, {bad:,} hostile connections, memory of the second "
                f"quarter {first:.1f} MiB, of the last {last:.1f} MiB ({100 * (last / first - 1):+.1f} %), "
                f"{descriptors} open descriptors"
            )
            return int(last > 1.05 * first)


def main() -> int:
    """Run the CRFsuite server or the soak test."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.serve", description=__doc__)
    parser.add_argument("--peer", metavar="MODEL", help="serve a CRFsuite model: the other side of the table")
    parser.add_argument("--soak", action="store_true", help="mixed and hostile load")
    parser.add_argument("--minutes", type=float, default=10.0)
    chosen = parser.parse_args()
    resource.setrlimit(
        resource.RLIMIT_NOFILE, (min(4096, resource.getrlimit(resource.RLIMIT_NOFILE)[1]),) * 2
    )
    if chosen.peer is not None:
        peer(chosen.peer)
        return 0
    return soak(chosen.minutes)


if __name__ == "__main__":
    sys.exit(main())

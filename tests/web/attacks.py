"""Requests that try to block a server, while /health measures its response time.

python -m tests.web.attacks      # print the table, in the environment of make test-browser
"""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import tagwise as tw

Address = tuple[str, int]
#: Timeout of the servers in seconds, and options that raise the limits on explained tokens and on token length.
SECONDS = 2.0
HIGH = ("--max-explained", 200_000, "--max-token-length", 1_000_000)
PATTERNS = 'u00:%x[0,0]\nu01:%t[0,0,"\\d.*\\p"]\nu02:%m[0,0,"a*a*b?$"]\nu03:%t[-1,0,".*.*.*.*.*x"]\nb\n'


def model(path: Path) -> Path:
    """Train a model with Wapiti's patterns, save it and return the path."""
    sentences = [["Rosa", "runs", "to", "Lund", "1a."], ["Lund", "is", "1.", "x"]] * 5
    labels = [["B-PER", "O", "O", "B-LOC", "O"], ["B-LOC", "O", "O", "O"]] * 5
    tw.CRF(features=PATTERNS, max_iter=10).fit(sentences, labels).save(path)
    return path


@contextlib.contextmanager
def serving(path: Path, *options: object) -> Iterator[tuple[subprocess.Popen[str], Address]]:
    """Run `tagwise serve` with a model on a free port, and yield the process and its address."""
    command = [sys.executable, "-m", "tagwise", "serve", path, "--port", 0, "--timeout", SECONDS, *options]
    server = subprocess.Popen(list(map(str, command)), stderr=subprocess.PIPE, text=True)
    assert server.stderr is not None
    try:
        line = server.stderr.readline()
        assert "serving" in line, line + server.stderr.read()
        address = ("127.0.0.1", int(line.rstrip().rpartition(":")[2]))
        for _ in range(3):  # the first requests measure the time per token
            assert posted(address, {"tokens": ["Rosa", "runs"] * 30})[0] == 200
        yield server, address
    finally:
        if server.poll() is None:
            server.kill()
        server.wait()
        server.stderr.close()


def posted(address: Address, request: object, path: str = "/tag") -> tuple[int, float]:
    """Send a request and return its status and its duration in seconds."""
    connection = http.client.HTTPConnection(*address, timeout=60)
    begin = time.perf_counter()
    try:
        connection.request("POST", path, json.dumps(request), {"Content-Type": "application/json"})
        answer = connection.getresponse()
        answer.read()
        return answer.status, time.perf_counter() - begin
    finally:
        connection.close()


@dataclass
class Health:
    """Context manager that requests /health every 10 ms. `seconds` has the duration of each response."""

    address: Address
    seconds: list[float] = field(default_factory=list)

    def __enter__(self) -> Health:
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._poll)
        self._thread.start()
        return self

    def _poll(self) -> None:
        with contextlib.closing(http.client.HTTPConnection(*self.address, timeout=60)) as connection:
            while not self.seconds or not self._end.wait(0.01):
                begin = time.perf_counter()
                connection.request("GET", "/health")
                if connection.getresponse().read() != b'{"status":"ok"}\n':
                    raise RuntimeError("the server is not well")
                self.seconds.append(time.perf_counter() - begin)

    def __exit__(self, *_exception: object) -> None:
        self._end.set()
        self._thread.join()

    @property
    def worst(self) -> float:
        """Duration of the slowest response in seconds."""
        return max(self.seconds)


def cpu_seconds(pid: int) -> float:
    """Return the CPU time that a process has used so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def chunk(data: bytes) -> bytes:
    """Return data as one chunk of a chunked body."""
    return b"%x\r\n%b\r\n" % (len(data), data)


def long_line(address: Address, seconds: float = 3.0) -> tuple[int, float]:
    """Send a line of 7 MB, then single bytes of it for `seconds`. Return the number of single bytes, and `seconds`."""
    head = (
        b"POST /tag HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/x-ndjson\r\n"
        b"Transfer-Encoding: chunked\r\n\r\n"
    )
    with socket.create_connection(address, timeout=60) as connection:
        connection.sendall(head + chunk(b'{"tokens": ["' + b"x" * 7_000_000))
        end, sent = time.perf_counter() + seconds, 0
        while time.perf_counter() < end:
            connection.sendall(chunk(b"y"))
            sent += 1
    return sent, seconds


WORDS = [f"w{i}" for i in range(100_000)]
#: Expensive requests: path, body, status under the default limits, possible statuses under the limits of HIGH.
REQUESTS: dict[str, tuple[str, object, int, set[int]]] = {
    "/explain, 100,000 tokens": ("/explain", {"tokens": WORDS}, 413, {200, 503}),
    "/explain, 100,000 tokens of a text": ("/explain", {"text": " ".join(WORDS)}, 413, {200, 503}),
    "/tag, a token of 8,000 characters": ("/tag", {"tokens": ["1" + "a" * 8_000]}, 200, {200}),
    "/tag, a token of 40,000 characters": ("/tag", {"tokens": ["1" + "a" * 40_000]}, 413, {200}),
    "/tag, a text of 1,000,000 letters": ("/tag", {"text": "1" + "a" * 1_000_000}, 413, {413, 200}),
    "/tag, 100,000 tokens, 100 paths": ("/tag", {"tokens": WORDS, "kbest": 100}, 413, {413}),
    "/tag, 1,000 tokens, 100 paths": ("/tag", {"tokens": WORDS[:1000], "kbest": 100}, 200, {200}),
    "/tag, 100,000 tokens": ("/tag", {"tokens": WORDS, "probabilities": True}, 200, {200, 503}),
}


def until_idle(pid: int, least: float = 0.5) -> float:
    """Return the seconds until a process uses less than `least` of a core for 0.1 s, at most 30.

    The threshold leaves CPU time for responses to /health.
    """
    begin = time.perf_counter()
    while (at := time.perf_counter() - begin) < 30:
        before = cpu_seconds(pid)
        time.sleep(0.1)
        if cpu_seconds(pid) - before < least * 0.1:
            break
    return at


def terminated(server: subprocess.Popen[str], address: Address) -> float:
    """Return the seconds that a server needs to end after SIGTERM while it explains 100,000 tokens."""

    def explain_words() -> None:
        with contextlib.suppress(OSError, http.client.HTTPException):
            posted(address, {"tokens": WORDS}, "/explain")

    thread = threading.Thread(target=explain_words)
    thread.start()
    time.sleep(1.0)
    begin = time.perf_counter()
    server.send_signal(signal.SIGTERM)
    server.wait(60)
    took = time.perf_counter() - begin
    thread.join()
    return took


def measured(path: Path, row: Callable[[str, str, float, str], None]) -> None:
    """Run every attack and call `row` with its name, status, slowest /health in seconds, and details as text."""
    for name, options in (("default limits", ()), ("high limits", HIGH)):
        with serving(path, *options) as (server, address):
            with Health(address) as health:
                time.sleep(2.0)
            typical = 1e3 * statistics.median(health.seconds)
            row(f"nothing ({name})", "", health.worst, f"median {typical:.1f} ms")
            for name_of_request, (where, request, _, _) in REQUESTS.items():
                with Health(address) as health:
                    status, took = posted(address, request, where)
                    idle = until_idle(server.pid)
                after, again = posted(address, {"tokens": ["Rosa"] * 20}, "/explain")
                words = f"{took:.2f} s; idle {idle:.2f} s later; next /explain {after} in {again:.2f} s"
                row(f"{name_of_request} ({name})", str(status), health.worst, words)
            before = cpu_seconds(server.pid)
            with Health(address) as health:
                sent, seconds = long_line(address)
            used = cpu_seconds(server.pid) - before
            words = f"{sent:,} pieces in {seconds:g} s, {1e6 * used / sent:.0f} us of CPU each"
            row(f"a line of 7 MB, then bytes ({name})", "", health.worst, words)
            row(
                f"SIGTERM while explaining ({name})",
                "",
                0.0,
                f"ended after {terminated(server, address):.2f} s",
            )


def main() -> None:
    """Print the table."""
    print("| attack | status | longest /health | |\n|---|---|---|---|")

    def row(name_of_request: str, status: str, worst: float, words: str) -> None:
        print(f"| {name_of_request} | {status} | {1e3 * worst:.0f} ms | {words} |", flush=True)

    with tempfile.TemporaryDirectory() as folder:
        measured(model(Path(folder) / "patterns.tagwise"), row)


if __name__ == "__main__":
    main()

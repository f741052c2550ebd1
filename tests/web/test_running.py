"""The server on a real socket: hostile connections, many clients, signals, workers. Needs uvicorn."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

import tagwise as tw
from tagwise.apps.serve.models import Loaded, ModelRegistry, ServedModel
from tagwise.apps.serve.service import Service, ServiceSettings, application
from tagwise.apps.web import need, problems, running
from tagwise.apps.web.limits import RequestLimits
from tagwise.base.exceptions import TagwiseError

pytest.importorskip("uvicorn", reason="uvicorn is not installed: make test-browser")

SENTENCE = ["Rosa", "Berg", "runs", "to", "Lund", "."]
REQUEST = json.dumps({"tokens": SENTENCE}).encode()


@contextlib.contextmanager
def served(tagger: tw.CRF, seconds: float, **settings: Any) -> Iterator[tuple[str, int]]:
    """Serve a tagger in a thread and yield the host and port."""
    registry = ModelRegistry([ServedModel("names", None, Loaded.of(tagger, "names"))])
    app = application(Service(registry, ServiceSettings(RequestLimits(body=10_000, seconds=seconds))))
    with running.running(app, **settings) as url:
        yield urlsplit(url).hostname or "", urlsplit(url).port or 0


@pytest.fixture(autouse=True)
def short_drain(monkeypatch: pytest.MonkeyPatch) -> None:
    """Do not wait long for requests that never end."""
    monkeypatch.setattr(problems, "DRAIN_SECONDS", 2.0)


@pytest.fixture(scope="module")
def address(tagger: tw.CRF) -> Iterator[tuple[str, int]]:
    """Address of a server with long timeouts."""
    with served(tagger, 60.0) as place:
        yield place


@pytest.fixture(scope="module")
def short_timeout_address(tagger: tw.CRF) -> Iterator[tuple[str, int]]:
    """Address of a server with short timeouts."""
    with served(tagger, 0.2, headers=0.2, idle=1) as place:
        yield place


def raw(address: tuple[str, int], *pieces: bytes) -> bytes:
    """Send the pieces and return all bytes until the server closes. The client sends nothing more but stays open."""
    with socket.create_connection(address, timeout=60) as connection:
        out = b""
        with contextlib.suppress(ConnectionError):
            for piece in pieces:
                connection.sendall(piece)
            while data := connection.recv(65536):
                out += data
        return out


def status(answer: bytes) -> int:
    return int(answer.split(None, 2)[1])


def post(body: bytes, *lines: str, length: int | None = None) -> bytes:
    """Return the bytes of a request with `Connection: close`."""
    head = ["POST /tag HTTP/1.1", "Host: localhost", "Connection: close", *lines]
    head.append(f"Content-Length: {len(body) if length is None else length}")
    return "\r\n".join([*head, "", ""]).encode() + body


def tag_over_http(address: tuple[str, int], body: bytes = REQUEST) -> tuple[int, Any]:
    """Send one request with `http.client` and return its status and JSON."""
    connection = http.client.HTTPConnection(*address, timeout=30)
    try:
        connection.request("POST", "/tag", body, {"Content-Type": "application/json"})
        answer = connection.getresponse()
        return answer.status, json.loads(answer.read())
    finally:
        connection.close()


def test_response_over_a_socket(address: tuple[str, int], tagger: tw.CRF) -> None:
    """The response has the tagger's labels and the headers of the guards, and does not name uvicorn."""
    answer = raw(address, post(REQUEST))
    head, _, body = answer.partition(b"\r\n\r\n")
    assert status(answer) == 200
    assert json.loads(body)["results"][0]["labels"] == tagger.predict([SENTENCE])[0]
    assert b"content-security-policy" in head
    assert b"uvicorn" not in head.lower()


@pytest.mark.parametrize(
    ("pieces", "statuses"),
    [
        ((b"\x16\x03\x01 hello",), {400}),
        ((b"GET / HTTP/9.9\r\n\r\n",), {400, 505}),
        ((b"GET / HTTP/1.1\r\nHost: localhost\r\nHost: evil\r\n\r\n",), {400}),
        ((b"POST /tag HTTP/1.1\r\nHost: localhost\r\nContent-Length: -5\r\n\r\n",), {400}),
        ((b"POST /tag HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99999999999\r\n\r\n",), {413}),
        ((b"POST /tag HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",), {400}),
        ((post(b"\xff\xfe{}"),), {400}),
        ((post(b"{" * 5000),), {400}),
        ((post(b"x" * 10_001),), {413}),
        ((b"GET /\x00 HTTP/1.1\r\nHost: localhost\r\n\r\n",), {400, 404}),
        ((b"GET /../../etc/passwd HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n",), {404}),
    ],
)
def test_hostile_requests_are_rejected_and_others_are_served(
    address: tuple[str, int], pieces: tuple[bytes, ...], statuses: set[int]
) -> None:
    """The server rejects the request or closes the connection, and continues to serve others."""
    answer = raw(address, *pieces)
    assert not answer or status(answer) in statuses
    assert tag_over_http(address)[0] == 200


@pytest.mark.parametrize("lines", [(), ("Transfer-Encoding: chunked",)], ids=["length", "chunks"])
def test_a_client_that_sends_too_much_gets_413_and_not_a_reset(
    address: tuple[str, int], lines: tuple[str, ...]
) -> None:
    """A client that sends its whole request before it reads finds the response, although the limit is far smaller."""
    body = b"x" * (8 << 20)
    with socket.create_connection(address, timeout=30) as connection:
        if lines:
            head = b"POST /tag HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"
            connection.sendall(head + b"%x\r\n" % len(body) + body + b"\r\n0\r\n\r\n")
        else:
            connection.sendall(post(body))
        answer = b""
        while data := connection.recv(65536):  # no ConnectionResetError
            answer += data
    assert status(answer) == 413
    assert json.loads(answer.partition(b"\r\n\r\n")[2])["error"]["type"] == "LimitError"


def test_the_rest_of_a_refused_request_is_read_within_bounds(
    address: tuple[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The response arrives at once, and the connection of a client that does not send the rest is closed."""
    begin = time.perf_counter()
    assert status(raw(address, post(b"x", length=1 << 30))) == 413
    assert time.perf_counter() - begin < 20
    monkeypatch.setattr(problems, "DRAIN_SECONDS", 60.0)
    monkeypatch.setattr(problems, "DRAIN_BYTES", 1 << 20)
    with socket.create_connection(address, timeout=30) as connection:
        connection.sendall(post(b"", length=1 << 34))
        with pytest.raises(ConnectionError):
            send_forever(connection, b"x" * (1 << 16))


def test_connections_with_slow_headers_are_closed(short_timeout_address: tuple[str, int]) -> None:
    """The server closes connections that send nothing, half a request, or half a request after a complete one."""
    whole = post(REQUEST).replace(b"Connection: close\r\n", b"")
    for pieces in ((), (b"GET / HT",), (whole, b"POST /t"), (b"GET / HTTP/1.1\r\nHost: localhost\r\n",)):
        raw(short_timeout_address, *pieces)


def test_long_headers_are_rejected(address: tuple[str, int]) -> None:
    """Headers that are too long are rejected, and other clients are served."""
    long = b"GET / HTTP/1.1\r\n" + b"".join(b"X-%d: %s\r\n" % (i, b"y" * 100) for i in range(1000))
    assert not (answer := raw(address, long)) or status(answer) >= 400
    assert tag_over_http(address)[0] == 200


def test_slow_bodies_over_a_socket_get_408(short_timeout_address: tuple[str, int]) -> None:
    """Slow bodies and streams get 408, and the connection is closed."""
    lines = "Content-Type: application/x-ndjson"
    for request in (post(b'{"to', length=100), post(b'{"to', lines, length=100)):
        answer = raw(short_timeout_address, request)
        assert not answer or status(answer) == 408  # empty if the headers were also late


def send_forever(connection: socket.socket, data: bytes) -> None:
    while True:
        connection.sendall(data)


def test_clients_that_do_not_read_are_disconnected(tagger: tw.CRF) -> None:
    """Unread responses of a stream fill the buffers, and the server closes the connection."""
    line = json.dumps({"tokens": SENTENCE * 50}).encode() + b"\n"
    head = (
        b"POST /tag HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/x-ndjson\r\n"
        b"Transfer-Encoding: chunked\r\n\r\n"
    )
    with served(tagger, 60.0, unread=0.3) as address, socket.socket() as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 14)
        connection.settimeout(60)
        connection.connect(address)
        connection.sendall(head)
        with pytest.raises(ConnectionError):
            send_forever(connection, b"%x\r\n%b\r\n" % (len(line), line))
        assert tag_over_http(address)[0] == 200


def test_concurrent_clients_get_their_own_responses(address: tuple[str, int], tagger: tw.CRF) -> None:
    """Each client gets the response to its own request."""
    wanted = {n: tagger.predict([SENTENCE[:n]])[0] for n in range(1, 7)}
    wrong: list[Any] = []

    def client(seed: int) -> None:
        connection = http.client.HTTPConnection(*address, timeout=30)
        for i in range(3):
            n = 1 + (seed + i) % 6
            connection.request("POST", "/tag", json.dumps({"tokens": SENTENCE[:n]}))
            answer = json.loads(connection.getresponse().read())
            if answer["results"][0]["labels"] != wanted[n]:
                wrong.append(answer)
        connection.close()

    threads = [threading.Thread(target=client, args=(seed,)) for seed in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


PAGE = (Path(__file__).parents[2] / "docs" / "howto" / "serve.md").read_text("utf-8")
BLOCKS = re.findall(r"^```sh\n(.*?)^```", PAGE, re.S | re.M)
COMMANDS = [line for block in BLOCKS for line in block.splitlines() if "localhost:8000" in line]
assert COMMANDS, "the page has no commands that ask a server"


@pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")
@pytest.mark.parametrize("command", COMMANDS)
def test_curl_commands_of_the_page_run(address: tuple[str, int], command: str) -> None:
    """Every command of docs/howto/serve.md prints lines of JSON without an error."""
    here = command.replace("localhost:8000", f"localhost:{address[1]}")
    found = subprocess.run(["bash", "-c", here], capture_output=True, check=True, timeout=60)
    answers = [json.loads(line) for line in found.stdout.splitlines()]
    assert answers
    assert not [answer for answer in answers if "error" in answer]


def test_missing_packages_are_named_with_the_install_command(monkeypatch: pytest.MonkeyPatch) -> None:
    """The message names the packages and the command that installs them."""
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(TagwiseError, match=r"needs starlette and uvicorn.*pip install 'tagwise\[web\]'"):
        need("tagwise serve")


# --- processes ----------------------------------------------------------------------------------------------


@contextlib.contextmanager
def process(*args: object) -> Iterator[tuple[subprocess.Popen[str], tuple[str, int]]]:
    """Run `tagwise serve` on a free port, and yield the process and its address."""
    command = [sys.executable, "-m", "tagwise", "serve", "--port", "0", *map(str, args)]
    server = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    assert server.stderr is not None
    try:
        line = server.stderr.readline()
        assert "serving" in line, line + server.stderr.read()
        yield server, ("127.0.0.1", int(line.rstrip().rpartition(":")[2]))
    finally:
        if server.poll() is None:
            server.kill()
        server.wait()
        server.stderr.close()


def test_sigterm_completes_requests_in_flight(model: Path) -> None:
    """After SIGTERM, a partly sent request is still answered, new connections are refused, and the exit code is 0."""
    with process(model) as (server, address):
        assert tag_over_http(address)[0] == 200
        with socket.create_connection(address, timeout=30) as connection:
            whole = post(REQUEST)
            connection.sendall(whole[:-10])
            tag_over_http(address)  # when this later request is answered, the server has read the first
            server.send_signal(signal.SIGTERM)
            while True:  # until the socket is closed
                try:
                    socket.create_connection(address, timeout=5).close()
                except OSError:
                    break
            connection.sendall(whole[-10:])
            answer = b""
            while data := connection.recv(65536):
                answer += data
        assert status(answer) == 200
        assert server.wait(30) == 0


def test_workers_share_a_socket_and_are_replaced(model: Path) -> None:
    """A killed worker is replaced. SIGTERM ends all workers."""
    with process(model, "--workers", 2) as (server, address):
        assert tag_over_http(address)[0] == 200
        children = Path(f"/proc/{server.pid}/task/{server.pid}/children")
        if not children.exists():
            pytest.skip("no /proc to find the workers in")
        before = children.read_text().split()
        assert len(before) == 2
        os.kill(int(before[0]), signal.SIGKILL)
        assert server.stderr is not None
        assert "exited with code" in server.stderr.readline()
        for _ in range(4):
            assert tag_over_http(address)[0] == 200
        server.send_signal(signal.SIGTERM)
        assert server.wait(30) == 0
        assert not [pid for pid in before if Path(f"/proc/{pid}/cwd").exists()]

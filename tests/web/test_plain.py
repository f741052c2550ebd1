"""Plain requests go a shorter way and are answered as all others are; whatever is not plain goes the ordinary one."""

from __future__ import annotations

import contextlib
import json
import socket
from collections.abc import Iterator
from typing import Any

import pytest

import tagwise as tw
from tagwise.serve.plain import PlainTags
from tagwise.web.plain import Head

pytest.importorskip("uvicorn", reason="uvicorn is not installed: make test-browser")
pytest.importorskip("httptools", reason="httptools is not installed: make test-browser")

from tests.web.test_running import SENTENCE, served  # needs uvicorn

BODY = json.dumps({"tokens": SENTENCE}).encode()
PLAIN = b"POST /tag HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n%b" % (len(BODY), BODY)
#: The same with a header that plain requests have not.
OTHER = PLAIN.replace(b"Host:", b"X-Other: 1\r\nHost:")


@pytest.fixture(scope="module")
def address(tagger: tw.CRF) -> Iterator[tuple[str, int]]:
    """A server that knows how long its model takes."""
    with served(tagger, 60.0, half_closed=True) as place:
        ask(place, OTHER)
        yield place


@pytest.fixture
def taken(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Whether each piece of data that could be plain was."""
    out: list[bool] = []
    take = PlainTags.take

    def noted(self: PlainTags, data: bytes, told: Any) -> bool:
        out.append(take(self, data, told))
        return out[-1]

    monkeypatch.setattr(PlainTags, "take", noted)
    return out


class Reader:
    """Answers of a connection, one after the other."""

    def __init__(self, connection: socket.socket) -> None:
        self.connection, self.rest = connection, b""

    def answer(self) -> tuple[int, dict[str, str], bytes]:
        """Status, headers, body of the next."""
        while b"\r\n\r\n" not in self.rest:
            self._more()
        head, _, self.rest = self.rest.partition(b"\r\n\r\n")
        first, *lines = head.decode().split("\r\n")
        headers = {k.lower(): v for k, _, v in (line.partition(": ") for line in lines)}
        length = int(headers["content-length"])
        while len(self.rest) < length:
            self._more()
        body, self.rest = self.rest[:length], self.rest[length:]
        return int(first.split()[1]), headers, body

    def ended(self) -> bool:
        """Whether the other side has nothing more to say, and says so."""
        with contextlib.suppress(ConnectionError):
            return not self.rest and not self.connection.recv(1)
        return True

    def _more(self) -> None:
        data = self.connection.recv(65536)
        assert data, "the connection ended before its answer"
        self.rest += data


@contextlib.contextmanager
def connected(address: tuple[str, int]) -> Iterator[tuple[socket.socket, Reader]]:
    """A connection, and what comes back over it."""
    with socket.create_connection(address, timeout=60) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        yield connection, Reader(connection)


def ask(address: tuple[str, int], *pieces: bytes) -> tuple[int, dict[str, str], bytes]:
    """The answer of one request."""
    with connected(address) as (connection, reader):
        for piece in pieces:
            connection.sendall(piece)
        return reader.answer()


def test_the_answer_is_that_of_the_ordinary_way(
    address: tuple[str, int], tagger: tw.CRF, taken: list[bool]
) -> None:
    """The same body, and the same headers."""
    status, headers, body = ask(address, PLAIN)
    assert taken == [True]
    assert json.loads(body)["results"][0]["labels"] == tagger.predict([SENTENCE])[0]
    other = ask(address, OTHER)
    assert taken == [True, False]
    assert "date" in headers
    del headers["date"], other[1]["date"]
    assert (status, headers, body) == other


def test_many_on_one_connection(address: tuple[str, int], taken: list[bool]) -> None:
    """One after the other, and all at once: answers come in the order of the requests, whatever way each goes."""
    with connected(address) as (connection, reader):
        for request in (PLAIN, OTHER, PLAIN, PLAIN):
            connection.sendall(request)
            assert reader.answer()[0] == 200
        assert taken == [True, False, True, True]
        requests = [json.dumps({"tokens": SENTENCE[: 1 + i % 6], "kbest": 1}).encode() for i in range(40)]
        head = b"POST /tag HTTP/1.1\r\nHost: localhost\r\n%bContent-Length: %d\r\n\r\n%b"
        connection.sendall(
            b"".join(
                head % (b"X-Other: 1\r\n" if i % 3 == 0 else b"", len(r), r) for i, r in enumerate(requests)
            )
        )
        lengths = [len(json.loads(reader.answer()[2])["results"][0]["labels"]) for _ in requests]
        assert lengths == [1 + i % 6 for i in range(40)]


def test_pieces_are_one_request(address: tuple[str, int]) -> None:
    """A request that is cut anywhere is answered as a whole one."""
    whole = ask(address, PLAIN)
    for at in range(1, len(PLAIN), 7):
        status, _, body = ask(address, PLAIN[:at], PLAIN[at:])
        assert (status, body) == (whole[0], whole[2])


@pytest.mark.parametrize(
    ("body", "status"),
    [(b"{", 400), (b'{"tokens": [1]}', 400), (b'{"tokens": ["a"], "model": "none"}', 404), (b"\xff", 400)],
)
def test_what_is_wrong_is_told(address: tuple[str, int], taken: list[bool], body: bytes, status: int) -> None:
    head = b"POST /tag HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n" % len(body)
    found = ask(address, head + body)
    assert (found[0], json.loads(found[2])["error"]["status"]) == (status, status)
    assert taken == [False]


def test_a_batch_that_fails_is_told_the_ordinary_way(
    address: tuple[str, int], taken: list[bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    from tagwise.serve import batching

    def run(loaded: Any, name: str, jobs: list[Any], alone: bool) -> list[Any]:
        raise ZeroDivisionError("a defect")

    monkeypatch.setattr(batching, "run", run)
    assert ask(address, PLAIN)[0] == 500
    assert taken == [True]


def test_a_body_that_looks_like_a_request_is_none(address: tuple[str, int]) -> None:
    """A refusal before the body is read: what comes then is the body, not a request that hid in it."""
    with connected(address) as (connection, reader):
        connection.sendall(
            b"POST /nowhere HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n" % len(PLAIN)
        )
        assert reader.answer()[0] == 404
        connection.sendall(PLAIN)
        connection.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        assert b"labels" not in reader.answer()[2]
        assert reader.ended()


@pytest.mark.parametrize("request_", [PLAIN, OTHER, PLAIN + PLAIN], ids=["plain", "ordinary", "two"])
def test_who_has_closed_his_side_is_answered(address: tuple[str, int], request_: bytes) -> None:
    with connected(address) as (connection, reader):
        connection.sendall(request_)
        connection.shutdown(socket.SHUT_WR)
        for _ in range(request_.count(b"POST")):
            status, _, body = reader.answer()
            assert status == 200
            assert json.loads(body)["results"]
        assert reader.ended()


def test_half_a_request_is_not_waited_for(address: tuple[str, int]) -> None:
    with connected(address) as (connection, reader):
        connection.sendall(PLAIN[:-3])
        connection.shutdown(socket.SHUT_WR)
        assert reader.ended()


def test_too_many_connections_are_told_so(tagger: tw.CRF) -> None:
    """JSON, with the time to come back, and an end of the connection; the others go on."""
    with served(tagger, 60.0, connections=2) as place, contextlib.ExitStack() as stack:
        ask(place, OTHER)
        inside = [stack.enter_context(connected(place)) for _ in range(2)]
        for connection, reader in inside:
            connection.sendall(PLAIN)
            assert reader.answer()[0] == 200
        for request in (PLAIN, OTHER):
            with connected(place) as (connection, reader):
                connection.sendall(request)
                status, headers, body = reader.answer()
                assert (status, headers["retry-after"], headers["connection"]) == (503, "1", "close")
                assert headers["content-type"] == "application/json"
                assert "content-security-policy" in headers
                assert json.loads(body)["error"]["type"] == "BusyError"
                assert reader.ended()
        for connection, reader in inside:
            connection.sendall(PLAIN)
            assert reader.answer()[0] == 200


HEAD = b"POST /tag HTTP/1.1\r\nHost: a:1\r\nContent-Length: 12\r\n"


@pytest.mark.parametrize(
    "more",
    [
        b"",
        b"content-type: application/json; charset=utf-8\r\n",
        b"User-Agent: curl/8\r\nAccept: */*\r\n",
        b"Connection: keep-alive\r\n",
    ],
)
def test_heads_that_are_plain(more: bytes) -> None:
    found = Head.of(HEAD + more + b"\r\n")
    assert found is not None
    assert (found.path, found.host, found.length) == (b"/tag", b"a:1", 12)


@pytest.mark.parametrize(
    "head",
    [
        HEAD,
        HEAD + b"Host: b\r\n\r\n",
        HEAD + b"Content-Length: 12\r\n\r\n",
        HEAD + b"Transfer-Encoding: chunked\r\n\r\n",
        HEAD + b"Origin: http://a:1\r\n\r\n",
        HEAD + b"Cookie: a=b\r\n\r\n",
        HEAD + b"Connection: close\r\n\r\n",
        HEAD + b"Expect: 100-continue\r\n\r\n",
        HEAD + b"User-Agent: a\nb\r\n\r\n",
        HEAD + b"User-Agent: a\x00\r\n\r\n",
        HEAD + b"User-Agent : a\r\n\r\n",
        HEAD + b" folded: a\r\n\r\n",
        HEAD + b"Content-Type: application/x-ndjson\r\n\r\n",
        HEAD.replace(b"12", b"+12") + b"\r\n",
        HEAD.replace(b"12", b"1_2") + b"\r\n",
        HEAD.replace(b"1.1", b"1.0") + b"\r\n",
        HEAD.replace(b"/tag", b"/tag?token=1") + b"\r\n",
        HEAD.replace(b"POST", b"GET") + b"\r\n",
        b"POST /tag HTTP/1.1\r\nContent-Length: 12\r\n\r\n",
        b"POST /tag HTTP/1.1\r\nHost: a\r\n\r\n",
    ],
)
def test_heads_that_are_not(head: bytes) -> None:
    assert Head.of(head) is None

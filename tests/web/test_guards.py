"""The guards and limits, one property per test."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from starlette.responses import Response

from tagwise.apps.web.guards import Guards, host_name, new_token
from tagwise.apps.web.limits import Limited, RequestLimits
from tagwise.base.exceptions import CorpusError, InternalError
from tests.web.asgi_client import call_app

TOKEN = "t" * 43


async def plain(scope: Any, receive: Any, send: Any) -> None:
    """Application that responds with the body of the request, or with "hello" if it is empty."""
    got = b""
    while True:
        message = await receive()
        got += message["body"]
        if not message["more_body"]:
            break
    await Response(got or b"hello", media_type="text/plain")(scope, receive, send)


@pytest.mark.parametrize(
    "host",
    ["evil.example", "127.0.0.1.evil.example:8000", "evil.example:127", "10.0.0.7:8000", "[::2]:80", "", "a b"],
)  # fmt: skip
def test_unknown_hosts_get_421(host: str) -> None:
    """DNS rebinding: the Host header contains the attacker's domain, even if it resolves to this server."""
    found = call_app(Guards(plain), host=host)
    assert found.status == 421
    assert json.loads(found.body)["error"]["type"] == "HostError"


@pytest.mark.parametrize("host", ["127.0.0.1:8000", "localhost:1", "LOCALHOST", "[::1]:8000", "localhost."])
def test_loopback_hosts_are_accepted(host: str) -> None:
    """Loopback names are accepted with any port and in upper or lower case."""
    assert call_app(Guards(plain), host=host).status == 200


def test_bound_addresses_and_allowed_hosts_are_accepted() -> None:
    """A server on all addresses accepts any IP address and the names in `hosts`. "*" accepts every host."""
    app = Guards(plain, bound="0.0.0.0", hosts=["tagger.internal"])
    assert [call_app(app, host=h).status for h in ("10.0.0.7:80", "Tagger.internal", "evil.example")] == [
        200,
        200,
        421,
    ]
    assert call_app(Guards(plain, hosts=["*"]), host="evil.example").status == 200


def test_missing_or_duplicate_host_headers_get_400() -> None:
    """Zero or two Host headers are rejected. With two, a proxy and the server may read different ones."""
    assert call_app(Guards(plain), host=None).status == 400
    assert call_app(Guards(plain), headers={"host": "localhost"}).status == 400


def test_host_name_strips_the_port_and_validates() -> None:
    """`host_name` removes the port and returns None for a malformed header."""
    assert host_name("[::1]:80") == "::1"
    assert host_name("a.b:80") == "a.b"
    assert [host_name(x) for x in ("a:b", "a@b", "a/b", "[::1", "a:123456")] == [None] * 5


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"origin": "http://evil.example"}, 403), ({"origin": "null"}, 403), ({"origin": "http://127.0.0.1:9"}, 403),
        ({"origin": "file://127.0.0.1:8000"}, 403), ({"sec-fetch-site": "cross-site"}, 403),
        ({"sec-fetch-site": "same-site"}, 403), ({"origin": "http://127.0.0.1:8000"}, 200),
        ({"sec-fetch-site": "same-origin"}, 200), ({}, 200),
    ],
)  # fmt: skip
def test_cross_origin_writes_get_403(headers: dict[str, str], status: int) -> None:
    """Pages of another site or port cannot change state. Programs send no Origin and are accepted."""
    for method in ("POST", "PUT", "DELETE", "PATCH", "BREW"):
        assert call_app(Guards(plain), method, headers=headers).status == status
    assert call_app(Guards(plain), "GET", headers=headers).status == 200


def test_url_token_sets_a_cookie_and_redirects() -> None:
    """The printed URL sets an HttpOnly, SameSite=Strict cookie and redirects to the URL without the token."""
    app = Guards(plain, token=TOKEN)
    found = call_app(app, query=f"a=1&token={TOKEN}&b=%26", path="/page")
    assert (found.status, found.headers["location"]) == (303, "/page?a=1&b=%26")
    cookie, *marks = found.headers["set-cookie"].split("; ")
    assert set(marks) == {"HttpOnly", "SameSite=strict", "Path=/"}
    assert call_app(app, headers={"cookie": f"x=1; {cookie}"}).status == 200
    assert (
        call_app(app, headers={"cookie": cookie}, port=8001).status == 401
    )  # another server on the same host
    assert call_app(app, "POST", headers={"authorization": f"Bearer {TOKEN}"}).status == 200


@pytest.mark.parametrize(
    "wrong",
    [
        {},
        {"query": "token=" + "x" * 43},
        {"query": "token="},
        {"headers": {"cookie": "tagwise_8000=" + "x" * 43}},
        {"headers": {"cookie": "tagwise_8000=\xff"}},
        {"headers": {"authorization": "Bearer " + TOKEN[:-1]}},
        {"method": "POST", "query": "token=" + TOKEN},
    ],
)
def test_missing_or_wrong_tokens_get_401_without_details(wrong: dict[str, Any]) -> None:
    """The response is 401, sets no cookie and does not contain the token."""
    found = call_app(Guards(plain, token=TOKEN, open_paths=["/health"]), **wrong)
    assert found.status == 401
    assert "set-cookie" not in found.headers
    assert TOKEN.encode() not in found.body


def test_open_paths_need_no_token_and_tokens_are_random() -> None:
    """Health probes work without a token. A token has 32 random bytes, which are 43 characters."""
    assert call_app(Guards(plain, token=TOKEN, open_paths=["/health"]), path="/health").status == 200
    assert len({new_token() for _ in range(100)}) == 100
    assert len(new_token()) == 43


@pytest.mark.parametrize("path", ["//evil.example/", "/\\evil.example", "/a\r\nset-cookie: b"])
def test_redirects_stay_on_the_same_host(path: str) -> None:
    """The redirect never leads to another host and never injects a header."""
    location = call_app(Guards(plain, token=TOKEN), path=path, query=f"token={TOKEN}").headers["location"]
    assert location[0] == "/"
    assert location[1:2] not in ("/", "\\")
    assert not set("\r\n") & set(location)


def test_every_response_has_security_headers() -> None:
    """Responses and rejections forbid inline scripts, other hosts and frames. Headers of the application are kept."""
    for found in (
        call_app(Guards(plain)),
        call_app(Guards(plain), host="evil.example"),
        call_app(Guards(plain, token=TOKEN)),
    ):
        policy = dict(
            part.strip().split(" ", 1) for part in found.headers["content-security-policy"].split(";")
        )
        assert policy["default-src"] == "'none'"
        assert policy["script-src"] == "'self'"
        assert policy["frame-ancestors"] == "'none'"
        assert policy["base-uri"] == "'none'"
        assert "unsafe" not in found.headers["content-security-policy"]
        assert found.headers["x-content-type-options"] == "nosniff"
        assert found.headers["referrer-policy"] == "no-referrer"
        assert found.headers["cache-control"] == "no-store"
        assert "access-control-allow-origin" not in found.headers

    async def kept(scope: Any, receive: Any, send: Any) -> None:
        await Response(b"", headers={"cache-control": "max-age=60"})(scope, receive, send)

    assert call_app(Guards(kept)).headers["cache-control"] == "max-age=60"


def test_websockets_are_closed() -> None:
    """The guards do not support WebSockets."""
    sent = []

    async def send(message: Any) -> None:
        sent.append(message["type"])

    asyncio.run(Guards(plain)({"type": "websocket", "headers": []}, None, send))
    assert sent == ["websocket.close"]


def test_errors_are_json_without_internal_details(caplog: pytest.LogCaptureFixture) -> None:
    """Invalid input gets 400 with the message of the exception. A bug gets 500, and its details are only logged."""

    def raising(error: Exception) -> Any:
        async def app(scope: Any, receive: Any, send: Any) -> None:
            raise error

        return Guards(app)

    found = call_app(raising(CorpusError("sentence 3: no token; give one")))
    assert (found.status, found.headers["content-type"]) == (400, "application/json")
    assert json.loads(found.body) == {
        "error": {"type": "CorpusError", "message": "sentence 3: no token; give one", "status": 400}
    }
    for error in (InternalError("at /secret/place"), KeyError("secret")):
        found = call_app(raising(error))
        assert found.status == 500
        assert b"secret" not in found.body
    assert "secret" in caplog.text
    assert call_app(raising(MemoryError())).headers["retry-after"] == "1"


def test_disconnected_clients_get_no_response_and_no_log_record(caplog: pytest.LogCaptureFixture) -> None:
    """A closed connection gets no response and no log record."""
    sent: list[Any] = []

    async def disconnected_app(scope: Any, receive: Any, send: Any) -> None:
        raise ConnectionResetError

    async def send(message: Any) -> None:
        sent.append(message)

    headers = [(b"host", b"localhost")]
    scope = {"type": "http", "method": "GET", "path": "/", "query_string": b"", "headers": headers}
    asyncio.run(Guards(disconnected_app)(scope, None, send))
    assert not sent
    assert not caplog.records


# --- limits -------------------------------------------------------------------------------------------------


def limited(**limits: Any) -> Any:
    return Guards(Limited(plain, RequestLimits(**limits), lambda scope: scope["path"] == "/stream"))


def test_body_size_is_limited() -> None:
    """Content-Length is checked before the body is read, then the received bytes. Streams have no limit on the body."""
    app = limited(body=10)
    assert call_app(app, "POST", body=[b"12345", b"67890"]).body == b"1234567890"
    declared = call_app(app, "POST", headers={"content-length": "11"}, body=[9.0])
    assert (declared.status, declared.headers["connection"]) == (413, "close")
    assert call_app(app, "POST", body=[b"12345", b"678901", 9.0]).status == 413
    assert call_app(app, "POST", "/stream", body=[b"12345", b"678901"]).status == 200


def test_slow_bodies_get_408() -> None:
    """The time limit applies to the whole body, or to each chunk of a stream."""
    app = limited(seconds=0.05)
    found = call_app(app, "POST", body=[b"1", 5.0, b"2"])
    assert (found.status, json.loads(found.body)["error"]["type"]) == (408, "SlowError")
    assert call_app(app, "POST", "/stream", body=[b"1", 5.0, b"2"]).status == 408


@pytest.mark.parametrize(
    ("error", "logged"),
    [
        (ConnectionResetError("gone"), False),
        (
            RuntimeError("unable to perform operation on <TCPTransport closed=True>; the handler is closed"),
            False,
        ),
        (RuntimeError("something else"), True),
    ],
)
def test_only_errors_other_than_disconnects_are_logged(
    error: Exception, logged: bool, caplog: pytest.LogCaptureFixture
) -> None:
    """uvloop raises a RuntimeError if a closed connection is used. Any other RuntimeError is logged."""

    async def app(scope: Any, receive: Any, send: Any) -> None:
        raise error

    sent: list[Any] = []

    async def send(message: Any) -> None:
        sent.append(message)

    scope = {
        "type": "http",
        "method": "GET",
        "path": "/",
        "headers": [(b"host", b"localhost")],
        "query_string": b"",
    }
    asyncio.run(Guards(app)(scope, None, send))  # type: ignore[arg-type]
    assert bool(sent) is bool(caplog.records) is logged

"""Requests to an ASGI application without a client package and without a socket."""

from __future__ import annotations

import asyncio
from typing import Any, NamedTuple


class AppResponse(NamedTuple):
    """A response."""

    status: int
    headers: dict[str, str]
    body: bytes


def call_app(
    app: Any,
    method: str = "GET",
    path: str = "/",
    headers: Any = None,
    body: bytes | list[Any] = b"",
    query: str = "",
    host: str | None = "127.0.0.1:8000",
    port: int = 8000,
) -> AppResponse:
    """Send one request and return the response. A float among the pieces of the body is a pause in seconds."""
    return asyncio.run(call_app_async(app, method, path, headers, body, query, host, port))


async def call_app_async(
    app: Any,
    method: str = "GET",
    path: str = "/",
    headers: Any = None,
    body: bytes | list[Any] = b"",
    query: str = "",
    host: str | None = "127.0.0.1:8000",
    port: int = 8000,
) -> AppResponse:
    """Send one request inside a running event loop and return the response."""
    pairs = [(b"host", host.encode())] if host is not None else []
    pairs += [(k.lower().encode(), v.encode("latin-1")) for k, v in (headers or {}).items()]
    scope = {
        "type": "http",
        "method": method,
        "path": path,
        "raw_path": path.encode(),
        "query_string": query.encode(),
        "headers": pairs,
        "scheme": "http",
        "server": ("127.0.0.1", port),
        "client": ("127.0.0.1", 4000),
        "root_path": "",
        "http_version": "1.1",
        "asgi": {"version": "3.0"},
    }
    pieces = list(body) if isinstance(body, list) else [body]
    sent: list[Any] = []

    async def receive() -> dict[str, Any]:
        while pieces and isinstance(pieces[0], float):
            await asyncio.sleep(pieces.pop(0))
        if not pieces:
            await asyncio.Event().wait()
        return {"type": "http.request", "body": pieces.pop(0), "more_body": bool(pieces)}

    async def send(message: Any) -> None:
        sent.append(message)

    await app(scope, receive, send)
    start = next(m for m in sent if m["type"] == "http.response.start")
    head = {k.decode().lower(): v.decode("latin-1") for k, v in start["headers"]}
    return AppResponse(start["status"], head, b"".join(m.get("body", b"") for m in sent if m is not start))

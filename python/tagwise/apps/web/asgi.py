"""The few shapes of ASGI that the room uses: https://asgi.readthedocs.io/en/latest/specs/www.html."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from typing import Any

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]
Headers = list[tuple[bytes, bytes]]


def header(scope: Scope, name: bytes) -> bytes | None:
    """The first header of this name, which is in lower case; None where there is none."""
    for key, value in scope["headers"]:
        if key == name:
            return bytes(value)
    return None


def headers_of(scope: Scope, name: bytes) -> list[bytes]:
    """All headers of this name."""
    return [value for key, value in scope["headers"] if key == name]


async def answer(
    send: Send, status: int, body: bytes, kind: bytes, headers: Iterable[tuple[bytes, bytes]] = ()
) -> None:
    """Send a whole response; kind: its content type."""
    await send(
        {
            "type": "http.response.start",
            "status": status,
            "headers": [
                (b"content-type", kind),
                (b"content-length", str(len(body)).encode()),
                *headers,
            ],
        }
    )
    await send({"type": "http.response.body", "body": body})


__all__ = ["App", "Headers", "Message", "Receive", "Scope", "Send", "answer", "header", "headers_of"]

"""Limits on what a request may bring and how long it may take to bring it. Plain ASGI.

`running` has those of what lies before a request: the headers, their size and their time.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import anyio
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tagwise.apps.web.problems import Problem


@dataclass(frozen=True)
class Limits:
    """What one request may be.

    body: bytes of the whole body, or of one line if the body is a stream; tokens: of all sentences together, once for
    each path that is requested, and the same number of sentences; seconds: until the body has arrived, or until the
    next piece of a stream has, and how long an answer may take to make; explained: tokens of a sentence that is
    explained; characters: of one token.
    """

    body: int = 8 << 20
    tokens: int = 100_000
    seconds: float = 30.0
    explained: int = 1_000
    characters: int = 10_000


def whole(_: Scope) -> bool:
    """No request is a stream."""
    return False


class Limited:
    """Holds requests to limits of their bodies: bytes, and the time that the sender may take.

    A body that is too long is refused by what its header says, before a byte of it is read, and again by what arrives.
    Of a request that `is_stream` takes for a stream only the time between two pieces is limited: its handler sees to
    the length of a line.
    """

    def __init__(self, app: ASGIApp, limits: Limits, is_stream: Callable[[Scope], bool] = whole) -> None:
        self.app, self.limits, self.is_stream = app, limits, is_stream

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        limits, stream = self.limits, self.is_stream(scope)
        length = Headers(scope=scope).get("content-length", "")
        if not stream and length.isdigit() and int(length) > limits.body:
            raise self.too_long()
        end = anyio.current_time() + limits.seconds
        arrived = 0
        done = False

        async def receiving() -> Message:
            nonlocal arrived, done
            if done:  # whoever asks now waits for the other side to go
                return await receive()
            try:
                with anyio.fail_after(limits.seconds if stream else max(end - anyio.current_time(), 0.0)):
                    message = await receive()
            except TimeoutError:
                raise Problem(
                    408,
                    "SlowError",
                    f"the body did not arrive within {limits.seconds:g} s; send it faster, or in smaller requests",
                    close=True,
                ) from None
            arrived += len(message.get("body", b""))
            if arrived > limits.body and not stream:
                raise self.too_long()
            done = not message.get("more_body", False)
            return message

        await self.app(scope, receiving, send)

    def too_long(self) -> Problem:
        """The refusal of a body that is too long."""
        return Problem(
            413,
            "LimitError",
            f"the body is longer than {self.limits.body:,} bytes; send less at once, or start the server with a "
            "higher --max-body",
            close=True,
        )


__all__ = ["Limited", "Limits"]

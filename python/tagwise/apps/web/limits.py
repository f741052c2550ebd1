"""Limits on what a request may bring and how long it may take to bring it. Plain ASGI.

`running` has those of what lies before a request: the headers, their size and their time.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import anyio
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tagwise.apps.web.problems import RefusedRequest


@dataclass(frozen=True)
class RequestLimits:
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


def late(seconds: float) -> RefusedRequest:
    """The refusal of a request whose answer takes too long."""
    said = f"no answer within {seconds:g} s; send less at once, or try again later"
    return RefusedRequest(503, "TimeError", said, {"retry-after": "1"})


def whole(_: Scope) -> bool:
    """No request is a stream."""
    return False


class Limited:
    """Holds requests to limits of their bodies, bytes and time, and optionally to a limit on the time of the answer.

    A body that is too long is refused by its Content-Length, before a byte of it is read, and again by what arrives.
    Of a request that `is_stream` takes for a stream only the time between two pieces is limited: its handler sees to
    the length of a line. All of it is one cancel scope per request, whose deadline moves.

    Args:
        app: What is limited.
        limits: The limits.
        is_stream: Whether a request is a stream.
        answers: Whether the answer to a whole body has to be complete within `limits.seconds` too.
    """

    def __init__(
        self,
        app: ASGIApp,
        limits: RequestLimits,
        is_stream: Callable[[Scope], bool] = whole,
        answers: bool = False,
    ) -> None:
        self.app, self.limits, self.is_stream, self.answers = app, limits, is_stream, answers

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        limits, stream = self.limits, self.is_stream(scope)
        length = Headers(scope=scope).get("content-length", "")
        if not stream and length.isdigit() and int(length) > limits.body:
            raise self.too_long()
        arrived, done = 0, False
        deadline = anyio.CancelScope(deadline=math.inf if stream else anyio.current_time() + limits.seconds)

        async def receiving() -> Message:
            nonlocal arrived, done
            if done:  # a handler that receives now waits for the client to disconnect
                return await receive()
            if stream:
                deadline.deadline = anyio.current_time() + limits.seconds
            message = await receive()
            arrived += len(message.get("body", b""))
            if arrived > limits.body and not stream:
                raise self.too_long()
            done = not message.get("more_body", False)
            if stream or (done and not self.answers):
                deadline.deadline = math.inf
            elif done:
                deadline.deadline = anyio.current_time() + limits.seconds
            return message

        with deadline:
            await self.app(scope, receiving, send)
        if deadline.cancelled_caught:
            raise late(limits.seconds) if done else self.too_slow()

    def too_slow(self) -> RefusedRequest:
        """The refusal of a body that arrives too slowly."""
        return RefusedRequest(
            408,
            "SlowError",
            f"the body did not arrive within {self.limits.seconds:g} s; send it faster, or in smaller requests",
            close=True,
        )

    def too_long(self) -> RefusedRequest:
        """The refusal of a body that is too long."""
        return RefusedRequest(
            413,
            "LimitError",
            f"the body is longer than {self.limits.body:,} bytes; send less at once, or start the server with a "
            "higher --max-body",
            close=True,
        )

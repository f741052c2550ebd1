"""Limits on the size and the duration of requests, as ASGI middleware.

The limits on headers are in `running`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import anyio
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tagwise.apps.web.problems import COMPLETE, RefusedRequest


@dataclass(frozen=True)
class RequestLimits:
    """Limits of one request.

    Attributes:
        body: Bytes of the body, or of one line if the body is a stream.
        tokens: Tokens of all sentences together, times the number of requested paths. It also limits the number of
            sentences.
        seconds: Time for the body, or for the next chunk of a stream, to arrive, and for the response.
        explained: Tokens of a sentence to explain.
        characters: Characters of one token.
    """

    body: int = 8 << 20
    tokens: int = 100_000
    seconds: float = 30.0
    explained: int = 1_000
    characters: int = 10_000


def late(seconds: float) -> RefusedRequest:
    """Return the error for a response that takes too long."""
    message = f"no response within {seconds:g} s. Send smaller requests, or try again later"
    return RefusedRequest(503, "TimeError", message, {"retry-after": "1"})


def never_stream(_: Scope) -> bool:
    """Return False: no request is a stream."""
    return False


class Limited:
    """Middleware that limits the size and the duration of bodies, and optionally the time of the response.

    A body that is too long is rejected by its Content-Length before it is read, and again by the received bytes. For a
    stream, only the time between two chunks is limited, and its handler limits the length of lines. Each request has
    one cancel scope with a moving deadline.

    Args:
        app: Application to limit.
        limits: The limits.
        is_stream: Function that returns whether a request is a stream.
        limit_response: Whether the response to a complete body also has to finish within `limits.seconds`.
    """

    def __init__(
        self,
        app: ASGIApp,
        limits: RequestLimits,
        is_stream: Callable[[Scope], bool] = never_stream,
        limit_response: bool = False,
    ) -> None:
        self.app, self.limits, self.is_stream, self.limit_response = app, limits, is_stream, limit_response

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        limits, stream = self.limits, self.is_stream(scope)
        length = Headers(scope=scope).get("content-length", "")
        if not stream and length.isdigit() and int(length) > limits.body:
            raise self.too_long()
        arrived, done, refused = 0, False, False
        deadline = anyio.CancelScope(deadline=math.inf if stream else anyio.current_time() + limits.seconds)

        async def receiving() -> Message:
            nonlocal arrived, done, refused
            if done or refused:  # the handler waits for a disconnect, or reads the rest
                return await receive()
            if stream:
                deadline.deadline = anyio.current_time() + limits.seconds
            message = await receive()
            arrived += len(message.get("body", b""))
            done = scope[COMPLETE] = not message.get("more_body", False)
            if arrived > limits.body and not stream:
                refused = True
                raise self.too_long()
            if stream or (done and not self.limit_response):
                deadline.deadline = math.inf
            elif done:
                deadline.deadline = anyio.current_time() + limits.seconds
            return message

        with deadline:
            await self.app(scope, receiving, send)
        if deadline.cancelled_caught:
            raise late(limits.seconds) if done else self.too_slow()

    def too_slow(self) -> RefusedRequest:
        """Return the error for a body that arrives too slowly."""
        return RefusedRequest(
            408,
            "SlowError",
            f"the body did not arrive within {self.limits.seconds:g} s. Send it faster, or in smaller requests",
            close=True,
        )

    def too_long(self) -> RefusedRequest:
        """Return the error for a body that is too long."""
        return RefusedRequest(
            413,
            "LimitError",
            f"the body is longer than {self.limits.body:,} bytes. Send smaller requests, or start tagwise serve with a "
            "higher --max-body",
            close=True,
        )

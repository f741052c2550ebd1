"""Errors as JSON: ``{"error": {"type": ..., "message": ..., "status": ...}}`` with the matching HTTP status."""

from __future__ import annotations

import html
import json
import logging
from collections.abc import Mapping
from typing import Any

import anyio
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import HTMLResponse, Response
from starlette.types import Receive, Scope, Send

from tagwise.base.domains import Domain, DomainError
from tagwise.base.exceptions import InternalError, TagwiseError
from tagwise.base.files.sealed import parsed

logger = logging.getLogger("tagwise.apps.web")

JSON = "application/json"


#: Entry of a scope: whether the whole body of the request was received.
COMPLETE = "tagwise.complete"
#: Bytes and seconds for the rest of a refused request to arrive before the connection is closed.
DRAIN_BYTES = 64 << 20
DRAIN_SECONDS = 10.0


class RefusedRequest(TagwiseError):
    """A rejected request: HTTP status, identifier for programs (`kind`) and message.

    Attributes:
        close: Whether to close the connection after the response, because the rest of the request is not read.
    """

    def __init__(
        self,
        status: int,
        kind: str,
        message: str,
        headers: Mapping[str, str] | None = None,
        close: bool = False,
    ) -> None:
        super().__init__(message)
        self.status, self.kind, self.close = status, kind, close
        self.headers = {**(headers or {}), **({"connection": "close"} if close else {})}


def problem_of(error: Exception) -> RefusedRequest:
    """Return the response to an error: 400 for errors in the request, 500 for bugs in the server."""
    if isinstance(error, RefusedRequest):
        return error
    if isinstance(error, HTTPException):  # of Starlette's router
        kind = {404: "PathError", 405: "MethodError"}.get(error.status_code, "RequestError")
        message = "there is nothing at this path" if error.status_code == 404 else error.detail
        return RefusedRequest(
            error.status_code, kind, f"{message}. See / for the endpoints", error.headers, close=True
        )
    if isinstance(error, MemoryError):
        return RefusedRequest(
            503, "MemoryError", "out of memory. Send smaller requests", {"retry-after": "1"}
        )
    if isinstance(error, TagwiseError) and not isinstance(error, InternalError):
        return RefusedRequest(400, type(error).__name__, str(error))
    kind = "InternalError"
    return RefusedRequest(
        500, kind, "internal error, a bug in tagwise. See the log of the server, and please report it"
    )


def content_of(problem: RefusedRequest) -> dict[str, Any]:
    """Return the body of the response as an object."""
    return {"error": {"type": problem.kind, "message": str(problem), "status": problem.status}}


class ClosingResponse(Response):  # type: ignore[misc]
    """Response after which the server closes the connection.

    It is sent at once, and the connection stays open until the client has sent the rest of its request or has gone.
    Closing with unread data would reset the connection, and a client that is still sending would lose the response.
    `DRAIN_BYTES` and `DRAIN_SECONDS` limit what is read.
    """

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        await send({"type": "http.response.body", "body": self.body, "more_body": True})
        left = 0 if scope.get(COMPLETE) else DRAIN_BYTES
        with anyio.move_on_after(DRAIN_SECONDS):
            while left > 0:
                message = await receive()
                if not message.get("more_body"):  # the end of the body, or a disconnect
                    break
                left -= len(message["body"])
        await send({"type": "http.response.body", "body": b"", "more_body": False})


def response_of(problem: RefusedRequest) -> Response:
    """Return the response to a problem."""
    body = json.dumps(content_of(problem)) + "\n"
    kind = ClosingResponse if problem.close else Response
    return kind(body, problem.status, problem.headers, media_type=JSON)


def page_of(problem: RefusedRequest) -> Response:
    """Return the response to a problem as a page for people."""
    text = html.escape(str(problem))
    body = f"<!doctype html><html lang=en><title>tagwise</title><p>{text[:1].upper()}{text[1:]}.</p></html>\n"
    return HTMLResponse(body, problem.status, problem.headers)


async def respond_to_error(_: Request, error: Exception) -> Response:
    """Respond to an error of an endpoint. This is an exception handler of Starlette."""
    return response_of(problem_of(error))


#: Exception handlers of an application.
HANDLERS: Mapping[Any, Any] = dict.fromkeys(
    (HTTPException, TagwiseError, MemoryError, Exception), respond_to_error
)


def parsed_body(body: bytes | bytearray, domain: Domain) -> Any:
    """Parse the JSON body of a request, or raise a RefusedRequest if it is invalid."""
    try:
        value = parsed(body)
    except DomainError as error:
        raise RefusedRequest(400, "JSONError", f"the body: {error}. Send JSON in UTF-8") from None
    try:
        domain.check(value, "the request")
    except DomainError as error:
        raise RefusedRequest(400, "RequestError", str(error)) from None
    return value


def is_disconnect(error: Exception) -> bool:
    """Return whether an error means that the client closed the connection.

    uvloop raises a RuntimeError when a closed transport is read or written.
    """
    return isinstance(error, (ConnectionError, ClientDisconnect)) or (
        isinstance(error, RuntimeError) and str(error).endswith("the handler is closed")
    )


async def respond(error: Exception, scope: Scope, receive: Receive, send: Send, sent: str) -> None:
    """Respond to an error that the application did not handle, or only log it.

    `sent` is how much of a response was sent: "nothing", "part" or "all". After a part, the error is raised again
    and the server closes the connection.
    """
    if is_disconnect(error):
        return
    problem = problem_of(error)
    if problem.status == 500:
        logger.error("%s %s failed", scope["method"], scope["path"], exc_info=error)
    if sent == "part":
        raise error
    if sent == "nothing":
        await response_of(problem)(scope, receive, send)

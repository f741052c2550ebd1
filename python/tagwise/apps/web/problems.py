"""Errors as JSON: ``{"error": {"type": ..., "message": ..., "status": ...}}`` with the matching HTTP status."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from typing import Any

from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from tagwise.base.domains import Domain, DomainError
from tagwise.base.exceptions import InternalError, TagwiseError
from tagwise.base.files.sealed import parsed

logger = logging.getLogger("tagwise.apps.web")

JSON = "application/json"


class RefusedRequest(TagwiseError):
    """A request that is refused: the HTTP status, a word for programs (`kind`), a sentence for people.

    close: the connection ends with the answer, because the rest of the request is not going to be read.
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
    """Return the answer to an error: 400 for errors in the request, 500 for defects of the server."""
    if isinstance(error, RefusedRequest):
        return error
    if isinstance(error, HTTPException):  # of Starlette's router
        kind = {404: "PathError", 405: "MethodError"}.get(error.status_code, "RequestError")
        said = "there is nothing at this path" if error.status_code == 404 else error.detail
        return RefusedRequest(error.status_code, kind, f"{said}; see /", error.headers, close=True)
    if isinstance(error, MemoryError):
        return RefusedRequest(503, "MemoryError", "out of memory; send less at once", {"retry-after": "1"})
    if isinstance(error, TagwiseError) and not isinstance(error, InternalError):
        return RefusedRequest(400, type(error).__name__, str(error))
    kind = "InternalError"
    return RefusedRequest(500, kind, "a defect of tagwise: the server's log says where; please report it")


def content_of(problem: RefusedRequest) -> dict[str, Any]:
    """Return the body of the answer as an object."""
    return {"error": {"type": problem.kind, "message": str(problem), "status": problem.status}}


def response_of(problem: RefusedRequest) -> Response:
    """Return the answer to a problem."""
    body = json.dumps(content_of(problem)) + "\n"
    return Response(body, problem.status, problem.headers, media_type=JSON)


async def refuse(_: Request, error: Exception) -> Response:
    """Answer an error of an endpoint: an exception handler of Starlette."""
    return response_of(problem_of(error))


#: Exception handlers of an application.
HANDLERS: Mapping[Any, Any] = dict.fromkeys((HTTPException, TagwiseError, MemoryError, Exception), refuse)


def parsed_body(body: bytes | bytearray, domain: Domain) -> Any:
    """Return the JSON in the body of a request; a RefusedRequest if it is not JSON, or outside its domain."""
    try:
        value = parsed(body)
    except DomainError as error:
        raise RefusedRequest(400, "JSONError", f"the body: {error}; send JSON in UTF-8") from None
    try:
        domain.check(value, "the request")
    except DomainError as error:
        raise RefusedRequest(400, "RequestError", str(error)) from None
    return value


def is_gone(error: Exception) -> bool:
    """Return whether an error means that the client closed the connection.

    uvloop raises a RuntimeError when a closed transport is read or written.
    """
    return isinstance(error, (ConnectionError, ClientDisconnect)) or (
        isinstance(error, RuntimeError) and str(error).endswith("the handler is closed")
    )


async def respond(error: Exception, scope: Scope, receive: Receive, send: Send, sent: str) -> None:
    """Answer an error that the application did not answer, or only log it.

    `sent` is how much of an answer was sent: "nothing", "part" or "all". After a part, the error is raised again, and
    the server closes the connection.
    """
    if is_gone(error):
        return
    problem = problem_of(error)
    if problem.status == 500:
        logger.error("%s %s", scope["method"], scope["path"], exc_info=error)
    if sent == "part":
        raise error
    if sent == "nothing":
        await response_of(problem)(scope, receive, send)

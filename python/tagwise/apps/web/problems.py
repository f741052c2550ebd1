"""What went wrong, as JSON: ``{"error": {"type": ..., "message": ..., "status": ...}}`` with the status of HTTP."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable
from typing import Any

from tagwise.apps.web.asgi import Scope, Send, answer
from tagwise.base.domains import Domain, DomainError
from tagwise.base.exceptions import InternalError, TagwiseError
from tagwise.base.files.sealed import parsed

logger = logging.getLogger("tagwise.apps.web")

JSON = b"application/json"


class Problem(TagwiseError):
    """A request that is refused: the status of HTTP, a word for programs (`kind`), a sentence for people.

    close: the connection ends with the answer, because the rest of the request is not going to be read.
    """

    def __init__(
        self,
        status: int,
        kind: str,
        message: str,
        headers: Iterable[tuple[bytes, bytes]] = (),
        close: bool = False,
    ) -> None:
        super().__init__(message)
        self.status, self.kind, self.close = status, kind, close
        self.headers = [*headers, *([(b"connection", b"close")] if close else [])]


def parsed_body(body: bytes | bytearray, domain: Domain) -> Any:
    """Return the JSON in the body of a request; a Problem if it is not JSON, or outside its domain."""
    try:
        value = parsed(body)
    except DomainError as error:
        raise Problem(400, "JSONError", f"the body: {error}; send JSON in UTF-8") from None
    try:
        domain.check(value, "the request")
    except DomainError as error:
        raise Problem(400, "RequestError", str(error)) from None
    return value


def problem_of(error: Exception) -> Problem:
    """How an error is answered: what was given is 400, whoever was to work on it 500."""
    if isinstance(error, Problem):
        return error
    if isinstance(error, MemoryError):
        return Problem(503, "MemoryError", "out of memory; send less at once", [(b"retry-after", b"1")])
    if isinstance(error, TagwiseError) and not isinstance(error, InternalError):
        return Problem(400, type(error).__name__, str(error))
    kind = "InternalError"
    return Problem(500, kind, "a defect of tagwise: the server's log says where; please report it")


def body_of(problem: Problem) -> bytes:
    """The body of the answer."""
    said = {"type": problem.kind, "message": str(problem), "status": problem.status}
    return json.dumps({"error": said}, ensure_ascii=True).encode() + b"\n"


def is_gone(error: Exception) -> bool:
    """Whether an error means that the client closed the connection.

    uvloop raises a RuntimeError when a closed transport is read or written.
    """
    return isinstance(error, ConnectionError) or (
        isinstance(error, RuntimeError) and str(error).endswith("the handler is closed")
    )


async def respond(error: Exception, scope: Scope, send: Send, started: bool) -> None:
    """Answer an error of the application as JSON; after the first byte of an answer it ends the connection."""
    if is_gone(error):
        return
    problem = problem_of(error)
    if problem.status == 500:
        logger.error("%s %s", scope["method"], scope["path"], exc_info=error)
    if started:
        raise error
    await answer(send, problem.status, body_of(problem), JSON, problem.headers)


__all__ = ["JSON", "Problem", "body_of", "is_gone", "parsed_body", "problem_of", "respond"]

"""The application: paths to handlers. Plain ASGI, since the paths are few and a router would take longer than a tag."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import time
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from tagwise.apps.serve import openapi, shapes, tagging
from tagwise.apps.serve.batching import Batcher
from tagwise.apps.serve.metrics import Metrics
from tagwise.apps.serve.models import Shelf
from tagwise.apps.web.asgi import App, Message, Receive, Scope, Send, answer, header
from tagwise.apps.web.guards import Guards
from tagwise.apps.web.limits import Limited, Limits
from tagwise.apps.web.problems import JSON, Problem, body_of, parsed_body, problem_of

logger = logging.getLogger("tagwise.apps.serve")

NDJSON = b"application/x-ndjson"
#: Lines of a stream that are worked on together.
WINDOW = 64

Handler = Callable[[Scope, Receive, Send], Awaitable[None]]


@dataclass(frozen=True)
class Settings:
    """What a service is told: limits of a request, jobs and tokens that may wait, seconds between looks at files."""

    limits: Limits = field(default_factory=Limits)
    waiting: int = 1024
    waiting_tokens: int = 1_000_000
    reload: float = 1.0


def kind_of(scope: Scope) -> bytes:
    """The content type of a request, without parameters."""
    return (header(scope, b"content-type") or JSON).split(b";")[0].strip().lower()


def is_stream(scope: Scope) -> bool:
    """Whether a request is lines without end."""
    return scope["path"] == "/tag" and kind_of(scope) == NDJSON


class Service:
    """The application; `application` puts guards and limits around it."""

    def __init__(self, shelf: Shelf, settings: Settings | None = None, worker: int = 0) -> None:
        self.shelf, self.settings = shelf, settings or Settings()
        self.metrics = Metrics(worker)
        self.batchers = {
            name: Batcher(model, self.metrics, self.settings.waiting, self.settings.waiting_tokens)
            for name, model in shelf.models.items()
        }
        self._first = self.batchers[shelf.first.name]
        self.ready = False
        self._stream = asyncio.Semaphore(64)  # streams hold a window each
        self._routes: dict[str, dict[str, Handler]] = {
            "/tag": {"POST": self.tag},
            "/explain": {"POST": self.explain},
            "/models": {"GET": self.models},
            "/health": {"GET": self.health},
            "/ready": {"GET": self.is_ready},
            "/metrics": {"GET": self.metrics_text},
            "/openapi.json": {"GET": self.openapi},
            "/": {"GET": self.page},
            "/style.css": {"GET": self.style},
        }

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            return await self._life(receive, send)
        methods = self._routes.get(scope["path"])
        if methods is None:
            raise Problem(404, "PathError", f"there is nothing at {scope['path'][:200]!r}; see /")
        handler = methods.get("GET" if scope["method"] == "HEAD" else scope["method"])
        if handler is None:
            allowed = ", ".join(methods)
            raise Problem(
                405,
                "MethodError",
                f"{scope['path']} takes {allowed}, not {scope['method'][:20]}",
                [(b"allow", allowed.encode())],
                close=True,
            )
        return await handler(scope, receive, send)

    async def _life(self, receive: Receive, send: Send) -> None:
        watching: asyncio.Task[None] | None = None
        while True:
            message = await receive()
            if message["type"] == "lifespan.startup":
                watching = asyncio.create_task(self._watch())
                self.ready = True
                await send({"type": "lifespan.startup.complete"})
            else:
                self.ready = False
                if watching is not None:
                    watching.cancel()
                    with contextlib.suppress(asyncio.CancelledError):
                        await watching
                for batcher in self.batchers.values():
                    batcher.close()
                return await send({"type": "lifespan.shutdown.complete"})

    async def _watch(self) -> None:
        """Look at the files every so often."""
        while True:
            await asyncio.sleep(self.settings.reload)
            try:
                await self.shelf.refresh()
            except Exception:
                logger.exception("the models could not be looked at")

    # --- handlers -----------------------------------------------------------------------------------------

    def _batcher(self, request: dict[str, Any]) -> Batcher:
        name = request.get("model")
        if name is None:
            name = self.shelf.first.name
        if name not in self.batchers:
            known = ", ".join(self.batchers)
            raise Problem(404, "ModelError", f"there is no model {name[:100]!r}; there are: {known}")
        return self.batchers[name]

    async def _tagged(self, body: bytes | bytearray) -> bytes:
        """The answer of one request of /tag."""
        limits, words = self.settings.limits, shapes.words_of(body)
        if words is not None:
            return await self._in_time(self._first.submit(tagging.job_of_words(words, limits)))
        request = parsed_body(body, shapes.TAG_DOMAIN)
        return await self._in_time(self._batcher(request).submit(tagging.job_of(request, limits)))

    async def _in_time(self, future: asyncio.Future[bytes]) -> bytes:
        """The answer that a future gives, which is cancelled at the deadline."""
        seconds = self.settings.limits.seconds
        loop = asyncio.get_running_loop()
        end = loop.time() + seconds
        timer = loop.call_later(seconds, future.cancel)
        try:
            return await future
        except asyncio.CancelledError:
            if not future.cancelled() or loop.time() < end:  # the request was cancelled, and not by the timer
                raise
            said = f"no answer within {seconds:g} s; send less at once, or try again later"
            raise Problem(503, "TimeError", said, [(b"retry-after", b"1")]) from None
        finally:
            timer.cancel()

    async def tag(self, scope: Scope, receive: Receive, send: Send) -> None:
        """POST /tag."""
        kind = kind_of(scope)
        if kind == NDJSON:
            return await self.stream(receive, send)
        if kind not in (JSON, b"application/x-www-form-urlencoded"):  # curl -d says the second of anything
            raise unsupported(kind)
        return await answer(send, 200, await self._tagged(await whole(receive)), JSON)

    async def explain(self, scope: Scope, receive: Receive, send: Send) -> None:
        """POST /explain."""
        if (kind := kind_of(scope)) not in (JSON, b"application/x-www-form-urlencoded"):
            raise unsupported(kind)
        request = parsed_body(await whole(receive), shapes.EXPLAIN_DOMAIN)
        batcher, limits = self._batcher(request), self.settings.limits
        found, cost = tagging.explained(batcher.model.loaded, batcher.model.name, request, limits)
        await answer(send, 200, await self._in_time(asyncio.ensure_future(batcher.call(found, cost))), JSON)

    async def stream(self, receive: Receive, send: Send) -> None:
        """POST /tag of lines: a window of them is read, labelled and answered before the next one is read."""
        if self._stream.locked():
            raise Problem(503, "BusyError", "too many streams; try again later", [(b"retry-after", b"1")])
        async with self._stream:
            started, number = False, 0
            async for lines in windows(receive, self.settings.limits.body):
                found = await asyncio.gather(*map(self._tagged, lines), return_exceptions=True)
                out = bytearray()
                for one in found:
                    number += 1
                    if isinstance(one, bytes):
                        out += one
                        continue
                    if not isinstance(one, Exception):
                        raise one
                    out += failed(one, number)
                if not started:
                    started = True
                    head = [(b"content-type", NDJSON)]
                    await send({"type": "http.response.start", "status": 200, "headers": head})
                await send({"type": "http.response.body", "body": bytes(out), "more_body": True})
            if not started:
                return await answer(send, 200, b"", NDJSON)
            return await send({"type": "http.response.body", "body": b""})

    async def models(self, scope: Scope, receive: Receive, send: Send) -> None:
        """GET /models."""
        found = {"models": [model.described() for model in self.shelf.models.values()]}
        await answer(send, 200, json.dumps(found).encode() + b"\n", JSON)

    async def health(self, scope: Scope, receive: Receive, send: Send) -> None:
        """GET /health."""
        await answer(send, 200, b'{"status":"ok"}\n', JSON)

    async def is_ready(self, scope: Scope, receive: Receive, send: Send) -> None:
        """GET /ready."""
        if not self.ready:
            raise Problem(503, "ReadyError", "the server starts or ends", [(b"retry-after", b"1")])
        await answer(send, 200, b'{"status":"ready"}\n', JSON)

    async def metrics_text(self, scope: Scope, receive: Receive, send: Send) -> None:
        """GET /metrics."""
        models = self.shelf.models
        gauges = {
            "waiting_requests": {name: float(b.waiting) for name, b in self.batchers.items()},
            "waiting_tokens": {name: float(b.queued) for name, b in self.batchers.items()},
            "model_version": {name: float(m.loaded.version) for name, m in models.items()},
            "model_reload_failures": {name: float(m.failures) for name, m in models.items()},
        }
        text = "\n".join([*self.metrics.lines(gauges), ""])
        await answer(send, 200, text.encode(), b"text/plain; version=0.0.4; charset=utf-8")

    async def openapi(self, scope: Scope, receive: Receive, send: Send) -> None:
        """GET /openapi.json."""
        await answer(send, 200, json.dumps(openapi.document()).encode(), JSON)

    async def page(self, scope: Scope, receive: Receive, send: Send) -> None:
        """GET /."""
        await answer(send, 200, openapi.page(list(self.batchers)).encode(), b"text/html; charset=utf-8")

    async def style(self, scope: Scope, receive: Receive, send: Send) -> None:
        """GET /style.css."""
        await answer(send, 200, openapi.STYLE.encode(), b"text/css; charset=utf-8")


def unsupported(kind: bytes) -> Problem:
    """The refusal of a body that is neither."""
    shown = kind[:60].decode("latin-1")
    return Problem(415, "TypeError", f"{shown}: send application/json or application/x-ndjson", close=True)


def failed(error: Exception, number: int) -> bytes:
    """The answer of a line of a stream that is wrong."""
    problem = problem_of(error)
    if problem.status == 500:
        logger.error("line %d of a stream", number, exc_info=error)
    found = json.loads(body_of(problem))
    return json.dumps({**found, "line": number}).encode() + b"\n"


async def whole(receive: Receive) -> bytes | bytearray:
    """A body, all of it."""
    message = await receive()
    body = message.get("body", b"")
    if not message.get("more_body"):
        return bytes(body)
    out = bytearray(body)
    while message.get("more_body"):
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ConnectionResetError("the other side has gone")
        out += message.get("body", b"")
    return out


async def windows(receive: Receive, longest: int) -> Any:
    """The lines of a body in lists, as they arrive, blank ones left out; no line may be longer than `longest` bytes."""
    rest, more = bytearray(), True  # of the last line, which has no end yet
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ConnectionResetError("the other side has gone")
        body, more = message.get("body", b""), message.get("more_body", False)
        lines: list[bytearray] = []
        if more and b"\n" not in body:
            rest += body
        else:
            head, _, tail = body.rpartition(b"\n") if more else (body, b"", b"")
            lines, rest = (rest + head).split(b"\n"), bytearray(tail)
        if max(map(len, (rest, *lines))) > longest:
            raise Problem(
                413, "LimitError", f"a line is longer than {longest:,} bytes; send shorter ones", close=True
            )
        lines = [line for line in lines if line.strip()]
        for begin in range(0, len(lines), WINDOW):
            yield lines[begin : begin + WINDOW]


class Counted:
    """Counts requests, their statuses and times; unknown paths are one."""

    def __init__(self, app: App, metrics: Metrics, paths: Iterable[str]) -> None:
        self.app, self.metrics, self.paths = app, metrics, frozenset(paths)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return await self.app(scope, receive, send)
        begin, status = time.perf_counter(), 500

        async def sending(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        self.metrics.in_flight += 1
        try:
            await self.app(scope, receive, sending)
        finally:
            self.metrics.in_flight -= 1
            path = scope["path"] if scope["path"] in self.paths else "other"
            self.metrics.request(path, status, time.perf_counter() - begin)
        return None


def application(
    service: Service, bound: str = "127.0.0.1", hosts: Iterable[str] = (), token: str | None = None
) -> App:
    """The service behind its guards and limits."""
    limited = Limited(service, service.settings.limits, is_stream)
    guarded = Guards(limited, bound=bound, hosts=hosts, token=token, open_paths=("/health", "/ready"))
    return Counted(guarded, service.metrics, openapi.OPERATIONS)


__all__ = ["NDJSON", "Service", "Settings", "application"]

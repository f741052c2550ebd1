"""The application: Starlette routes to handlers."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import time
from collections.abc import AsyncIterator, Iterable
from dataclasses import dataclass, field
from typing import Any

import anyio
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route, Router
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tagwise.apps.serve import openapi, schemas, tagging
from tagwise.apps.serve.batching import Batcher
from tagwise.apps.serve.metrics import Metrics
from tagwise.apps.serve.models import ModelRegistry
from tagwise.apps.web.guards import Guards
from tagwise.apps.web.limits import Limited, RequestLimits, late
from tagwise.apps.web.problems import JSON, RefusedRequest, content_of, parsed_body, problem_of
from tagwise.base.parameters import meant

logger = logging.getLogger("tagwise.apps.serve")

NDJSON = "application/x-ndjson"
#: Content types of a single request. `curl -d` sends the second one by default.
SINGLE = (JSON, "application/x-www-form-urlencoded")
#: Lines of a stream that are processed together.
WINDOW = 64
#: Bytes of a body above which it is parsed in a thread.
LARGE = 64 << 10


@dataclass(frozen=True)
class ServiceSettings:
    """Limits of requests and of the queue, and the seconds between checks of model files."""

    limits: RequestLimits = field(default_factory=RequestLimits)
    waiting: int = 1024
    waiting_tokens: int = 1_000_000
    reload: float = 1.0


def content_type_of(scope: Scope) -> str:
    """Return the content type of a request, without parameters."""
    return str(Headers(scope=scope).get("content-type", JSON)).partition(";")[0].strip().lower()


def is_stream(scope: Scope) -> bool:
    """Return whether the body of a request is a stream of lines."""
    return bool(scope["path"] == "/tag") and content_type_of(scope) == NDJSON


class Service:
    """The request handlers. `application` adds guards and limits."""

    def __init__(
        self, registry: ModelRegistry, settings: ServiceSettings | None = None, worker: int = 0
    ) -> None:
        self.registry, self.settings = registry, settings or ServiceSettings()
        self.metrics = Metrics(worker)
        self.batchers = {
            name: Batcher(model, self.metrics, self.settings.waiting, self.settings.waiting_tokens)
            for name, model in registry.models.items()
        }
        self.ready = False
        self._stream = asyncio.Semaphore(64)  # each stream holds a window of lines

    def app(self) -> Router:
        """Return the routes."""
        endpoints = {
            "/tag": self.tag,
            "/explain": self.explain,
            "/models": self.models,
            "/health": self.health,
            "/ready": self.is_ready,
            "/metrics": self.metrics_text,
            "/openapi.json": self.openapi,
            "/": self.page,
            "/docs": self.page,
            "/style.css": self.style,
        }
        routes = [
            Route(path, endpoints[path], methods=[one.method.upper()])
            for path, one in openapi.OPERATIONS.items()
        ]
        return Router(routes, redirect_slashes=False, lifespan=self._lifespan)

    @contextlib.asynccontextmanager
    async def _lifespan(self, _: Router) -> AsyncIterator[None]:
        watching = asyncio.create_task(self._watch())
        self.ready = True
        try:
            yield
        finally:
            self.ready = False
            watching.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await watching
            for batcher in self.batchers.values():
                batcher.close()

    async def _watch(self) -> None:
        """Check the model files at regular intervals."""
        while True:
            await asyncio.sleep(self.settings.reload)
            try:
                await self.registry.refresh()
            except Exception:
                logger.exception("the check of the model files for changes failed")

    # --- handlers -----------------------------------------------------------------------------------------

    def _batcher(self, request: dict[str, Any]) -> Batcher:
        name = request.get("model")
        if name is None:
            name = self.registry.first.name
        if name not in self.batchers:
            names = ", ".join(self.batchers)
            raise RefusedRequest(
                404,
                "ModelError",
                f"there is no model {name[:100]!r}{meant(name[:100], self.batchers)}. Use one of {names}",
            )
        return self.batchers[name]

    def _job(self, body: bytes) -> tuple[Batcher, tagging.Job]:
        """Parse a request of /tag."""
        request = parsed_body(body, schemas.TAG_DOMAIN)
        return self._batcher(request), tagging.job_of(request, self.settings.limits)

    async def _tagged(self, body: bytes) -> bytes:
        """Return the response to one request of /tag."""
        large = len(body) > LARGE
        batcher, job = await run_in_threadpool(self._job, body) if large else self._job(body)
        return await batcher.submit(job)

    async def _line(self, line: bytes) -> bytes:
        """Return the response to one line of a stream. Each line has its own deadline."""
        seconds = self.settings.limits.seconds
        try:
            with anyio.fail_after(seconds):
                return await self._tagged(line)
        except TimeoutError:
            raise late(seconds) from None

    async def tag(self, request: Request) -> Any:
        """POST /tag."""
        if (content_type := content_type_of(request.scope)) == NDJSON:
            return self.stream
        if content_type not in SINGLE:
            raise unsupported(content_type)
        return Response(await self._tagged(await request.body()), media_type=JSON)

    async def explain(self, request: Request) -> Response:
        """POST /explain."""
        if (content_type := content_type_of(request.scope)) not in SINGLE:
            raise unsupported(content_type)
        content = await run_in_threadpool(parsed_body, await request.body(), schemas.EXPLAIN_DOMAIN)
        batcher, limits = self._batcher(content), self.settings.limits
        found, cost = tagging.explained(batcher.model.loaded, batcher.model.name, content, limits)
        return Response(await batcher.call(found, cost), media_type=JSON)

    async def stream(self, scope: Scope, receive: Receive, send: Send) -> None:
        """POST /tag with lines: a window of lines is read, labelled and answered before the next one is read.

        Starlette's StreamingResponse cannot be used: it waits for a disconnect on the channel that carries the body.
        """
        if self._stream.locked():
            raise RefusedRequest(
                503, "BusyError", "too many streams are open. Try again later", {"retry-after": "1"}
            )
        async with self._stream:
            started, number = False, 0
            async for lines in windows(Request(scope, receive).stream(), self.settings.limits.body):
                found = await asyncio.gather(*map(self._line, lines), return_exceptions=True)
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
                    head = [(b"content-type", NDJSON.encode())]
                    await send({"type": "http.response.start", "status": 200, "headers": head})
                await send({"type": "http.response.body", "body": bytes(out), "more_body": True})
            if not started:
                await Response(b"", media_type=NDJSON)(scope, receive, send)
                return
            await send({"type": "http.response.body", "body": b""})

    async def models(self, _: Request) -> Response:
        """GET /models."""
        found = {"models": [model.described() for model in self.registry.models.values()]}
        return Response(json.dumps(found) + "\n", media_type=JSON)

    async def health(self, _: Request) -> Response:
        """GET /health."""
        return Response(b'{"status":"ok"}\n', media_type=JSON)

    async def is_ready(self, _: Request) -> Response:
        """GET /ready."""
        if not self.ready:
            raise RefusedRequest(
                503, "ReadyError", "the server is starting or stopping. Try again later", {"retry-after": "1"}
            )
        return Response(b'{"status":"ready"}\n', media_type=JSON)

    async def metrics_text(self, _: Request) -> Response:
        """GET /metrics."""
        models = self.registry.models
        gauges = {
            "waiting_requests": {name: float(b.waiting) for name, b in self.batchers.items()},
            "waiting_tokens": {name: float(b.queued) for name, b in self.batchers.items()},
            "model_version": {name: float(m.loaded.version) for name, m in models.items()},
            "model_reload_failures": {name: float(m.failures) for name, m in models.items()},
        }
        text = "\n".join([*self.metrics.lines(gauges), ""])
        return Response(text, media_type="text/plain; version=0.0.4; charset=utf-8")

    async def openapi(self, _: Request) -> Response:
        """GET /openapi.json."""
        return Response(json.dumps(openapi.document()), media_type=JSON)

    async def page(self, request: Request) -> Response:
        """GET / and /docs."""
        host = request.headers.get("host", "localhost")
        return Response(openapi.page(list(self.batchers), host), media_type="text/html")

    async def style(self, _: Request) -> Response:
        """GET /style.css."""
        return Response(openapi.STYLE, media_type="text/css")


def unsupported(content_type: str) -> RefusedRequest:
    """Return the error for an unsupported content type."""
    return RefusedRequest(
        415,
        "TypeError",
        f"content type {content_type[:60]}: expected application/json or application/x-ndjson",
        close=True,
    )


def failed(error: Exception, number: int) -> bytes:
    """Return the response to an invalid line of a stream."""
    problem = problem_of(error)
    if problem.status == 500:
        logger.error("line %d of a stream failed", number, exc_info=error)
    return json.dumps({**content_of(problem), "line": number}).encode() + b"\n"


async def windows(chunks: AsyncIterator[bytes], longest: int) -> AsyncIterator[list[bytes]]:
    """Yield the lines of a body in lists, as they arrive, without blank ones.

    Raises:
        RefusedRequest: A line is longer than `longest` bytes.
    """
    rest = bytearray()  # incomplete last line
    async for chunk in chunks:
        lines: list[bytes] = []
        if b"\n" in chunk:
            head, _, tail = chunk.rpartition(b"\n")
            lines, rest = bytes(rest + head).split(b"\n"), bytearray(tail)
        else:
            rest += chunk
        if max(map(len, (rest, *lines))) > longest:
            raise RefusedRequest(
                413, "LimitError", f"a line is longer than {longest:,} bytes. Send shorter lines", close=True
            )
        lines = [line for line in lines if line.strip()]
        for begin in range(0, len(lines), WINDOW):
            yield lines[begin : begin + WINDOW]
    if rest.strip():
        yield [bytes(rest)]


class Counted:
    """Counts requests by path, status and time. Unknown paths are counted together."""

    def __init__(self, app: ASGIApp, metrics: Metrics, paths: Iterable[str]) -> None:
        self.app, self.metrics, self.paths = app, metrics, frozenset(paths)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
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


def application(
    service: Service, bound: str = "127.0.0.1", hosts: Iterable[str] = (), token: str | None = None
) -> ASGIApp:
    """Return the service with guards and limits."""
    limited = Limited(service.app(), service.settings.limits, is_stream, limit_response=True)
    guarded = Guards(limited, bound=bound, hosts=hosts, token=token, open_paths=("/health", "/ready"))
    return Counted(guarded, service.metrics, openapi.OPERATIONS)

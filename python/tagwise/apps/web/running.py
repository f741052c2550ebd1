"""The HTTP server, with limits on headers and connections and an orderly shutdown.

`limits` covers the bodies of requests. Here, headers and the number of connections are limited. uvicorn itself has no
timeout for headers.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import importlib
import importlib.util
import logging
import os
import signal
import socket
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from starlette.types import ASGIApp, Receive, Scope, Send

from tagwise.apps.web.guards import HEADERS
from tagwise.apps.web.problems import RefusedRequest, response_of
from tagwise.base.exceptions import ParameterError, TagwiseError, file_error

#: Maximum size of headers in bytes, and maximum number of connections.
HEADER_BYTES, CONNECTIONS = 64 << 10, 1000


@dataclass(frozen=True)
class ServerSettings:
    """Limits of a server.

    Attributes:
        connections: Maximum number of connections.
        grace: Seconds for requests in progress to finish after a stop.
        headers: Seconds for the headers of a request to arrive.
        idle: Seconds that a connection may be open between two requests.
        unread: Seconds that a client may leave a response unread once the buffers of the connection are full.
        half_closed: Whether clients that half-close the connection after a complete request still get a response. A
            client that is gone looks the same until the response is sent, so do not use this for endless responses.
    """

    connections: int = CONNECTIONS
    grace: float = 30
    headers: float = 10.0
    idle: int = 30
    unread: float = 30.0
    half_closed: bool = False


def bound(host: str, port: int) -> socket.socket:
    """Return a socket that listens on this address. Port 0 chooses a free port."""
    found: socket.socket | None = None
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        found = socket.socket(family, kind, protocol)
        if os.name == "posix":  # allow a port whose last server has just stopped
            found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        found.bind(address)
        found.listen(CONNECTIONS)
    except OSError as error:
        if found is not None:
            found.close()
        place = f"{host}:{port}"
        remedy = (
            "Choose another port with --port, or a free one with --port 0"
            if error.errno == errno.EADDRINUSE
            else "Give an address of this machine with --host"
        )
        message = f"cannot listen on {place}: {error.strerror}. {remedy}"
        raise file_error(ParameterError, message, place, error.errno or errno.EINVAL) from error
    found.setblocking(False)
    found.set_inheritable(True)
    return found


def url_of(listening: socket.socket) -> str:
    """Return the URL of a listening socket, with the loopback address in place of "all addresses"."""
    host, port = listening.getsockname()[:2]
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def with_header_limits(protocol: Any, settings: ServerSettings) -> Any:
    """Return uvicorn's protocol class with limits on the time and the size of headers, and on unread responses."""

    class LimitedProtocol(protocol):  # type: ignore[misc]
        _timer: asyncio.TimerHandle | None = None
        _reader: asyncio.TimerHandle | None = None
        _bytes = 0

        def _await_headers(self) -> None:
            if self._timer is None:
                self._timer = self.loop.call_later(settings.headers, self._late)

        def _late(self) -> None:
            self._timer = None
            if not self.transport.is_closing():
                self.transport.abort()

        def _arrived(self) -> None:
            self._bytes = 0
            if self._timer is not None:
                self._timer.cancel()
                self._timer = None

        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            self._await_headers()

        def data_received(self, data: bytes) -> None:
            before = self.cycle
            super().data_received(data)
            if self.cycle is not before or (before is not None and not before.response_complete):
                self._arrived()  # data of a request in progress
                return
            self._bytes += len(data)
            self._await_headers()
            if self._bytes > HEADER_BYTES and not self.transport.is_closing():
                self.transport.abort()

        def pause_writing(self) -> None:
            super().pause_writing()
            self._reader = self.loop.call_later(settings.unread, self.transport.abort)

        def resume_writing(self) -> None:
            super().resume_writing()
            if self._reader is not None:
                self._reader.cancel()
                self._reader = None

        def eof_received(self) -> Any:
            cycle = self.cycle
            answering = cycle is not None and not cycle.response_complete and not cycle.more_body
            if settings.half_closed and answering:
                cycle.keep_alive = False
                return True
            return super().eof_received()

        def connection_lost(self, exc: Exception | None) -> None:
            self._arrived()
            if self._reader is not None:
                self._reader.cancel()
            super().connection_lost(exc)

    return LimitedProtocol


def protocol_class(settings: ServerSettings) -> Any:
    """Return uvicorn's httptools protocol if that is installed, else its h11 protocol, with limits."""
    fast = importlib.util.find_spec("httptools") is not None
    module, name = ("httptools_impl", "HttpToolsProtocol") if fast else ("h11_impl", "H11Protocol")
    base = getattr(importlib.import_module(f"uvicorn.protocols.http.{module}"), name)
    return with_header_limits(base, settings)


class ConnectionLimit:
    """Rejects requests while there are too many connections or requests."""

    def __init__(self, app: ASGIApp, most: int) -> None:
        self.app, self.most = app, most
        self.state: Any = None  # of uvicorn, with both numbers

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        state = self.state
        in_use = 0 if state is None else max(len(state.connections), len(state.tasks))
        if scope["type"] != "http" or in_use <= self.most:
            await self.app(scope, receive, send)
            return
        message = "there are too many connections. Try again later"
        problem = RefusedRequest(503, "BusyError", message, {"retry-after": "1", **HEADERS}, close=True)
        await response_of(problem)(scope, receive, send)


def server_of(app: ASGIApp, settings: ServerSettings) -> Any:
    """Return a uvicorn server of an application with a lifespan, which stops without a traceback."""
    import uvicorn

    base: Any = uvicorn.Server

    class Server(base):  # type: ignore[misc]
        #: Called once, when the server is ready for requests.
        ready: Callable[[], None] | None = None

        async def startup(self, sockets: list[socket.socket] | None = None) -> None:
            await super().startup(sockets=sockets)
            if self.started and self.ready is not None:
                self.ready()

        @contextlib.contextmanager
        def capture_signals(self) -> Iterator[None]:
            """Stop the server on SIGTERM and SIGINT. A second SIGINT does not wait for requests in progress."""
            if threading.current_thread() is not threading.main_thread():
                yield
                return
            before = {
                number: signal.signal(number, self.handle_exit) for number in (signal.SIGINT, signal.SIGTERM)
            }
            try:
                yield
            finally:
                for number, handler in before.items():
                    signal.signal(number, handler)

    logging.getLogger("uvicorn.error").setLevel(logging.ERROR)  # uvicorn warns of each malformed request
    limited = ConnectionLimit(app, settings.connections)
    config = uvicorn.Config(
        limited,
        http=protocol_class(settings),
        ws="none",
        lifespan="on",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_keep_alive=settings.idle,
        timeout_graceful_shutdown=int(settings.grace),
    )
    server = Server(config)
    limited.state = server.server_state
    return server


def run(
    app: ASGIApp, listening: socket.socket, ready: Callable[[], None] | None = None, **settings: Any
) -> None:
    """Serve an application on a socket until SIGTERM or SIGINT, with these `ServerSettings`."""
    server = server_of(app, ServerSettings(**settings))
    server.ready = ready
    try:
        server.run(sockets=[listening])
    except SystemExit as error:
        raise TagwiseError("the server did not start. See its log for the reason") from error


@contextlib.contextmanager
def running(app: ASGIApp, host: str = "127.0.0.1", port: int = 0, **settings: Any) -> Iterator[str]:
    """Serve an application in a thread while the block runs, and yield its URL."""
    listening = bound(host, port)
    url = url_of(listening)
    server, up = server_of(app, ServerSettings(**settings)), threading.Event()
    server.ready = up.set

    def body() -> None:
        try:
            server.run(sockets=[listening])
        finally:
            up.set()

    thread = threading.Thread(target=body, name="tagwise-web", daemon=True)
    thread.start()
    up.wait()
    if not server.started:
        listening.close()
        raise TagwiseError("the server did not start. See its log for the reason")
    try:
        yield url
    finally:
        server.should_exit = True
        thread.join()

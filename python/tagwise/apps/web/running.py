"""A server that starts where it is told, says where, and ends well.

The application's own limits begin at the body of a request. What comes before it is held here: headers have to arrive
within `HEADER_SECONDS` and in `HEADER_BYTES`, connections are counted. uvicorn itself waits for headers for ever.
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
from typing import Any

from starlette.types import ASGIApp, Receive, Scope, Send

from tagwise.apps.web.guards import HEADERS
from tagwise.apps.web.problems import RefusedRequest, response_of
from tagwise.base.exceptions import ParameterError, TagwiseError, refusal

HEADER_SECONDS = 10.0
HEADER_BYTES = 64 << 10
CONNECTIONS = 1000
#: How long requests in flight may take to end once the server is told to.
GRACE = 30
#: How long a client may leave an answer unread.
UNREAD = 30.0
#: How long a connection may lie open between two requests.
IDLE = 30


def bound(host: str, port: int, connections: int = CONNECTIONS) -> socket.socket:
    """A socket that listens at this address; port 0 is any that is free."""
    found: socket.socket | None = None
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        found = socket.socket(family, kind, protocol)
        if os.name == "posix":  # a port whose last server has just ended is free
            found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        found.bind(address)
        found.listen(min(connections, 2048))
    except OSError as error:
        if found is not None:
            found.close()
        place = f"{host}:{port}"
        remedy = (
            "choose another with --port, or --port 0 for any that is free"
            if error.errno == errno.EADDRINUSE
            else "give an address of this machine with --host"
        )
        message = f"{place}: cannot listen there: {error.strerror}; {remedy}"
        raise refusal(ParameterError, message, place, error.errno or errno.EINVAL) from error
    found.setblocking(False)
    found.set_inheritable(True)
    return found


def url_of(listening: socket.socket) -> str:
    """Where a browser finds a socket that listens: loopback's name in place of "all addresses"."""
    host, port = listening.getsockname()[:2]
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def punctual(
    protocol: Any,
    seconds: float = HEADER_SECONDS,
    most: int = HEADER_BYTES,
    half_closed: bool = False,
    unread: float = UNREAD,
) -> Any:
    """uvicorn's protocol of a connection, with limits on the time and the bytes of a request's headers.

    unread: seconds that a client may leave an answer unread once the buffers of the connection are full.
    half_closed: who has sent a whole request and then closed his side of the connection is still answered. That he has
    gone altogether looks the same, and is found when the answer is sent: not for answers without end.
    """

    class Punctual(protocol):  # type: ignore[misc]
        _timer: asyncio.TimerHandle | None = None
        _reader: asyncio.TimerHandle | None = None
        _bytes = 0

        def _await_headers(self) -> None:
            if self._timer is None:
                self._timer = self.loop.call_later(seconds, self._late)

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
                self._arrived()  # headers of a request that is being answered, or its body
                return
            self._bytes += len(data)
            self._await_headers()
            if self._bytes > most and not self.transport.is_closing():
                self.transport.abort()

        def pause_writing(self) -> None:
            super().pause_writing()
            self._reader = self.loop.call_later(unread, self.transport.abort)

        def resume_writing(self) -> None:
            super().resume_writing()
            if self._reader is not None:
                self._reader.cancel()
                self._reader = None

        def eof_received(self) -> Any:
            cycle = self.cycle
            if half_closed and cycle is not None and not cycle.response_complete and not cycle.more_body:
                cycle.keep_alive = False
                return True
            return super().eof_received()

        def connection_lost(self, exc: Exception | None) -> None:
            self._arrived()
            if self._reader is not None:
                self._reader.cancel()
            super().connection_lost(exc)

    return Punctual


def protocol_class(
    seconds: float = HEADER_SECONDS, *, half_closed: bool = False, unread: float = UNREAD
) -> Any:
    """uvicorn's protocol by httptools if that is installed, else by h11; either with limits of headers."""
    fast = importlib.util.find_spec("httptools") is not None
    module, name = ("httptools_impl", "HttpToolsProtocol") if fast else ("h11_impl", "H11Protocol")
    base = getattr(importlib.import_module(f"uvicorn.protocols.http.{module}"), name)
    return punctual(base, seconds, half_closed=half_closed, unread=unread)


class Crowded:
    """Refuses requests while there are more connections, or requests, than there may be."""

    def __init__(self, app: ASGIApp, most: int) -> None:
        self.app, self.most = app, most
        self.state: Any = None  # uvicorn's, which knows both

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        state = self.state
        crowd = 0 if state is None else max(len(state.connections), len(state.tasks))
        if scope["type"] != "http" or crowd <= self.most:
            await self.app(scope, receive, send)
            return
        said = "there are too many connections; try again later"
        problem = RefusedRequest(503, "BusyError", said, {"retry-after": "1", **HEADERS}, close=True)
        await response_of(problem)(scope, receive, send)


def server_of(
    app: ASGIApp,
    *,
    connections: int = CONNECTIONS,
    grace: float = GRACE,
    headers: float = HEADER_SECONDS,
    idle: int = IDLE,
    half_closed: bool = False,
    unread: float = UNREAD,
) -> Any:
    """uvicorn's server of an application, which ends without a traceback when it is told to.

    Args:
        app: the application, which takes part in the protocol of lifespans.
        connections: how many there may be at once.
        grace: seconds that requests in flight have to end.
        headers: seconds that the headers of a request have to arrive.
        idle: seconds that a connection may be open without a request.
        half_closed: answer those who have closed their side of a connection behind a request.
        unread: seconds that a client may leave an answer unread.
    """
    import uvicorn

    base: Any = uvicorn.Server

    class Server(base):  # type: ignore[misc]
        #: Called once, when the first request can be answered.
        ready: Callable[[], None] | None = None

        async def startup(self, sockets: list[socket.socket] | None = None) -> None:
            await super().startup(sockets=sockets)
            if self.started and self.ready is not None:
                self.ready()

        @contextlib.contextmanager
        def capture_signals(self) -> Iterator[None]:
            """SIGTERM and SIGINT end the server; a second SIGINT does not wait for requests in flight."""
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

    logging.getLogger("uvicorn.error").setLevel(logging.ERROR)  # each malformed request is a warning there
    crowded = Crowded(app, connections)
    config = uvicorn.Config(
        crowded,
        http=protocol_class(headers, half_closed=half_closed, unread=unread),
        ws="none",
        lifespan="on",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_keep_alive=idle,
        timeout_graceful_shutdown=int(grace),
    )
    server = Server(config)
    crowded.state = server.server_state
    return server


def run(
    app: ASGIApp,
    listening: socket.socket,
    *,
    ready: Callable[[], None] | None = None,
    connections: int = CONNECTIONS,
    grace: float = GRACE,
    half_closed: bool = False,
    unread: float = UNREAD,
) -> None:
    """Serve an application at a socket until SIGTERM or SIGINT; requests in flight have `grace` seconds to end."""
    server = server_of(app, connections=connections, grace=grace, half_closed=half_closed, unread=unread)
    server.ready = ready
    try:
        server.run(sockets=[listening])
    except SystemExit as error:
        raise TagwiseError("the server could not start; its log says why") from error


@contextlib.contextmanager
def running(app: ASGIApp, host: str = "127.0.0.1", port: int = 0, **settings: Any) -> Iterator[str]:
    """Serve an application in a thread while the block runs; its URL. It has ended when the block has."""
    listening = bound(host, port)
    url = url_of(listening)
    server, up = server_of(app, **settings), threading.Event()
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
        raise TagwiseError("the server could not start; its log says why")
    try:
        yield url
    finally:
        server.should_exit = True
        thread.join()

"""Plain requests: those that arrive in one piece, with a head like all others, and are soon answered.

A server of taggers spends more on a request's way through tasks, scopes and messages than on its labels. What is plain
goes from the socket to the application and back without any of them; whatever is not, in its head or in its body, goes
the ordinary way from its first byte, where all that can be wrong is told. The head of a plain request has nothing but
headers of `NAMES`, each once, and a body whose length is said: less than what HTTP allows, so that what is taken here
is what any reader of HTTP would take it for (no request hides in another).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any, Protocol

from tagwise.web.guards import HEADERS, NO_STORE
from tagwise.web.problems import JSON

#: Headers of a plain request: nothing that says who asks, for whom, or how a body is made up.
NAMES = (
    "host",
    "content-type",
    "content-length",
    "accept",
    "accept-encoding",
    "accept-language",
    "user-agent",
)
KINDS = (JSON, b"application/x-www-form-urlencoded")  # curl -d says the second of anything
#: Bytes of such a head; heads that are known, which are few, since clients repeat them.
MOST, KNOWN = 1024, 4096
_LINE = rb"(?:(?:" + "|".join(NAMES).encode() + rb"): ?[!-~](?:[ -~]*[!-~])?|connection: ?keep-alive)\r\n"
_HEAD = re.compile(rb"POST (/[a-z]+) HTTP/1\.1\r\n((?:" + _LINE + rb")+)\r\n", re.IGNORECASE)
_HEADERS = ((b"content-type", JSON), *HEADERS, NO_STORE)


class Head:
    """What the head of a plain request says: the path, the host, the length of the body."""

    def __init__(self, path: bytes, host: bytes, length: int) -> None:
        self.path, self.host, self.length = path, host, length

    @staticmethod
    def of(head: bytes) -> Head | None:
        """The head of these bytes, with the empty line; None where it is not plain."""
        found = _HEAD.fullmatch(head)
        if found is None or not found[1].islower():
            return None
        said: dict[bytes, bytes] = {}
        for line in found[2].split(b"\r\n")[:-1]:
            name, _, value = line.partition(b":")
            if (name := name.lower()) in said:
                return None
            said[name] = value.strip()
        host, length = said.get(b"host"), said.get(b"content-length", b"")
        kind = said.get(b"content-type", JSON).split(b";")[0].strip().lower()
        if host is None or not (length.isdigit() and len(length) < 10) or kind not in KINDS:
            return None
        return Head(found[1], host, int(length))


Told = Callable[[bytes | None], None]


class Plain(Protocol):
    """An application's way with plain requests: the attribute `plain` of an application of ASGI."""

    def take(self, data: bytes, told: Told) -> bool:
        """Whether `data` is a plain request; if so, `told` is called later, once: the body of the answer, or None."""


def head_of(common: Iterable[tuple[bytes, bytes]]) -> bytes:
    """An answer as it goes over the wire, up to its length; common: headers of all answers, the date."""
    lines = (name + b": " + value + b"\r\n" for name, value in (*common, *_HEADERS))
    return b"".join((b"HTTP/1.1 200 OK\r\n", *lines, b"content-length: "))


def with_plain(protocol: Any, plain: Plain, connections: int) -> Any:
    """uvicorn's protocol of a connection by httptools, with a shorter way for plain requests.

    connections: beyond so many at once, all requests go the ordinary way, which refuses them.
    """

    head: tuple[Any, bytes] = ((), b"")  # of answers, with the headers that it is made of: the date changes

    class WithPlain(protocol):  # type: ignore[misc]
        _inside = False  # whether the parser is inside a request
        _flying: bytes | None = None  # the plain request that is not answered yet
        _behind = b""  # what arrived behind it
        _last = False  # whether the connection ends with the next answer
        _active = 0.0

        def on_message_begin(self) -> None:
            self._inside = True
            super().on_message_begin()

        def on_message_complete(self) -> None:
            super().on_message_complete()
            self._inside = False

        def _is_free(self) -> bool:
            """Whether a request may begin here, and be answered at once."""
            cycle = self.cycle
            return (
                not self._inside
                and (cycle is None or cycle.response_complete)
                and not self._last
                and len(self.connections) <= connections
                and not self.flow.write_paused
                and not self.transport.is_closing()
            )

        def data_received(self, data: bytes) -> None:
            if self._flying is not None:
                self._behind += data
                self.transport.pause_reading()
            elif self._is_free() and plain.take(data, self._answered):
                self._flying = data
                self._arrived()
            else:
                super().data_received(data)

        def _answered(self, body: bytes | None) -> None:
            data, self._flying = self._flying, None
            if self.transport.is_closing():
                return
            if body is None:
                super().data_received(data)
            else:
                nonlocal head
                if head[0] is not self.server_state.default_headers:
                    common = self.server_state.default_headers
                    head = common, head_of(common)
                self.transport.write(b"%b%d\r\n\r\n%b" % (head[1], len(body), body))
                self.server_state.total_requests += 1
                self._active = self.loop.time()
                if self._last and not self._behind:
                    self.transport.close()
                elif self.timeout_keep_alive_task is None:
                    self._idle_for(self.timeout_keep_alive)
            if self._behind:
                behind, self._behind = self._behind, b""
                self.transport.resume_reading()
                last, self._last = self._last, False
                self.data_received(behind)
                if last:
                    self.shutdown()

        def _idle_for(self, seconds: float) -> None:
            self.timeout_keep_alive_task = self.loop.call_later(seconds, self.timeout_keep_alive_handler)

        def timeout_keep_alive_handler(self) -> None:
            """One timer serves many plain requests: where one came meanwhile, it goes on."""
            left = self._active + self.timeout_keep_alive - self.loop.time()
            if self._flying is not None or left > 0.01:
                self._idle_for(max(left, 0.01))
            else:
                super().timeout_keep_alive_handler()

        def shutdown(self) -> None:
            """What is in flight is answered before the connection ends."""
            if self._flying is not None:
                self._last = True
            else:
                super().shutdown()

        def eof_received(self) -> Any:
            if self._flying is not None:
                self._last = True
                return True
            return super().eof_received()

        def connection_lost(self, exc: Exception | None) -> None:
            self._behind = b""
            super().connection_lost(exc)

    return WithPlain


__all__ = ["KNOWN", "MOST", "Head", "Plain", "Told", "with_plain"]

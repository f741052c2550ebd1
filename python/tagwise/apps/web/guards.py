"""Who may ask, and what a browser may do with the answer. Plain ASGI.

- **Host**: only names that are listed, against DNS rebinding: a page whose name comes to mean 127.0.0.1 still sends its
  own name. Where a server listens beyond loopback, addresses are taken too: no page can make an address mean another.
- **Origin**: a request that changes something and comes from a page must come from a page of this server.
- **Token**: random, in the URL that is printed; the first visit changes it for a cookie, HttpOnly and SameSite=Strict,
  and leads on to the same address without it. Programs send ``Authorization: Bearer``.
- **Headers**: a policy without inline script and without any other host, no sniffing of types, no referrer, no frames.
"""

from __future__ import annotations

import hmac
import ipaddress
import re
import secrets
from collections.abc import Iterable
from urllib.parse import parse_qsl, quote, urlencode

from tagwise.apps.web.asgi import App, Headers, Message, Receive, Scope, Send, header, headers_of
from tagwise.apps.web.problems import Problem, respond

LOOPBACK = ("127.0.0.1", "localhost", "::1")
#: Methods that change nothing, by RFC 9110, 9.2.1.
SAFE = frozenset({"GET", "HEAD", "OPTIONS"})
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; "
    "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
HEADERS = (
    (b"content-security-policy", POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"x-frame-options", b"DENY"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
)
NO_STORE = (b"cache-control", b"no-store")
EVERY = (*HEADERS, NO_STORE)
#: host, or [address of IPv6], and a port perhaps.
_HOST = re.compile(r"(?:\[([0-9a-fA-F:.]+)\]|([A-Za-z0-9._-]+))(?::[0-9]{1,5})?")


def new_token() -> str:
    """A token that nobody guesses: 32 random bytes."""
    return secrets.token_urlsafe(32)


def host_name(value: str) -> str | None:
    """The name in a Host header, in lower case and without port; None where it is no such header."""
    found = _HOST.fullmatch(value)
    return None if found is None else (found[1] or found[2]).lower().rstrip(".")


def is_address(name: str) -> bool:
    """Whether a name is an address of IPv4 or IPv6."""
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def hosts_for(bound: str, told: Iterable[str] = ()) -> tuple[frozenset[str], bool]:
    """Names that a server bound to this address answers to, and whether it takes any address as well."""
    inside = bound in LOOPBACK or (is_address(bound) and ipaddress.ip_address(bound).is_loopback)
    return frozenset({*LOOPBACK, bound.lower(), *(name.lower() for name in told)}), not inside


def with_headers(given: Iterable[tuple[bytes, bytes]]) -> Headers:
    """Headers of an answer with those of every answer that it lacks."""
    names = {name for name, _ in given}
    return [*given, *(pair for pair in EVERY if pair[0] not in names)]


class Guards:
    """Puts the guards around an application.

    Args:
        app: what is guarded.
        bound: the address that the server listens on, which says what names it answers to.
        hosts: further names that it answers to; "*" for any, where a proxy in front looks at them.
        token: what a visitor has to know; None for everybody.
        open_paths: paths that need no token: a probe of health.
    """

    def __init__(
        self,
        app: App,
        bound: str = "127.0.0.1",
        hosts: Iterable[str] = (),
        token: str | None = None,
        open_paths: Iterable[str] = (),
    ) -> None:
        self.app, self.token, self.open_paths = app, token, frozenset(open_paths)
        self.hosts, self.addresses = hosts_for(bound, hosts)
        self._fine: set[bytes] = set()  # Host headers that were looked at: few, and bounded

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            return await self.app(scope, receive, send)
        if scope["type"] != "http":  # no websockets are spoken here
            return await send({"type": "websocket.close", "code": 1008})

        started = False

        async def sending(message: Message) -> None:
            nonlocal started
            if message["type"] == "http.response.start":
                started = True
                message["headers"] = with_headers(message.get("headers", ()))
            await send(message)

        try:
            return await self._through(scope, receive, sending)
        except Exception as error:
            return await respond(error, scope, sending, started)

    async def _through(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a request through, lead it on, or refuse it."""
        self.check_origin(scope, self.check_host(scope))
        if (headers := self.visit(scope)) is not None:
            await send({"type": "http.response.start", "status": 303, "headers": headers})
            return await send({"type": "http.response.body", "body": b""})
        if not self.knows_token(scope):
            raise Problem(
                401,
                "TokenError",
                "open the URL that was printed where the server was started: it has the token of this session",
                [(b"www-authenticate", b"Bearer")],
                close=True,
            )
        return await self.app(scope, receive, send)

    def check_host(self, scope: Scope) -> bytes:
        """The Host header, where it is one of ours."""
        found = headers_of(scope, b"host")
        if len(found) != 1:
            raise Problem(400, "HostError", "a request has one Host header", close=True)
        if not self.is_ours(found[0]):
            raise Problem(
                421,
                "HostError",
                f"this server does not answer to the name {found[0][:100].decode('latin-1')!r}; "
                "start it with --allow-host NAME to let it",
                close=True,
            )
        return found[0]

    def is_ours(self, host: bytes) -> bool:
        """Whether a Host header has a name that the server answers to."""
        if host in self._fine:
            return True
        name = host_name(host.decode("latin-1"))
        known = name is not None and (
            "*" in self.hosts or name in self.hosts or (self.addresses and is_address(name))
        )
        if known and len(self._fine) < 64:
            self._fine.add(host)
        return known

    @staticmethod
    def check_origin(scope: Scope, host: bytes) -> None:
        """A request that changes something comes from a page of ours, or from no page at all."""
        if scope["method"] in SAFE:
            return
        origin = header(scope, b"origin")
        if origin is not None:
            scheme, _, place = origin.partition(b"://")
            mine = scheme in (b"http", b"https") and place.lower() == host.lower()
        else:
            mine = header(scope, b"sec-fetch-site") in (None, b"same-origin", b"none")
        if not mine:
            raise Problem(403, "OriginError", "a page of another site may not send this request", close=True)

    def cookie(self, scope: Scope) -> str:
        """The cookie's name: cookies of one host are shared by all its ports, so that the port is in it."""
        server = scope.get("server")
        return f"tagwise_{server[1] if server else 0}"

    def knows_token(self, scope: Scope) -> bool:
        """Whether a request brings the token: in the cookie, or as a bearer."""
        if self.token is None or scope["path"] in self.open_paths:
            return True
        given = [
            value.strip()[len(self.cookie(scope)) + 1 :]
            for line in headers_of(scope, b"cookie")
            for value in line.decode("latin-1").split(";")
            if value.strip().startswith(self.cookie(scope) + "=")
        ]
        bearer = (header(scope, b"authorization") or b"").decode("latin-1")
        if bearer[:7].lower() == "bearer ":
            given.append(bearer[7:].strip())
        return any(self._is_token(value) for value in given)

    def _is_token(self, value: str) -> bool:
        return self.token is not None and hmac.compare_digest(value.encode(), self.token.encode())

    def visit(self, scope: Scope) -> list[tuple[bytes, bytes]] | None:
        """What sends a visitor with the right token in the URL on to the page, with a cookie; None for any other."""
        if (
            self.token is None
            or scope["method"] not in ("GET", "HEAD")
            or b"token=" not in scope["query_string"]
        ):
            return None
        pairs = parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True)
        if not any(name == "token" and self._is_token(value) for name, value in pairs):
            return None
        rest = urlencode([(name, value) for name, value in pairs if name != "token"])
        # one slash in front, so that a path such as //elsewhere stays a path of this server
        path = "/" + quote(scope["path"].lstrip("/\\"), safe="/~!$&'()*+,;=:@")
        cookie = f"{self.cookie(scope)}={self.token}; HttpOnly; SameSite=Strict; Path=/"
        return [
            (b"location", (path + ("?" + rest if rest else "")).encode()),
            (b"set-cookie", cookie.encode()),
            (b"content-length", b"0"),
        ]


__all__ = ["HEADERS", "LOOPBACK", "POLICY", "Guards", "host_name", "hosts_for", "is_address", "new_token"]

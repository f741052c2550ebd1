"""Access checks and security headers as ASGI middleware.

- **Host**: only listed names are accepted, against DNS rebinding: a page whose name resolves to 127.0.0.1 still sends
  its own name. A server that listens beyond loopback also accepts IP addresses, which cannot be rebound.
- **Origin**: a request that changes state and comes from a page must come from a page of this server.
- **Token**: a random token is in the printed URL. The first visit exchanges it for a cookie (HttpOnly, SameSite=Strict)
  and redirects to the same address without it. Programs send ``Authorization: Bearer``.
- **Headers**: a content security policy without inline scripts and other hosts, no MIME sniffing, referrer or frames.
"""

from __future__ import annotations

import hmac
import ipaddress
import re
import secrets
from collections.abc import Iterable
from urllib.parse import quote, urlencode

from starlette.datastructures import Headers
from starlette.requests import HTTPConnection
from starlette.responses import RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tagwise.apps.web.problems import RefusedRequest, page_of, respond

LOOPBACK = ("127.0.0.1", "localhost", "::1")
#: Safe methods, RFC 9110, 9.2.1.
SAFE = frozenset({"GET", "HEAD", "OPTIONS"})
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; "
    "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
#: Default headers of every response.
HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "x-frame-options": "DENY",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}
_RAW = [(name.encode(), value.encode()) for name, value in HEADERS.items()]
#: Host name or [IPv6 address], with an optional port.
_HOST = re.compile(r"(?:\[([0-9a-fA-F:.]+)\]|([A-Za-z0-9._-]+))(?::[0-9]{1,5})?")


def new_token() -> str:
    """Return a token of 32 random bytes."""
    return secrets.token_urlsafe(32)


def host_name(value: str) -> str | None:
    """Return the name in a Host header, in lower case and without the port, or None if the header is malformed."""
    found = _HOST.fullmatch(value)
    return None if found is None else (found[1] or found[2]).lower().rstrip(".")


def is_address(name: str) -> bool:
    """Return whether a name is an IPv4 or IPv6 address."""
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def hosts_for(bound: str, names: Iterable[str] = ()) -> tuple[frozenset[str], bool]:
    """Return the host names that a server on this address accepts, and whether it accepts all IP addresses."""
    inside = bound in LOOPBACK or (is_address(bound) and ipaddress.ip_address(bound).is_loopback)
    return frozenset({*LOOPBACK, bound.lower(), *(name.lower() for name in names)}), not inside


class Guards:
    """Middleware with the checks of this module.

    Args:
        app: Application to protect.
        bound: Address that the server listens on, which determines the accepted host names.
        hosts: Additional host names, or "*" for any if a proxy checks them.
        token: Token that visitors need, or None for public access.
        open_paths: Paths that need no token, such as health checks.
    """

    def __init__(
        self,
        app: ASGIApp,
        bound: str = "127.0.0.1",
        hosts: Iterable[str] = (),
        token: str | None = None,
        open_paths: Iterable[str] = (),
    ) -> None:
        self.app, self.token, self.open_paths = app, token, frozenset(open_paths)
        self.hosts, self.addresses = hosts_for(bound, hosts)
        self._accepted: set[str] = set()  # Host headers that passed the check, in bounded number

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        if scope["type"] != "http":  # websockets are not supported
            await send({"type": "websocket.close", "code": 1008})
            return

        sent = "nothing"

        async def sending(message: Message) -> None:
            nonlocal sent
            if message["type"] == "http.response.start":
                headers = list(message.get("headers", ()))
                names = {name for name, _ in headers}
                message["headers"] = headers + [pair for pair in _RAW if pair[0] not in names]
            sent = (
                "all" if message["type"] == "http.response.body" and not message.get("more_body") else "part"
            )
            await send(message)

        try:
            await self._handle(scope, receive, sending)
            return
        except Exception as error:
            await respond(error, scope, receive, sending, sent)

    async def _handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request to the application, redirect it, or reject it."""
        scope["app"] = self.app  # Starlette's router then raises for unknown paths and methods
        self.check_origin(scope, self.check_host(scope))
        if (redirect := self.visit(scope)) is not None:
            await redirect(scope, receive, send)
            return
        if not self.has_token(scope):
            problem = RefusedRequest(
                401,
                "TokenError",
                "the token is missing or wrong. Open the URL that the server printed, or send it as a bearer token",
                {"www-authenticate": "Bearer"},
                close=True,
            )
            if scope["path"] == "/" and "text/html" in Headers(scope=scope).get("accept", ""):
                await page_of(problem)(scope, receive, send)
                return
            raise problem
        await self.app(scope, receive, send)

    def check_host(self, scope: Scope) -> str:
        """Return the Host header, or raise a RefusedRequest if it is not accepted."""
        found = Headers(scope=scope).getlist("host")
        if len(found) != 1:
            raise RefusedRequest(400, "HostError", f"{len(found)} Host headers. Send one", close=True)
        if not self.accepts_host(found[0]):
            raise RefusedRequest(
                421,
                "HostError",
                f"this server does not accept the host name {found[0][:100]!r}. "
                "Use the URL that it printed, or start tagwise serve with --allow-host NAME",
                close=True,
            )
        return str(found[0])

    def accepts_host(self, host: str) -> bool:
        """Return whether the name in a Host header is accepted."""
        if host in self._accepted:
            return True
        name = host_name(host)
        accepted = name is not None and (
            "*" in self.hosts or name in self.hosts or (self.addresses and is_address(name))
        )
        if accepted and len(self._accepted) < 64:
            self._accepted.add(host)
        return accepted

    @staticmethod
    def check_origin(scope: Scope, host: str) -> None:
        """Raise a RefusedRequest if a request that changes state comes from a page of another origin."""
        if scope["method"] in SAFE:
            return
        headers = Headers(scope=scope)
        if (origin := headers.get("origin")) is not None:
            scheme, _, place = origin.partition("://")
            mine = scheme in ("http", "https") and place.lower() == host.lower()
        else:
            mine = headers.get("sec-fetch-site") in (None, "same-origin", "none")
        if not mine:
            raise RefusedRequest(
                403,
                "OriginError",
                "a page of another site may not send this request. Use a page of this server",
                close=True,
            )

    def cookie(self, scope: Scope) -> str:
        """Return the name of the cookie. It contains the port, because all ports of a host share cookies."""
        server = scope.get("server")
        return f"tagwise_{server[1] if server else 0}"

    def has_token(self, scope: Scope) -> bool:
        """Return whether a request has the token, in the cookie or as a bearer token."""
        if self.token is None or scope["path"] in self.open_paths:
            return True
        request = HTTPConnection(scope)
        candidates = [request.cookies.get(self.cookie(scope), "")]
        bearer = request.headers.get("authorization", "")
        if bearer[:7].lower() == "bearer ":
            candidates.append(bearer[7:].strip())
        return any(self._is_token(value) for value in candidates)

    def _is_token(self, value: str) -> bool:
        return self.token is not None and hmac.compare_digest(value.encode(), self.token.encode())

    def visit(self, scope: Scope) -> Response | None:
        """Redirect a visitor with the right token in the URL to the page without it, or return None."""
        if self.token is None or scope["method"] not in ("GET", "HEAD"):
            return None
        pairs = HTTPConnection(scope).query_params.multi_items()
        if not any(name == "token" and self._is_token(value) for name, value in pairs):
            return None
        query = urlencode([(name, value) for name, value in pairs if name != "token"])
        # A single leading slash, so that a path such as //elsewhere is not a redirect to another host.
        path = "/" + quote(scope["path"].lstrip("/\\"), safe="/~!$&'()*+,;=:@")
        response = RedirectResponse(path + ("?" + query if query else ""), 303)
        response.set_cookie(self.cookie(scope), self.token, httponly=True, samesite="strict")
        return response

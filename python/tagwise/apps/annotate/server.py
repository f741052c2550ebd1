"""The server of a session: guarded, on this machine unless told otherwise, with a token in the URL that it prints."""

from __future__ import annotations

import sys
from collections.abc import Callable

from starlette.types import ASGIApp

from tagwise.apps.annotate.app import MOST_FILE, Annotate
from tagwise.apps.annotate.session import Session
from tagwise.apps.web import running
from tagwise.apps.web.guards import Guards, new_token
from tagwise.apps.web.limits import Limited, RequestLimits

#: Seconds that requests in flight have when the server is told to end: pages listen for ever.
GRACE = 1.0
#: Seconds after which a thread that works in Python lets another one: who waits for an answer waits for no slice of the
#: queue. Python's own are 5 ms, each time that the core's work ends.
SWITCH = 0.0005


def guarded(session: Session, token: str, host: str = "127.0.0.1") -> ASGIApp:
    """The application behind its guards."""
    limited = Limited(Annotate(session).app(), RequestLimits(body=MOST_FILE, seconds=60.0))
    return Guards(limited, host, token=token)


def run(session: Session, host: str, port: int, say: Callable[[str], None]) -> None:
    """Serve until the process is told to end; `say` is given the address with its token."""
    sys.setswitchinterval(SWITCH)
    token = new_token()
    listening = running.bound(host, port)
    url = f"{running.url_of(listening)}/?token={token}"
    running.run(
        guarded(session, token, host),
        listening,
        ready=lambda: say(f"open {url}\nyour work is kept in {session.work.folder}; Ctrl-C ends"),
        grace=GRACE,
    )

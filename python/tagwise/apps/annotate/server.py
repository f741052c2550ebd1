"""The server of a labelling session, on loopback by default and with a token in the printed URL."""

from __future__ import annotations

import sys
from collections.abc import Callable

from starlette.types import ASGIApp

from tagwise.apps.annotate.app import MOST_FILE, Annotate
from tagwise.apps.annotate.session import Session
from tagwise.apps.web import running
from tagwise.apps.web.guards import Guards, new_token
from tagwise.apps.web.limits import Limited, RequestLimits

#: Seconds for requests in progress after a stop. Event streams of pages do not end by themselves.
GRACE = 1.0
#: Switch interval of Python threads in seconds, so that requests do not wait for ranking in the background. Python's
#: default is 5 ms, each time that a call of the core returns.
SWITCH = 0.0005


def guarded(session: Session, token: str, host: str = "127.0.0.1") -> ASGIApp:
    """Return the application with its guards."""
    limited = Limited(Annotate(session).app(), RequestLimits(body=MOST_FILE, seconds=60.0))
    return Guards(limited, host, token=token)


def run(session: Session, host: str, port: int, say: Callable[[str], None]) -> None:
    """Serve until the process is stopped. `say` is called with the URL and its token."""
    sys.setswitchinterval(SWITCH)
    token = new_token()
    listening = running.bound(host, port)
    url = f"{running.url_of(listening)}/?token={token}"
    running.run(
        guarded(session, token, host),
        listening,
        ready=lambda: say(f"open {url}\nlabels are saved in {session.work.folder}. Press Ctrl-C to stop"),
        grace=GRACE,
    )

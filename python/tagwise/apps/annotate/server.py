"""The server of a labelling session, on loopback by default and with a token in the printed URL."""

from __future__ import annotations

import contextlib
import os
import re
import sys
from collections.abc import Callable
from pathlib import Path

from starlette.types import ASGIApp

from tagwise.apps.annotate.app import MOST_FILE, Annotate
from tagwise.apps.annotate.session import Session
from tagwise.apps.web import running
from tagwise.apps.web.guards import Guards, new_token
from tagwise.apps.web.limits import Limited, RequestLimits
from tagwise.base.exceptions import FileError, TagwiseError
from tagwise.base.files.regular import open_regular

#: File with the token, in the folder of the project.
TOKEN = "token"
#: Seconds for requests in progress after a stop. Event streams of pages do not end by themselves.
GRACE = 1.0
#: Switch interval of Python threads in seconds, so that requests do not wait for ranking in the background. Python's
#: default is 5 ms, each time that a call of the core returns.
SWITCH = 0.0005


def kept_token(folder: Path) -> str:
    """Return the token of a project, which is kept so that open pages work after a restart of the server.

    The file is readable by its owner only and contains its own inode number. A copy of the folder, or a folder from
    somebody else, has another one and gets a new token.
    """
    path = folder / TOKEN
    with contextlib.suppress(TagwiseError, ValueError, OSError):
        with open_regular(path, 200, FileError, "", follow=False) as file:
            found = os.fstat(file.fileno())
            inode, token = file.read().decode("ascii").split()
        private = os.name != "posix" or (found.st_mode & 0o077 == 0 and found.st_uid == os.getuid())
        if private and int(inode) == found.st_ino and re.fullmatch(r"[\w-]{43}", token):
            return token
    token = new_token()
    with contextlib.suppress(OSError):  # a folder that cannot be written to: the token is that of this run
        with contextlib.suppress(FileNotFoundError):
            path.unlink()
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(handle, "w", encoding="ascii") as out:
            out.write(f"{os.fstat(handle).st_ino} {token}\n")
    return token


def guarded(session: Session, token: str, host: str = "127.0.0.1") -> ASGIApp:
    """Return the application with its guards."""
    limited = Limited(Annotate(session).app(), RequestLimits(body=MOST_FILE, seconds=60.0))
    return Guards(limited, host, token=token)


def run(session: Session, host: str, port: int, say: Callable[[str], None]) -> None:
    """Serve until the process is stopped. `say` is called with the URL and its token."""
    sys.setswitchinterval(SWITCH)
    token = kept_token(session.work.folder)
    listening = running.bound(host, port)
    url = f"{running.url_of(listening)}/?token={token}"
    running.run(
        guarded(session, token, host),
        listening,
        ready=lambda: say(f"open {url}\nlabels are saved in {session.work.folder}. Press Ctrl-C to stop"),
        grace=GRACE,
    )

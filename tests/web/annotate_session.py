"""Helpers for tests of `tagwise annotate`: sentences, a session and requests to it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import tagwise as tw
from tagwise.apps.annotate.folder import ProjectSettings
from tagwise.apps.annotate.project import Work
from tagwise.apps.annotate.session import Session
from tests.web.asgi_client import AppResponse, call_app

TOKEN = "t" * 43
NAMES, PLACES = ["Peter", "Anna", "Mary", "John"], ["Paris", "Rome", "London", "Oslo"]
#: Sentences of a new session. The last one is hostile.
TEXT = [[a, "went", "to", b, "."] for a in NAMES for b in PLACES]
HOSTILE = [
    "<script>window.hit=1</script>",
    '"onload=window.hit=1',
    "\u202egnp.exe",
    "<img/src=x/onerror=window.hit=1>",
]
TEXT.append(HOSTILE)


def gold(tokens: list[str]) -> list[dict[str, Any]]:
    """Return the correct spans of a sentence."""
    kinds = {**dict.fromkeys(NAMES, "PER"), **dict.fromkeys(PLACES, "LOC")}
    return [{"begin": t, "end": t + 1, "label": kinds[w]} for t, w in enumerate(tokens) if w in kinds]


def session_of(folder: Path, labels: tuple[str, ...] = ("PER", "LOC"), **settings: Any) -> Session:
    """Return a session on a folder. A new folder gets the sentences of TEXT."""
    work = Work(folder, ProjectSettings(labels=list(labels)))
    if not work.sentences:
        work.add(tw.Corpus.from_lists(TEXT), "text")
    return Session(work, **settings)


def send(app: Any, method: str, path: str, value: Any = None, **changed: Any) -> AppResponse:
    """Send a request with the token, and with `value` as a JSON body if it is not None."""
    headers = {
        "authorization": f"Bearer {TOKEN}",
        "content-type": "application/json",
        **changed.pop("headers", {}),
    }
    headers = {name: text for name, text in headers.items() if text is not None}
    path, _, query = path.partition("?")
    body = changed.pop("body", b"" if value is None else json.dumps(value).encode())
    return call_app(app, method, path, headers, body, query, **changed)

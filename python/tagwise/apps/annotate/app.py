"""A labelling session over HTTP: the page, its assets and a JSON interface, with the guards and errors of `web`."""

from __future__ import annotations

import asyncio
import json
import tempfile
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from importlib import resources
from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from tagwise.apps.annotate.agreement import agreement
from tagwise.apps.annotate.comparing import MOST as MOST_LEARNERS
from tagwise.apps.annotate.comparing import Comparing
from tagwise.apps.annotate.display import displayed
from tagwise.apps.annotate.exports import EXPORTS
from tagwise.apps.annotate.folder import (
    LONGEST_LABEL,
    LONGEST_TEXT,
    MOST_LABELS,
    MOST_SENTENCES,
    MOST_TOKENS,
)
from tagwise.apps.annotate.guidelines import read_guidelines
from tagwise.apps.annotate.imports import read_document
from tagwise.apps.annotate.ranking import STRATEGIES
from tagwise.apps.annotate.session import Conflict, Session
from tagwise.apps.annotate.views import LONGEST_SEARCH
from tagwise.apps.annotate.why import spans_of
from tagwise.apps.web.problems import HANDLERS, RefusedRequest, content_of, parsed_body
from tagwise.base.colours import PALETTE, tint
from tagwise.base.domains import Choice, Domain, Integer, ListOf, Record, Text
from tagwise.base.exceptions import ParameterError
from tagwise.base.parameters import meant
from tagwise.corpus.formats import FORMATS, UNKNOWN
from tagwise.corpus.sentence import Corpus

#: Maximum bytes of a request and of an added file, and maximum number of listening pages.
MOST_BODY, MOST_FILE, MOST_LISTENERS = 1 << 20, 1 << 26, 16
#: Files of the page. No other file is served.
SCRIPTS = (
    "main",
    "actions",
    "conflict",
    "dom",
    "drafts",
    "editor",
    "end",
    "guidelines",
    "keys",
    "labels",
    "lists",
    "panels",
    "pointer",
    "store",
)
STYLES = ("style", "colours", "sentence", "panels")
FILES = {
    **{f"{name}.css": "text/css" for name in STYLES},
    **{f"{name}.js": "text/javascript" for name in SCRIPTS},
}


def asset(name: str) -> bytes:
    """Return a file of the page. The colours of labels are those of notebooks."""
    if name == "colours.css":
        return "".join(f".c{i} {{ background: {tint(i)}; }}\n" for i in range(len(PALETTE))).encode()
    return (resources.files("tagwise.apps.annotate") / "static" / name).read_bytes()


async def body_of(request: Request, most: int) -> bytes:
    """Return the body of a request, or raise a RefusedRequest if it is too long."""
    out = bytearray()
    async for chunk in request.stream():
        out += chunk
        if len(out) > most:
            raise RefusedRequest(
                413,
                "BodyError",
                f"the body of the request is longer than {most:,} bytes. Send a smaller one",
                close=True,
            )
    return bytes(out)


#: Domains of the bodies of requests.
_ID: dict[str, Domain] = {"id": Integer(0, MOST_SENTENCES)}
_SPAN = Record(
    {"begin": Integer(0, MOST_TOKENS), "end": Integer(0, MOST_TOKENS), "label": Text(most=LONGEST_LABEL)}
)
_NAME = Text(most=LONGEST_LABEL)
_THEN: dict[str, Domain] = {"then": Integer(0, MOST_SENTENCES)}
_FOCUS: dict[str, Domain] = {"focus": Integer(0, MOST_SENTENCES)}
NOTHING: Domain = Record()
ACCEPT: Domain = Record(
    {**_ID, "spans": ListOf(_SPAN, high=MOST_TOKENS)}, {"version": Integer(0, 2**53), **_THEN}
)
MARK: Domain = Record(_ID, _THEN)
COMMENT: Domain = Record({**_ID, "text": Text(most=LONGEST_TEXT)})
LABEL: Domain = Record({"name": _NAME}, _FOCUS)
CHANGE: Domain = Record(
    {"label": _NAME},
    {
        "name": _NAME,
        "place": Integer(0, MOST_LABELS),
        "colour": Integer(0, len(PALETTE) - 1),
        "key": Text(most=1),
        "description": Text(most=LONGEST_TEXT),
        **_FOCUS,
    },
)
DELETE: Domain = Record({"label": _NAME}, _FOCUS)
STRATEGY: Domain = Record({"strategy": Choice(tuple(STRATEGIES))})
MISTAKES: Domain = Record(may={"most": Integer(1, 1000)})
COMPARE: Domain = Record(may={"learners": ListOf(Text(most=100), low=1, high=MOST_LEARNERS)})


Action = Callable[[Session, dict[str, Any]], Any]
#: Requests that change something: the domain of the body, and what is done.
ACTIONS: dict[str, tuple[Domain, Action]] = {
    "accept": (ACCEPT, lambda s, x: s.accept(x["id"], x["spans"], x.get("version"), x.get("then"))),
    "skip": (MARK, lambda s, x: s.mark(x["id"], "skip", x.get("then"))),
    "flag": (MARK, lambda s, x: s.mark(x["id"], "flag", x.get("then"))),
    "reject": (MARK, lambda s, x: s.mark(x["id"], "reject", x.get("then"))),
    "comment": (COMMENT, lambda s, x: s.comment(x["id"], x["text"])),
    "undo": (NOTHING, lambda s, x: s.undo()),
    "redo": (NOTHING, lambda s, x: s.redo()),
    "label": (LABEL, lambda s, x: s.add_label(x["name"], x.get("focus"))),
    "label/change": (CHANGE, lambda s, x: s.change_label(**{"name": None, **x})),
    "label/delete": (DELETE, lambda s, x: s.delete_label(**x)),
    "strategy": (STRATEGY, lambda s, x: s.choose(x["strategy"])),
    "mistakes": (MISTAKES, lambda s, x: {"suspects": s.mistakes(x.get("most"))}),
}


async def json_of(request: Request, domain: Domain) -> dict[str, Any]:
    """Return the JSON object in the body of a request, checked against its domain."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json":
        raise RefusedRequest(
            415, "TypeError", "send JSON, with the content type application/json", close=True
        )
    found: dict[str, Any] = parsed_body(await body_of(request, MOST_BODY) or b"{}", domain)
    return found


def number_of(request: Request, name: str) -> int:
    """Return an integer of the query string."""
    text = request.query_params.get(name, "")
    if not (text.isascii() and text.isdecimal() and len(text) < 10):
        raise RefusedRequest(
            400, "ParameterError", f"{name}={text[:20]!r}: expected an integer of at most 9 digits"
        )
    return int(text)


def timed(milliseconds: Mapping[str, float]) -> dict[str, str]:
    """Return the header Server-Timing, which the developer tools of browsers show."""
    parts = [f"{name.replace(' ', '-')};dur={took:.1f}" for name, took in milliseconds.items()]
    return {"server-timing": ", ".join(parts)} if parts else {}


class Events:
    """Sends events from threads to all listening pages, as server-sent events."""

    def __init__(self) -> None:
        self._listeners: dict[asyncio.Queue[bytes | None], asyncio.AbstractEventLoop] = {}
        self._lock = threading.Lock()

    def send(self, kind: str, data: Any) -> None:
        """Send an event to all pages. A page that is too slow misses events."""
        line = f"event: {kind}\ndata: {json.dumps(data)}\n\n".encode()
        with self._lock:
            for queue, loop in self._listeners.items():
                loop.call_soon_threadsafe(_put, queue, line)

    def end(self) -> None:
        """Close the streams of all pages when the server stops."""
        with self._lock:
            for queue, loop in self._listeners.items():
                loop.call_soon_threadsafe(_put, queue, None)

    async def listen(self) -> AsyncIterator[bytes]:
        """Yield the events from now on."""
        queue: asyncio.Queue[bytes | None] = asyncio.Queue(100)
        with self._lock:
            if len(self._listeners) >= MOST_LISTENERS:
                raise RefusedRequest(
                    503,
                    "BusyError",
                    f"{MOST_LISTENERS} pages are open, which is the limit. Close one",
                    {"retry-after": "5"},
                )
            self._listeners[queue] = asyncio.get_running_loop()
        try:
            yield b": hello\n\n"
            while True:
                try:
                    line = await asyncio.wait_for(queue.get(), 15)
                except (TimeoutError, asyncio.TimeoutError):
                    line = b": still here\n\n"
                if line is None:
                    return
                yield line
        finally:
            with self._lock:
                self._listeners.pop(queue, None)


def _put(queue: asyncio.Queue[bytes | None], line: bytes | None) -> None:
    if line is None or not queue.full():
        if queue.full():
            queue.get_nowait()
        queue.put_nowait(line)


class Annotate:
    """The application of one session."""

    def __init__(self, session: Session) -> None:
        self.session, self.events = session, Events()
        session.notify = self.events.send
        self.comparing = Comparing(session, self.events.send)

    def app(self) -> Starlette:
        """Return the routes."""
        get, post = ["GET"], ["POST"]
        routes = [
            Route("/", self._file("index.html", "text/html"), methods=get),
            *(Route(f"/static/{name}", self._file(name, kind), methods=get) for name, kind in FILES.items()),
            Route("/api/state", self.state, methods=get),
            *(Route(f"/api/{name}", self._action(*one), methods=post) for name, one in ACTIONS.items()),
            Route("/api/list", self.listed, methods=get),
            Route("/api/labels", self._returns(Session.label_counts), methods=get),
            Route("/api/summary", self._returns(Session.summary), methods=get),
            Route(
                "/api/guidelines",
                self._returns(lambda s: {"text": read_guidelines(s.guidelines)}),
                methods=get,
            ),
            Route("/api/model", self.model, methods=get),
            Route("/api/why", self.why, methods=get),
            Route("/api/export", self.export, methods=get),
            Route("/api/import", self.import_document, methods=post),
            Route("/api/agreement", self.agreement, methods=post),
            Route("/api/events", self.listen, methods=get),
            Route("/api/compare", self.compare, methods=post),
            Route("/api/compare/report", self.report, methods=get),
        ]
        return Starlette(routes=routes, exception_handlers=HANDLERS)

    @staticmethod
    def _file(name: str, kind: str) -> Callable[[Request], Awaitable[Response]]:
        data = asset(name)

        async def serve(request: Request) -> Response:
            return Response(data, media_type=kind, headers={"cache-control": "no-cache"})

        return serve

    def _action(self, domain: Domain, action: Action) -> Callable[[Request], Awaitable[Response]]:
        async def serve(request: Request) -> Response:
            given = await json_of(request, domain)
            try:
                found = await run_in_threadpool(action, self.session, given)
            except Conflict as error:
                problem = RefusedRequest(409, "Conflict", str(error))
                return JSONResponse({**content_of(problem), "sentence": error.present}, 409)
            return JSONResponse(found, headers=timed(found.get("milliseconds", {})))

        return serve

    def _returns(self, view: Callable[[Session], Any]) -> Callable[[Request], Awaitable[Response]]:
        async def serve(request: Request) -> Response:
            return JSONResponse(await run_in_threadpool(view, self.session))

        return serve

    async def state(self, request: Request) -> Response:
        """Return the state that the page shows."""
        focus = number_of(request, "focus") if "focus" in request.query_params else None
        return JSONResponse(await run_in_threadpool(self.session.state, focus))

    async def listed(self, request: Request) -> Response:
        """Return a part of a list of sentences."""
        tab, search = (request.query_params.get(name, "") for name in ("tab", "search"))
        if len(search) > LONGEST_SEARCH:
            raise RefusedRequest(400, "ParameterError", f"search: at most {LONGEST_SEARCH} characters")
        offset = number_of(request, "offset") if "offset" in request.query_params else 0
        return JSONResponse(await run_in_threadpool(self.session.listed, tab, search, offset))

    async def model(self, request: Request) -> Response:
        """Return a model that is trained on the labelled sentences, as a file."""
        data = await run_in_threadpool(_model, self.session)
        headers = {"content-disposition": 'attachment; filename="labelled.tagwise"'}
        return Response(data, media_type="application/octet-stream", headers=headers)

    async def why(self, request: Request) -> Response:
        """Return the explanation of a label."""
        i, token = number_of(request, "id"), number_of(request, "token")
        return JSONResponse(await run_in_threadpool(self.session.why, i, token))

    async def export(self, request: Request) -> Response:
        """Return the labelled sentences as a file."""
        form = request.query_params.get("format", "")
        if form not in EXPORTS:
            raise RefusedRequest(
                400,
                "ParameterError",
                f"format={form[:20]!r}{meant(form[:20], EXPORTS)}: expected one of {', '.join(EXPORTS)}",
            )
        data = await run_in_threadpool(self.session.work.export, form)
        name = f'attachment; filename="labelled.{EXPORTS[form]}"'
        return Response(data, media_type="text/plain; charset=utf-8", headers={"content-disposition": name})

    async def import_document(self, request: Request) -> Response:
        """Add a document."""
        form = request.query_params.get("format") or None
        if form is not None and form not in FORMATS:
            raise RefusedRequest(
                400,
                "ParameterError",
                f"format={form[:20]!r}{meant(form[:20], FORMATS)}: expected one of {', '.join(FORMATS)}",
            )
        name = request.query_params.get("name", "upload")[:100]
        data = await body_of(request, MOST_FILE)
        return JSONResponse(await run_in_threadpool(self.session.import_document, data, name, form))

    async def agreement(self, request: Request) -> Response:
        """Return the agreement with an uploaded file."""
        data = await body_of(request, MOST_FILE)
        return JSONResponse(await run_in_threadpool(_agreement, self.session, data))

    async def listen(self, request: Request) -> Response:
        """Stream the events of the background."""
        headers = {"cache-control": "no-store", "x-accel-buffering": "no"}
        return StreamingResponse(self.events.listen(), media_type="text/event-stream", headers=headers)

    async def compare(self, request: Request) -> Response:
        """Start a comparison of learners on the labelled sentences."""
        body = await json_of(request, COMPARE)
        return JSONResponse(await run_in_threadpool(self.comparing.begin, body.get("learners")))

    async def report(self, request: Request) -> Response:
        """Return the report of the last comparison as a file."""
        page = self.comparing.page()
        if page is None:
            raise RefusedRequest(
                404,
                "ComparisonError",
                "no comparison has finished. Start one, or wait for the one that is running",
            )
        headers = {"content-disposition": 'attachment; filename="comparison.html"'}
        return Response(page, media_type="text/html", headers=headers)


def _model(session: Session) -> bytes:
    """Return the bytes of a model file."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.tagwise"
        session.tagger().save(path)
        return path.read_bytes()


def _agreement(session: Session, data: bytes) -> dict[str, Any]:
    """Return the agreement on the sentences that both have, in the order of the uploaded file."""
    import io

    other = read_document(io.BytesIO(data))
    if other.label is None:
        raise ParameterError("the file has no labels. Upload a file with a label column")
    mine = {tuple(session.work.sentences[i].tokens): (i, y) for i, y in session.work.labelled.items()}
    both = [(s, mine[tuple(s.tokens)]) for s in other if tuple(s.tokens) in mine and UNKNOWN not in s.labels]
    if not both:
        raise ParameterError(
            "no sentence of the file is labelled in this project. Upload the labels of another annotator for the "
            "same sentences"
        )
    ours = Corpus([session.work.sentences[i].with_labels(y, "label") for _, (i, y) in both])
    found = agreement(
        Corpus.from_lists(ours.tokens, ours.labels),
        Corpus.from_lists(ours.tokens, [s.labels for s, _ in both]),
    )
    kind = session.work.settings.kind
    return {
        "sentences": found.sentences,
        "tokens": found.tokens,
        "accuracy": found.accuracy,
        "kappa": found.kappa,
        "f1": found.f1,
        "disagreements": [
            {
                "id": both[one.sentence][1][0],
                **displayed(ours[one.sentence]),
                "spans": spans_of(one.one, kind),
                "found": spans_of(one.two, kind),
            }
            for one in found.disagreements[:100]
        ],
    }

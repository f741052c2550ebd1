"""``tagwise serve``: models behind HTTP."""

from __future__ import annotations

import gc
import logging
from typing import Any

import rich_click as click

from tagwise.cli.app import debug_option, say
from tagwise.cli.models import is_ready, ready


@click.command()
@click.argument("models", metavar="MODEL...", nargs=-1, required=True)
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen at; 0.0.0.0 for all.")
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=8000,
    show_default=True,
    help="Port to listen at; 0 for any that is free.",
)
@click.option(
    "--allow-host",
    "hosts",
    metavar="NAME",
    multiple=True,
    help="A further name that clients may call the server by; * for any. May be repeated.",
)
@click.option("--token", is_flag=True, help="Ask for a random token, which is printed with the URL.")
@click.option("--workers", type=click.IntRange(1, 256), default=1, show_default=True, help="Processes.")
@click.option(
    "--max-body",
    type=click.IntRange(min=1),
    default=8 << 20,
    show_default=True,
    help="Bytes that a request, or a line of a stream, may have.",
)
@click.option(
    "--max-tokens",
    type=click.IntRange(min=1),
    default=100_000,
    show_default=True,
    help="Tokens that a request may have; with kbest, tokens times paths.",
)
@click.option(
    "--max-token-length",
    type=click.IntRange(min=1),
    default=10_000,
    show_default=True,
    help="Characters that a token may have.",
)
@click.option(
    "--max-explained",
    type=click.IntRange(min=1),
    default=1_000,
    show_default=True,
    help="Tokens that a sentence of /explain may have.",
)
@click.option(
    "--timeout",
    type=click.FloatRange(min=0.1),
    default=30.0,
    show_default=True,
    help="Seconds for a body to arrive, and for its answer; work that takes longer is stopped.",
)
@click.option(
    "--queue",
    type=click.IntRange(min=1),
    default=1024,
    show_default=True,
    help="Requests that may wait; more are told to come back later (503).",
)
@debug_option
def serve(
    models: tuple[str, ...],
    host: str,
    port: int,
    hosts: tuple[str, ...],
    token: bool,
    workers: int,
    max_body: int,
    max_tokens: int,
    max_token_length: int,
    max_explained: int,
    timeout: float,
    queue: int,
) -> None:
    """Serve each MODEL over HTTP: a file, NAME=FILE, or a ready tagger by its name.

    POST /tag takes texts or sentences as JSON; GET / describes the rest. A file that is replaced is read again without
    a request being dropped; one that cannot be read leaves the model before it in place. Functions that a file names
    are never imported. SIGTERM and Ctrl-C end the server once requests in flight are answered. Needs pip install
    'tagwise[web]'.

    \b
    Examples:
      tagwise serve model.tagwise
      tagwise serve ner=ner.tagwise pos=pos.tagwise --port 9000 --workers 2
      tagwise serve en-ner --host 0.0.0.0 --allow-host tagger.internal
      curl -s localhost:8000/tag -d '{"text": "Peter flew to London."}'
    """
    from tagwise.apps.web import need

    need("tagwise serve")
    from tagwise.apps.serve.models import Shelf
    from tagwise.apps.serve.service import Service, ServiceSettings, application
    from tagwise.apps.serve.workers import supervise
    from tagwise.apps.web.guards import new_token
    from tagwise.apps.web.limits import RequestLimits
    from tagwise.apps.web.running import bound, run, url_of

    logging.basicConfig(format="%(asctime)s %(name)s %(levelname)s: %(message)s")
    shelf = Shelf.read(
        [name for name in models if not is_ready(name)],
        {name: ready(name) for name in models if is_ready(name)},
    )
    settings = ServiceSettings(
        RequestLimits(max_body, max_tokens, timeout, max_explained, max_token_length), waiting=queue
    )
    secret = new_token() if token else None
    listening = bound(host, port)
    url = url_of(listening)

    # What is there now stays to the end: it is not looked through for rubbish again and again, nor copied in workers.
    gc.collect()
    gc.freeze()

    def announce() -> None:
        say(f"serving {', '.join(shelf.models)} at {url}" + (f"/?token={secret}" if secret else ""))

    def work(i: int, ready: Any = None) -> None:
        app = application(Service(shelf, settings, i), host, hosts, secret)
        run(app, listening, ready=ready, half_closed=True, unread=timeout)

    if workers == 1:
        work(0, announce)
    else:
        announce()
        supervise(workers, work)
    say("ended")

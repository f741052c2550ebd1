"""``tagwise serve``: serve models over HTTP."""

from __future__ import annotations

import gc
import logging
from typing import Any

import rich_click as click

from tagwise.cli.app import debug_option, say
from tagwise.cli.help import MACHINE, Command
from tagwise.cli.models import is_pretrained, load_pretrained
from tagwise.cli.options import COUNT, option

# Groups of options.
NETWORK, LIMITS = "Network", "Limits"


@click.command(cls=Command)
@click.argument("models", metavar="MODEL...", nargs=-1, required=True)
@option(
    "--host ADDRESS",
    "Address to listen on. 0.0.0.0 accepts connections from other machines.",
    NETWORK,
    default="127.0.0.1",
)
@option(
    "--port N",
    "Port to listen on. 0 chooses a free one.",
    NETWORK,
    type=click.IntRange(0, 65535),
    default=8000,
)
@option(
    "--allow-host NAME",
    "Host name that clients may use in addition to the address, or * for any. Repeatable.",
    NETWORK,
    name="hosts",
    multiple=True,
)
@option("--token", "Require a random token, which is printed with the URL.", NETWORK)
@option(
    "--max-body BYTES",
    "Maximum size of a request, or of one line of a stream.",
    LIMITS,
    type=COUNT,
    default=8 << 20,
)
@option(
    "--max-tokens N",
    "Maximum number of tokens per request. With kbest, tokens times paths.",
    LIMITS,
    type=COUNT,
    default=100_000,
)
@option("--max-token-length N", "Maximum number of characters per token.", LIMITS, type=COUNT, default=10_000)
@option(
    "--max-explained N",
    "Maximum number of tokens per sentence for /explain.",
    LIMITS,
    type=COUNT,
    default=1_000,
)
@option(
    "--timeout SECONDS",
    "Maximum time to receive a request, and to answer it.",
    LIMITS,
    type=click.FloatRange(min=0.1),
    default=30.0,
)
@option(
    "--queue N",
    "Maximum number of waiting requests. Further ones get status 503.",
    LIMITS,
    type=COUNT,
    default=1024,
)
@option("--workers N", "Number of processes.", MACHINE, type=click.IntRange(1, 256), default=1)
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
    """Serve models over HTTP.

    MODEL is a file or the name of a pretrained tagger, also as NAME=MODEL. POST /tag takes texts or sentences as JSON,
    and GET / describes the other endpoints. A model file that changes is reloaded without dropping requests. If the
    new file cannot be read, the old model stays. Functions that a file names are never imported. SIGTERM and Ctrl-C
    stop the server after the current requests. Needs pip install 'tagwise[web]'.

    \b
    Examples:
      tagwise serve model.tagwise
      tagwise serve ner=ner.tagwise pos=pos.tagwise \\
          --port 9000 --workers 2
      tagwise serve en-ner-demo --host 0.0.0.0 \\
          --allow-host tagger.internal
      curl localhost:8000/tag -d '{"text": "I love London!"}'
    """
    from tagwise.apps.web import need

    need("tagwise serve")
    from tagwise.apps.serve.models import ModelRegistry, named
    from tagwise.apps.serve.service import Service, ServiceSettings, application
    from tagwise.apps.serve.workers import supervise
    from tagwise.apps.web.guards import new_token
    from tagwise.apps.web.limits import RequestLimits
    from tagwise.apps.web.running import bound, run, url_of

    logging.basicConfig(format="%(asctime)s %(name)s %(levelname)s: %(message)s")
    taggers = [pair for pair in map(named, models) if is_pretrained(pair[1])]
    if len(dict(taggers)) < len(taggers):
        raise click.UsageError("two models have the same name. Give each another one: NAME=MODEL")
    ready = {name: load_pretrained(path) for name, path in taggers}
    registry = ModelRegistry.read([spec for spec in models if not is_pretrained(named(spec)[1])], ready)
    settings = ServiceSettings(
        RequestLimits(max_body, max_tokens, timeout, max_explained, max_token_length), waiting=queue
    )
    secret = new_token() if token else None
    listening = bound(host, port)
    url = url_of(listening)

    # Models live as long as the process. Frozen, they are neither traversed by the garbage collector nor copied to
    # workers page by page.
    gc.collect()
    gc.freeze()

    def announce() -> None:
        say(f"serving {', '.join(registry.models)} at {url}" + (f"/?token={secret}" if secret else ""))

    def work(i: int, ready: Any = None) -> None:
        app = application(Service(registry, settings, i), host, hosts, secret)
        run(app, listening, ready=ready, half_closed=True, unread=timeout)

    if workers == 1:
        work(0, announce)
    else:
        announce()
        supervise(workers, work)
    say("server stopped")

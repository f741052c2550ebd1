"""Every option of ``serve`` changes the application as its help says. Requests go to the application directly."""

from __future__ import annotations

import json
import socket
from typing import Any

import pytest

from tests.web.asgi_client import call_app

from .options import TEST, Bench, cases, debug_row, fitted, invoke, row

TOKENS = TEST[0].fields


class Started:
    """Record of the applications and the address that ``serve`` would run."""

    def __init__(self, bench: Bench) -> None:
        pytest.importorskip("starlette", reason="tagwise[web] is not installed: make test-browser")
        self.apps: list[Any] = []
        self.address: Any = None
        bench.patch.setattr("tagwise.apps.web.need", lambda *_: None)
        bench.patch.setattr("tagwise.apps.web.running.run", self.run)

    def run(self, app: Any, listening: socket.socket, ready: Any = None, **_: Any) -> None:
        self.apps.append(app)
        self.address = listening.getsockname()
        if ready is not None:
            ready()
        listening.close()


def served(bench: Bench, *args: object) -> tuple[Started, Any, str]:
    """Return the record, the application and the output on stderr."""
    started = Started(bench)
    result = bench.ok("serve", "--port", 0, *args)
    assert result.stdout == ""
    return started, started.apps[0], result.stderr


def tag(app: Any, request: dict[str, Any], **more: Any) -> tuple[int, Any]:
    """Return the status and the body of a response from /tag."""
    found = call_app(app, "POST", "/tag", body=json.dumps(request).encode(), **more)
    return found.status, json.loads(found.body)


def columns(n: int = 1) -> dict[str, list[str]]:
    """Return a sentence with the columns of the model."""
    return {name: [values[0]] * n for name, values in TOKENS.items() if name != "label"}


@row("serve", "models")
def serve_models(bench: Bench) -> None:
    """A model is served under the stem of its file or under a given name, and returns its own labels."""
    _, app, message = served(bench, bench.model, f"other={bench.model}")
    assert message.startswith("serving m, other at http://127.0.0.1:")
    names = [one["name"] for one in json.loads(call_app(app, path="/models").body)["models"]]
    assert names == ["m", "other"]
    status, found = tag(app, {"tokens": columns(), "model": "other"})
    assert (status, found["model"]) == (200, "other")
    assert [found["results"][0]["labels"]] == fitted().predict([columns()])
    absent = invoke("serve", "absent.tagwise")
    assert (absent.exit_code, absent.stdout, absent.stderr.count("\n")) == (2, "", 1)
    assert invoke("serve").exit_code == 2


@row("serve", "--host")
def serve_host(bench: Bench) -> None:
    """--host sets the address. On a non-loopback address, any IP address is a valid Host header."""
    started, app, _ = served(bench, bench.model)
    assert started.address[0] == "127.0.0.1"
    assert call_app(app, host="10.1.2.3").status == 421
    started, app, _ = served(bench, bench.model, "--host", "0.0.0.0")
    assert started.address[0] == "0.0.0.0"
    assert call_app(app, host="10.1.2.3").status == 200
    wrong = invoke("serve", bench.model, "--host", "203.0.113.7", "--port", 0)
    assert (wrong.exit_code, wrong.stderr.count("\n")) == (2, 1)
    assert "cannot listen on" in wrong.stderr


@row("serve", "--port")
def serve_port(bench: Bench) -> None:
    """--port sets the port. 0 chooses a free port and reports it. A port in use is rejected."""
    Started(bench)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        wrong = invoke("serve", bench.model, "--port", port)
        assert (wrong.exit_code, wrong.stderr.count("\n")) == (2, 1)
        assert "--port 0" in wrong.stderr
    started, _, message = served(bench, bench.model)
    assert f":{started.address[1]}\n" in message
    started = Started(bench)
    bench.ok("serve", bench.model, "--port", port)
    assert started.address[1] == port


@row("serve", "--allow-host")
def serve_allow_host(bench: Bench) -> None:
    """--allow-host accepts further Host headers."""
    _, app, _ = served(bench, bench.model)
    assert call_app(app, host="a.example").status == 421
    _, app, _ = served(bench, bench.model, "--allow-host", "a.example", "--allow-host", "b.example")
    assert [call_app(app, host=h).status for h in ("a.example", "b.example", "c.example")] == [200, 200, 421]


@row("serve", "--token")
def serve_token(bench: Bench) -> None:
    """--token prints a token that requests must contain. Health probes need none."""
    assert "token" not in served(bench, bench.model)[2]
    _, app, message = served(bench, bench.model, "--token")
    token = message.split("token=")[1].split()[0]
    assert tag(app, {"text": "a"})[0] == 401
    assert call_app(app, path="/health").status == 200
    assert call_app(app, path="/models", headers={"authorization": f"Bearer {token}"}).status == 200


@row("serve", "--workers")
def serve_workers(bench: Bench) -> None:
    """--workers N starts N processes, each with all models."""
    started = Started(bench)
    call_app_async = []

    def supervise(n: int, body: Any) -> None:
        call_app_async.append(n)
        body(1)

    bench.patch.setattr("tagwise.apps.serve.workers.supervise", supervise)
    bench.ok("serve", bench.model, "--port", 0, "--workers", 3)
    assert call_app_async == [3]
    assert 'worker="1"' in call_app(started.apps[0], path="/metrics").body.decode()
    bench.ok("serve", bench.model, "--port", 0)
    assert call_app_async == [3]


@row("serve", "--max-body")
def serve_max_body(bench: Bench) -> None:
    """--max-body limits the bytes of a request."""
    request = {"texts": ["a" * 100]}
    assert tag(served(bench, bench.model)[1], request)[1].get("error", {}).get("type") != "LimitError"
    assert tag(served(bench, bench.model, "--max-body", 100)[1], request)[0] == 413


@row("serve", "--max-tokens")
def serve_max_tokens(bench: Bench) -> None:
    """--max-tokens limits the tokens of a request."""
    _, app, _ = served(bench, bench.model, "--max-tokens", 3)
    assert [tag(app, {"tokens": columns(n)})[0] for n in (3, 4)] == [200, 413]
    assert tag(served(bench, bench.model)[1], {"tokens": columns(4)})[0] == 200


@row("serve", "--max-token-length")
def serve_max_token_length(bench: Bench) -> None:
    """--max-token-length limits the characters of a token."""
    request = {"texts": ["a" * 101]}
    _, app, _ = served(bench, bench.model, "--max-token-length", 100)
    assert [tag(app, {"texts": ["a" * n]})[0] for n in (100, 101)] == [200, 413]
    assert tag(served(bench, bench.model)[1], request)[0] == 200


@row("serve", "--max-explained")
def serve_max_explained(bench: Bench) -> None:
    """--max-explained limits the tokens of an explanation."""
    _, app, _ = served(bench, bench.model, "--max-explained", 3)

    def explained(app: Any, n: int) -> int:
        body = json.dumps({"tokens": columns(n)}).encode()
        status: int = call_app(app, "POST", "/explain", body=[body]).status
        return status

    assert [explained(app, n) for n in (3, 4)] == [200, 413]
    assert explained(served(bench, bench.model)[1], 4) == 200


@row("serve", "--timeout")
def serve_timeout(bench: Bench) -> None:
    """--timeout limits the seconds in which a request body must arrive."""
    body = [b'{"tokens": ', 0.4, json.dumps(columns()).encode(), b"}"]
    assert call_app(served(bench, bench.model, "--timeout", 0.1)[1], "POST", "/tag", body=body).status == 408
    assert call_app(served(bench, bench.model)[1], "POST", "/tag", body=body).status == 200


@row("serve", "--queue")
def serve_queue(bench: Bench) -> None:
    """--queue limits the number of waiting requests."""
    for args, most in (((), 1024), (("--queue", 7), 7)):
        app = served(bench, bench.model, *args)[1]
        (batcher,) = app.app.app.app.routes[0].endpoint.__self__.batchers.values()
        assert batcher.most == most


debug_row("serve", "absent.tagwise")


@pytest.mark.parametrize("case", cases("serve"))
def test_options(bench: Bench, case: str) -> None:
    """Run the check of one option."""
    cases("serve")[case](bench)

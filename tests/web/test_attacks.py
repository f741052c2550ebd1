"""While a request is too much for the server, others are answered; afterwards nothing of it is left."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("uvicorn", reason="uvicorn is not installed: make test-browser")

from tests.web import attacks

#: Seconds within which /health has to answer, in one of so many trials: other processes take the cores at times.
PROMPT, TRIALS = 0.2, 3


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return attacks.model(tmp_path_factory.mktemp("attacks") / "patterns.tagwise")


@pytest.fixture(scope="module", params=["default", "high"])
def server(request: pytest.FixtureRequest, model: Path) -> Iterator[tuple[bool, int, attacks.Address]]:
    """A server with limits as they are by default, or with none that matters."""
    high = request.param == "high"
    with attacks.serving(model, *(attacks.HIGH if high else ())) as (process, address):
        yield high, process.pid, address


@pytest.mark.parametrize("name", attacks.REQUESTS)
def test_one_request_does_not_stop_the_server(server: tuple[bool, int, attacks.Address], name: str) -> None:
    """It is answered, refused, or stopped at the deadline; then the thread of the model is free."""
    high, pid, address = server
    path, request, by_default, otherwise = attacks.REQUESTS[name]
    worst = []
    while not worst or (worst[-1] > PROMPT and len(worst) < TRIALS):
        with attacks.Health(address) as health:
            status, seconds = attacks.posted(address, request, path)
            idle = attacks.until_idle(pid)
        worst.append(health.worst)
        assert status in (otherwise if high else {by_default, 503})
        assert seconds < attacks.SECONDS + 5
        assert idle < 2
        assert attacks.posted(address, {"tokens": ["Rosa"] * 20}, "/explain")[0] == 200
    assert worst[-1] < PROMPT, worst


def test_a_long_line_in_small_pieces(server: tuple[bool, int, attacks.Address]) -> None:
    """A piece costs what a piece costs, however long the line is that it belongs to."""
    _, pid, address = server
    worst = []
    while not worst or (worst[-1] > PROMPT and len(worst) < TRIALS):
        before = attacks.cpu_seconds(pid)
        with attacks.Health(address) as health:
            sent, _ = attacks.long_line(address, 1.5)
        worst.append(health.worst)
        assert (attacks.cpu_seconds(pid) - before) / sent < 0.0005
    assert worst[-1] < PROMPT, worst


def test_sigterm_ends_a_server_that_works(model: Path) -> None:
    """At the deadline of what it does, at the latest."""
    with attacks.serving(model, *attacks.HIGH) as (process, address):
        assert attacks.terminated(process, address) < attacks.SECONDS + 5
        assert process.returncode == 0

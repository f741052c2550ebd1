"""An expensive request does not block others and leaves no work behind. Needs uvicorn."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("uvicorn", reason="uvicorn is not installed: make test-browser")

from tests.web import attacks

#: Limit on the slowest /health in seconds, and the number of trials. One trial has to meet the limit, because other
#: processes may occupy the cores.
PROMPT, TRIALS = 0.2, 3


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return attacks.model(tmp_path_factory.mktemp("attacks") / "patterns.tagwise")


@pytest.fixture(scope="module", params=["default", "high"])
def server(request: pytest.FixtureRequest, model: Path) -> Iterator[tuple[bool, int, attacks.Address]]:
    """Run a server with the default limits or with those of HIGH. Yield whether they are HIGH, its pid and address."""
    high = request.param == "high"
    with attacks.serving(model, *(attacks.HIGH if high else ())) as (process, address):
        yield high, process.pid, address


@pytest.mark.parametrize("name", attacks.REQUESTS)
def test_expensive_requests_do_not_block_the_server(
    server: tuple[bool, int, attacks.Address], name: str
) -> None:
    """The request is answered, rejected, or stopped at the deadline. Then the thread of the model is free."""
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


def test_cost_per_chunk_does_not_depend_on_line_length(server: tuple[bool, int, attacks.Address]) -> None:
    """The cost of a chunk does not depend on the length of its line."""
    _, pid, address = server
    worst = []
    while not worst or (worst[-1] > PROMPT and len(worst) < TRIALS):
        before = attacks.cpu_seconds(pid)
        with attacks.Health(address) as health:
            sent, _ = attacks.long_line(address, 1.5)
        worst.append(health.worst)
        assert (attacks.cpu_seconds(pid) - before) / sent < 0.0005
    assert worst[-1] < PROMPT, worst


def test_sigterm_ends_a_busy_server_by_the_deadline(model: Path) -> None:
    """The server ends at the deadline of the current request at the latest."""
    with attacks.serving(model, *attacks.HIGH) as (process, address):
        assert attacks.terminated(process, address) < attacks.SECONDS + 5
        assert process.returncode == 0

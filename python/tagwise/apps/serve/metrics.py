"""Counters in the text format of Prometheus: https://prometheus.io/docs/instrumenting/exposition_formats/."""

from __future__ import annotations

import bisect
from collections.abc import Iterator

#: Upper bounds of the histogram of seconds.
BOUNDS = (0.001, 0.0025, 0.005, 0.01, 0.02, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)


def escaped(value: str) -> str:
    """Escape the value of a label."""
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


class Metrics:
    """Counters of one process. `worker` distinguishes processes, because a scrape reaches any one of them."""

    def __init__(self, worker: int = 0) -> None:
        self.worker = worker
        self.requests: dict[tuple[str, int], int] = {}
        self.seconds = [0] * (len(BOUNDS) + 1)
        self.seconds_sum = 0.0
        self.in_flight = self.refused = 0
        self.batches: dict[str, list[float]] = {}  # model -> batches, jobs, tokens, seconds

    def request(self, path: str, status: int, seconds: float) -> None:
        """Count a request with a response."""
        key = (path, status)
        self.requests[key] = self.requests.get(key, 0) + 1
        self.seconds[bisect.bisect_left(BOUNDS, seconds)] += 1
        self.seconds_sum += seconds

    def batch(self, model: str, jobs: int, tokens: int, seconds: float) -> None:
        """Count a batch."""
        row = self.batches.setdefault(model, [0.0] * 4)
        for i, amount in enumerate((1, jobs, tokens, seconds)):
            row[i] += amount

    def lines(self, gauges: dict[str, dict[str, float]]) -> Iterator[str]:
        """Yield the lines of the text. `gauges` are values by name and model."""
        own = f'worker="{self.worker}"'

        def head(name: str, kind: str, text: str) -> Iterator[str]:
            yield f"# HELP tagwise_{name} {text}"
            yield f"# TYPE tagwise_{name} {kind}"

        yield from head("requests_total", "counter", "Requests answered.")
        for (path, status), n in sorted(self.requests.items()):
            yield f'tagwise_requests_total{{{own},path="{path}",status="{status}"}} {n}'
        yield from head(
            "request_seconds", "histogram", "Time from the headers of a request to the end of its response."
        )
        total = 0
        for bound, n in zip((*BOUNDS, "+Inf"), self.seconds):
            total += n
            yield f'tagwise_request_seconds_bucket{{{own},le="{bound}"}} {total}'
        yield f"tagwise_request_seconds_sum{{{own}}} {self.seconds_sum:.6f}"
        yield f"tagwise_request_seconds_count{{{own}}} {total}"
        yield from head("requests_in_flight", "gauge", "Requests in progress.")
        yield f"tagwise_requests_in_flight{{{own}}} {self.in_flight}"
        yield from head("refused_total", "counter", "Requests rejected because the queue was full.")
        yield f"tagwise_refused_total{{{own}}} {self.refused}"
        names = ("batches_total", "batched_requests_total", "tokens_total", "batch_seconds_total")
        texts = ("Calls of the tagger.", "Requests in them.", "Tokens in them.", "Seconds in them.")
        for i, (name, text) in enumerate(zip(names, texts)):
            yield from head(name, "counter", text)
            for model, row in sorted(self.batches.items()):
                yield f'tagwise_{name}{{{own},model="{escaped(model)}"}} {row[i]:.6f}'
        for name, values in gauges.items():
            yield from head(name, "gauge", name.replace("_", " ").capitalize() + ".")
            for model, value in values.items():
                yield f'tagwise_{name}{{{own},model="{escaped(model)}"}} {value:g}'

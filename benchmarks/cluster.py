"""Ray compared with threads on one machine: a pass over shards, and tagging, with as many workers as threads.

    $(python tools/environments.py ray) -m benchmarks.cluster pass encoded/ --workers 2
    $(python tools/environments.py ray) -m benchmarks.cluster tag model.tagwise --corpus wnut17-ner --times 40

Both engines alternate, and the ratio is that of the medians. Values, gradients and labels are compared too.
"""

from __future__ import annotations

import argparse
import functools
import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import tagwise as tw
import tagwise.ray
import tagwise.ray.tagging as tagging_module
from tagwise.decoding.plan import Query
from tagwise.learners.sharded.config import LocalParts
from tagwise.learners.sharded.objective import ObjectiveConfig, OverShards
from tagwise.ray.backend import RayParts
from tagwise.ray.pool import connected

from . import ours


def seconds(call: Callable[[], Any]) -> tuple[float, Any]:
    """Return the duration of a call and its result."""
    begin = time.perf_counter()
    answer = call()
    return time.perf_counter() - begin, answer


def alternated(calls: dict[str, Callable[[], Any]], rounds: int) -> dict[str, float]:
    """Return the median seconds of each call. All must return equal results."""
    times: dict[str, list[float]] = {name: [] for name in calls}
    for name, call in calls.items():
        print(f"{name:8} first {seconds(call)[0]:8.2f} s", flush=True)
    for _ in range(rounds):
        answers = []
        for name, call in calls.items():
            spent, answer = seconds(call)
            times[name].append(spent)
            answers.append(answer)
        assert all(answer == answers[0] for answer in answers)
    return {name: statistics.median(spent) for name, spent in times.items()}


def passes(options: argparse.Namespace) -> None:
    """Measure a pass over shards."""
    shards = tw.Shards(options.given, memory=options.memory)
    config = ObjectiveConfig(shards.layout())
    workers = RayParts(shards, config, options.workers)
    objectives = {
        "threads": OverShards(LocalParts(shards, config, shards.memory)),
        "ray": OverShards(workers),
    }
    w = np.random.default_rng(1).normal(scale=0.1, size=len(config.layout))
    gradient = np.empty(len(w))

    def value(objective: Any) -> Any:
        return objective.value(w, gradient, options.workers), gradient.tobytes()

    found = alternated({name: lambda o=o: value(o) for name, o in objectives.items()}, options.rounds)
    rate = {name: shards.n_tokens / spent / 1e6 for name, spent in found.items()}
    sent = workers.sent / (options.rounds + 1)
    print(
        f"{shards.n_tokens:,} tokens, {len(w):,} features, {len(shards)} shards, {sent / 1e6:.1f} MB per pass with Ray"
    )
    print(*(f"{name} {spent:.2f} s, {rate[name]:.2f} M tokens/s" for name, spent in found.items()), sep="; ")
    print(f"overhead of Ray: {100 * (found['ray'] / found['threads'] - 1):+.1f} % per pass")


def tagging(options: argparse.Namespace) -> None:
    """Measure tagging with Ray Data, of a quarter and of all, to separate the start-up time of the actors."""
    import pyarrow as pa
    import ray

    tagger = tw.load(options.given)
    tagger.set_params(n_jobs=options.workers)
    sentences = [list(tokens) for tokens in ours.corpus(options.corpus)[2].tokens] * options.times
    size = options.batch
    blocks = [sentences[i : i + size] for i in range(0, len(sentences), size)]
    tokens = {part: sum(sum(map(len, block)) for block in part_of(blocks, part)) for part in PARTS}
    held = {
        part: ray.data.from_arrow([pa.table({"tokens": b}) for b in part_of(blocks, part)]).materialize()
        for part in PARTS
    }

    batch = pa.table({"tokens": blocks[0]})
    print("a batch:", ", ".join(f"{name} {ns:.0f} ns" for name, ns in shares(options.given, batch).items()))

    def by_ray(part: float) -> int:
        data = held[part].map_batches(
            tagwise.ray.Tag,
            fn_constructor_args=[options.given],
            concurrency=options.workers,
            batch_size=size,
            batch_format="pyarrow",
        )
        found = data.iter_batches(batch_size=size, batch_format="pyarrow")
        return sum(len(batch.column("predicted").combine_chunks().flatten()) for batch in found)

    def local(part: float) -> int:
        return sum(len(labels) for block in part_of(blocks, part) for labels in tagger.predict(block))

    times = {
        part: alternated(
            {"threads": functools.partial(local, part), "ray": functools.partial(by_ray, part)},
            options.rounds,
        )
        for part in PARTS
    }
    few, all_ = PARTS
    rate = {}
    for name in ("threads", "ray"):
        whole, more = times[all_][name], times[all_][name] - times[few][name]
        rate[name] = (tokens[all_] - tokens[few]) / more
        print(
            f"{name}: {whole:.2f} s, {tokens[all_] / whole:,.0f} tokens/s, "
            f"{rate[name]:,.0f} tokens/s after start-up"
        )
    print(
        f"Ray Data after start-up: {100 * rate['ray'] / rate['threads']:.1f} % of the tokens/s of the local engine"
    )


def shares(path: str, table: Any, times: int = 15) -> dict[str, float]:
    """Return the CPU time of one batch in nanoseconds per token, the minimum of several alternated runs."""
    tag, column, found = tagging_module.Tag(path), table.column("tokens"), dict[str, float]()
    sentences, lists = tagging_module._sentences(column), column.to_pylist()
    numbers = tag.model.predict_numbers(sentences, Query(n_jobs=1))
    parts: dict[str, Callable[[], Any]] = {
        "reading": lambda: tagging_module._sentences(column),
        "engine": lambda: tag.model.predict_numbers(sentences, Query(n_jobs=1)),
        "column": lambda: tag._with_labels(table, *numbers),
        "all": lambda: tag(table),
        "lists to lists": lambda: tag.model.predict(lists, Query(n_jobs=1)),
    }
    for _ in range(times):
        for name, call in parts.items():
            begin = time.process_time()
            call()
            spent = 1e9 * (time.process_time() - begin) / len(numbers[0])
            found[name] = min(found.get(name, spent), spent)
    return found


#: Fractions of the data to tag.
PARTS = (0.25, 1.0)


def part_of(blocks: list[Any], part: float) -> list[Any]:
    """Return the first blocks, as a fraction of all."""
    return blocks[: max(1, round(part * len(blocks)))]


def main() -> None:
    """Run one of the two measurements."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=["pass", "tag"])
    parser.add_argument("given", help="folder of shards (pass) or model (tag)")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--memory", default="1T")
    parser.add_argument("--corpus", default="wnut17-ner")
    parser.add_argument("--times", type=int, default=40)
    parser.add_argument("--batch", type=int, default=16384)
    options = parser.parse_args()
    connected()
    {"pass": passes, "tag": tagging}[options.what](options)


if __name__ == "__main__":
    main()

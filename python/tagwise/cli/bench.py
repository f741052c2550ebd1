"""``tagwise bench``: measure the speed of training and tagging on this machine."""

from __future__ import annotations

import itertools
import os
import statistics
import tempfile
import time
from collections.abc import Callable
from typing import Any

import rich_click as click
from rich.console import Console
from rich.filesize import decimal

from tagwise.base.parameters import cores
from tagwise.cli.app import debug_option
from tagwise.cli.files import n_jobs_option
from tagwise.cli.help import DATA, LEARNER, Command
from tagwise.cli.options import COUNT, option


def median_seconds(work: Callable[[], Any], times: int = 5) -> float:
    """Return the median time of several runs."""
    spent = []
    for _ in range(times):
        begin = time.perf_counter()
        work()
        spent.append(time.perf_counter() - begin)
    return statistics.median(spent)


@click.command(cls=Command)
@option("-f --features SET", "Feature set.", DATA, default="S3")
@option("--sentences N", "Number of training sentences, taken from ewt-pos.", DATA, type=COUNT, default=3000)
@option("--max-iter N", "Number of training iterations.", LEARNER, type=COUNT, default=20)
@n_jobs_option
@debug_option
def bench(features: str, sentences: int, max_iter: int, n_jobs: int | None) -> None:
    """Measure the speed of training and tagging on this machine.

    The corpus is bundled, and the measurement takes about half a minute. For comparisons with other programs, run make
    bench in the source tree.

    \b
    Examples:
      tagwise bench
      tagwise bench --n-jobs 1 --features default
    """
    import tagwise as tw
    from tagwise.base.terminal import pair_table

    train, _, test = tw.load_corpus("ewt-pos")
    data = train[:sentences]
    tagger = tw.CRF(features=features, max_iter=max_iter, n_jobs=n_jobs)
    stamps: list[float] = []
    begin = time.perf_counter()
    tagger.fit(data, callbacks=[lambda _: stamps.append(time.perf_counter())])
    total = time.perf_counter() - begin
    steps = [after - before for before, after in itertools.pairwise(stamps)]
    words = test.tokens
    tokens = test.n_tokens
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "bench.tagwise")
        tagger.save(path)
        size = os.path.getsize(path)
        load = median_seconds(lambda: tw.load(path))
    rows = [
        (
            "corpus",
            f"ewt-pos, {len(data):,} sentences, {data.n_tokens:,} tokens, {len(tagger.classes_)} labels",
        ),
        ("model", f"{features}, {tagger.n_features_:,} features, {decimal(size)}"),
        ("threads", str(n_jobs or cores())),
        ("training", f"{total:.2f} s for {len(tagger.history_)} iterations, features included"),
    ]
    if steps:
        step = statistics.median(steps)
        rows.append(("one iteration", f"{1000 * step:.1f} ms, {data.n_tokens / step:,.0f} tokens/s"))
    rows += [
        (
            "tagging",
            f"{tokens / median_seconds(lambda: tagger.predict(words)):,.0f} tokens/s from lists of tokens",
        ),
        (
            "marginals",
            f"{tokens / median_seconds(lambda: tagger.predict_marginals(words)):,.0f} tokens/s as arrays",
        ),
        ("loading", f"{1000 * load:.2f} ms"),
    ]
    Console().print(pair_table(rows))

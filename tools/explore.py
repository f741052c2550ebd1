"""Draw new examples for the property tests: `make explore`, or `python -m tools.explore --minutes 5`.

`make test` draws the same examples every time. This command runs the property tests repeatedly, each round with another
seed and `--times` as many examples, until the time is up or a test fails. It prints the seed of every round and the
number of examples drawn. Repeat a round with `--seed`.
"""

from __future__ import annotations

import argparse
import functools
import multiprocessing
import random
import sys
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

TESTS = Path(__file__).resolve().parents[1] / "tests"


@dataclass(eq=False)  # plugins are hashed
class Round:
    """Pytest plugin that keeps the property tests, multiplies their examples and counts them."""

    seed: int
    times: int
    deadline: float  # of time.time
    examples: int = 0
    tests: int = 0
    code: int = 0
    failed: list[str] = field(default_factory=list)

    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        from hypothesis import (
            settings,
        )  # pytest rewrites the assertions of plugins, so none may be imported before it

        chosen = [item for item in items if hasattr(getattr(item, "obj", None), "hypothesis")]
        config.hook.pytest_deselected(items=[item for item in items if item not in chosen])
        # The order differs by seed, so that a short run that ends in the middle of a round covers other files each
        # time.
        order = {
            path: random.Random(f"{self.seed} {path}").random() for path in {item.path for item in chosen}
        }
        items[:] = sorted(chosen, key=lambda item: order[item.path])
        functions = {getattr(test, "__func__", test) for test in (item.obj for item in chosen)}
        for test in functions:
            given = test._hypothesis_internal_use_settings
            more = settings(given, max_examples=self.times * given.max_examples)
            test._hypothesis_internal_use_settings = more
            test.hypothesis.inner_test = self.counted(test.hypothesis.inner_test)

    def counted(self, test: Callable[..., Any]) -> Callable[..., Any]:
        """Return a test that counts its calls with an example."""

        @functools.wraps(test)
        def call(*args: Any, **kwargs: Any) -> Any:
            self.examples += 1
            return test(*args, **kwargs)

        return call

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.tests += report.when == "call"
        if report.failed:
            self.failed.append(report.nodeid)

    def pytest_runtest_logfinish(self) -> None:
        if time.time() > self.deadline:
            pytest.exit("time is up", returncode=0)


def run(found: Round, arguments: list[str]) -> Round:
    """Run one round in its own process."""
    options = [f"--hypothesis-seed={found.seed}", "-x", "-p", "no:cacheprovider", "--no-header"]
    found.code = int(pytest.main([*options, *arguments], plugins=[found]))
    return found


def main() -> int:
    """Explore and return the exit code, which is 1 if a test fails."""
    parser = argparse.ArgumentParser(prog="python -m tools.explore", description=__doc__.partition("\n\n")[0])
    parser.add_argument("--minutes", type=float, default=5.0, help="time limit in minutes (default 5)")
    parser.add_argument(
        "--seed", type=int, help="seed of the first round, incremented for the next ones (default: random)"
    )
    parser.add_argument(
        "--times", type=int, default=5, help="factor for the number of examples per test (default 5)"
    )
    known, arguments = parser.parse_known_args()
    first = random.SystemRandom().randrange(1 << 32) if known.seed is None else known.seed
    begin, total, tests, seed = time.time(), 0, 0, first
    while time.time() < begin + 60 * known.minutes:
        print(f"seed {seed}", flush=True)
        one = Round(seed, known.times, begin + 60 * known.minutes)
        with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
            try:
                one = pool.submit(run, one, arguments or [str(TESTS)]).result()
            except BrokenProcessPool:
                one.code, one.failed = 1, ["(the process crashed)"]
        total, tests = total + one.examples, tests + one.tests
        minutes = (time.time() - begin) / 60
        print(f"{total:,} examples of {tests:,} tests in {minutes:.1f} minutes", flush=True)
        if one.code or one.failed:  # the time may be up after a failure
            what = " ".join(one.failed or arguments)
            again = f"python -m tools.explore --seed {seed} --times {known.times} {what}"
            print(f"FAILED with seed {seed}: {what}\nTo repeat it: {again}", flush=True)
            return 1
        seed += 1
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""Settings of all property tests: the same few examples everywhere (there are many laws), without a time limit.

Examples depend only on the test, the versions of Python and Hypothesis, and ``--hypothesis-seed``, which draws others.
``make explore`` draws new ones until its time limit.

Results must not depend on the number of threads, so tests may request more of them than the machine has cores.
"""

from __future__ import annotations

import os

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.internal.conjecture import providers

# An explicit parent, because Hypothesis would otherwise use its own profile on a build server.
settings.register_profile(
    "drawn",
    settings.get_profile("default"),
    max_examples=25,
    deadline=None,
    database=None,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile("tagwise", settings.get_profile("drawn"), derandomize=True)
settings.load_profile("tagwise")
# Hypothesis mixes in constants of the local modules that happen to be imported, so examples would depend on the tests
# that ran before in the same process.
providers._get_local_constants = lambda: providers._local_constants
os.environ.setdefault("TAGWISE_MOST_THREADS", "8")
# Before NumPy is imported: products of small matrices take twice the time with two BLAS threads.
for _library in ("OPENBLAS", "MKL"):
    os.environ.setdefault(f"{_library}_NUM_THREADS", "1")


def pytest_configure(config: pytest.Config) -> None:
    """Draw examples by the seed, which a derandomised profile would ignore."""
    if config.getoption("hypothesis_seed") is not None:
        settings.load_profile("drawn")

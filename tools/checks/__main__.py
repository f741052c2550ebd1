"""Run all checks and print what they find: `python -m tools.checks [NAME...]`."""

from __future__ import annotations

import doctest
import importlib
import inspect
import sys
import traceback
from collections.abc import Callable, Iterator

from tools.checks import MODULES


def found(check: Callable[[], Iterator[str]]) -> Iterator[str]:
    """Yield the faults of a check. A check that fails itself is a fault, and the others still run."""
    try:
        yield from check()
    except Exception:
        yield traceback.format_exc()


def main(chosen: list[str]) -> int:
    """Return 1 if a check of the chosen modules (all by default) finds a fault or an example fails."""
    unknown = set(chosen) - set(MODULES)
    if unknown:
        print(
            f"unknown checks {', '.join(sorted(unknown))}, choose from {', '.join(MODULES)}", file=sys.stderr
        )
        return 2
    count, faults = 0, 0
    for name in chosen or MODULES:
        module = importlib.import_module(f"tools.checks.{name}")
        faults += doctest.testmod(module).failed
        for title, check in vars(module).items():
            if title.startswith("check_") and inspect.isgeneratorfunction(check):
                count += 1
                for fault in found(check):
                    faults += 1
                    print(f"{name}.{title}: {fault}")
    print(f"{count} checks, {faults} faults")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""No call of the native module panics or crashes, whatever its arguments.

Covers every function and method of `_core`. Each argument is replaced in turn by values that are wrong, huge, empty,
not numbers, or of another object's size.

Run in separate processes under a memory limit, because a crash would end the test run.
"""

from __future__ import annotations

import inspect
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tagwise import _core

from .native_arguments import Made
from .native_targets import targets

ROOT = Path(__file__).parents[2]


def callables() -> set[str]:
    """Return the names of all functions, constructors and methods with arguments."""
    out = set()
    for name, thing in vars(_core).items():
        if name.startswith("_"):
            continue
        if inspect.isclass(thing):
            out.add(name)
            for method in vars(thing):
                if not method.startswith("_") and callable(getattr(thing, method)):
                    signature = inspect.signature(getattr(thing, method))
                    if set(signature.parameters) - {"self"}:
                        out.add(f"{name}.{method}")
        elif callable(thing):
            out.add(name)
    return out


def named() -> list[str]:
    """Return the names of all targets."""
    return list(targets(Made()))


def test_every_callable_is_a_target() -> None:
    """A callable without a target is reported."""
    known = {name.split("(")[0] for name in named()}
    assert callables() - known == {
        "Dataset",
        "Layout",
    }  # created by encoding, by `build` and `from_arrays`


@pytest.mark.parametrize("part", range(4))
def test_no_panic_and_no_crash(part: int, tmp_path: Path) -> None:
    """Only Python or tagwise exceptions, none that reports an internal defect, and the process survives."""
    names = named()[part::4]
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "tests.unit.native_calls",
            ",".join(names),
            str(tmp_path / "in"),
            str(tmp_path / "out"),
        ],
        capture_output=True,
        text=True,
        timeout=300,
        cwd=ROOT,
        env={**os.environ, "RUST_BACKTRACE": "0", "TAGWISE_MEMORY": "1"},
    )
    assert done.returncode == 0, (names, done.returncode, done.stderr[-3000:])
    assert int(done.stdout) > 200

"""No call of the native module ends in a panic or a crash, whatever it is given.

Every function and method of `_core`, every argument replaced in turn by values that are wrong, huge, empty, not
numbers, or of another object's size.

Run in processes of their own, under a memory limit: a crash would take the tests with it.
"""

from __future__ import annotations

import inspect
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tagwise import _core

from .native_made import Made
from .native_targets import targets

ROOT = Path(__file__).parents[2]


def callables() -> set[str]:
    """Names of all functions, constructors and methods with arguments."""
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
    """All targets."""
    return list(targets(Made()))


def test_every_callable_is_a_target() -> None:
    """One that is added without a line here is named."""
    known = {name.split("(")[0] for name in named()}
    assert callables() - known == {
        "Dataset",
        "Layout",
    }  # made by encoding, by `build` and `from_arrays`


@pytest.mark.parametrize("part", range(4))
def test_no_panic_and_no_crash(part: int, tmp_path: Path) -> None:
    """Errors of Python's or of tagwise's own, none that says a defect was met; and the process lives."""
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

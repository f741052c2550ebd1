"""Every callable of `_core`, called with hostile arguments. `test_native_calls` runs this in a process.

python -m tests.unit.native_calls NAMES FILE OUT
"""

from __future__ import annotations

import resource
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np

from tagwise import _core
from tagwise.base.exceptions import InternalError

from .native_arguments import Made
from .native_targets import ARRAYS, FILE, targets

u16 = np.uint16


def hostile(value: Any, m: Made) -> Iterator[Any]:
    """Yield replacements for a valid value."""
    yield from (None, True, -1, 0, 1, 2, 2**31, 2**32 - 1, 2**63 - 1, 2**63, 2**64 - 1, 2**64, 10**30)
    yield from (float("nan"), float("inf"), -float("inf"), -1.5, 1e308, 5e-324)
    yield from (
        "",
        "x",
        "\ud800",
        "word[-9223372036854775808..3]",
        "word[9223372036854775807]",
        "a" * 10000,
        b"\0",
        "\0",
    )
    yield from ([], (), {}, [[]], [[[]]], [None], object(), lambda *a: 1.0, lambda *a: 1 / 0, [["a"]] * 3)
    yield from (
        m.dataset,
        m.layout,
        m.vocabulary,
        m.scorer,
        m.terms,
        _core.Vocabulary(),
        np.float64(1),
        np.zeros(()),
    )
    other = _core.encode_attributes(_core.Vocabulary(), [[[f"x{i}"] for i in range(50)]])
    yield from (other, other.with_gold(np.full(50, 7, u16)), other.with_gold(np.full(50, 65535, u16)))
    yield _core.encode_attributes(_core.Vocabulary(), [])
    yield _core.encode_attributes(_core.Vocabulary(), [[], []]).with_gold(np.zeros(0, u16))
    yield _core.encode_attributes(_core.Vocabulary(), [[[("a", 3e38)], [("a", -3e38)]]]).with_gold(
        np.zeros(2, u16)
    )
    yield _core.encode_attributes(_core.Vocabulary(), [[["a"], ["b"]]], [[["c"], ["d"]]]).with_gold(
        np.zeros(2, u16)
    )
    yield from (
        _core.Kernel("rbf", gamma=float("nan")),
        _core.Kernel("poly", 2**31, 1e300, -1.0),
        _core.Kernel(lambda a, b: None),  # type: ignore[arg-type, return-value]
        _core.Limits(np.array([2**31], np.uint32)),
        _core.Limits(allowed=(np.zeros((1, 9), bool), np.zeros(2, np.uint32))),
        _core.Epochs(shards=2**40),
        _core.Rule("mira", k=2**40),
        _core.Margins(float("nan"), most=2**62),
        _core.Rounds(features_per_round=2**62, candidates=float("nan")),
    )
    if isinstance(value, dict):
        for name, entry in value.items():
            yield {k: v for k, v in value.items() if k != name}
            for changed in arrays(entry):
                yield {**value, name: changed}
    if isinstance(value, tuple):
        for i, entry in enumerate(value):
            for changed in arrays(entry):
                yield (*value[:i], changed, *value[i + 1 :])
    yield from arrays(value)


def arrays(value: Any) -> Iterator[Any]:
    """Yield arrays of other lengths and values."""
    if not isinstance(value, np.ndarray):
        return
    yield value[:0]
    yield value[:-1]
    yield np.concatenate([value, value])
    yield value[::-1]
    yield value.astype(np.int64)
    yield np.zeros((0, 0, 0), value.dtype)
    if value.ndim == 2:
        yield value[:, :0]
        yield value.T.copy()
    if value.dtype.kind == "f":
        for x in (np.nan, np.inf, -np.inf, np.finfo(value.dtype).max, -np.finfo(value.dtype).max, 5e-324):
            yield np.full_like(value, x)
            if value.size:
                changed = value.copy()
                changed.flat[0] = x
                yield changed
    elif value.dtype.kind == "u":
        for x in (1, 3, 2**15, np.iinfo(value.dtype).max - 1, np.iinfo(value.dtype).max):
            x = min(x, np.iinfo(value.dtype).max)
            yield np.full_like(value, x)
            if value.size:
                changed = value.copy()
                changed.flat[-1] = x
                yield changed


def use(answer: Any) -> None:
    """Use the returned object if possible."""
    if isinstance(answer, _core.Boosting):
        answer.run(2, 0.01)
    for name in ("epoch", "epoch", "weights", "texts", "state", "losses", "arrays"):
        if callable(getattr(answer, name, None)):
            getattr(answer, name)()


def main() -> None:
    names, calls, made = sys.argv[1].split(","), 0, Made()
    with open(FILE, "wb") as out:
        _core.write_model(out, "{}", made.vocabulary, made.scorer, {})
    with open(ARRAYS, "wb") as out:
        _core.write_arrays(out, "{}", {"x": np.ones(2)})
    for name in names:
        made = Made()
        make, arguments = targets(made)[name]
        for which in arguments:
            for value in hostile(arguments[which], made):
                try:
                    use(make()(**{**arguments, which: value}))
                except InternalError as error:
                    raise SystemExit(f"{name}, {which}={value!r:.200}: {error}") from error
                except Exception:  # a panic is not caught here: it derives from BaseException
                    pass
                calls += 1
        make, arguments = targets(Made())[name]
        use(make()(**arguments))  # valid arguments are accepted
    print(calls)


if __name__ == "__main__":
    resource.setrlimit(resource.RLIMIT_AS, (6 << 30, 6 << 30))
    main()

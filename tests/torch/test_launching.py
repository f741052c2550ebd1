"""Kernel launches, recorded by a fake driver."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed: make test-torch")

import tagwise._core as _core  # noqa: E402
from tagwise.base.exceptions import TagwiseError  # noqa: E402
from tagwise.torch.engines import launching  # noqa: E402

_POINTER, _NUMBER = ctypes.c_void_p, ctypes.c_uint
_CALL = ctypes.CFUNCTYPE(ctypes.c_int, _POINTER, *[_NUMBER] * 7, _POINTER, ctypes.POINTER(_POINTER), _POINTER)
NO_CONTEXT = 201


class Driver:
    """Fake driver that records launches and context changes. `answers` are the results of the next launches."""

    def __init__(self, many: int) -> None:
        self.seen: list[Any] = []
        self.answers: list[int] = []
        self.current = 0

        def launch(function: int, x: int, y: int, z: int, *more: Any) -> int:
            *threads, shared, stream, places, options = more
            numbers = [ctypes.cast(places[i], ctypes.POINTER(ctypes.c_int64))[0] for i in range(many)]
            assert (threads[1:], shared, options) == ([1, 1], 0, None)
            self.seen.append((function, (x, y, z), threads[0], stream, numbers, self.current))
            return self.answers.pop(0) if self.answers else 0

        self.cuLaunchKernel = _CALL(launch)

    def cuCtxGetCurrent(self, into: Any) -> int:
        into._obj.value = self.current
        return 0

    def cuCtxPushCurrent_v2(self, context: int) -> int:
        self.below, self.current = self.current, context
        return 0

    def cuCtxPopCurrent_v2(self, into: Any) -> int:
        self.current = self.below
        return 0

    def cuDevicePrimaryCtxRetain(self, into: Any, device: int) -> int:
        into._obj.value = 40 + device
        return 0


@pytest.fixture
def driver(monkeypatch: pytest.MonkeyPatch) -> Iterator[Driver]:
    """Replace the driver by a fake one, for kernels with three arguments."""
    noting = Driver(3)
    kernels = SimpleNamespace(get_kernel=lambda name: SimpleNamespace(handle=len(name)))
    monkeypatch.setattr(launching, "_driver", lambda: noting)
    monkeypatch.setattr(launching, "_module", lambda *_: kernels)
    monkeypatch.setattr(launching, "_stream", lambda device: 1000 + device)
    for kept in (launching._launcher, launching._context):
        kept.cache_clear()
    yield noting
    for kept in (launching._launcher, launching._context):
        kept.cache_clear()


def test_launch_arguments(driver: Driver) -> None:
    """The driver gets the kernel, blocks, threads, PyTorch's stream of the device, and all bits of the arguments."""
    launching.CompiledKernel("chain", 2, (), "four")((5, 6, 7), 96, -1, 2**63 - 1, 0)
    assert driver.seen == [(4, (5, 6, 7), 96, 1002, [-1, 2**63 - 1, 0], 0)]


@pytest.mark.parametrize("current", [0, 9])
def test_threads_without_a_context(driver: Driver, current: int) -> None:
    """The previous context is restored. A thread without one keeps the context of the device."""
    driver.current, driver.answers = current, [NO_CONTEXT]
    launching.CompiledKernel("chain", 2, (), "four")((1, 1, 1), 32, 1, 2, 3)
    first, second = driver.seen
    assert first[:-1] == second[:-1]
    assert (first[-1], second[-1]) == (current, 42)
    assert driver.current == (current or 42)


def test_failed_launches_raise(driver: Driver) -> None:
    """The error names the kernel and the driver's error code."""
    driver.answers = [NO_CONTEXT, 719]
    with pytest.raises(TagwiseError, match="kernel four was not launched: CUDA driver error 719"):
        launching.CompiledKernel("chain", 2, (), "four")((1, 1, 1), 32, 1, 2, 3)
    assert len(driver.seen) == 2


def test_invalid_launches_raise() -> None:
    """A null function, too many arguments, and arguments that are not 64-bit integers raise errors."""
    with pytest.raises(ValueError, match="cuLaunchKernel"):
        _core._Launch(0, 1)
    driver = Driver(0)
    launch = _core._Launch(ctypes.cast(driver.cuLaunchKernel, ctypes.c_void_p).value or 0, 1)
    with pytest.raises(ValueError, match="a kernel of 65 arguments: at most 64"):
        launch((1, 1, 1), 1, 0, *[0] * 65)
    for wrong in (2**63, 1.5, None):
        with pytest.raises((OverflowError, TypeError)):
            launch((1, 1, 1), 1, 0, wrong)  # type: ignore[arg-type]
    assert not driver.seen
    assert launch((1, 1, 1), 1, 0) == 0
    assert len(driver.seen) == 1

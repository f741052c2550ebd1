"""Compiling and launching the kernels of `kernels/`: by NVRTC, for the device and the numbers at hand.

`cuda.core` compiles; nothing is built on the user's machine beforehand. What was compiled is kept for the process, by
source, device and macros. The core launches, through the driver that PyTorch has loaded: what lies between a call in
Python and a kernel is paid at every step of training.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from importlib import resources
from typing import Any

import torch

import tagwise._core as _core
from tagwise.base.exceptions import TagwiseError

Macros = tuple[tuple[str, int], ...]


@cache
def _module(source: str, device: int, macros: Macros) -> Any:
    try:
        from cuda.core import Device, Program, ProgramOptions
    except ImportError as error:
        raise TagwiseError(
            "kernels on a GPU need the package cuda-core: pip install 'tagwise[torch]', or work on the CPU"
        ) from error
    held = Device(device)
    held.set_current()
    options = ProgramOptions(
        std="c++17", arch=f"sm_{held.arch}", define_macro=[(name, str(value)) for name, value in macros]
    )
    return Program(text(source), code_type="c++", options=options).compile("cubin")


def text(source: str) -> str:
    """A source with what stands before it."""
    folder = resources.files("tagwise.torch").joinpath("kernels")
    own = folder.joinpath(f"{source}.cu").read_text("utf-8")
    return own if source == "linear" else folder.joinpath("numbers.cuh").read_text("utf-8") + own


@cache
def _driver() -> Any:
    """The driver that PyTorch has loaded."""
    driver, pointer = (
        ctypes.CDLL("nvcuda.dll" if hasattr(ctypes, "windll") else "libcuda.so.1"),
        ctypes.c_void_p,
    )
    driver.cuDevicePrimaryCtxRetain.argtypes = [pointer, ctypes.c_int]
    driver.cuCtxGetCurrent.argtypes = [pointer]
    driver.cuCtxPushCurrent_v2.argtypes = [pointer]
    driver.cuCtxPopCurrent_v2.argtypes = [pointer]
    return driver


@cache
def _context(device: int) -> int:
    """The context that PyTorch works in, held for the process."""
    held = ctypes.c_void_p()
    failed = _driver().cuDevicePrimaryCtxRetain(ctypes.byref(held), device)
    if failed or not held.value:
        raise TagwiseError(f"the GPU {device} has no context: the driver says error {failed}")
    return held.value


@contextmanager
def _in_context(device: int) -> Iterator[None]:
    """In the device's own context, which stays where the thread had none."""
    driver, was = _driver(), ctypes.c_void_p()
    driver.cuCtxGetCurrent(ctypes.byref(was))
    driver.cuCtxPushCurrent_v2(_context(device))
    try:
        yield
    finally:
        if was.value:
            driver.cuCtxPopCurrent_v2(ctypes.byref(ctypes.c_void_p()))


@cache
def _launcher() -> int:
    """Where the driver's function lies that launches."""
    return ctypes.cast(_driver().cuLaunchKernel, ctypes.c_void_p).value or 0


class Kernel:
    """A compiled kernel; every argument is 64 bits wide. Called, it goes to PyTorch's stream of its device.

    A thread that has not worked on the device yet, as the one that PyTorch derives in, has no context there: the first
    launch fails, and is done again in one.
    """

    def __init__(self, source: str, device: int, macros: Macros, name: str) -> None:
        self._held = _module(source, device, macros).get_kernel(name)  # unloaded with the last who holds it
        self._launch = _core._Launch(_launcher(), int(self._held.handle))
        self._device, self._name = device, name

    def __call__(self, grid: tuple[int, int, int], block: int, *arguments: int) -> None:
        """Launch blocks of so many threads."""
        if self._launch(grid, block, _stream(self._device), *arguments):
            with _in_context(self._device):
                failed = self._launch(grid, block, _stream(self._device), *arguments)
            if failed:
                raise TagwiseError(
                    f"the kernel {self._name} was not launched: the driver says error {failed}"
                )


@cache
def kernel(source: str, device: int, macros: Macros, name: str) -> Kernel:
    """A kernel of a source file with these macros, on this device."""
    return Kernel(source, device, macros, name)


def _raw() -> Any:
    """PyTorch's stream, by the short way where there is one."""
    short = getattr(torch._C, "_cuda_getCurrentRawStream", None)
    return short or (lambda device: torch.cuda.current_stream(device).cuda_stream)


_stream = _raw()


@cache
def processors(device: int) -> int:
    """Multiprocessors of a device."""
    return int(torch.cuda.get_device_properties(device).multi_processor_count)

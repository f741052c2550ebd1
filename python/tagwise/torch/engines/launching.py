"""Compilation of the kernels in `kernels/` with NVRTC, specialised for device and sizes, and their launch.

`cuda.core` compiles at first use. Compiled modules are cached for the process by source, device and macros. The core
launches them through the driver that PyTorch has loaded, since launch overhead occurs in every training step.
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
            "GPU kernels need the package cuda-core, which is not installed. Run pip install 'tagwise[torch]', or "
            "use the CPU"
        ) from error
    held = Device(device)
    held.set_current()
    options = ProgramOptions(
        std="c++17", arch=f"sm_{held.arch}", define_macro=[(name, str(value)) for name, value in macros]
    )
    return Program(text(source), code_type="c++", options=options).compile("cubin")


def text(source: str) -> str:
    """Return the text of a kernel source, preceded by the shared header unless it is `linear`."""
    folder = resources.files("tagwise.torch").joinpath("kernels")
    own = folder.joinpath(f"{source}.cu").read_text("utf-8")
    return own if source == "linear" else folder.joinpath("numbers.cuh").read_text("utf-8") + own


@cache
def _driver() -> Any:
    """Return the driver library that PyTorch has loaded."""
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
    """Return the device's primary context, which PyTorch uses. It is retained until the process ends."""
    held = ctypes.c_void_p()
    failed = _driver().cuDevicePrimaryCtxRetain(ctypes.byref(held), device)
    if failed or not held.value:
        raise TagwiseError(
            f"GPU {device} is not available: CUDA driver error {failed}. Check it with nvidia-smi"
        )
    return held.value


@contextmanager
def _in_context(device: int) -> Iterator[None]:
    """Enter the primary context of a device. It stays current if the thread had no context."""
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
    """Return the address of the driver's `cuLaunchKernel`."""
    return ctypes.cast(_driver().cuLaunchKernel, ctypes.c_void_p).value or 0


class CompiledKernel:
    """Compiled kernel that is launched on PyTorch's current stream of its device. Every argument is 64 bits wide.

    A thread that has not used the device yet, such as PyTorch's autograd thread, has no current context. Its first
    launch fails and is repeated in the primary context.
    """

    def __init__(self, source: str, device: int, macros: Macros, name: str) -> None:
        self._held = _module(source, device, macros).get_kernel(name)  # the last reference unloads it
        self._launch = _core._Launch(_launcher(), int(self._held.handle))
        self._device, self._name = device, name

    def __call__(self, grid: tuple[int, int, int], block: int, *arguments: int) -> None:
        """Launch a grid of blocks of `block` threads."""
        if self._launch(grid, block, _stream(self._device), *arguments):
            with _in_context(self._device):
                failed = self._launch(grid, block, _stream(self._device), *arguments)
            if failed:
                raise TagwiseError(
                    f"kernel {self._name} was not launched: CUDA driver error {failed}. Check the GPU with nvidia-smi"
                )


@cache
def kernel(source: str, device: int, macros: Macros, name: str) -> CompiledKernel:
    """Return a kernel of a source file, compiled with these macros for this device."""
    return CompiledKernel(source, device, macros, name)


def _raw() -> Any:
    """Return the function that gives PyTorch's current stream, the faster private one if it exists."""
    short = getattr(torch._C, "_cuda_getCurrentRawStream", None)
    return short or (lambda device: torch.cuda.current_stream(device).cuda_stream)


_stream = _raw()


@cache
def processors(device: int) -> int:
    """Return the number of multiprocessors of a device."""
    return int(torch.cuda.get_device_properties(device).multi_processor_count)

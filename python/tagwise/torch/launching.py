"""Compiling and launching the kernels of `kernels/`: by NVRTC, for the device and the numbers at hand.

`cuda.core` compiles; nothing is built on the user's machine beforehand. What was compiled is kept for the process, by
source, device and macros. Launches go to the driver itself, with arguments that are packed at once: what lies between a
call in Python and a kernel is paid at every step of training.
"""

from __future__ import annotations

import ctypes
import struct
import threading
from functools import cache
from importlib import resources
from typing import Any

import torch

from tagwise.errors import TagwiseError

Macros = tuple[tuple[str, int], ...]
#: What the driver says where a thread has no context, or that of another device.
_NO_CONTEXT = 201
_ELSEWHERE = (_NO_CONTEXT, 400)


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
    folder = resources.files(__package__).joinpath("kernels")
    own = folder.joinpath(f"{source}.cu").read_text("utf-8")
    return own if source in ("linear", "vectors") else folder.joinpath("numbers.cuh").read_text("utf-8") + own


@cache
def _driver() -> Any:
    """The driver that PyTorch has loaded."""
    driver = ctypes.CDLL("nvcuda.dll" if hasattr(ctypes, "windll") else "libcuda.so.1")
    number, pointer = ctypes.c_uint, ctypes.c_void_p
    driver.cuLaunchKernel.argtypes = [pointer, *[number] * 7, pointer, pointer, pointer]
    driver.cuDevicePrimaryCtxRetain.argtypes = [pointer, ctypes.c_int]
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


class Kernel:
    """A compiled kernel; every argument is 64 bits wide. Called, it goes to PyTorch's stream of its device.

    Arguments lie in a buffer of the calling thread; the driver has copied them when it returns. A thread that has not
    worked on the device yet, as the one that PyTorch derives in, has no context there: it is given one.
    """

    def __init__(self, source: str, device: int, macros: Macros, name: str) -> None:
        self._module = _module(source, device, macros)  # unloaded with the last who holds it
        self._kernel = self._module.get_kernel(name)
        self._handle, self._device, self._name = int(self._kernel.handle), device, name
        self._local = threading.local()
        self._launch = _driver().cuLaunchKernel

    def _buffers(self, many: int) -> Any:
        room = (ctypes.c_int64 * many)()
        first = ctypes.addressof(room)
        pointers = (ctypes.c_void_p * many)(*(first + 8 * k for k in range(many)))
        found = struct.Struct(f"{many}q").pack_into, room, ctypes.addressof(pointers), pointers
        self._local.found = found
        return found

    def __call__(self, grid: tuple[int, int, int], block: int, *arguments: int) -> None:
        """Launch blocks of so many threads."""
        try:
            pack, room, pointers, _ = self._local.found
        except AttributeError:
            pack, room, pointers, _ = self._buffers(len(arguments))
        pack(room, 0, *arguments)
        x, y, z = grid
        given = self._handle, x, y, z, block, 1, 1, 0, _stream(self._device), pointers, None
        failed = self._launch(*given)
        if failed in _ELSEWHERE:
            failed = self._in_context(given, failed)
        if failed:
            raise TagwiseError(f"the kernel {self._name} was not launched: the driver says error {failed}")

    def _in_context(self, given: tuple[Any, ...], why: int) -> int:
        """Launch in the device's own context, which stays where the thread had none."""
        driver, context = _driver(), _context(self._device)
        failed = driver.cuCtxPushCurrent_v2(context) or self._launch(*given)
        if why != _NO_CONTEXT:
            driver.cuCtxPopCurrent_v2(ctypes.byref(ctypes.c_void_p()))
        return int(failed)


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

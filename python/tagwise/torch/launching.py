"""Compiling and launching the kernels of `kernels/`: by NVRTC, for the device and the numbers at hand.

`cuda.core` compiles and launches; nothing is built on the user's machine beforehand. What was compiled is kept for the
process, by source, device and macros.
"""

from __future__ import annotations

from functools import cache
from importlib import resources
from typing import Any

import torch

from tagwise.errors import TagwiseError

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
    text = resources.files(__package__).joinpath("kernels").joinpath(f"{source}.cu").read_text("utf-8")
    options = ProgramOptions(
        std="c++17", arch=f"sm_{held.arch}", define_macro=[(name, str(value)) for name, value in macros]
    )
    return Program(text, code_type="c++", options=options).compile("cubin")


@cache
def kernel(source: str, device: int, macros: Macros, name: str) -> Any:
    """A kernel of a source file with these macros, on this device."""
    return _module(source, device, macros).get_kernel(name)


@cache
def _stream(handle: int) -> Any:
    from cuda.core import Stream

    return Stream.from_handle(handle)


@cache
def _shape(grid: tuple[int, ...], block: int) -> Any:
    from cuda.core import LaunchConfig

    return LaunchConfig(grid=grid, block=block)


def launch(what: Any, device: int, grid: tuple[int, ...], block: int, *arguments: int) -> None:
    """Launch on PyTorch's stream of the device; every argument is 64 bits wide."""
    _launcher()(_stream(_handle(device)), _shape(grid, block), what, *arguments)


@cache
def _launcher() -> Any:
    from cuda.core import launch

    return launch


def _handle(device: int) -> int:
    """PyTorch's stream, by the short way where there is one."""
    short = getattr(torch._C, "_cuda_getCurrentRawStream", None)
    return int(short(device) if short is not None else torch.cuda.current_stream(device).cuda_stream)


@cache
def processors(device: int) -> int:
    """Multiprocessors of a device."""
    return int(torch.cuda.get_device_properties(device).multi_processor_count)

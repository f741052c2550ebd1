"""Emulation of the kernels in `tagwise/torch/kernels` on the CPU: C++ whose threads are fibers (`emulated.h`).

It covers indices, barriers, reductions and arithmetic. Races between warps, speed and the exponentials of the hardware
need a GPU.
"""

from __future__ import annotations

import ctypes
import hashlib
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from tagwise.torch.engines import cuda, launching

HEADER = Path(__file__).with_suffix(".h")
needs_compiler = pytest.mark.skipif(shutil.which("g++") is None, reason="no g++ here")
#: Inline assembly, and its replacement in C++.
_ASSEMBLY = (
    (r'\{ real y; asm\("ex2.*?return y; \}', "{ return exp2f(x); }"),
    (r'\{ real y; asm\("lg2.*?return y; \}', "{ return log2f(x); }"),
)


@cache
def _folder() -> tempfile.TemporaryDirectory[str]:
    """Return the folder of compiled libraries, which is removed when the process ends."""
    return tempfile.TemporaryDirectory(prefix="tagwise-kernels-")


@cache
def compiled(text: str, *options: str) -> ctypes.PyDLL:
    """Compile a source into a shared library. Its calls keep the GIL, since the state of the fibers is global."""
    name = hashlib.sha256(repr((text, options)).encode()).hexdigest()[:16]
    path = Path(_folder().name) / f"{name}.so"
    command = ["g++", "-x", "c++", "-std=c++17", "-O1", "-w", "-shared", "-fPIC", "-ffp-contract=off"]
    subprocess.run(
        [*command, *options, "-include", str(HEADER), "-", "-o", str(path)],
        input=text.encode(),
        check=True,
    )
    return ctypes.PyDLL(str(path))


@cache
def library(source: str, macros: launching.Macros) -> ctypes.PyDLL:
    """Compile a kernel source into a shared library."""
    text = launching.text(source)
    for pattern, with_ in _ASSEMBLY:
        text = re.sub(pattern, with_, text)
    return compiled(text, *(f"-D{key}={value}" for key, value in macros))


class Emulated:
    """Emulated kernel with the interface of `launching.CompiledKernel`."""

    def __init__(self, source: str, device: int, macros: launching.Macros, name: str) -> None:
        self._held = library(source, macros)
        self._address = ctypes.cast(getattr(self._held, name), ctypes.c_void_p)
        self._name = name

    def __call__(self, grid: tuple[int, int, int], block: int, *arguments: int) -> None:
        given = (ctypes.c_int64 * len(arguments))(*arguments)
        failed = self._held.emulate(self._address, *grid, block, given, len(arguments))
        assert failed == 0, f"{self._name}: threads wait for one another"


@pytest.fixture
def kernels(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Make `cuda`, `many_labels_cuda` and `linear` run on CPU tensors."""
    monkeypatch.setattr(launching, "kernel", cache(Emulated))
    monkeypatch.setattr(launching, "processors", lambda device: 3)
    cuda.plan.cache_clear()
    yield
    cuda.plan.cache_clear()

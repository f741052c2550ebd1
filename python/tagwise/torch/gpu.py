"""Launching the kernels of `kernels/chain.cu`: compiled by NVRTC for the device, type and number of labels at hand.

`cuda.core` compiles and launches; nothing is built on the user's machine beforehand. A compiled module is kept for the
process, one for each (device, labels, types).
"""

from __future__ import annotations

from functools import cache
from importlib import resources
from typing import Any

import torch
from torch import Tensor

from tagwise.errors import TagwiseError
from tagwise.torch.plain import Gradient, Sums

#: Labels that a block's registers hold; beyond it the plain path is used.
MOST_LABELS = 64
#: Sentences of so many tokens are cut into pieces of PIECE that are summed side by side, where they are few.
LONG, PIECE = 2048, 512
_INPUTS = {torch.float32: 0, torch.float16: 1, torch.bfloat16: 2, torch.float64: 3}
_TOKENS = 32


@cache
def _module(device: int, labels: int, given: torch.dtype) -> Any:
    """The kernels for so many labels and emissions of this type, on this device."""
    try:
        from cuda.core import Device, Program, ProgramOptions
    except ImportError as error:  # pragma: no cover
        raise TagwiseError(
            "chains on a GPU need the package cuda-core: pip install 'tagwise[torch]', or move the tensors to the CPU"
        ) from error
    held = Device(device)
    held.set_current()
    macros = {
        "L": labels,
        "WARPS": -(-labels // 32),
        "WIDE": int(given == torch.float64),
        "INPUT": _INPUTS[given],
    }
    source = resources.files(__package__).joinpath("kernels").joinpath("chain.cu").read_text("utf-8")
    options = ProgramOptions(
        std="c++17",
        arch=f"sm_{held.arch}",
        define_macro=[(name, str(value)) for name, value in macros.items()],
    )
    return Program(source, code_type="c++", options=options).compile("cubin")


@cache
def _kernel(device: int, labels: int, given: torch.dtype, name: str) -> Any:
    return _module(device, labels, given).get_kernel(name)


@cache
def _stream(handle: int) -> Any:
    from cuda.core import Stream

    return Stream.from_handle(handle)


@cache
def _shape(grid: tuple[int, ...], block: int) -> Any:
    from cuda.core import LaunchConfig

    return LaunchConfig(grid=grid, block=block)


def _launch(name: str, emissions: Tensor, grid: tuple[int, ...], block: int, *arguments: int) -> None:
    from cuda.core import launch

    device = emissions.device.index or 0
    kernel = _kernel(device, emissions.shape[2], emissions.dtype, name)
    stream = _stream(torch.cuda.current_stream(device).cuda_stream)
    launch(stream, _shape(grid, block), kernel, *arguments)


def _pointer(tensor: Tensor | None) -> int:
    return 0 if tensor is None else tensor.data_ptr()


def _common(
    emissions: Tensor,
    transitions: Tensor,
    start: Tensor,
    end: Tensor,
    lengths: Tensor | None,
    tags: Tensor | None,
) -> tuple[int, ...]:
    batch, time, _ = emissions.shape
    by_tag = (0, 0) if tags is None else tags.stride()
    return (
        emissions.data_ptr(),
        *emissions.stride(),
        transitions.data_ptr(),
        start.data_ptr(),
        end.data_ptr(),
        _pointer(lengths),
        _pointer(tags),
        *by_tag,
        batch,
        time,
    )


def _warps(labels: int) -> int:
    return 32 * -(-labels // 32)


def sums(
    emissions: Tensor,
    transitions: Tensor,
    start: Tensor,
    end: Tensor,
    lengths: Tensor | None,
    tags: Tensor | None,
) -> Sums:
    """As `plain.sums`; the recursions are logarithms to the base 2, not normalised."""
    batch, time, labels = emissions.shape
    ahead, behind = start.new_empty(batch, time, labels + 1), start.new_empty(batch, time, labels)
    value = start.new_empty(batch)
    if not batch:
        return Sums(value, ahead, behind)
    common = _common(emissions, transitions, start, end, lengths, tags)
    out = ahead.data_ptr(), behind.data_ptr(), value.data_ptr()
    threads = _warps(labels)
    if time < LONG or batch > _processors(emissions.device.index or 0):
        _launch("chain_forward", emissions, (batch, 2), threads, *common, *out, time, 1, 0, 0, 0)
        return Sums(value, ahead, behind)
    pieces = -(-time // PIECE)
    matrices = start.new_empty(batch * pieces * labels * (labels + 3 * (labels + 1)))
    scratch = matrices.data_ptr() + batch * pieces * labels * labels * matrices.element_size()
    doubles = start.new_empty(batch * pieces * (labels + 2), dtype=torch.float64)
    offsets = doubles.data_ptr() + 8 * batch * pieces * labels
    parts = offsets + 8 * batch * pieces
    entries = start.new_empty(2 * batch * pieces * labels)
    _launch(
        "chain_matrices",
        emissions,
        (batch * pieces * labels, 1),
        threads,
        *common,
        PIECE,
        pieces,
        matrices.data_ptr(),
        doubles.data_ptr(),
        scratch,
        parts,
    )
    _launch(
        "chain_join",
        emissions,
        (batch, 2),
        threads,
        _pointer(lengths),
        batch,
        time,
        end.data_ptr(),
        PIECE,
        pieces,
        matrices.data_ptr(),
        doubles.data_ptr(),
        entries.data_ptr(),
        offsets,
    )
    cut = PIECE, pieces, entries.data_ptr(), offsets, parts
    _launch("chain_forward", emissions, (batch * pieces, 2), threads, *common, *out, *cut)
    return Sums(value, ahead, behind)


def expect(
    emissions: Tensor,
    transitions: Tensor,
    start: Tensor,
    end: Tensor,
    lengths: Tensor | None,
    tags: Tensor | None,
    ahead: Tensor,
    behind: Tensor,
    scale: Tensor,
) -> Gradient:
    """As `plain.expect`."""
    batch, time, labels = emissions.shape
    out = Gradient(
        torch.empty_like(emissions),
        start.new_empty(labels, labels),
        start.new_empty(labels),
        start.new_empty(labels),
    )
    pieces = batch * -(-time // _TOKENS)
    if not pieces:
        return Gradient(*(x.zero_() for x in out))
    blocks = min(pieces, 4 * _processors(emissions.device.index or 0))
    work = start.new_empty(blocks * labels * labels + 2 * batch * labels)
    pairs, item = work.data_ptr(), work.element_size()
    starts = pairs + blocks * labels * labels * item
    ends = starts + batch * labels * item
    common = _common(emissions, transitions, start, end, lengths, tags)
    _launch(
        "chain_expect",
        emissions,
        (blocks, 1),
        128 if (-(-labels // 4)) ** 2 <= 128 else 256,
        *common,
        ahead.data_ptr(),
        behind.data_ptr(),
        scale.data_ptr(),
        *scale.stride(),
        out.emissions.data_ptr(),
        *out.emissions.stride(),
        pairs,
        starts,
        ends,
    )
    _launch(
        "chain_reduce",
        emissions,
        (-(-(labels * labels + 2 * labels) // 32), 1),
        256,
        pairs,
        blocks,
        starts,
        ends,
        batch,
        out.transitions.data_ptr(),
        out.start.data_ptr(),
        out.end.data_ptr(),
    )
    return out


@cache
def _processors(device: int) -> int:
    return int(torch.cuda.get_device_properties(device).multi_processor_count)


def best(
    emissions: Tensor, transitions: Tensor, start: Tensor, end: Tensor, lengths: Tensor | None
) -> tuple[Tensor, Tensor]:
    """As `plain.best`."""
    batch, time, labels = emissions.shape
    path = torch.empty(batch, time, dtype=torch.int64, device=emissions.device)
    value = start.new_empty(batch)
    back = path.new_empty(batch, time, labels, dtype=torch.uint8 if labels <= 256 else torch.int16)
    if batch:
        common = _common(emissions, transitions, start, end, lengths, None)
        _launch(
            "chain_best",
            emissions,
            (batch, 1),
            _warps(labels),
            *common,
            back.data_ptr(),
            path.data_ptr(),
            value.data_ptr(),
        )
    return path, value

"""Chain operations as PyTorch operators: twice differentiable, one node each for `torch.compile` and `torch.export`.

`chain` sums over all paths. Its derivative is `expect`, whose derivative is `bend`: log Z, its gradient, and its
Hessian-vector product. The rest of the package is built from these three and `best`. They are kernels on CUDA, the
SIMD code of the core on the CPU in single precision, and plain PyTorch elsewhere.

The operators are registered with PyTorch's dispatcher for tracing. Eager calls bypass it, since two passes of the
dispatcher through Python take ten times as long as the kernels.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from tagwise.base.exceptions import TensorError
from tagwise.torch.engines import cuda, many_labels, native, reference
from tagwise.torch.protocol import AtOnce, Chain, Engine, Gradient

_CHAIN = "Tensor emissions, Tensor transitions, Tensor start, Tensor end, Tensor? lengths"
_SUMS = "Tensor rows, Tensor scale"
_ALONG = "Tensor along_emissions, Tensor along_transitions, Tensor along_start, Tensor along_end"
_INPUTS = 6
_LIBRARY = torch.library.Library("tagwise", "DEF")
_LIBRARY.define(f"chain({_CHAIN}, Tensor? tags) -> (Tensor, Tensor)")
_LIBRARY.define(f"expect({_CHAIN}, Tensor? tags, {_SUMS}) -> (Tensor, Tensor, Tensor, Tensor)")
_LIBRARY.define(
    f"bend({_CHAIN}, Tensor? tags, {_SUMS}, {_ALONG}) -> (Tensor, Tensor, Tensor, Tensor, Tensor)"
)
_LIBRARY.define(f"best({_CHAIN}) -> (Tensor, Tensor)")


def engine(emissions: Tensor) -> Engine:
    """Return the engine for these emissions."""
    if emissions.shape[2] > cuda.MOST_LABELS:
        return many_labels
    if emissions.device.type == "cuda":
        return cuda
    single = emissions.dtype != torch.float64
    return native if emissions.device.type == "cpu" and single and emissions.shape[2] else reference


# --- implementations ----------------------------------------------------------------------------------------


def _chain(*given: Any) -> tuple[Tensor, Tensor]:
    return tuple(engine(given[0]).sums(Chain(*given)))


def _expect(*given: Any) -> tuple[Tensor, ...]:
    *chain, rows, scale = given
    return tuple(engine(given[0]).expect(Chain(*chain), rows, scale))


def _bend(*given: Any) -> tuple[Tensor, ...]:
    chain, (rows, scale, *along) = Chain(*given[:6]), given[6:]
    exact = chain._replace(emissions=chain.emissions.to(chain.start.dtype), tags=None)
    direction = Gradient(*(x.to(exact.start.dtype) for x in along))
    sign = scale if chain.tags is None else -scale
    change, slope = engine(chain.emissions).bend(exact, rows, sign.contiguous(), direction)
    if chain.tags is not None:
        slope = reference.path_score(Chain(*direction, chain.lengths, chain.tags)) - slope
    return change.emissions.to(chain.emissions.dtype), *change[1:], slope


def _best(*given: Any) -> tuple[Tensor, ...]:
    return tuple(engine(given[0]).best(Chain(*given)))


# --- shapes, for tracing ------------------------------------------------------------------------------------


def _chain_shape(emissions: Tensor, transitions: Tensor, start: Tensor, *_: Any) -> tuple[Tensor, ...]:
    batch, time, labels = emissions.shape
    who = engine(emissions)
    if who is native:
        return start.new_empty(batch), start.new_empty(0)
    shape = (batch, time, cuda.width(labels)) if who is cuda else (2, batch, time, labels)
    return start.new_empty(batch), start.new_empty(shape)


def _expect_shape(
    emissions: Tensor, transitions: Tensor, start: Tensor, end: Tensor, *_: Any
) -> tuple[Tensor, ...]:
    return tuple(torch.empty_like(x) for x in (emissions, transitions, start, end))


def _bend_shape(
    emissions: Tensor, transitions: Tensor, start: Tensor, end: Tensor, *_: Any
) -> tuple[Tensor, ...]:
    return *_expect_shape(emissions, transitions, start, end), start.new_empty(emissions.shape[0])


def _best_shape(emissions: Tensor, transitions: Tensor, start: Tensor, *_: Any) -> tuple[Tensor, ...]:
    return emissions.new_empty(emissions.shape[:2], dtype=torch.int64), start.new_empty(emissions.shape[0])


for _name, _compute, _shape in (
    ("chain", _chain, _chain_shape),
    ("expect", _expect, _expect_shape),
    ("bend", _bend, _bend_shape),
    ("best", _best, _best_shape),
):
    torch.library.impl(_LIBRARY, _name, "CompositeExplicitAutograd")(_compute)
    torch.library.register_fake(f"tagwise::{_name}", _shape, lib=_LIBRARY)


# --- derivatives --------------------------------------------------------------------------------------------


def _keep_chain(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
    ctx.save_for_backward(*inputs, output[1])
    ctx.mark_non_differentiable(output[1])
    ctx.set_materialize_grads(False)


def _chain_traced(ctx: Any, slope: Tensor, *_: Any) -> tuple[Tensor | None, ...]:
    return *torch.ops.tagwise.expect(*ctx.saved_tensors, slope), None, None


def _keep_expect(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
    ctx.save_for_backward(*inputs)


def _expect_traced(ctx: Any, *along: Tensor) -> tuple[Tensor | None, ...]:
    *change, slope = torch.ops.tagwise.bend(*ctx.saved_tensors, *along)
    return *change, None, None, None, slope


def _no_more(ctx: Any, *_: Any) -> Any:
    raise TensorError(
        "chains can be differentiated twice, not three times; pass transitions per token (edges=, or (B, T, L, L) for "
        "LinearChain), which autograd can differentiate any number of times"
    )


# `is_compiling` is false while a tracer differentiates, so these backward functions call the operators by name.
torch.library.register_autograd("tagwise::chain", _chain_traced, setup_context=_keep_chain, lib=_LIBRARY)
torch.library.register_autograd("tagwise::expect", _expect_traced, setup_context=_keep_expect, lib=_LIBRARY)
torch.library.register_autograd("tagwise::bend", _no_more, lib=_LIBRARY)


def _at_once(emissions: Tensor, start: Tensor) -> AtOnce | None:
    """Return the engine if it computes a sum together with its gradient, otherwise None.

    Gradients in half precision must be scaled before they are rounded, so they are computed in the backward pass.
    """
    who = engine(emissions)
    return who if emissions.dtype == start.dtype and (who is cuda or who is native) else None


class _Chain(torch.autograd.Function):  # type: ignore[misc]
    """Autograd function of the values alone, or of their sum. A second output would need a gradient of its own.

    The gradient of a sum is computed in the forward pass, up to a factor, and the first backward pass takes it. Further
    backward passes compute it again.
    """

    @staticmethod
    def forward(ctx: Any, added: bool, *inputs: Any) -> Any:
        who = _at_once(inputs[0], inputs[2]) if added and any(ctx.needs_input_grad) else None
        ctx.who, ctx.known = who, None
        if who is not None:
            total, ctx.known = who.gradient(Chain(*inputs))
            ctx.save_for_backward(*inputs)
            return total
        value, rows = _chain(*inputs)
        ctx.save_for_backward(*inputs, rows)
        return value.sum() if added else value

    @staticmethod
    def backward(ctx: Any, slope: Tensor) -> Any:
        known, ctx.known = ctx.known, None
        if known is not None and not torch.is_grad_enabled():
            ctx.who.scale(known, slope)
            return None, *known, None, None
        kept = ctx.saved_tensors
        if len(kept) == _INPUTS:
            kept = *kept, recursions(*kept)[1]
        if not slope.dim() and (torch.is_grad_enabled() or engine(kept[0]) is not cuda):
            slope = slope.expand(kept[0].shape[0])
        return None, *expect(*kept, slope), None, None


class _Expect(torch.autograd.Function):  # type: ignore[misc]
    @staticmethod
    def forward(ctx: Any, *inputs: Any) -> Any:
        ctx.save_for_backward(*inputs)
        return _expect(*inputs)

    @staticmethod
    def backward(ctx: Any, *along: Tensor) -> Any:
        *change, slope = bend(*ctx.saved_tensors, *along)
        return *change, None, None, None, slope


class _Bend(torch.autograd.Function):  # type: ignore[misc]
    @staticmethod
    def forward(ctx: Any, *inputs: Any) -> Any:
        return _bend(*inputs)

    backward = staticmethod(_no_more)


# --- calls --------------------------------------------------------------------------------------------------


def chain(
    emissions: Tensor,
    transitions: Tensor,
    start: Tensor,
    end: Tensor,
    lengths: Tensor | None,
    tags: Tensor | None,
    added: bool = False,
) -> Tensor:
    """Return log Z (B,), or the log-likelihood of `tags`. With `added`, return the sum over the sentences.

    Emissions (B, T, L) can be strided and in half precision. Parameters are float32, or float64 if the emissions are.
    `lengths` are int32, or None if all sentences have T tokens. `tags` are (B, T) int64 with arbitrary padding.
    """
    given = emissions, transitions, start, end, lengths, tags
    if torch.compiler.is_compiling():
        value = torch.ops.tagwise.chain(*given)[0]
    elif torch.is_grad_enabled():
        return _Chain.apply(added, *given)
    else:
        value = _chain(*given)[0]
    return value.sum() if added else value


def recursions(*given: Tensor | None) -> tuple[Tensor, Tensor]:
    """Return the values and the recursions of both directions, for `expect`. Neither is differentiable."""
    if torch.compiler.is_compiling():
        value, rows = torch.ops.tagwise.chain(*given)
        return value.detach(), rows
    with torch.no_grad():
        return _chain(*given)


def expect(*given: Tensor | None) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Return the gradient of sum_b scale_b chain_b, given the inputs of `chain`, its recursions and the scale."""
    if torch.compiler.is_compiling():
        return torch.ops.tagwise.expect(*given)  # type: ignore[no-any-return]
    if torch.is_grad_enabled():
        return _Expect.apply(*given)  # type: ignore[no-any-return]
    return _expect(*given)


def bend(*given: Tensor | None) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    """Return the derivatives of `expect` and of each value along a direction, given the inputs of `expect` and it.

    Differentiating the result raises TensorError.
    """
    if torch.compiler.is_compiling():
        return torch.ops.tagwise.bend(*given)  # type: ignore[no-any-return]
    if torch.is_grad_enabled():
        return _Bend.apply(*given)  # type: ignore[no-any-return]
    return _bend(*given)


def best(
    emissions: Tensor, transitions: Tensor, start: Tensor, end: Tensor, lengths: Tensor | None
) -> tuple[Tensor, Tensor]:
    """Return the Viterbi path (B, T), padded with -1, and its score. The lower label wins ties."""
    given = emissions, transitions, start, end, lengths
    if torch.compiler.is_compiling():
        return torch.ops.tagwise.best(*given)  # type: ignore[no-any-return]
    with torch.no_grad():
        return _best(*given)

"""Chain operations as PyTorch operators: twice differentiable, one node each for `torch.compile` and `torch.export`.

`chain` sums over all paths. Its derivative is `expectations`, whose derivative is `hessian_product`: log Z, its
gradient, and its Hessian-vector product. The rest of the package is built from these three and `viterbi`. They are
kernels on CUDA, the SIMD code of the core on the CPU in single precision, and plain PyTorch elsewhere.

The operators are registered with PyTorch's dispatcher for tracing. Eager calls bypass it, since two passes of the
dispatcher through Python take ten times as long as the kernels.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from tagwise.base.exceptions import TensorError
from tagwise.torch.engines import cuda, many_labels, native, reference
from tagwise.torch.protocol import Chain, Engine, FusedEngine, Gradient

_CHAIN = "Tensor emissions, Tensor transitions, Tensor start, Tensor end, Tensor? lengths"
_SUMS = "Tensor rows, Tensor scale"
_ALONG = "Tensor along_emissions, Tensor along_transitions, Tensor along_start, Tensor along_end"
_INPUTS = 6
_LIBRARY = torch.library.Library("tagwise", "DEF")
_LIBRARY.define(f"chain({_CHAIN}, Tensor? tags) -> (Tensor, Tensor)")
_LIBRARY.define(f"expectations({_CHAIN}, Tensor? tags, {_SUMS}) -> (Tensor, Tensor, Tensor, Tensor)")
_LIBRARY.define(
    f"hessian_product({_CHAIN}, Tensor? tags, {_SUMS}, {_ALONG}) -> (Tensor, Tensor, Tensor, Tensor, Tensor)"
)
_LIBRARY.define(f"viterbi({_CHAIN}) -> (Tensor, Tensor)")


def engine(emissions: Tensor) -> Engine:
    """Return the engine for these emissions."""
    if emissions.shape[2] > cuda.MOST_LABELS:
        return many_labels
    if emissions.device.type == "cuda":
        return cuda
    single = emissions.dtype != torch.float64
    return native if emissions.device.type == "cpu" and single and emissions.shape[2] else reference


# --- implementations ----------------------------------------------------------------------------------------


def _chain(*arguments: Any) -> tuple[Tensor, Tensor]:
    return tuple(engine(arguments[0]).forward_backward(Chain(*arguments)))


def _expectations(*arguments: Any) -> tuple[Tensor, ...]:
    *chain, rows, scale = arguments
    return tuple(engine(arguments[0]).expectations(Chain(*chain), rows, scale))


def _hessian_product(*arguments: Any) -> tuple[Tensor, ...]:
    chain, (rows, scale, *along) = Chain(*arguments[:6]), arguments[6:]
    exact = chain._replace(emissions=chain.emissions.to(chain.start.dtype), tags=None)
    direction = Gradient(*(x.to(exact.start.dtype) for x in along))
    sign = scale if chain.tags is None else -scale
    change, slope = engine(chain.emissions).hessian_product(exact, rows, sign.contiguous(), direction)
    if chain.tags is not None:
        slope = reference.path_score(Chain(*direction, chain.lengths, chain.tags)) - slope
    return change.emissions.to(chain.emissions.dtype), *change[1:], slope


def _viterbi(*arguments: Any) -> tuple[Tensor, ...]:
    return tuple(engine(arguments[0]).viterbi(Chain(*arguments)))


# --- shapes, for tracing ------------------------------------------------------------------------------------


def _chain_shape(emissions: Tensor, transitions: Tensor, start: Tensor, *_: Any) -> tuple[Tensor, ...]:
    batch, time, labels = emissions.shape
    chosen = engine(emissions)
    if chosen is native:
        return start.new_empty(batch), start.new_empty(0)
    shape = (batch, time, cuda.width(labels)) if chosen is cuda else (2, batch, time, labels)
    return start.new_empty(batch), start.new_empty(shape)


def _expectations_shape(
    emissions: Tensor, transitions: Tensor, start: Tensor, end: Tensor, *_: Any
) -> tuple[Tensor, ...]:
    return tuple(torch.empty_like(x) for x in (emissions, transitions, start, end))


def _hessian_product_shape(
    emissions: Tensor, transitions: Tensor, start: Tensor, end: Tensor, *_: Any
) -> tuple[Tensor, ...]:
    return *_expectations_shape(emissions, transitions, start, end), start.new_empty(emissions.shape[0])


def _viterbi_shape(emissions: Tensor, transitions: Tensor, start: Tensor, *_: Any) -> tuple[Tensor, ...]:
    return emissions.new_empty(emissions.shape[:2], dtype=torch.int64), start.new_empty(emissions.shape[0])


for _name, _compute, _shape in (
    ("chain", _chain, _chain_shape),
    ("expectations", _expectations, _expectations_shape),
    ("hessian_product", _hessian_product, _hessian_product_shape),
    ("viterbi", _viterbi, _viterbi_shape),
):
    torch.library.impl(_LIBRARY, _name, "CompositeExplicitAutograd")(_compute)
    torch.library.register_fake(f"tagwise::{_name}", _shape, lib=_LIBRARY)


# --- derivatives --------------------------------------------------------------------------------------------


def _save_chain(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
    ctx.save_for_backward(*inputs, output[1])
    ctx.mark_non_differentiable(output[1])
    ctx.set_materialize_grads(False)


def _chain_traced(ctx: Any, slope: Tensor, *_: Any) -> tuple[Tensor | None, ...]:
    return *torch.ops.tagwise.expectations(*ctx.saved_tensors, slope), None, None


def _save_expectations(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
    ctx.save_for_backward(*inputs)


def _expectations_traced(ctx: Any, *along: Tensor) -> tuple[Tensor | None, ...]:
    *change, slope = torch.ops.tagwise.hessian_product(*ctx.saved_tensors, *along)
    return *change, None, None, None, slope


def _third_derivative(ctx: Any, *_: Any) -> Any:
    raise TensorError(
        "chains can be differentiated twice, not three times. Pass transitions per token (edges=, or (B, T, L, L) for "
        "LinearChain), which autograd can differentiate any number of times."
    )


# `is_compiling` is false while a tracer differentiates, so these backward functions call the operators by name.
torch.library.register_autograd("tagwise::chain", _chain_traced, setup_context=_save_chain, lib=_LIBRARY)
torch.library.register_autograd(
    "tagwise::expectations", _expectations_traced, setup_context=_save_expectations, lib=_LIBRARY
)
torch.library.register_autograd("tagwise::hessian_product", _third_derivative, lib=_LIBRARY)


def _fused_engine(emissions: Tensor, start: Tensor) -> FusedEngine | None:
    """Return the engine if it computes a sum together with its gradient, otherwise None.

    Gradients in half precision must be scaled before they are rounded, so they are computed in the backward pass.
    """
    chosen = engine(emissions)
    return chosen if emissions.dtype == start.dtype and (chosen is cuda or chosen is native) else None


class _Chain(torch.autograd.Function):  # type: ignore[misc]
    """Autograd function of the values alone, or of their sum. A second output would need a gradient of its own.

    The gradient of a sum is computed in the forward pass, up to a factor, and the first backward pass takes it. Further
    backward passes compute it again.
    """

    @staticmethod
    def forward(ctx: Any, summed: bool, *inputs: Any) -> Any:
        chosen = _fused_engine(inputs[0], inputs[2]) if summed and any(ctx.needs_input_grad) else None
        ctx.chosen, ctx.gradient = chosen, None
        if chosen is not None:
            total, ctx.gradient = chosen.gradient(Chain(*inputs))
            ctx.save_for_backward(*inputs)
            return total
        value, rows = _chain(*inputs)
        ctx.save_for_backward(*inputs, rows)
        return value.sum() if summed else value

    @staticmethod
    def backward(ctx: Any, slope: Tensor) -> Any:
        gradient, ctx.gradient = ctx.gradient, None
        if gradient is not None and not torch.is_grad_enabled():
            ctx.chosen.scale(gradient, slope)
            return None, *gradient, None, None
        saved = ctx.saved_tensors
        if len(saved) == _INPUTS:
            saved = *saved, recursions(*saved)[1]
        if not slope.dim() and (torch.is_grad_enabled() or engine(saved[0]) is not cuda):
            slope = slope.expand(saved[0].shape[0])
        return None, *expectations(*saved, slope), None, None


class _Expectations(torch.autograd.Function):  # type: ignore[misc]
    @staticmethod
    def forward(ctx: Any, *inputs: Any) -> Any:
        ctx.save_for_backward(*inputs)
        return _expectations(*inputs)

    @staticmethod
    def backward(ctx: Any, *along: Tensor) -> Any:
        *change, slope = hessian_product(*ctx.saved_tensors, *along)
        return *change, None, None, None, slope


class _HessianProduct(torch.autograd.Function):  # type: ignore[misc]
    @staticmethod
    def forward(ctx: Any, *inputs: Any) -> Any:
        return _hessian_product(*inputs)

    backward = staticmethod(_third_derivative)


# --- calls --------------------------------------------------------------------------------------------------


def chain(
    emissions: Tensor,
    transitions: Tensor,
    start: Tensor,
    end: Tensor,
    lengths: Tensor | None,
    tags: Tensor | None,
    summed: bool = False,
) -> Tensor:
    """Return log Z (B,), or the log-likelihood of `tags`. With `added`, return the sum over the sentences.

    Emissions (B, T, L) can be strided and in half precision. Parameters are float32, or float64 if the emissions are.
    `lengths` are int32, or None if all sentences have T tokens. `tags` are (B, T) int64 with arbitrary padding.
    """
    arguments = emissions, transitions, start, end, lengths, tags
    if torch.compiler.is_compiling():
        value = torch.ops.tagwise.chain(*arguments)[0]
    elif torch.is_grad_enabled():
        return _Chain.apply(summed, *arguments)
    else:
        value = _chain(*arguments)[0]
    return value.sum() if summed else value


def recursions(*arguments: Tensor | None) -> tuple[Tensor, Tensor]:
    """Return the values and the recursions of both directions, for `expectations`. Neither is differentiable."""
    if torch.compiler.is_compiling():
        value, rows = torch.ops.tagwise.chain(*arguments)
        return value.detach(), rows
    with torch.no_grad():
        return _chain(*arguments)


def expectations(*arguments: Tensor | None) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Return the gradient of sum_b scale_b chain_b, given the inputs of `chain`, its recursions and the scale."""
    if torch.compiler.is_compiling():
        return torch.ops.tagwise.expectations(*arguments)  # type: ignore[no-any-return]
    if torch.is_grad_enabled():
        return _Expectations.apply(*arguments)  # type: ignore[no-any-return]
    return _expectations(*arguments)


def hessian_product(*arguments: Tensor | None) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    """Return the derivatives of `expectations` and of each value along a direction.

    The arguments are those of `expectations`, then the direction.

    Differentiating the result raises TensorError.
    """
    if torch.compiler.is_compiling():
        return torch.ops.tagwise.hessian_product(*arguments)  # type: ignore[no-any-return]
    if torch.is_grad_enabled():
        return _HessianProduct.apply(*arguments)  # type: ignore[no-any-return]
    return _hessian_product(*arguments)


def viterbi(
    emissions: Tensor, transitions: Tensor, start: Tensor, end: Tensor, lengths: Tensor | None
) -> tuple[Tensor, Tensor]:
    """Return the Viterbi path (B, T), padded with -1, and its score. The lower label wins ties."""
    arguments = emissions, transitions, start, end, lengths
    if torch.compiler.is_compiling():
        return torch.ops.tagwise.viterbi(*arguments)  # type: ignore[no-any-return]
    with torch.no_grad():
        return _viterbi(*arguments)

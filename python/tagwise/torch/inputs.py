"""Conversion and validation of user input: padded, packed or nested tensors, masks or lengths, tags or label sets.

Shapes are always checked. Values (holes in a mask, invalid tags) are checked if that does not synchronise with a
device: on the CPU, and on CUDA if a mask is given, whose check synchronises anyway. Values are never checked while a
program is traced or captured.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.nn.utils.rnn import PackedSequence, pad_packed_sequence

from tagwise.base.exceptions import TensorError
from tagwise.torch.engines import cuda

#: Tag of a token without a known label, the default `ignore_index` of PyTorch's losses.
UNKNOWN = -100


class Target(NamedTuple):
    """Target of a loss: tags (B, T), or a support (B, T, L) of possible labels if tags are partly known."""

    tags: Tensor | None
    support: Tensor | None


class Batch(NamedTuple):
    """Emissions (B, T, L), the number of tokens of each sentence (B,), and whether values can be checked."""

    emissions: Tensor
    lengths: Tensor | None
    readable: bool


def padded(values: Any, batch_first: bool, name: str) -> tuple[Tensor, Tensor | None]:
    """Return values as (B, T, ...), and the lengths if the container stores them."""
    if isinstance(values, PackedSequence):
        return pad_packed_sequence(values, batch_first=True)  # type: ignore[no-any-return]
    if not isinstance(values, Tensor):
        raise TensorError(f"{name}: expected a tensor or a PackedSequence, got {type(values).__name__}")
    if values.is_nested:
        return torch.nested.to_padded_tensor(values, 0), values.offsets().diff()
    return (values if batch_first or values.dim() < 2 else values.transpose(0, 1)), None


def is_readable(device: torch.device) -> bool:
    """Return whether values on this device can be read now, outside of compilation and graph capture."""
    if torch.compiler.is_compiling():
        return False
    return device.type != "cuda" or not torch.cuda.is_current_stream_capturing()


def _shape_text(shape: Any) -> str:
    return f"({', '.join(map(str, shape))})"


def read(emissions: Any, mask: Tensor | None, lengths: Any, labels: int, batch_first: bool) -> Batch:
    """Return emissions with their lengths, from the packed or nested tensor itself, a mask, or lengths."""
    scores, found_lengths = padded(emissions, batch_first, "emissions")
    if scores.dim() != 3:
        raise TensorError(f"emissions: expected 3 dimensions, got shape {_shape_text(scores.shape)}")
    if scores.shape[2] != labels:
        raise TensorError(
            f"emissions: the last dimension is {scores.shape[2]}, but there are {labels} labels. Create the layer with "
            f"num_tags={scores.shape[2]}, or make the last layer of the network {labels} wide."
        )
    if (found_lengths is not None) + (mask is not None) + (lengths is not None) > 1:
        raise TensorError(
            "mask, lengths, and packed or nested emissions all define sentence lengths. Give one of them."
        )
    readable = scores.device.type != "cuda" and is_readable(scores.device)
    if mask is not None:
        found_lengths, readable = _from_mask(mask, scores, batch_first)
    elif lengths is not None:
        found_lengths = _from_lengths(lengths, scores)
    if found_lengths is not None:
        found_lengths = found_lengths.to(device=scores.device, dtype=torch.int32).contiguous()
    if not scores.shape[1]:
        if scores.shape[0]:
            raise TensorError(
                f"emissions of shape {_shape_text(scores.shape)}: the sentences have no tokens. Remove them."
            )
        scores = scores.new_zeros(0, 1, labels)
    return Batch(scores, found_lengths, readable)


def _from_mask(mask: Tensor, scores: Tensor, batch_first: bool) -> tuple[Tensor, bool]:
    """Return the lengths that a mask encodes: on from the first token to the last, off after it."""
    tensor, _ = padded(mask, batch_first, "mask")
    if tensor.shape != scores.shape[:2]:
        raise TensorError(
            f"mask: expected shape {_shape_text(scores.shape[:2])} (sentences, tokens) as in the emissions, got "
            f"{_shape_text(tensor.shape)}"
        )
    on, readable = tensor != 0, is_readable(scores.device)
    if readable:
        bad = ~on[:, 0] if on.shape[1] else on.new_ones(on.shape[0])
        holes = (on[:, 1:] & ~on[:, :-1]).any(1)
        if bool((bad | holes).any()):
            sentence = int((bad | holes).nonzero()[0])
            if bool(bad[sentence]):
                raise TensorError(
                    f"mask: the first token of sentence {sentence} is off. Pad sentences on the right, and remove "
                    "empty sentences."
                )
            raise TensorError(
                f"mask: sentence {sentence} has a hole (a token is off before others that are on), but chains have no "
                f"gaps. Move the tokens together, or set the tags of such tokens to {UNKNOWN}."
            )
    return on.sum(1, dtype=torch.int32), readable


def _from_lengths(lengths: Any, scores: Tensor) -> Tensor:
    batch, time = scores.shape[:2]
    values = torch.as_tensor(lengths)
    if values.shape != (batch,):
        raise TensorError(
            f"lengths: expected {batch}, one per sentence, got shape {_shape_text(values.shape)}"
        )
    if values.dtype.is_floating_point or values.dtype == torch.bool:
        raise TensorError(f"lengths: expected integers, got {values.dtype}")
    if values.device.type != "cuda" and is_readable(values.device):
        wrong = (values < 1) | (values > time)
        if bool(wrong.any()):
            at = int(wrong.nonzero()[0])
            raise TensorError(f"lengths: sentence {at} has length {int(values[at])}, expected 1 to {time}")
    return values


# --- tags ---------------------------------------------------------------------------------------------------


def target(tags: Any, batch: Batch, batch_first: bool, partial: bool | None) -> Target:
    """Return tags (B, T), or the support (B, T, L) if one is given or some tags are -100."""
    tensor, _ = padded(tags, batch_first, "tags")
    scores = batch.emissions
    if tensor.dtype == torch.bool and tensor.dim() == 3:
        return Target(None, support(tensor, batch, "tags"))
    if not scores.shape[0] and not tensor.numel():
        return Target(tensor.new_zeros(scores.shape[:2], dtype=torch.int64), None)
    if tensor.shape != scores.shape[:2]:
        raise TensorError(
            f"tags: expected shape {_shape_text(scores.shape[:2])} (sentences, tokens) as in the emissions, got "
            f"{_shape_text(tensor.shape)}"
        )
    if tensor.dtype.is_floating_point or tensor.dtype == torch.bool:
        raise TensorError(f"tags: expected integers, or a boolean support (B, T, L), got {tensor.dtype}")
    y = tensor if tensor.dtype == torch.int64 else tensor.to(torch.int64)
    if partial is None:
        partial = batch.readable and _has_unknown(y, batch)
    if not partial:
        return Target(y, None)
    unknown = y == UNKNOWN
    one = torch.nn.functional.one_hot(torch.where(_inside(batch) & ~unknown, y, 0), scores.shape[2]).bool()
    return Target(None, one | unknown[:, :, None])


def _inside(batch: Batch) -> Tensor:
    time = torch.arange(batch.emissions.shape[1], device=batch.emissions.device)
    return time[None] >= 0 if batch.lengths is None else time < batch.lengths[:, None]


def _has_unknown(y: Tensor, batch: Batch) -> bool:
    """Return whether some tags are unknown. Raise TensorError for invalid tags. Padding is ignored."""
    labels = batch.emissions.shape[2]
    inner = y if batch.lengths is None else torch.where(_inside(batch), y, 0)
    if not inner.numel():
        return False
    low, high = (int(x) for x in torch.aminmax(inner))
    if low >= 0 and high < labels:
        return False
    wrong = ((inner < 0) & (inner != UNKNOWN)) | (inner >= labels)
    if bool(wrong.any()):
        sentence, token = (int(i) for i in wrong.nonzero()[0])
        raise TensorError(
            f"tags: {int(y[sentence, token])} at token {token} of sentence {sentence}, expected 0 to {labels - 1}, "
            f"or {UNKNOWN} for an unknown tag"
        )
    return True


def support(allowed: Any, batch: Batch, name: str, batch_first: bool = True) -> Tensor:
    """Return the labels that are allowed at each token (B, T, L), at least one per token."""
    tensor, _ = padded(allowed, batch_first, name)
    if tensor.shape != batch.emissions.shape or tensor.dtype != torch.bool:
        raise TensorError(
            f"{name}: expected a boolean support of shape {_shape_text(batch.emissions.shape)} (sentences, tokens, "
            f"labels) as the emissions, got {tensor.dtype} of shape {_shape_text(tensor.shape)}"
        )
    if batch.readable:
        none = ~tensor.any(2) & _inside(batch)
        if bool(none.any()):
            sentence, token = (int(i) for i in none.nonzero()[0])
            raise TensorError(
                f"{name}: no label is allowed at token {token} of sentence {sentence}. Allow at least one."
            )
    return tensor


def edges(tensor: Any, batch: Batch, kind: torch.dtype, batch_first: bool) -> Any:
    """Return edge scores per token (B, T, L, L), or their two factors (B, T, L, R), in the dtype of the sums."""
    if tensor is None:
        return None
    shape = tuple(batch.emissions.shape)
    parts = tensor if isinstance(tensor, tuple | list) else (tensor,)
    if len(parts) not in (1, 2):
        raise TensorError(f"edges: expected a tensor or two factors, got {len(parts)} tensors")
    read = [padded(x, batch_first, "edges")[0].to(kind) for x in parts]
    right = all(x.dim() == 4 and tuple(x.shape[:3]) == shape for x in read)
    right = right and (read[0].shape[3] == (shape[2] if len(read) == 1 else read[-1].shape[3]))
    if not right:
        raise TensorError(
            f"edges: expected shape {_shape_text((*shape, shape[2]))} (sentences, tokens, previous labels, labels), or "
            f"two factors {_shape_text(shape)[:-1]}, R), got {', '.join(_shape_text(x.shape) for x in read)}"
        )
    return tuple(read) if len(read) == 2 else read[0]


# --- types --------------------------------------------------------------------------------------------------


def sum_dtype(emissions: Tensor, *parameters: Tensor) -> torch.dtype:
    """Return the dtype of the sums: float64 if any input has it, otherwise float32."""
    if emissions.dtype == torch.float64 or any(x.dtype == torch.float64 for x in parameters):
        return torch.float64
    return torch.float32


_NOTHING = nullcontext()


def no_autocast(device: torch.device) -> AbstractContextManager[Any]:
    """Return a context that disables autocast, since sums in half precision are too inaccurate."""
    if torch.is_autocast_enabled(device.type):
        return torch.autocast(device.type, enabled=False)  # type: ignore[no-any-return]
    return _NOTHING


def as_operand(emissions: Tensor, kind: torch.dtype) -> Tensor:
    """Return emissions in a dtype that the operators accept: CUDA kernels read half precision, others `kind` only."""
    if emissions.dtype == kind:
        return emissions
    half = kind == torch.float32 and emissions.dtype in (torch.float16, torch.bfloat16)
    if half and emissions.device.type == "cuda" and emissions.shape[2] <= cuda.MOST_LABELS:
        return emissions
    return emissions.to(kind)

"""Chains of many labels on CUDA: the kernels of `kernels/many_labels.cu`, one launch per token.

Nothing here synchronises with the device. A step reads all of exp(transitions) once for each group of sentences. The
cost of a batch grows with its longest sentence.
"""

from __future__ import annotations

import torch
from torch import Tensor

from tagwise.torch.engines import cuda, reference
from tagwise.torch.protocol import Chain, ForwardBackward

_TILE, _THREADS = 16, 256
#: Back pointers are two bytes.
MOST_LABELS = 65536


def serves(emissions: Tensor) -> bool:
    """Return whether these kernels support the emissions."""
    return bool(emissions.device.type == "cuda" and emissions.shape[2] <= MOST_LABELS)


def _grid(batch: int, labels: int, kind: torch.dtype) -> tuple[int, int]:
    group = 8 if kind == torch.float64 else 16
    return -(-labels // _TILE), -(-batch // group)


def forward_backward(chain: Chain) -> ForwardBackward:
    """Implement `Engine.forward_backward`. Rows of the recursions have offsets, which cancel in expectations."""
    emissions, transitions, start, end, lengths, tags, _ = chain
    e = emissions.to(start.dtype)
    batch, time, labels = e.shape
    on = cuda.plan(labels, e.dtype, e.device.index)
    crests = torch.stack([transitions.amax(0), transitions.amax(1)])
    crests = torch.where(crests > -torch.inf, crests, 0.0)
    factors = torch.stack([(transitions - crests[0]).exp(), (transitions.T - crests[1]).exp()])
    rows = e.new_zeros(2, *e.shape)
    forward, backward = rows
    tiles, groups = _grid(batch, labels, e.dtype)
    heights = e.new_full((2, 2, batch, tiles), -torch.inf)
    tops, value = e.new_empty((batch, time)), e.new_empty(batch)
    lengths_address = 0 if lengths is None else lengths.data_ptr()
    scores = e.data_ptr(), *e.stride(), transitions.data_ptr(), start.data_ptr(), end.data_ptr()
    buffers = factors, crests, heights, forward, backward, tops
    addresses = tuple(x.data_ptr() for x in buffers)
    step = on["many_labels_step"]
    for k in range(time):
        step((tiles, groups, 2), _THREADS, *scores, lengths_address, batch, time, k, *addresses)
    on["many_labels_value"](
        (batch, 1, 1),
        _THREADS,
        *(
            end.data_ptr(),
            lengths_address,
            batch,
            time,
            forward.data_ptr(),
            tops.data_ptr(),
            value.data_ptr(),
        ),
    )
    if tags is not None:
        scored = reference.path_score(chain._replace(emissions=e))
        value = torch.where(value == -torch.inf, -torch.inf, scored - value)
    return ForwardBackward(value, rows)


def viterbi(chain: Chain) -> tuple[Tensor, Tensor]:
    """Implement `Engine.viterbi`."""
    emissions, transitions, start, end, lengths, _, _ = chain
    e = emissions.to(start.dtype)
    batch, time, labels = e.shape
    on = cuda.plan(labels, e.dtype, e.device.index)
    rows = e.new_empty((2, batch, labels))
    back = torch.empty(e.shape, dtype=torch.int16, device=e.device)
    path, value = torch.empty((batch, time), dtype=torch.int64, device=e.device), e.new_empty(batch)
    total = e.new_zeros((2, batch), dtype=torch.float64)
    lengths_address = 0 if lengths is None else lengths.data_ptr()
    scores = e.data_ptr(), *e.stride(), transitions.data_ptr(), start.data_ptr(), lengths_address, batch, time
    tiles, groups = _grid(batch, labels, e.dtype)
    step = on["many_labels_viterbi"]
    for k in range(time):
        step((tiles, groups, 1), _THREADS, *scores, k, rows.data_ptr(), back.data_ptr(), total.data_ptr())
    last = rows[(time - 1) % 2]
    on["many_labels_path"](
        (batch, 1, 1),
        _THREADS,
        *(end.data_ptr(), lengths_address, batch, time, last.data_ptr(), back.data_ptr(), total.data_ptr()),
        *(path.data_ptr(), value.data_ptr()),
    )
    return path, value

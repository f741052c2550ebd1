"""Several CRF layers over the same sentences, in one call."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from tagwise.base.exceptions import TensorError
from tagwise.torch.layer import CRF


class Heads(nn.Module):  # type: ignore[misc]
    """Several CRF layers, one for each kind of tags of the same sentences.

    Args:
        layers: `CRF` layers, each with its own labels, constraints and loss. An integer creates a plain layer with that
            many labels.
        batch_first: Dimension order of the layers that are created from numbers.

    Emissions and tags are lists with one entry per head, or tensors whose first dimension is the head: (H, B, T, L) and
    (H, B, T). All heads share a mask or lengths.

    >>> import torch
    >>> heads = Heads([2, 3], batch_first=True)
    >>> heads([torch.zeros(1, 4, 2), torch.zeros(1, 4, 3)], [torch.zeros(1, 4).long()] * 2).shape
    torch.Size([2])
    """

    def __init__(self, layers: Iterable[CRF | int], batch_first: bool = False) -> None:
        super().__init__()
        made = [CRF(x, batch_first) if isinstance(x, int) else x for x in layers]
        self.layers = nn.ModuleList(made)

    def _each(self, values: Any, name: str) -> Sequence[Any]:
        parts: Sequence[Any] = values.unbind(0) if isinstance(values, Tensor) else list(values)
        if len(parts) != len(self.layers):
            raise TensorError(f"{name}: expected {len(self.layers)}, one per head, got {len(parts)}")
        return parts

    def forward(self, emissions: Any, tags: Any, mask: Tensor | None = None, **more: Any) -> Tensor:
        """Return `CRF.forward` of every head: (H,), or (H, B) with reduction="none"."""
        both = zip(self.layers, self._each(emissions, "emissions"), self._each(tags, "tags"))
        return torch.stack([layer(scores, y, mask, **more) for layer, scores, y in both])

    def decode(self, emissions: Any, mask: Tensor | None = None, **more: Any) -> list[Any]:
        """Return `CRF.decode` of every head."""
        both = zip(self.layers, self._each(emissions, "emissions"))
        return [layer.decode(scores, mask, **more) for layer, scores in both]

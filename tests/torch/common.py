"""Random batches for the tests of the layer, and the devices they run on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed: make test-torch")

import tagwise.torch as tt  # noqa: E402
from tests.torch.enumeration import Chain  # noqa: E402

torch.set_num_threads(1)  # tensors are small, and other tests run in parallel
GPU = torch.cuda.is_available()
DEVICES = [
    "cpu",
    pytest.param("cuda", marks=[pytest.mark.cuda, pytest.mark.skipif(not GPU, reason="no GPU here")]),
]


@dataclass
class Case:
    """Batch of random sentences in double precision, and a layer with random parameters."""

    layer: tt.CRF
    emissions: Any
    tags: Any
    lengths: Any

    @property
    def mask(self) -> Any:
        time = torch.arange(self.emissions.shape[1], device=self.lengths.device)
        return time < self.lengths[:, None]

    def enumerated(self, edges: Any = None) -> list[Chain]:
        """Return the sentences as enumerations of all paths."""
        layer = self.layer
        parts = [
            x.detach().cpu().double().numpy()
            for x in (layer.transitions, layer.start_transitions, layer.end_transitions)
        ]
        out = []
        for b, n in enumerate(self.lengths.tolist()):
            more = None if edges is None else edges[b, :n].detach().cpu().double().numpy()
            out.append(Chain(self.emissions[b, :n].detach().cpu().double().numpy(), *parts, more))
        return out


def case(
    lengths: tuple[int, ...] = (4, 1, 3),
    size: int = 3,
    seed: int = 0,
    device: str = "cpu",
    dtype: Any = None,
    **options: Any,
) -> Case:
    """Return a batch of sentences of these lengths. The padding is noise."""
    draw = torch.Generator().manual_seed(seed)
    dtype = dtype or torch.float64
    layer = tt.CRF(size, batch_first=True, **options)
    with torch.no_grad():
        for parameter in layer.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=draw))
    shape = len(lengths), max(lengths, default=1)
    emissions = torch.randn(*shape, size, generator=draw, dtype=torch.float64)
    tags = torch.randint(size, shape, generator=draw)
    many = torch.tensor(lengths, dtype=torch.int64)
    return Case(layer.to(device, dtype), emissions.to(device, dtype), tags.to(device), many.to(device))


def close(ours: Any, theirs: Any, tolerance: float = 1e-9) -> None:
    """Assert that a tensor and an array are equal up to a tolerance."""
    np.testing.assert_allclose(
        ours.detach().cpu().double().numpy(), np.asarray(theirs, dtype=float), rtol=tolerance, atol=tolerance
    )

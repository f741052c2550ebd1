"""The scorer of trained weights on a GPU."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

import tagwise._core as _core
from tagwise.base.exceptions import ParameterError
from tagwise.torch.linear import ragged
from tagwise.torch.linear.objective import (
    Sentences,
    Support,
    WeightRows,
    device,
    to_device,
    unsupported_message,
)
from tagwise.torch.protocol import Gradient


class DeviceScorer:
    """Viterbi paths and marginals on the device. Other queries run on the CPU with the same weights."""

    def __init__(
        self,
        layout: _core.Layout,
        weights: NDArray[np.float32],
        forbidden: NDArray[np.uint32] | None,
        local: bool,
        on: torch.device | None = None,
    ) -> None:
        if local:
            raise ParameterError(unsupported_message("locally normalised models"))
        self.layout, self.weights, self.local = layout, weights, local
        self._native = _core.Scorer(layout, weights, forbidden, local=local)
        self._rows = WeightRows(layout, device() if on is None else on)
        self._rows.forbid(forbidden)
        self._rows.spread(to_device(np.asarray(weights), self._rows.device))

    def _needs_cpu(self, dataset: _core.Dataset) -> bool:
        """Return whether a dataset is scored on the CPU."""
        return not dataset.n_tokens or bool(dataset.n_edge_attributes) or dataset.vectors is not None

    def viterbi(
        self, dataset: _core.Dataset, *, allowed: Support | None = None, n_jobs: int = 0
    ) -> NDArray[np.uint16]:
        """Implement `Scorer.viterbi` of the backend protocol."""
        if self._needs_cpu(dataset):
            return self._native.viterbi(dataset, allowed=allowed, n_jobs=n_jobs)
        path = ragged.viterbi(Sentences(dataset, self._rows, allowed).chain())
        found: NDArray[np.uint16] = path.to(torch.int32).cpu().numpy().astype(np.uint16)
        return found

    def kbest(
        self, dataset: _core.Dataset, k: int, *, allowed: Support | None = None, n_jobs: int = 0
    ) -> Any:
        """Implement `Scorer.kbest` of the backend protocol on the CPU."""
        return self._native.kbest(dataset, k, allowed=allowed, n_jobs=n_jobs)

    def marginals(
        self, dataset: _core.Dataset, *, allowed: Support | None = None, n_jobs: int = 0
    ) -> tuple[NDArray[np.float32], NDArray[np.float64]]:
        """Implement `Scorer.marginals` of the backend protocol."""
        if self._needs_cpu(dataset):
            return self._native.marginals(dataset, allowed=allowed, n_jobs=n_jobs)
        sentences, rows = Sentences(dataset, self._rows, allowed), self._rows
        chain = sentences.chain()
        found = ragged.forward_backward(chain)
        outputs = (
            chain.emissions.new_empty(dataset.n_tokens, rows.labels),
            *map(torch.empty_like, chain[1:4]),
        )
        by = ragged.expectations(chain, found.rows, rows.start.new_ones(len(dataset)), Gradient(*outputs))
        total = np.empty(len(dataset))
        total[sentences.order] = found.value.cpu().numpy()
        return by.emissions.cpu().numpy(), total

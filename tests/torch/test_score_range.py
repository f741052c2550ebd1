"""log Z and gradients of every engine for scores that span 0 to 10,000."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed: make test-torch")

from tagwise.torch import ops  # noqa: E402
from tagwise.torch.engines import many_labels, reference  # noqa: E402
from tagwise.torch.protocol import Chain  # noqa: E402
from tests.laws.ranges import KINDS, RULES, SPANS, draw, exact  # noqa: E402
from tests.torch.common import DEVICES  # noqa: E402

#: Numbers of labels: few, about one SIMD vector, more than a warp, more than `cuda.MOST_LABELS`.
SIZES = (2, 3, 9, 17, 40, 70)


def check(engine: Any, labels: int, device: str, dtype: Any) -> None:
    """Check log Z, the log-likelihood of the gold paths and their gradients, cycling through the rules."""
    spans = SPANS if dtype == torch.float32 else SPANS[::4]
    turns = [(i + k, kind, span) for i, span in enumerate(spans) for k, kind in enumerate(KINDS)]
    for turn, kind, span in turns:
        case = labels, kind, span, RULES[turn % len(RULES)]
        batch, right = draw(*case), exact(*case)
        zero = np.zeros(labels)
        given = (batch.node, batch.edge, zero, zero)
        scores = [torch.tensor(x, dtype=dtype, device=device) for x in given]
        many = torch.tensor(batch.lengths, dtype=torch.int32, device=device)
        tags = torch.tensor(batch.gold, device=device)
        # Rounding errors of values, and of logarithms of improbable labels, are proportional to their size.
        eps = torch.finfo(dtype).eps
        tolerance = 2e-5 + 10 * eps * span
        reach = 5 * np.abs(right.score).max()
        if device == "cuda":  # kernels sum the score of a path in the dtype of the scores
            reach = batch.lengths.max() ** 1.5 * span
        size = eps * reach
        for chain, value in (
            (Chain(*scores, many), right.log_z),
            (Chain(*scores, many, tags), right.score - right.log_z),
        ):
            which = engine or ops.engine(scores[0])
            found = which.forward_backward(chain)
            np.testing.assert_allclose(
                found.value.cpu(), value, rtol=0, atol=tolerance + size, err_msg=str(case)
            )
            sign = 1.0 if chain.tags is None else -1.0
            ones = torch.ones(len(many), dtype=dtype, device=device)
            by = which.expectations(chain, found.rows, ones)
            node, pairs = sign * right.p, sign * right.pairs.sum(0)
            if chain.tags is not None:
                rows, columns = np.nonzero(batch.inside)
                np.add.at(node, (rows, columns, batch.gold[rows, columns]), 1.0)
                later = columns > 0
                rows, columns = rows[later], columns[later]
                np.add.at(pairs, (batch.gold[rows, columns - 1], batch.gold[rows, columns]), 1.0)
            for ours, theirs in zip(by, (node, pairs)):
                np.testing.assert_allclose(
                    ours.cpu(), theirs, atol=len(many) * tolerance, rtol=0, err_msg=str(case)
                )


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("labels", SIZES)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_default_engine_of_each_device(device: str, labels: int, dtype: Any) -> None:
    check(None, labels, device, dtype)


@pytest.mark.parametrize("engine", [reference, many_labels])
def test_other_engines(engine: Any) -> None:
    for labels in (2, 9):
        check(engine, labels, "cpu", torch.float32)

"""Viterbi paths of long sentences: rounding errors do not grow with the length on any engine."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed: make test-torch")

import tagwise.torch as tt  # noqa: E402
from tagwise.torch.engines import cuda, many_labels, many_labels_cuda, native, reference, search, varying  # noqa: E402
from tagwise.torch.protocol import Chain, Chains  # noqa: E402
from tests.torch.common import GPU  # noqa: E402
from tests.torch.emulated import kernels, needs_compiler  # noqa: E402, F401

#: Rounding error of single decisions, far below the tenths of plain sums of 100,000 float32 numbers.
CLOSE = 2e-4


def chain(labels: int, time: int, device: str = "cpu") -> Chain:
    """Return two sentences of different lengths, with scores that are positive on average."""
    rng = np.random.default_rng(labels)
    e = rng.normal(3.0, 1.0, (2, time, labels)).astype(np.float32)
    w, start, end = (
        rng.normal(0.5, 1.0, shape).astype(np.float32) for shape in ((labels, labels), labels, labels)
    )
    many = torch.tensor([time, time - 37], dtype=torch.int32)
    return Chain(*(torch.from_numpy(x).to(device) for x in (e, w, start, end)), many.to(device), None, None)


def best_score(c: Chain, b: int) -> float:
    """Return the best score in double precision, renormalised at each position."""
    e, w, start, end = (x.double().cpu().numpy() for x in c[:4])
    delta, total = start + e[b, 0], 0.0
    for row in e[b, 1 : int(c.lengths[b])]:
        delta = (delta[:, None] + w).max(0) + row
        total, delta = total + delta.max(), delta - delta.max()
    return float(total + (delta + end).max())


def score(c: Chain, b: int, path: Any) -> float:
    e, w, start, end = (x.double().cpu().numpy() for x in c[:4])
    y = path[: int(c.lengths[b])].cpu().numpy()
    inner = np.sum(e[b, np.arange(len(y)), y], dtype=np.longdouble) + np.sum(
        w[y[:-1], y[1:]], dtype=np.longdouble
    )
    return float(inner + start[y[0]] + end[y[-1]])


def check(c: Chain, path: Any, value: Any, slack: float = CLOSE) -> None:
    """Assert that paths have the best score, and that values are their scores rounded to float32."""
    for b in range(2):
        assert (path[b, int(c.lengths[b]) :] == -1).all()
        assert abs(score(c, b, path[b]) - best_score(c, b)) <= slack
        assert float(value[b]) == pytest.approx(score(c, b, path[b]), rel=1e-6)


@pytest.mark.parametrize("time", [129, 145, 4_000])
@pytest.mark.parametrize("engine", [reference, native, many_labels], ids=lambda e: e.__name__)
def test_engines(engine: Any, time: int) -> None:
    c = chain(5, time)
    check(c, *engine.viterbi(c))


def test_a_hundred_thousand_tokens() -> None:
    c = chain(3, 100_000)
    check(c, *native.viterbi(c))


def test_varying_edges_and_kbest() -> None:
    c = chain(4, 2_000)
    chains = Chains(*c[:5], None)
    check(c, *varying.viterbi(chains))
    paths, values = search.kbest(chains, 3)
    check(c, paths[:, 0], values[:, 0])
    for b in range(2):
        every = [score(c, b, path) for path in paths[b]]
        assert values[b].tolist() == pytest.approx(every, rel=1e-6)
        assert every[0] >= every[1] - CLOSE >= every[2] - 2 * CLOSE


@needs_compiler
@pytest.mark.parametrize(
    ("engine", "labels"), [(cuda, 5), (cuda, 40), (many_labels_cuda, 70)], ids=["small", "warps", "wide"]
)
def test_kernels(kernels: None, engine: Any, labels: int) -> None:  # noqa: F811
    """Emulated kernels are slow, so the sentences are shorter."""
    c = chain(labels, 2_000 if labels < 10 else 400)
    check(c, *engine.viterbi(c))


@pytest.mark.cuda
@pytest.mark.skipif(not GPU, reason="no GPU here")
@pytest.mark.parametrize("labels", [2, 9, 40, 64, 70, 200])
def test_on_a_gpu(labels: int) -> None:
    c = chain(labels, 100_000 if labels < 70 else 20_000, "cuda")
    check(c, *(cuda if labels <= cuda.MOST_LABELS else many_labels).viterbi(c))


def test_crf_layer() -> None:
    """The layer decodes sentences of 20,000 tokens."""
    c = chain(4, 20_000)
    layer = tt.CRF(4, batch_first=True)
    with torch.no_grad():
        for mine, given in zip((layer.transitions, layer.start_transitions, layer.end_transitions), c[1:4]):
            mine.copy_(given)
    found = layer.decode(c.emissions, lengths=c.lengths)
    for b in range(2):
        assert abs(score(c, b, torch.tensor(found[b])) - best_score(c, b)) <= CLOSE

"""A NaN among the emissions of a sentence makes its value NaN on every engine. Other sentences keep their values."""

from __future__ import annotations

import math
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed: make test-torch")

import tagwise.torch as tt  # noqa: E402
from tagwise.torch.engines import cuda, many_labels, many_labels_cuda, native, reference, search, varying  # noqa: E402
from tagwise.torch.protocol import Chain, Chains  # noqa: E402
from tests.torch.common import GPU  # noqa: E402
from tests.torch.emulated import kernels, needs_compiler  # noqa: E402, F401

TIME = 6
PLACES = [(0, 0), (1, 1), (3, 0), (3, 2), (5, 1), (5, slice(None)), (2, slice(None))]
ENGINES = [(reference, 3), (native, 3), (native, 20), (many_labels, 3), (many_labels, 70)]
KERNELS = [(cuda, 3), (cuda, 40), (many_labels_cuda, 20), (many_labels_cuda, 70)]


def chain(labels: int, place: Any, tags: bool, device: str = "cpu", time: int = TIME) -> Chain:
    """Return three sentences. The first has a NaN at `place`, the last is shorter, with NaN as padding."""
    made = torch.Generator().manual_seed(labels)
    e = torch.randn(3, time, labels, generator=made)
    w, start, end = (torch.randn(shape, generator=made) for shape in ((labels, labels), (labels,), (labels,)))
    e[2, time - 2 :] = math.nan
    if place is not None:
        e[0][place] = math.nan
    many = torch.tensor([time, time, time - 2], dtype=torch.int32)
    y = torch.ones(3, time, dtype=torch.int64) if tags else None
    return Chain(*(None if x is None else x.to(device) for x in (e, w, start, end, many, y)), None)


def check(engine: Any, labels: int, place: Any, device: str = "cpu", time: int = TIME) -> None:
    for tags in (False, True):
        bad, good = (chain(labels, at, tags, device, time) for at in (place, None))
        found, wanted = engine.forward_backward(bad).value, engine.forward_backward(good).value
        assert math.isnan(float(found[0]))
        assert wanted.isfinite().all()
        torch.testing.assert_close(found[1:], wanted[1:])
    bad = chain(labels, place, False, device, time)
    path, value = engine.viterbi(bad)
    other, score = engine.viterbi(chain(labels, None, False, device, time))
    assert math.isnan(float(value[0]))
    assert score.isfinite().all()
    torch.testing.assert_close(value[1:], score[1:])
    assert (path[1:] == other[1:]).all()
    assert ((path[0] >= 0) & (path[0] < labels)).all()


@pytest.mark.parametrize("place", PLACES, ids=str)
@pytest.mark.parametrize(("engine", "labels"), ENGINES, ids=lambda x: getattr(x, "__name__", x))
def test_engines(engine: Any, labels: int, place: Any) -> None:
    check(engine, labels, place)


@needs_compiler
@pytest.mark.parametrize("place", PLACES, ids=str)
@pytest.mark.parametrize(("engine", "labels"), KERNELS, ids=lambda x: getattr(x, "__name__", x))
def test_kernels(kernels: None, engine: Any, labels: int, place: Any) -> None:  # noqa: F811
    check(engine, labels, place)


@pytest.mark.cuda
@pytest.mark.skipif(not GPU, reason="no GPU here")
@pytest.mark.parametrize("time", [TIME, 5_000])
@pytest.mark.parametrize("place", PLACES, ids=str)
@pytest.mark.parametrize(("engine", "labels"), KERNELS, ids=lambda x: getattr(x, "__name__", x))
def test_on_a_gpu(engine: Any, labels: int, place: Any, time: int) -> None:
    check(engine, labels, place, "cuda", time)


@pytest.mark.parametrize("place", PLACES, ids=str)
def test_varying_edges_and_kbest(place: Any) -> None:
    chains = Chains(*chain(3, place, False)[:5], None)
    assert varying.log_partition(chains).isnan().tolist() == [True, False, False]
    assert varying.viterbi(chains)[1].isnan().tolist() == [True, False, False]
    assert search.kbest(chains, 2)[1].isnan().any(1).tolist() == [True, False, False]


@pytest.mark.parametrize("labels", [3, 70])
def test_crf_layer(labels: int) -> None:
    """The loss and gradient of the batch become NaN, but only the values of the affected sentence."""
    layer = tt.CRF(labels, batch_first=True)
    e = torch.randn(2, TIME, labels)
    tags = torch.zeros(2, TIME, dtype=torch.int64)
    for _ in range(2):  # the second call skips validation
        assert layer(e, tags).isfinite()
    e[0, 3, 1] = math.nan
    e.requires_grad_()
    for _ in range(2):
        assert layer(e, tags).isnan()
    assert layer(e, tags, reduction="none").isnan().tolist() == [True, False]
    layer(e, tags).backward()
    assert e.grad[0].isnan().any()
    assert layer.decode(e, return_scores=True)[1].isnan().tolist() == [True, False]

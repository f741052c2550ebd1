"""The native engine and sums with their gradients, compared with the reference implementation."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed: make test-torch")

from tagwise.base.exceptions import TensorError  # noqa: E402
from tagwise.torch.engines import native, reference  # noqa: E402
from tagwise.torch.protocol import Chain  # noqa: E402
from tests.torch.common import DEVICES, case, close  # noqa: E402


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_gradients_can_be_computed_repeatedly(device: str, dtype: Any) -> None:
    """Gradients of a retained graph, of multiples and means, and with create_graph all agree."""
    it = case((5, 2, 3), size=4, device=device, dtype=dtype)
    layer, e = it.layer, it.emissions.requires_grad_()
    parts = [e, *layer.parameters()]

    def value(reduction: str = "sum") -> Any:
        return layer(e, it.tags, lengths=it.lengths, reduction=reduction)

    total = value()
    want = torch.autograd.grad(value("none"), parts, torch.ones(3, device=device, dtype=dtype))
    tokens = int(it.lengths.sum())
    again = [torch.autograd.grad(total, parts, retain_graph=True) for _ in range(2)]
    more = torch.autograd.grad(value(), parts, create_graph=True)
    for other, factor in (
        *((found, 1.0) for found in (*again, more)),
        (torch.autograd.grad(-3.0 * value(), parts), -3.0),
        (torch.autograd.grad(value("mean"), parts), 1 / 3),
        (torch.autograd.grad(value("token_mean"), parts), 1 / tokens),
    ):
        for ours, theirs in zip(other, want):
            close(ours, factor * theirs.cpu().double(), 1e-5)
    assert all(x.data_ptr() != y.data_ptr() for x, y in zip(*again))
    for _ in range(2):
        total.backward(retain_graph=True)
    for part, theirs in zip(parts, want):
        close(part.grad, 2 * theirs.cpu().double(), 1e-5)


@pytest.mark.parametrize("size", [1, 9, 16, 23, 40])
@pytest.mark.parametrize("spread", [1.0, 60.0])
def test_lengths_around_the_block_size(size: int, spread: float) -> None:
    """Results match for lengths around the core's block size of 16, very large scores and forbidden labels."""
    draw = torch.Generator().manual_seed(size)
    many = torch.tensor([17, 16, 0, 15, *range(1, 18), 1, 33], dtype=torch.int32)
    shape = len(many), 33, size
    e = spread * torch.randn(*shape, generator=draw)
    parts = [spread * torch.randn(*s, generator=draw) for s in ((size, size), (size,), (size,))]
    if size > 1:
        parts[0][1, 0] = parts[2][1] = -torch.inf
    tags = torch.randint(size, shape[:2], generator=draw)
    tags[many.long().unsqueeze(1) <= torch.arange(33)] = 10**6  # padding is arbitrary
    scale = torch.randn(len(many), generator=draw)
    for y in (None, tags):
        chain = Chain(e, *parts, many, y)
        exact = chain.double()
        want = reference.forward_backward(exact)
        got = native.forward_backward(chain).value
        assert torch.equal(got.isinf(), want.value.isinf())
        close(got.nan_to_num(neginf=0.0), want.value.nan_to_num(neginf=0.0), 1e-4)
        gradient = reference.expectations(exact, want.rows, scale.double())
        for ours, theirs in zip(native.expectations(chain, got, scale), gradient):
            close(ours, theirs, 2e-4 * spread)
        total, by = native.gradient(chain)
        close(total, float(got.sum()), 1e-5)
        for ours, theirs in zip(by, reference.expectations(exact, want.rows, torch.ones(len(many)).double())):
            close(ours, theirs, 2e-4 * spread)
    paths, scores = native.viterbi(Chain(e, *parts, many))
    want_paths, want_scores = reference.viterbi(Chain(e, *parts, many).double())
    close(scores, want_scores, 1e-4)
    assert torch.equal(paths < 0, want_paths < 0)
    finite = want_scores > -torch.inf
    its_score = reference.path_score(Chain(e, *parts, many, paths).double())
    close(its_score[finite], want_scores[finite], 1e-4)


def test_invalid_tags_give_nan() -> None:
    """Without validation, the value of its sentence is NaN, and other sentences keep theirs."""
    it = case((4, 3), size=3, dtype=torch.float32)
    parts = it.layer.transitions, it.layer.start_transitions, it.layer.end_transitions
    chain = Chain(it.emissions, *(x.detach() for x in parts), None, it.tags)
    want = native.forward_backward(chain).value
    it.tags[1, 2] = 3
    got = native.forward_backward(chain).value
    assert got[0] == want[0]
    assert got[1].isnan()


def test_repeated_shapes_still_detect_invalid_tags() -> None:
    """Invalid and unknown tags are detected even if the layer skips validation after equal shapes."""
    it = case((4, 4), size=3, dtype=torch.float32)
    want = it.layer(it.emissions, it.tags)
    for _ in range(2):
        assert it.layer(it.emissions, it.tags) == want
    other = it.tags.clone()
    other[1, 2] = 3
    with pytest.raises(TensorError, match="3 at token 2 of sentence 1"):
        it.layer(it.emissions, other)
    other[1, 2] = -100
    close(it.layer(it.emissions, other), it.layer(it.emissions, other, partial=True).item(), 1e-6)
    assert it.layer(it.emissions, other) > want

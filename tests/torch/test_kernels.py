"""Emulated kernels (`emulated.py`), compared with the reference implementation in plain PyTorch."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed: make test-torch")

import tagwise.torch as tt  # noqa: E402
from tagwise.base.exceptions import TensorError  # noqa: E402
from tagwise.torch import inputs, ops  # noqa: E402
from tagwise.torch.engines import cuda, many_labels_cuda, reference  # noqa: E402
from tagwise.torch.protocol import Chain, Gradient, Places  # noqa: E402
from tests.torch.common import close  # noqa: E402
from tests.torch.emulated import compiled, kernels, needs_compiler  # noqa: E402, F401

pytestmark = [needs_compiler, pytest.mark.usefixtures("kernels")]
LENGTHS = (19, 1, 4)


def drawn(labels: int, dtype: Any, lengths: tuple[int, ...] = LENGTHS, size: float = 1.0) -> tuple[Any, ...]:
    """Return random emissions of a batch, parameters and lengths."""
    draw = torch.Generator().manual_seed(labels)

    def random(*shape: int) -> Any:
        return size * torch.randn(*shape, generator=draw, dtype=torch.float64).to(dtype)

    e = random(len(lengths), max(lengths), labels)
    transitions, start, end = random(labels, labels), random(labels), random(labels)
    return e, transitions, start, end, torch.tensor(lengths, dtype=torch.int32)


def concatenated(chain: tuple[Any, ...]) -> tuple[tuple[Any, ...], Places]:
    """Return the sentences concatenated, last first."""
    e, *more, lengths = chain
    many = lengths.tolist()
    order = list(range(len(many)))[::-1]
    tokens = torch.cat([e[b, : many[b]] for b in order])
    ends = torch.cumsum(torch.tensor([many[b] for b in order]), 0)
    firsts = torch.empty(len(many), dtype=torch.int64)
    firsts[order] = ends - torch.tensor([many[b] for b in order])
    return (tokens, *more, lengths), Places(firsts, max(many))


def ragged(values: Any, chain: tuple[Any, ...]) -> Any:
    """Return the rows of a batch (B, T, ...) in the order of `concatenated`."""
    many = chain[4].tolist()
    return torch.cat([values[b, : many[b]] for b in range(len(many))[::-1]])


SINGLE = pytest.param(5, torch.float32, 2e-5)
DOUBLE = pytest.param(33, torch.float64, 1e-10)


def test_fibers_with_fortified_compilers() -> None:
    """Fibers jump between stacks, which the checks of ``_FORTIFY_SOURCE`` would report as an error."""
    text = """extern "C" void next(word* out) {
        __shared__ word last;
        if (threadIdx.x == blockDim.x - 1) last = 40;
        __syncthreads();
        out[threadIdx.x] = last + threadIdx.x;
    }"""
    held = compiled(text, "-D_FORTIFY_SOURCE=2")
    out = np.zeros(33, dtype=np.int64)
    address = ctypes.cast(held.next, ctypes.c_void_p)
    assert held.emulate(address, 1, 1, 1, 33, (ctypes.c_int64 * 1)(out.ctypes.data), 1) == 0
    assert out.tolist() == list(range(40, 73))


@pytest.mark.parametrize(("labels", "dtype", "tolerance"), [SINGLE, DOUBLE])
def test_kernels_match_the_reference(labels: int, dtype: Any, tolerance: float) -> None:
    """Sums, expectations, second derivatives and Viterbi paths match for padded and concatenated sentences."""
    chain = drawn(labels, dtype)
    exact = tuple(x.double() if x.is_floating_point() else x for x in chain)
    tags = torch.randint(labels, chain[0].shape[:2], generator=torch.Generator().manual_seed(1))
    scale = torch.tensor([0.5, 2.0, -1.0], dtype=dtype)
    there = torch.arange(chain[0].shape[1]) < chain[4][:, None]
    flat, places = concatenated(chain)
    flat_tags = ragged(tags, chain)
    for y, y_flat in ((tags, flat_tags), (None, None)):
        want = reference.forward_backward(Chain(*exact, y))
        gradient = reference.expectations(Chain(*exact, y), want.rows, scale.double())
        found = cuda.forward_backward(Chain(*chain, y))
        close(found.value, want.value, tolerance)
        by = cuda.expectations(Chain(*chain, y), found.rows, scale)
        for ours, theirs in zip(by, gradient):
            close(ours, theirs, tolerance)
        total, by = cuda.gradient(Chain(*chain, y))
        close(total, want.value.sum(), tolerance)
        for ours, theirs in zip(
            by, reference.expectations(Chain(*exact, y), want.rows, torch.ones(3).double())
        ):
            close(ours, theirs, tolerance)
        row = cuda.forward_backward(Chain(*flat, y_flat, places))
        close(row.value, want.value, tolerance)
        by = cuda.expectations(Chain(*flat, y_flat, places), row.rows, scale)
        close(by.emissions, ragged(gradient.emissions, chain), tolerance)
        close(by.transitions, gradient.transitions, tolerance)
    draw = torch.Generator().manual_seed(2)
    along = Gradient(
        *(torch.randn(x.shape, generator=draw, dtype=torch.float64).to(dtype) for x in chain[:4])
    )
    for direction in (along, Gradient(along.emissions, *(torch.zeros_like(x) for x in along[1:]))):
        less = Gradient(*(x.double() for x in direction))
        change, total = reference.hessian_product(Chain(*exact), want.rows, scale.double(), less)
        got, slope = cuda.hessian_product(Chain(*chain), found.rows, scale, direction)
        close(slope, total, tolerance)
        for ours, theirs in zip(got, change):
            close(ours, theirs, tolerance)
        flat_along = direction._replace(emissions=ragged(direction.emissions, chain))
        got, slope = cuda.hessian_product(Chain(*flat, None, places), row.rows, scale, flat_along)
        close(slope, total, tolerance)
        close(got.emissions, ragged(change.emissions, chain), tolerance)
        close(got.transitions, change.transitions, tolerance)
    paths, scores = cuda.viterbi(Chain(*chain))
    want_paths, want_scores = reference.viterbi(Chain(*exact))
    assert torch.equal(torch.where(there, paths, -1), want_paths)
    close(scores, want_scores, tolerance)


@pytest.mark.parametrize(("labels", "dtype"), [(5, torch.float32), (33, torch.float64)])
def test_scale_a_gradient(labels: int, dtype: Any) -> None:
    """All four parts are scaled in place, for any strides of the emissions and numbers of blocks."""
    e, *more = drawn(labels, dtype, (200, 7, 190))
    for emissions in (e, e.transpose(0, 1).contiguous().transpose(0, 1), torch.cat([e, e], 2)[:, :, :labels]):
        _, found = cuda.gradient(Chain(emissions, *more))
        for by in (-2.5, 1.0, 0.0):
            was = [x.clone() for x in found]
            cuda.scale(found, torch.tensor(by, dtype=dtype))
            for ours, before in zip(found, was):
                assert torch.equal(ours, by * before)


def test_pieces_of_long_sentences(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sentences that are cut into pieces keep their values and gradients."""
    monkeypatch.setattr(cuda, "LONG", 8)
    monkeypatch.setattr(cuda, "PIECE", 5)
    chain = drawn(5, torch.float32)
    exact = tuple(x.double() if x.is_floating_point() else x for x in chain)
    tags = torch.randint(5, chain[0].shape[:2], generator=torch.Generator().manual_seed(1))
    for y in (None, tags):
        want, found = reference.forward_backward(Chain(*exact, y)), cuda.forward_backward(Chain(*chain, y))
        close(found.value, want.value, 2e-5)
        scale = torch.tensor([0.5, 2.0, -1.0])
        by = cuda.expectations(Chain(*chain, y), found.rows, scale)
        for ours, theirs in zip(by, reference.expectations(Chain(*exact, y), want.rows, scale.double())):
            close(ours, theirs, 2e-5)


def test_directions_with_missing_parts() -> None:
    """Parts of a direction that are None count as zero."""
    chain = drawn(5, torch.float32)
    given, scale = Chain(*chain), torch.ones(3)
    rows = cuda.forward_backward(given).rows
    v = torch.randn(chain[0].shape, generator=torch.Generator().manual_seed(3))
    zeros = (torch.zeros_like(x) for x in chain[1:4])
    with_zeros = cuda.hessian_product(given, rows, scale, Gradient(v, *zeros))
    without = cuda.hessian_product(given, rows, scale, Gradient(v, None, None, None))  # type: ignore[arg-type]
    for ours, theirs in zip((*with_zeros[0], with_zeros[1]), (*without[0], without[1])):
        assert torch.equal(ours, theirs)


@pytest.mark.parametrize("size", [1.0, 60.0])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_many_labels(dtype: Any, size: float) -> None:
    """One launch per step matches the loop in logarithms for any range of scores. Viterbi paths are bit-identical."""
    lengths = (7, 1, 0, 4, *(2,) * 6, 3, *(1,) * 7)  # more sentences than a group
    chain = drawn(133, dtype, lengths, size)
    chain[1][5, :] = -torch.inf
    exact = tuple(x.double() if x.is_floating_point() else x for x in chain)
    want, found = reference.forward_backward(Chain(*exact)), many_labels_cuda.forward_backward(Chain(*chain))
    tolerance = 2e-5 if dtype == torch.float32 else 1e-10
    close(found.value, want.value, tolerance)
    for ours, theirs in zip(found.rows, want.rows):
        there = torch.arange(7) < chain[4][:, None]
        ours = torch.log_softmax(ours.double(), 2)
        ours, theirs = (torch.where(there[:, :, None], x, 0.0) for x in (ours, torch.log_softmax(theirs, 2)))
        close(ours.exp(), theirs.exp(), 10 * tolerance)
    paths, scores = many_labels_cuda.viterbi(Chain(*chain))
    want_paths, want_scores = reference.viterbi(Chain(*chain))
    assert torch.equal(paths, want_paths)
    assert torch.equal(scores, want_scores)


def reference_log_likelihood(e: Any, transitions: Any, start: Any, end: Any, y: Any) -> float:
    """Return the log-likelihood of a path, computed by NumPy in double precision."""
    e, transitions, start, end = (x.double().numpy() for x in (e, transitions, start, end))
    a = start + e[0]
    for row in e[1:]:
        a = np.logaddexp.reduce(a[:, None] + transitions, axis=0) + row
    path = y.numpy()
    score = (
        start[path[0]] + e[range(len(e)), path].sum() + transitions[path[:-1], path[1:]].sum() + end[path[-1]]
    )
    return float(score - np.logaddexp.reduce(a + end))


@pytest.mark.parametrize("labels", [5, 40])
def test_losses_of_concatenated_sentences_are_accurate(labels: int) -> None:
    """The error of l, which is the relative error of e^l, is a fraction of the last digit of floats near 100."""
    lengths = (60, 33, 9, *(2,) * 46)  # more sentences than run at a time
    chain = drawn(labels, torch.float32, lengths, 2.0)
    tags = chain[0].argmax(2)
    tags[:, ::4] = 1
    flat, places = concatenated(chain)
    found = cuda.forward_backward(Chain(*flat, ragged(tags, chain), places)).value
    assert found.dtype == torch.float64
    for b, n in enumerate(lengths):
        want = reference_log_likelihood(chain[0][b, :n], *chain[1:4], tags[b, :n])
        assert abs(float(found[b]) - want) < 6e-8 * n**0.5 * 4


def test_repeated_shapes_skip_validation(monkeypatch: pytest.MonkeyPatch) -> None:
    """Values and gradients still match the reference, and other shapes and dtypes are still rejected."""
    ours, exact = tt.CRF(5, batch_first=True), tt.CRF(5, batch_first=True).double()
    exact.load_state_dict(ours.state_dict())
    assert ops.engine(torch.zeros(1, 1, 5, dtype=torch.float64)) is reference
    monkeypatch.setattr(ops, "engine", lambda e: reference if e.dtype == torch.float64 else cuda)
    read: list[int] = []
    through = inputs.read
    monkeypatch.setattr(inputs, "read", lambda *given: (read.append(1), through(*given))[1])
    draw = torch.Generator().manual_seed(4)
    for length, reads in ((4, 1), (4, 0), (6, 1), (6, 0)):
        e = torch.randn(2, length, 5, generator=draw, requires_grad=True)
        y = torch.randint(5, (2, length), generator=draw)
        wide = e.detach().double().requires_grad_()
        read.clear()
        value = ours(e, y)
        assert len(read) == reads
        want = exact(wide, y)
        close(value, want.detach(), 2e-5)
        ours.zero_grad()
        exact.zero_grad()
        (3 * value).backward()
        (3 * want).backward()
        for one, other in zip((e, *ours.parameters()), (wide, *exact.parameters())):
            close(one.grad, other.grad, 5e-5)
    with pytest.raises(TensorError, match="tags: expected shape"):
        ours(e, y[:, 1:])
    with pytest.raises(TensorError, match="tags: expected integers"):
        ours(e, y.float())
    assert ours(e, y, reduction="none").shape == (2,)

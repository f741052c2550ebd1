"""`tt.LinearChain`, compared with enumeration of all paths."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed: make test-torch")

import tagwise.torch as tt  # noqa: E402
from tagwise.base.exceptions import ParameterError, TensorError  # noqa: E402
from tests.torch import enumeration  # noqa: E402
from tests.torch.common import DEVICES, case, close  # noqa: E402


def of(it: Any, **more: Any) -> Any:
    layer = it.layer
    return tt.LinearChain(
        it.emissions, layer.transitions, layer.start_transitions, layer.end_transitions, it.lengths, **more
    )


@pytest.mark.parametrize("device", DEVICES)
def test_values_match_enumeration(device: str) -> None:
    it = case(device=device)
    chain, all_paths = of(it), it.enumerated()
    assert chain.batch_shape == (3,)
    assert chain.event_shape == (4,)
    close(chain.entropy(), [c.entropy() for c in all_paths])
    close(chain.log_partition, [c.log_z for c in all_paths])
    every = torch.full((81, 3, 4), 0)
    for b, c in enumerate(all_paths):
        every[: len(c.paths), b, : c.n] = torch.tensor(c.paths)
    got = chain.log_prob(every.to(device))
    assert got.shape == (81, 3)
    for b, c in enumerate(all_paths):
        close(got[: len(c.paths), b], np.log(c.p))
    assert torch.equal(chain.mode, chain.topk(1)[0][:, 0])
    paths, logs = chain.topk(5)
    close(logs[0], np.sort(np.log(all_paths[0].p))[::-1][:5])
    close(chain.log_prob(paths[:, 0]), logs[:, 0].tolist())
    assert (logs[1, 3:] == -torch.inf).all()
    drawn = chain.sample((2, 3))
    assert drawn.shape == (2, 3, 3, 4)
    assert torch.isfinite(chain.log_prob(drawn)).all()
    close(chain.perplexity(), [np.exp(c.entropy()) for c in all_paths])


@pytest.mark.parametrize("varied", [False, True])
def test_divergence(varied: bool) -> None:
    """It matches enumeration, is 0 from itself, infinite if only the second forbids a path, and differentiable."""
    one, two = case(seed=1), case(seed=2)
    edges = torch.randn(3, 4, 3, 3, dtype=torch.float64)
    p = of(one)
    q = tt.LinearChain(two.emissions, edges, lengths=two.lengths) if varied else of(two)
    want = []
    for b, (c, d) in enumerate(zip(one.enumerated(), two.enumerated())):
        if varied:
            node = two.emissions[b, : c.n].numpy()
            d = enumeration.Chain(node, np.zeros((3, 3)), np.zeros(3), np.zeros(3), edges[b, : c.n].numpy())
        want.append(float((c.p * (np.log(c.p) - np.log(d.p))).sum()))
    divergence = torch.distributions.kl_divergence
    close(divergence(p, q), want)
    close(divergence(p, p), [0.0] * 3)
    no = edges.clone()
    no[0, 2, 1, 1] = -torch.inf
    assert divergence(p, tt.LinearChain(two.emissions, no, lengths=two.lengths)).isinf().tolist() == [
        True,
        False,
        False,
    ]
    start = torch.tensor([0.0, -torch.inf, 0.0])
    assert (
        divergence(p, tt.LinearChain(two.emissions, two.layer.transitions, start, lengths=two.lengths))
        .isinf()
        .all()
    )
    with pytest.raises(TensorError, match="same sentences"):
        divergence(p, tt.LinearChain(two.emissions, edges))

    def apart(*values: Any) -> Any:
        return divergence(
            tt.LinearChain(values[0], values[1], lengths=one.lengths),
            tt.LinearChain(values[2], values[3], lengths=one.lengths),
        )

    given = [
        one.emissions,
        one.layer.transitions.detach(),
        two.emissions,
        edges if varied else two.layer.transitions.detach(),
    ]
    assert torch.autograd.gradcheck(apart, [x.clone().requires_grad_() for x in given], fast_mode=True)


def test_one_sentence_without_a_batch_dimension() -> None:
    """Results have no batch dimension and the values of a batch of one."""
    it = case((4,))
    whole, one = (
        of(it),
        tt.LinearChain(
            it.emissions[0], it.layer.transitions, it.layer.start_transitions, it.layer.end_transitions
        ),
    )
    assert one.batch_shape == ()
    assert one.sample((5,)).shape == (5, 4)
    assert one.argmax().tolist() == whole.argmax()[0].tolist()
    close(one.log_prob(one.mode), whole.log_prob(whole.mode)[0].item())
    close(one.entropy(), whole.entropy()[0].item())
    close(one.marginals(), whole.marginals()[0].tolist())
    assert one.topk(2)[0].shape == (2, 4)
    close(one.loss(it.tags[0], "risk"), whole.loss(it.tags, "risk")[0].item())
    edges = torch.randn(4, 3, 3, dtype=torch.float64)
    varied = tt.LinearChain(it.emissions[0], edges)
    assert varied.log_partition.shape == ()
    assert repr(one) == "LinearChain(sentences=1, tokens=4, labels=3)"


def test_packed_sentences() -> None:
    it = case((2, 4, 1))
    rows = [it.emissions[b, :n] for b, n in enumerate([2, 4, 1])]
    packed = tt.LinearChain(
        torch.nn.utils.rnn.pack_sequence(rows, enforce_sorted=False), it.layer.transitions
    )
    padded = tt.LinearChain(it.emissions, it.layer.transitions, lengths=it.lengths)
    close(packed.log_partition, padded.log_partition.tolist())


def test_losses_by_name() -> None:
    it = case(loss="hinge")
    close(
        of(it).loss(it.tags, "hinge", 2.0),
        it.layer.loss(it.emissions, it.tags, it.mask, "none", cost=2.0).tolist(),
    )
    with pytest.raises(ParameterError, match="softmax_margin"):
        of(it).loss(it.tags, "squared")


def test_invalid_arguments_raise() -> None:
    """`validate_args=True` is needed, since `torch.compile` disables validation for the rest of the process."""
    it = case()
    with pytest.raises(TensorError, match="transitions"):
        tt.LinearChain(it.emissions, torch.zeros(2, 2))
    with pytest.raises(TensorError, match="start"):
        tt.LinearChain(it.emissions, torch.zeros(3, 3), torch.zeros(2))
    with pytest.raises(TensorError, match="value"):
        of(it, validate_args=True).log_prob(torch.zeros(3, 3))
    with pytest.raises(TensorError, match="expected a label"):
        of(it, validate_args=True).log_prob(torch.full((3, 4), 7))
    with pytest.raises(ParameterError, match="k=0"):
        of(it).topk(0)


def test_third_derivatives_raise() -> None:
    """It raises an error instead of returning a wrong or missing gradient."""
    it = case((3, 2), 3)
    e = it.emissions.requires_grad_()
    value = it.layer.log_partition(e, lengths=it.lengths).sum()
    (first,) = torch.autograd.grad(value, e, create_graph=True)
    (second,) = torch.autograd.grad(first.square().sum(), e, create_graph=True)
    with pytest.raises(TensorError, match="differentiated twice, not three times"):
        torch.autograd.grad(second.sum(), e)

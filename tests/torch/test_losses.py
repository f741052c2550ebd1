"""Losses of `tagwise.torch`, compared with their formulas over all paths, and gradients with finite differences."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed: make test-torch")

import tagwise.torch as tt  # noqa: E402
from tagwise.base.exceptions import ParameterError, TensorError  # noqa: E402
from tests.torch import enumeration  # noqa: E402
from tests.torch.common import DEVICES, case, close  # noqa: E402

NAMES = list(tt.LOSSES)


def hamming(tags: Any, n: int, labels: int) -> Any:
    return 1.0 - np.eye(labels)[tags[:n].cpu().numpy()]


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", NAMES)
def test_losses_match_their_formulas(name: str, device: str) -> None:
    it = case(loss=name, device=device)
    got = it.layer.loss(it.emissions, it.tags, it.mask, "none")
    want = []
    for chain, y in zip(it.enumerated(), it.tags):
        support = np.eye(3, dtype=bool)[y[: chain.n].cpu().numpy()]
        want.append(enumeration.loss(name, chain, support, hamming(y, chain.n, 3)))
    close(got, want)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("how", ["-100", "support"])
def test_losses_of_partly_known_tags(name: str, how: str) -> None:
    """-100 allows all labels, and a support some. The gold score is the sum over their paths, or the maximum."""
    it = case(loss=name, seed=1)
    rng = np.random.default_rng(0)
    if how == "-100":
        tags = it.tags.clone()
        tags[0, 1:3] = tags[1, 0] = -100
        support = torch.nn.functional.one_hot(tags.clamp(min=0), 3).bool() | (tags == -100)[:, :, None]
    else:
        support = (
            torch.from_numpy(rng.random(it.emissions.shape) < 0.6)
            | torch.nn.functional.one_hot(it.tags, 3).bool()
        )
        tags = support
    got = it.layer.loss(it.emissions, tags, it.mask, "none")
    want = []
    for chain, allowed in zip(it.enumerated(), support.numpy()):
        mine = allowed[: chain.n]
        want.append(enumeration.loss(name, chain, mine, 1.0 - mine.astype(float)))
    close(got, want)


@pytest.mark.parametrize("name", ["hinge", "softmax_margin", "risk"])
def test_costs(name: str) -> None:
    """A cost is a number per wrong label, a matrix [gold, label], or (B, T, L). The call's overrides the layer's."""
    rng = np.random.default_rng(3)
    matrix, free = rng.random((3, 3)), rng.random((3, 4, 3))
    number, table = case(loss=name, cost=2.5), case(loss=name, cost=torch.from_numpy(matrix))
    for it, given in (
        (number, None),
        (table, None),
        (number, torch.from_numpy(matrix)),
        (number, torch.from_numpy(free)),
    ):
        want = []
        for b, chain in enumerate(it.enumerated()):
            y = it.tags[b, : chain.n].numpy()
            costs = 2.5 * (1.0 - np.eye(3)[y]) if it is number else matrix[y]
            if given is not None:
                costs = matrix[y] if given.dim() == 2 else free[b, : chain.n]
            want.append(enumeration.loss(name, chain, np.eye(3, dtype=bool)[y], costs))
        close(it.layer.loss(it.emissions, it.tags, it.mask, "none", cost=given), want, 1e-6)
    with pytest.raises(TensorError, match="cost"):
        number.layer(number.emissions, number.tags, cost=torch.ones(2, 2))


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("how", ["tags", "partial", "edges"])
def test_gradients_match_finite_differences(name: str, how: str) -> None:
    it = case(lengths=(3, 1, 2), loss=name, seed=2)
    tags = it.tags.clone()
    if how == "partial":
        tags[0, 1] = -100
    draw = torch.Generator().manual_seed(5)
    edges = torch.randn(3, 3, 3, 3, generator=draw, dtype=torch.float64) if how == "edges" else None

    def value(emissions: Any, transitions: Any, start: Any, end: Any, *more: Any) -> Any:
        named = {"transitions": transitions, "start_transitions": start, "end_transitions": end}
        keywords = {"mask": it.mask, "reduction": "none", "edges": more[0] if more else None}
        return torch.func.functional_call(it.layer, named, (emissions, tags), keywords)

    given = [
        it.emissions,
        *(x.detach() for x in (it.layer.transitions, it.layer.start_transitions, it.layer.end_transitions)),
    ]
    given += [] if edges is None else [edges]
    assert torch.autograd.gradcheck(value, [x.clone().requires_grad_() for x in given], fast_mode=True)


def test_reductions() -> None:
    it = case(loss="risk")
    each = it.layer(it.emissions, it.tags, it.mask, "none")
    assert each.shape == (3,)
    for how, want in (("sum", each.sum()), ("mean", each.mean()), ("token_mean", each.sum() / 8)):
        close(it.layer(it.emissions, it.tags, it.mask, how), want.item())
    whole = it.layer(it.emissions, it.tags, reduction="token_mean") * 12
    close(whole, it.layer(it.emissions, it.tags).item())


@pytest.mark.parametrize("name", ["exp", "pointwise_exp"])
def test_log_sum_of_exponential_losses(name: str) -> None:
    """It is the log of the sum (of e^l, without the -1), and finite even if the loss overflows."""
    it = case(loss=name)
    values = it.layer.loss(it.emissions, it.tags, it.mask, "none")
    whole = it.layer.loss(it.emissions, it.tags, it.mask, "log_sum")
    close(whole, torch.log((values + (name == "exp")).sum()).item())
    big = case(lengths=(90, 60), size=20, loss=name, dtype=torch.float32)
    total = big.layer.loss(big.emissions * 5, big.tags, big.mask, "log_sum")
    total.backward()
    assert torch.isfinite(total)
    assert torch.isfinite(big.layer.transitions.grad).all()
    with pytest.raises(ParameterError, match="log_sum"):
        case().layer(it.emissions, it.tags, reduction="log_sum")


def test_inequalities_between_losses() -> None:
    """hinge >= perceptron >= 0, softmax margin >= log >= perceptron, exp >= log. Both families agree for one token."""
    it = case(lengths=(5, 2, 1, 4), seed=4)

    def of(name: str, lengths: Any = None) -> Any:
        layer = tt.CRF(3, True, loss=name).double()
        layer.load_state_dict(it.layer.state_dict())
        return layer.loss(
            it.emissions, it.tags, reduction="none", lengths=it.lengths if lengths is None else lengths
        )

    assert (of("hinge") >= of("perceptron")).all()
    assert (of("perceptron") >= 0).all()
    assert (of("softmax_margin") >= of("log")).all()
    assert (of("log") >= of("perceptron")).all()
    assert (of("exp") >= of("log")).all()
    one = torch.ones(4, dtype=torch.int64)
    close(of("log", one), of("pointwise_log", one).tolist())
    close(of("exp", one), (of("pointwise_exp", one) - 1).tolist())


def test_unknown_names_raise() -> None:
    with pytest.raises(ParameterError, match="expected one of log, exp, pointwise_log"):
        tt.CRF(3, loss="squared")
    with pytest.raises(ParameterError, match="did you mean 'pointwise_log'"):
        tt.CRF(3, loss="pointwise-log")
    with pytest.raises(ParameterError, match="reduction"):
        case().layer(torch.zeros(1, 1, 3), torch.zeros(1, 1, dtype=torch.int64), reduction="max")

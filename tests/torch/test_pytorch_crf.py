"""The layer compared with pytorch-crf 0.7.2: parameters, values, gradients, paths and errors are equal."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

torch = pytest.importorskip("torch", reason="torch is not installed: make test-torch")
torchcrf = pytest.importorskip("torchcrf", reason="pytorch-crf is not installed: make test-torch")

import tagwise.torch as tt  # noqa: E402
from tests.torch.common import case, close  # noqa: E402


def pair(labels: int, batch_first: bool) -> tuple[Any, Any]:
    """Return both layers with equal parameters, after loading the state_dict in both directions."""
    ours, theirs = tt.CRF(labels, batch_first=batch_first), torchcrf.CRF(labels, batch_first=batch_first)
    theirs.load_state_dict(ours.state_dict())
    ours.load_state_dict(theirs.state_dict())
    return ours, theirs


@given(
    lengths=st.lists(st.integers(1, 9), min_size=1, max_size=5),
    labels=st.sampled_from([1, 2, 3, 5, 9, 70]),  # more than 64 use matrix products
    seed=st.integers(0, 99),
    batch_first=st.booleans(),
    masked=st.booleans(),
    reduction=st.sampled_from(["none", "sum", "mean", "token_mean"]),
)
@pytest.mark.filterwarnings("ignore:where received a uint8 condition")  # pytorch-crf without a mask
def test_values_gradients_and_paths_agree(
    lengths: list[int], labels: int, seed: int, batch_first: bool, masked: bool, reduction: str
) -> None:
    it = case(tuple(lengths), labels, seed, dtype=torch.float32)
    ours, theirs = pair(labels, batch_first)
    emissions, tags, mask = it.emissions, it.tags, it.mask
    if not batch_first:
        emissions, tags, mask = emissions.transpose(0, 1), tags.T, mask.T
    given_mask = mask if masked else None
    values, slopes = [], []
    for layer in (ours, theirs):
        leaf = emissions.clone().requires_grad_()
        value = layer(leaf, tags, mask=given_mask, reduction=reduction)
        value.sum().backward()
        values.append(value)
        slopes.append(
            [
                leaf.grad,
                *(dict(layer.named_parameters())[n].grad for n in sorted(dict(layer.named_parameters()))),
            ]
        )
    assert values[0].shape == values[1].shape
    close(values[0], values[1].tolist(), 1e-5)
    for mine, other in zip(*slopes):
        close(mine, torch.zeros_like(mine) if other is None else other, 1e-4)
    assert ours.decode(emissions, given_mask) == theirs.decode(emissions, given_mask)


def test_constructor_and_initialisation_match() -> None:
    """Initial parameters from equal seeds, representation and parameter names are equal."""
    torch.manual_seed(3)
    ours = tt.CRF(4)
    torch.manual_seed(3)
    theirs = torchcrf.CRF(4)
    for name, value in theirs.state_dict().items():
        assert torch.equal(ours.state_dict()[name], value)
    assert repr(ours) == repr(theirs)
    assert list(ours.state_dict()) == list(theirs.state_dict())
    assert [n for n, _ in ours.named_parameters()] == [n for n, _ in theirs.named_parameters()]
    for wrong in (0, -1):
        for kind in (tt.CRF, torchcrf.CRF):
            with pytest.raises(ValueError, match="num"):
                kind(wrong)


@pytest.mark.parametrize(
    "change",
    [
        {"emissions": torch.zeros(2, 3)},
        {"emissions": torch.zeros(2, 3, 5)},
        {"tags": torch.zeros(3, 3, dtype=torch.int64)},
        {"tags": torch.zeros(2, 2, dtype=torch.int64)},
        {"mask": torch.ones(3, 3, dtype=torch.bool)},
        {"mask": torch.ones(2, 2, dtype=torch.bool)},
        {"mask": torch.tensor([[0, 1, 1], [1, 1, 1]], dtype=torch.bool)},
        {"mask": torch.zeros(2, 3, dtype=torch.bool)},
        {"reduction": "max"},
    ],
)
@pytest.mark.parametrize("batch_first", [False, True])
def test_both_reject_invalid_inputs(change: dict[str, Any], batch_first: bool) -> None:
    arguments = {"emissions": torch.zeros(2, 3, 4), "tags": torch.zeros(2, 3, dtype=torch.int64), **change}
    for layer in pair(4, batch_first):
        with pytest.raises(ValueError, match=r"\w"):
            layer(**arguments)
        if not {"tags", "reduction"} & set(change):
            with pytest.raises(ValueError, match=r"\w"):
                layer.decode(arguments["emissions"], arguments.get("mask"))

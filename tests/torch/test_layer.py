"""The CRF layer: results compared with enumeration, accepted inputs, and errors."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

torch = pytest.importorskip("torch", reason="torch is not installed: make test-torch")

import tagwise.torch as tt  # noqa: E402
from tagwise.base.exceptions import ParameterError, TensorError  # noqa: E402
from tagwise.scores.constraints import Constraints  # noqa: E402
from tests.torch.common import DEVICES, case, close  # noqa: E402

LABELS = ["O", "B-X", "I-X"]


# --- results ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("device", DEVICES)
@given(
    lengths=st.lists(st.integers(1, 4), min_size=1, max_size=3),
    labels=st.integers(1, 3),
    seed=st.integers(0, 99),
    by=st.sampled_from(["mask", "lengths", "uint8"]),
    dtype=st.sampled_from(["float64", "float32", "bfloat16", "float16"]),
)
def test_results_match_enumeration(
    device: str, lengths: list[int], labels: int, seed: int, by: str, dtype: str
) -> None:
    """log Z, likelihood, marginals, entropy and the best path match enumeration. Half precision only rounds inputs."""
    it = case(tuple(lengths), labels, seed, device)
    kind = getattr(torch, dtype)
    if dtype != "float64":
        it.layer = it.layer.float()
        it.emissions = it.emissions.to(kind)
    tolerance = 1e-9 if dtype == "float64" else 2e-5
    how: dict[str, Any] = {"lengths": it.lengths} if by == "lengths" else {"mask": it.mask}
    if by == "uint8":
        how["mask"] = how["mask"].to(torch.uint8)
    layer, chains = it.layer, it.enumerated()
    close(layer.log_partition(it.emissions, **how), [c.log_z for c in chains], tolerance)
    want = [c.score(y[: c.n]) - c.log_z for c, y in zip(chains, it.tags.cpu().numpy())]
    close(layer(it.emissions, it.tags, reduction="none", **how), want, tolerance)
    close(layer.entropy(it.emissions, **how), [c.entropy() for c in chains], tolerance * 10)
    got = layer.marginals(it.emissions, **how)
    for b, c in enumerate(chains):
        close(got[b, : c.n], c.marginals(), tolerance)
        assert not got[b, c.n :].any()
    paths, scores = layer.decode(it.emissions, return_scores=True, **how)
    close(scores, [c.scores.max() for c in chains], tolerance)
    for path, c in zip(paths, chains):
        assert math.isclose(c.score(tuple(path)), c.scores.max(), rel_tol=1e-4, abs_tol=1e-4)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("varied", [False, True])
def test_kbest(device: str, varied: bool) -> None:
    """k-best lists have the paths in the order of scores, padded if a sentence has fewer than k."""
    it = case((3, 1, 2), device=device)
    edges = torch.randn(3, 3, 3, 3, dtype=torch.float64).to(device) if varied else None
    paths, scores = it.layer.kbest(it.emissions, 12, it.mask, edges=edges)
    assert paths.shape == (3, 12, 3)
    for b, c in enumerate(it.enumerated(edges)):
        order = sorted(zip(-c.scores, c.paths))[:12]
        close(scores[b, : len(order)], [-s for s, _ in order])
        assert [tuple(p[: c.n].tolist()) for p in paths[b, : len(order)]] == [p for _, p in order]
        assert (paths[b, :, c.n :] == -1).all()
        assert (scores[b, len(order) :] == -torch.inf).all()
        assert (paths[b, len(order) :] == -1).all()
    with pytest.raises(ParameterError, match="k=0"):
        it.layer.kbest(it.emissions, 0)


@pytest.mark.parametrize("device", DEVICES)
def test_samples_follow_the_distribution(device: str) -> None:
    """Counts of 20,000 draws are within 5 standard deviations, and equal seeds give equal draws."""
    it = case((3, 1, 2), device=device, seed=3)
    draw = torch.Generator(device).manual_seed(1)
    n = 20_000
    got = it.layer.sample(it.emissions, n, it.mask, generator=draw).cpu()
    assert got.shape == (n, 3, 3)
    for b, c in enumerate(it.enumerated()):
        assert (got[:, b, c.n :] == -1).all()
        code = (got[:, b, : c.n] * 3 ** torch.arange(c.n)).sum(1)
        of = [sum(a * 3**t for t, a in enumerate(y)) for y in c.paths]
        counts = torch.bincount(code, minlength=3**c.n).numpy()[of]
        assert (np.abs(counts - n * c.p) <= 5 * np.sqrt(n * c.p * (1 - c.p)) + 1).all()
    again = it.layer.sample(it.emissions, n, it.mask, generator=torch.Generator(device).manual_seed(1)).cpu()
    assert torch.equal(got, again)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("factors", [False, True])
def test_transitions_per_token(device: str, factors: bool) -> None:
    """All queries match enumeration with edge scores (B, T, L, L) or their two factors."""
    it = case(device=device)
    draw = torch.Generator().manual_seed(7)
    if factors:
        u, v = (torch.randn(3, 4, 3, 2, generator=draw, dtype=torch.float64).to(device) for _ in "uv")
        edges, given_edges = torch.einsum("btir,btjr->btij", u, v), (u, v)
    else:
        edges = given_edges = torch.randn(3, 4, 3, 3, generator=draw, dtype=torch.float64).to(device)
    chains, how = it.enumerated(edges), {"mask": it.mask, "edges": given_edges}
    close(it.layer.log_partition(it.emissions, **how), [c.log_z for c in chains])
    want = [c.score(y[: c.n]) - c.log_z for c, y in zip(chains, it.tags.cpu().numpy())]
    close(it.layer(it.emissions, it.tags, reduction="none", **how), want)
    close(it.layer.entropy(it.emissions, **how), [c.entropy() for c in chains])
    got = it.layer.marginals(it.emissions, **how)
    for b, c in enumerate(chains):
        close(got[b, : c.n], c.marginals())
    paths = it.layer.decode(it.emissions, **how)
    assert [tuple(p) for p in paths] == [c.paths[int(c.scores.argmax())] for c in chains]
    with pytest.raises(TensorError, match="edges"):
        it.layer.log_partition(it.emissions, edges=edges[:, 1:])


def test_entropy_and_marginals_are_differentiable() -> None:
    it = case((3, 1, 2))
    parts = [x.detach() for x in (it.layer.transitions, it.layer.start_transitions, it.layer.end_transitions)]
    given_parts = [x.clone().requires_grad_() for x in (it.emissions, *parts)]

    def of(*values: Any) -> Any:
        chain = tt.LinearChain(*values, lengths=it.lengths)
        return chain.entropy(), chain.marginals(), chain.log_partition

    assert torch.autograd.gradcheck(of, given_parts, fast_mode=True)
    assert torch.autograd.gradgradcheck(lambda *v: of(*v)[2], given_parts, fast_mode=True)


# --- constraints --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", ["log", "pointwise_log", "softmax_margin", "risk", "hinge"])
def test_forbidden_paths_have_no_probability(device: str, name: str) -> None:
    """Forbidden paths have probability 0. Gradients are finite, and 0 for forbidden transitions.

    The state_dict does not change.
    """
    it = case(device=device, constraints="BIO", labels=LABELS, loss=name)
    rules = Constraints.parse("BIO").rules(LABELS)
    with torch.no_grad():  # for enumeration, forbidden transitions score -inf
        bound = case(device=device)
        bound.layer.load_state_dict(it.layer.state_dict())
        bound.layer.transitions[torch.from_numpy(~rules.pairs).to(device)] = -torch.inf
        bound.layer.start_transitions[torch.from_numpy(~rules.start).to(device)] = -torch.inf
    chains = bound.enumerated()
    close(it.layer.log_partition(it.emissions, it.mask), [c.log_z for c in chains])
    close(it.layer.entropy(it.emissions, it.mask), [c.entropy() for c in chains])
    assert [tuple(p) for p in it.layer.decode(it.emissions, it.mask)] == [
        c.paths[int(c.scores.argmax())] for c in chains
    ]
    _, scores = it.layer.kbest(it.emissions, 81, it.mask)
    assert (scores > -torch.inf).sum(1).tolist() == [int((c.scores > -np.inf).sum()) for c in chains]
    tags = torch.tensor([[1, 2, 0, 1], [0, 0, 0, 0], [1, 1, 2, 0]], device=device)
    it.layer.loss(it.emissions.requires_grad_(), tags, it.mask).backward()
    assert torch.isfinite(it.emissions.grad).all()
    assert torch.isfinite(it.layer.transitions.grad).all()
    assert it.layer.transitions.grad[0, 2] == 0
    assert it.layer.start_transitions.grad[2] == 0
    assert sorted(it.layer.state_dict()) == ["end_transitions", "start_transitions", "transitions"]


def test_invalid_constraints_raise() -> None:
    rules = Constraints.parse("BIO").rules(LABELS)
    (path,) = tt.CRF(3, batch_first=True, constraints=rules).decode(torch.tensor([[[0.0, 1, 9], [0, 1, 9]]]))
    assert path == [1, 2]
    for options, word in (
        ({"constraints": "BIO"}, "labels"),
        ({"constraints": "BIO", "labels": LABELS[:2]}, "2 labels"),
        ({"constraints": "auto", "labels": LABELS}, "auto"),
        ({"constraints": {"once": ["X"]}, "labels": LABELS}, "once"),
        ({"constraints": "BIOX", "labels": LABELS}, "BIOX"),
    ):
        with pytest.raises(ParameterError, match=word):
            tt.CRF(3, **options)
    assert repr(tt.CRF(3, constraints="BIO", labels=LABELS, loss="exp")) == (
        "CRF(num_tags=3, constraints='BIO', loss='exp')"
    )


def test_allowed_labels_per_token() -> None:
    it = case()
    allowed = torch.ones(3, 4, 3, dtype=torch.bool)
    allowed[0, 1] = torch.tensor([False, True, False])
    (path, *_), p = (
        it.layer.decode(it.emissions, it.mask, allowed=allowed),
        it.layer.marginals(it.emissions, it.mask, allowed=allowed),
    )
    assert path[1] == 1
    close(p[0, 1], [0.0, 1.0, 0.0])
    allowed[2, 2] = False
    with pytest.raises(TensorError, match="token 2 of sentence 2"):
        it.layer.decode(it.emissions, it.mask, allowed=allowed)


def test_forbidden_tags_have_likelihood_zero() -> None:
    """The log-likelihood is -inf, not NaN."""
    it = case(constraints="BIO", labels=LABELS)
    value = it.layer(it.emissions.requires_grad_(), torch.full((3, 4), 2), it.mask, "none")
    assert value.tolist() == [-math.inf] * 3
    open_tags = torch.tensor([[2, -100, -100, -100]] * 3)
    assert it.layer(it.emissions, open_tags, it.mask, "none").tolist() == [-math.inf] * 3


# --- inputs -------------------------------------------------------------------------------------------------


def test_packed_and_nested_inputs() -> None:
    """Packed and nested inputs give the results of padded ones for any order of lengths, including gradients."""
    it = case((2, 4, 1))
    pieces = [it.emissions[b, :n] for b, n in enumerate([2, 4, 1])]
    tags = [it.tags[b, :n] for b, n in enumerate([2, 4, 1])]
    want = it.layer(it.emissions, it.tags, it.mask, "none")
    pack = torch.nn.utils.rnn.pack_sequence
    packed = pack(pieces, enforce_sorted=False)
    nested = torch.nested.nested_tensor(pieces, layout=torch.jagged)
    for emissions in (packed, nested):
        for y in (
            it.tags,
            pack(tags, enforce_sorted=False),
            torch.nested.nested_tensor(tags, layout=torch.jagged),
        ):
            close(it.layer(emissions, y, reduction="none"), want.tolist())
        assert it.layer.decode(emissions) == it.layer.decode(it.emissions, it.mask)
    with pytest.raises(TensorError, match="Give one of them"):
        it.layer.decode(packed, it.mask)
    leaf = it.emissions.clone().requires_grad_()
    rows = torch.nn.utils.rnn.pack_padded_sequence(leaf, it.lengths, batch_first=True, enforce_sorted=False)
    it.layer(rows, it.tags).backward()
    assert leaf.grad[0, 2:].abs().sum() == 0
    assert leaf.grad[1].abs().sum() > 0


def test_time_first_layout() -> None:
    it = case()
    other = tt.CRF(3).double()
    other.load_state_dict(it.layer.state_dict())
    turned, tags, mask = it.emissions.transpose(0, 1), it.tags.T, it.mask.T
    close(other(turned, tags, mask, "none"), it.layer(it.emissions, it.tags, it.mask, "none").tolist())
    assert other.decode(turned, mask) == it.layer.decode(it.emissions, it.mask)
    path = other.decode(turned, mask, as_tensor=True)
    assert torch.equal(path.T, it.layer.decode(it.emissions, it.mask, as_tensor=True))
    close(other.marginals(turned, mask).transpose(0, 1), it.layer.marginals(it.emissions, it.mask).tolist())
    edges = torch.randn(3, 4, 3, 3, dtype=torch.float64)
    close(
        other.log_partition(turned, mask, edges=edges.transpose(0, 1)),
        it.layer.log_partition(it.emissions, it.mask, edges=edges).tolist(),
    )


@pytest.mark.parametrize("time", [0, 3])
def test_empty_batches(time: int) -> None:
    """The sum and the gradients are 0, and there are no paths."""
    layer = tt.CRF(3, batch_first=True)
    emissions, tags = torch.zeros(0, time, 3, requires_grad=True), torch.zeros(0, time, dtype=torch.int64)
    for mask in (None, torch.ones(0, time, dtype=torch.bool)):
        total = layer(emissions, tags, mask)
        total.backward()
        assert total == 0
        assert layer.decode(emissions, mask) == []
        assert layer.log_partition(emissions, mask).shape == (0,)
    assert not layer.transitions.grad.any()


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"emissions": torch.zeros(3, 4)}, "3 dimensions"),
        ({"emissions": torch.zeros(3, 4, 5)}, "num_tags=5"),
        ({"emissions": torch.zeros(3, 0, 3), "tags": torch.zeros(3, 0, dtype=torch.int64)}, "no tokens"),
        ({"emissions": [[1.0]]}, "emissions: expected a tensor or a PackedSequence, got list"),
        ({"tags": [[1]]}, "tags: expected a tensor or a PackedSequence, got list"),
        ({"tags": torch.zeros(3, 5, dtype=torch.int64)}, "tags"),
        ({"tags": torch.zeros(3, 4)}, "integers"),
        ({"tags": torch.full((3, 4), 3)}, "3 at token 0 of sentence 0"),
        ({"tags": torch.tensor([[0, 0, 0, 0], [0, 0, 0, 0], [0, 0, -1, 0]])}, "-1 at token 2 of sentence 2"),
        ({"tags": torch.ones(3, 4, 2, dtype=torch.bool)}, "support"),
        ({"tags": torch.zeros(3, 4, 3, dtype=torch.bool)}, "no label is allowed at token 0 of sentence 0"),
        ({"mask": torch.ones(3, 5, dtype=torch.bool)}, "mask"),
        ({"mask": torch.tensor([[1, 1, 1, 1], [0, 0, 0, 0], [1, 0, 0, 0]])}, "first token of sentence 1"),
        ({"mask": torch.tensor([[1, 1, 1, 1], [1, 0, 0, 0], [1, 1, 0, 1]])}, "sentence 2 has a hole"),
        ({"mask": torch.ones(3, 4), "lengths": [4, 4, 4]}, "Give one of them"),
        ({"lengths": [4, 0, 1]}, "sentence 1 has length 0"),
        ({"lengths": [4, 5, 1]}, "sentence 1 has length 5"),
        ({"lengths": [4, 1]}, "expected 3"),
        ({"lengths": [4.0, 1.0, 1.0]}, "integers"),
    ],
)
def test_invalid_inputs_raise(change: dict[str, Any], word: str) -> None:
    it = case(dtype=torch.float32)
    arguments = {"emissions": it.emissions, "tags": it.tags, **change}
    with pytest.raises(ValueError, match=word) as caught:
        it.layer(**arguments)
    assert isinstance(caught.value, TensorError)


def test_padding_is_ignored() -> None:
    it = case()
    want = it.layer(it.emissions, it.tags, it.mask, "none")
    tags = torch.where(it.mask, it.tags, -100)
    noise = torch.where(it.mask[:, :, None], it.emissions, torch.nan)
    assert torch.equal(it.layer(noise, tags, it.mask, "none"), want)
    assert it.layer.decode(noise, it.mask) == it.layer.decode(it.emissions, it.mask)
    want_more = it.layer.log_partition(it.emissions, it.mask, edges=torch.zeros(3, 4, 3, 3))
    for name in tt.LOSSES:
        layer, leaf = tt.CRF(3, True, loss=name).double(), noise.clone().requires_grad_()
        edged = it.layer.log_partition(leaf, it.mask, edges=torch.zeros(3, 4, 3, 3))
        close(edged, want_more.detach())
        (layer.loss(leaf, tags, it.mask) + layer.entropy(leaf, it.mask).sum() + edged.sum()).backward()
        assert torch.isfinite(leaf.grad).all(), name
        assert not leaf.grad[~it.mask].any()


def test_half_precision_parameters_and_integer_emissions() -> None:
    it = case(dtype=torch.float32)
    half = tt.CRF(3, True).to(torch.bfloat16)
    assert half.log_partition(it.emissions).dtype == torch.float32
    assert it.layer.log_partition(it.emissions.round().long()).dtype == torch.float32
    assert it.layer.log_partition(it.emissions.double()).dtype == torch.float64


def test_partial_overrides_the_check_of_tags() -> None:
    """`partial=True` and `partial=False` give the result of the check that they replace."""
    it = case()
    tags = it.tags.clone()
    tags[0, 1] = -100
    want = it.layer(it.emissions, tags, it.mask, "none")
    assert torch.equal(it.layer(it.emissions, tags, it.mask, "none", partial=True), want)
    whole = it.layer(it.emissions, it.tags, it.mask, "none")
    close(it.layer(it.emissions, it.tags, it.mask, "none", partial=True), whole.detach())
    assert torch.equal(it.layer(it.emissions, it.tags, it.mask, "none", partial=False), whole)
    assert want[0] > whole[0]


# --- heads --------------------------------------------------------------------------------------------------


def test_heads_match_single_layers() -> None:
    """Heads accept a tensor (H, B, T, L) if the numbers of labels are equal, and lists otherwise."""
    torch.manual_seed(0)
    same, other = (
        tt.Heads([3, 3], batch_first=True),
        tt.Heads([tt.CRF(3, True), tt.CRF(5, True, loss="risk")]),
    )
    emissions, tags = torch.randn(2, 4, 6, 3), torch.randint(3, (2, 4, 6))
    lengths = torch.tensor([6, 1, 2, 3])
    got = same(emissions, tags, lengths=lengths, reduction="none")
    assert got.shape == (2, 4)
    for h, layer in enumerate(same.layers):
        close(got[h], layer(emissions[h], tags[h], lengths=lengths, reduction="none").tolist())
    lists = [emissions[0], torch.randn(4, 6, 5)]
    assert other(lists, tags, lengths=lengths).shape == (2,)
    assert [len(paths) for paths in other.decode(lists, lengths=lengths)] == [4, 4]
    with pytest.raises(TensorError, match="expected 2"):
        same(emissions[:1], tags)

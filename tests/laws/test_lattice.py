"""Tests of public lattices and losses against sums over all paths: shared and own edges, boundaries, restrictions."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pytest
from hypothesis import given

import tagwise as tw
from tagwise import _core
from tagwise.base.exceptions import ParameterError
from tagwise.lattice import Lattice
from tagwise.losses import ScoreGradient

from .reference import chain, enumeration, losses
from .strategies import Chain, chains, wholes

Loss = Callable[[Lattice, Sequence[int]], tuple[float, ScoreGradient]]

#: Every loss of the core has a public function.
LOSSES: dict[str, Loss] = {name: getattr(tw.losses, f"{name}_loss") for name in _core.LOSSES}


def open_lattice(c: Chain) -> Lattice:
    """Return the chain's scores without its restrictions."""
    node, edge, start, end = (np.where(np.isfinite(a), a, 0.0) for a in c.scores)
    return Lattice(node, edge, start, end)


def lattice_of(c: Chain) -> Lattice:
    """Return the chain's scores with its restrictions as minus infinity."""
    return Lattice(*c.scores)


def per_token(s: chain.Scores) -> chain.Scores:
    """Return the scores with separate edges for every token."""
    return s._replace(edge=chain.edges(s).copy())


@given(chains(max_labels=3, max_tokens=4))
def test_primitives_match_enumeration(c: Chain) -> None:
    """log Z, marginals of labels and pairs, the best path, and the score of a path."""
    lattice = lattice_of(c)
    assert lattice.log_partition() == pytest.approx(enumeration.log_partition(c.scores), abs=1e-9)
    node, pair = chain.marginals(c.scores)
    np.testing.assert_allclose(lattice.marginals(), node, atol=1e-9)
    np.testing.assert_allclose(lattice.pair_marginals(), pair, atol=1e-9)
    assert not lattice.pair_marginals()[0].any()
    assert lattice.score(c.gold) == pytest.approx(chain.score(c.scores, c.gold), abs=1e-9)
    best, path = lattice.viterbi()
    assert best == pytest.approx(chain.score(c.scores, path), abs=1e-9)
    assert best == pytest.approx(enumeration.kbest(c.scores, 1)[0][0], abs=1e-9)


@given(chains(wholes(), max_labels=3, max_tokens=4, constrained=False))
def test_ties_go_to_the_lower_label(c: Chain) -> None:
    """Among paths of equal score the one with the lowest last label wins, then the lowest label before it."""
    _, path = lattice_of(c).viterbi()
    assert tuple(path) == chain.viterbi(c.scores)


@given(chains(max_labels=3, max_tokens=4, constrained=True))
def test_restrictions_equal_scores_of_minus_infinity(c: Chain) -> None:
    """Labels outside `allowed` and forbidden pairs are excluded. Start and end scores stay."""
    assert c.allowed is not None
    assert c.forbidden is not None
    pairs = [(int(a), int(b)) for a, b in np.argwhere(c.forbidden)]
    plain = open_lattice(c)
    before = [np.array(a, copy=True) for a in (plain.node, plain.edge)]
    lattice = plain.restricted(c.allowed, pairs)
    assert lattice.log_partition() == pytest.approx(enumeration.log_partition(c.scores), abs=1e-9)
    np.testing.assert_allclose(lattice.marginals(), chain.marginals(c.scores)[0], atol=1e-9)
    for a, b in zip(before, (plain.node, plain.edge)):
        np.testing.assert_array_equal(a, b)  # the original is unchanged
    only = plain.restricted(forbidden=pairs)
    np.testing.assert_allclose(only.node, plain.node)
    alone = plain.restricted(c.allowed)
    np.testing.assert_allclose(alone.edge, plain.edge)


@pytest.mark.parametrize("name", LOSSES)
@given(c=chains(max_labels=3, max_tokens=4))
def test_losses_and_gradients_match_the_reference(name: str, c: Chain) -> None:
    """Value, and derivatives with respect to node scores and the edge scores of each step."""
    s = per_token(c.scores)
    value, gradient = LOSSES[name](lattice_of(c), c.gold)
    slow, slow_gradient = losses.LOSSES[name](s, c.gold, 1.0)
    scale = max(1.0, abs(slow))
    assert value == pytest.approx(slow, abs=1e-8 * scale)
    np.testing.assert_allclose(gradient.node, slow_gradient.node, atol=1e-8 * scale)
    np.testing.assert_allclose(gradient.edge[1:], slow_gradient.edge[1:], atol=1e-8 * scale)
    assert not gradient.edge[0].any()


def test_boundary_scores_apply_to_first_and_last_token() -> None:
    """A single token has both boundaries. They default to zero, and have no effect without tokens."""
    node, edge = np.array([[1.0, 2.0]]), np.zeros((2, 2))
    assert Lattice(node, edge, [10.0, 0.0], [0.0, 5.0]).viterbi() == (11.0, [0])
    assert Lattice(node, edge, start=[0.0, 5.0]).score([1]) == 7.0
    assert Lattice(node, edge, end=[0.0, 5.0]).score([0]) == 1.0
    long = Lattice(np.zeros((3, 2)), edge, [4.0, 0.0], [0.0, 6.0])
    assert long.score([0, 1, 1]) == 10.0
    assert long.score([1, 0, 0]) == 0.0


def test_shape_mismatches_are_reported() -> None:
    """The error names the given and the expected shape."""
    square = np.zeros((3, 3))
    with pytest.raises(ParameterError, match=r"node scores of shape \(3,\), expected \[tokens, labels\]"):
        Lattice(np.zeros(3), square).marginals()
    for boundary in ("start", "end"):
        with pytest.raises(ParameterError, match=r"start or end scores of shape \(2,\), expected \[3\]"):
            Lattice(np.zeros((2, 3)), square, **{boundary: np.zeros(2)}).viterbi()
    with pytest.raises(
        ParameterError, match=r"allowed has shape \(3, 2\), expected that of the node scores, \(2, 3\)"
    ):
        Lattice(np.zeros((2, 3)), square).restricted(np.ones((3, 2)))
    with pytest.raises(ParameterError, match="a path of 3 labels for 2 tokens, expected one label per token"):
        Lattice(np.zeros((2, 3)), square).score([0, 1, 2])

"""Constraints and tag dictionary of a learner: their parameters, and what training is told of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tagwise import _core
from tagwise.constraints import (
    Constraints,
    Dictionary,
    Domain,
    Support,
    boundary_support,
    intersect,
)
from tagwise.history import tokens_of
from tagwise.params import Number, Param

LIMITS = (
    Param(
        "constraints",
        None,
        Domain(),
        "what label sequences may be, in training and decoding: auto, bio, IOBES ..., or rules",
    ),
    Param(
        "dictionary",
        None,
        Number(1, integer=True, optional=True),
        "words seen so often in training take only labels seen with them; None for no tag dictionary",
    ),
    Param(
        "dictionary_share",
        0.0,
        Number(0.0, 1.0),
        "smallest share of a word's tokens that brings a label into the dictionary",
    ),
)


@dataclass(frozen=True)
class Limits:
    """What a model keeps (constraints, dictionary) and what training is told (forbidden, support)."""

    constraints: Constraints | None = None
    dictionary: Dictionary | None = None
    forbidden: NDArray[np.uint32] | None = None
    support: Support | None = None


def limits_of(
    params: dict[str, Any], labels: list[str], data: _core.Dataset, X: Any, gold: Any
) -> Limits | None:
    """The limits of the parameters; None where there are none."""
    if params.get("constraints") is None and params.get("dictionary") is None:
        return None
    constraints = forbidden = support = dictionary = None
    if params["constraints"] is not None:
        constraints = Constraints.parse(params["constraints"]).resolved(labels, gold)
        rules = constraints.rules(labels)
        forbidden = rules.forbidden if not rules.pairs.all() else None
        support = boundary_support(rules, data.offsets)
    if params["dictionary"] is not None:
        words = tokens_of(X, "a tag dictionary")
        dictionary = Dictionary.build(
            words, data.gold, len(labels), params["dictionary"], params["dictionary_share"]
        )
        sets, of = dictionary.support(words)
        # A rare label of a word is gold somewhere: there the dictionary does not speak.
        of = np.where(sets[of, data.gold], of, 0).astype(np.uint32)
        support = intersect((sets, of), support)
    return Limits(constraints, dictionary, forbidden, support)

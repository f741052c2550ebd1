"""Constraints and tag dictionary of a learner, as training applies them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

import tagwise._core as _core
from tagwise.base.exceptions import TrainingError
from tagwise.corpus import schemes
from tagwise.features.inputs import Inputs
from tagwise.learners.loop import logger
from tagwise.scores.constraints import Constraints, Groups, Support, boundary_support, intersect
from tagwise.scores.dictionary import TagDictionary


@dataclass(frozen=True)
class Limits:
    """Constraints and dictionary, which a model keeps, and their form for training: forbidden pairs, support, once."""

    constraints: Constraints | None = None
    dictionary: TagDictionary | None = None
    forbidden: NDArray[np.uint32] | None = None
    support: Support | None = None
    once: Groups | None = None

    @property
    def native(self) -> _core.Limits:
        """Limits in the form of the core."""
        return _core.Limits(self.forbidden, self.support, self.once)


def valid_gold(
    params: dict[str, Any], X: Inputs, gold: Sequence[Sequence[str]], before: Constraints | None = None
) -> Sequence[Sequence[str]]:
    """Return the gold labels, converted to the scheme of the constraints.

    With constraints="auto" the scheme is that of `before` or the detected one. Sentences that are not valid are
    replaced by the chunks that conlleval reads in them, with a warning. A scheme that is named explicitly raises a
    TrainingError instead.
    """
    declared = params.get("constraints")
    scheme = None if declared is None else declared["scheme"]
    if scheme is None:
        return gold
    auto = scheme == "auto"
    if auto:
        scheme = schemes.detect(gold) if before is None or before.scheme is None else before.scheme
    if scheme is None:
        return gold
    known: dict[tuple[str | None, str | None], bool] = {}

    def valid(pair: tuple[str | None, str | None]) -> bool:
        if pair not in known:
            known[pair] = schemes.valid(*pair, scheme)
        return known[pair]

    invalid = [s for s, y in enumerate(gold) if not all(map(valid, zip([None, *y], [*y, None])))]
    if not invalid:
        return gold
    line = X.line(invalid[0])
    place = f"sentence {invalid[0]}" + (f" (line {line})" if line else "")
    if not auto:
        raise TrainingError(
            f"{place}: its gold labels are not valid {scheme}. Correct them, or use constraints='auto', "
            "which reads such sentences as conlleval does"
        ).of_sentence(invalid[0])
    logger.warning(
        "%d sentences are not valid %s and are read as conlleval does. The first is %s",
        len(invalid),
        scheme,
        place,
    )
    out = list(gold)
    for s in invalid:
        out[s] = schemes.convert(list(gold[s]), None, scheme)
    return out


def limits_of(
    params: dict[str, Any],
    labels: list[str],
    data: _core.Dataset,
    X: Inputs,
    gold: Any,
    before: Constraints | None = None,
    known: TagDictionary | None = None,
) -> Limits | None:
    """Return the limits of the parameters, or None if there are none.

    `before` and `known` are the constraints and the dictionary of a model that training continues.
    """
    if params.get("constraints") is None and params.get("dictionary") is None:
        return None
    constraints = forbidden = support = dictionary = once = None
    if params["constraints"] is not None:
        constraints = Constraints.parse(params["constraints"])
        if constraints.scheme == "auto" and before is not None and before.scheme is not None:
            constraints = replace(constraints, scheme=before.scheme)
        constraints = constraints.resolved(labels, gold)
        rules = constraints.rules(labels)
        forbidden = rules.forbidden if not rules.pairs.all() else None
        support, once = boundary_support(rules, data.offsets), rules.once
    if params["dictionary"] is not None:
        words = X.words("a tag dictionary")
        settings = params["dictionary"]
        dictionary = TagDictionary.build(words, data.gold, len(labels), settings.min_count, settings.share)
        if known is not None:
            dictionary = dictionary.joined(known)
        sets, of = dictionary.support(words)
        # The dictionary is ignored at tokens whose gold label it does not allow.
        of = np.where(sets[of, data.gold], of, 0).astype(np.uint32)
        support = intersect((sets, of), support)
    return Limits(constraints, dictionary, forbidden, support, once)

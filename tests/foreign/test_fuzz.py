"""Readers of other programs' files return a model or raise ModelFileError on damaged input.

`make fuzz` runs more trials.
"""

from __future__ import annotations

import random
from collections import Counter

import pytest

from ..fuzz.foreign import FOREIGN

MUTATIONS = 400


@pytest.mark.parametrize("what", FOREIGN)
def test_random_damage_gives_a_model_or_a_typed_error(what: str) -> None:
    """Both outcomes occur, and no other."""
    outcomes = Counter(FOREIGN[what](random.Random(f"foreign {what} {i}")) for i in range(MUTATIONS))
    assert outcomes.keys() == {"read", "refused"}, outcomes

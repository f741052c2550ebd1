"""Readers of other programs' files return a model or raise ModelFileError on damaged input.

`make fuzz` runs more trials.
"""

from __future__ import annotations

import random
from collections import Counter

import pytest

from ..fuzz.foreign import FOREIGN

MUTATIONS = 400


@pytest.mark.parametrize("reader", FOREIGN)
def test_random_damage_gives_a_model_or_a_typed_error(reader: str) -> None:
    """Both outcomes occur, and no other."""
    outcomes = Counter(FOREIGN[reader](random.Random(f"foreign {reader} {i}")) for i in range(MUTATIONS))
    assert outcomes.keys() == {"read", "refused"}, outcomes

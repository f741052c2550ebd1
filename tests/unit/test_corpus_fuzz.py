"""Readers return a corpus or raise CorpusError on damaged files, templates likewise: 2,000 mutations each."""

from __future__ import annotations

import io
import random
from collections import Counter

import pytest

import tagwise as tw
from tagwise.base.exceptions import CorpusError

from ..corpora import CONLL_TEXT
from ..fuzz.readers import TRIALS, mutated

MUTATIONS = 2000  # `make fuzz` runs until its time limit


@pytest.mark.parametrize("reader", TRIALS)
def test_random_damage_gives_a_corpus_or_a_typed_error(reader: str) -> None:
    rng = random.Random(f"tagwise {reader}")
    outcomes = Counter(TRIALS[reader](rng) for _ in range(MUTATIONS))
    assert outcomes.keys() == {"read", "refused"}
    assert min(outcomes.values()) > 50, outcomes


def test_corpora_that_were_read_can_be_written() -> None:
    rng = random.Random(11)
    for _ in range(500):
        try:
            c = tw.read(
                io.BytesIO(mutated(rng, CONLL_TEXT.encode())), "conll", separator="\t", comments=False
            )
        except CorpusError:
            continue
        out = io.BytesIO()
        tw.write(c, out, "conll")
        again = tw.read(
            io.BytesIO(out.getvalue()), "conll", columns=c.columns or None, separator="\t", comments=False
        )
        assert again == c

"""Online estimators: learning, bit-identical repetition, continued training, and ranked paths."""

from __future__ import annotations

import pytest

import tagwise as tw
from tagwise.learners.costs import parse_cost


def test_costs_are_parsed_and_refused() -> None:
    assert parse_cost("precision_recall(0.25)") == ("precision_recall", [0.25])
    for bad in ("nonsense", "f1(a)", "accuracy(1)"):
        with pytest.raises(tw.exceptions.ParameterError, match="cost"):
            parse_cost(bad)


def test_entity_costs_move_precision_and_recall() -> None:
    """The higher the cost of a spurious entity relative to a missed one, the fewer entities are found."""
    train, _, _ = tw.load_corpus("wnut17-ner")
    found = {}
    for alpha in (0.1, 0.9):
        tagger = tw.MIRA(features="S2", max_iter=3, cost=f"precision_recall({alpha})").fit(train[:300])
        found[alpha] = sum(label != "O" for labels in tagger.predict(train[:300]) for label in labels)
    assert found[0.1] > found[0.9]

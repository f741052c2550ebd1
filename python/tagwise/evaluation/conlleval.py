"""Counts of gold, predicted and correct chunks, as conlleval counts them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tagwise.corpus.schemes import boundary, split_label

# The loop of conlleval reads two label sequences in parallel. Its actions at a token depend only on the gold and
# predicted labels of this token and the previous one. It is therefore a finite automaton over pairs (gold, predicted),
# which is built lazily: a state is the previous pair, and maps each next pair to the next state and an action.
_State = dict[tuple[str, str], tuple[Any, "_Step | None"]]


@dataclass(frozen=True)
class _Step:
    """Action between two tokens."""

    both_end: bool  # gold and predicted chunk end, and have the same type
    one_ends: bool  # only one of them ends, or they continue with different types
    both_begin: bool
    gold_begins: bool
    predicted_begins: bool
    last_type: str  # gold type of the previous token
    gold_type: str
    predicted_type: str


def _step(before: tuple[str, str], now: tuple[str, str]) -> _Step | None:
    """Return the action of conlleval between two pairs of labels, or None if there is nothing to do."""
    g_end, g_begin = boundary(before[0], now[0])
    p_end, p_begin = boundary(before[1], now[1])
    last, last_p = split_label(before[0])[1], split_label(before[1])[1]
    g_type, p_type = split_label(now[0])[1], split_label(now[1])[1]
    both_end = g_end and p_end and last == last_p
    one_ends = g_end != p_end or g_type != p_type
    if not (both_end or one_ends or g_begin or p_begin):
        return None
    return _Step(
        both_end, one_ends, g_begin and p_begin and g_type == p_type, g_begin, p_begin, last, g_type, p_type
    )


def count_chunks(
    gold: Sequence[Sequence[str]], predicted: Sequence[Sequence[str]]
) -> tuple[dict[str, int], dict[str, int], dict[str, int]]:
    """Return the numbers of gold, predicted and correct chunks by type."""
    outside = ("O", "O")
    states: dict[tuple[str, str], _State] = {outside: {}}
    gold_n: Counter[str] = Counter()
    predicted_n: Counter[str] = Counter()
    correct_n: Counter[str] = Counter()
    state, before = states[outside], outside

    for g, p in zip(gold, predicted):
        in_correct = False
        for pair in (*zip(g, p), outside):  # conlleval reads the end of a sentence as O
            known = state.get(pair)
            if known is None:
                known = state[pair] = (states.setdefault(pair, {}), _step(before, pair))
            state, step = known
            before = pair
            if step is None:
                continue
            if in_correct:
                if step.both_end:
                    in_correct = False
                    correct_n[step.last_type] += 1
                elif step.one_ends:
                    in_correct = False
            if step.both_begin:
                in_correct = True
            if step.gold_begins:
                gold_n[step.gold_type] += 1
            if step.predicted_begins:
                predicted_n[step.predicted_type] += 1
    return gold_n, predicted_n, correct_n

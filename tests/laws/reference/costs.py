"""The four costs of MIRA for a guessed label sequence, over label names.

Entities are read as in conlleval: an I- without its type before it opens an entity too.
"""

from __future__ import annotations

from collections.abc import Sequence

Span = tuple[str, int, int]  # type, first token, one past the last


def spans(labels: Sequence[str]) -> set[Span]:
    """Return the entities of an IOB1 or IOB2 sequence."""
    found, begin, kind = set(), 0, ""
    for t, label in enumerate([*labels, "O"]):
        tag, _, name = label.partition("-")
        if kind and (tag != "I" or name != kind):
            found.add((kind, begin, t))
            kind = ""
        if tag != "O" and not kind:
            begin, kind = t, name
    return found


def accuracy(gold: Sequence[str], guess: Sequence[str]) -> float:
    """Return the number of wrong labels."""
    return float(sum(a != b for a, b in zip(gold, guess)))


def f1(gold: Sequence[str], guess: Sequence[str], cap: float = 10.0) -> float:
    """Return 1 / F1 of the sentence, at most ``cap``, and 0 for the gold path. F1 = 1 if neither side has entities."""
    if list(gold) == list(guess):
        return 0.0
    G, T = spans(gold), spans(guess)
    if not G and not T:
        return 1.0
    right = len(G & T)
    return min(cap, (len(G) + len(T)) / (2 * right)) if right else cap


def precision_recall(gold: Sequence[str], guess: Sequence[str], alpha: float = 0.5) -> float:
    """Return alpha |T minus G| + (1 - alpha) |G minus T|: spurious and missed entities."""
    G, T = spans(gold), spans(guess)
    return alpha * len(T - G) + (1 - alpha) * len(G - T)


def weighted_accuracy(
    gold: Sequence[str], guess: Sequence[str], alpha: float = 1.0, beta: float = 1.0, gamma: float = 1.0
) -> float:
    """Return alpha (O labelled as entity) + beta (entity labelled O) + gamma (entity with the wrong label)."""
    wrong = [(a, b) for a, b in zip(gold, guess) if a != b]
    spurious, missed = sum(a == "O" for a, _ in wrong), sum(b == "O" for _, b in wrong)
    return alpha * spurious + beta * missed + gamma * (len(wrong) - spurious - missed)

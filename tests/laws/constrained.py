"""Sentences under rules, taggers trained with them, and the rules on the remaining paths."""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import tagwise as tw

from . import valid_paths
from .valid_paths import Path, Rule

# A sentence never begins with a Q and never ends inside a P. A Q has two or more tokens, and there is at most one P.
X = [
    ["ann", "the", "big", "bay"], ["ann", "lee", "the"], ["the", "big", "bay", "the"], ["bo", "the"],
    ["the", "ann", "lee", "bay"], ["the", "bay"], ["lee"], ["bo", "lee", "big", "bay"],
]  # fmt: skip


Y = [
    ["B-P", "O", "B-Q", "I-Q"], ["B-P", "I-P", "O"], ["O", "B-Q", "I-Q", "O"], ["B-P", "O"], ["O", "B-P", "I-P", "O"],
    ["O", "O"], ["O"], ["B-P", "I-P", "B-Q", "I-Q"],
]  # fmt: skip


TEST = [["bay", "ann", "lee", "big"], ["bo", "the", "bo"], ["new", "ann"], ["bay"]]


BIO = functools.cache(valid_paths.of_scheme("IOB2"))


OWN: dict[str, Any] = {
    "scheme": "bio",
    "forbidden": [(None, "B-Q"), ("I-P", None)],
    "required": {"B-Q": ["I-Q"]},
}


OWN_RULE = valid_paths.both(
    BIO, valid_paths.none((None, "B-Q"), ("I-P", None)), valid_paths.followed("B-Q", "I-Q")
)


class Kind(NamedTuple):
    """A learner and its models' capabilities: probabilities, chunks, whole lists for occur-once labels, a beam."""

    make: Any
    limits: bool = True  # accepts constraints= and dictionary=
    probability: bool = True
    chunks: bool = True
    first: bool = True  # a chain of first order with explicit weights
    beam: bool = True
    local: bool = False


FAST: dict[str, Any] = {"features": "S1", "max_iter": 4}


ONLINE: dict[str, Any] = {"features": "S1", "max_iter": 2}


KINDS = {
    "crf": Kind(lambda **p: tw.CRF(**FAST, **p)),
    "crf-pointwise": Kind(lambda **p: tw.CRF(**FAST, loss="pointwise_exp", **p)),
    "crf-edges": Kind(lambda **p: tw.CRF(features="word[0]\nedge: word[-1]", max_iter=4, **p), beam=False),
    "crf-2": Kind(lambda **p: tw.CRF(**FAST, order=2, **p), chunks=False, first=False),
    "crf-3": Kind(lambda **p: tw.CRF(**FAST, order=3, **p), chunks=False, first=False),
    "perceptron": Kind(lambda **p: tw.Perceptron(**ONLINE, **p), probability=False),
    "mira": Kind(lambda **p: tw.MIRA(**ONLINE, **p), probability=False),
    "pa": Kind(lambda **p: tw.PassiveAggressive(**ONLINE, **p), probability=False),
    "arow": Kind(lambda **p: tw.AROW(**ONLINE, **p), probability=False),
    "hmsvm": Kind(lambda **p: tw.HMSVM(features="S1", max_iter=2, **p), probability=False),
    "history-2": Kind(lambda **p: tw.MIRA(**ONLINE, **p, lookback=(2, 2)), True, False, False, False),
    "history-3": Kind(lambda **p: tw.Perceptron(**ONLINE, **p, lookback=(3, 3)), True, False, False, False),
    "kernel": Kind(
        lambda **p: tw.Perceptron(**ONLINE, kernel="poly", **p), True, False, False, False, beam=False
    ),
    "kernel-svm": Kind(
        lambda **p: tw.HMSVM(features="S1", max_iter=2, kernel="rbf", **p),
        True, False, False, False, beam=False,
    ),
    "hmm": Kind(lambda **p: tw.HMM(rare=1, **p), False),
    "boosting": Kind(lambda **p: tw.Boosting(features="S1", max_iter=20, **p), False, False),
    "memm": Kind(lambda **p: tw.MEMM(**FAST, **p), False, beam=False, local=True),
}  # fmt: skip


@functools.cache
def fitted(name: str, own: bool = False) -> tw.Tagger:
    """Return a tagger of each kind, without rules or with its own constraints and dictionary."""
    more: dict[str, Any] = {"constraints": OWN, "dictionary": tw.Dictionary(2, share=0.4)} if own else {}
    return KINDS[name].make(**more).fit(X, Y)  # type: ignore[no-any-return]


@functools.cache
def path_scores(name: str, own: bool, words: tuple[str, ...]) -> dict[Path, float]:
    return valid_paths.path_scores(fitted(name, own).model_, words)


def allows(allowed: list[Any]) -> list[Rule]:
    """Return `allowed` as rules."""
    return [
        valid_paths.anything
        if sets is None
        else valid_paths.within([{s} if isinstance(s, str) else s for s in sets])
        for sets in allowed
    ]


SEEN = valid_paths.counted(X, Y, 2, 0.4)


def follows_dictionary(words: list[str], allowed: Any = None, seen: dict[str, set[str]] = SEEN) -> Rule:
    """Return the rule that known words have one of their labels, unless `allowed` restricts the token."""
    sets = allowed or [None] * len(words)
    return valid_paths.within([seen.get(word) if names is None else None for word, names in zip(words, sets)])


def left(
    rule: Rule, words: list[str], labels: tuple[str, ...], allowed: Any = None, seen: Any = SEEN
) -> Rule:
    """Combine the rule, `allowed` and the dictionary, without the dictionary if no path would be left."""
    other = valid_paths.both(rule, *allows([allowed]))
    whole = valid_paths.both(other, follows_dictionary(words, allowed, seen))
    return whole if any(map(whole, valid_paths.every(labels, len(words)))) else other


def own_step(t: int, T: int, before: str | None, label: str) -> bool:
    """Check one step of `OWN_RULE` from left to right."""
    if label[0] == "I" and (before is None or before == "O" or before[2:] != label[2:]):
        return False
    if before == "B-Q" and label != "I-Q":
        return False
    if before is None and label == "B-Q":
        return False
    return t < T - 1 or label not in ("I-P", "B-Q")

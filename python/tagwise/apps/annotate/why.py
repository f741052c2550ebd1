"""Explanation of a label: contributions of features, alternative label sequences and similar sentences."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tagwise.base.exceptions import ParameterError
from tagwise.corpus import schemes
from tagwise.corpus.sentence import Sentence
from tagwise.decoding.plan import Query
from tagwise.estimators import has_probabilities
from tagwise.model.model import Model

#: Number of contributions, label sequences and sentences that are shown.
VOTES, READINGS, ALIKE = 12, 5, 5


def spans_of(labels: Sequence[str], kind: str) -> list[tuple[int, int, str]]:
    """Return labels as (begin, end, type): spans, or one item per labelled token."""
    if kind == "spans":
        return [(one.begin, one.end, one.type) for one in schemes.spans(labels)]
    return [(t, t + 1, y) for t, y in enumerate(labels)]


def why(
    model: Model,
    sentence: Sentence,
    token: int,
    *,
    kind: str,
    labelled: Mapping[int, Sequence[str]],
    sentences: Sequence[Sentence],
    n_jobs: int | None = 1,
) -> dict[str, Any]:
    """Return the explanation as a dictionary.

    ``votes`` are the contributions of features to the predicted label against the second best one. They sum to
    ``difference``, the difference between the scores of the two label sequences. ``readings`` are the best label
    sequences, each with its score, and its probability or None. ``alike`` are labelled sentences with the same word or
    neighbours.
    """
    if not 0 <= token < len(sentence):
        raise ParameterError(f"token={token}: expected 0 to {len(sentence) - 1}, the tokens of the sentence")
    sure = has_probabilities(model)
    decisions = model.explain(sentence, token=token, probabilistic=sure, n_jobs=n_jobs)
    decision = decisions[0].to_dict() if len(decisions) else None
    if decision is not None:
        decision["votes"] = [vote for vote in decision["votes"] if vote["amount"]][:VOTES]
    readings = model.kbest([sentence], READINGS, Query(n_jobs=n_jobs))[0]
    chances: list[float | None] = [None] * len(readings)
    if sure:
        chances = [p for _, p in model.kbest([sentence], READINGS, Query(n_jobs=n_jobs), probability=True)[0]]
    return {
        "token": token,
        "word": sentence.tokens[token],
        "decision": decision,
        "readings": [
            {"spans": spans_of(y, kind), "score": score, "probability": p}
            for (y, score), p in zip(readings, chances)
        ],
        "alike": alike(sentence, token, labelled, sentences, kind),
    }


def alike(
    sentence: Sentence,
    token: int,
    labelled: Mapping[int, Sequence[str]],
    sentences: Sequence[Sentence],
    kind: str,
) -> list[dict[str, Any]]:
    """Return labelled sentences that share most words around a token: the word itself counts 4, a neighbour 1."""
    words = [word.casefold() for word in sentence.tokens]
    here = words[token]
    around = {w for w in words[max(0, token - 2) : token + 3] if w != here}
    found = []
    for i, labels in labelled.items():
        theirs = [word.casefold() for word in sentences[i].tokens]
        if sentences[i] is sentence:
            continue
        score = 4 * (here in theirs) + len(around.intersection(theirs))
        if score:
            at = theirs.index(here) if here in theirs else None
            found.append((-score, i, at, labels))
    return [
        {"id": i, "tokens": sentences[i].tokens, "spans": spans_of(labels, kind), "at": at}
        for _, i, at, labels in sorted(found, key=lambda one: one[:2])[:ALIKE]
    ]

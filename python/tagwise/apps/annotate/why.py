"""Explanation of a label: contributions of features, alternative label sequences and similar sentences."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from tagwise.apps.annotate.display import displayed
from tagwise.base.exceptions import ParameterError
from tagwise.corpus import schemes
from tagwise.corpus.sentence import Sentence
from tagwise.decoding.plan import Query
from tagwise.estimators import has_probabilities
from tagwise.model.model import Model

#: Number of contributions, label sequences and sentences that are shown.
VOTES, READINGS, ALIKE = 12, 5, 5
#: Number of label sequences that are searched for different readings. Several sequences can have the same spans.
SEARCHED = 20


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
    ``difference``, the difference between the scores of the two label sequences. ``readings`` are the best readings
    (see `readings`). ``alike`` are labelled sentences with the same word or neighbours.
    """
    if not 0 <= token < len(sentence):
        raise ParameterError(f"token={token}: expected 0 to {len(sentence) - 1}, the tokens of the sentence")
    sure = has_probabilities(model)
    decisions = model.explain(sentence, token=token, probabilistic=sure, n_jobs=n_jobs)
    decision = decisions[0].to_dict() if len(decisions) else None
    if decision is not None:
        votes = [vote for vote in decision["votes"] if vote["amount"]][:VOTES]
        decision["votes"] = [{**vote, "word": sentence.tokens[vote["token"]]} for vote in votes]
    return {
        "token": token,
        "word": sentence.tokens[token],
        "decision": decision,
        "readings": readings(model, sentence, kind, sure, n_jobs),
        "alike": alike(sentence, token, labelled, sentences, kind),
    }


def readings(
    model: Model, sentence: Sentence, kind: str, sure: bool, n_jobs: int | None = 1
) -> list[dict[str, Any]]:
    """Return the best readings that differ in their spans.

    Each has its distance to the score of the best one (``behind``), and its share of the probability of those returned
    if the scores are probabilities. The probabilities of whole sequences are too small to be shown.
    """
    found: dict[tuple[Any, ...], list[float]] = {}
    best = None
    for labels, score in model.kbest([sentence], SEARCHED, Query(n_jobs=n_jobs))[0]:
        best = score if best is None else best
        found.setdefault(tuple(spans_of(labels, kind)), []).append(score - best)
    first = list(found.items())[:READINGS]
    weights = [sum(math.exp(behind) for behind in scores) for _, scores in first]
    return [
        {
            "spans": list(spans),
            "behind": -scores[0],
            "share": weight / sum(weights) if sure else None,
        }
        for (spans, scores), weight in zip(first, weights)
    ]


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
        {"id": i, **displayed(sentences[i]), "spans": spans_of(labels, kind), "at": at}
        for _, i, at, labels in sorted(found, key=lambda one: one[:2])[:ALIKE]
    ]

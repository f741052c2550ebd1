"""Proposed labels of sentences: those of a model, and of patterns where the model proposes none."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tagwise.apps.annotate.folder import ProjectSettings
from tagwise.apps.annotate.imports import TokenSpan
from tagwise.apps.annotate.patterns import TermList
from tagwise.apps.annotate.why import spans_of
from tagwise.corpus.sentence import Sentence
from tagwise.decoding.confidence import confidences
from tagwise.decoding.plan import Query
from tagwise.estimators import has_probabilities
from tagwise.features.inputs import Inputs
from tagwise.model.model import Model


def proposal(
    model: Model | None,
    patterns: TermList | None,
    sentence: Sentence,
    settings: ProjectSettings,
    sure: bool,
    imported: Sequence[TokenSpan] | None = None,
) -> list[dict[str, Any]]:
    """Return the proposed spans (or labels of tokens), each with its probability. `imported` ones take precedence.

    The probability is None if the scores of the learner are not probabilities, if it is not `sure` (trained on few
    sentences), for patterns and for imported spans.
    """
    out: list[dict[str, Any]] = []
    if imported is not None:
        known = [one for one in imported if one[2] in settings.labels]
        return [
            {"begin": begin, "end": end, "label": label, "probability": None} for begin, end, label in known
        ]
    if model is not None and len(sentence):
        found = confidences(model.plan(Inputs.of([sentence]), Query(n_jobs=1)))[0]
        sure = sure and has_probabilities(model)
        chunks = (
            [(t, t + 1, y, p) for t, (y, p) in enumerate(zip(found.labels, found.tokens))]
            if settings.kind == "tokens"
            else [(one.begin, one.end, one.type, p) for one, p in found.chunks]
        )
        out = [
            {"begin": begin, "end": end, "label": label, "probability": float(p) if sure else None}
            for begin, end, label, p in chunks
            if label in settings.labels
        ]
    taken = [(one["begin"], one["end"], one["label"]) for one in out]
    for begin, end, label in _matches(patterns, sentence, settings, taken):
        out.append({"begin": begin, "end": end, "label": label, "probability": None})
    return sorted(out, key=lambda one: one["begin"])


def proposals(
    model: Model | None, patterns: TermList | None, sentences: Sequence[Sentence], settings: ProjectSettings
) -> list[list[tuple[int, int, str]]]:
    """Return the proposed spans of several sentences without probabilities."""
    found = [["O"] * len(s) for s in sentences]
    if model is not None and sentences:
        found = model.predict(sentences, Query(n_jobs=1))
    out = []
    for sentence, labels in zip(sentences, found):
        spans = [one for one in spans_of(labels, settings.kind) if one[2] in settings.labels]
        out.append(sorted([*spans, *_matches(patterns, sentence, settings, spans)]))
    return out


def _matches(
    patterns: TermList | None,
    sentence: Sentence,
    settings: ProjectSettings,
    taken: Sequence[tuple[int, int, str]],
) -> list[tuple[int, int, str]]:
    """Return the matches of patterns that overlap no proposal of the model."""
    if patterns is None or settings.kind != "spans":
        return []
    return [
        (begin, end, label)
        for begin, end, label in patterns.spans(sentence.tokens)
        if label in settings.labels and not any(begin < b and a < end for a, b, _ in taken)
    ]

"""Detection of wrong labels: those that a model trained without their sentences finds least probable."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from tagwise.apps.annotate.simulate import picked
from tagwise.base.exceptions import ParameterError
from tagwise.corpus.sentence import Corpus


@dataclass(frozen=True)
class Suspect:
    """A sentence whose labels may be wrong.

    Attributes:
        doubt: s(best path) - s(given labels) of a model from the other folds, 0 if it agrees with the labels.
        labels: Given labels.
        found: Labels of the best path.
    """

    sentence: int
    doubt: float
    labels: list[str]
    found: list[str]

    @property
    def tokens(self) -> list[int]:
        """Positions at which the two differ."""
        return [t for t, (a, b) in enumerate(zip(self.labels, self.found)) if a != b]


def suspects(corpus: Corpus, make: Callable[[], Any], *, folds: int = 5, most: int = 100) -> list[Suspect]:
    """Return sentences by decreasing doubt, without those on which the model agrees with the labels.

    Each sentence is scored by a tagger trained on the other folds. Sentences with a label that occurs in no other fold
    have infinite doubt and come first.
    """
    if folds < 2 or len(corpus) < folds:
        raise ParameterError(
            f"{len(corpus)} labelled sentences in {folds} folds: expected 2 folds or more, and a sentence for each. "
            "Label more sentences"
        )
    out = []
    for fold in range(folds):
        held_out = [i for i in range(len(corpus)) if i % folds == fold]
        training = [i for i in range(len(corpus)) if i % folds != fold]
        tagger = make().fit(picked(corpus, training))
        out += _disagreements(tagger, corpus, held_out)
    return sorted(out, key=lambda one: (-one.doubt, one.sentence))[:most]


def _disagreements(tagger: Any, corpus: Corpus, held_out: list[int]) -> list[Suspect]:
    part = picked(corpus, held_out)
    best = tagger.predict_kbest(
        part.tokens if part.columns[:1] == ("word",) and len(part.columns) == 2 else part, 1
    )
    labels_of_model = set(tagger.classes_)
    out = []
    wrong = [
        (i, sentence, found[0])
        for i, sentence, found in zip(held_out, part, best)
        if found[0][0] != sentence.labels
    ]
    for i, sentence, (labels, score) in wrong:
        if not labels_of_model.issuperset(sentence.labels):
            out.append(Suspect(i, np.inf, sentence.labels, labels))
            continue
        ((_, gold),) = tagger.predict_kbest([sentence], 1, allowed=[sentence.labels])[0]
        out.append(Suspect(i, float(score - gold), sentence.labels, labels))
    return out

"""Scores and constraints of one call."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

import tagwise._core as _core
from tagwise.base.exceptions import CorpusError, ParameterError
from tagwise.dataset.check import lengths_of
from tagwise.features.inputs import Inputs
from tagwise.scores.constraints import Constraints, Groups, Rules, Support, boundary_support, intersect
from tagwise.scores.dictionary import with_dictionary
from tagwise.scores.kernels import KernelScorer
from tagwise.scores.protocols import Scorer, native
from tagwise.scores.scoring import Scoring

#: Allowed labels of every token of every sentence: a collection of labels; None for any, of a token or a sentence.
Allowed = Sequence[Sequence[Any] | None]


@dataclass(frozen=True)
class Plan:
    """Scores and constraints of one call."""

    scorer: Scorer
    rules: Rules | None
    support: Support | None

    @property
    def once(self) -> Groups | None:
        """Labels that occur once."""
        return None if self.rules is None else self.rules.once

    @property
    def explicit(self) -> _core.Scorer:
        """The scorer, where a search needs one of explicit weights."""
        if isinstance(self.scorer, KernelScorer):
            raise ParameterError(
                "a kernel model is searched by Viterbi and for k-best lists; leave out the rest"
            )
        return native(self.scorer, None if self.rules is None else self.rules.forbidden)


def plan_of(
    scoring: Scoring, X: Inputs, data: _core.Dataset, allowed: Allowed | None, constraints: Any = None
) -> Plan:
    """What holds for these sentences: the model's own constraints, or others (False for none), and `allowed`.

    What a caller allows at a token goes before the tag dictionary.
    """
    scorer, rules = scoring.scorer, None
    if constraints is None:
        rules = scoring.rules
    elif constraints is not False:
        declared = Constraints.parse(constraints).resolved(scoring.labels, layout=scorer.layout)
        rules = declared.rules(scoring.labels)
    if constraints is not None:
        forbidden = rules.forbidden if rules is not None else None
        base = _core.Scorer(scorer.layout, scorer.weights, forbidden, local=scorer.local)
        scorer = scorer.over(base) if isinstance(scorer, KernelScorer) else base
    given = allowed_support(scoring.labels, data, allowed)
    other = intersect(given, boundary_support(rules, data.offsets) if rules is not None else None)
    if scoring.dictionary is None:
        return Plan(scorer, rules, other)
    sets, of = scoring.dictionary.sets, X.numbers(scoring.dictionary.words, "a model with a tag dictionary")
    if given is not None:
        free: NDArray[np.bool_] = np.all(given[0], axis=1)
        of = np.where(free[given[1]], of, 0).astype(np.uint32)
    return Plan(scorer, rules, with_dictionary((sets, of), other, rules, data.offsets))


def allowed_support(
    labels: Sequence[str], data: _core.Dataset, allowed: Allowed | None
) -> tuple[NDArray[np.bool_], NDArray[np.uint32]] | None:
    """Allowed labels as distinct sets [sets, L] and the set of each token [tokens]."""
    if allowed is None:
        return None
    index = {label: i for i, label in enumerate(labels)}
    sets: dict[frozenset[int] | None, int] = {None: 0}
    of: list[int] = []
    lengths = lengths_of(data).tolist()
    if len(allowed) != len(lengths):
        raise CorpusError(
            f"allowed has {len(allowed)} sentences, X has {len(lengths)}; give one entry a sentence"
        )
    for s, (sentence, length) in enumerate(zip(allowed, lengths)):
        if sentence is None:
            of += [0] * length
            continue
        if isinstance(sentence, str) or not isinstance(sentence, Sequence):
            raise CorpusError(
                f"sentence {s}: allowed is {sentence!r}; give a list with the labels of each token, or None for any"
            )
        if len(sentence) != length:
            raise CorpusError(f"sentence {s} has {length} tokens, allowed has {len(sentence)} entries for it")
        for t, names in enumerate(sentence):
            if names is None:
                of.append(0)
                continue
            if not isinstance(names, (str, Iterable)):
                raise CorpusError(
                    f"sentence {s}, token {t}: allowed is {names!r}; give a label, several labels, or None for any"
                )
            names = [names] if isinstance(names, str) else list(names)
            unknown = [name for name in names if name not in index]
            if unknown or not names:
                what = f"unknown label {unknown[0]!r}" if unknown else "no label"
                raise CorpusError(
                    f"sentence {s}, token {t}: {what} allowed; the model has: {' '.join(labels)}; None allows all"
                )
            key = frozenset(index[name] for name in names)
            of.append(sets.setdefault(key, len(sets)))
    table = np.zeros((len(sets), len(labels)), dtype=np.bool_)
    for names_, row in sets.items():
        table[row, slice(None) if names_ is None else sorted(names_)] = True
    return table, np.array(of, dtype=np.uint32)

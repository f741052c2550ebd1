"""From a model and sentences to label ids: which scores, which support, which search."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

import tagwise._core as _core
from tagwise.errors import CorpusError, ParameterError
from tagwise.scores import lookback
from tagwise.scores.constraints import (
    NO_GROUP,
    Constraints,
    Groups,
    Rules,
    Support,
    boundary_support,
    intersect,
    with_dictionary,
)
from tagwise.scores.kernels import KernelScorer

if TYPE_CHECKING:
    from tagwise.model.model import Model

DECODERS = ("viterbi", "pointwise", "beam")
#: Width of a beam that is not given.
BEAM = 8
#: Lists that are searched for a path whose labels occur once, where the search itself cannot see to it.
ONCE_LISTS = (16, 128, 1024)

#: Allowed labels of every token of every sentence: a collection of labels; None for any, of a token or a sentence.
Allowed = Sequence[Sequence[Any] | None]
Lists = tuple[NDArray[np.uint32], NDArray[np.float64], NDArray[np.uint16]]


@dataclass(frozen=True)
class Plan:
    """Scores and constraints of one call."""

    scorer: _core.Scorer | KernelScorer
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
        return self.scorer


def plan(model: Model, X: Any, data: _core.Dataset, allowed: Allowed | None, constraints: Any = None) -> Plan:
    """What holds for these sentences: the model's own constraints, or others (False for none), and `allowed`.

    What a caller allows at a token goes before the tag dictionary.
    """
    scorer, rules = model.scorer, None
    if constraints is None:
        rules = model.rules
    elif constraints is not False:
        declared = Constraints.parse(constraints).resolved(model.labels, layout=scorer.layout)
        rules = declared.rules(model.labels)
    if constraints is not None:
        forbidden = rules.forbidden if rules is not None else None
        base = _core.Scorer(scorer.layout, scorer.weights, forbidden, local=scorer.local)
        scorer = scorer.over(base) if isinstance(scorer, KernelScorer) else base
    given = allowed_support(model.labels, data, allowed)
    other = intersect(given, boundary_support(rules, data.offsets) if rules is not None else None)
    if model.dictionary is None:
        return Plan(scorer, rules, other)
    sets, of = model.dictionary.support(lookback.tokens_of(X, "a model with a tag dictionary"))
    if given is not None:
        free: NDArray[np.bool_] = np.all(given[0], axis=1)
        of = np.where(free[given[1]], of, 0).astype(np.uint32)
    return Plan(scorer, rules, with_dictionary((sets, of), other, rules, data.offsets))


def best(
    model: Model,
    X: Any,
    data: _core.Dataset,
    *,
    decoder: str = "viterbi",
    allowed: Allowed | None = None,
    constraints: Any = None,
    beam: int | None = None,
    memory: lookback.Memory | None = None,
    n_jobs: int = 0,
) -> NDArray[np.uint16]:
    """Label ids of all tokens, one sentence after the other."""
    if decoder not in DECODERS:
        raise ParameterError(f"decoder={decoder!r}: expected one of {', '.join(DECODERS)}")
    if beam is not None and decoder != "beam":
        raise ParameterError(f"beam={beam} goes with decoder='beam'")
    if beam is not None and (not isinstance(beam, (int, np.integer)) or beam < 1):
        raise ParameterError(f"beam={beam!r}: expected 1 or more paths to keep")
    if decoder == "beam" and model.scorer.local:
        raise ParameterError("a model of local classifiers (MEMM) is searched by Viterbi; leave the beam out")
    found = plan(model, X, data, allowed, constraints)
    once = found.once
    if decoder == "pointwise":
        if once is not None:
            raise ParameterError("labels that occur once need a path; use decoder='viterbi'")
        p, _ = marginals(model, data, found, n_jobs)
        path: NDArray[np.uint16] = p.argmax(axis=1).astype(np.uint16)
        return path
    if model.history is None and decoder == "viterbi":
        if once is not None:
            return _core.once_kbest(found.explicit, data, once, allowed=found.support, n_jobs=n_jobs)[2]
        return found.scorer.viterbi(data, allowed=found.support, n_jobs=n_jobs)
    width = None if decoder == "viterbi" else BEAM if beam is None else beam
    if once is None:
        return _search(model, found, X, data, 1, width, memory, n_jobs)[2]
    if model.history is not None and model.history.document:
        raise ParameterError("labels that occur once do not go with document features; leave one of them out")
    for k in ONCE_LISTS:
        lists = _search(model, found, X, data, k, None if width is None else max(width, k), None, n_jobs)
        lawful = _first_lawful(lists, data, *once)
        if lawful is not None:
            return lawful
    raise ParameterError(
        f"none of the {ONCE_LISTS[-1]} best paths of a sentence keeps the labels that occur once; "
        "let fewer labels be such"
    )


def kbest(
    model: Model,
    X: Any,
    data: _core.Dataset,
    k: int,
    *,
    allowed: Allowed | None = None,
    constraints: Any = None,
    memory: lookback.Memory | None = None,
    n_jobs: int = 0,
) -> tuple[Lists, Plan]:
    """The k best paths of each sentence, and what they were found under."""
    found = plan(model, X, data, allowed, constraints)
    if found.once is not None:
        if model.history is not None:
            raise ParameterError(
                "lists of paths whose labels occur once need a model without history, and of first order; "
                "use predict, or constraints=False"
            )
        lists = _core.once_kbest(found.explicit, data, found.once, k, allowed=found.support, n_jobs=n_jobs)
        return lists, found
    if model.history is None:
        return found.scorer.kbest(data, k, allowed=found.support, n_jobs=n_jobs), found
    return _search(model, found, X, data, k, None, memory, n_jobs), found


def marginals(
    model: Model, data: _core.Dataset, found: Plan, n_jobs: int
) -> tuple[NDArray[np.float32], NDArray[np.float64]]:
    """p(y_t | x) of every token and log Z of every sentence."""
    past = model.history
    if found.once is not None:
        if past is not None:
            raise ParameterError(
                "probabilities of paths whose labels occur once need a chain of first order; use order=1, "
                "or constraints=False"
            )
        return _core.once_marginals(found.explicit, data, found.once, allowed=found.support, n_jobs=n_jobs)
    if past is not None and past.exact:
        native = past.native(len(model.labels))
        return _core.order_marginals(found.explicit, native, data, allowed=found.support, n_jobs=n_jobs)
    if past is not None:
        raise ParameterError(
            "a model with history has no probabilities: its search follows one path a cell; use scores"
        )
    return found.scorer.marginals(data, allowed=found.support, n_jobs=n_jobs)


def _search(
    model: Model,
    found: Plan,
    X: Any,
    data: _core.Dataset,
    k: int,
    beam: int | None,
    memory: lookback.Memory | None,
    n_jobs: int,
) -> Lists:
    settings = model.history
    if settings is None:
        settings = lookback.History().with_weights(np.zeros(0, dtype=np.float32))
    return lookback.search(
        settings, found.explicit, X, data, k, beam=beam, memory=memory, support=found.support, n_jobs=n_jobs
    )


def _first_lawful(
    lists: Lists, data: _core.Dataset, group: NDArray[np.uint32], begins: NDArray[np.bool_]
) -> NDArray[np.uint16] | None:
    """The best path of each sentence in which every group begins one span at most; None where a list has none."""
    counts, _, labels = lists
    lengths = np.diff(data.offsets.astype(np.int64)).tolist()
    chosen, at, n = [], 0, len(group)
    for count, length in zip(counts.tolist(), lengths):
        paths = labels[at : at + count * length].reshape(count, length)
        at += count * length
        before = np.concatenate([np.full((count, 1), n), paths[:, :-1]], axis=1) if length else paths
        begun = np.where(begins[before, paths], group[paths], NO_GROUP) if length else paths
        for path, groups in zip(paths, begun):
            real = groups[groups != NO_GROUP]
            if len(np.unique(real)) == len(real):
                chosen.append(path)
                break
        else:
            return None
    return np.concatenate(chosen) if chosen else np.zeros(0, dtype=np.uint16)


def allowed_support(
    labels: Sequence[str], data: _core.Dataset, allowed: Allowed | None
) -> tuple[NDArray[np.bool_], NDArray[np.uint32]] | None:
    """Allowed labels as distinct sets [sets, L] and the set of each token [tokens]."""
    if allowed is None:
        return None
    index = {label: i for i, label in enumerate(labels)}
    sets: dict[frozenset[int] | None, int] = {None: 0}
    of: list[int] = []
    lengths = np.diff(data.offsets.astype(np.int64)).tolist()
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


__all__ = ["DECODERS", "Allowed", "Plan", "allowed_support", "best", "kbest", "marginals", "plan"]

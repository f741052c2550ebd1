"""Input of a decoder call: options, sentences, scores and constraints."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

import tagwise._core as _core
from tagwise.base.domains import Choice, Integer
from tagwise.base.exceptions import CorpusError, ParameterError, TagwiseError
from tagwise.base.parameters import checked, meant
from tagwise.dataset.check import lengths_of
from tagwise.decoding.lookback import DocumentState
from tagwise.features.inputs import Inputs
from tagwise.scores.constraints import Constraints, Groups, Rules, Support, boundary_support, intersect
from tagwise.scores.dictionary import with_dictionary
from tagwise.scores.kernels import KernelScorer
from tagwise.scores.protocols import Scorer, native
from tagwise.scores.scoring import Scoring

#: Allowed labels of every token of every sentence. None allows all labels, for a token or for a whole sentence.
Allowed = Sequence[Sequence[Any] | None]
DECODERS = ("viterbi", "pointwise", "beam")
_DECODER, _BEAM = Choice(DECODERS), Integer(1, optional=True)
Call = TypeVar("Call", bound=Callable[..., Any])


@dataclass(frozen=True)
class Query:
    """Options of a decoder call, documented at `Tagger.predict`."""

    decoder: str = "viterbi"
    allowed: Allowed | None = None
    constraints: Any = None
    beam: int | None = None
    document_state: DocumentState | None = None
    n_jobs: int | None = None

    def __post_init__(self) -> None:
        checked("decoder", self.decoder, _DECODER)
        if self.beam is not None and self.decoder != "beam":
            raise ParameterError(f"beam={self.beam} requires decoder='beam', found decoder={self.decoder!r}")
        object.__setattr__(self, "beam", checked("beam", self.beam, _BEAM))


#: Best path under the constraints of the model.
DEFAULT_QUERY = Query()


@dataclass(frozen=True)
class Plan:
    """Sentences with their scores and constraints, ready for a search.

    `scorer` is that of `scoring`, or one with the constraints of the query.
    """

    scoring: Scoring
    X: Inputs
    data: _core.Dataset
    query: Query
    scorer: Scorer
    rules: Rules | None
    support: Support | None

    @property
    def n_jobs(self) -> int:
        """Number of threads, 0 for one per core."""
        return self.query.n_jobs or 0

    @property
    def once(self) -> Groups | None:
        """Groups of labels that occur at most once."""
        return None if self.rules is None else self.rules.once

    @property
    def explicit(self) -> _core.Scorer:
        """Scorer with explicit weights. Raises a ParameterError for a kernel model."""
        if isinstance(self.scorer, KernelScorer):
            raise ParameterError(
                "a kernel model supports only decoder='viterbi' and k-best lists, without the constraint `once`. "
                "Leave the other options out."
            )
        return native(self.scorer, None if self.rules is None else self.rules.forbidden)


def typed(search: Call) -> Call:
    """Convert ValueErrors of the core to ParameterErrors."""

    @functools.wraps(search)
    def call(*args: Any, **keywords: Any) -> Any:
        try:
            return search(*args, **keywords)
        except ValueError as error:
            if isinstance(error, TagwiseError):
                raise
            raise ParameterError(str(error)) from error

    return cast("Call", call)


@typed
def plan_of(scoring: Scoring, X: Inputs, data: _core.Dataset, query: Query) -> Plan:
    """Combine the constraints of the model, or of the query (False for none), with the allowed labels of the query.

    Labels that the query allows at a token take precedence over the tag dictionary.
    """
    scorer, rules, constraints = scoring.scorer, None, query.constraints
    if constraints is None:
        rules = scoring.rules
    elif constraints is not False:
        declared = Constraints.parse(constraints).resolved(scoring.labels, layout=scorer.layout)
        rules = declared.rules(scoring.labels)
    if constraints is not None:
        forbidden = rules.forbidden if rules is not None else None
        base = _core.Scorer(scorer.layout, scorer.weights, forbidden, local=scorer.local)
        scorer = scorer.over(base) if isinstance(scorer, KernelScorer) else base
    requested = allowed_support(scoring.labels, data, query.allowed)
    support = intersect(requested, boundary_support(rules, data.offsets) if rules is not None else None)
    if scoring.dictionary is not None:
        of = X.numbers(scoring.dictionary.words, "a model with a tag dictionary")
        if requested is not None:
            free: NDArray[np.bool_] = np.all(requested[0], axis=1)
            of = np.where(free[requested[1]], of, 0).astype(np.uint32)
        support = with_dictionary((scoring.dictionary.sets, of), support, rules, data.offsets)
    return Plan(scoring, X, data, query, scorer, rules, support)


def allowed_support(
    labels: Sequence[str], data: _core.Dataset, allowed: Allowed | None
) -> tuple[NDArray[np.bool_], NDArray[np.uint32]] | None:
    """Return allowed labels as distinct sets [sets, L] and the set of each token [tokens]."""
    if allowed is None:
        return None
    index = {label: i for i, label in enumerate(labels)}
    sets: dict[frozenset[int] | None, int] = {None: 0}
    of: list[int] = []
    lengths = lengths_of(data).tolist()
    if len(allowed) != len(lengths):
        raise CorpusError(
            f"allowed has {len(allowed)} sentences, X has {len(lengths)}. Give one entry per sentence."
        )
    for s, (sentence, length) in enumerate(zip(allowed, lengths)):
        if sentence is None:
            of += [0] * length
            continue
        if isinstance(sentence, str) or not isinstance(sentence, Sequence):
            raise CorpusError(
                f"sentence {s}: allowed is {sentence!r}. Give a list with the labels of each token, or None for any."
            )
        if len(sentence) != length:
            raise CorpusError(
                f"sentence {s} has {length} tokens, but allowed has {len(sentence)} entries. Give one per token."
            )
        for t, names in enumerate(sentence):
            if names is None:
                of.append(0)
                continue
            if not isinstance(names, (str, Iterable)):
                raise CorpusError(
                    f"sentence {s}, token {t}: allowed is {names!r}. Give a label, several labels, or None for any."
                )
            names = [names] if isinstance(names, str) else list(names)
            unknown = [name for name in names if name not in index]
            if unknown or not names:
                hint = meant(str(unknown[0]), labels) if unknown else ""
                what = f"unknown label {unknown[0]!r}{hint}" if unknown else "no label"
                raise CorpusError(
                    f"sentence {s}, token {t}: {what} in allowed. The labels are: {' '.join(labels)}. None allows all."
                )
            key = frozenset(index[name] for name in names)
            of.append(sets.setdefault(key, len(sets)))
    table = np.zeros((len(sets), len(labels)), dtype=np.bool_)
    for names_, row in sets.items():
        table[row, slice(None) if names_ is None else sorted(names_)] = True
    return table, np.array(of, dtype=np.uint32)

"""Prediction by a trained model: encoding, decoding, probabilities, scores on labelled corpora."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

import tagwise._core as _core
from tagwise.base.cached import cached
from tagwise.base.domains import Flag, Integer, shown
from tagwise.base.exceptions import ParameterError
from tagwise.base.parameters import checked
from tagwise.corpus.labels import named, single, texts
from tagwise.corpus.schemes import has_chunks
from tagwise.decoding import paths
from tagwise.decoding.plan import DEFAULT_QUERY, Plan, Query, plan_of
from tagwise.decoding.ranks import Ranks, gold_ranks
from tagwise.evaluation.errors import Errors, find_errors
from tagwise.evaluation.metrics import Report, compared
from tagwise.features.inputs import Inputs
from tagwise.features.recipe import Recipe
from tagwise.model.reading import forbidden_of
from tagwise.scores.constraints import Constraints, Rules
from tagwise.scores.dictionary import TagDictionary
from tagwise.scores.kernels import KernelScorer
from tagwise.scores.lookback import LookbackWeights
from tagwise.scores.protocols import Scorer, native
from tagwise.scores.scoring import Scoring
from tagwise.scores.voters import Voters


@dataclass(frozen=True)
class Predictor:
    """Parts of a trained model and the methods that predict with them. `Model` describes the parts."""

    labels: tuple[str, ...]
    recipe: Recipe
    vocabulary: _core.Vocabulary
    scorer: Scorer
    meta: dict[str, Any] = field(default_factory=dict)
    lookback: LookbackWeights | None = None
    constraints: Constraints | None = None
    dictionary: TagDictionary | None = None
    arrays: dict[str, NDArray[Any]] = field(default_factory=dict)
    file: _core.ModelFile | None = field(default=None, repr=False, compare=False)
    label_type: str = "str"  # a name of `corpus.labels.TYPES`; `labels` are str

    def encode(self, X: Any, n_jobs: int | None = None) -> _core.Dataset:
        """Encode sentences as attributes of the model. Unknown attributes are dropped.

        Args:
            X: Sentences of the kind the model was trained on.
            n_jobs: Number of threads. None uses all cores.

        Returns:
            The encoded dataset.
        """
        X = Inputs.of(X)
        words = None if self.dictionary is None else self.dictionary.words
        data = self.recipe.encode(X, self.vocabulary, n_jobs, words)
        return self.recipe.with_vectors(data, X, self.vocabulary)

    def plan(self, X: Any, query: Query = DEFAULT_QUERY) -> Plan:
        """Encode sentences and attach their scores and constraints, as the input of every search.

        Args:
            X: Sentences of the kind the model was trained on.
            query: Options of the call: decoder, allowed labels, constraints, number of threads.

        Returns:
            A `Plan` for the functions of `tagwise.decoding`.
        """
        X = Inputs.of(X)
        query = replace(query, allowed=self.allowed(query.allowed))
        return plan_of(self.scoring, X, self.encode(X, query.n_jobs), query)

    def predict(self, X: Any, query: Query = DEFAULT_QUERY) -> list[list[Any]]:
        """Predict the labels of each sentence.

        Args:
            X: Sentences of the kind the model was trained on.
            query: Options of the call: decoder, allowed labels, constraints, number of threads.

        Returns:
            One list of labels per sentence, in the type they had in training.
        """
        found = _core.name_paths(*self.predict_numbers(X, query), list(self.labels))
        return found if self.label_type == "str" else [self.typed(labels) for labels in found]

    def predict_numbers(
        self, X: Any, query: Query = DEFAULT_QUERY
    ) -> tuple[NDArray[np.uint16], NDArray[np.uint64]]:
        """Predict label numbers, which is faster than `predict`.

        Args:
            X: Sentences of the kind the model was trained on.
            query: Options of the call: decoder, allowed labels, constraints, number of threads.

        Returns:
            Indices into `labels`, one per token, and the offsets [N + 1] of the sentences.
        """
        plan = self.plan(X, query)
        return paths.best(plan), plan.data.offsets

    def marginals(self, X: Any, query: Query = DEFAULT_QUERY) -> list[NDArray[np.float32]]:
        """Return the probability p(y_t | x) of every label at every token.

        Args:
            X: Sentences of the kind the model was trained on.
            query: Options of the call: decoder, allowed labels, constraints, number of threads.

        Returns:
            One array [T, L] per sentence, with columns in the order of `labels`.
        """
        plan = self.plan(X, query)
        p, _ = paths.marginals(plan)
        return [p[begin:end] for begin, end in pairwise(plan.data.offsets.tolist())]

    def kbest(
        self, X: Any, k: int, query: Query = DEFAULT_QUERY, *, probability: bool = False
    ) -> list[list[tuple[list[Any], float]]]:
        """Return the k best paths of each sentence.

        Args:
            X: Sentences of the kind the model was trained on.
            k: Number of paths.
            query: Options of the call: decoder, allowed labels, constraints, number of threads.
            probability: Return probabilities instead of scores. Only meaningful for CRF, HMM and MEMM.

        Returns:
            For each sentence a list of (labels, score or probability), best first.
        """
        k = checked("k", k, Integer(1))
        probability = checked("probability", probability, Flag())
        plan = self.plan(X, query)
        counts, scores, labels = paths.kbest(plan, k)
        if probability:
            scores = np.exp(scores - np.repeat(paths.marginals(plan)[1], counts))
        out: list[list[tuple[list[Any], float]]] = []
        classes, path, at = self.classes, 0, 0
        for (begin, end), count in zip(pairwise(plan.data.offsets.tolist()), counts.tolist()):
            _core.Stop.check()
            best = []
            for _ in range(count):
                ids = labels[at : at + end - begin].tolist()
                best.append(([classes[y] for y in ids], float(scores[path])))
                path, at = path + 1, at + end - begin
            out.append(best)
        return out

    def ranks(
        self, X: Any, y: Sequence[Sequence[Any]] | None = None, k: int = 100, query: Query = DEFAULT_QUERY
    ) -> Ranks:
        """Return the rank and the margin of the gold label sequence of each sentence.

        The rank is the number of wrong sequences whose score is at least that of the gold one.

        Args:
            X: Labelled corpus, or sentences.
            y: Gold labels, if X has none.
            k: Length of the k-best lists. Ranks of k and above are reported as -1. Raise it if there are many.
            query: Options of the call: constraints, number of threads.

        Returns:
            `Ranks` with one rank and margin per sentence.
        """
        inputs = Inputs.of(X)
        return gold_ranks(self.plan(inputs, query), single(inputs.gold(y))[0], k)

    def evaluate(
        self, X: Any, y: Sequence[Sequence[Any]] | None = None, query: Query = DEFAULT_QUERY
    ) -> Report:
        """Score the predictions on a labelled corpus.

        Args:
            X: Labelled corpus, or sentences.
            y: Gold labels, if X has none.
            query: Options of the call: decoder, allowed labels, constraints, number of threads.

        Returns:
            A `Report` with accuracy, and with precision, recall and F1 by type if the labels mark spans.

        Raises:
            CorpusError: If there are no gold labels, or they differ in length from the sentences.
        """
        inputs = Inputs.of(X)
        predicted, _ = texts(self.predict(inputs, query))
        return compared(single(inputs.gold(y))[0], predicted, has_chunks(self.labels))

    def errors(
        self, X: Any, y: Sequence[Sequence[Any]] | None = None, query: Query = DEFAULT_QUERY
    ) -> Errors:
        """Find the errors on a labelled corpus. See `Tagger.errors`.

        Args:
            X: Labelled corpus, or sentences.
            y: Gold labels, if X has none.
            query: Options of the call: decoder, allowed labels, constraints, number of threads.

        Returns:
            The `Errors` in groups, largest first. They print as a report.

        Raises:
            CorpusError: If there are no gold labels, or they differ in length from the sentences.
        """
        inputs = Inputs.of(X)
        predicted, _ = texts(self.predict(inputs, query))
        return find_errors(inputs.labelled(y), predicted, chunked=has_chunks(self.labels))

    @property
    @cached
    def classes(self) -> tuple[Any, ...]:
        """Labels, in the type they had in training."""
        return named(self.labels, self.label_type)

    def typed(self, labels: Sequence[str]) -> list[Any]:
        """Convert labels from str to the type they had in training.

        Args:
            labels: Labels as str.

        Returns:
            The labels in their own type.
        """
        return list(named(labels, self.label_type))

    def allowed(self, given: Any) -> Any:
        """Convert the allowed labels of tokens to str.

        Args:
            given: One list per sentence with a label, a collection of labels or None per token. Iterators are read
                once.

        Returns:
            Lists of the same structure, or None if `given` is None.

        Raises:
            ParameterError: If `given` is not a list of lists.
        """
        if given is None:
            return None
        if isinstance(given, (str, bytes, Mapping)) or not isinstance(given, Iterable):
            raise ParameterError(
                "expected one list per sentence with one entry per token (a label, a collection of labels, or None for "
                f"any), found {shown(given)}"
            )
        read = [list(x) if isinstance(x, Iterator) else x for x in given]
        if self.label_type == "str":
            return read
        return [texts([x])[0][0] if isinstance(x, Sequence) else x for x in read]

    @property
    @cached
    def scoring(self) -> Scoring:
        """Parts of the model that decoding uses."""
        voters = Voters.from_arrays(self.arrays, self.scorer, forbidden_of(self.constraints, self.labels))
        return Scoring(self.labels, self.scorer, self.lookback, self.constraints, self.dictionary, voters)

    @property
    def native(self) -> _core.Scorer:
        """Scorer of the explicit weights on the CPU. Those of a kernel model are its transitions."""
        if isinstance(self.scorer, KernelScorer):
            return self.scorer.base
        return native(self.scorer, forbidden_of(self.constraints, self.labels))

    @property
    def rules(self) -> Rules | None:
        """Constraints of the model in terms of its labels, or None."""
        return self.scoring.rules

    @property
    def n_features(self) -> int:
        """Number of features: (attribute, label) and (label, label) pairs with a weight.

        Those of a kernel model are (support token, label) and (label, label) pairs.
        """
        more = 0 if self.lookback is None else self.lookback.n_features
        return len(self.scorer.layout) + self._n_betas + more

    @property
    def n_nonzero(self) -> int:
        """Number of features whose weight is not zero."""
        more = 0 if self.lookback is None else int(np.count_nonzero(self.lookback.weights))
        return int(np.count_nonzero(self.scorer.weights)) + self._n_betas + more

    @property
    def _n_betas(self) -> int:
        return self.scorer.n_betas if isinstance(self.scorer, KernelScorer) else 0

    def attribute_text(self, attribute: int) -> str:
        """Return the text of an attribute for explanations, with word classes named by their members.

        Args:
            attribute: Id of the attribute.

        Returns:
            The text.
        """
        return self.recipe.readable(self.vocabulary.text(attribute))

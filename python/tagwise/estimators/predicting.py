"""What a fitted tagger does: labels, lists, probabilities, scores, explanations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from tagwise.base.domains import Flag
from tagwise.base.exceptions import ParameterError
from tagwise.base.parameters import checked
from tagwise.corpus import labels
from tagwise.corpus.schemes import has_chunks
from tagwise.decoding.confidence import Confidence, chunk_probabilities, confidences, sequence_probabilities
from tagwise.decoding.lookback import Memory
from tagwise.decoding.plan import Allowed, Query
from tagwise.decoding.ranks import Ranks, gold_ranks
from tagwise.estimators.scikit import Sequences
from tagwise.estimators.task import shortened, warn_of_strangers
from tagwise.evaluation.metrics import Report, evaluate
from tagwise.evaluation.thresholds import Threshold, check_probability, choose, span_curve, without
from tagwise.features.inputs import Inputs
from tagwise.model.explain import Explanation
from tagwise.model.model import Model
from tagwise.model.votes import Decisions


class Predicting:
    """All that needs nothing but the fitted model and the number of threads."""

    name: ClassVar[str]
    probabilistic: ClassVar[bool] = False  # whether exp(score) / Z of its paths are probabilities

    def _fitted(self) -> Model:
        raise NotImplementedError

    def _jobs(self) -> int | None:
        raise NotImplementedError

    def _query(self, **options: Any) -> Query:
        """The options of one call, with the tagger's number of threads."""
        return Query(n_jobs=self._jobs(), **options)

    def _with_probabilities(self, what: str) -> Model:
        """The fitted model; a ParameterError if the learner's scores are not probabilities."""
        if not self.probabilistic:
            raise ParameterError(
                f"{what}: the scores of {self.name} are not probabilities; use predict_kbest for scores and ranks for "
                "margins, or train a learner with probabilities (CRF, HMM, MEMM)"
            )
        return self._fitted()

    @property
    def classes_(self) -> tuple[Any, ...]:
        """The labels, of the type they were given in; columns of marginals are in this order."""
        return self._fitted().classes

    @property
    def n_features_(self) -> int:
        """Number of features."""
        return self._fitted().n_features

    @property
    def n_nonzero_(self) -> int:
        """Number of features whose weight is not zero."""
        return self._fitted().n_nonzero

    def predict(
        self,
        X: Any,
        *,
        decoder: str = "viterbi",
        allowed: Allowed | None = None,
        constraints: Any = None,
        beam: int | None = None,
        memory: Memory | None = None,
        min_probability: float | None = None,
    ) -> list[list[Any]]:
        """Labels of each sentence, of the type they had in training.

        Args:
            X: sentences of the kind the tagger was fitted on.
            decoder: "viterbi", the best path; "pointwise", the most probable label of each token by itself; or "beam",
                the best of the whole paths that a beam keeps.
            allowed: for every token of every sentence the labels it may take, or None for any.
            constraints: "auto", "bio", "IOBES" ... or rules in place of the model's own; False for none.
            beam: paths that a beam keeps.
            memory: with document features, what the sentences of the document before X were labelled.
            min_probability: leave out spans that are less probable (`predict_confidence` has their probabilities):
                their tokens are O. For probabilistic models of first order whose labels mark spans, with the best path;
                `choose_threshold` finds one.
        """
        if min_probability is not None:
            least = check_probability(min_probability)
            if decoder != "viterbi" or beam is not None or memory is not None:
                raise ParameterError(
                    "min_probability goes with the best path: leave decoder, beam and memory out"
                )
            found = self._believed(X, allowed=allowed, constraints=constraints)
            return Sequences([without(one.labels, one.chunks, least) for one in found])
        query = self._query(
            decoder=decoder, allowed=allowed, constraints=constraints, beam=beam, memory=memory
        )
        return Sequences(self._fitted().predict(X, query))

    def predict_marginals(
        self, X: Any, *, allowed: Allowed | None = None, constraints: Any = None
    ) -> list[NDArray[np.float32]]:
        """Probability of every label at every token: an array [T, L] per sentence, columns as in `classes_`.

        Raises:
            ParameterError: the scores of this learner are not probabilities (see `probabilistic`).
        """
        model = self._with_probabilities("predict_marginals")
        return model.marginals(X, self._query(allowed=allowed, constraints=constraints))

    def predict_kbest(
        self,
        X: Any,
        k: int = 5,
        *,
        probability: bool = False,
        allowed: Allowed | None = None,
        constraints: Any = None,
        memory: Memory | None = None,
    ) -> list[list[tuple[list[Any], float]]]:
        """The k best label sequences of each sentence as (labels, score), best first; fewer where fewer exist.

        Args:
            X: sentences of the kind the tagger was fitted on.
            k: how many.
            probability: P(y | x) in place of the score, for learners with probabilities (CRF, HMM, MEMM).
            allowed: as in `predict`.
            constraints: as in `predict`.
            memory: as in `predict`.
        """
        probability = checked("probability", probability, Flag())
        model = self._with_probabilities("probability=True") if probability else self._fitted()
        query = self._query(allowed=allowed, constraints=constraints, memory=memory)
        return model.kbest(X, k, query, probability=probability)

    def predict_confidence(
        self, X: Any, *, allowed: Allowed | None = None, constraints: Any = None
    ) -> list[Confidence]:
        """The best path of each sentence with the probability of the path, its labels and its chunks, and entropies.

        For learners with probabilities (CRF, HMM, MEMM); `allowed` and `constraints` as in `predict`.
        """
        model = self._with_probabilities("predict_confidence")
        found = confidences(model.plan(X, self._query(allowed=allowed, constraints=constraints)))
        return [replace(one, labels=model.typed(one.labels)) for one in found]

    def _believed(self, X: Any, **options: Any) -> list[Confidence]:
        """Best paths and the probabilities of their spans; a ParameterError where there are none."""
        model = self._with_probabilities("min_probability")
        if model.lookback is not None:
            raise ParameterError("probabilities of spans need a chain of first order; use order=1")
        if not has_chunks(model.labels):
            raise ParameterError(
                f"the labels mark no spans ({shortened(model.labels)}), so that none can be left out; "
                "give labels such as B-PER, I-PER, O"
            )
        return self.predict_confidence(X, **options)

    def choose_threshold(
        self,
        X: Any,
        y: Sequence[Sequence[Any]] | None = None,
        *,
        precision: float | None = None,
        beta: float = 1.0,
    ) -> Threshold:
        """The `min_probability` of `predict` that does best on a labelled (dev) corpus.

        That of the best F-beta of spans; with `precision`, that of the most recall among those with such a precision.
        What it gave there stands beside it.

        Args:
            X: a labelled corpus, or sentences.
            y: their gold labels, where X has none.
            precision: the precision that is asked for, above 0 and 1 at most.
            beta: how many times as much as precision recall counts.
        """
        inputs = Inputs.of(X)
        gold, _ = labels.single(inputs.gold(y))
        found = [one.chunks for one in self._believed(inputs)]
        return choose(span_curve(found, gold), precision=precision, beta=beta)

    def sequence_probability(
        self, X: Any, y: Sequence[Sequence[Any]], *, constraints: Any = None
    ) -> NDArray[np.float64]:
        """P(y | x) of given label sequences, [N]; an entry of y may also be a set of labels, or None for any."""
        model, query = self._with_probabilities("sequence_probability"), self._query(constraints=constraints)
        return sequence_probabilities(lambda part: model.plan(part, query), Inputs.of(X), model.allowed(y))

    def chunk_probability(
        self,
        X: Any,
        chunks: Sequence[Sequence[Any]],
        *,
        allowed: Allowed | None = None,
        constraints: Any = None,
    ) -> list[list[float]]:
        """Probability that exactly these chunks, lists of (type, begin, end), are there."""
        model = self._with_probabilities("chunk_probability")
        return chunk_probabilities(
            model.plan(X, self._query(allowed=allowed, constraints=constraints)), chunks
        )

    def ranks(
        self, X: Any, y: Sequence[Sequence[Any]] | None = None, k: int = 100, *, constraints: Any = None
    ) -> Ranks:
        """How many wrong label sequences score no less than the gold one, and the margin, of each sentence.

        A rank is exact below k; -1 stands for "k or more". Wrong sequences that tie with the gold one count.

        Args:
            X: sentences, or a labelled corpus.
            y: their gold labels, where X has none.
            k: length of the lists.
            constraints: as in `predict`.
        """
        model, X = self._fitted(), Inputs.of(X)
        plan = model.plan(X, self._query(constraints=constraints))
        return gold_ranks(plan, labels.single(X.gold(y))[0], k)

    def evaluate(
        self, X: Any, y: Sequence[Sequence[Any]] | None = None, *, min_probability: float | None = None
    ) -> Report:
        """Scores of the predictions on a labelled corpus; `min_probability` as in `predict`."""
        X = Inputs.of(X)
        gold, _ = labels.single(X.gold(y))  # as texts: files have no other labels
        warn_of_strangers(gold, self._fitted().labels, "these sentences")
        return evaluate(gold, labels.texts(self.predict(X, min_probability=min_probability))[0])

    def score(self, X: Any, y: Sequence[Sequence[Any]] | None = None) -> float:
        """F1 of chunks where the gold labels are chunks (B-, I- ...), else the fraction of right labels."""
        return self.evaluate(X, y).score

    def explain(self, top: int = 20) -> Explanation:
        """Strongest features of each label and strongest transitions."""
        return self._fitted().explain(top)

    def explain_prediction(
        self, sentence: Any, *, token: int | None = None, against: Any = None
    ) -> Decisions:
        """Which features voted for each label of one sentence, and against the next best; transitions included.

        The votes of a decision sum to the difference of the scores of two paths, and to their log-odds where the model
        has probabilities.

        Args:
            sentence: one sentence of the kind the tagger was fitted on.
            token: explain the label of this token alone, counted from 0.
            against: a label for the token, or labels for the whole sentence, to hold the prediction against; if not
                given, the best path with another label at the token.
        """
        return self._fitted().decisions(
            sentence, token=token, against=against, probabilistic=self.probabilistic, n_jobs=self._jobs()
        )

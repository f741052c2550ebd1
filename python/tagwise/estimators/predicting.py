"""Methods of a fitted tagger: labels, k-best lists, probabilities, scores, explanations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from tagwise.base.domains import Flag, Integer
from tagwise.base.exceptions import ParameterError
from tagwise.base.parameters import checked
from tagwise.corpus import labels
from tagwise.corpus.schemes import has_chunks
from tagwise.decoding.confidence import Confidence, chunk_probabilities, confidences, sequence_probabilities
from tagwise.decoding.lookback import DocumentState
from tagwise.decoding.plan import Allowed, Query
from tagwise.estimators.scikit import Sequences
from tagwise.estimators.task import shortened, warn_unknown_labels
from tagwise.evaluation.errors import Errors, find_errors
from tagwise.evaluation.metrics import Report, compared
from tagwise.evaluation.scoring import METRICS, default_metric
from tagwise.evaluation.thresholds import Threshold, check_probability, choose, span_curve, without
from tagwise.features.inputs import Inputs
from tagwise.features.types import LabelledSentences, Labels, SentenceLike, Sentences
from tagwise.model.inspection import Inspection
from tagwise.model.model import Model
from tagwise.model.votes import Decisions
from tagwise.scores.constraints import ConstraintsLike


class Predicting:
    """Methods that need only the fitted model and the number of threads."""

    name: ClassVar[str]
    probabilistic: ClassVar[bool] = False  # whether exp(score) / Z is the probability of a path

    def _fitted(self) -> Model:
        raise NotImplementedError

    def _jobs(self) -> int | None:
        raise NotImplementedError

    def _query(self, **options: Any) -> Query:
        """Return the options of one call, with the number of threads of the tagger."""
        return Query(n_jobs=self._jobs(), **options)

    def _with_probabilities(self, method: str) -> Model:
        """Return the fitted model, or raise a ParameterError if the scores of the learner are not probabilities."""
        if not self.probabilistic:
            raise ParameterError(
                f"{method}: the scores of {self.name} are not probabilities. Use predict_kbest for scores, or "
                "train a learner with probabilities (CRF, HMM, MEMM)"
            )
        return self._fitted()

    @property
    def classes_(self) -> tuple[Any, ...]:
        """Labels, in the type they had in training. The columns of marginals have this order."""
        return self._fitted().classes

    @property
    def metric_(self) -> str:
        """Name of the metric of `score` and of dev scores, decided when the tagger was fitted."""
        model = self._fitted()
        return model.meta.get("metric") or default_metric(model.labels)

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
        X: Sentences,
        *,
        decoder: str = "viterbi",
        allowed: Allowed | None = None,
        constraints: ConstraintsLike | Literal[False] = None,
        beam: int | None = None,
        document_state: DocumentState | None = None,
        min_probability: float | None = None,
    ) -> list[list[Any]]:
        """Predict the labels of each sentence.

        Args:
            X: Sentences of the kind the tagger was fitted on.
            decoder: "viterbi" finds the best path, "pointwise" the most probable label of each token, "beam" an
                approximate best path. Use "pointwise" if token accuracy matters more than valid sequences.
            allowed: Labels that each token of each sentence may take, or None for any. Use it to fix labels that are
                known.
            constraints: Rules that replace those of the model, such as "auto", "bio" or "IOBES", or a mapping. False
                removes them, None keeps those of the model.
            beam: Number of paths that the beam keeps. 4 to 16 is usually enough.
            document_state: Labels of the earlier sentences of the document, for models with document features. Pass the
                same `tagwise.decoding.lookback.DocumentState` to predict a document in several calls.
            min_probability: Replace spans that are less probable by O, to raise precision. `choose_threshold` finds a
                value. Only for CRF, HMM and MEMM of first order, span labels and the Viterbi decoder.

        Returns:
            One list of labels per sentence, in the type they had in training.

        Raises:
            NotFittedError: If `fit` has not been called.
            ParameterError: If options cannot be combined, or `min_probability` is not supported by the model.
            CorpusError: If X is not of the kind the tagger was fitted on.

        >>> import tagwise as tw
        >>> tagger = tw.CRF(features="S1").fit([["a", "dog"]], [["DT", "NN"]])
        >>> tagger.predict([["a", "dog"]]), tagger.predict([["a", "dog"]], allowed=[[None, "DT"]])
        ([['DT', 'NN']], [['DT', 'DT']])
        """
        if min_probability is not None:
            least = check_probability(min_probability)
            if decoder != "viterbi" or beam is not None or document_state is not None:
                raise ParameterError(
                    "min_probability needs the best path: leave decoder, beam and document_state out"
                )
            found = self._span_confidences(X, allowed=allowed, constraints=constraints)
            return Sequences([without(one.labels, one.chunks, least) for one in found])
        query = self._query(
            decoder=decoder,
            allowed=allowed,
            constraints=constraints,
            beam=beam,
            document_state=document_state,
        )
        return Sequences(self._fitted().predict(X, query))

    def predict_marginals(
        self,
        X: Sentences,
        *,
        allowed: Allowed | None = None,
        constraints: ConstraintsLike | Literal[False] = None,
    ) -> list[NDArray[np.float32]]:
        """Return the probability of every label at every token.

        Args:
            X: Sentences of the kind the tagger was fitted on.
            allowed: Labels that each token of each sentence may take, or None for any. Use it to fix labels that are
                known.
            constraints: Rules that replace those of the model, such as "bio" or "IOBES". False removes them, None keeps
                those of the model.

        Returns:
            One array [T, L] per sentence, with columns in the order of `classes_`.

        Raises:
            NotFittedError: If `fit` has not been called.
            ParameterError: If the scores of this learner are not probabilities. See `probabilistic`.
        """
        model = self._with_probabilities("predict_marginals")
        return model.marginals(X, self._query(allowed=allowed, constraints=constraints))

    def predict_kbest(
        self,
        X: Sentences,
        k: int = 5,
        *,
        probability: bool = False,
        allowed: Allowed | None = None,
        constraints: ConstraintsLike | Literal[False] = None,
        document_state: DocumentState | None = None,
    ) -> list[list[tuple[list[Any], float]]]:
        """Return the k best label sequences of each sentence.

        Args:
            X: Sentences of the kind the tagger was fitted on.
            k: Number of sequences. Time and memory grow with it; 2 to 100 is usual.
            probability: Return P(y | x) instead of the score. Set it to True to compare sentences. CRF, HMM and MEMM
                only.
            allowed: Labels that each token of each sentence may take, or None for any. Use it to fix labels that are
                known.
            constraints: Rules that replace those of the model, such as "bio" or "IOBES". False removes them, None keeps
                those of the model.
            document_state: Labels of the earlier sentences of the document, as in `predict`.

        Returns:
            For each sentence a list of (labels, score), best first. It is shorter than k if there are fewer sequences.

        Raises:
            NotFittedError: If `fit` has not been called.
            ParameterError: If `probability` is set and the scores of this learner are not probabilities.
        """
        probability = checked("probability", probability, Flag())
        model = self._with_probabilities("probability=True") if probability else self._fitted()
        query = self._query(allowed=allowed, constraints=constraints, document_state=document_state)
        return model.kbest(X, k, query, probability=probability)

    def predict_confidence(
        self,
        X: Sentences,
        *,
        allowed: Allowed | None = None,
        constraints: ConstraintsLike | Literal[False] = None,
    ) -> list[Confidence]:
        """Return the best path of each sentence with the probabilities of the path, its labels and its chunks.

        Args:
            X: Sentences of the kind the tagger was fitted on.
            allowed: Labels that each token of each sentence may take, or None for any. Use it to fix labels that are
                known.
            constraints: Rules that replace those of the model, such as "bio" or "IOBES". False removes them, None keeps
                those of the model.

        Returns:
            One `Confidence` per sentence, with entropies too.

        Raises:
            NotFittedError: If `fit` has not been called.
            ParameterError: If the scores of this learner are not probabilities.
        """
        model = self._with_probabilities("predict_confidence")
        found = confidences(model.plan(X, self._query(allowed=allowed, constraints=constraints)))
        return [replace(one, labels=model.typed(one.labels)) for one in found]

    def _span_confidences(self, X: Sentences, **options: Any) -> list[Confidence]:
        """Return the best paths with the probabilities of their spans, or raise a ParameterError if there are none."""
        model = self._with_probabilities("min_probability")
        if model.lookback is not None:
            raise ParameterError("probabilities of spans need a model of first order. Use order=1")
        if not has_chunks(model.labels):
            raise ParameterError(
                f"the labels mark no spans ({shortened(model.labels)}), so min_probability has no effect. "
                "Train with labels such as B-PER, I-PER, O"
            )
        return self.predict_confidence(X, **options)

    def choose_threshold(
        self,
        X: Sentences,
        y: Labels | None = None,
        *,
        precision: float | None = None,
        beta: float = 1.0,
    ) -> Threshold:
        """Choose the `min_probability` of `predict` that does best on a labelled development corpus.

        The best threshold has the highest F-beta of spans. With `precision` it has the highest recall among the
        thresholds that reach this precision.

        Args:
            X: Labelled corpus, or sentences. Do not use training sentences, on which probabilities are too high.
            y: Gold labels, if X has none.
            precision: Precision to reach, above 0 and at most 1. Set it if wrong spans are costly.
            beta: Weight of recall relative to precision: 0.5 prefers precision, 2 recall. Ignored with `precision`.

        Returns:
            A `Threshold` with the probability, and its precision and recall on X.

        Raises:
            ParameterError: If the model has no probabilities of spans, or no threshold reaches `precision`.
        """
        inputs = Inputs.of(X)
        gold, _ = labels.single(inputs.gold(y))
        found = [one.chunks for one in self._span_confidences(inputs)]
        return choose(span_curve(found, gold), precision=precision, beta=beta)

    def sequence_probability(
        self, X: Sentences, y: Labels, *, constraints: ConstraintsLike | Literal[False] = None
    ) -> NDArray[np.float64]:
        """Return the probability P(y | x) of label sequences.

        Args:
            X: Sentences of the kind the tagger was fitted on.
            y: One list per sentence with an entry per token: a label, a set of labels, or None for any label. Sets and
                None sum over all sequences that agree with them.
            constraints: Rules that replace those of the model, such as "bio" or "IOBES". False removes them, None keeps
                those of the model.

        Returns:
            An array [N] of probabilities.

        Raises:
            NotFittedError: If `fit` has not been called.
            ParameterError: If the scores of this learner are not probabilities.
        """
        model, query = self._with_probabilities("sequence_probability"), self._query(constraints=constraints)
        return sequence_probabilities(lambda part: model.plan(part, query), Inputs.of(X), model.allowed(y))

    def chunk_probability(
        self,
        X: Sentences,
        chunks: Sequence[Sequence[Any]],
        *,
        allowed: Allowed | None = None,
        constraints: ConstraintsLike | Literal[False] = None,
    ) -> list[list[float]]:
        """Return the probability that each of these chunks is in its sentence, with exactly these bounds.

        Args:
            X: Sentences of the kind the tagger was fitted on.
            chunks: One list per sentence of (type, begin, end), with `end` after the last token.
            allowed: Labels that each token of each sentence may take, or None for any. Use it to fix labels that are
                known.
            constraints: Rules that replace those of the model, such as "bio" or "IOBES". False removes them, None keeps
                those of the model.

        Returns:
            One list of probabilities per sentence, in the order of `chunks`.

        Raises:
            NotFittedError: If `fit` has not been called.
            ParameterError: If the scores of this learner are not probabilities.
        """
        model = self._with_probabilities("chunk_probability")
        return chunk_probabilities(
            model.plan(X, self._query(allowed=allowed, constraints=constraints)), chunks
        )

    def evaluate(
        self, X: LabelledSentences, y: Labels | None = None, *, min_probability: float | None = None
    ) -> Report:
        """Score the predictions on a labelled corpus.

        Args:
            X: Labelled corpus, the path of its file, or sentences.
            y: Gold labels, if X has none.
            min_probability: Replace spans that are less probable by O before scoring, as in `predict`.

        Returns:
            A `Report` with accuracy, and with precision, recall and F1 by type if the training labels mark spans.

        Raises:
            NotFittedError: If `fit` has not been called.
            CorpusError: If there are no gold labels, or they differ in length from the sentences.
        """
        X = Inputs.of_labelled(X)
        gold, _ = labels.single(X.gold(y))  # as str, the type of labels in files
        warn_unknown_labels(gold, self._fitted().labels, "these sentences")
        found = labels.texts(self.predict(X, min_probability=min_probability))[0]
        return compared(gold, found, has_chunks(self._fitted().labels))

    def errors(
        self,
        X: Sentences,
        y: Labels | None = None,
        *,
        top: int | None = None,
        examples: int = 3,
        min_probability: float | None = None,
    ) -> Errors:
        """Find the errors on a labelled corpus, grouped by gold and predicted label.

        If labels mark spans, an error is a span that is missed, spurious, of the wrong type or with other borders. For
        other labels, each token with a wrong label is an error.

        Args:
            X: Labelled corpus, or sentences.
            y: Gold labels, if X has none.
            top: Number of groups in the report. None shows all.
            examples: Number of errors per group in the report.
            min_probability: Replace spans that are less probable by O, as in `predict`.

        Returns:
            The `Errors` in groups, largest first. They print as a report with examples in context.

        Raises:
            NotFittedError: If `fit` has not been called.
            CorpusError: If there are no gold labels, or they differ in length from the sentences.

        >>> import tagwise as tw
        >>> tagger = tw.CRF(features="S1").fit([["in", "Oslo"]], [["O", "B-LOC"]])
        >>> [group.title for group in tagger.errors([["in", "Oslo"]], [["O", "B-PER"]]).groups]
        ['PER taken for LOC']
        """
        top, examples = (
            checked("top", top, Integer(0, optional=True)),
            checked("examples", examples, Integer(0)),
        )
        inputs = Inputs.of_labelled(X)
        gold = inputs.labelled(y)
        warn_unknown_labels(gold.labels, self._fitted().labels, "these sentences")
        predicted, _ = labels.texts(self.predict(inputs, min_probability=min_probability))
        found = find_errors(gold, predicted, chunked=has_chunks(self._fitted().labels))
        return replace(found, top=top, examples=examples)

    def score(self, X: LabelledSentences, y: Labels | None = None) -> float:
        """Return the score that model selection maximises.

        Args:
            X: Labelled corpus, or sentences.
            y: Gold labels, if X has none.

        Returns:
            Value of the metric `metric_`, from 0 to 1. It is the one named by `scoring`, or else F1 if the training
            labels mark spans (B-, I- ...) and the fraction of right labels if not.

        Raises:
            NotFittedError: If `fit` has not been called.
        """
        return METRICS[self.metric_](self.evaluate(X, y))

    def inspect(self, top: int = 20) -> Inspection:
        """Return the strongest features of the model.

        Args:
            top: Number of features per label, by magnitude of the weight. 0 shows transitions only.

        Returns:
            An `Inspection` with features by label and transitions. It prints as tables.

        Raises:
            NotFittedError: If `fit` has not been called.
        """
        return self._fitted().inspect(top)

    def explain(
        self, sentence: SentenceLike, *, token: int | None = None, against: Any = None, top: int = 5
    ) -> Decisions:
        """Explain the labels of one sentence by the features that decided them.

        Each decision compares the predicted path with another one. Its votes sum to the difference of the two scores,
        which are the log-odds if the model has probabilities.

        Args:
            sentence: One sentence of the kind the tagger was fitted on.
            token: Index of the token to explain, from 0. None explains all tokens.
            against: Label of the token, or labels of the whole sentence, to compare the prediction with. None takes the
                best path with another label at the token.
            top: Number of votes to show per decision. The decisions have all votes.

        Returns:
            `Decisions` with one decision per token. They print as tables.

        Raises:
            NotFittedError: If `fit` has not been called.
            ParameterError: If the model has a kernel or labels further back, or `token` is outside the sentence.

        >>> import tagwise as tw
        >>> tagger = tw.CRF(features="S1").fit([["a", "dog"]], [["DT", "NN"]])
        >>> tagger.explain(["a", "dog"], token=1)[0].runner_up
        'DT'
        """
        top = checked("top", top, Integer(0))
        found = self._fitted().explain(
            sentence, token=token, against=against, probabilistic=self.probabilistic, n_jobs=self._jobs()
        )
        return replace(found, top=top)

"""What every estimator shares: parameters, `fit` along the straight line, prediction, files."""

from __future__ import annotations

import inspect
import os
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

import tagwise._core as _core
from tagwise.corpus import labels
from tagwise.corpus.schemes import has_chunks
from tagwise.dataset import encode
from tagwise.dataset.check import checked_weights
from tagwise.decoding.confidence import Confidence, chunk_probabilities, confidences, sequence_probabilities
from tagwise.decoding.lookback import Memory
from tagwise.decoding.plan import Allowed
from tagwise.decoding.ranks import Ranks, gold_ranks
from tagwise.decoding.thresholds import Threshold, check_probability, choose, span_curve, without
from tagwise.errors import CorpusError, ParameterError, TrainingError, not_fitted
from tagwise.estimators.growth import grown, joined
from tagwise.estimators.limits import Limits, lawful_gold, limits_of
from tagwise.estimators.resuming import keeper_of
from tagwise.estimators.scikit import ScikitLearn, Sequences
from tagwise.estimators.task import TRANSIENT, Task, dev_scorer, shortened, warn_of_strangers
from tagwise.estimators.texts import Texts
from tagwise.features.inputs import Inputs
from tagwise.features.recipe import Recipe, file_columns, recipe_for
from tagwise.learners.backends import current
from tagwise.learners.checkpoint import Checkpoint
from tagwise.learners.loop import Callback, Iteration, Result, logger
from tagwise.learners.progress import progress
from tagwise.metrics import Report, evaluate
from tagwise.model.explain import Explanation
from tagwise.model.model import Model, transfer
from tagwise.model.prune import prune as prune_model
from tagwise.model.votes import Decisions
from tagwise.optimizers.base import Vector
from tagwise.params import Param, lookup


class Tagger(Texts, ScikitLearn):
    """A learner of label sequences: parameters in, `fit`, `predict`."""

    name: ClassVar[str] = ""
    probabilistic: ClassVar[bool] = False  # whether exp(score) / Z of its paths are probabilities
    starts_warm: ClassVar[bool] = True  # whether training can begin from given weights
    resumes: ClassVar[bool] = False  # whether training can go on from a checkpoint
    PARAMS: ClassVar[tuple[Param, ...]] = ()

    model_: Model
    history_: list[dict[str, Any]]
    objective_: float
    stopped_: str
    best_iteration_: int

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        _, *shown = inspect.signature(cls.__init__).parameters.values()
        cls.__signature__ = inspect.Signature(shown)  # type: ignore[attr-defined]

    if not TYPE_CHECKING:  # tools that read the sources see `__init__` alone

        def __new__(cls, *args: Any, **params: Any) -> Tagger:
            """Refuse parameters that there are not before Python does: by what there are, and the one meant perhaps."""
            shown = inspect.signature(cls.__init__).parameters
            if not any(parameter.kind is parameter.VAR_KEYWORD for parameter in shown.values()):
                for name in params:
                    if name not in shown:
                        lookup(cls.PARAMS, name, cls.__name__)
            return super().__new__(cls)

    def _take(self, given: dict[str, Any]) -> None:
        """Keep the parameters, which are among the names of `__init__`, as they were given."""
        for param in self.PARAMS:
            setattr(self, param.name, given[param.name])

    # --- parameters -------------------------------------------------------------------------------------

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Parameters by name, as they were set."""
        return {param.name: getattr(self, param.name) for param in self.PARAMS}

    def set_params(self, **params: Any) -> Tagger:
        """Set parameters by name; values are checked by `fit`."""
        for name, value in params.items():
            lookup(self.PARAMS, name, type(self).__name__)
            setattr(self, name, value)
        return self

    def checked(self) -> dict[str, Any]:
        """Parameters, each inside its domain."""
        return {param.name: param.check(getattr(self, param.name)) for param in self.PARAMS}

    def __repr__(self) -> str:
        values = ((p, getattr(self, p.name)) for p in self.PARAMS)
        changed = [
            f"{p.name}={value!r}"
            for p, value in values
            if type(value) is not type(p.default) or value != p.default
        ]
        return f"{type(self).__name__}({', '.join(changed)})"

    def _repr_html_(self) -> str:
        """In a notebook: scikit-learn's diagram where that is the display, else what it is and what training left."""
        from html import escape

        from tagwise.corpus.markup import table_html

        if diagram := super()._repr_html_():
            return diagram
        if not hasattr(self, "model_"):
            return f"<p><code>{escape(repr(self))}</code> (not fitted)</p>"
        labels = " ".join(map(str, self.classes_[:20])) + (" ..." if len(self.classes_) > 20 else "")
        rows = [
            ("labels", f"{len(self.classes_)}: {labels}"),
            ("weights", f"{self.n_features_:,}, {self.n_nonzero_:,} of them not zero"),
        ]
        rows += [(name, str(value)) for name, value in self.model_.meta.get("metrics", {}).items()]
        return f"<p><code>{escape(repr(self))}</code></p>{table_html(('', 'fitted'), rows, left=2)}"

    # --- training ---------------------------------------------------------------------------------------

    def fit(
        self,
        X: Any,
        y: Sequence[Sequence[Any]] | None = None,
        *,
        dev: Any = None,
        dev_y: Sequence[Sequence[Any]] | None = None,
        sample_weight: Sequence[float] | NDArray[Any] | None = None,
        callbacks: Iterable[Callback] = (),
        warm_start: Tagger | Model | str | os.PathLike[str] | None = None,
        forget: bool = False,
        checkpoint: Checkpoint | None = None,
    ) -> Tagger:
        """Train on a labelled corpus, or on X and y.

        Args:
            X: a Corpus, or sentences: lists of tokens, of attribute lists, or of feature dicts.
            y: the labels of each sentence, strings, integers, floats or booleans, which predictions are too; a Corpus
                brings its own.
            dev: a labelled corpus (or X with `dev_y`) that is scored after every iteration; the best iterate is kept.
            dev_y: labels of `dev`.
            sample_weight: a weight >= 0 for each sentence: what its loss counts, or how long its steps are where a
                learner goes sentence by sentence. Features are those of all sentences, whatever they weigh.
            callbacks: called with an `Iteration` after each; True stops training and keeps the model.
            warm_start: a fitted tagger, a model or a model file whose weights to start from. Its labels and features
                stay, with those of X beside them; so do word lists that its features learnt (`is_rare`), its tag
                dictionary, and the scheme that constraints="auto" found.
            forget: with `warm_start`: have the labels and features of X alone, with the weights that they had.
            checkpoint: keep the state of training in a file every so often, and go on from it if asked to: CRF, MEMM
                and the first-order online learners.

        Ctrl-C raises KeyboardInterrupt, as ever; where an iteration was reached, the tagger has its model.
        """
        params, inputs = self.checked(), Inputs.of(X)
        warm = None if warm_start is None else model_of(warm_start)
        if forget and warm is None:
            raise ParameterError(
                "forget=True is about the model of warm_start; give one, or leave forget out"
            )
        gold, kind = labels.texts(inputs.gold(y))
        task = self._task(inputs, gold, params, None if forget else warm)
        self._typed(task, kind, None if forget else warm)
        task.sample_weight = checked_weights(sample_weight, len(task.data))
        if warm is not None:
            task.warm = warm
            task.start = transfer(warm, task.vocabulary, task.layout, task.labels)
        scored = None if dev is None else Inputs.of(dev)
        if scored is not None:
            dev_y = scored.gold(dev_y)
            task.dev_score = dev_scorer(lambda w: self._model(task, w), task, scored, dev_y)
        if checkpoint is not None:
            if not self.resumes:
                raise ParameterError(
                    f"{self.name} keeps no checkpoints: what it needs to go on is not kept yet; leave checkpoint out"
                )
            task.keeper = keeper_of(self.name, task, checkpoint, scored, dev_y)
        task.callbacks = listeners(callbacks, params)
        try:
            self._keep(task, result := watched(self._train, task, self.name))
        except TrainingError as error:
            raise TrainingError(with_line(str(error), inputs, params)) from error
        return self._ended(result)

    def _ended(self, result: Result) -> Tagger:
        """The tagger, unless Ctrl-C ended its training: then that is raised, with the model kept on the tagger."""
        if result.interrupted:
            raise KeyboardInterrupt(
                f"training was interrupted after iteration {len(self.history_)}; the tagger has the model of then"
            )
        return self

    @staticmethod
    def _typed(task: Task, kind: str | None, before: Model | None) -> None:
        """Note the type of the labels, which is that of a model that grows."""
        if before is not None:
            labels.check_type(kind, before.label_type, "the training set", "the model")
        task.label_type = kind or "str"

    def _keep(self, task: Task, result: Result) -> Tagger:
        """Be fitted with what training left."""
        self.history_ = result.history
        self.objective_ = result.objective
        self.stopped_ = result.reason
        self.best_iteration_ = result.best_iteration
        model = self._model(task, result.weights).with_meta(**self._meta(task, result))
        self.model_ = replace(model, label_type=task.label_type)
        return self

    def _task(
        self, X: Inputs, gold: Sequence[Sequence[str]], params: dict[str, Any], before: Model | None = None
    ) -> Task:
        """Encode the training set and lay its features out, behind those of a model that is to grow."""
        known = (None, None) if before is None else (before.constraints, before.dictionary)
        gold = lawful_gold(params, X, gold, known[0])
        found = encode.collect_labels(gold)
        if not found:
            raise CorpusError("the training set has no token; give at least one labelled sentence")
        names = joined(before, found)
        recipe, vocabulary, data = self._encoded(X, params, before)
        data = encode.with_labels(data, gold, names)
        layout, places = grown(before, self._layout(data, len(vocabulary), len(names), params))
        limits, start = limits_of(params, names, data, X, gold, *known), np.zeros(len(layout))
        return Task(data, layout, names, vocabulary, recipe, params, start, X, limits=limits, places=places)

    @staticmethod
    def _encoded(
        X: Inputs, params: dict[str, Any], before: Model | None = None
    ) -> tuple[Recipe, _core.Vocabulary, _core.Dataset]:
        """The sentences as ids of attributes, in a vocabulary of their own or in that of a model that is to grow."""
        recipe = recipe_for(params["features"], X)
        if before is not None and recipe.does_the_same_as(before.recipe):
            recipe = before.recipe  # with the lists it learnt: old sentences keep their attributes
        recipe = recipe.learned(X)
        vocabulary = _core.Vocabulary() if before is None else before.vocabulary.growing()
        data = recipe.encode(X, vocabulary, params["n_jobs"])
        if params["min_count"] > 1:
            data = encode.prune(vocabulary, data, params["min_count"])
        data = recipe.with_vectors(data, X, vocabulary)
        vocabulary.lock()
        return recipe, vocabulary, data

    def _layout(
        self, data: _core.Dataset, n_attributes: int, n_labels: int, params: dict[str, Any]
    ) -> _core.Layout:
        """Which features exist."""
        return _core.Layout.build(
            data, n_attributes, n_labels, all_pairs=params["all_pairs"], start_end=params["start_end"]
        )

    def _model(self, task: Task, w: Vector) -> Model:
        """The model of these weights."""
        limits = task.limits or Limits()
        scorer = current().scorer(task.layout, w.astype(np.float32), limits.forbidden, False)
        return Model(
            tuple(task.labels),
            task.recipe,
            task.vocabulary,
            scorer,
            constraints=limits.constraints,
            dictionary=limits.dictionary,
        )

    def _train(self, task: Task) -> Result:
        """Weights of the training set: what a learner is."""
        raise TypeError(f"{type(self).__name__} is no learner; use one of tagwise.LEARNERS")

    def _meta(self, task: Task, result: Result) -> dict[str, Any]:
        """What the model file says of its training; nothing in it depends on the machine or the clock."""
        kept = {name: value for name, value in task.params.items() if name not in TRANSIENT}
        kept["features"] = task.recipe.name
        metrics: dict[str, Any] = {
            "iterations": len(result.history),
            "best_iteration": result.best_iteration,
            "objective": result.objective,
            "stopped": result.reason,
        }
        scores = [entry["dev_score"] for entry in result.history if entry["dev_score"] is not None]
        if scores:
            metrics["dev_score"] = max(scores)
        return {"learner": self.name, "params": kept, "metrics": metrics, **file_columns(task.recipe, task.X)}

    # --- prediction -------------------------------------------------------------------------------------

    def _fitted(self) -> Model:
        if not hasattr(self, "model_"):
            raise not_fitted(
                f"this {type(self).__name__} is not fitted; call fit, or load a model with tagwise.load"
            )
        return self.model_

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
        paths = self._fitted().predict(
            X,
            decoder=decoder,
            allowed=allowed,
            constraints=constraints,
            beam=beam,
            memory=memory,
            n_jobs=self._jobs(),
        )
        return Sequences(paths)

    def predict_marginals(
        self, X: Any, *, allowed: Allowed | None = None, constraints: Any = None
    ) -> list[NDArray[np.float32]]:
        """Probability of every label at every token: an array [T, L] a sentence, columns as in `classes_`."""
        return self._fitted().marginals(X, allowed=allowed, constraints=constraints, n_jobs=self._jobs())

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
            probability: P(y | x) in place of the score; means something for probabilistic models (CRF) only.
            allowed: as in `predict`.
            constraints: as in `predict`.
            memory: as in `predict`.
        """
        return self._fitted().kbest(
            X,
            k,
            probability=probability,
            allowed=allowed,
            constraints=constraints,
            memory=memory,
            n_jobs=self._jobs(),
        )

    def predict_confidence(
        self, X: Any, *, allowed: Allowed | None = None, constraints: Any = None
    ) -> list[Confidence]:
        """The best path of each sentence with the probability of the path, its labels and its chunks, and entropies.

        For probabilistic models (CRF); `allowed` and `constraints` as in `predict`.
        """
        model = self._fitted()
        X = Inputs.of(X)
        data, jobs = model.encode(X, self._jobs()), self._jobs() or 0
        allowed = model.allowed(allowed)
        found = confidences(model.scoring, X, data, allowed=allowed, constraints=constraints, n_jobs=jobs)
        return [replace(one, labels=model.typed(one.labels)) for one in found]

    def _believed(self, X: Any, **options: Any) -> list[Confidence]:
        """Best paths and the probabilities of their spans; a ParameterError where there are none."""
        model = self._fitted()
        if not (self.probabilistic or model.scorer.local) or model.lookback is not None:
            raise ParameterError(
                f"{self.name} has no probabilities of spans here: take a CRF or MEMM of first order (order=1)"
            )
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
        gold, _ = labels.texts(inputs.gold(y))
        found = [one.chunks for one in self._believed(inputs)]
        return choose(span_curve(found, gold), precision=precision, beta=beta)

    def sequence_probability(
        self, X: Any, y: Sequence[Sequence[Any]], *, constraints: Any = None
    ) -> NDArray[np.float64]:
        """P(y | x) of given label sequences, [N]; an entry of y may also be a set of labels, or None for any."""
        model, jobs = self._fitted(), self._jobs()

        def encode(part: Inputs) -> _core.Dataset:
            return model.encode(part, jobs)

        return sequence_probabilities(
            model.scoring,
            Inputs.of(X),
            encode,
            model.allowed(y),
            constraints=constraints,
            n_jobs=jobs or 0,
        )

    def chunk_probability(
        self,
        X: Any,
        chunks: Sequence[Sequence[Any]],
        *,
        allowed: Allowed | None = None,
        constraints: Any = None,
    ) -> list[list[float]]:
        """Probability that exactly these chunks, lists of (type, begin, end), are there."""
        model, jobs, X = self._fitted(), self._jobs(), Inputs.of(X)
        data, allowed = model.encode(X, jobs), model.allowed(allowed)
        return chunk_probabilities(
            model.scoring, X, data, chunks, allowed=allowed, constraints=constraints, n_jobs=jobs or 0
        )

    def ranks(
        self, X: Any, y: Sequence[Sequence[Any]] | None = None, k: int = 100, *, constraints: Any = None
    ) -> Ranks:
        """How many wrong label sequences score no less than the gold one, and the margin, of each sentence.

        Counted over the k best: a gold sequence that is none of them has the rank -1, "k or more".

        Args:
            X: sentences, or a labelled corpus.
            y: their gold labels, where X has none.
            k: length of the lists.
            constraints: as in `predict`.
        """
        model, X = self._fitted(), Inputs.of(X)
        jobs = self._jobs()
        return gold_ranks(
            model.scoring,
            X,
            model.encode(X, jobs),
            labels.texts(X.gold(y))[0],
            k,
            constraints=constraints,
            n_jobs=jobs or 0,
        )

    def evaluate(self, X: Any, y: Sequence[Sequence[Any]] | None = None) -> Report:
        """Scores of the predictions on a labelled corpus."""
        X = Inputs.of(X)
        gold, _ = labels.texts(X.gold(y))  # as texts: files have no other labels
        warn_of_strangers(gold, self._fitted().labels, "these sentences")
        return evaluate(gold, labels.texts(self.predict(X))[0])

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

    def _jobs(self) -> int | None:
        return lookup(self.PARAMS, "n_jobs", self.name).check(self.n_jobs)  # type: ignore[attr-defined,no-any-return]

    # --- files ------------------------------------------------------------------------------------------

    def save(self, path: str | os.PathLike[str], *, prune: bool = False, format: str = "tagwise") -> None:
        """Write the model to one file; `tagwise.load` reads it back.

        Args:
            path: where to.
            prune: leave out features of weight zero; predictions stay the same.
            format: "tagwise", or "crfsuite", "wapiti", "crfpp", "crfpp-text": see `Model.save`.
        """
        model = self._fitted()
        (prune_model(model)[0] if prune else model).save(path, format=format)


def with_line(message: str, X: Inputs, params: dict[str, Any]) -> str:
    """A message about a sentence with the line of the file that it begins at, where that is known."""
    found = re.match(r"sentence (\d+)(?=:)", message)
    if found is None or params.get("max_length") is not None:  # pieces have numbers of their own
        return message
    line = X.line(int(found[1]))
    return f"{found[0]} (line {line}){message[found.end() :]}" if line else message


def model_of(source: Tagger | Model | str | os.PathLike[str]) -> Model:
    if isinstance(source, Model):
        return source
    if isinstance(source, Tagger):
        return source._fitted()
    return Model.load(source)


def listeners(callbacks: Iterable[Callback], params: dict[str, Any]) -> list[Callback]:
    """Who is told of each iteration: the callbacks, and the logger where `verbose` asks for it."""
    return [*callbacks, _log] if params["verbose"] else list(callbacks)


def watched(train: Callable[[Task], Result], task: Task, title: str) -> Result:
    """Train, with a line that shows how far it is where `verbose` asks for one and somebody looks."""
    with progress(title, task.params["verbose"]) as line:
        if line is not None:
            task.callbacks = [*task.callbacks, line]
        return train(task)


def _log(entry: Iteration) -> None:
    dev = "" if entry.dev_score is None else f", dev {entry.dev_score:.4f}"
    logger.info(
        "iteration %d: objective %.4f, |gradient| %.3g%s, %.1f s",
        entry.iteration,
        entry.objective,
        entry.gradient_norm,
        dev,
        entry.seconds,
    )

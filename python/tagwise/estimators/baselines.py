"""The baselines: the hidden Markov model and the maximum-entropy Markov model."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any, ClassVar, Literal

import numpy as np

import tagwise._core as _core
from tagwise.base.domains import AnyOf, Choice, Domains, Flag, Integer, Real
from tagwise.base.exceptions import ParameterError
from tagwise.dataset.check import lengths_of
from tagwise.dataset.class_weights import LabelWeights, label_counts, label_weights
from tagwise.dataset.layout import dense_layout, step_layout
from tagwise.estimators.base import Tagger
from tagwise.estimators.task import Task
from tagwise.evaluation.scoring import Metric
from tagwise.features.inputs import Inputs
from tagwise.features.recipe import Recipe
from tagwise.features.resolve import recipe_for
from tagwise.features.sets import quoted
from tagwise.features.types import FeatureSet
from tagwise.learners import generative, gradient
from tagwise.learners.backends import current
from tagwise.learners.loop import Iteration, Result
from tagwise.learners.problem import Problem
from tagwise.model.model import Model
from tagwise.optimizers.base import Vector

NO_EDGES = "MEMM does not support edge attributes. Remove them from the features, or use CRF"
#: Template rules that define the classes of unknown words. WORD is the column of the words.
UNKNOWN: dict[str, str] = {
    "one": "",
    "shape": "WORD[0].short_shape\n",
    "suffix": "WORD[0].short_shape & WORD[0].lower.suffix(3)\n",
}


class HMM(Tagger):
    """Hidden Markov model: smoothed counts of labels, label pairs and symbols, as log probabilities.

        P(x, y) = P(y_1) P(x_1 | y_1) prod_t P(y_t | y_{t-1}) P(x_t | y_t) P(end | y_T)

    Training is one pass over the corpus. Use it as a baseline. With `overlapping` every attribute of a token is emitted
    independently given the label: s_t(y) = sum_a log P(a | y).

    Attributes:
        model_: `Model` with the labels, features, weights and constraints that `predict` uses.
        classes_: Labels, in the type they had in training. The columns of `predict_marginals` have this order.
        history_: One dict with the objective, dev score and seconds of the pass.
        objective_: Negative log-likelihood of the training set.
        stopped_: "counted".
        converged_: True.
        gap_: None.
        best_iteration_: 1, the number of the only pass.
        metric_: Name of the metric of `score` and of dev scores.
        n_features_: Number of features.
        n_nonzero_: Number of features whose weight is not zero.

    >>> X = [["the", "cat", "sleeps"], ["a", "dog", "barks"]]
    >>> y = [["DT", "NN", "VBZ"], ["DT", "NN", "VBZ"]]
    >>> HMM().fit(X, y).predict([["a", "cat", "barks"]])
    [['DT', 'NN', 'VBZ']]
    """

    name = "hmm"
    _starts_warm = False
    _resumes = False
    probabilistic = True
    _PARAMS: ClassVar[Domains] = {
        "smoothing": AnyOf((Choice(("witten_bell",)), Real(0.0, open_low=True))),
        "overlapping": Flag(),
        "unknown_words": Choice(tuple(UNKNOWN)),
        "rare": Integer(1),
    }

    def __init__(
        self,
        *,
        features: FeatureSet = "S1",
        smoothing: float | Literal["witten_bell"] = "witten_bell",
        unknown_words: Literal["one", "shape", "suffix"] = "suffix",
        rare: int = 2,
        overlapping: bool = False,
        start_end: bool = True,
        scoring: Metric | None = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        """Store the parameters, which `fit` checks.

        Args:
            features: Feature set that turns tokens into attributes (S1, S2, S3, S3(window=2), pos, ner, default, a
                template, a function, or attributes). It must give one attribute per token, as S1 does, unless
                `overlapping` is set. Use S2 or S3 with overlapping=True.
            smoothing: Smoothing of all counts: "witten_bell", or the number > 0 to add to every count. Try 0.01 to 1
                for names and chunks; "witten_bell" is better for parts of speech.
            unknown_words: Classes of unknown words: one for all, their shape, or shape and last three letters (suffix).
                Use shape for languages without inflection, one if the vocabulary is closed.
            rare: Minimum count of a word in training. Rarer words count as unknown. Raise it to 3 to 5 for large
                corpora.
            overlapping: Emit every attribute independently given the label. Set it to True for features with several
                attributes per token.
            start_end: Learn probabilities of the first label and of the end of a sentence. Set it to False if sentences
                are cut at arbitrary places.
            scoring: Metric of `score` and of dev scores (f1, accuracy, sequence_accuracy, f1_macro, f1_weighted, or
                None). None takes f1 if the training labels mark spans, else accuracy. Name the metric that your task is
                judged by.
            n_jobs: Number of threads, at most one per core. None uses all cores. Lower it to leave cores to other
                programs. Results do not depend on it.
            verbose: Verbosity: 1 shows a progress line on a terminal or in a notebook and logs the objective to the
                logger `tagwise`. Training is one pass and rarely needs it.
        """
        self._store_params(locals())

    def _task(
        self, X: Inputs, gold: Sequence[Sequence[str]], params: dict[str, Any], before: Model | None = None
    ) -> Task:
        recipe = recipe_for(params["features"], X)
        if recipe.has_edges:
            raise ParameterError(
                "HMM does not support edge attributes. Remove them from the features, or use CRF"
            )
        if X.vectors is not None:
            raise ParameterError("HMM does not support vectors. Use MEMM or CRF")
        if not params["overlapping"]:
            recipe = self._with_unknown(recipe, params["unknown_words"])
        task = super()._task(X, gold, {**params, "features": recipe, "min_count": 1})
        task.params = params
        return task

    @staticmethod
    def _with_unknown(recipe: Recipe, unknown: str) -> Recipe:
        """Return the recipe with rules for the classes of unknown words added. Only templates have them."""
        if recipe.kind != "template":
            return recipe
        word = recipe.token_column
        text = recipe.text.rstrip("\n") + "\n" + UNKNOWN[unknown].replace("WORD", quoted(word)) + "bias\n"
        columns = [word, *(column for column in recipe.columns if column != word)]
        return Recipe.of_template(text, columns, recipe.name, recipe.derived_columns)

    def _layout(
        self, data: _core.Dataset, n_attributes: int, n_labels: int, params: dict[str, Any]
    ) -> _core.Layout:
        return dense_layout(n_attributes, n_labels, params["start_end"])

    def _train(self, task: Task) -> Result:
        begin = time.perf_counter()
        if task.warm is not None:
            raise ParameterError(
                "an HMM cannot start from the weights of another model, since it counts. Leave warm_start out"
            )
        params, data, labels = task.params, task.data, len(task.labels)
        weight = np.ones(len(data)) if task.sample_weight is None else task.sample_weight
        of_token = np.repeat(weight, lengths_of(data))
        settings = (labels, params["smoothing"])
        if params["overlapping"]:
            node, likelihood = generative.overlapping_weights(
                data, task.layout.n_attributes, of_token, *settings
            )
        else:
            unknown = task.recipe.kind == "template"
            found = generative.symbols(data, task.layout.n_attributes, unknown, params["rare"])
            gold = data.gold.astype(np.int64)
            node, likelihood = generative.emission_weights(found, gold, of_token, *settings)
        transitions = generative.count_transitions(data, labels, weight, params["start_end"])
        w, of_labels = generative.assemble(node, transitions, *settings)
        score = None if task.dev_score is None else task.dev_score(w)
        objective = -(likelihood + of_labels)
        entry = Iteration(1, 1, objective, None, score, time.perf_counter() - begin, 1)
        for callback in task.callbacks:
            callback(entry)
        return Result(w, [entry.as_dict()], "counted", 1, objective, converged=True)


class MEMM(Tagger):
    """Maximum-entropy Markov model (McCallum, Freitag and Pereira 2000): a classifier of y_t given y_{t-1} and x_t.

        P(y | x) = prod_t P(y_t | y_{t-1}, x_t)
        minimise  -sum_t log P(y_t | y_{t-1}, x_t) + l2 ||w||^2 + l1 ||w||_1

    The loss of each token is multiplied by the weight of its label if `class_weight` is given.

    The features are those of a CRF, but each step is normalised separately. A later token cannot take probability back
    from a label that it contradicts (label bias), so a CRF is almost always the better choice.

    Attributes:
        model_: `Model` with the labels, features, weights and constraints that `predict` uses.
        classes_: Labels, in the type they had in training. The columns of `predict_marginals` have this order.
        history_: One dict per iteration with its number, objective, seconds and evaluations of the objective, and what
            was measured of gradient norm, dev score, `dual` and `gap` (certificate). Empty after `tagwise.load`.
        objective_: Objective of the kept weights, penalties included.
        stopped_: Parameter that ended training and how, such as "tol=1e-05: certified within 9.0e-06 of the optimum".
        converged_: Whether training reached `tol` or found no better weights.
        gap_: Bound of the relative distance of `objective_` from the optimum, or None without a certificate.
        best_iteration_: Number of the iteration that was kept: the best on the dev set, or the last.
        metric_: Name of the metric of `score` and of dev scores.
        n_features_: Number of features.
        n_nonzero_: Number of features whose weight is not zero.

    >>> X = [["the", "cat", "sleeps"], ["a", "dog", "barks"]]
    >>> y = [["DT", "NN", "VBZ"], ["DT", "NN", "VBZ"]]
    >>> MEMM(features="S1", l2=0.1).fit(X, y).predict([["a", "cat", "barks"]])
    [['DT', 'NN', 'VBZ']]
    """

    name = "memm"
    probabilistic = True
    _PARAMS: ClassVar[Domains] = {}

    def __init__(
        self,
        *,
        features: FeatureSet = "default",
        l2: float = 0.1,
        l1: float = 0.0,
        class_weight: LabelWeights = None,
        max_iter: int = 1000,
        tol: float = 1e-05,
        window: int = 10,
        patience: int = 20,
        optimizer: Literal["auto", "lbfgs", "cg", "sgd", "dual", "owlqn"] = "auto",
        min_count: int = 1,
        all_pairs: bool = False,
        start_end: bool = True,
        scoring: Metric | None = None,
        random_state: int = 0,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        """Store the parameters, which `fit` checks.

        Args:
            features: Feature set that turns tokens into attributes (S1, S2, S3, S3(window=2), pos, ner, default, a
                template, a function, or attributes). Start with "default". Write a template or a function if you know
                which context matters.
            l2: Strength of the penalty ||w||^2, added to the sum over tokens. The most important parameter to tune: try
                0.01 to 1 on development data, larger values for noisy labels.
            l1: Strength of the penalty ||w||_1, added to the sum over tokens. Set it to 0.1 to 1 for a sparse model
                that is several times smaller and slightly less accurate.
            class_weight: Weight of the loss of a token, by its label (balanced, a number > 0 for all labels, a mapping
                of label -> number > 0, or None). Use "balanced" or weights of 2 to 10 if rare labels are missed.
            max_iter: Maximum number of iterations. The default is rarely reached. 20 to 50 are enough for quick
                experiments.
            tol: Relative tolerance: training stops when the objective is certified to be this close to the optimum. If
                no certificate is possible, it stops when `window` iterations improve the objective by less. Use 1e-3
                for quick experiments, 1e-7 for exact optima.
            window: Number of iterations over which `tol` is measured if there is no certificate. Raise it to 20 or 50
                if training stops on a plateau.
            patience: Number of iterations without a better dev score after which training stops. 0 never stops. Used
                with a dev set only. Raise it if the dev score is noisy.
            optimizer: Optimisation algorithm. "auto" takes owlqn if l1 > 0, dual for the log loss with l2 > 0 and 200
                sentences or more, else lbfgs. Name one to reproduce results, or sgd for a rough model of a huge corpus.
            min_count: Minimum count of an attribute in training. Rarer attributes are dropped. Raise it to 2 to 5 for
                smaller models and faster training.
            all_pairs: Create features for pairs of attribute and label, and of two labels, that do not occur in
                training. Set it to True for slightly better accuracy at several times the size.
            start_end: Learn weights for the first and the last label of a sentence. Set it to False if sentences are
                cut at arbitrary places.
            scoring: Metric of `score` and of dev scores (f1, accuracy, sequence_accuracy, f1_macro, f1_weighted, or
                None). None takes f1 if the training labels mark spans, else accuracy. Name the metric that your task is
                judged by.
            random_state: Seed of all random choices, an integer >= 0. Change it to measure how much results vary. The
                same seed gives the same model.
            n_jobs: Number of threads, at most one per core. None uses all cores. Lower it to leave cores to other
                programs. Results do not depend on it.
            verbose: Verbosity: 1 shows a progress line on a terminal or in a notebook and logs every iteration to the
                logger `tagwise`. Use it for long training runs.
        """
        self._store_params(locals())

    def _model(self, task: Task, w: Vector) -> Model:
        scorer = current().scorer(task.layout, w.astype(np.float32), None, True)
        return Model(tuple(task.labels), task.recipe, task.vocabulary, scorer)

    def _train(self, task: Task) -> Result:
        if task.data.n_edge_attributes:
            raise ParameterError(NO_EDGES)
        params, labels = task.params, len(task.labels)
        steps = task.data.steps(task.layout.n_attributes, labels, params["start_end"])
        weight = task.sample_weight
        if weight is not None:
            weight = np.repeat(weight, lengths_of(task.data))
        by_label = label_weights(params["class_weight"], task.labels, label_counts(task.data.gold, labels))
        if by_label is not None:
            of_token = by_label[task.data.gold]
            weight = of_token if weight is None else weight * of_token
        problem = Problem(steps, step_layout(task.layout), sample_weight=weight, n_sentences=len(task.data))
        return self._optimise(task, problem)

    @staticmethod
    def _optimise(task: Task, problem: Problem) -> Result:
        """Minimise the objective, from the start weights of the task."""
        params = task.params
        return gradient.train(
            problem,
            task.start,
            task.stopping(),
            optimizer=params["optimizer"],
            l1=params["l1"],
            l2=params["l2"],
            n_jobs=task.n_jobs,
            seed=params["random_state"],
            dev_score=task.dev_score,
            callbacks=task.callbacks,
            checkpointer=task.checkpointer,
        )

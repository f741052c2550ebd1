"""The baselines: the hidden Markov model and the maximum-entropy Markov model."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any, ClassVar, Literal

import numpy as np

import tagwise._core as _core
from tagwise.base.domains import Choice, Domains, Flag, Integer, Real
from tagwise.base.exceptions import ParameterError
from tagwise.dataset.check import lengths_of
from tagwise.dataset.class_weights import label_counts, label_weights
from tagwise.dataset.layout import dense_layout, step_layout
from tagwise.estimators.base import Tagger
from tagwise.estimators.task import Task
from tagwise.features.inputs import Inputs
from tagwise.features.recipe import Recipe
from tagwise.features.resolve import recipe_for
from tagwise.features.sets import quoted
from tagwise.learners import generative, gradient
from tagwise.learners.backends import current
from tagwise.learners.loop import Iteration, Result
from tagwise.learners.problem import Problem
from tagwise.model.model import Model
from tagwise.optimizers.base import Vector

NO_EDGES = "MEMM takes no edge attributes; leave them out of the features, or use CRF for them"
#: What unknown words are told apart by: rules over the word's column.
UNKNOWN: dict[str, str] = {
    "one": "",
    "shape": "WORD[0].short_shape\n",
    "suffix": "WORD[0].short_shape & WORD[0].lower.suffix(3)\n",
}


class HMM(Tagger):
    """Hidden Markov model: smoothed counts of labels, label pairs and symbols, as log probabilities.

        P(x, y) = P(y_1) P(x_1 | y_1) prod_t P(y_t | y_{t-1}) P(x_t | y_t) P(end | y_T)

    With `overlapping` every attribute of a token is emitted by itself given the label: s_t(y) = sum_a log P(a | y).

    >>> X = [["the", "cat", "sleeps"], ["a", "dog", "barks"]]
    >>> y = [["DT", "NN", "VBZ"], ["DT", "NN", "VBZ"]]
    >>> HMM().fit(X, y).predict([["a", "cat", "barks"]])
    [['DT', 'NN', 'VBZ']]
    """

    name = "hmm"
    starts_warm = False
    resumes = False
    probabilistic = True
    PARAMS: ClassVar[Domains] = {
        "smoothing": Choice(("witten_bell", "additive")),
        "delta": Real(0.0, open_low=True),
        "overlapping": Flag(),
        "unknown": Choice(tuple(UNKNOWN)),
        "rare": Integer(1),
    }

    def __init__(
        self,
        *,
        features: Any = "S1",
        smoothing: Literal["witten_bell", "additive"] = "witten_bell",
        delta: float = 0.1,
        overlapping: bool = False,
        unknown: Literal["one", "shape", "suffix"] = "suffix",
        rare: int = 2,
        start_end: bool = True,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        """Keep the parameters; `fit` checks them.

        Args:
            features: how tokens become attributes; one rule, unless overlapping (S1, S2, S3, S3(window=2), pos, ner,
                default, a template, a function, or attributes)
            smoothing: smoothing of all counts
            delta: additive: the amount added to every count
            overlapping: emit every attribute independently, so that any features can be used
            unknown: classes of unknown words: one for all, their shape, or shape and last three letters
            rare: words seen fewer times in training count as unknown
            start_end: features for the first and the last label of a sentence
            n_jobs: number of threads, at most one per core; None uses all cores. Results do not depend on it
            verbose: 1 shows a line of progress on a terminal or in a notebook, and logs every iteration to the logger
                `tagwise`
        """
        self._take(locals())

    def _task(
        self, X: Inputs, gold: Sequence[Sequence[str]], params: dict[str, Any], before: Model | None = None
    ) -> Task:
        recipe = recipe_for(params["features"], X)
        if recipe.has_edges:
            raise ParameterError("a hidden Markov model has no edge attributes; use MEMM or CRF for them")
        if X.vectors is not None:
            raise ParameterError("a hidden Markov model has no vectors; use MEMM or CRF for them")
        if not params["overlapping"]:
            recipe = self._with_unknown(recipe, params["unknown"])
        task = super()._task(X, gold, {**params, "features": recipe, "min_count": 1})
        task.params = params
        return task

    @staticmethod
    def _with_unknown(recipe: Recipe, unknown: str) -> Recipe:
        """The recipe with the classes of unknown words behind its symbol; functions and attributes have none."""
        if recipe.kind != "template":
            return recipe
        word = recipe.token_column
        text = recipe.text.rstrip("\n") + "\n" + UNKNOWN[unknown].replace("WORD", quoted(word)) + "bias\n"
        columns = [word, *(column for column in recipe.columns if column != word)]
        return Recipe.of_template(text, columns, recipe.name, recipe.marks)

    def _layout(
        self, data: _core.Dataset, n_attributes: int, n_labels: int, params: dict[str, Any]
    ) -> _core.Layout:
        return dense_layout(n_attributes, n_labels, params["start_end"])

    def _train(self, task: Task) -> Result:
        begin = time.perf_counter()
        if task.warm is not None:
            raise ParameterError(
                "a hidden Markov model is counted and cannot start from given weights; leave warm_start out"
            )
        params, data, labels = task.params, task.data, len(task.labels)
        weight = np.ones(len(data)) if task.sample_weight is None else task.sample_weight
        of_token = np.repeat(weight, lengths_of(data))
        settings = (labels, params["smoothing"], params["delta"])
        if params["overlapping"]:
            node, likelihood = generative.overlapping_weights(
                data, task.layout.n_attributes, of_token, *settings
            )
        else:
            unknown = task.recipe.kind == "template"
            found = generative.symbols(data, task.layout.n_attributes, unknown, params["rare"])
            gold = data.gold.astype(np.int64)
            node, likelihood = generative.emission_weights(found, gold, of_token, *settings)
        moves = generative.count_moves(data, labels, weight, params["start_end"])
        w, of_labels = generative.assemble(node, moves, *settings)
        score = None if task.dev_score is None else task.dev_score(w)
        objective = -(likelihood + of_labels)
        entry = Iteration(1, 1, objective, 0.0, score, time.perf_counter() - begin, 1)
        for callback in task.callbacks:
            callback(entry)
        return Result(w, [entry.as_dict()], "counted", 1, objective)


class MEMM(Tagger):
    """Maximum-entropy Markov model (McCallum, Freitag and Pereira 2000): a classifier of y_t given y_{t-1} and x_t.

        P(y | x) = prod_t P(y_t | y_{t-1}, x_t);  minimise  -sum_t log P(y_t | y_{t-1}, x_t) + l2 ||w||^2 + l1 ||w||_1

    each token times the weight of its label where class_weight gives one.

    The same features as a CRF, but each step is normalised by itself: decoding cannot take mass back from a label that
    the words to come speak against (label bias).

    >>> X = [["the", "cat", "sleeps"], ["a", "dog", "barks"]]
    >>> y = [["DT", "NN", "VBZ"], ["DT", "NN", "VBZ"]]
    >>> MEMM(features="S1", l2=0.1).fit(X, y).predict([["a", "cat", "barks"]])
    [['DT', 'NN', 'VBZ']]
    """

    name = "memm"
    probabilistic = True
    PARAMS: ClassVar[Domains] = {}

    def __init__(
        self,
        *,
        features: Any = "default",
        l1: float = 0.0,
        l2: float = 1.0,
        optimizer: Literal["auto", "lbfgs", "cg", "sgd", "dual", "owlqn"] = "auto",
        class_weight: Any = None,
        max_iter: int = 1000,
        tol: float = 1e-05,
        window: int = 10,
        patience: int = 20,
        start_end: bool = True,
        min_count: int = 1,
        all_pairs: bool = False,
        n_jobs: int | None = None,
        seed: int = 0,
        verbose: int = 0,
    ) -> None:
        """Keep the parameters; `fit` checks them.

        Args:
            features: how tokens become attributes (S1, S2, S3, S3(window=2), pos, ner, default, a template, a function,
                or attributes)
            l1: strength of ||w||_1, added to the sum over tokens
            l2: strength of ||w||^2, added to the sum over tokens
            optimizer: auto: owlqn if l1 > 0, dual for the log loss with l2 > 0 and 200 sentences or more, else lbfgs
            class_weight: how much the loss of a token counts, by its label (balanced, a mapping of label -> number > 0,
                or None)
            max_iter: maximum number of iterations; the default is rarely reached
            tol: stop when the optimum is certified to be this near, else when `window` iterations improve by less
            window: iterations over which `tol` is measured
            patience: with a dev set: iterations without a better dev score; 0 never stops
            start_end: features for the first and the last label of a sentence
            min_count: drop attributes seen less often in training
            all_pairs: also create features that never occur with the gold labels
            n_jobs: number of threads, at most one per core; None uses all cores. Results do not depend on it
            seed: seed of all random choices
            verbose: 1 shows a line of progress on a terminal or in a notebook, and logs every iteration to the logger
                `tagwise`
        """
        self._take(locals())

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
        """Minimise, from the weights to start from."""
        params = task.params
        return gradient.train(
            problem,
            task.start,
            task.stopping(),
            optimizer=params["optimizer"],
            l1=params["l1"],
            l2=params["l2"],
            n_jobs=task.n_jobs,
            seed=params["seed"],
            dev_score=task.dev_score,
            callbacks=task.callbacks,
            keeper=task.keeper,
        )

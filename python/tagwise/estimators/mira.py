"""Online learners with a margin: MIRA, passive-aggressive, AROW."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import tagwise._core as _core
from tagwise.base.domains import Domains, Flag, Integer, Real
from tagwise.base.options import Dictionary, Lookback
from tagwise.estimators.online import OnlineTagger, RuleContext
from tagwise.estimators.task import Task
from tagwise.evaluation.scoring import Metric
from tagwise.features.types import FeatureSet
from tagwise.scores.constraints import ConstraintsLike


class MIRA(OnlineTagger):
    """k-best MIRA (Crammer and Singer 2003; McDonald, Crammer and Pereira 2005).

    Each update is the smallest change of w by which the gold path beats each of the k best paths by its cost. MIRA
    trains almost as fast as the perceptron and is usually more accurate. `cost` trades precision for recall. Scores are
    not probabilities.

    Attributes:
        model_: `Model` with the labels, features, weights and constraints that `predict` uses.
        classes_: Labels, in the type they had in training.
        history_: One dict per epoch. `objective` is the number of wrong tokens, `updates` the number of updates.
            With a dev set, `dev_score` is the score of the kept weights and `plain_dev_score` the score before
            averaging.
        objective_: Number of wrong tokens in the kept epoch.
        stopped_: Parameter that ended training and how, such as "max_iter=20 reached".
        converged_: False: online learners end by the number of epochs or by `patience`.
        gap_: None: online learners have no certificate.
        best_iteration_: Number of the epoch that was kept: the best on the dev set, or the last.
        metric_: Name of the metric of `score` and of dev scores.
        n_features_: Number of features.
        n_nonzero_: Number of features whose weight is not zero.
        state_: State of training from which `partial_fit` continues. Missing with `lookback`, and after `tagwise.load`.

    >>> X = [["the", "cat", "sleeps"], ["a", "dog", "barks"]]
    >>> y = [["DT", "NN", "VBZ"], ["DT", "NN", "VBZ"]]
    >>> MIRA(features="S1", k=2, max_iter=5).fit(X, y).predict([["a", "cat", "barks"]])
    [['DT', 'NN', 'VBZ']]
    """

    name = "mira"
    _PARAMS: ClassVar[Domains] = {
        "k": Integer(1),
        "C": Real(0.0, open_low=True, optional=True),
        "augment": Flag(),
    }

    def __init__(
        self,
        *,
        features: FeatureSet = "default",
        k: int = 4,
        cost: str | Callable[..., Any] = "accuracy",
        C: float | None = None,
        lookback: tuple[int, float] | Lookback | None = None,
        max_iter: int = 20,
        patience: int = 0,
        average: bool = True,
        constraints: ConstraintsLike = None,
        dictionary: int | Dictionary | None = None,
        augment: bool = False,
        shuffle: bool = True,
        parts: int = 1,
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
            k: Number of best paths that the gold path must beat. 2 to 5 is enough. 1 is the fastest and slightly less
                accurate.
            cost: Cost of a wrong path, the margin by which the gold path must beat it (accuracy, f1,
                precision_recall(alpha), ..., or a function). Use precision_recall(alpha), with alpha from 0 to 1, to
                trade recall for precision.
            C: Upper bound on the size of one update. Use 0.01 to 1 if labels are noisy. None means unbounded.
            lookback: Labels further back that features depend on ((m, p) with m = 1, 2, 3 and p >= 1 or inf, or a
                Lookback, or None): a search state has m labels, and features read labels up to p back. Try (1, 2) for
                names.
            max_iter: Number of passes over the training set. 5 is enough for quick experiments. With `patience` a large
                number does no harm.
            patience: Number of epochs without a better dev score after which training stops. 0 never stops. Used with a
                dev set only. Set it to 3 to 10 to save time.
            average: Average the weights over all steps. Keep it, since the last weights alone are less accurate. False
                is for experiments.
            constraints: Rules for valid label sequences, applied in training and decoding (auto, bio, IOBES ..., a
                mapping with scheme, forbidden, required, once, or None). Use "auto" for labels such as B-PER and I-PER,
                so that no invalid span is predicted.
            dictionary: Minimum count of a word for a tag dictionary, which allows the word only labels seen with it in
                training (integer >= 1, or a Dictionary, or None). Try 3 to 10 for parts of speech. None uses no
                dictionary.
            augment: Add the cost to the scores while searching, so that the paths that violate their margin most are
                found. Try it with costs that are sums over tokens, such as accuracy.
            shuffle: Shuffle the sentences in every epoch, by `random_state`. Set it to False to reproduce results that
                depend on the order of the corpus.
            parts: Number of parts of the training set that are trained in parallel and mixed after each epoch. 2 to 4
                parts train faster with about the same accuracy. More lose some.
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

    def _rule(self, task: Task | RuleContext) -> _core.Rule:
        params = task.params
        return _core.Rule(self.name, k=params["k"], limit=params["C"], cost=self._cost(task))


class PassiveAggressive(OnlineTagger):
    """Passive-aggressive learning (Crammer et al. 2006).

    Each update is the smallest change of w by which the gold path beats the best path by its cost, with linear (PA-I)
    or squared (PA-II) slack. Compared with MIRA it looks at one wrong path per sentence. Scores are not probabilities.

    Attributes:
        model_: `Model` with the labels, features, weights and constraints that `predict` uses.
        classes_: Labels, in the type they had in training.
        history_: One dict per epoch. `objective` is the number of wrong tokens, `updates` the number of updates.
            With a dev set, `dev_score` is the score of the kept weights and `plain_dev_score` the score before
            averaging.
        objective_: Number of wrong tokens in the kept epoch.
        stopped_: Parameter that ended training and how, such as "max_iter=20 reached".
        converged_: False: online learners end by the number of epochs or by `patience`.
        gap_: None: online learners have no certificate.
        best_iteration_: Number of the epoch that was kept: the best on the dev set, or the last.
        metric_: Name of the metric of `score` and of dev scores.
        n_features_: Number of features.
        n_nonzero_: Number of features whose weight is not zero.
        state_: State of training from which `partial_fit` continues. Missing after `tagwise.load`.

    >>> X = [["the", "cat", "sleeps"], ["a", "dog", "barks"]]
    >>> y = [["DT", "NN", "VBZ"], ["DT", "NN", "VBZ"]]
    >>> PassiveAggressive(features="S1", max_iter=5).fit(X, y).predict([["a", "cat", "barks"]])
    [['DT', 'NN', 'VBZ']]
    """

    name = "pa"
    _PARAMS: ClassVar[Domains] = {"variant": Integer(0, 2), "C": Real(0.0, open_low=True)}

    def __init__(
        self,
        *,
        features: FeatureSet = "default",
        C: float = 1.0,
        cost: str | Callable[..., Any] = "accuracy",
        variant: int = 1,
        max_iter: int = 20,
        patience: int = 0,
        average: bool = True,
        constraints: ConstraintsLike = None,
        dictionary: int | Dictionary | None = None,
        shuffle: bool = True,
        parts: int = 1,
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
            C: Aggressiveness: larger values make larger updates. Lower it to 0.01 to 0.1 if labels are noisy. Variant 0
                ignores it.
            cost: Cost of a wrong path, the margin by which the gold path must beat it (accuracy, f1,
                precision_recall(alpha), ..., or a function). Use precision_recall(alpha), with alpha from 0 to 1, to
                trade recall for precision.
            variant: Slack of an update: 0 has none, 1 is linear (PA-I), 2 is squared (PA-II). Use 0 for clean labels
                only.
            max_iter: Number of passes over the training set. 5 is enough for quick experiments. With `patience` a large
                number does no harm.
            patience: Number of epochs without a better dev score after which training stops. 0 never stops. Used with a
                dev set only. Set it to 3 to 10 to save time.
            average: Average the weights over all steps. Keep it, since the last weights alone are less accurate. False
                is for experiments.
            constraints: Rules for valid label sequences, applied in training and decoding (auto, bio, IOBES ..., a
                mapping with scheme, forbidden, required, once, or None). Use "auto" for labels such as B-PER and I-PER,
                so that no invalid span is predicted.
            dictionary: Minimum count of a word for a tag dictionary, which allows the word only labels seen with it in
                training (integer >= 1, or a Dictionary, or None). Try 3 to 10 for parts of speech. None uses no
                dictionary.
            shuffle: Shuffle the sentences in every epoch, by `random_state`. Set it to False to reproduce results that
                depend on the order of the corpus.
            parts: Number of parts of the training set that are trained in parallel and mixed after each epoch. 2 to 4
                parts train faster with about the same accuracy. More lose some.
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

    def _rule(self, task: Task | RuleContext) -> _core.Rule:
        params = task.params
        return _core.Rule(self.name, variant=params["variant"], limit=params["C"], cost=self._cost(task))


class AROW(OnlineTagger):
    """Adaptive regularisation of weights (Crammer, Kulesza and Dredze 2009).

    Each weight has a variance that shrinks with every update, so that frequent features change less and less. It is
    designed to tolerate noisy labels. Scores are not probabilities.

    Attributes:
        model_: `Model` with the labels, features, weights and constraints that `predict` uses.
        classes_: Labels, in the type they had in training.
        history_: One dict per epoch. `objective` is the number of wrong tokens, `updates` the number of updates.
            With a dev set, `dev_score` is the score of the kept weights and `plain_dev_score` the score before
            averaging.
        objective_: Number of wrong tokens in the kept epoch.
        stopped_: Parameter that ended training and how, such as "max_iter=20 reached".
        converged_: False: online learners end by the number of epochs or by `patience`.
        gap_: None: online learners have no certificate.
        best_iteration_: Number of the epoch that was kept: the best on the dev set, or the last.
        metric_: Name of the metric of `score` and of dev scores.
        n_features_: Number of features.
        n_nonzero_: Number of features whose weight is not zero.
        state_: State of training from which `partial_fit` continues. Missing after `tagwise.load`.

    >>> X = [["the", "cat", "sleeps"], ["a", "dog", "barks"]]
    >>> y = [["DT", "NN", "VBZ"], ["DT", "NN", "VBZ"]]
    >>> AROW(features="S1", max_iter=5).fit(X, y).predict([["a", "cat", "barks"]])
    [['DT', 'NN', 'VBZ']]
    """

    name = "arow"
    _PARAMS: ClassVar[Domains] = {"r": Real(0.0, open_low=True), "variance": Real(0.0, open_low=True)}

    def __init__(
        self,
        *,
        features: FeatureSet = "default",
        r: float = 1.0,
        variance: float = 1.0,
        cost: str | Callable[..., Any] = "accuracy",
        max_iter: int = 20,
        patience: int = 0,
        average: bool = True,
        constraints: ConstraintsLike = None,
        dictionary: int | Dictionary | None = None,
        shuffle: bool = True,
        parts: int = 1,
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
            r: Regularization of one update: larger values make smaller updates. Try 0.1 to 10 on development data.
            variance: Initial variance of every weight. Only its ratio to `r` matters, so tune `r` instead.
            cost: Cost of a wrong path, the margin by which the gold path must beat it (accuracy, f1,
                precision_recall(alpha), ..., or a function). Use precision_recall(alpha), with alpha from 0 to 1, to
                trade recall for precision.
            max_iter: Number of passes over the training set. 5 is enough for quick experiments. With `patience` a large
                number does no harm.
            patience: Number of epochs without a better dev score after which training stops. 0 never stops. Used with a
                dev set only. Set it to 3 to 10 to save time.
            average: Average the weights over all steps. Keep it, since the last weights alone are less accurate. False
                is for experiments.
            constraints: Rules for valid label sequences, applied in training and decoding (auto, bio, IOBES ..., a
                mapping with scheme, forbidden, required, once, or None). Use "auto" for labels such as B-PER and I-PER,
                so that no invalid span is predicted.
            dictionary: Minimum count of a word for a tag dictionary, which allows the word only labels seen with it in
                training (integer >= 1, or a Dictionary, or None). Try 3 to 10 for parts of speech. None uses no
                dictionary.
            shuffle: Shuffle the sentences in every epoch, by `random_state`. Set it to False to reproduce results that
                depend on the order of the corpus.
            parts: Number of parts of the training set that are trained in parallel and mixed after each epoch. 2 to 4
                parts train faster with about the same accuracy. More lose some.
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

    def _rule(self, task: Task | RuleContext) -> _core.Rule:
        params = task.params
        return _core.Rule(self.name, gamma=params["r"], variance=params["variance"], cost=self._cost(task))

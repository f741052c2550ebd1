"""Online learners with a margin: MIRA, passive-aggressive, AROW."""

from __future__ import annotations

from typing import Any, ClassVar

import tagwise._core as _core
from tagwise.base.domains import Domains, Flag, Integer, Real
from tagwise.estimators.online import OnlineTagger, RuleContext
from tagwise.estimators.task import Task


class MIRA(OnlineTagger):
    """k-best MIRA: the smallest change of w by which the gold path beats each of the k best by its cost.

    >>> X = [["the", "cat", "sleeps"], ["a", "dog", "barks"]]
    >>> y = [["DT", "NN", "VBZ"], ["DT", "NN", "VBZ"]]
    >>> MIRA(features="S1", k=2, epochs=5).fit(X, y).predict([["a", "cat", "barks"]])
    [['DT', 'NN', 'VBZ']]
    """

    name = "mira"
    PARAMS: ClassVar[Domains] = {
        "k": Integer(1),
        "C": Real(0.0, open_low=True, optional=True),
        "augment": Flag(),
    }

    def __init__(
        self,
        *,
        features: Any = "default",
        k: int = 4,
        cost: Any = "accuracy",
        C: float | None = None,
        augment: bool = False,
        history: Any = None,
        pool: int = 128,
        document: bool = False,
        epochs: int = 20,
        average: bool = True,
        shuffle: bool = True,
        patience: int = 0,
        parts: int = 1,
        constraints: Any = None,
        dictionary: int | None = None,
        dictionary_share: float = 0.0,
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
            k: number of best paths that the gold path must beat
            cost: cost of a wrong path, which is the margin it is to be beaten by (accuracy, f1,
                precision_recall(alpha), ..., or a function)
            C: upper bound on the size of one update; None means unbounded
            augment: add the cost to the scores while searching, where it is a sum over tokens
            history: (m, p): cells of m labels, features on labels p back read off each cell's path; None is first order
                ((m, p) with m = 1, 2, 3 and p >= 1 or inf, or None)
            pool: with p = inf: the distance from which on labels share one table; nearer ones have a table each
            document: features on the labels of earlier tokens of the document with the same word
            epochs: passes over the training set
            average: average the weights over all steps; False keeps the last ones
            shuffle: shuffle the sentences in every epoch, by `seed`
            patience: with a dev set: epochs without a better dev score; 0 never stops
            parts: number of parts that are trained at the same time and mixed after each epoch; 1 is exact
            constraints: valid label sequences, in training and decoding (auto, bio, IOBES ..., a mapping with scheme,
                forbidden, required, once, or None)
            dictionary: words seen at least this often in training take only labels seen with them; None for no tag
                dictionary
            dictionary_share: smallest share of a word's tokens that brings a label into the dictionary
            start_end: features for the first and the last label of a sentence
            min_count: drop attributes seen less often in training
            all_pairs: also create features that never occur with the gold labels
            n_jobs: number of threads, at most one per core; None uses all cores. Results do not depend on it
            seed: seed of all random choices
            verbose: 1 shows a line of progress on a terminal or in a notebook, and logs every iteration to the logger
                `tagwise`
        """
        self._take(locals())

    def _rule(self, task: Task | RuleContext) -> _core.Rule:
        params = task.params
        return _core.Rule(self.name, k=params["k"], limit=params["C"], cost=self._cost(task))


class PassiveAggressive(OnlineTagger):
    """Passive-aggressive learning (Crammer et al. 2006): the best path alone, with slack linear (1) or squared (2).

    >>> X = [["the", "cat", "sleeps"], ["a", "dog", "barks"]]
    >>> y = [["DT", "NN", "VBZ"], ["DT", "NN", "VBZ"]]
    >>> PassiveAggressive(features="S1", epochs=5).fit(X, y).predict([["a", "cat", "barks"]])
    [['DT', 'NN', 'VBZ']]
    """

    name = "pa"
    PARAMS: ClassVar[Domains] = {"variant": Integer(0, 2), "C": Real(0.0, open_low=True)}

    def __init__(
        self,
        *,
        features: Any = "default",
        variant: int = 1,
        cost: Any = "accuracy",
        C: float = 1.0,
        epochs: int = 20,
        average: bool = True,
        shuffle: bool = True,
        patience: int = 0,
        parts: int = 1,
        constraints: Any = None,
        dictionary: int | None = None,
        dictionary_share: float = 0.0,
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
            variant: 0: no slack, 1: PA-I, 2: PA-II
            cost: cost of a wrong path, which is the margin it is to be beaten by (accuracy, f1,
                precision_recall(alpha), ..., or a function)
            C: aggressiveness
            epochs: passes over the training set
            average: average the weights over all steps; False keeps the last ones
            shuffle: shuffle the sentences in every epoch, by `seed`
            patience: with a dev set: epochs without a better dev score; 0 never stops
            parts: number of parts that are trained at the same time and mixed after each epoch; 1 is exact
            constraints: valid label sequences, in training and decoding (auto, bio, IOBES ..., a mapping with scheme,
                forbidden, required, once, or None)
            dictionary: words seen at least this often in training take only labels seen with them; None for no tag
                dictionary
            dictionary_share: smallest share of a word's tokens that brings a label into the dictionary
            start_end: features for the first and the last label of a sentence
            min_count: drop attributes seen less often in training
            all_pairs: also create features that never occur with the gold labels
            n_jobs: number of threads, at most one per core; None uses all cores. Results do not depend on it
            seed: seed of all random choices
            verbose: 1 shows a line of progress on a terminal or in a notebook, and logs every iteration to the logger
                `tagwise`
        """
        self._take(locals())

    def _rule(self, task: Task | RuleContext) -> _core.Rule:
        params = task.params
        return _core.Rule(self.name, variant=params["variant"], limit=params["C"], cost=self._cost(task))


class AROW(OnlineTagger):
    """Adaptive regularisation of weights (Crammer, Kulesza and Dredze 2009): a variance for every feature.

    >>> X = [["the", "cat", "sleeps"], ["a", "dog", "barks"]]
    >>> y = [["DT", "NN", "VBZ"], ["DT", "NN", "VBZ"]]
    >>> AROW(features="S1", epochs=5).fit(X, y).predict([["a", "cat", "barks"]])
    [['DT', 'NN', 'VBZ']]
    """

    name = "arow"
    PARAMS: ClassVar[Domains] = {"gamma": Real(0.0, open_low=True), "variance": Real(0.0, open_low=True)}

    def __init__(
        self,
        *,
        features: Any = "default",
        gamma: float = 1.0,
        variance: float = 1.0,
        cost: Any = "accuracy",
        epochs: int = 20,
        average: bool = True,
        shuffle: bool = True,
        patience: int = 0,
        parts: int = 1,
        constraints: Any = None,
        dictionary: int | None = None,
        dictionary_share: float = 0.0,
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
            gamma: regularization of one update; larger values make smaller updates
            variance: variance of every feature at the start
            cost: cost of a wrong path, which is the margin it is to be beaten by (accuracy, f1,
                precision_recall(alpha), ..., or a function)
            epochs: passes over the training set
            average: average the weights over all steps; False keeps the last ones
            shuffle: shuffle the sentences in every epoch, by `seed`
            patience: with a dev set: epochs without a better dev score; 0 never stops
            parts: number of parts that are trained at the same time and mixed after each epoch; 1 is exact
            constraints: valid label sequences, in training and decoding (auto, bio, IOBES ..., a mapping with scheme,
                forbidden, required, once, or None)
            dictionary: words seen at least this often in training take only labels seen with them; None for no tag
                dictionary
            dictionary_share: smallest share of a word's tokens that brings a label into the dictionary
            start_end: features for the first and the last label of a sentence
            min_count: drop attributes seen less often in training
            all_pairs: also create features that never occur with the gold labels
            n_jobs: number of threads, at most one per core; None uses all cores. Results do not depend on it
            seed: seed of all random choices
            verbose: 1 shows a line of progress on a terminal or in a notebook, and logs every iteration to the logger
                `tagwise`
        """
        self._take(locals())

    def _rule(self, task: Task | RuleContext) -> _core.Rule:
        params = task.params
        return _core.Rule(
            self.name, gamma=params["gamma"], variance=params["variance"], cost=self._cost(task)
        )

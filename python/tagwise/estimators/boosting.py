"""Sequence boosting: a model that is a readable list of features."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar, Literal, NamedTuple

if TYPE_CHECKING:
    from typing_extensions import Self

import numpy as np

import tagwise._core as _core
from tagwise.base.domains import Choice, Domains, Flag, Integer, Real
from tagwise.base.exceptions import ParameterError
from tagwise.dataset.layout import NamedLayout, feature_names
from tagwise.dataset.weights import length_weights
from tagwise.estimators.base import Tagger
from tagwise.estimators.task import Task
from tagwise.evaluation.scoring import Metric
from tagwise.features.types import FeatureSet
from tagwise.learners import boosting
from tagwise.learners.loop import Result
from tagwise.model.model import Model
from tagwise.model.prune import prune

#: For max_iter=None: number of features that all rounds choose together, fewest and most rounds.
TAKEN, FEWEST, MOST = 24_576, 6, 2000
#: For every=None: number of dev scores of a run.
BLOCKS = 200


def default_rounds(features_per_round: int) -> int:
    """Return the number of rounds that choose about `TAKEN` features in all."""
    return min(max(FEWEST, -(-TAKEN // features_per_round)), MOST)


class Round(NamedTuple):
    """One chosen feature. `log_loss` is the logarithm of the training loss after its step."""

    round: int
    kind: str  # node, edge, start or end
    attribute: str  # for an edge the previous label, empty for start and end
    label: str
    step: float
    bound: float
    log_loss: float


class Boosting(Tagger):
    """AdaBoost.MR for label sequences (Altun, Hofmann and Johnson 2002).

        minimise  sum_i w_i (e^{l_i} - 1),  l_i = -log P(y_i | x_i)      (loss="exp")
                  sum_i w_i sum_t (1 / p_t(gold) - 1)                    (loss="pointwise_exp")

    Each round chooses the features whose upper bounds on the loss after their best steps are smallest. The model has
    only the chosen features, so that it is small and `rounds_` can be read as an explanation. The default is six rounds
    of up to 4096 features, on pieces of at most five tokens; `features_per_round=1` is the algorithm of the paper.

    Attributes:
        model_: `Model` with the labels, features, weights and constraints that `predict` uses.
        classes_: Labels, in the type they had in training.
        history_: One dict per `every` rounds. Its `objective` is the logarithm of the loss; `rounds`, `chosen` and
            `nonzero` count rounds, chosen features and weights that are not zero.
        objective_: Logarithm of the training loss after the kept rounds.
        stopped_: Parameter that ended training and how, such as "max_iter=6 reached".
        converged_: Whether no feature decreases the loss further.
        gap_: None: boosting has no certificate.
        best_iteration_: Number of the entry of `history_` that was kept: the best on the dev set, or the last.
        metric_: Name of the metric of `score` and of dev scores.
        n_features_: Number of features.
        n_nonzero_: Number of features whose weight is not zero.
        rounds_: Chosen features in order, each a `Round` with its step and the logarithm of the loss.

    >>> X = [["the", "cat", "sleeps"], ["a", "dog", "barks"]]
    >>> y = [["DT", "NN", "VBZ"], ["DT", "NN", "VBZ"]]
    >>> tagger = Boosting(features="S1", max_iter=5, features_per_round=1).fit(X, y)
    >>> len(tagger.rounds_), tagger.n_features_ <= 5
    (5, True)
    """

    name = "boosting"
    _PARAMS: ClassVar[Domains] = {
        "max_iter": Integer(0, optional=True),
        "loss": Choice(_core.BOOSTED),
        "bound": Choice(_core.BOUNDS),
        "over": Choice(_core.SUMS),
        "step": Choice(("joint", "bound", "line_search")),
        "features_per_round": Integer(1),
        "overlap": Flag(),
        "candidates": Real(0.0, 1.0, open_low=True),
        "epsilon": Real(0.0, optional=True),
        "max_step": Real(0.0, open_low=True),
        "balance": Flag(),
        "every": Integer(1, optional=True),
    }

    _steps: boosting.Steps

    def __init__(
        self,
        *,
        features: FeatureSet = "default",
        loss: Literal["exp", "pointwise_exp"] = "exp",
        features_per_round: int = 4096,
        max_iter: int | None = None,
        patience: int = 0,
        max_length: int | None = 5,
        pi: float = 1.0,
        step: Literal["joint", "bound", "line_search"] = "joint",
        max_step: float = 5.0,
        epsilon: float | None = None,
        bound: Literal["loose", "tight", "exact"] = "tight",
        over: Literal["wrong", "all"] = "wrong",
        overlap: bool = True,
        candidates: float = 1.0,
        balance: bool = False,
        every: int | None = None,
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
            loss: Exponential loss to minimise, of label sequences (exp) or of single labels (pointwise_exp). Use
                pointwise_exp for long sentences, which dominate exp.
            features_per_round: Maximum number of features chosen per round. Set it to 1 for the algorithm of the paper
                and a list of features in order of importance. Large values train much faster.
            max_iter: Maximum number of rounds. None chooses 24576 features in all, in 6 to 2000 rounds. Raise it if the
                dev score still rises in the last rounds.
            patience: Number of dev scores without a better one after which training stops. 0 never stops. Used with a
                dev set only. Set it to 5 to 20 to save time.
            max_length: Maximum length of a training sentence. Longer ones are cut into pieces. None trains on whole
                sentences. Raise it to 10 to 20 if most sentences have about this length.
            pi: Base of the weight c pi^T of a sentence of T tokens, where c makes the mean weight 1. Lower it to 0.5 to
                0.99 if long sentences dominate the loss, as they do in exponential losses.
            step: Choice of the step sizes: joint optimises those of a round together, bound takes those of the bounds,
                line_search refines them on the loss. Use bound to reproduce the paper.
            max_step: Upper bound on the size of one step. Lower it to 1 or 2 if rare attributes dominate the model.
            epsilon: Amount added to both sides of the ratio of a step, in units of the loss. None means 1 / sentences.
                Raise it if rare attributes get large steps.
            bound: Bound by which features are chosen: from one range for all sentences (loose), from one per sentence
                (tight), or the loss itself (exact). Use exact for tiny corpora only.
            over: Label sequences that the loss sums over: the wrong ones, as in the paper, or the gold one too. Use all
                for smaller steps on sentences that are nearly learnt.
            overlap: Allow the features of a round to share sentences. The steps of bounds are then damped until the
                loss falls enough. Set it to False for gains that add up exactly.
            candidates: Fraction of the features that may be chosen in a round, drawn by `random_state` in every round.
                Lower it to 0.1 to 0.5 for more varied features.
            balance: Divide the weight of a sentence by its number of wrong paths (or labels), so that all sentences
                start with equal weight. Use it with max_length=None.
            every: Number of rounds between two dev scores and callbacks. None is a 200th of all rounds. Raise it if
                scoring the dev set takes longer than training.
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

    def _store_result(self, task: Task, result: Result) -> Self:
        """Set the learned attributes, with a model of the chosen features only."""
        super()._store_result(task, result)
        keep = self.model_.scorer.weights != 0.0
        keep[self._steps["feature"]] = True
        model, index = prune(self.model_, keep)
        steps = {**self._steps, "feature": index[self._steps["feature"]].astype(np.uint32)}
        metrics = {**model.meta["metrics"], "features": len(keep), "chosen": int(keep.sum())}
        self.model_ = replace(
            model.with_meta(metrics=metrics), arrays={f"boosting.{name}": steps[name] for name in steps}
        )
        del self._steps
        return self

    def _train(self, task: Task) -> Result:
        params, data, sample_weight = task.params, task.data, task.sample_weight
        if data.n_edge_attributes:
            raise ParameterError(
                "features: boosting does not support edge attributes. Remove them, or use another learner"
            )
        pointwise = params["loss"] == "pointwise_exp"
        if pointwise and params["bound"] == "exact":
            raise ParameterError(
                'bound: loss="pointwise_exp" has no exact bound. Use bound="tight" with step="line_search", or '
                'loss="exp"'
            )
        if params["max_length"] is not None:
            data, piece_of = data.cut(params["max_length"])
            sample_weight = None if sample_weight is None else sample_weight[piece_of]
        sample_weight = length_weights(
            data,
            params["pi"],
            sample_weight,
            exponential=True,
            penalised=False,
            labels=len(task.labels) if params["balance"] else None,
            pointwise=pointwise,
        )
        epsilon = params["epsilon"]
        chosen = _core.Rounds(
            params["bound"],
            line_search=params["step"] == "line_search",
            joint=params["step"] == "joint",
            smoothing=1.0 / max(len(data), 1) if epsilon is None else epsilon,
            max_step=params["max_step"],
            candidates=params["candidates"],
            features_per_round=params["features_per_round"],
            overlap=params["overlap"],
            seed=params["random_state"],
        )
        booster = _core.Boosting(
            data,
            task.layout,
            chosen,
            loss=params["loss"],
            over=params["over"],
            sample_weight=sample_weight,
            start=task.start,
            n_jobs=task.n_jobs,
        )
        rounds, every = params["max_iter"], params["every"]
        rounds = default_rounds(params["features_per_round"]) if rounds is None else rounds
        result, self._steps = boosting.train(
            booster,
            rounds,
            max(1, rounds // BLOCKS) if every is None else every,
            params["patience"],
            dev_score=task.dev_score,
            callbacks=task.callbacks,
            checkpointer=task.checkpointer,
        )
        return result

    @property
    def rounds_(self) -> list[Round]:
        """Chosen features in order, with their steps and the logarithm of the loss after each."""
        return rounds(self._fitted())


def rounds(model: Model) -> list[Round]:
    """Return the chosen features of a boosted model, or an empty list for any other model."""
    if "boosting.feature" not in model.arrays:
        return []
    columns = [model.arrays[f"boosting.{name}"].tolist() for name in boosting.COLUMNS]
    named = NamedLayout(model.scorer.layout, model.vocabulary, model.labels)
    names = feature_names(named, model.arrays["boosting.feature"].tolist())
    return [
        Round(number, *names[feature], step, bound, log_loss)
        for number, feature, step, bound, log_loss in zip(*columns)
    ]

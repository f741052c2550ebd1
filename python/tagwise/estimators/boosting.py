"""Sequence boosting: an ensemble of features that can be read."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np

import tagwise._core as _core
from tagwise.base.domains import Choice, Domains, Flag, Integer, Real
from tagwise.base.exceptions import ParameterError
from tagwise.dataset.layout import Named, feature_names
from tagwise.dataset.weights import length_weights
from tagwise.estimators.base import Tagger
from tagwise.estimators.task import Task
from tagwise.learners import boosting
from tagwise.learners.loop import Result
from tagwise.model.model import Model
from tagwise.model.prune import prune

#: Where no number of rounds is asked for: features that all take, fewest and most rounds.
TAKEN, FEWEST, MOST = 24_576, 6, 2000
#: Rounds between two dev scores where none are asked for, as a part of all.
BLOCKS = 200


def default_rounds(features_per_round: int) -> int:
    """As many rounds as take about the same number of features, whatever a round takes."""
    return min(max(FEWEST, -(-TAKEN // features_per_round)), MOST)


class Round(NamedTuple):
    """One chosen feature: `log_loss` is the logarithm of the training loss after its step."""

    round: int
    kind: str  # node, edge, start or end
    attribute: str  # of an edge the label before; empty for start and end
    label: str
    step: float
    bound: float
    log_loss: float


class Boosting(Tagger):
    """AdaBoost.MR for label sequences (Altun, Hofmann and Johnson 2002).

        minimise  sum_i w_i (e^{l_i} - 1),  l_i = -log P(y_i | x_i)      (loss="exp")
                  sum_i w_i sum_t (1 / p_t(gold) - 1)                    (loss="pointwise_exp")

    some weights a round: those features are taken whose upper bounds on the loss after their best steps are smallest.
    The model has only the features that were chosen; `rounds_` lists them in order. As it comes there are six
    rounds of up to 4096 features, on pieces of at most five tokens; `features_per_round=1` is the paper's algorithm.

    >>> X = [["the", "cat", "sleeps"], ["a", "dog", "barks"]]
    >>> y = [["DT", "NN", "VBZ"], ["DT", "NN", "VBZ"]]
    >>> tagger = Boosting(features="S1", rounds=5, features_per_round=1).fit(X, y)
    >>> len(tagger.rounds_), tagger.n_features_ <= 5
    (5, True)
    """

    name = "boosting"
    PARAMS: ClassVar[Domains] = {
        "rounds": Integer(0, optional=True),
        "loss": Choice(_core.BOOSTED),
        "bound": Choice(_core.BOUNDS),
        "over": Choice(_core.SUMS),
        "step": Choice(("joint", "bound", "line_search")),
        "features_per_round": Integer(1),
        "overlap": Flag(),
        "candidates": Real(0.0, 1.0, open_low=True),
        "smoothing": Real(0.0, optional=True),
        "max_step": Real(0.0, open_low=True),
        "balance": Flag(),
        "every": Integer(1, optional=True),
    }

    _steps: boosting.Steps
    _n_candidates: int

    def __init__(
        self,
        *,
        features: Any = "default",
        rounds: int | None = None,
        loss: Literal["exp", "pointwise_exp"] = "exp",
        bound: Literal["loose", "tight", "exact"] = "tight",
        over: Literal["wrong", "all"] = "wrong",
        step: Literal["joint", "bound", "line_search"] = "joint",
        features_per_round: int = 4096,
        overlap: bool = True,
        candidates: float = 1.0,
        smoothing: float | None = None,
        max_step: float = 5.0,
        pi: float = 1.0,
        balance: bool = False,
        max_length: int | None = 5,
        every: int | None = None,
        patience: int = 0,
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
            rounds: maximum number of rounds; None for the number that takes 24576 features in all, at least 6 and at
                most 2000
            loss: what is minimised: the exponential loss of label sequences, or of single labels (pointwise)
            bound: how features are judged: one range for all sentences, one for each, or the loss itself (tiny corpora)
            over: label sequences that the loss sums over: the wrong ones as in the paper, or the gold one too
            step: steps of a round: found together where its features share sentences; or the bounds', or by line search
            features_per_round: maximum number of features per round
            overlap: the features of a round may share sentences; bounds' steps are then damped until the loss falls
                enough
            candidates: fraction of the features that may be chosen in a round, drawn by `seed` in every round
            smoothing: added to both sides of a step's ratio, in units of the loss; None for 1 / sentences
            max_step: largest step
            pi: weight c pi^T of a sentence of T tokens; the mean weight is 1
            balance: divide the weight of a sentence by its number of wrong paths (or labels), so that all begin with
                equal weight
            max_length: cut longer sentences into pieces for training; None for whole sentences
            every: rounds between two callbacks and dev scores; None for a 200th of all
            patience: with a dev set: dev scores without a better one; 0 never stops
            start_end: features for the first and the last label of a sentence
            min_count: drop attributes seen less often in training
            all_pairs: also create features that never occur with the gold labels
            n_jobs: number of threads, at most one per core; None uses all cores. Results do not depend on it
            seed: seed of all random choices
            verbose: 1 shows a line of progress on a terminal or in a notebook, and logs every iteration to the logger
                `tagwise`
        """
        self._take(locals())

    def _keep(self, task: Task, result: Result) -> Tagger:
        """Be fitted, with the chosen features alone."""
        super()._keep(task, result)
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
                "features: boosting does not take edge attributes; leave them out, or use another learner"
            )
        pointwise = params["loss"] == "pointwise_exp"
        if pointwise and params["bound"] == "exact":
            raise ParameterError(
                'bound: loss="pointwise_exp" has no exact bound; use bound="tight" with step="line_search", or '
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
        smoothing = params["smoothing"]
        chosen = _core.Rounds(
            params["bound"],
            line_search=params["step"] == "line_search",
            joint=params["step"] == "joint",
            smoothing=1.0 / max(len(data), 1) if smoothing is None else smoothing,
            max_step=params["max_step"],
            candidates=params["candidates"],
            features_per_round=params["features_per_round"],
            overlap=params["overlap"],
            seed=params["seed"],
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
        rounds, every = params["rounds"], params["every"]
        rounds = default_rounds(params["features_per_round"]) if rounds is None else rounds
        result, self._steps = boosting.train(
            booster,
            rounds,
            max(1, rounds // BLOCKS) if every is None else every,
            params["patience"],
            dev_score=task.dev_score,
            callbacks=task.callbacks,
            keeper=task.keeper,
        )
        return result

    @property
    def rounds_(self) -> list[Round]:
        """The chosen features in order, with their steps and the logarithm of the loss after each."""
        return rounds(self._fitted())


def rounds(model: Model) -> list[Round]:
    """The chosen features of a boosted model; none for any other."""
    if "boosting.feature" not in model.arrays:
        return []
    columns = [model.arrays[f"boosting.{name}"].tolist() for name in boosting.COLUMNS]
    named = Named(model.scorer.layout, model.vocabulary, model.labels)
    names = feature_names(named, model.arrays["boosting.feature"].tolist())
    return [
        Round(number, *names[feature], step, bound, log_loss)
        for number, feature, step, bound, log_loss in zip(*columns)
    ]

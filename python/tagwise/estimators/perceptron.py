"""The structured perceptron."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar, Literal

import numpy as np

import tagwise._core as _core
from tagwise.base.domains import Choice, Domains, Integer
from tagwise.base.exceptions import ParameterError
from tagwise.base.parameters import require
from tagwise.estimators.kernel import Kernelised
from tagwise.estimators.limits import Limits
from tagwise.estimators.online import FIRST_ORDER, OnlineTagger, RuleContext, epochs_of
from tagwise.estimators.task import Task
from tagwise.learners import online
from tagwise.learners.loop import Result
from tagwise.model.model import Model
from tagwise.optimizers.base import Vector
from tagwise.scores.voters import Ballot

#: Parameters that voters and kernels require: one sentence after the other, first order.
ONE_BY_ONE = {**FIRST_ORDER, "mode": ("online",), "parts": (1,)}


class Perceptron(Kernelised, OnlineTagger):
    """Structured perceptron (Collins 2002), averaged by default.

    Each sentence whose best path differs from the gold path updates the weights: w += S(gold) - S(best path). Training
    is much faster than that of a CRF, and `partial_fit` continues it with more sentences. Scores are not probabilities.

    With a kernel the perceptron is trained in its dual form: node scores come from support tokens, and transitions keep
    their weights.

    Attributes:
        model_: `Model` with the labels, features, weights and constraints that `predict` uses.
        classes_: Labels, in the type they had in training.
        history_: One dict per epoch. `objective` is the number of wrong tokens, `updates` the number of updates.
            With a dev set, `dev_score` is the score of the kept weights and `plain_dev_score` the score before
            averaging.
        objective_: Number of wrong tokens in the kept epoch.
        stopped_: Parameter that ended training and how, such as "epochs=20 reached".
        converged_: False: online learners end by the number of epochs or by `patience`.
        gap_: None: online learners have no certificate.
        best_iteration_: Number of the epoch that was kept: the best on the dev set, or the last.
        n_features_: Number of features.
        n_nonzero_: Number of features whose weight is not zero.
        state_: State of training from which `partial_fit` continues. Missing with a kernel, `history` or `document`,
            and after `tagwise.load`.
        n_support_: Number of support tokens; 0 without a kernel.

    >>> X = [["the", "cat", "sleeps"], ["a", "dog", "barks"]]
    >>> y = [["DT", "NN", "VBZ"], ["DT", "NN", "VBZ"]]
    >>> tagger = Perceptron(features="S1", epochs=5).fit(X, y)
    >>> tagger.partial_fit([["the", "bird", "sings"]], [["DT", "NN", "VBZ"]]).predict([["a", "bird", "barks"]])
    [['DT', 'NN', 'VBZ']]
    """

    name = "perceptron"
    PARAMS: ClassVar[Domains] = {
        "mode": Choice(("online", "batch")),
        "voters": Integer(0),
        "budget": Integer(1, optional=True),
    }
    explicit = (None, "none")

    def __init__(
        self,
        *,
        features: Any = "default",
        mode: Literal["online", "batch"] = "online",
        voters: int = 0,
        history: Any = None,
        pool: int = 128,
        document: bool = False,
        kernel: Any = None,
        degree: int = 2,
        coef: float = 1.0,
        gamma: float | None = None,
        form: Literal["auto", "rows", "expanded"] = "auto",
        cache_mb: int = 256,
        budget: int | None = None,
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
        """Store the parameters, which `fit` checks.

        Args:
            features: Feature set that turns tokens into attributes (S1, S2, S3, S3(window=2), pos, ner, default, a
                template, a function, or attributes). Start with "default". Write a template or a function if you know
                which context matters.
            mode: Time of the updates: online applies each one at once, batch applies those of an epoch at its end. Use
                batch to reproduce results. It learns more slowly.
            voters: Maximum number of weight vectors of training that vote on a prediction, at least one per epoch. 0
                predicts with a single vector. Try 20 to 100 if slow prediction is acceptable.
            history: Labels further back that features depend on ((m, p) with m = 1, 2, 3 and p >= 1 or inf, or None): a
                search state has m labels, and features read labels up to p back along its best path. None is first
                order. Try (1, 2) for names.
            pool: Distance from which on all labels share one weight table, with p = inf. Nearer labels have a table
                each. Lower it to 4 to 16 for small corpora.
            document: Add features on the labels of earlier tokens of the document with the same word. Set it to True
                for names, if the corpus marks its documents.
            kernel: Similarity of the attributes of two tokens (linear, poly, rbf, module:function, or a function of two
                blocks of tokens). Transitions stay linear. None learns a weight per feature. Use "poly" for hundreds of
                sentences whose attributes matter in combination.
            degree: Degree of the poly kernel (coef + gamma <x, x'>)^degree. 2 covers all pairs of attributes. 3 and
                above overfit easily.
            coef: Constant of the poly kernel (coef + gamma <x, x'>)^degree. Raise it, up to 10, to weigh single
                attributes more than their products.
            gamma: Factor of <x, x'> in poly and of ||x - x'||^2 in rbf. None is 1 in poly and 1 over the mean of
                ||x||^2 in rbf. Try a tenth to ten times the default.
            form: Evaluation of the kernel: rows of the kernel matrix, or poly of degree 2 expanded into products. The
                model is the same. Auto takes the cheaper form. Name one if auto is slow.
            cache_mb: Megabytes of memory for kernel rows while training. Raise it if training with a kernel is slow and
                there is memory to spare.
            budget: Maximum number of support tokens, with a kernel. None means unlimited. Set it to some thousands if
                the model is too large or predicts too slowly.
            epochs: Number of passes over the training set. 5 is enough for quick experiments. With `patience` a large
                number does no harm.
            average: Average the weights over all steps. Keep it, since the last weights alone are less accurate. False
                is for experiments.
            shuffle: Shuffle the sentences in every epoch, by `seed`. Set it to False to reproduce results that depend
                on the order of the corpus.
            patience: Number of epochs without a better dev score after which training stops. 0 never stops. Used with a
                dev set only. Set it to 3 to 10 to save time.
            parts: Number of parts of the training set that are trained in parallel and mixed after each epoch. 2 to 4
                parts train faster with about the same accuracy. More lose some.
            constraints: Rules for valid label sequences, applied in training and decoding (auto, bio, IOBES ..., a
                mapping with scheme, forbidden, required, once, or None). Use "auto" for labels such as B-PER and I-PER,
                so that no invalid span is predicted.
            dictionary: Minimum count of a word in training for a tag dictionary, which allows the word only labels seen
                with it. None uses no dictionary. Try 3 to 10 for parts of speech. 1 is too strict.
            dictionary_share: Minimum share of a word's tokens with a label for the dictionary to allow this label.
                Raise it to 0.01 to 0.05 if annotation errors fill the dictionary.
            start_end: Learn weights for the first and the last label of a sentence. Set it to False if sentences are
                cut at arbitrary places.
            min_count: Minimum count of an attribute in training. Rarer attributes are dropped. Raise it to 2 to 5 for
                smaller models and faster training.
            all_pairs: Create features for pairs of attribute and label, and of two labels, that do not occur in
                training. Set it to True for slightly better accuracy at several times the size.
            n_jobs: Number of threads, at most one per core. None uses all cores. Lower it to leave cores to other
                programs. Results do not depend on it.
            seed: Seed of all random choices. Change it to measure how much results vary. The same seed gives the same
                model.
            verbose: Verbosity: 1 shows a progress line on a terminal or in a notebook and logs every iteration to the
                logger `tagwise`. Use it for long training runs.
        """
        self._store_params(locals())

    def _rule(self, task: Task | RuleContext) -> _core.Rule:
        return _core.Rule(self.name)

    def _voted(self, task: Task) -> Result:
        """Train and keep weight vectors for voting. Those after the best epoch are dropped."""
        params = task.params
        require("voters", params, {"kernel": self.explicit, **ONE_BY_ONE})
        if params["voters"] < params["epochs"]:
            raise ParameterError(
                f"voters={params['voters']}: expected at least one per epoch, that is epochs={params['epochs']}"
            )
        task.ballot = Ballot(len(task.data), params["epochs"], params["voters"])
        result = super()._train(task)
        task.ballot.keep(result.best_iteration)
        return result

    def _model(self, task: Task, w: Vector) -> Model:
        model = super()._model(task, w)
        return model if task.ballot is None else replace(model, arrays=task.ballot.arrays())

    def _train(self, task: Task) -> Result:
        kernel, params = self._kernel(task.params, task.data), task.params
        if params["voters"]:
            return self._voted(task)
        if kernel is None:
            return super()._train(task)
        require("a kernel", params, ONE_BY_ONE)
        self._check_supported(task)
        self.__dict__.pop("state_", None)
        learner = _core.KernelPerceptron(
            task.data,
            task.layout,
            kernel.spec(task.layout.n_attributes, params["form"], params["cache_mb"] << 20),
            epochs=epochs_of(params),
            budget=params["budget"],
            limits=(task.limits or Limits()).native,
            sample_weight=None if task.sample_weight is None else task.sample_weight.astype(np.float32),
        )
        return online.train(
            learner,
            params["epochs"],
            params["patience"],
            averaged=params["average"],
            dev_score=task.dev_score,
            callbacks=task.callbacks,
            checkpointer=task.checkpointer,
        )

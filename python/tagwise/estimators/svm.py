"""The hidden Markov SVM."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

import tagwise._core as _core
from tagwise.base.domains import Anything, Choice, Domains, Integer, Real
from tagwise.base.exceptions import ParameterError
from tagwise.base.options import Dictionary, KernelLike
from tagwise.dataset.weights import length_weights
from tagwise.estimators.base import Tagger
from tagwise.estimators.kernel import Kernelised
from tagwise.estimators.limits import Limits
from tagwise.estimators.task import Task
from tagwise.evaluation.scoring import Metric
from tagwise.features.types import FeatureSet
from tagwise.learners import svm
from tagwise.learners.loop import Result
from tagwise.scores.constraints import ConstraintsLike

#: Wrong paths per sentence that have a slack with slack="sequence".
MAX_PATHS = 50


def _slack(given: Any) -> Any:
    """Return "instance", or ("sequence", n) for one slack per wrong path."""
    if given == "instance":
        return given
    if isinstance(given, str):
        name, colon, paths = given.partition(":")
        given = (name, int(paths) if colon else MAX_PATHS)
    if isinstance(given, (list, tuple)) and len(given) == 2 and given[0] == "sequence":
        paths = Integer(1).convert(given[1])
        if Integer(1).holds(paths):
            return "sequence", paths
    raise ValueError(f"expected {SLACK.describe()}")


SLACK = Anything("instance, sequence, or (sequence, n)", function=_slack)


class HMSVM(Kernelised, Tagger):
    """Hidden Markov SVM (Altun, Tsochantaridis and Hofmann 2003).

        min 1/2 ||w||^2 + C sum_i xi_i   s.t.   1/2 [H(y_i) - H(y)] >= 1 - xi_i   for all y != y_i

    Training works on sets of wrong paths and ends at a certified duality gap. Use it for a few hundred clean sentences
    or with a kernel, and set `rescale="margin"`. It does not tolerate noisy labels. Scores are not probabilities.

    Attributes:
        model_: `Model` with the labels, features, weights and constraints that `predict` uses.
        classes_: Labels, in the type they had in training.
        history_: One dict per epoch. Its `objective` is the primal value; `dual`, `gap`, `slack` (sum of xi),
            `violated` sentences, `paths` with a multiplier, `decoded` sentences and `truncated` describe the solver.
        objective_: Primal objective of the kept weights.
        stopped_: Parameter that ended training and how, such as "max_iter=100 reached".
        converged_: Whether training reached its tolerance or found no better weights.
        gap_: Bound of the relative distance of `objective_` from the optimum, or None without a certificate.
        best_iteration_: Number of the epoch that was kept: the best on the dev set, or the last.
        metric_: Name of the metric of `score` and of dev scores.
        n_features_: Number of features.
        n_nonzero_: Number of features whose weight is not zero.
        n_support_: Number of support tokens; 0 without a kernel.

    >>> X = [["the", "cat", "sleeps"], ["a", "dog", "barks"]]
    >>> y = [["DT", "NN", "VBZ"], ["DT", "NN", "VBZ"]]
    >>> tagger = HMSVM(features="S1", C=1.0).fit(X, y)
    >>> tagger.predict([["a", "cat", "barks"]]), tagger.history_[-1]["gap"] <= 0.01
    ([['DT', 'NN', 'VBZ']], True)
    """

    name = "hmsvm"
    _starts_warm = False
    _PARAMS: ClassVar[Domains] = {
        "C": Real(0.0, open_low=True),
        "slack": SLACK,
        "rescale": Choice(("margin",), optional=True),
        "max_iter": Integer(1),
    }

    def __init__(
        self,
        *,
        features: FeatureSet = "default",
        C: float = 1.0,
        kernel: KernelLike = None,
        rescale: Literal["margin"] | None = None,
        max_iter: int = 100,
        tol: float = 0.01,
        patience: int = 0,
        constraints: ConstraintsLike = None,
        dictionary: int | Dictionary | None = None,
        slack: Literal["instance", "sequence"] | tuple[Literal["sequence"], int] = "instance",
        pi: float = 1.0,
        shuffle: bool = True,
        min_count: int = 1,
        all_pairs: bool = True,
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
            C: Price of a violated margin. Larger values fit the training data more closely and train longer. Try 0.1 to
                10 on development data, 0.01 to 1 with a kernel.
            kernel: Similarity of the attributes of two tokens (linear, poly, rbf, module:function, a function of two
                blocks of tokens, or a Kernel, or None). None learns a weight per feature. Use "poly" for hundreds of
                sentences whose attributes matter in combination.
            rescale: Size of the margin: 1 for every wrong path if None, as in the paper, or the number of wrong labels
                if margin. Use margin unless you reproduce the paper. It is usually more accurate.
            max_iter: Maximum number of epochs. Raise it if `stopped_` says that it was reached, as with a large C.
            tol: Relative duality gap (primal - dual) / primal at which training stops. Lower it to 1e-3 to compare
                objectives. Accuracy rarely gains.
            patience: Number of epochs without a better dev score after which training stops. 0 never stops. Used with a
                dev set only. Set it to 3 to 10 to save time.
            constraints: Rules for valid label sequences, applied in training and decoding (auto, bio, IOBES ..., a
                mapping with scheme, forbidden, required, once, or None). Use "auto" for labels such as B-PER and I-PER,
                so that no invalid span is predicted.
            dictionary: Minimum count of a word for a tag dictionary, which allows the word only labels seen with it in
                training (integer >= 1, or a Dictionary, or None). Try 3 to 10 for parts of speech. None uses no
                dictionary.
            slack: Slack variables (instance, sequence, or (sequence, n)): one per sentence, or one for each of up to n
                wrong paths of a sentence, by default 50. "sequence" bounds the rank loss and is slow. Raise n if
                `truncated` in `history_` is True.
            pi: Base of the weight c pi^T of a sentence of T tokens, where c makes the mean weight 1. Lower it to 0.5 to
                0.99 if long sentences dominate the loss, as they do in exponential losses.
            shuffle: Shuffle the sentences in every epoch, by `random_state`. Set it to False to reproduce results that
                depend on the order of the corpus.
            min_count: Minimum count of an attribute in training. Rarer attributes are dropped. Raise it to 2 to 5 for
                smaller models and faster training.
            all_pairs: Create features for all pairs of attribute and label, as in the paper. Set it to False for a
                several times smaller model with the pairs that occur in training.
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

    def _train(self, task: Task) -> Result:
        params, kernel = task.params, self._kernel(task.params, task.data)
        self._check_supported(task)
        if kernel is not None and params["kernel"].budget is not None:
            raise ParameterError(
                f"{params['kernel']!r}: HMSVM keeps all support tokens. Leave budget out, or use Perceptron"
            )
        slack, paths = params["slack"] if isinstance(params["slack"], tuple) else (params["slack"], MAX_PATHS)
        margins = _core.Margins(
            params["C"],
            slack=slack,
            rescale=params["rescale"] == "margin",
            tolerance=params["tol"],
            most=paths,
            shuffle=params["shuffle"],
            seed=params["random_state"],
        )
        common: dict[str, Any] = {
            "limits": (task.limits or Limits()).native,
            "sample_weight": length_weights(task.data, params["pi"], task.sample_weight, exponential=False),
            "n_jobs": task.n_jobs,
        }
        solver: svm.Solver
        if kernel is None:
            solver = _core.Svm(task.data, task.layout, margins, **common)
        else:
            native = self._native_kernel(kernel, task)
            solver = _core.KernelSvm(task.data, task.layout, native, margins, **common)
        return svm.train(
            solver,
            params["max_iter"],
            params["tol"],
            params["patience"],
            dev_score=task.dev_score,
            callbacks=task.callbacks,
            checkpointer=task.checkpointer,
        )

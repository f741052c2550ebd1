"""The hidden Markov SVM."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

import tagwise._core as _core
from tagwise.base.domains import Choice, Domains, Integer, Real
from tagwise.dataset.weights import length_weights
from tagwise.estimators.base import Tagger
from tagwise.estimators.kernel import Kernelised
from tagwise.estimators.limits import Limits
from tagwise.estimators.task import Task
from tagwise.learners import svm
from tagwise.learners.loop import Result


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
        stopped_: Parameter that ended training and how, such as "max_epochs=100 reached".
        converged_: Whether training reached its tolerance or found no better weights.
        gap_: Bound of the relative distance of `objective_` from the optimum, or None without a certificate.
        best_iteration_: Number of the epoch that was kept: the best on the dev set, or the last.
        n_features_: Number of features.
        n_nonzero_: Number of features whose weight is not zero.
        n_support_: Number of support tokens; 0 if kernel="linear".

    >>> X = [["the", "cat", "sleeps"], ["a", "dog", "barks"]]
    >>> y = [["DT", "NN", "VBZ"], ["DT", "NN", "VBZ"]]
    >>> tagger = HMSVM(features="S1", C=1.0).fit(X, y)
    >>> tagger.predict([["a", "cat", "barks"]]), tagger.history_[-1]["gap"] <= 0.01
    ([['DT', 'NN', 'VBZ']], True)
    """

    name = "hmsvm"
    starts_warm = False
    PARAMS: ClassVar[Domains] = {
        "C": Real(0.0, open_low=True),
        "slack": Choice(_core.SLACKS),
        "rescale": Choice(("margin",), optional=True),
        "max_epochs": Integer(1),
        "max_paths": Integer(1),
    }

    explicit = ("linear",)

    def __init__(
        self,
        *,
        features: Any = "default",
        C: float = 1.0,
        pi: float = 1.0,
        slack: Literal["instance", "sequence"] = "instance",
        rescale: Literal["margin"] | None = None,
        kernel: Any = "linear",
        degree: int = 2,
        coef: float = 1.0,
        gamma: float | None = None,
        form: Literal["auto", "rows", "expanded"] = "auto",
        cache_mb: int = 256,
        tol: float = 0.01,
        max_epochs: int = 100,
        max_paths: int = 50,
        patience: int = 0,
        shuffle: bool = True,
        constraints: Any = None,
        dictionary: int | None = None,
        dictionary_share: float = 0.0,
        start_end: bool = True,
        min_count: int = 1,
        n_jobs: int | None = None,
        seed: int = 0,
        verbose: int = 0,
        all_pairs: bool = True,
    ) -> None:
        """Store the parameters, which `fit` checks.

        Args:
            features: Feature set that turns tokens into attributes (S1, S2, S3, S3(window=2), pos, ner, default, a
                template, a function, or attributes). Start with "default". Write a template or a function if you know
                which context matters.
            C: Price of a violated margin. Larger values fit the training data more closely and train longer. Try 0.1 to
                10 on development data, 0.01 to 1 with a kernel.
            pi: Base of the weight c pi^T of a sentence of T tokens, where c makes the mean weight 1. Lower it to 0.5 to
                0.99 if long sentences dominate the loss, as they do in exponential losses.
            slack: Slack variables: one per sentence (instance), or one per wrong path (sequence), which bounds the rank
                loss. Use sequence for short sentences only. It is slow.
            rescale: Size of the margin: 1 for every wrong path if None, as in the paper, or the number of wrong labels
                if margin. Use margin unless you reproduce the paper. It is usually more accurate.
            kernel: Similarity of the attributes of two tokens (linear, poly, rbf, module:function, or a function of two
                blocks of tokens). Transitions stay linear. "linear" learns a weight per feature. Use "poly" for
                hundreds of sentences whose attributes matter in combination.
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
            tol: Relative duality gap (primal - dual) / primal at which training stops. Lower it to 1e-3 to compare
                objectives. Accuracy rarely gains.
            max_epochs: Maximum number of epochs. Raise it if `stopped_` says that it was reached, as with a large C.
            max_paths: Maximum number of wrong paths per sentence that have a slack, with slack='sequence'. Raise it if
                `truncated` in `history_` is True.
            patience: Number of epochs without a better dev score after which training stops. 0 never stops. Used with a
                dev set only. Set it to 3 to 10 to save time.
            shuffle: Shuffle the sentences in every epoch, by `seed`. Set it to False to reproduce results that depend
                on the order of the corpus.
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
            n_jobs: Number of threads, at most one per core. None uses all cores. Lower it to leave cores to other
                programs. Results do not depend on it.
            seed: Seed of all random choices. Change it to measure how much results vary. The same seed gives the same
                model.
            verbose: Verbosity: 1 shows a progress line on a terminal or in a notebook and logs every iteration to the
                logger `tagwise`. Use it for long training runs.
            all_pairs: Create features for all pairs of attribute and label, as in the paper. Set it to False for a
                several times smaller model with the pairs that occur in training.
        """
        self._store_params(locals())

    def _train(self, task: Task) -> Result:
        params, kernel = task.params, self._kernel(task.params, task.data)
        self._check_supported(task)
        margins = _core.Margins(
            params["C"],
            slack=params["slack"],
            rescale=params["rescale"] == "margin",
            tolerance=params["tol"],
            most=params["max_paths"],
            shuffle=params["shuffle"],
            seed=params["seed"],
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
            native = kernel.spec(task.layout.n_attributes, params["form"], params["cache_mb"] << 20)
            solver = _core.KernelSvm(task.data, task.layout, native, margins, **common)
        return svm.train(
            solver,
            params["max_epochs"],
            params["tol"],
            params["patience"],
            dev_score=task.dev_score,
            callbacks=task.callbacks,
            checkpointer=task.checkpointer,
        )

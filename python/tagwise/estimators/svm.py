"""The Hidden Markov SVM as an estimator."""

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

    by working sets of wrong paths; `history_` has the duality gap of every epoch.

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
        """Keep the parameters; `fit` checks them.

        Args:
            features: how tokens become attributes (S1, S2, S3, S3(window=2), pos, ner, default, a template, a function,
                or attributes)
            C: price of a violated margin
            pi: weight c pi^T of a sentence of T tokens; the mean weight is 1
            slack: a slack for each sentence, or for each wrong path
            rescale: margin: ask for a margin as large as the number of wrong labels
            kernel: similarity of two tokens' attributes; transitions stay linear (linear, poly, rbf, module:function,
                or a function of two blocks of tokens)
            degree: poly: (coef + gamma <x, x'>)^degree
            coef: poly: (coef + gamma <x, x'>)^degree
            gamma: factor of <x, x'> in poly, None is 1; of ||x - x'||^2 in rbf, None is 1 over the mean of ||x||^2
            form: kernel rows, or poly of degree 2 written out as products; auto takes the cheaper
            cache_mb: megabytes for kernel rows while training
            tol: stop when (primal - dual) / primal is less
            max_epochs: maximum number of epochs
            max_paths: slack='sequence': maximum number of wrong paths per sentence that have a slack
            patience: with a dev set: epochs without a better dev score; 0 never stops
            shuffle: shuffle the sentences in every epoch, by `seed`
            constraints: valid label sequences, in training and decoding (auto, bio, IOBES ..., a mapping with scheme,
                forbidden, required, once, or None)
            dictionary: words seen at least this often in training take only labels seen with them; None for no tag
                dictionary
            dictionary_share: smallest share of a word's tokens that brings a label into the dictionary
            start_end: features for the first and the last label of a sentence
            min_count: drop attributes seen less often in training
            n_jobs: number of threads, at most one per core; None uses all cores. Results do not depend on it
            seed: seed of all random choices
            verbose: 1 shows a line of progress on a terminal or in a notebook, and logs every iteration to the logger
                `tagwise`
            all_pairs: also create features that never occur with the gold labels
        """
        self._take(locals())

    def _train(self, task: Task) -> Result:
        params, kernel = task.params, self._kernel(task.params, task.data)
        self._refuse(task)
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
            keeper=task.keeper,
        )

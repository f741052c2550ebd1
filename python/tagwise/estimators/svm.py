"""The Hidden Markov SVM as an estimator."""

from __future__ import annotations

from typing import Any, Literal

import tagwise._core as _core
from tagwise.base.parameters import Choice, Flag, Number, Param
from tagwise.dataset.weights import length_weights
from tagwise.estimators.base import Tagger
from tagwise.estimators.kernel import KERNEL, Kernelised
from tagwise.estimators.limits import LIMITS, Limits
from tagwise.estimators.task import COMMON, FEATURES, PI, Task
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
    PARAMS = (
        FEATURES,
        Param("C", 1.0, Number(0.0, open_low=True), "price of a violated margin"),
        PI,
        Param(
            "slack",
            "instance",
            Choice(_core.SLACKS),
            "a slack for each sentence, or for each wrong path",
        ),
        Param(
            "rescale",
            None,
            Choice(("margin",), optional=True),
            "margin: ask for a margin as large as the number of wrong labels",
        ),
        Param("kernel", "linear", *(KERNEL[0].domain, KERNEL[0].help)),
        *KERNEL[1:],
        Param("tol", 1e-2, Number(0.0), "stop when (primal - dual) / primal is less"),
        Param("max_epochs", 100, Number(1, integer=True), "most epochs"),
        Param(
            "max_paths",
            50,
            Number(1, integer=True),
            "slack='sequence': most wrong paths of a sentence that have a slack",
        ),
        Param(
            "patience",
            0,
            Number(0, integer=True),
            "with a dev set: epochs without a better dev score; 0 never stops",
        ),
        Param("shuffle", True, Flag(), "another order of sentences in every epoch, from `seed`"),
        *LIMITS,
        *(p for p in COMMON if p.name != "all_pairs"),
        Param("all_pairs", True, Flag(), "also create features that never occur with the gold labels"),
    )

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
            max_epochs: most epochs
            max_paths: slack='sequence': most wrong paths of a sentence that have a slack
            patience: with a dev set: epochs without a better dev score; 0 never stops
            shuffle: another order of sentences in every epoch, from `seed`
            constraints: what label sequences may be, in training and decoding: auto, bio, IOBES ..., or rules (auto,
                bio, IOBES ..., a mapping with scheme, forbidden, required, once, or None)
            dictionary: words seen so often in training take only labels seen with them; None for no tag dictionary
            dictionary_share: smallest share of a word's tokens that brings a label into the dictionary
            start_end: features for the first and the last label of a sentence
            min_count: drop attributes seen less often in training
            n_jobs: threads, at most one a core; None for all cores; results do not depend on it
            seed: seed of everything random
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

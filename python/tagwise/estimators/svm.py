"""The Hidden Markov SVM as an estimator."""

from __future__ import annotations

from typing import Any

import tagwise._core as _core
from tagwise.dataset.weights import length_weights
from tagwise.estimators.base import Tagger
from tagwise.estimators.kernel import KERNEL, Kernelised
from tagwise.estimators.limits import LIMITS, Limits
from tagwise.estimators.task import COMMON, FEATURES, PI, Task
from tagwise.learners import svm
from tagwise.learners.loop import Result
from tagwise.params import Choice, Flag, Number, Param


class HMSVM(Kernelised, Tagger):
    """Hidden Markov SVM (Altun, Tsochantaridis and Hofmann 2003).

    min 1/2 ||w||^2 + C sum_i xi_i   s.t.   1/2 [H(y_i) - H(y)] >= 1 - xi_i   for all y != y_i

    by working sets of wrong paths; `history_` has the duality gap of every epoch.
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
        )

"""Online learners: whole epochs run natively, decisions are taken between them.

Perceptron (Collins 2002), k-best MIRA (Crammer and Singer 2003; McDonald, Crammer and Pereira 2005), passive-aggressive
(Crammer et al. 2006), AROW (Crammer, Kulesza and Dredze 2009).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import tagwise._core as _core
from tagwise.learners.loop import Callback, Result, Stopping, run
from tagwise.optimizers.base import Step, Vector

Learner = _core.Online | _core.HistoryOnline | _core.KernelPerceptron


def epochs(online: Learner, averaged: bool, after: Callable[[], None] | None = None) -> Iterator[Step]:
    """The starting point, then one state an epoch; `after` is called before each of these.

    The value of a state is the number of wrong tokens met on the way, its gradient norm that of updates.
    """
    yield Step(online.weights(False), 0.0, 0.0, 0)
    while True:
        tally = online.epoch()
        if after is not None:
            after()
        yield Step(
            online.weights(averaged), float(tally["wrong_tokens"]), float(tally["updates"]), online.epochs
        )


def train(
    online: Learner,
    n_epochs: int,
    patience: int,
    *,
    averaged: bool,
    dev_score: Callable[[Vector], float] | None = None,
    callbacks: Iterable[Callback] = (),
) -> Result:
    """Run epochs; `objective` of the history is the number of wrong tokens, `gradient_norm` that of updates.

    Where the average and a dev score are asked for, `plain_dev_score` is that of the weights before averaging: both
    learning curves lie in the history.
    """
    stopping = Stopping(n_epochs, 0.0, 1, patience)
    plain: list[float] = []

    def score_plain() -> None:
        if averaged and dev_score is not None:
            plain.append(dev_score(online.weights(False)))

    result = run(epochs(online, averaged, score_plain), stopping, dev_score=dev_score, callbacks=callbacks)
    for entry, score in zip(result.history, plain):
        entry["plain_dev_score"] = score
    return result

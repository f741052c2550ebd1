"""Online learners. Epochs run in the core, and this module decides between them.

Perceptron (Collins 2002), k-best MIRA (Crammer and Singer 2003; McDonald, Crammer and Pereira 2005), passive-aggressive
(Crammer et al. 2006), AROW (Crammer, Kulesza and Dredze 2009).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import tagwise._core as _core
from tagwise.base.domains import Domain, Integer, ListOf, Numbers, Real, Record
from tagwise.learners.checkpoint import Checkpointer
from tagwise.learners.loop import Callback, Result, Stopping, run
from tagwise.learners.sharded.online import OnlineShards
from tagwise.optimizers.base import State, Step, Vector
from tagwise.scores.voters import Ballot

Learner = _core.Online | _core.HistoryOnline | _core.KernelPerceptron | OnlineShards


_COUNT = Integer(0, 2**53)
_STATE: dict[str, Domain] = {
    "online": Record({"steps": Real(0.0), "epochs": _COUNT}, more=Numbers("f64")),
    "plain": ListOf(Real(any_=True)),
}
#: State in a checkpoint, without and with voters. The core checks names and lengths of its arrays.
ONLINE: Domain = Record(_STATE)
VOTED: Domain = Record(
    {
        **_STATE,
        "ballot": Record({"weights": Numbers("f32"), "counts": ListOf(_COUNT), "epochs": ListOf(_COUNT)}),
    }
)


def epochs(
    online: Learner,
    averaged: bool,
    after: Callable[[], None] | None = None,
    *,
    ballot: Ballot | None = None,
    state: Callable[[], State] | None = None,
    resumed: bool = False,
) -> Iterator[Step]:
    """Yield the starting point, then one step per epoch. `after` is called before each of these.

    The value of a step is the number of wrong tokens, and `updates` is among its measures. For a learner that was
    `resumed`, the first step is the one of the checkpoint. A `ballot` collects weights during training.
    """
    yield Step(online.weights(averaged and resumed), 0.0, None, online.epochs if resumed else 0, state)
    while True:
        if ballot is not None and isinstance(online, _core.Online):
            tally = voted(online, ballot)
        else:
            tally = online.epoch()
        if after is not None:
            after()
        wrong, measures = float(tally["wrong_tokens"]), {"updates": tally["updates"]}
        yield Step(online.weights(averaged), wrong, None, online.epochs, state, measures=measures)


def voted(online: _core.Online, ballot: Ballot) -> dict[str, Any]:
    """Run one epoch and add the weights after every `stride` steps to the ballot."""
    epoch, sums = online.epochs + 1, Counter[str]()
    for begin in range(0, ballot.sentences, ballot.stride):
        end = min(ballot.sentences, begin + ballot.stride)
        sums.update(online.part(begin, end))
        ballot.cast(online.weights(False), end - begin, epoch)
    return sums


def train(
    online: Learner,
    n_epochs: int,
    patience: int,
    *,
    averaged: bool,
    dev_score: Callable[[Vector], float] | None = None,
    callbacks: Iterable[Callback] = (),
    checkpointer: Checkpointer | None = None,
    ballot: Ballot | None = None,
) -> Result:
    """Run epochs. `objective` in the history is the number of wrong tokens, `updates` the number of updates.

    With averaging and a dev score, `plain_dev_score` in the history is the score of the weights before averaging.
    States are those of the core. A `ballot` collects weights during training.
    """
    stopping = Stopping(n_epochs, 0.0, 1, patience)
    plain: list[float] = []
    found = None if checkpointer is None else checkpointer.learner(ONLINE if ballot is None else VOTED)
    if checkpointer is not None and found is not None:
        with checkpointer.restoring():
            online.restore(found["online"])
            plain = found["plain"]
            if ballot is not None:
                ballot.restore(found["ballot"], len(online.weights()))

    def state() -> State:
        voters = {} if ballot is None else {"ballot": ballot.state()}
        return {"online": online.state(), "plain": plain, **voters}

    def score_plain() -> None:
        if averaged and dev_score is not None:
            plain.append(dev_score(online.weights(False)))

    kept = None if checkpointer is None else state
    steps = epochs(
        online,
        averaged,
        None if ballot is not None else score_plain,
        ballot=ballot,
        state=kept,
        resumed=found is not None,
    )
    result = run(steps, stopping, dev_score=dev_score, callbacks=callbacks, checkpointer=checkpointer)
    for entry, score in zip(result.history, plain):
        entry["plain_dev_score"] = score
    return result

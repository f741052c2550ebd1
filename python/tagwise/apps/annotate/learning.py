"""A tagger that learns each accepted sentence at once, and settles on all of them in the background.

At once: a few steps of the online learner from the weights as they stand, without averaging, so that the next proposal
has learned it; of a CRF, training on this sentence with a prior around the weights as they stand. In the background,
each time the labelled part has grown by a share: training from the start on all of it, with averaging, which is better
and takes as long as it takes; sentences accepted meanwhile are then learned at once again. Proposals are made by a
model that never changes: a new one takes its place.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

from tagwise.base.exceptions import ParameterError
from tagwise.corpus.sentence import Corpus, Sentence
from tagwise.estimators import CRF, LEARNERS
from tagwise.estimators.online import OnlineTagger
from tagwise.learners.loop import Iteration
from tagwise.model.model import Model

#: Epochs of training from the start, and how much the labelled part grows until it is done again.
EPOCHS, SHARE, FEWEST = 8, 0.1, 5
#: Most visits of a sentence that is learned at once; the first without an update is the last.
VISITS = 5
#: The other half of a committee.
SECOND = {"perceptron": "mira"}
#: Of a CRF: the strength of the prior around what it knows, iterations on a sentence, and those that are an epoch.
PRIOR, ITERATIONS, AN_EPOCH = 0.1, 10, 6


def learner_of(name: str) -> Any:
    """A learner that goes on from a sentence more, by its name: a class, called with its parameters."""
    known = [key for key, kind in LEARNERS.items() if issubclass(kind, OnlineTagger | CRF)]
    if name not in known:
        raise ParameterError(
            f"learner={name!r} does not learn sentence by sentence; expected one of {', '.join(known)}"
        )
    return LEARNERS[name]


def fresh(name: str, epochs: int, **settings: Any) -> Any:
    """An unfitted tagger that goes through its training set about so many times."""
    kind = learner_of(name)
    if issubclass(kind, CRF):
        return kind(max_iter=AN_EPOCH * epochs, **settings)
    return kind(epochs=epochs, **settings)


class Learning:
    """The tagger of a session. `model` is what proposes now, None before anything was learned; `second` disagrees.

    Args:
        learner: name of an online learner, or crf.
        features: as estimators take them.
        start: a model that proposes until something is learned, and whose weights learning begins from.
        n_jobs: threads of training and tagging, None for all cores.
    """

    def __init__(
        self,
        learner: str = "mira",
        features: Any = "default",
        start: Model | None = None,
        n_jobs: int | None = 1,
    ) -> None:
        self._kind, self._name, self._second = learner_of(learner), learner, SECOND.get(learner, "perceptron")
        self._features, self._start, self._n_jobs = features if start is None else start.recipe, start, n_jobs
        self._tagger: Any = None
        self.model = start
        self.second: Model | None = None
        self.version = 0  # of the model: it counts changes
        self.seconds: list[float] = []  # of the last steps
        self.failed: str | None = None  # why training in the background ended
        self.changed: Callable[[], object] = lambda: None  # told of a model from the background
        self._lock = threading.Lock()
        self._settled = 0  # labelled sentences when training from the start was last begun
        self._since: list[tuple[Sentence, list[str]]] | None = None  # learned while it runs
        self._anew = False  # once it has ended, again
        self._thread: threading.Thread | None = None  # that trains
        self._last: threading.Thread | None = None  # that trained last, and may still tell of it

    # --- at once ------------------------------------------------------------------------------------------

    def learn(self, sentence: Sentence, labels: Sequence[str]) -> float:
        """A few steps on one sentence; the seconds they took. The next proposals are by a model that has learned it."""
        begin = time.perf_counter()
        with self._lock:
            if self._since is not None:
                self._since.append((sentence, list(labels)))
            self._step(Corpus([sentence.with_labels(labels, "label")]))
            took = time.perf_counter() - begin
            self.seconds = [*self.seconds[-199:], took]
            return took

    def _step(self, corpus: Corpus) -> None:
        if issubclass(self._kind, CRF):
            before = self._start if self._tagger is None else self._tagger.model_
            settings = {"features": self._features, "n_jobs": self._n_jobs, "max_iter": ITERATIONS}
            if before is not None:
                settings |= {"prior": PRIOR, "l2": 0.0}
            self._tagger = self._kind(**settings).fit(corpus, warm_start=before)
        elif self._tagger is None:
            made = self._kind(features=self._features, n_jobs=self._n_jobs, epochs=VISITS, average=False)
            self._tagger = made.fit(corpus, warm_start=self._start, callbacks=(_right,))
        else:
            self._tagger.partial_fit(corpus, epochs=VISITS, callbacks=(_right,))
        self._publish()

    def _publish(self) -> None:
        self.model, self.version = self._tagger.model_, self.version + 1

    # --- in the background --------------------------------------------------------------------------------

    def due(self, labelled: int) -> bool:
        """Whether there are enough new sentences, or fewer than before, to train from the start again."""
        return labelled < self._settled or labelled - self._settled >= max(FEWEST, SHARE * self._settled)

    def settle(self, corpus: Callable[[], Corpus], *, wait: bool = False) -> None:
        """Train from the start on all labelled sentences, in a thread; where that runs, once more when it has ended."""
        with self._lock:
            if self._thread is not None:
                self._anew = True
            else:
                self._since = []
                self._thread = self._last = threading.Thread(target=self._settle, args=(corpus,), daemon=True)
                self._thread.start()
            thread = self._thread
        if wait:
            thread.join()

    def _settle(self, corpus: Callable[[], Corpus]) -> None:
        while True:
            try:
                self._train(corpus())
            except Exception as error:  # told to people, who can go on: the model from before stays
                self.failed = f"{type(error).__name__}: {error}"
            with self._lock:
                if not self._anew:
                    self._since = self._thread = None
                    break
                self._anew, self._since = False, []
        self.changed()

    def _train(self, corpus: Corpus) -> None:
        """A fresh tagger on all of it and on what was accepted meanwhile; it takes the place of the one before."""
        self._settled = len(corpus)
        tagger: Any = None
        second = None
        if len(corpus):
            settings = {"features": self._features, "n_jobs": self._n_jobs}
            tagger = fresh(self._name, EPOCHS, **settings).fit(corpus, warm_start=self._start)
            second = fresh(self._second, 3, **settings).fit(corpus).model_
            if isinstance(tagger, OnlineTagger):
                tagger.__dict__.pop("state_", None)  # steps from here on go from the averaged weights
                tagger.set_params(average=False)
        with self._lock:
            self._tagger, self.second, self.failed = tagger, second, None
            since, self._since = self._since or [], []
            if since:
                for sentence, labels in since:
                    self._step(Corpus([sentence.with_labels(labels, "label")]))
            elif tagger is None:
                self.model, self.version = self._start, self.version + 1
            else:
                self._publish()

    @property
    def busy(self) -> bool:
        """Whether training from the start runs now."""
        return self._thread is not None

    def wait(self) -> None:
        """Until nothing runs in the background, and whoever is told of it has been."""
        while (thread := self._last) is not None and thread.is_alive():
            thread.join()


def _right(entry: Iteration) -> bool:
    """Whether an epoch changed nothing: steps behind it would not either."""
    return entry.gradient_norm == 0

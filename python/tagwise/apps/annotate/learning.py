"""A tagger that learns from each accepted sentence at once, and is retrained on all of them in the background.

At once: a few steps of the online learner from the current weights, without averaging. A CRF is trained on the sentence
with a prior around the current weights. In the background, whenever the labelled part has grown by a factor: training
from scratch on all of it, with averaging, which gives better weights. Sentences accepted in the meantime are then
learned again at once. Models are immutable: a new one replaces the model that makes proposals.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from tagwise.apps.annotate.project import Work
from tagwise.base.exceptions import ParameterError
from tagwise.base.parameters import meant
from tagwise.corpus import schemes
from tagwise.corpus.sentence import Corpus, Sentence
from tagwise.estimators import CRF, LEARNERS
from tagwise.estimators.online import OnlineTagger
from tagwise.learners.loop import Iteration
from tagwise.model.model import Model

#: Epochs of training from scratch, and the growth of the labelled part until the next one.
EPOCHS, SHARE, FEWEST = 8, 0.1, 5
#: Maximum number of visits of a sentence that is learned at once. A visit without an update is the last one.
VISITS = 5
#: Second committee member by learner.
SECOND = {"perceptron": "mira"}
#: For a CRF: strength of the prior around the current weights, iterations per sentence, and iterations per epoch.
PRIOR, ITERATIONS, ITERATIONS_PER_EPOCH = 0.1, 10, 6


def learner_of(name: str) -> Any:
    """Return the class of a learner that can be updated with single sentences."""
    known = [key for key, kind in LEARNERS.items() if issubclass(kind, OnlineTagger | CRF)]
    if name not in known:
        raise ParameterError(
            f"learner={name!r}{meant(name, known)} cannot learn one sentence at a time. Use one of {', '.join(known)}"
        )
    return LEARNERS[name]


def fresh(name: str, epochs: int, **settings: Any) -> Any:
    """Return an unfitted tagger that trains for about `epochs` passes."""
    kind = learner_of(name)
    if issubclass(kind, CRF):
        return kind(max_iter=ITERATIONS_PER_EPOCH * epochs, **settings)
    return kind(max_iter=epochs, **settings)


def trained(work: Work, features: Any, **settings: Any) -> Any:
    """Return a tagger that is trained from scratch on all labelled sentences of a project.

    Raises:
        ParameterError: No sentence is labelled.
    """
    corpus = work.corpus()
    if not len(corpus):
        raise ParameterError("no sentence is labelled, so there is no model to save. Label some first")
    return fresh(work.settings.learner, EPOCHS, features=features, **settings).fit(corpus)


def types_of(model: Model) -> list[str]:
    """Return the types of spans of a model, or its labels if they do not mark spans."""
    if not schemes.has_chunks(model.labels):
        return list(model.labels)
    return list(dict.fromkeys(kind for y in model.labels if (kind := schemes.split_label(y)[1])))


def renamed_model(model: Model, names: Mapping[str, str]) -> Model:
    """Return a model with renamed label types.

    Raises:
        ParameterError: Two labels of the model would have the same name.
    """

    def renamed(label: str) -> str:
        tag, kind = schemes.split_label(label)
        return (
            f"{label[: len(label) - len(kind)]}{names.get(kind, kind)}"
            if kind and tag
            else names.get(label, label)
        )

    labels = tuple(renamed(label) for label in model.labels)
    if len(set(labels)) < len(labels):
        twice = next(y for k, y in enumerate(labels) if y in labels[:k])
        raise ParameterError(f"two labels of the model would be {twice}. Map them to different ones")
    return replace(model, labels=labels)


class Learning:
    """The tagger of a session.

    `model` makes proposals and is None before the first sentence is learned. `second` is the other committee member.

    Args:
        learner: Name of an online learner, or crf.
        features: Features, in any form that estimators accept.
        start: Model that makes the first proposals and whose weights learning starts from.
        n_jobs: Number of threads for training and tagging. None uses all cores.
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
        self._next_features = self._features  # features of the next training from scratch
        self._tagger: Any = None
        self.model = start
        self.second: Model | None = None
        self.version = 0  # number of changes of the model
        self.seconds: list[float] = []  # durations of the last steps
        self.failed: str | None = None  # error of training in the background
        self.changed: Callable[[], object] = lambda: (
            None
        )  # called after a model from the background is in place
        self._lock = threading.Lock()
        self._settled = 0  # number of labelled sentences at the last training from scratch
        self._since: list[tuple[Sentence, list[str]]] | None = None  # sentences learned while it runs
        self._rerun = False  # whether to run it again afterwards
        self._thread: threading.Thread | None = None  # current training thread
        self._last: threading.Thread | None = None  # last training thread, which may still call `changed`

    @property
    def features(self) -> Any:
        """Features of the tagger, in a form that estimators accept."""
        return self._features

    def change_features(self, features: Any) -> bool:
        """Use other features from the next training from scratch on, and return whether one is necessary."""
        with self._lock:
            self._next_features = features
            if self._tagger is None and self._thread is None:
                self._features = features
                return False
            return True

    def rename(self, old: str, new: str | None) -> None:
        """Rename a label type in the model that learning starts from, if no other label of it has the new name."""
        with self._lock:
            if self._start is not None and new is not None:
                with contextlib.suppress(ParameterError):
                    self._start = renamed_model(self._start, {old: new})
                    self.model = self._start if self._tagger is None else self.model

    # --- at once ------------------------------------------------------------------------------------------

    def learn(self, sentence: Sentence, labels: Sequence[str]) -> float:
        """Learn one sentence in a few steps, replace the model, and return the seconds."""
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
            tagger = self._kind(features=self._features, n_jobs=self._n_jobs, max_iter=VISITS, average=False)
            self._tagger = tagger.fit(corpus, warm_start=self._start, callbacks=(_has_no_update,))
        else:
            self._tagger.partial_fit(corpus, max_iter=VISITS, callbacks=(_has_no_update,))
        self._publish()

    def _publish(self) -> None:
        self.model, self.version = self._tagger.model_, self.version + 1

    # --- in the background --------------------------------------------------------------------------------

    def retraining_due(self, labelled: int) -> bool:
        """Return whether the number of labelled sentences has grown enough, or shrunk, since the last full training."""
        return labelled < self._settled or labelled - self._settled >= max(FEWEST, SHARE * self._settled)

    def settle(self, corpus: Callable[[], Corpus], *, wait: bool = False) -> None:
        """Train from scratch on all labelled sentences in a thread. If it is running, it runs again afterwards."""
        with self._lock:
            if self._thread is not None:
                self._rerun = True
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
            except Exception as error:  # shown to the user. The previous model stays.
                self.failed = f"{type(error).__name__}: {error}"
            with self._lock:
                if not self._rerun:
                    self._since = self._thread = None
                    break
                self._rerun, self._since = False, []
        self.changed()

    def _train(self, corpus: Corpus) -> None:
        """Train a new tagger on the corpus and on sentences accepted meanwhile, and replace the current one."""
        self._settled = len(corpus)
        tagger: Any = None
        second = None
        features = self._next_features
        if len(corpus):
            settings = {"features": features, "n_jobs": self._n_jobs}
            tagger = fresh(self._name, EPOCHS, **settings).fit(corpus, warm_start=self._start)
            second = fresh(self._second, 3, **settings).fit(corpus).model_
            if isinstance(tagger, OnlineTagger):
                tagger.__dict__.pop("state_", None)  # later steps start from the averaged weights
                tagger.set_params(average=False)
        with self._lock:
            self._tagger, self.second, self.failed = tagger, second, None
            self._features = features
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
        """Whether training from scratch is running."""
        return self._thread is not None

    def wait(self) -> None:
        """Wait until training in the background is finished and `changed` was called."""
        while (thread := self._last) is not None and thread.is_alive():
            thread.join()


def _has_no_update(entry: Iteration) -> bool:
    """Return whether an epoch had no update, so that further epochs would not have any."""
    return entry.measures["updates"] == 0

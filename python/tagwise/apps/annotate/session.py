"""A labelling session: a project, the tagger that learns from it, the queue, and the state that a page shows.

Every change is written to the journal first. Then the sentence is learned, the top of the queue is ranked again, and
the next sentence is returned, in a time that does not depend on the length of the queue. The rest of the queue,
training from scratch and scores on a dev corpus follow in threads. Input and output are plain data, and HTTP is a thin
layer above (`app`).
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from tagwise.apps.annotate import views
from tagwise.apps.annotate.curve import keep_curve, read_curve, score_of
from tagwise.apps.annotate.display import displayed
from tagwise.apps.annotate.guidelines import guidelines_of
from tagwise.apps.annotate.label_types import labels_of_spans
from tagwise.apps.annotate.learning import Learning, fresh, trained, types_of
from tagwise.apps.annotate.mistakes import suspects
from tagwise.apps.annotate.patterns import TermList
from tagwise.apps.annotate.project import Work
from tagwise.apps.annotate.queue import FIRST, FIRST_UNSCORED, Queue
from tagwise.apps.annotate.ranking import View, strategy_of
from tagwise.apps.annotate.views import SHOWN
from tagwise.apps.annotate.why import spans_of, why
from tagwise.apps.annotate.word_classes import Stopped, can_learn, learn_classes, stored_features
from tagwise.base.exceptions import ParameterError, TagwiseError
from tagwise.corpus import schemes
from tagwise.corpus.sentence import Corpus
from tagwise.model.model import Model

#: Longest time in seconds that counts for one sentence, number of proposals that are remembered, and least number of
#: labelled sentences to look for mistakes.
LONGEST_PAUSE, REMEMBERED, MISTAKES = 300.0, 64, 50
#: Seconds after a response in which background work pauses while the page draws the next sentence.
DRAWING = 0.05


class Conflict(TagwiseError):
    """A sentence was changed by somebody else. `present` is the sentence as it is now."""

    def __init__(self, sentence: dict[str, Any]) -> None:
        super().__init__("this sentence was changed in another tab. Choose one of the two versions")
        self.present = sentence


class Session:
    """A project that is open for labelling.

    Args:
        work: The project.
        model: Model that makes the first proposals and whose weights learning starts from.
        proposed: Label types of the model that become label types of the project. None adds all of them.
        dev: Corpus to score while labelling.
        patterns: Terms that pre-label sentences.
        guidelines: Markdown file for annotators. None uses `guidelines.md` of the project, if there is one.
        n_jobs: Number of threads. None uses all cores.
    """

    def __init__(
        self,
        work: Work,
        *,
        model: Model | None = None,
        proposed: Sequence[str] | None = None,
        dev: Corpus | None = None,
        patterns: TermList | None = None,
        guidelines: str | os.PathLike[str] | None = None,
        n_jobs: int | None = 1,
    ) -> None:
        self.work, self.dev, self._n_jobs = work, dev, n_jobs
        self.patterns, self.guidelines = patterns, guidelines_of(work.folder, guidelines)
        for label in () if patterns is None else patterns.labels:
            work.add_label(label)
        settings = work.settings
        self.learning = Learning(
            settings.learner, stored_features(work) if model is None else settings.features, model, n_jobs
        )
        self.learning.changed = self._settled
        if model is not None:
            self._labels_of(model, proposed)
        self.queue = Queue(work.sentences)
        self._reopen(range(len(work.sentences)))
        self.paces = _kept_paces(work)
        self._offered: dict[int, set[tuple[int, int, str]]] = {}  # last proposals by sentence
        self.listed_proposals: dict[int, list[tuple[int, int, str]]] = {}
        self.curve = read_curve(work.folder)
        self.notify: Callable[[str, dict[str, Any]], object] = lambda kind, data: None  # events for pages
        self._lock = threading.RLock()
        self._wake, self._ended = threading.Event(), False
        self._idle = threading.Event()  # set while no request is in progress, so that background work can run
        self._idle.set()
        self._drawn = time.monotonic()  # time at which the page should have drawn the last response
        self._known_words = {word for i in work.labelled for word in work.sentences[i].tokens}
        if work.labelled:
            self.learning.settle(self._corpus, wait=True)
        self._rank()
        self._ranker = threading.Thread(target=self._background, daemon=True)
        self._ranker.start()
        self._class_learner = threading.Thread(target=self._learn_classes, daemon=True)
        if model is None and can_learn(work):
            self._class_learner.start()

    def _labels_of(self, model: Model, proposed: Sequence[str] | None) -> None:
        """Add the label types of a model to the project, all of them or the proposed ones."""
        if not schemes.has_chunks(model.labels) and not self.work.settings.labels:
            self.work.set(kind="tokens")
        for label in types_of(model) if proposed is None else proposed:
            self.work.add_label(label)

    def _corpus(self) -> Corpus:
        """Return the corpus for training in the background."""
        self._wait_for_idle()
        with self._lock:
            return self.work.corpus()

    @contextlib.contextmanager
    def _request(self) -> Iterator[None]:
        """Hold the lock and pause background work during a request."""
        self._idle.clear()
        try:
            with self._lock:
                yield
        finally:
            self._drawn = time.monotonic() + DRAWING
            self._idle.set()

    def _wait_for_idle(self) -> None:
        """Wait while a request is in progress or the page draws its response, which have priority on the cores."""
        self._idle.wait()
        while (left := self._drawn - time.monotonic()) > 0 and not self._ended:
            time.sleep(left)
            self._idle.wait()

    def _reopen(self, places: Iterable[int]) -> None:
        """Add sentences without labels to the queue again, the first of those with the same content."""
        unlabelled, every = set(self.work.unlabelled()), list(places)
        self.queue.close(i for i in every if i not in unlabelled)
        self.queue.close((i for i in every if i in unlabelled), open=True)

    # --- state of the page --------------------------------------------------------------------------------

    def state(self, focus: int | None = None) -> dict[str, Any]:
        """Return the state of the page: the sentence in focus (by default the first of the queue), queue and counts."""
        with self._lock:
            return views.state(self, focus)

    def listed(self, tab: str, search: str = "", offset: int = 0) -> dict[str, Any]:
        """Return a part of a list of sentences, those that contain a text."""
        with self._lock:
            return views.listed(self, tab, search, offset)

    def summary(self) -> dict[str, Any]:
        """Return spans by type, time, and agreement with the proposals of the tagger."""
        with self._lock:
            return views.summary(self)

    def label_counts(self) -> dict[str, int]:
        """Return the number of spans (or tokens) of each label type."""
        with self._lock:
            return views.label_counts(self)

    def order(self) -> list[int]:
        """Return the head of the queue. Skipped sentences come last, in the order of skipping."""
        later = set(self.work.skipped)
        found = [i for i in self.queue.order(SHOWN + len(later)) if i not in later]
        return (found + views.skipped_ones(self))[:SHOWN] if len(found) < SHOWN else found[:SHOWN]

    def offer(self, i: int, proposed: list[dict[str, Any]]) -> None:
        """Remember the proposal of a sentence, which accepted labels are compared with."""
        self._offered.pop(i, None)
        self._offered[i] = {(one["begin"], one["end"], one["label"]) for one in proposed}
        if len(self._offered) > REMEMBERED:
            del self._offered[next(iter(self._offered))]

    # --- actions ------------------------------------------------------------------------------------------

    def accept(
        self, i: Any, spans: Any, version: int | None = None, then: int | None = None
    ) -> dict[str, Any]:
        """Accept the labels of a sentence, learn it, and return the state with the next sentence.

        Args:
            i: Number of the sentence.
            spans: Objects with begin, end and label.
            version: Version of the sentence that the labels are based on. None accepts them for any version.
            then: Sentence to show next. None shows the first of the queue.

        Raises:
            Conflict: The sentence has changed since.
        """
        with self._request():
            self.work.check(i, None)
            settings = self.work.settings
            labels = labels_of_spans(spans, len(self.work.sentences[i]), settings.kind, settings.labels)
            self._check_version(i, version)
            begin, cpu = time.perf_counter(), time.thread_time()
            effort = self._effort(i, labels)
            self.work.accept(i, labels, **effort)
            self.paces.append(effort["seconds"])
            written = time.perf_counter()
            self.queue.close(self.work.duplicates(i))
            sentence = self.work.sentences[i]
            self._known_words.update(sentence.tokens)
            before = time.thread_time()
            learned = self.learning.learn(sentence, labels)
            learning = time.thread_time() - before
            self._after(i)
            ranked = time.perf_counter()
            out = views.state(self, then, keep=True)
            end = time.perf_counter()
            out["milliseconds"] = {
                "journal": 1e3 * (written - begin),
                "learning": 1e3 * learned,
                "ranking": 1e3 * (ranked - written - learned),
                "proposal": 1e3 * (end - ranked),
                "all": 1e3 * (end - begin),
                "CPU of learning": 1e3 * learning,
                "CPU of all": 1e3 * (time.thread_time() - cpu),
            }
            return out

    def _check_version(self, i: int, version: int | None) -> None:
        if version is not None and version != self.work.version(i):
            raise Conflict(views.shown(self, i))

    def _effort(self, i: int, labels: list[str]) -> dict[str, float]:
        """Return the seconds since the last response, and the numbers of proposed spans and of those kept."""
        out: dict[str, float] = {"seconds": round(min(time.monotonic() - self._drawn, LONGEST_PAUSE), 1)}
        offered = self._offered.pop(i, None)
        sources = (self.learning.model, self.patterns, self.work.proposed.get(i))
        if offered is not None and any(one is not None for one in sources):
            found = set(spans_of(labels, self.work.settings.kind))
            out |= {"offered": len(offered), "kept": len(offered & found)}
        return out

    def mark(self, i: Any, mark: str, then: int | None = None) -> dict[str, Any]:
        """Postpone (skip), flag or reject a sentence, and return the state with the next one."""
        with self._request():
            labelled = None if mark != "reject" else self.work.labels_of(i) if self._is_place(i) else None
            self.work.mark(i, mark)
            if mark != "skip":
                self._reopen(self.work.duplicates(i))
            if labelled is not None:  # only training from scratch forgets a sentence
                self.learning.settle(self._corpus)
            self._after(i)
            return self.state(then)

    def _is_place(self, i: Any) -> bool:
        return type(i) is int and 0 <= i < len(self.work.sentences)

    def skip(self, i: Any) -> dict[str, Any]:
        """Postpone a sentence, and return the state with the next one."""
        return self.mark(i, "skip")

    def comment(self, i: Any, text: Any) -> dict[str, Any]:
        """Set the comment of a sentence, and return the state with this sentence."""
        with self._request():
            self.work.comment(i, text)
            self._after(i)
            return self.state(i)

    def undo(self) -> dict[str, Any]:
        """Undo the last action. Its sentence comes into focus, with the labels it had."""
        return self._back(self.work.undo)

    def redo(self) -> dict[str, Any]:
        """Redo the last undone action."""
        return self._back(self.work.redo, follow=False)

    def _back(self, action: Callable[[], int | None], follow: bool = True) -> dict[str, Any]:
        with self._request():
            following = self.work.history.next_undo if follow else self.work.history.next_redo
            previous = None if following is None else self.work.labels_of(following)
            i = action()
            if i is None:
                return self.state()
            self._reopen(self.work.duplicates(i))
            labels = self.work.labels_of(i)
            if labels is not None and labels != previous:
                self.learning.learn(self.work.sentences[i], labels)
            elif previous is not None and labels is None:  # only training from scratch forgets a sentence
                self.learning.settle(self._corpus)
            self._after(i)
            return self.state(i if follow else None)

    def _after(self, i: int | None = None) -> None:
        """Start training from scratch if it is due, and rank the queue, after a change (of sentence i)."""
        if i is not None:
            self.notify("changed", {"ids": self.work.duplicates(i)[:SHOWN], "version": self.work.version(i)})
        if self.work.n_labelled and self.learning.retraining_due(self.work.n_labelled):
            self.learning.settle(self._corpus)
        self._rank()
        self._wake.set()

    def choose(self, strategy: str) -> dict[str, Any]:
        """Change the strategy."""
        with self._request():
            self.work.set(strategy=strategy_of(strategy).name)
            self._rank()
            self._wake.set()
            return self.state()

    def add_label(self, label: Any, focus: int | None = None) -> dict[str, Any]:
        """Add a label type."""
        with self._lock:
            if label in self.work.settings.labels:
                raise ParameterError(f"{label} is a label already")
            self.work.add_label(label)
            return self.state(focus)

    def change_label(
        self, label: str, name: str | None, focus: int | None = None, **details: Any
    ) -> dict[str, Any]:
        """Change place, colour, key or description of a label type, and rename it (or merge it with another one)."""
        with self._request():
            if details:
                self.work.change_label(label, **details)
            if name is not None and name != label:
                self._rename(label, name)
            return self.state(focus)

    def delete_label(self, label: str, focus: int | None = None) -> dict[str, Any]:
        """Delete a label type and its spans."""
        with self._request():
            self._rename(label, None)
            return self.state(focus)

    def _rename(self, old: str, new: str | None) -> None:
        self.work.rename_label(old, new)
        self.learning.rename(old, new)
        self._offered.clear()
        self.listed_proposals.clear()
        if self.work.n_labelled:
            self.learning.settle(self._corpus)
        self._after()

    def import_document(self, data: bytes, name: str, format: str | None) -> dict[str, Any]:
        """Add a document."""
        with self._lock:
            places = self.work.read(data, format, name)
            self.queue.extend(len(self.work.sentences))
            self._reopen(places)
            self._after()
            return self.state()

    def why(self, i: int, token: Any) -> dict[str, Any]:
        """Explain the proposed label of a token."""
        self.work.check(i, None)
        model = self.learning.model
        if model is None:
            raise ParameterError("there is no model to explain yet. Accept a sentence first")
        if type(token) is not int:
            raise ParameterError(f"token={token!r}: expected an integer")
        with self._lock:
            labelled = dict(self.work.labelled)
        kind, sentences = self.work.settings.kind, self.work.sentences
        return why(model, sentences[i], token, kind=kind, labelled=labelled, sentences=sentences)

    def mistakes(self, most: int | None = None) -> list[dict[str, Any]]:
        """Return labelled sentences whose labels a model trained without them finds least probable.

        With `most`, these are the `most` doubtful ones of any number of sentences. Otherwise they are a tenth of
        `MISTAKES` or more sentences, since a model of fewer doubts nearly all of them.
        """
        with self._lock:
            places = sorted(self.work.labelled)
            if most is None and len(places) < MISTAKES:
                raise ParameterError(
                    f"{len(places)} sentences are labelled. Looking for mistakes needs {MISTAKES}"
                )
            corpus = self.work.corpus(places)
            settings = self.work.settings
        features = self.learning.features
        found = suspects(
            corpus,
            lambda: fresh(settings.learner, 5, features=features, n_jobs=self._n_jobs),
            most=len(places) // 10 if most is None else most,
        )
        return [
            {
                "id": places[one.sentence],
                **displayed(corpus[one.sentence]),
                "doubt": _finite(one.doubt),
                "spans": spans_of(one.labels, settings.kind),
                "found": spans_of(one.found, settings.kind),
            }
            for one in found
        ]

    def tagger(self) -> Any:
        """Return a tagger that is trained from scratch on all labelled sentences."""
        return trained(self.work, self.learning.features, n_jobs=self._n_jobs)

    # --- in the background --------------------------------------------------------------------------------

    def _view(self) -> View:
        return View(self.learning.model, self.learning.second, self._known_words, n_jobs=self._n_jobs or 0)

    def _rank(self) -> None:
        """Rank the first sentences of the queue, in a number that does not depend on its length."""
        strategy = self.work.settings.strategy
        most = FIRST if strategy_of(strategy).learned else FIRST_UNSCORED
        with contextlib.suppress(TagwiseError):
            self.queue.refresh(strategy, self._view(), self.learning.version, most=most)

    def _rank_a_slice(self) -> bool:
        """Rank the next slice without the lock, so that requests do not wait, and return whether there was one."""
        self._wait_for_idle()
        with self._lock:
            found = self.queue.next_slice(self.work.settings.strategy, self._view(), self.learning.version)
        if found is None:
            return False
        try:
            scores = found.scores(self.work.sentences)
        except TagwiseError:
            return False
        with self._lock:
            self.queue.store(found, scores)
        return True

    def _settled(self) -> None:
        """Rank the queue and score the dev corpus with a new model from the background."""
        if self._ended:
            return
        model, labelled = self.learning.model, self.work.n_labelled
        if self.dev is not None and model is not None:
            score = score_of(model, self.dev, self._n_jobs)
            self.curve.append({"sentences": labelled, "score": score})
            keep_curve(self.work.folder, self.curve)
        self._wake.set()
        self.notify(
            "learned", {"version": self.learning.version, "curve": self.curve, "failed": self.learning.failed}
        )

    def _background(self) -> None:
        """Rank the rest of the queue slice by slice after every change."""
        while True:
            self._wake.wait()
            self._wake.clear()
            if self._ended:
                return
            while not self._ended and not self._wake.is_set() and self._rank_a_slice():
                pass
            self._wait_for_idle()
            if self._wake.is_set():  # the next action changes the queue again
                continue
            with self._lock:
                found = {"queue": views.queue_rows(self, self.order()), "counts": views.counts(self)}
            self.notify("ranked", found)

    def _learn_classes(self) -> None:
        """Learn word classes from the sentences, and train again with them as features."""
        try:
            features = learn_classes(self.work, lambda: self._ended)
        except Stopped:
            return
        except Exception as error:  # shown to the user. Labelling continues without classes.
            self.learning.failed = f"{type(error).__name__}: {error}"
            self._settled()
            return
        if self.learning.change_features(features) and not self._ended:
            self.learning.settle(self._corpus)

    def close(self) -> None:
        """Stop the threads and close the project."""
        self._ended = True
        self._wake.set()
        self._ranker.join()
        if self._class_learner.ident is not None:
            self._class_learner.join()
        self.learning.wait()
        self.work.close()


def _kept_paces(work: Work) -> list[float]:
    """Return the seconds of the sentences accepted before, in order."""
    efforts = (work.history.entry(i).effort for i in work.accepted)
    return [effort["seconds"] for effort in efforts if "seconds" in effort]


def _finite(value: float) -> float | None:
    return value if abs(value) < 1e300 else None

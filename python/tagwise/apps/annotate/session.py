"""A labelling session: a project, the tagger that learns from it, the queue, and the state that a page shows.

Every change is written to the journal first. Then the sentence is learned, the top of the queue is ranked again, and
the next sentence is returned, in a time that does not depend on the length of the queue. The rest of the queue,
training from scratch and scores on a dev corpus follow in threads. Input and output are plain data, and HTTP is a thin
layer above (`app`).
"""

from __future__ import annotations

import contextlib
import json
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from tagwise.apps.annotate.folder import OUTSIDE
from tagwise.apps.annotate.learning import Learning, fresh
from tagwise.apps.annotate.mistakes import suspects
from tagwise.apps.annotate.project import EXPORTS, Work
from tagwise.apps.annotate.queue import FIRST, FIRST_UNSCORED, Queue
from tagwise.apps.annotate.ranking import STRATEGIES, View, strategy_of
from tagwise.apps.annotate.why import spans_of, why
from tagwise.base.domains import Domain, Integer, ListOf, Real, Record
from tagwise.base.exceptions import FileError, ParameterError, TagwiseError
from tagwise.base.files.regular import read_regular
from tagwise.base.files.sealed import parsed
from tagwise.base.parameters import meant
from tagwise.base.writing import write_text
from tagwise.corpus import schemes
from tagwise.corpus.sentence import Corpus, Sentence
from tagwise.decoding.confidence import confidences
from tagwise.decoding.plan import Query
from tagwise.estimators import has_probabilities
from tagwise.features.inputs import Inputs
from tagwise.model.model import Model

#: File with the scores on the dev corpus, in the folder of the project.
CURVE = "curve.jsonl"
#: Its maximum size in bytes, and the schema of a line.
MOST_CURVE = 1 << 20
POINT: Domain = Record({"sentences": Integer(0, 2**53), "score": Real(0.0, 1.0)})

#: Seconds after a response in which background work pauses while the page draws the next sentence.
DRAWING = 0.05
#: Number of sentences of the queue that are shown, and maximum length of a search text.
SHOWN, LONGEST_SEARCH = 12, 200


class Session:
    """A project that is open for labelling.

    Args:
        work: The project.
        model: Model that makes the first proposals and whose weights learning starts from.
        dev: Corpus to score while labelling.
        n_jobs: Number of threads. None uses all cores.
    """

    def __init__(
        self, work: Work, *, model: Model | None = None, dev: Corpus | None = None, n_jobs: int | None = 1
    ) -> None:
        self.work, self.dev, self._n_jobs = work, dev, n_jobs
        settings = work.settings
        self.learning = Learning(
            settings.learner, work.features if model is None else settings.features, model, n_jobs
        )
        self.learning.changed = self._settled
        if model is not None:
            self._labels_of(model)
        self.queue = Queue(work.sentences)
        self._reopen(range(len(work.sentences)))
        self.search = ""
        self.curve = _read_curve(work)
        self.notify: Callable[[str, dict[str, Any]], object] = lambda kind, data: None  # events for pages
        self._lock = threading.RLock()
        self._wake, self._ended = threading.Event(), False
        self._idle = threading.Event()  # set while no request is in progress, so that background work can run
        self._idle.set()
        self._drawn = 0.0  # time at which the page should have drawn the last response
        self._known_words = {word for i in work.labelled for word in work.sentences[i].tokens}
        if work.labelled:
            self.learning.settle(self._corpus, wait=True)
        self._rank()
        self._ranker = threading.Thread(target=self._background, daemon=True)
        self._ranker.start()

    def _labels_of(self, model: Model) -> None:
        """Add the label types of a model to the project."""
        if schemes.has_chunks(model.labels):
            found = [kind for y in model.labels if (kind := schemes.split_label(y)[1])]
        else:
            found = list(model.labels)
            if self.work.settings.kind == "spans" and not self.work.settings.labels:
                self.work.set(kind="tokens")
        for label in dict.fromkeys(found):
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
            order = self._order()
            current = order[0] if focus is None and order else focus
            undo, redo = self.work.undoable
            return {
                "sentence": None if current is None else self.shown(current),
                "queue": [self._brief(i) for i in order],
                "counts": {
                    "sentences": len(self.work.sentences),
                    "accepted": len(self.work.accepted),
                    "given": self.work.n_given,
                    "open": int(self.queue.open.sum()),
                    "stale": self.queue.stale,
                },
                "settings": {
                    "kind": self.work.settings.kind,
                    "labels": self.work.settings.labels,
                    "learner": self.work.settings.learner,
                    "strategy": self.work.settings.strategy,
                    "search": self.search,
                },
                "strategies": [{"name": one.name, "title": one.title} for one in STRATEGIES.values()],
                "documents": [
                    {"name": name, "sentences": len(places)} for name, places in self.work.documents
                ],
                "exports": [f for f in EXPORTS if f != "spans" or self.work.settings.kind == "spans"],
                "undo": undo,
                "redo": redo,
                "curve": self.curve,
                "dev": self.dev is not None,
                "busy": self.learning.busy,
                "failed": self.learning.failed,
                "version": self.learning.version,
            }

    def _order(self) -> list[int]:
        """Return the head of the queue. Skipped sentences come last, in the order of skipping."""
        later = {i: n for n, i in enumerate(self.work.skipped)}
        order = [i for i in self.queue.order(SHOWN + len(later)) if i not in later]
        if len(order) < SHOWN:
            order += sorted((i for i in later if self.queue.open[i]), key=lambda i: later[i])
        return order[:SHOWN]

    def _brief(self, i: int) -> dict[str, Any]:
        text = " ".join(self.work.sentences[i].tokens)
        score = float(self.queue.scores[i])
        return {"id": i, "text": text if len(text) <= 120 else text[:119] + "…", "score": _finite(score)}

    def shown(self, i: int) -> dict[str, Any]:
        """Return a sentence with its labels and the proposed ones."""
        self.work._check(i, None)
        sentence, kind = self.work.sentences[i], self.work.settings.kind
        labelled = self.work.labels_of(i)
        proposed = self.proposal(sentence)
        return {
            "id": i,
            "tokens": sentence.tokens,
            "document": next((name for name, places in self.work.documents if i in places), ""),
            "accepted": i in self.work.accepted,
            "spans": None if labelled is None else spans_of(labelled, kind),
            "proposal": proposed,
            "version": self.learning.version,
        }

    def proposal(self, sentence: Sentence) -> list[dict[str, Any]]:
        """Return the spans (or labels of tokens) that the model proposes, each with its exact probability.

        The probability is None if the scores of the learner are not probabilities.
        """
        model, kind = self.learning.model, self.work.settings.kind
        if model is None or not len(sentence):
            return []
        X = Inputs.of([sentence])
        found = confidences(model.plan(X, Query(n_jobs=1)))[0]
        sure = has_probabilities(model)
        if kind == "tokens":
            return [
                {"begin": t, "end": t + 1, "label": y, "probability": float(p) if sure else None}
                for t, (y, p) in enumerate(zip(found.labels, found.tokens))
                if y in self.work.settings.labels
            ]
        return [
            {"begin": one.begin, "end": one.end, "label": one.type, "probability": float(p) if sure else None}
            for one, p in found.chunks
            if one.type in self.work.settings.labels
        ]

    # --- actions ------------------------------------------------------------------------------------------

    def labels_from(self, i: Any, spans: Any) -> list[str]:
        """Return the labels of tokens for the spans of a request, which are objects with begin, end and label."""
        self.work._check(i, None)
        n = len(self.work.sentences[i])
        if not isinstance(spans, list) or len(spans) > n:
            raise ParameterError(f"spans: expected a list of at most {n} spans, one per token")
        found = []
        for k, one in enumerate(spans):
            if not isinstance(one, dict):
                raise ParameterError(f"span {k}: expected an object with begin, end and label")
            begin, end, label = (one.get(name) for name in ("begin", "end", "label"))
            if type(begin) is not int or type(end) is not int or not 0 <= begin < end <= n:
                raise ParameterError(
                    f"span {k}: {begin!r} to {end!r}: expected 0 <= begin < end <= {n}, the number of tokens"
                )
            if label not in self.work.settings.labels:
                raise ParameterError(
                    f"span {k}: unknown label {label!r}{meant(str(label), self.work.settings.labels)}. Add it first"
                )
            found.append(schemes.Span(str(label), begin, end))
        found.sort(key=lambda one: one.begin)
        if self.work.settings.kind == "spans":
            return schemes.from_spans(found, n, "IOB2")
        labels = [OUTSIDE] * n
        for one in found:
            labels[one.begin : one.end] = [one.type] * (one.end - one.begin)
        if OUTSIDE in labels and OUTSIDE not in self.work.settings.labels:
            raise ParameterError(f"token {labels.index(OUTSIDE)} has no label. Label every token")
        return labels

    def accept(self, i: Any, spans: Any) -> dict[str, Any]:
        """Accept the labels of a sentence, learn it, and return the state with the next sentence."""
        with self._request():
            labels = self.labels_from(i, spans)
            begin, cpu = time.perf_counter(), time.thread_time()
            self.work.accept(i, labels)
            written = time.perf_counter()
            self.queue.close(self.work.duplicates(i))
            sentence = self.work.sentences[i]
            self._known_words.update(sentence.tokens)
            before = time.thread_time()
            learned = self.learning.learn(sentence, labels)
            learning = time.thread_time() - before
            self._after()
            ranked = time.perf_counter()
            out = self.state()
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

    def skip(self, i: Any) -> dict[str, Any]:
        """Postpone a sentence, and return the state with the next one."""
        with self._request():
            self.work.skip(i)
            return self.state()

    def undo(self) -> dict[str, Any]:
        """Undo the last action. Its sentence comes into focus, with the labels it had."""
        return self._back(self.work.undo)

    def redo(self) -> dict[str, Any]:
        """Redo the last undone action."""
        return self._back(self.work.redo, follow=False)

    def _back(self, action: Callable[[], int | None], follow: bool = True) -> dict[str, Any]:
        with self._request():
            before = dict(self.work.accepted)
            i = action()
            if i is None:
                return self.state()
            previous = before.get(i)
            self._reopen(self.work.duplicates(i))
            labels = self.work.labels_of(i)
            if labels is not None and labels != previous:
                self.learning.learn(self.work.sentences[i], labels)
            elif previous is not None:  # only training from scratch forgets a sentence
                self.learning.settle(self._corpus)
            self._after()
            out = self.state(i if follow else None)
            if follow and out["sentence"] is not None and previous is not None:
                out["sentence"]["undone"] = spans_of(previous, self.work.settings.kind)
            return out

    def _after(self) -> None:
        """Start training from scratch if it is due, and rank the queue, after a change."""
        if self.work.n_labelled and self.learning.retraining_due(self.work.n_labelled):
            self.learning.settle(self._corpus)
        self._rank()
        self._wake.set()

    def choose(self, strategy: str | None = None, search: str | None = None) -> dict[str, Any]:
        """Change the strategy or the search text."""
        with self._request():
            if search is not None:
                if not isinstance(search, str) or len(search) > LONGEST_SEARCH:
                    raise ParameterError(f"search: expected a text of at most {LONGEST_SEARCH} characters")
                self.search = search
            if strategy is not None:
                self.work.set(strategy=strategy_of(strategy).name)
            self._rank()
            self._wake.set()
            return self.state()

    def add_label(self, label: Any) -> dict[str, Any]:
        """Add a label type."""
        with self._lock:
            self.work.add_label(label)
            return self.state()

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
        self.work._check(i, None)
        model = self.learning.model
        if model is None:
            raise ParameterError("there is no model to explain yet. Accept a sentence first")
        if type(token) is not int:
            raise ParameterError(f"token={token!r}: expected an integer")
        with self._lock:
            labelled = dict(self.work.labelled)
        kind, sentences = self.work.settings.kind, self.work.sentences
        return why(model, sentences[i], token, kind=kind, labelled=labelled, sentences=sentences)

    def mistakes(self, most: int = 50) -> list[dict[str, Any]]:
        """Return labelled sentences whose labels a model trained without them finds least probable."""
        with self._lock:
            places = sorted(self.work.labelled)
            corpus = self.work.corpus(places)
            settings = self.work.settings
        features = self.learning._features
        found = suspects(
            corpus, lambda: fresh(settings.learner, 5, features=features, n_jobs=self._n_jobs), most=most
        )
        return [
            {
                "id": places[one.sentence],
                "tokens": corpus[one.sentence].tokens,
                "doubt": _finite(one.doubt),
                "spans": spans_of(one.labels, settings.kind),
                "found": spans_of(one.found, settings.kind),
            }
            for one in found
        ]

    # --- in the background --------------------------------------------------------------------------------

    def _view(self) -> View:
        return View(
            self.learning.model,
            self.learning.second,
            self._known_words,
            self.search,
            n_jobs=self._n_jobs or 0,
        )

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
            score = _score(model, self.dev, self._n_jobs)
            self.curve.append({"sentences": labelled, "score": score})
            with contextlib.suppress(FileError):  # scores can be computed again
                lines = [json.dumps(point) + "\n" for point in self.curve]
                write_text(self.work.folder / CURVE, "".join(lines))
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
            with self._lock:
                brief = [self._brief(i) for i in self._order()]
            self.notify("ranked", {"queue": brief, "stale": self.queue.stale})

    def close(self) -> None:
        """Stop the threads and close the project."""
        self._ended = True
        self._wake.set()
        self._ranker.join()
        self.learning.wait()
        self.work.close()


def _read_curve(work: Work) -> list[dict[str, float]]:
    """Return the learning curve of earlier sessions, or an empty one if the file is damaged."""
    try:
        data = read_regular(work.folder / CURVE, MOST_CURVE, FileError, "", follow=False)
        points = [parsed(line) for line in data.splitlines()]
        ListOf(POINT).check(points, CURVE)
        return points
    except TagwiseError:
        return []


def _score(model: Model, dev: Corpus, n_jobs: int | None) -> float:
    """Return F1 of spans, or accuracy, on a labelled corpus."""
    from tagwise.evaluation.metrics import evaluate

    found = model.predict(dev, Query(n_jobs=n_jobs))
    gold = dev.labels
    if schemes.has_chunks({y for labels in gold for y in labels}):
        gold = [schemes.convert(labels, None, "IOB2") for labels in gold]
    return evaluate(gold, found).score


def _finite(value: float) -> float | None:
    return value if abs(value) < 1e300 else None

"""Plain data of a session for the page: its state, lists of sentences, and a summary."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, Protocol

from tagwise.apps.annotate.display import contains, displayed, line_of
from tagwise.apps.annotate.exports import EXPORTS
from tagwise.apps.annotate.learning import Learning
from tagwise.apps.annotate.patterns import TermList
from tagwise.apps.annotate.project import Work
from tagwise.apps.annotate.proposals import proposal, proposals
from tagwise.apps.annotate.queue import Queue
from tagwise.apps.annotate.ranking import STRATEGIES
from tagwise.apps.annotate.why import spans_of
from tagwise.base.exceptions import ParameterError
from tagwise.corpus.sentence import Corpus

#: Number of sentences of the queue that are shown, of other lists per request, and tokens per sentence of a list.
SHOWN, LISTED, TOKENS = 12, 50, 40
#: Lists of sentences.
TABS = ("todo", "done", "skipped", "flagged", "all")
#: Maximum length of a search text, and of a line of context.
LONGEST_SEARCH, LONGEST_LINE = 200, 300
#: Number of labelled sentences from which on probabilities are shown. Those of fewer sentences are noise.
SURE = 30
#: Number of accepted sentences that the expected time is computed from, and the least number.
PACE, LEAST_PACE = 20, 3


class Shown(Protocol):
    """Members of a session that the page shows."""

    work: Work
    learning: Learning
    queue: Queue
    dev: Corpus | None
    patterns: TermList | None
    guidelines: Path | None
    curve: list[dict[str, float]]
    paces: list[float]
    listed_proposals: dict[int, list[tuple[int, int, str]]]  # of the sentences in the list of the queue

    def order(self) -> list[int]:
        """Return the head of the queue."""

    def offer(self, i: int, proposed: list[dict[str, Any]]) -> None:
        """Remember the proposal of a sentence."""


def state(session: Shown, focus: int | None = None, *, keep: bool = False) -> dict[str, Any]:
    """Return the state of the page: the sentence in focus (by default the first of the queue), queue and counts.

    With `keep`, sentences in the list keep their proposals until the background has those of the new model.
    """
    work, learning = session.work, session.learning
    settings = work.settings
    order = session.order()
    current = order[0] if focus is None and order else focus
    undo, redo = work.undoable
    return {
        "sentence": None if current is None else shown(session, current),
        "queue": queue_rows(session, order, keep=keep),
        "counts": counts(session),
        "settings": {
            "kind": settings.kind,
            "labels": settings.labels,
            "details": settings.details,
            "learner": settings.learner,
            "strategy": settings.strategy,
        },
        "strategies": [{"name": one.name, "title": one.title} for one in STRATEGIES.values()],
        "documents": [{"name": name, "sentences": len(places)} for name, places in work.documents],
        "exports": [f for f in EXPORTS if f != "spans" or settings.kind == "spans"],
        "undo": undo,
        "redo": redo,
        "curve": session.curve,
        "dev": session.dev is not None,
        "guidelines": session.guidelines is not None,
        "busy": learning.busy,
        "failed": learning.failed,
        "version": learning.version,
        "project": work.identity,
    }


def counts(session: Shown) -> dict[str, Any]:
    """Return the numbers of sentences by what was done to them, and the expected seconds for the rest."""
    work, queue = session.work, session.queue
    open_, skipped = int(queue.open.sum()), len(skipped_ones(session))
    paces = session.paces[-PACE:]
    return {
        "actions": len(work.journal.entries),
        "sentences": len(work.sentences),
        "accepted": len(work.accepted),
        "given": work.n_given,
        "done": work.n_labelled,
        "open": open_,
        "skipped": skipped,
        "flagged": len(work.marked("flag", "reject")),
        "rejected": len(work.marked("reject")),
        "stale": queue.stale,
        "seconds": statistics.median(paces) * open_ if len(paces) >= LEAST_PACE else None,
    }


def skipped_ones(session: Shown) -> list[int]:
    """Return the open sentences that were postponed, in the order of skipping."""
    return [i for i in session.work.skipped if session.queue.open[i]]


def shown(session: Shown, i: int) -> dict[str, Any]:
    """Return a sentence with its labels and the proposed ones."""
    work = session.work
    work.check(i, None)
    sentence, kind = work.sentences[i], work.settings.kind
    labelled, undone = work.labels_of(i), work.history.undone_labels(i)
    entry = work.history.entry(i)
    proposed = proposal(
        session.learning.model,
        session.patterns,
        sentence,
        work.settings,
        work.n_labelled >= SURE,
        work.proposed.get(i),
    )
    session.offer(i, proposed)
    name, places = next(one for one in work.documents if i in one[1])
    return {
        "id": i,
        **displayed(sentence),
        "document": " · ".join(filter(None, (name, work.titles[i]))),
        "before": _context(session, i, places, -1),
        "after": _context(session, i, places, 1),
        "accepted": i in work.accepted,
        "mark": entry.mark,
        "comment": entry.comment,
        "edited": entry.edits > 0,
        "spans": None if labelled is None else spans_of(labelled, kind),
        "undone": None if undone is None or labelled is not None else spans_of(undone, kind),
        "proposal": proposed,
        "version": work.version(i),
    }


def _context(session: Shown, i: int, places: range, step: int) -> str:
    """Return the sentence before or after sentence i in its document, or an empty text."""
    sentences, j = session.work.sentences, i + step
    later = max(i, j)  # a sentence with a document name is the first one of that document
    if j not in places or sentences[later].doc is not None:
        return ""
    text = line_of(sentences[j])
    if len(text) <= LONGEST_LINE:
        return text
    return "…" + text[-LONGEST_LINE:] if step < 0 else text[:LONGEST_LINE] + "…"


def queue_rows(session: Shown, places: Sequence[int], keep: bool = False) -> list[dict[str, Any]]:
    """Return sentences of the queue for its list. With `keep`, proposals of earlier models are not computed again."""
    kept, labels = session.listed_proposals, session.work.settings.labels
    known = {i: [one for one in kept[i] if one[2] in labels] for i in places if keep and i in kept}
    out = rows(session, places, known)
    session.listed_proposals = {one["id"]: one["spans"] for one in out}
    return out


def rows(
    session: Shown,
    places: Sequence[int],
    known: Mapping[int, list[tuple[int, int, str]]] = MappingProxyType({}),
) -> list[dict[str, Any]]:
    """Return sentences for a list, with their labels, or with the `known` or the computed proposals."""
    work = session.work
    kind = work.settings.kind
    found = {i: spans_of(labels, kind) for i in places if (labels := work.labels_of(i)) is not None}
    imported = {
        i: [one for one in work.proposed[i] if one[2] in work.settings.labels]
        for i in places
        if i in work.proposed
    }
    found = {**known, **imported, **found}
    bare = [i for i in places if i not in found]
    sentences = [work.sentences[i] for i in bare]
    found.update(zip(bare, proposals(session.learning.model, session.patterns, sentences, work.settings)))
    out = []
    for i in places:
        sentence, entry = work.sentences[i], work.history.entry(i)
        out.append(
            {
                "id": i,
                **displayed(sentence, TOKENS),
                "more": len(sentence) > TOKENS,
                "spans": [one for one in found[i] if one[1] <= TOKENS and one[2] != "O"],
                "state": _state_of(session, i),
                "comment": entry.comment,
                "edited": entry.edits > 0,
            }
        )
    return out


def _state_of(session: Shown, i: int) -> str:
    mark = session.work.history.marks.get(i)
    if mark in ("flag", "reject"):
        return {"flag": "flagged", "reject": "rejected"}[mark]
    if session.work.labels_of(i) is not None:
        return "done"
    return "skipped" if mark == "skip" else "todo"


def listed(session: Shown, tab: str, search: str = "", offset: int = 0) -> dict[str, Any]:
    """Return a part of a list of sentences, those that contain a text, and the number of all of them."""
    if tab not in TABS:
        raise ParameterError(f"tab={tab!r}: expected one of {', '.join(TABS)}")
    work, skipped = session.work, skipped_ones(session)
    places: Iterable[int]
    if tab == "todo":
        later = set(skipped)
        places = [i for i in session.queue.order() if i not in later]
    elif tab == "done":
        rejected = {j for i in work.marked("reject") for j in work.duplicates(i)}
        given = (i for i in work.given if i not in work.accepted)
        places = [i for i in (*reversed(work.accepted), *given) if i not in rejected]
    elif tab == "skipped":
        places = skipped
    else:
        places = work.marked("flag", "reject")[::-1] if tab == "flagged" else range(len(work.sentences))
    if search:
        wanted = " ".join(search.split()).casefold()
        comment = {i: entry.comment.casefold() for i, entry in work.history.entries.items() if entry.comment}
        places = [i for i in places if contains(work.sentences[i], wanted) or wanted in comment.get(i, "")]
    found = list(places)
    return {"total": len(found), "offset": offset, "rows": rows(session, found[offset : offset + LISTED])}


def label_counts(session: Shown) -> dict[str, int]:
    """Return the number of spans (or tokens) of each label type."""
    kind = session.work.settings.kind
    found = Counter(y for labels in session.work.labelled.values() for _, _, y in spans_of(labels, kind))
    return {label: found[label] for label in session.work.settings.labels}


def summary(session: Shown) -> dict[str, Any]:
    """Return what was done: spans by type, time, and agreement with the proposals of the tagger."""
    work = session.work
    kind = work.settings.kind
    seconds = offered = kept = given = 0.0
    for i, labels in work.accepted.items():
        effort = work.history.entry(i).effort
        seconds += effort.get("seconds", 0.0)
        if "offered" in effort:
            offered += effort["offered"]
            kept += effort.get("kept", 0)
            given += len(spans_of(labels, kind))
    return {
        "counts": counts(session),
        "labels": label_counts(session),
        "seconds": seconds,
        "agreement": 2 * kept / (offered + given) if offered + given else None,
        "comments": sum(bool(entry.comment) for entry in work.history.entries.values()),
    }

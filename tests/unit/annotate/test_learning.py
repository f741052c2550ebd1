"""Immediate and background learning, the order of the queue, and what is reported about them."""

from __future__ import annotations

import itertools
import math
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tagwise as tw
from tagwise.apps.annotate.agreement import agreement
from tagwise.apps.annotate.folder import ProjectSettings
from tagwise.apps.annotate.learning import Learning
from tagwise.apps.annotate.mistakes import suspects
from tagwise.apps.annotate.project import Work
from tagwise.apps.annotate.queue import FIRST, SLICE, Queue
from tagwise.apps.annotate.ranking import STRATEGIES, View, margins, priorities
from tagwise.apps.annotate.session import Session
from tagwise.apps.annotate.simulate import Curve, Simulation, simulate

NAMES, PLACES = ["Peter", "Anna", "Mary", "John"], ["Paris", "Rome", "London", "Oslo"]
GOLD = [([a, "went", "to", b, "."], ["B-PER", "O", "O", "B-LOC", "O"]) for a in NAMES for b in PLACES] + [
    (["it", "rained", "in", b], ["O", "O", "O", "B-LOC"]) for b in PLACES
]
CORPUS = tw.Corpus.from_lists(*map(list, zip(*GOLD)))


@pytest.fixture(scope="module")
def model() -> Any:
    return tw.MIRA(max_iter=2, n_jobs=1).fit(CORPUS[:6]).model_


# --- learning -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("learner", ["mira", "perceptron", "pa", "arow", "crf"])
def test_learn_updates_the_model_immediately(learner: str) -> None:
    """A few steps on a sentence change the model, which then labels it correctly."""
    learning = Learning(learner)
    first = learning.model
    assert first is None
    sentence = CORPUS[0]
    learning.learn(sentence, sentence.labels)
    assert learning.model is not None
    assert learning.version == 1
    assert learning.model.predict([sentence.tokens])[0] == sentence.labels


def test_background_training_equals_fit_then_partial_fit() -> None:
    """The weights are those of `fit` followed by `partial_fit` for each sentence accepted while it ran."""
    learning = Learning(n_jobs=1)
    part = CORPUS[:8]
    late = CORPUS[9]

    def corpus() -> tw.Corpus:
        learning.learn(late, late.labels)  # training has begun and has not read its sentences
        return part

    learning.settle(corpus, wait=True)
    assert learning.failed is None
    assert not learning.busy
    assert learning.model is not None
    expected_tagger: Any = tw.MIRA(max_iter=8, n_jobs=1).fit(part)
    del expected_tagger.state_
    expected_tagger.set_params(average=False).partial_fit(
        tw.Corpus([late]), max_iter=5, callbacks=[lambda entry: not entry.measures["updates"]]
    )
    assert np.array_equal(learning.model.scorer.weights, expected_tagger.model_.scorer.weights)


def test_background_errors_are_reported_and_keep_the_model(model: Any) -> None:
    learning = Learning(start=model)

    def corpus() -> tw.Corpus:
        raise tw.exceptions.CorpusError("broken")

    learning.settle(corpus, wait=True)
    assert "broken" in (learning.failed or "")
    assert learning.model is model


def test_wait_returns_after_the_change_was_reported() -> None:
    """Training ends before its change is reported, and `wait` waits for both."""
    learning, gate, found_values = Learning(n_jobs=1), threading.Event(), []
    learning.changed = lambda: found_values.append(gate.wait(60))
    learning.settle(lambda: CORPUS[:2])
    while learning.busy:
        time.sleep(0.001)
    threading.Timer(0.05, gate.set).start()
    learning.wait()
    assert found_values == [True]


def test_learners_without_online_updates_are_rejected() -> None:
    with pytest.raises(tw.exceptions.ParameterError, match="mira"):
        Learning("hmm")


# --- ranking --------------------------------------------------------------------------------------------------


def test_margins_are_score_differences_of_the_two_best_paths(model: Any) -> None:
    found = margins(model, CORPUS)
    for sentence, margin in zip(CORPUS, found):
        (_, best), (_, second) = model.kbest([sentence], 2)[0]
        assert math.isclose(margin, best - second, abs_tol=1e-5)


def test_strategies_rank_by_their_definitions(model: Any) -> None:
    X = CORPUS[6:]
    second = tw.Perceptron(max_iter=1, n_jobs=1).fit(CORPUS[2:4]).model_
    view = View(model, second, {"went", "to", "."})
    assert np.allclose(priorities("margin", view, X), -margins(model, X))
    differ = [sum(a != b for a, b in zip(*pair)) for pair in zip(model.predict(X), second.predict(X))]
    assert np.floor(priorities("committee", view, X)).tolist() == differ
    assert priorities("order", view, X).tolist() == [-i for i in range(len(X))]
    new = priorities("diversity", View(None, None, {"went"}), [["went"], ["went", "x"], ["y", "z"]])
    assert new.tolist() == [0, -1, -2]  # nothing learned yet: in order
    assert (priorities("span", view, X) >= 0).all()
    assert (priorities("span", view, X) <= 1).all()
    p = [m.max(axis=1) for m in model.marginals(X)]
    seen = [[w not in view.seen for w in s.tokens] for s in X]
    found_values = [float(np.sum((1 - q) * np.array(n))) for q, n in zip(p, seen)]
    assert np.allclose(priorities("diversity", view, X), found_values, atol=1e-5)
    with pytest.raises(tw.exceptions.ParameterError, match="margin"):
        priorities("nothing", view, X)
    assert set(STRATEGIES) == {"margin", "span", "committee", "diversity", "order"}


@pytest.mark.parametrize("strategy", ["margin", "order"])
def test_ranking_in_slices_equals_ranking_at_once(model: Any, strategy: str) -> None:
    sentences = [CORPUS[i % len(CORPUS)].tokens for i in range(SLICE * 2 + 7)]
    queue = Queue(sentences)
    queue.close([3, 5])
    view = View(model, n_jobs=1)
    assert queue.refresh(strategy, view, 1, most=FIRST) == 2 * SLICE + 5 - FIRST
    done = FIRST
    while (found := queue.next_slice(strategy, view, 1)) is not None:
        done += len(found.places)
        assert queue.store(found, found.scores(sentences))
    assert done == 2 * SLICE + 5
    scores = priorities(strategy, view, sentences)
    expected = sorted((i for i in range(len(sentences)) if i not in (3, 5)), key=lambda i: (-scores[i], i))
    assert queue.order() == expected
    assert queue.order(9) == expected[:9]
    queue.close([3], open=True)
    assert queue.stale == 1
    late = queue.next_slice(strategy, view, 1)
    assert late is not None
    assert queue.refresh(strategy, view, 1) == 0
    queue.next_slice("span", view, 1)
    assert not queue.store(late, late.scores(sentences)), "ranks of a strategy that was left meanwhile"


# --- a session ------------------------------------------------------------------------------------------------


def opened(folder: Path, **settings: Any) -> Session:
    work = Work(folder, ProjectSettings(labels=["PER", "LOC"]))
    if not work.sentences:
        work.add(tw.Corpus.from_lists(CORPUS.tokens), "text")
    return Session(work, **settings)


def spans_of(i: int) -> list[dict[str, Any]]:
    return [{"begin": t, "end": t + 1, "label": y[2:]} for t, y in enumerate(CORPUS[i].labels) if y != "O"]


def test_session_learns_undoes_and_resumes(tmp_path: Path) -> None:
    session = opened(tmp_path, dev=CORPUS)
    state = session.state()
    for _ in range(6):
        i = state["sentence"]["id"]
        state = session.accept(i, spans_of(i))
    assert state["counts"]["accepted"] == 6
    assert state["undo"]
    assert not state["redo"]
    session.learning.wait()
    assert session.curve
    assert session.curve[-1]["score"] > 0.5
    found_values = {one["label"] for one in session.state(15)["sentence"]["proposal"]}
    assert found_values == {"PER", "LOC"}
    last = session.work.journal.entries[-1]["id"]
    back = session.undo()
    assert back["sentence"]["id"] == last
    assert back["redo"]
    assert back["counts"]["accepted"] == 5
    assert [tuple(s.values()) for s in spans_of(last)] == [tuple(s) for s in back["sentence"]["undone"]]
    assert session.redo()["counts"]["accepted"] == 6
    why = session.why(15, 0)
    behind = [one["behind"] for one in why["readings"]]
    assert behind == sorted(behind)
    assert behind[0] == 0
    assert {one["share"] for one in why["readings"]} == {None}  # a margin learner has no probabilities
    assert why["decision"]["votes"]
    assert {one["tokens"][0] for one in why["alike"]} & {"John", "Oslo"}
    session.learning.wait()
    session.close()
    again = opened(tmp_path)
    assert again.state()["counts"]["accepted"] == 6
    assert again.curve[: len(session.curve)] == session.curve
    assert again.learning.model is not None
    again.close()
    (tmp_path / "curve.jsonl").write_text("[1]\n")
    spoilt = opened(tmp_path)
    assert spoilt.curve == []
    spoilt.close()


@pytest.mark.parametrize(
    "spans",
    [
        None, {}, [1], [{}], [{"begin": 0, "end": 9, "label": "PER"}], [{"begin": 1, "end": 1, "label": "PER"}],
        [{"begin": 0, "end": 1, "label": "ORG"}], [{"begin": True, "end": 2, "label": "PER"}],
        [{"begin": 0, "end": 2, "label": "PER"}, {"begin": 1, "end": 3, "label": "LOC"}],
        [{}] * 50,
    ],
)  # fmt: skip
def test_invalid_spans_are_rejected_and_not_written(tmp_path: Path, spans: Any) -> None:
    session = opened(tmp_path)
    with pytest.raises(tw.TagwiseError):
        session.accept(0, spans)
    assert not session.work.journal.entries
    session.close()


def test_initial_model_proposes_labels(tmp_path: Path, model: Any) -> None:
    session = opened(tmp_path, model=model)
    assert session.state()["sentence"]["proposal"]
    assert set(session.work.settings.labels) == {"PER", "LOC"}
    session.accept(0, spans_of(0))
    assert session.learning.model is not model
    session.close()


def test_duplicate_sentences_are_queued_once(tmp_path: Path) -> None:
    """One of them is in the queue. Its labels apply to all that have no labels of their own."""
    one, other = CORPUS[0].tokens, CORPUS[5].tokens
    work = Work(tmp_path, ProjectSettings(labels=["PER", "LOC"]))
    work.add(tw.Corpus.from_lists([one, other, one, one]), "text")
    session = Session(work)
    assert session.queue.order() == [0, 1]
    state = session.accept(0, spans_of(0))
    assert state["counts"]["open"] == 1
    assert work.labelled == dict.fromkeys((0, 2, 3), CORPUS[0].labels)
    assert session.undo()["counts"]["open"] == 2
    assert work.labelled == {}
    assert sorted(session.queue.order()) == [0, 1]
    session.redo()
    session.accept(2, [])
    assert work.labelled == {0: CORPUS[0].labels, 2: ["O"] * len(one), 3: CORPUS[0].labels}
    session.close()
    again = Work(tmp_path)
    assert again.labelled == work.labelled
    assert again.export("jsonl").count(b"\n") == 3
    again.close()


# --- mistakes, agreement, simulation --------------------------------------------------------------------------


def test_planted_mistake_is_the_first_suspect() -> None:
    labels = [list(y) for y in CORPUS.labels]
    labels[5][0] = "B-LOC"
    found = suspects(CORPUS.with_labels(labels), lambda: tw.MIRA(max_iter=4, n_jobs=1))
    assert found[0].sentence == 5
    assert found[0].tokens == [0]
    assert found[0].found == CORPUS[5].labels
    assert all(a.doubt >= b.doubt > 0 for a, b in itertools.pairwise(found))
    with pytest.raises(tw.exceptions.ParameterError):
        suspects(CORPUS[:3], tw.MIRA)


def test_agreement_equals_cohens_kappa_example() -> None:
    """Cohen's example of two by two counts: 20 and 15 agree, 5 and 10 do not, and kappa is 0.4."""
    one = ["X"] * 25 + ["Y"] * 25
    two = ["X"] * 20 + ["Y"] * 5 + ["X"] * 10 + ["Y"] * 15
    tokens = [[f"t{i}"] for i in range(50)]
    found = agreement(*(tw.Corpus.from_lists(tokens, [[y] for y in labels]) for labels in (one, two)))
    assert math.isclose(found.kappa, 0.4)
    assert math.isclose(found.accuracy, 0.7)
    assert found.f1 is None
    assert len(found.disagreements) == 15
    same = agreement(CORPUS, CORPUS)
    assert (same.kappa, same.f1, same.disagreements) == (1.0, 1.0, [])
    with pytest.raises(tw.exceptions.CorpusError, match="sentence 2 is"):
        agreement(CORPUS[:2], CORPUS[:1] + CORPUS[2:3])


def test_simulation_counts_sentences_until_the_target() -> None:
    found = simulate("c", CORPUS, CORPUS, lambda: tw.MIRA(max_iter=2, n_jobs=1), begin=2, growth=1.5, seeds=2)
    for curve in found.curves:
        assert (curve.sentences[0] == 2 and curve.scores[-1] >= found.target) or curve.sentences[-1] == len(
            CORPUS
        )
        assert curve.sentences == sorted(set(curve.sentences))
    assert found.rows()[0][0] == "random"
    assert "| margin |" in found.markdown()
    assert found.chart().document().startswith("<svg")
    hand = Simulation("c", 0.8, 9, 0.5, [Curve("random", 0, [1, 2, 4], [5, 9, 20], [0.1, 0.4, 0.8])])
    assert hand.needed("random") == (2.0, 9.0)
    hand.curves[0].scores = [0.0, 0.0, 0.0]
    assert hand.needed("random") is None
    assert "more than 4" in hand.markdown()

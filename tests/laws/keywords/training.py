"""Arguments of training: fit, partial_fit, and the training state in a file."""

from __future__ import annotations

from pathlib import Path as File
from typing import Any

import numpy as np
import pytest

import tagwise as tw
from tagwise.estimators import LEARNERS

from ..parameters.common import P, X, Y
from ..parameters.rows import NAMES, bits, dense, names, tokens
from .rows import ONLINE, fitted, row, short

# -- fit --------------------------------------------------------------------------------------------------


@row("fit", "X", "y")
def sentences_and_labels(learner: str, _: File) -> None:
    """A corpus and lists of tokens and labels are equivalent. Labels passed as y override those of the corpus."""
    lists = short(learner, features="S1").fit(X, Y)
    whole = tw.Corpus.from_lists(X, Y)
    assert bits(short(learner, features="S1").fit(whole)) == bits(lists)
    other = [["N"] * len(path) for path in Y]
    assert short(learner, features="S1").fit(whole, other).classes_ == ("N",)
    with pytest.raises(tw.exceptions.ParameterError, match="no labels: pass y"):
        short(learner, features="S1").fit(X)


@row("fit", "dev", "dev_y")
def development(learner: str, _: File) -> None:
    """Each iteration is scored on dev, which is a labelled corpus or sentences with dev_y.

    Without dev the score is None.
    """
    plain = short(learner, features="S1").fit(X, Y)
    assert not any("dev_score" in entry for entry in plain.history_)
    by_lists = short(learner, features="S1").fit(X, Y, dev=X[:2], dev_y=Y[:2])
    found = [entry["dev_score"] for entry in by_lists.history_]
    right = [a == b for path, guess in zip(Y[:2], by_lists.predict(X[:2])) for a, b in zip(path, guess)]
    assert max(found) == sum(right) / len(right)
    by_corpus = short(learner, features="S1").fit(X, Y, dev=tw.Corpus.from_lists(X[:2], Y[:2]))
    assert [entry["dev_score"] for entry in by_corpus.history_] == found
    wrong = [["?"] * len(path) for path in Y[:2]]
    worst = short(learner, features="S1").fit(X, Y, dev=tw.Corpus.from_lists(X[:2], Y[:2]), dev_y=wrong)
    assert {entry["dev_score"] for entry in worst.history_} == {0.0}
    with pytest.raises(tw.exceptions.CorpusError, match=r"dev: .*Give one label"):
        short(learner, features="S1").fit(X, Y, dev=X[:2], dev_y=Y[:1])


@row("fit", "sample_weight")
def sample_weight(learner: str, _: File) -> None:
    """Weights of 1 change nothing, other weights change the model, and a wrong number of weights is an error."""
    plain = fitted(learner)
    assert bits(fitted(learner, sample_weight=[1.0] * len(P.X))) == bits(plain)
    assert bits(fitted(learner, sample_weight=[0.5, 2.0, 1.0, 0.0, 3.0, 0.1])) != bits(plain)
    with pytest.raises(tw.exceptions.ParameterError, match="sample_weight"):
        fitted(learner, sample_weight=[1.0])


@row("fit", "callbacks")
def callbacks(learner: str, _: File) -> None:
    """Every callback receives every iteration. Returning True ends training, and the current model is kept."""
    seen: list[Any] = []
    tagger = fitted(learner, callbacks=[seen.append, lambda entry: seen.append(entry)])
    for one, other, entry in zip(seen[::2], seen[1::2], tagger.history_, strict=True):
        assert one == other
        reported = one.as_dict()  # the last objective is computed again in double precision
        assert reported.pop("objective") == pytest.approx(entry["objective"], rel=1e-6)
        assert reported.items() <= entry.items()
    if learner == "hmm":
        return
    stopped = fitted(learner, callbacks=[lambda entry: entry.iteration == 2])
    assert stopped.stopped_ == "a callback returned True"
    values = [e["objective"] for e in tagger.history_[:2]]
    assert [e["objective"] for e in stopped.history_] == pytest.approx(values, rel=1e-6)


@row("fit", "warm_start")
def warm_start(learner: str, folder: File) -> None:
    """Training starts from the weights of a tagger, a model or a file. Learners without warm starts raise an error."""
    first = tw.CRF(all_pairs=True, l2=0.3, max_iter=4).fit(tokens(P), names(P))
    first.save(folder / "first.tagwise")
    if learner in ("hmsvm", "hmm"):
        with pytest.raises(
            tw.exceptions.ParameterError, match="cannot start from the weights of another model"
        ):
            fitted(learner, warm_start=first)
        return
    sources = (first, first.model_, folder / "first.tagwise", str(folder / "first.tagwise"))
    warm = [fitted(learner, warm_start=source) for source in sources]
    assert len({bits(tagger) for tagger in warm}) == 1
    assert bits(warm[0]) != bits(fitted(learner))
    stay = {"max_iter": 0, "all_pairs": True, "n_jobs": 1}
    if learner in ("crf", "memm", "boosting"):
        tagger = short(learner, **stay).fit(tokens(P), names(P), warm_start=first)
        np.testing.assert_array_equal(dense(tagger, P), dense(first, P))
    else:
        # a sentence that the weights get right by a wide margin changes nothing
        sure = tw.CRF(features="S1", l2=1e-4, all_pairs=True).fit([["a", "b"]], [["x", "y"]])
        again = short(learner, features="S1", all_pairs=True, average=False)
        again.fit([["a", "b"]], [["x", "y"]], warm_start=sure)
        np.testing.assert_array_equal(again.model_.scorer.weights, sure.model_.scorer.weights)


@row("fit", "forget")
def forget(learner: str, folder: File) -> None:
    """With forget=True only labels and features of the new sentences are kept, with their old weights.

    By default the model's labels and features stay.
    """
    if learner in ("hmsvm", "hmm"):
        with pytest.raises(tw.exceptions.ParameterError, match=r"forget=True needs a model to start from"):
            fitted(learner, forget=True)
        return
    first = tw.CRF(all_pairs=True, l2=0.3, max_iter=4).fit([["old", "a"]], [["OLD", NAMES[0]]])
    assert "OLD" in fitted(learner, warm_start=first).classes_
    assert "OLD" not in fitted(learner, warm_start=first, forget=True).classes_
    with pytest.raises(tw.exceptions.ParameterError, match=r"forget=True needs a model to start from"):
        fitted(learner, forget=True)


@row("fit", "checkpoint")
def checkpoint(learner: str, folder: File) -> None:
    """The file holds the state after an iteration, and training resumes from it. Counted models write no file."""
    kept = tw.Checkpoint(folder / "run", every=1)
    whole = fitted(learner, checkpoint=kept)
    assert bits(whole) == bits(fitted(learner))
    assert (folder / "run").exists() == (learner != "hmm")
    if learner == "hmm":
        return
    seen: list[int] = []
    again = tw.Checkpoint(folder / "run", resume=True)
    resumed = fitted(learner, checkpoint=again, callbacks=[lambda entry: seen.append(entry.iteration)])
    assert bits(resumed) == bits(whole)
    assert seen == []  # the run was already complete
    with pytest.raises(tw.exceptions.ParameterError, match=r"expected a tagwise\.Checkpoint"):
        fitted(learner, checkpoint="run")


# -- partial_fit ------------------------------------------------------------------------------------------


@row("partial_fit", "X", "y", "max_iter")
def partial_fit(learner: str, _: File) -> None:
    """Epochs in several calls equal one longer fit to the bit.

    A corpus brings its own labels. max_iter=0 is an error.
    """
    kind = LEARNERS[learner]
    long = kind(features="S1", max_iter=5).fit(X, Y)
    parts = kind(features="S1")
    for n, data in ((2, (X, Y)), (1, (tw.Corpus.from_lists(X, Y),)), (2, (X, Y))):
        parts.partial_fit(*data, max_iter=n)  # type: ignore[attr-defined]
    assert bits(parts) == bits(long)
    assert [e["iteration"] for e in parts.history_] == [1, 2, 3, 4, 5]
    assert [e["objective"] for e in parts.history_] == [e["objective"] for e in long.history_]
    assert parts.best_iteration_ == 5
    once = kind(features="S1").partial_fit(X, Y)  # type: ignore[attr-defined]
    assert len(once.history_) == 1
    with pytest.raises(tw.exceptions.ParameterError, match=r"^max_iter=0"):
        parts.partial_fit(X, Y, max_iter=0)  # type: ignore[attr-defined]


@row("partial_fit", "dev", "dev_y", "sample_weight", "callbacks")
def partial_fit_as_fit(learner: str, _: File) -> None:
    """The arguments have their meaning of fit, in the first call and in later ones."""
    kind, weight = LEARNERS[learner], [0.5, 2.0, 1.0, 0.25]
    seen: list[int] = []
    fit = kind(features="S1", max_iter=2).fit(X, Y, dev=X[:2], dev_y=Y[:2], sample_weight=weight)
    parts = kind(features="S1")
    for _ in range(2):
        parts.partial_fit(  # type: ignore[attr-defined]
            X,
            Y,
            dev=X[:2],
            dev_y=Y[:2],
            sample_weight=weight,
            callbacks=[lambda entry: seen.append(entry.iteration)],
        )
    assert [e["dev_score"] for e in parts.history_] == [e["dev_score"] for e in fit.history_]
    assert seen == [1, 1]
    last = kind(features="S1", max_iter=2).fit(X, Y, sample_weight=weight)
    plain = kind(features="S1")
    for _ in range(2):
        plain.partial_fit(X, Y, sample_weight=weight)  # type: ignore[attr-defined]
    assert bits(plain) == bits(last) != bits(kind(features="S1", max_iter=2).fit(X, Y))
    stopped = kind(features="S1").partial_fit(X, Y, max_iter=5, callbacks=[lambda entry: True])  # type: ignore[attr-defined]
    assert (len(stopped.history_), stopped.stopped_) == (1, "a callback returned True")
    by_corpus = kind(features="S1").partial_fit(X, Y, dev=tw.Corpus.from_lists(X[:2], Y[:2]))  # type: ignore[attr-defined]
    assert by_corpus.history_[0]["dev_score"] == fit.history_[0]["dev_score"]


@row("save", "state")
def save_state(learner: str, folder: File) -> None:
    """A file with state resumes as if training had never stopped.

    Without state, training starts from the weights alone.
    """
    if learner not in ONLINE:
        return
    kind = LEARNERS[learner]
    long = kind(max_iter=3).fit(tokens(P), names(P))
    first = kind(max_iter=2).fit(tokens(P), names(P))
    first.save(folder / "state.tagwise", state=True)
    first.save(folder / "plain.tagwise")
    gone_on, anew = (tw.load(folder / f"{name}.tagwise") for name in ("state", "plain"))
    for tagger in (gone_on, anew):
        tagger.partial_fit(tokens(P), names(P))  # type: ignore[attr-defined]
    assert bits(gone_on) == bits(long)
    assert bits(anew) != bits(long)
    with pytest.raises(tw.exceptions.ParameterError, match="prune=True removes features"):
        first.save(folder / "both.tagwise", prune=True, state=True)  # type: ignore[call-arg]

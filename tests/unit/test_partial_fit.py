"""Continued training with more sentences, attributes and labels, exact on the same data. Pruned models."""

from __future__ import annotations

import copy
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tagwise as tw
from tagwise.corpus import schemes
from tagwise.dataset.layout import codes_of, layout_of
from tagwise.model.prune import prune

from ..corpora import X, Y
from ..golden.names import named

KINDS: list[tuple[type[Any], dict[str, Any]]] = [
    (tw.Perceptron, {}),
    (tw.Perceptron, {"average": False, "all_pairs": True}),
    (tw.Perceptron, {"mode": "batch"}),
    (tw.Perceptron, {"parts": 2}),
    (tw.MIRA, {"k": 3}),
    (tw.MIRA, {"k": 1, "cost": "f1"}),
    (tw.PassiveAggressive, {}),
    (tw.AROW, {}),
]
EDGE = "word[0]\nword[0].suffix(1..2)\nedge: word[0].suffix(1)"


def weights(tagger: Any) -> Any:
    return tagger.model_.scorer.weights


@pytest.mark.parametrize(("kind", "params"), KINDS)
@pytest.mark.parametrize("features", ["S2", EDGE])
def test_training_in_pieces_equals_uninterrupted_training(
    kind: type[Any], params: dict[str, Any], features: str, tmp_path: Path
) -> None:
    """Bit-identical to uninterrupted training, in memory, through a file and through pickle."""
    params = {"features": features, **params}
    whole = kind(max_iter=7, **params).fit(X, Y)
    pieces = kind(max_iter=3, **params).fit(X, Y)
    pieces.save(tmp_path / "state", state=True)
    for part in (pieces, tw.load(tmp_path / "state"), pickle.loads(pickle.dumps(pieces))):
        part.partial_fit(X, Y, max_iter=2).partial_fit(X, Y).partial_fit(X, Y)
        np.testing.assert_array_equal(weights(part), weights(whole))
        assert part.classes_ == whole.classes_
    assert [e["objective"] for e in pieces.history_] == [e["objective"] for e in whole.history_]
    assert [e["iteration"] for e in pieces.history_] == list(range(1, 8))


@pytest.mark.parametrize(("kind", "params"), KINDS)
@pytest.mark.parametrize("features", ["S2", EDGE])
def test_sparse_updates_equal_full_updates(kind: type[Any], params: dict[str, Any], features: str) -> None:
    """Updating only the features of a sentence gives the model and training state of updating all weights.

    A dev set needs all weights after each epoch, and one epoch is kept whatever its score. Model and state are
    bit-identical and stay so in continued training.
    """
    few, all_ = (kind(features=features, max_iter=3, **params).fit(X, Y) for _ in range(2))
    more = [([["Oslo", "sings"]], [["NEW", "VERB"]]), (X[1:2], Y[1:2]), ([["the"]], [["DET"]])]
    for x, y in more:
        few.partial_fit(x, y)
        all_.partial_fit(x, y, dev=X, dev_y=Y)
        np.testing.assert_array_equal(weights(few), weights(all_))
        assert few.state_.keys() == all_.state_.keys()
        for name, value in few.state_.items():
            np.testing.assert_array_equal(value, all_.state_[name])
        few.partial_fit(x, y, max_iter=3)
        for _ in range(3):
            all_.partial_fit(x, y, dev=X, dev_y=Y)
        np.testing.assert_array_equal(weights(few), weights(all_))


@pytest.mark.parametrize(("kind", "params"), KINDS)
def test_new_words_and_labels_are_learnt(kind: type[Any], params: dict[str, Any]) -> None:
    tagger = kind(features="S2", **params).partial_fit(X, Y, max_iter=10)
    before, labels = tagger.model_, tagger.classes_
    more, gold = [["Oslo", "sings"], ["the", "fjord"]], [["NEW", "VERB"], ["DET", "NEW"]]
    for epochs in (
        1,
        1,
        300,
    ):  # batch updates are large: many epochs to overcome the first ones in the average
        tagger.partial_fit([*X, *more], [*Y, *gold], max_iter=epochs)
    assert tagger.classes_ == (*labels, "NEW")
    assert tagger.predict(more) == gold
    assert tagger.predict(X) == Y
    # Existing features keep their index, and the old model is unchanged.
    assert tagger.model_.vocabulary.texts()[: len(before.vocabulary)] == before.vocabulary.texts()
    assert before.labels == labels


def test_weights_of_absent_features_are_unchanged() -> None:
    """Sentences that are already correct change nothing, and the features they add have weight 0."""
    tagger = tw.Perceptron(features="word[0]", average=False, start_end=False).partial_fit(X, Y, max_iter=20)
    before = {**tagger.inspect(1000).labels}
    tagger.partial_fit([[X[0][0], X[0][1]]], [[Y[0][0], Y[0][1]]])
    assert tagger.inspect(1000).labels == before


def test_averages_count_steps_before_a_feature_existed() -> None:
    """An attribute that appears late averages with zeros: 1 update in the last of 4 steps gives weights of 1/4."""
    tagger = tw.Perceptron(features="word[0]", shuffle=False, start_end=False)
    tagger.partial_fit([["a"], ["a"], ["a"]], [["X"], ["X"], ["X"]])
    tagger.partial_fit([["b"]], [["Y"]])
    assert tagger.state_["steps"] == 4
    # Step 4 predicts X (all scores are 0, ties go to the first label) and is corrected after it.
    assert dict(tagger.inspect().labels["Y"]) == {"word[0]=b": pytest.approx(0.25)}


def test_a_file_without_state_starts_a_new_average(tmp_path: Path) -> None:
    tagger = tw.Perceptron(features="S2", max_iter=5).fit(X, Y)
    tagger.save(tmp_path / "bare")
    tagger.save(tmp_path / "state", state=True)
    assert (tmp_path / "bare").stat().st_size < (tmp_path / "state").stat().st_size
    again = tw.load(tmp_path / "bare").partial_fit(X, Y)
    assert again.state_["steps"] == len(X)
    assert again.predict(X) == Y
    # Saving again without the state also drops its metadata.
    loaded = tw.load(tmp_path / "state")
    loaded.save(tmp_path / "again")
    assert tw.load(tmp_path / "again").model_.meta == tw.load(tmp_path / "bare").model_.meta
    with pytest.raises(tw.exceptions.ParameterError, match="prune"):
        tagger.save(tmp_path / "both", prune=True, state=True)


def test_min_count_and_frequent_words_persist() -> None:
    tagger = tw.Perceptron(features="pos", min_count=2, max_iter=3).fit(X, Y)
    size, lists = len(tagger.model_.vocabulary), tagger.model_.recipe.lists
    tagger.partial_fit([["once", "twice", "twice"]], [["DET", "NOUN", "NOUN"]])
    texts = tagger.model_.vocabulary.texts()
    assert "word[0]=twice" in texts[size:]
    assert "word[0]=once" not in texts
    assert tagger.model_.recipe.lists == lists


LIMITED = {"constraints": "auto", "dictionary": tw.Dictionary(2, share=0.3)}
CHUNKS = [
    (["Ada", "Moss", "met", "Lund"], ["B-PER", "E-PER", "O", "S-PER"]),
    (["in", "Oslo", "Lund"], ["O", "B-LOC", "E-LOC"]),
    (["Ada", "met", "Oslo"], ["S-PER", "O", "S-LOC"]),
    (["Lund", "met", "Ada", "Lund"], ["S-PER", "O", "S-PER", "S-PER"]),
]


def chunks(*which: int) -> tuple[list[list[str]], list[list[str]]]:
    return [CHUNKS[i][0] for i in which], [CHUNKS[i][1] for i in which]


@pytest.mark.parametrize(("kind", "params"), KINDS)
def test_training_in_pieces_keeps_constraints_and_dictionary(
    kind: type[Any], params: dict[str, Any], tmp_path: Path
) -> None:
    """Weights, constraints and tag dictionary equal those of uninterrupted training."""
    params = {"features": EDGE, **LIMITED, "random_state": 5, **params}
    X, Y = chunks(0, 1, 2, 3)
    whole = kind(max_iter=5, **params).fit(X, Y)
    pieces = kind(max_iter=2, **params).fit(X, Y)
    pieces.save(tmp_path / "state", state=True)
    for part in (pieces, tw.load(tmp_path / "state")):
        part.partial_fit(X, Y, max_iter=3)
        np.testing.assert_array_equal(weights(part), weights(whole))
        assert part.model_.constraints == whole.model_.constraints
        assert part.model_.dictionary.of == whole.model_.dictionary.of
        np.testing.assert_array_equal(part.model_.dictionary.sets, whole.model_.dictionary.sets)


def test_scheme_and_dictionary_persist_and_grow() -> None:
    """The scheme found by "auto" and the dictionary persist. New sentences add words, and labels to known words."""
    tagger = tw.Perceptron(features=EDGE, max_iter=3, **LIMITED).fit(*chunks(0, 1, 2, 3))
    labels = tagger.classes_

    def words() -> dict[str, set[str]]:
        sets, of = tagger.model_.dictionary.sets, tagger.model_.dictionary.of
        return {word: {tagger.classes_[y] for y in np.flatnonzero(sets[row])} for word, row in of.items()}

    # Twice or more: Ada (B-PER 1/3, S-PER 2/3), Lund (S-PER 3/4, E-LOC 1/4 is too rare), met, Oslo.
    first = {"Ada": {"B-PER", "S-PER"}, "met": {"O"}, "Lund": {"S-PER"}, "Oslo": {"B-LOC", "S-LOC"}}
    assert words() == first
    assert tagger.model_.constraints.scheme == "IOBES"
    # Labels that imply no scheme and a single word change nothing.
    tagger.partial_fit([["rain"]], [["O"]])
    assert tagger.model_.constraints.scheme == "IOBES"
    assert words() == first
    # B-X I-X alone would be IOB2. As IOBES it is read as B-X E-X.
    tagger.partial_fit([["Nils", "Nils"]], [["B-LOC", "I-LOC"]])
    assert tagger.classes_ == labels
    tagger.partial_fit([["Lund", "Lund"]], [["S-NEW", "S-NEW"]])
    assert tagger.classes_ == (*labels, "S-NEW")
    assert tagger.model_.constraints.scheme == "IOBES"
    assert words() == {**first, "Lund": {"S-PER", "S-NEW"}, "Nils": {"B-LOC", "E-LOC"}}
    assert tagger.model_.dictionary.sets.shape[1] == len(labels) + 1
    # Predictions obey the constraints: no path that IOBES forbids.
    for path in tagger.predict([["Nils", "Lund", "Ada", "rain", "Nils"], ["Oslo"], ["met", "Oslo"]]):
        assert tw.evaluate([path], [path]).f1 in (0.0, 1.0)
        steps = list(zip([None, *path], [*path, None]))
        assert all(schemes.valid(a, b, "IOBES") for a, b in steps), path


@pytest.mark.parametrize("params", [{}, {"all_pairs": True}, {"start_end": False}])
def test_features_keep_their_weights_when_the_model_grows(params: dict[str, Any]) -> None:
    """With new words, labels and edge attributes, every old feature keeps its weight and a new one has 0."""
    tagger = tw.Perceptron(features=EDGE, max_iter=3, average=False, **params).fit(X, Y)
    before = named(tagger.model_)
    assert any(w for name, w in before.items() if name[0] == "pair")
    more, gold = [["zebra", "the", "okapi", "the"]], [["NEW", "DET", "ODD", "NEW"]]
    tagger.partial_fit(more, gold, sample_weight=[0.0])
    after = named(tagger.model_)
    assert {"NEW", "ODD"} < set(tagger.classes_)
    assert len(after) > len(before)
    assert after == {name: before.get(name, 0.0) for name in after}
    assert before.keys() <= after.keys()


def test_new_features_start_with_the_initial_variance() -> None:
    """AROW: a late feature starts with the variance of the parameters. Older features keep theirs."""
    tagger = tw.AROW(features="word[0]\n", variance=3.0, r=0.5, max_iter=2, all_pairs=True).fit(X, Y)
    before = dict(zip(named(tagger.model_), tagger.state_["variance"].tolist()))
    assert min(before.values()) < 3.0 == max(before.values())
    tagger.partial_fit([["zebra", "okapi"]], [["NEW", "DET"]])
    after = dict(zip(named(tagger.model_), tagger.state_["variance"].tolist()))
    words = {name[1] for name in after if name[0] == "node"} - {
        name[1] for name in before if name[0] == "node"
    }
    assert words == {"word[0]=zebra", "word[0]=okapi"}
    for word in words:  # two labels, the right one and the other, were updated
        of = [v for name, v in after.items() if name[:2] == ("node", word)]
        assert len(of) == len(tagger.classes_)
        assert of.count(3.0) == len(of) - 2
        assert min(of) < 3.0
    for name, variance in before.items():
        assert after[name] == variance if name[0] == "node" else after[name] <= variance
    # The first step on new words only is that of a new learner.
    late = tw.AROW(features="word[0]\n", variance=3.0, r=0.5, start_end=False, average=False)
    fresh = tw.AROW(features="word[0]\n", variance=3.0, r=0.5, start_end=False, average=False, max_iter=1)
    late.partial_fit([["p"], ["q"]], [["A"], ["B"]]).partial_fit([["zebra"]], [["B"]])
    fresh.fit([["p"], ["zebra"]], [["A"], ["B"]], sample_weight=[0.0, 1.0])
    assert (
        dict(late.inspect().labels["B"])["word[0]=zebra"]
        == dict(fresh.inspect().labels["B"])["word[0]=zebra"]
    )


@pytest.mark.parametrize("trip", [copy.copy, copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))])
def test_copies_of_loaded_taggers_keep_the_training_state(trip: Any, tmp_path: Path) -> None:
    """Saved with its state, loaded, copied or pickled, saved again: training continues as if never interrupted."""
    for kind in (tw.Perceptron, tw.AROW):
        whole = kind(features="S2", max_iter=3).fit(X, Y)
        kind(features="S2", max_iter=1).fit(X, Y).save(tmp_path / "state", state=True)
        other = trip(tw.load(tmp_path / "state"))
        other.save(tmp_path / "again", state=True)
        assert (tmp_path / "again").read_bytes() == (tmp_path / "state").read_bytes()
        for part in (other, tw.load(tmp_path / "again")):
            part.partial_fit(X, Y, max_iter=2)
            np.testing.assert_array_equal(weights(part), weights(whole))


def test_files_without_state_do_not_refer_to_one(tmp_path: Path) -> None:
    """A model saved without the state arrays contains no reference to a state, whichever function saves it."""
    tagger = tw.Perceptron(features="S2", max_iter=2).fit(X, Y)
    tagger.save(tmp_path / "bare")
    tagger.save(tmp_path / "state", state=True)
    loaded = tw.load(tmp_path / "state")
    assert loaded.model_.meta["state"] == {"steps": 2.0 * len(X), "epochs": 2}
    loaded.model_.save(tmp_path / "model")
    loaded.save(tmp_path / "pruned", prune=True)
    assert (tmp_path / "model").read_bytes() == (tmp_path / "bare").read_bytes()
    for name in ("model", "pruned"):
        again = tw.load(tmp_path / name)
        assert "state" not in again.model_.meta
        assert again.partial_fit(X, Y).state_["steps"] == len(X)


def test_second_fit_replaces_the_training_state(tmp_path: Path) -> None:
    """The state is that of the last training. Learners with history features or a kernel have none."""
    for params in ({"lookback": (1, 2)}, {"kernel": "poly"}):
        tagger = tw.Perceptron(features="S2", max_iter=2).fit(X, Y)
        tagger.set_params(**params).fit(X[:2], Y[:2])
        assert not hasattr(tagger, "state_")
    tagger = tw.Perceptron(features="S2", max_iter=2).fit(X, Y)
    assert tagger.fit(X[:2], Y[:2]).state_["steps"] == 4
    assert tagger.fit(X[:2], Y[:2]).partial_fit(X[:2], Y[:2]).state_["steps"] == 6


# --- pruning ------------------------------------------------------------------------------------------------


def test_layouts_are_rebuilt_from_their_codes() -> None:
    layout = tw.Perceptron(features=EDGE, max_iter=1).fit(X, Y).model_.scorer.layout
    again = layout_of(layout.n_attributes, layout.n_labels, codes_of(layout), pairs=True)
    for name, array in layout.arrays().items():
        np.testing.assert_array_equal(again.arrays()[name], array)
    same, places = layout.united(layout)
    assert len(same) == len(layout)
    np.testing.assert_array_equal(places, np.arange(len(layout)))


def test_pruning_a_zero_model_removes_all_features() -> None:
    model = tw.CRF(features="S1", l1=1e6, l2=0.0).fit(X, Y).model_
    small, _ = prune(model)
    assert len(small.scorer.layout) == len(small.vocabulary) == 0
    assert small.predict(X) == model.predict(X)


def test_tagger_without_state_saves_the_initial_state(tmp_path: Path) -> None:
    """Weights alone are saved as the state before the first step: no steps, no epochs, zero sums."""
    tw.Perceptron(features="S1", max_iter=2).fit(X, Y).save(tmp_path / "plain.tagwise")
    tw.load(tmp_path / "plain.tagwise").save(tmp_path / "state.tagwise", state=True)
    model = tw.load(tmp_path / "state.tagwise").model_
    assert model.meta["state"] == {"steps": 0.0, "epochs": 0}
    assert len(model.file.array("state.sums")) == len(model.file.array("state.variance")) == 0

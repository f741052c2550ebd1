"""Going on with training: more sentences, attributes, labels; exactly, where the data are the same. Pruned models."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tagwise as tw
from tagwise.prune import prune
from tagwise.reshape import codes_of, layout_of, united

from .test_estimators import X, Y

KINDS: list[tuple[type[Any], dict[str, Any]]] = [
    (tw.Perceptron, {}),
    (tw.Perceptron, {"average": False, "all_pairs": True}),
    (tw.Perceptron, {"mode": "batch"}),
    (tw.Perceptron, {"shards": 2}),
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
def test_training_in_pieces_is_training(
    kind: type[Any], params: dict[str, Any], features: str, tmp_path: Path
) -> None:
    """The same bits as without interruption, in memory, through a file and through pickle."""
    params = {"features": features, **params}
    whole = kind(epochs=7, **params).fit(X, Y)
    pieces = kind(epochs=3, **params).fit(X, Y)
    pieces.save(tmp_path / "state", state=True)
    for part in (pieces, tw.load(tmp_path / "state"), pickle.loads(pickle.dumps(pieces))):
        part.partial_fit(X, Y, epochs=2).partial_fit(X, Y).partial_fit(X, Y)
        np.testing.assert_array_equal(weights(part), weights(whole))
        assert part.classes_ == whole.classes_
    assert [e["objective"] for e in pieces.history_] == [e["objective"] for e in whole.history_]
    assert [e["iteration"] for e in pieces.history_] == list(range(1, 8))


def test_the_first_call_is_fit() -> None:
    np.testing.assert_array_equal(
        weights(tw.MIRA(features="S2").partial_fit(X, Y, epochs=4)),
        weights(tw.MIRA(features="S2", epochs=4).fit(X, Y)),
    )


@pytest.mark.parametrize(("kind", "params"), KINDS)
def test_new_words_and_labels_join(kind: type[Any], params: dict[str, Any]) -> None:
    tagger = kind(features="S2", **params).partial_fit(X, Y, epochs=10)
    before, labels = tagger.model_, tagger.classes_
    more, gold = [["Oslo", "sings"], ["the", "fjord"]], [["NEW", "VERB"], ["DET", "NEW"]]
    for epochs in (
        1,
        1,
        300,
    ):  # batch updates are large: many epochs to overcome the first ones in the average
        tagger.partial_fit([*X, *more], [*Y, *gold], epochs=epochs)
    assert tagger.classes_ == (*labels, "NEW")
    assert tagger.predict(more) == gold
    assert tagger.predict(X) == Y
    # What was there keeps its number; the old model is untouched.
    assert tagger.model_.vocabulary.texts()[: len(before.vocabulary)] == before.vocabulary.texts()
    assert before.labels == labels


def test_old_weights_stay_where_new_data_do_not_touch_them() -> None:
    """Sentences that are already right change nothing, and what they add to the layout has weight 0."""
    tagger = tw.Perceptron(features="word[0]", average=False, start_end=False).partial_fit(X, Y, epochs=20)
    before = {**tagger.explain(1000).labels}
    tagger.partial_fit([[X[0][0], X[0][1]]], [[Y[0][0], Y[0][1]]])
    assert tagger.explain(1000).labels == before


def test_averages_count_steps_before_a_feature_existed() -> None:
    """An attribute that comes late averages with zeros: 1 update in the last of 4 steps is a weight of 1/4 each."""
    tagger = tw.Perceptron(features="word[0]", shuffle=False, start_end=False)
    tagger.partial_fit([["a"], ["a"], ["a"]], [["X"], ["X"], ["X"]])
    tagger.partial_fit([["b"]], [["Y"]])
    assert tagger.state_["steps"] == 4
    # Step 4 predicts X (all scores are 0; ties go to the first label) and is corrected after it.
    assert dict(tagger.explain().labels["Y"]) == {"word[0]=b": pytest.approx(0.25)}


def test_a_file_without_state_starts_a_new_average(tmp_path: Path) -> None:
    tagger = tw.Perceptron(features="S2", epochs=5).fit(X, Y)
    tagger.save(tmp_path / "bare")
    tagger.save(tmp_path / "state", state=True)
    assert (tmp_path / "bare").stat().st_size < (tmp_path / "state").stat().st_size
    again = tw.load(tmp_path / "bare").partial_fit(X, Y)
    assert again.state_["steps"] == len(X)
    assert again.predict(X) == Y
    # A file that is saved again without the state says so.
    loaded = tw.load(tmp_path / "state")
    loaded.save(tmp_path / "again")
    assert tw.load(tmp_path / "again").model_.meta == tw.load(tmp_path / "bare").model_.meta
    with pytest.raises(tw.ParameterError, match="prune"):
        tagger.save(tmp_path / "both", prune=True, state=True)


def test_min_count_and_frequent_words_hold_on() -> None:
    tagger = tw.Perceptron(features="pos", min_count=2, epochs=3).fit(X, Y)
    size, lists = len(tagger.model_.vocabulary), tagger.model_.recipe.lists
    tagger.partial_fit([["once", "twice", "twice"]], [["DET", "NOUN", "NOUN"]])
    texts = tagger.model_.vocabulary.texts()
    assert "word[0]=twice" in texts[size:]
    assert "word[0]=once" not in texts
    assert tagger.model_.recipe.lists == lists


def test_curves_of_plain_and_averaged_weights() -> None:
    tagger = tw.Perceptron(features="S2", epochs=4).fit(X, Y, dev=X, dev_y=Y)
    plain = tw.Perceptron(features="S2", epochs=4, average=False).fit(X, Y, dev=X, dev_y=Y)
    assert [e["plain_dev_score"] for e in tagger.history_] == [e["dev_score"] for e in plain.history_]
    assert "plain_dev_score" not in plain.history_[0]


# --- pruning ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "tagger",
    [
        tw.Perceptron(features="S3", epochs=3, all_pairs=True),
        tw.Perceptron(features=EDGE, epochs=3),
        tw.CRF(features="S3", l1=0.3, l2=0.0),
    ],
    ids=repr,
)
def test_a_pruned_model_predicts_the_same(tagger: Any, tmp_path: Path) -> None:
    train, _, test = tw.load_corpus("wnut17-ner")
    tagger.fit(train[:200])
    tagger.save(tmp_path / "whole")
    tagger.save(tmp_path / "pruned", prune=True)
    whole, small = tw.load(tmp_path / "whole"), tw.load(tmp_path / "pruned")
    assert small.n_features_ == small.n_nonzero_ == whole.n_nonzero_ < whole.n_features_
    assert len(small.model_.vocabulary) <= len(whole.model_.vocabulary)
    assert (tmp_path / "pruned").stat().st_size < (tmp_path / "whole").stat().st_size
    assert small.predict_kbest(test[:300], k=3) == whole.predict_kbest(test[:300], k=3)
    assert small.explain(50).labels == whole.explain(50).labels


def test_layouts_are_rebuilt_from_their_codes() -> None:
    layout = tw.Perceptron(features=EDGE, epochs=1).fit(X, Y).model_.scorer.layout
    again = layout_of(layout.n_attributes, layout.n_labels, codes_of(layout), pairs=True)
    for name, array in layout.arrays().items():
        np.testing.assert_array_equal(again.arrays()[name], array)
    same, places = united(layout, layout)
    assert len(same) == len(layout)
    np.testing.assert_array_equal(places, np.arange(len(layout)))


def test_a_model_without_weights_prunes_to_nothing() -> None:
    model = tw.CRF(features="S1", l1=1e6, l2=0.0).fit(X, Y).model_
    small, _ = prune(model)
    assert len(small.scorer.layout) == len(small.vocabulary) == 0
    assert small.predict(X) == model.predict(X)

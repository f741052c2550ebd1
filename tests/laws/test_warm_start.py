"""Tests of initial weights: from another model, feature by feature, or from a few stochastic epochs."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tagwise as tw
from tagwise import _core
from tagwise.dataset.encode import collect_labels, with_labels
from tagwise.features import Recipe
from tagwise.model import Model
from tagwise.model.model import transfer
from tagwise.scores.lookback import LookbackWeights

from ..golden import corpus
from ..golden.kinds import EDGES, PLAIN
from ..golden.names import Name, further_back, named

ITERATIONS = 60


def reached(loss: str, optimizer: str, train: tw.Corpus) -> float:
    """Return the objective after a fixed number of iterations."""
    values: list[float] = []
    tagger = tw.CRF(features="S1", loss=loss, l2=0.03, max_iter=ITERATIONS, optimizer=optimizer, n_jobs=1)
    tagger.fit(train, callbacks=[lambda it: values.append(it.objective)])
    return values[-1]


@pytest.mark.parametrize("loss", ["log", "exp", "pointwise_log", "pointwise_exp"])
def test_auto_reaches_the_objective_of_lbfgs(loss: str) -> None:
    # The pointwise log loss is not convex, and stochastic steps on it end 15 % higher here.
    train, _, _ = tw.load_corpus("ewt-pos")
    train = train[:250]
    assert reached(loss, "auto", train) <= 1.01 * reached(loss, "lbfgs", train)


# --- from another model -------------------------------------------------------------------------------------

WORDS, LABELS = corpus.words(corpus.TRAIN), corpus.LABELS
#: Old and new sentences: words and labels are added and removed, and the order of labels differs.
OLD = WORDS[:8], LABELS[:8]
NEW = (
    [*WORDS[5:], ["Oslo", "Oslo", "Lund", "Moss", "Nils", "Moss"], ["Oslo", "Lund", "in", "Lund"]],
    [
        *[[{"I-PER": "B-ORG"}.get(y, y) for y in sentence] for sentence in LABELS[5:]],
        ["B-LOC", "I-LOC", "B-LOC", "B-PER", "B-LOC", "I-LOC"],
        ["B-LOC", "B-PER", "O", "B-LOC"],
    ],
)


def shared_order(old: Sequence[str], new: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return the common labels in the order of each."""
    return [y for y in old if y in new], [y for y in new if y in old]


def expected(old: Model, names: Sequence[Name] | dict[Name, float]) -> dict[Name, float]:
    """Return the weights of features with these names: those of the old model, or 0 for new features."""
    known = named(old)
    return {name: known.get(name, 0.0) for name in names}


def online(kind: type[tw.Tagger], **params: Any) -> Callable[[str], tw.Tagger]:
    return lambda features: kind(features=features, max_iter=2, **params)


def batch(kind: type[tw.Tagger], **params: Any) -> Callable[[str], tw.Tagger]:
    return lambda features: kind(features=features, max_iter=0, **params)


#: Learners that start from given weights and keep them without iterations or with sentences of weight 0.
STARTERS: dict[str, Callable[[str], tw.Tagger]] = {
    **{loss: batch(tw.CRF, loss=loss) for loss in tw.estimators.LOSSES},
    **{optimizer: batch(tw.CRF, optimizer=optimizer) for optimizer in ("lbfgs", "owlqn", "cg", "sgd")},
    "l1": batch(tw.CRF, l1=0.5, l2=0.0),
    "all pairs": batch(tw.CRF, all_pairs=True, start_end=False),
    "pieces": batch(tw.CRF, max_length=2, pi=0.9),
    "order 2": batch(tw.CRF, order=2),
    "order 3": batch(tw.CRF, order=3),
    "memm": batch(tw.MEMM),
    "perceptron": online(tw.Perceptron),
    "last": online(tw.Perceptron, average=False),
    "batch": online(tw.Perceptron, mode="batch"),
    "shards": online(tw.Perceptron, parts=2),
    "lookback": online(tw.Perceptron, lookback=(2, 3)),
    "endless": online(tw.MIRA, lookback=(1, math.inf), average=False),
    "document": online(tw.Perceptron, lookback=tw.Lookback(1, 2, document=True)),
    "mira": online(tw.MIRA),
    "pa": online(tw.PassiveAggressive),
    "arow": online(tw.AROW),
    "boosting": lambda features: tw.Boosting(features=features, max_iter=0),
}
FIRST_ORDER = ("order 2", "order 3", "lookback", "endless", "document")  # these have no edge attributes
NO_EDGES = (*FIRST_ORDER, "memm", "boosting", "sgd")


def begun(
    name: str, features: str, data: tuple[Any, Any], warm_start: Any, forget: bool = False
) -> tw.Tagger:
    """Return the tagger of a row, fitted without a step."""
    tagger, (X, y) = STARTERS[name](features), data
    weights = None if tagger.get_params()["max_iter"] == 0 else [0.0] * len(X)
    if name == "document":
        of = [tw.Sentence({"word": w, "label": g}, "label", doc="d") for w, g in zip(X, y)]
        return tagger.fit(tw.Corpus(of), warm_start=warm_start, sample_weight=weights, forget=forget)
    return tagger.fit(X, y, warm_start=warm_start, sample_weight=weights, forget=forget)


OLDS: dict[str, Callable[[], tw.Tagger]] = {
    "crf": lambda: tw.CRF(features=PLAIN, l2=0.1, max_iter=8),
    "edges": lambda: tw.CRF(features=EDGES, l2=0.1, max_iter=8),
    "pairs": lambda: tw.Perceptron(features=EDGES, max_iter=3, all_pairs=True),
    "order 2": lambda: tw.CRF(features=PLAIN, order=2, l2=0.1, max_iter=8),
    "order 3": lambda: tw.CRF(features=PLAIN, order=3, l2=0.1, max_iter=8),
    "lookback": lambda: tw.Perceptron(features=PLAIN, lookback=(1, 4), max_iter=3),
    "endless": lambda: tw.Perceptron(features=PLAIN, lookback=(2, math.inf), max_iter=3),
    "memm": lambda: tw.MEMM(features=PLAIN, l2=0.1, max_iter=8),
    "hmm": lambda: tw.HMM(features="word[0]\nword[-1]\nword[0].suffix(2)\n", overlapping=True),
}
CACHE: dict[str, tw.Tagger] = {}


def old_model(name: str) -> Model:
    if name not in CACHE:
        CACHE[name] = OLDS[name]().fit(*OLD)
    return CACHE[name].model_


@pytest.mark.parametrize("old", OLDS)
@pytest.mark.parametrize("name", STARTERS)
def test_every_feature_starts_with_its_old_weight(name: str, old: str) -> None:
    """Node, edge, start, end, edge-attribute and history features are found by name."""
    model = old_model(old)
    features = EDGES if old in ("edges", "pairs") and name not in NO_EDGES else PLAIN
    new = begun(name, features, NEW, model, forget=True).model_
    found = named(new)
    if name == "boosting":  # it keeps only nonzero weights
        zero = begun("log", features, NEW, None).model_
        wanted = {k: w for k, w in expected(model, named(zero)).items() if w != 0.0}
    else:
        wanted = expected(model, found)
    if name in ("order 2", "order 3"):  # only tuples of the new labels have a feature
        seen = {
            (f"G{m}", *y[t - m : t + 1]) for y in NEW[1] for m in (2, 3) for t in range(m, len(y))
        } & further_back(new).keys()
        wanted |= dict.fromkeys(further_back(new).keys() - seen, 0.0)
        assert old != name or any(wanted[k] for k in seen)
    assert found == wanted
    before, after = shared_order(model.labels, new.labels)
    assert before != after
    assert set(new.labels) - set(model.labels) == {"B-ORG"}
    assert set(model.labels) - set(new.labels) == {"I-PER"}


@pytest.mark.parametrize("name", STARTERS)
def test_grown_model_scores_like_the_old_one(name: str) -> None:
    """Labels and features stay with their weights, new ones are 0, and paths of old labels keep their scores."""
    features = PLAIN if name in NO_EDGES else EDGES
    old = STARTERS[name](features)
    old.set_params(**{p: 6 for p in ("max_iter", "epochs", "rounds") if hasattr(old, p)})
    data: Any = OLD
    if name == "document":
        data = (
            tw.Corpus([tw.Sentence({"word": w, "label": g}, "label", doc="d") for w, g in zip(*OLD)]),
            None,
        )
    old.fit(*data)
    new = begun(name, features, NEW, old)
    assert new.classes_ == (*old.classes_, "B-ORG")
    before, after = named(old.model_), named(new.model_)
    assert {k: w for k, w in before.items() if w} == {k: w for k, w in after.items() if w}
    if name != "boosting":  # it keeps only nonzero weights
        fresh = named(begun(name, features, NEW, None).model_)
        assert set(after) >= set(before) | set(fresh)
    if name == "memm":
        return  # each step is a distribution over all labels, so a new label changes it at once
    allowed = [[list(old.classes_)] * len(sentence) for sentence in OLD[0]]
    for mine, theirs in zip(
        new.predict_kbest(data[0], 4, allowed=allowed), old.predict_kbest(data[0], 4, allowed=allowed)
    ):
        np.testing.assert_allclose([s for _, s in mine], [s for _, s in theirs], rtol=1e-5, atol=1e-5)
        assert [p for p, _ in mine] == [p for p, _ in theirs]


def test_grown_models_learn_new_labels_and_keep_old_ones() -> None:
    """Labels missing from the new sentences stay, new labels are learnt, and word lists and dictionaries grow."""
    given = {"features": "word[0]\nword[0].is_rare(2)?\n", "constraints": "auto", "dictionary": 1}
    old = tw.CRF(**given, l2=1e-3).fit([["Ada", "in", "Oslo"]], [["B-PER", "O", "B-LOC"]])
    new = tw.CRF(**given, l2=1e-3, max_iter=20).fit(
        [["Fiat", "in", "in"]], [["B-ORG", "O", "O"]], warm_start=old
    )
    assert set(new.classes_) == {"B-PER", "B-LOC", "B-ORG", "O"}
    assert new.predict([["Fiat", "in"], ["Ada"]]) == [["B-ORG", "O"], ["B-PER"]]
    assert new.model_.recipe.lists == old.model_.recipe.lists
    alone = tw.CRF(**given).fit([["Fiat", "in"]], [["B-ORG", "O"]], warm_start=old, forget=True)
    assert set(alone.classes_) == {"B-ORG", "O"}


def test_table_of_starts_covers_every_kind_of_feature() -> None:
    """Each kind of feature starts with a nonzero weight in some row."""
    kinds = set()
    for old, name in (("crf", "log"), ("edges", "log"), ("order 3", "order 3"), ("endless", "endless")):
        new = begun(name, EDGES if old == "edges" else PLAIN, NEW, old_model(old)).model_
        kinds |= {key[0] for key, w in named(new).items() if w}
    new = begun("lookback", PLAIN, NEW, old_model("lookback")).model_
    kinds |= {key[0] for key, w in named(new).items() if w}
    assert kinds >= {"node", "edge", "start", "end", "pair", "F2", "F3", "F4", "G2", "G3"}


@pytest.mark.parametrize("name", STARTERS)
def test_warm_start_without_steps_is_the_old_model(name: str, tmp_path: Path) -> None:
    """On its own sentences, from the tagger, its model or its file, a model keeps weights, paths and scores."""
    features = PLAIN if name in NO_EDGES else EDGES
    old = STARTERS[name](features)
    old.set_params(**{p: 6 for p in ("max_iter", "epochs", "rounds") if hasattr(old, p)})
    X, y = OLD
    if name == "document":
        parts = [
            tw.Sentence({"word": w, "label": g}, "label", doc="d" if i % 3 == 0 else None)
            for i, (w, g) in enumerate(zip(X, y))
        ]
        X = tw.Corpus(parts)
        old.fit(X)
    else:
        old.fit(X, y)
    old.save(tmp_path / "m")
    pruned = tmp_path / "pruned"
    old.save(pruned, prune=True)
    for source in (old, old.model_, tmp_path / "m", str(tmp_path / "m"), pruned):
        new = begun(name, features, OLD, source)
        assert {k: w for k, w in named(new.model_).items() if w} == {
            k: w for k, w in named(old.model_).items() if w
        }
        assert new.predict(X) == old.predict(X)
        for mine, theirs in zip(new.predict_kbest(X, 3), old.predict_kbest(X, 3)):
            assert [p for p, _ in mine] == [p for p, _ in theirs]
            np.testing.assert_allclose([s for _, s in mine], [s for _, s in theirs], rtol=1e-6, atol=1e-6)


def random_model(
    rng: np.random.Generator, labels: list[str], texts: list[str], start_end: bool
) -> tuple[Model, _core.Vocabulary, _core.Layout]:
    """Return a model over attribute lists, including edge attributes, with random weights."""
    lengths = rng.integers(1, 6, 6)
    X, E = (
        [[list(rng.choice(texts, 2, replace=False)) for _ in range(n)] for n in lengths] for _ in range(2)
    )
    y = [[str(rng.choice(labels)) for _ in range(n)] for n in lengths]
    found = collect_labels(y)
    vocabulary = _core.Vocabulary()
    data = with_labels(_core.encode_attributes(vocabulary, X, E), y, found)
    vocabulary.lock()
    layout = _core.Layout.build(
        data, len(vocabulary), len(found), all_pairs=bool(rng.integers(2)), start_end=start_end
    )
    scorer = _core.Scorer(layout, rng.normal(size=len(layout)).astype(np.float32))
    return Model(tuple(found), Recipe("attributes", "attributes"), vocabulary, scorer), vocabulary, layout


@pytest.mark.parametrize("seed", range(40))
def test_weights_are_matched_by_name(seed: int) -> None:
    """Each weight of a random new layout, edge attributes included, is the old weight of its name, or 0."""
    rng = np.random.default_rng(seed)
    labels = [f"y{i}" for i in range(7)]
    texts = ["", *(f"a{i}" for i in range(8))]
    old, *_ = random_model(rng, labels[: rng.integers(1, 6)], texts[:6], bool(seed % 3))
    new, vocabulary, layout = random_model(rng, labels[rng.integers(0, 3) :], texts[2:], bool(seed % 2))
    start = transfer(old, vocabulary, layout, new.labels)
    begun = Model(new.labels, new.recipe, vocabulary, _core.Scorer(layout, start.astype(np.float32)))
    assert named(begun) == expected(old, named(new))
    same = transfer(old, old.vocabulary, old.scorer.layout, old.labels)
    np.testing.assert_array_equal(same, old.scorer.weights)


HISTORIES = [
    LookbackWeights(1, 1), LookbackWeights(1, 2), LookbackWeights(2, 3), LookbackWeights(1, 8),
    LookbackWeights(1, np.inf), LookbackWeights(1, np.inf, True),
    LookbackWeights(2, 2, True), LookbackWeights(2, 1, tuples=True), LookbackWeights(3, 1, tuples=True),
    LookbackWeights(3, 1, True),
]  # fmt: skip


@pytest.mark.parametrize(
    ("old", "new"), [*itertools.product(HISTORIES, repeat=2)], ids=lambda h: str(h.to_json())
)
def test_history_tables_are_matched_by_name(old: LookbackWeights, new: LookbackWeights) -> None:
    """Tables that both history settings have are carried over, label by label."""
    rng = np.random.default_rng(7)
    before, labels = ("x", "y", "z", "u"), ("z", "new", "x", "y", "v")
    full = old.with_weights(rng.normal(size=len(old.terms(len(before)))))
    carried = new.with_weights(new.transfer_weights(full, before, labels))
    assert len(carried.weights) == len(new.terms(len(labels)))

    def names(history: LookbackWeights, its: tuple[str, ...]) -> dict[Name, float]:
        model, *_ = random_model(rng, ["x"], ["a", "b"], False)
        return further_back(Model(its, model.recipe, model.vocabulary, model.scorer, lookback=history))

    known = names(full, before)
    found = names(carried, labels)
    assert found == {name: known.get(name, 0.0) for name in found}
    assert not new.transfer_weights(None, (), labels).any()


def test_warm_start_skips_stochastic_epochs() -> None:
    """Stochastic epochs run only from zero weights: from the optimum of many sentences nothing gets worse."""
    X, y = WORDS * 20, LABELS * 20
    best = tw.CRF(features=PLAIN, l2=0.1, tol=1e-9, max_iter=200).fit(X, y)
    again = tw.CRF(features=PLAIN, l2=0.1, max_iter=8).fit(X, y, warm_start=best)
    assert again.history_[0]["objective"] <= best.objective_ * (1 + 1e-6)
    cold = tw.CRF(features=PLAIN, l2=0.1, max_iter=8).fit(X, y)
    assert cold.history_[0]["objective"] > best.objective_ * (1 + 1e-3)


def test_learners_without_initial_weights_raise() -> None:
    """Counting has no initial weights, so a warm start is an error."""
    with pytest.raises(tw.exceptions.ParameterError, match="Leave warm_start out"):
        tw.HMM().fit(*OLD, warm_start=old_model("crf"))


def test_order_two_warm_start_stays_at_its_optimum() -> None:
    """A model of order 2 trained further from its own weights stays at its optimum, which needs the tuple weights."""
    best = tw.CRF(features="word[0]\n", order=2, l2=0.05, tol=1e-10, max_iter=300).fit(WORDS, LABELS)
    again = tw.CRF(features="word[0]\n", order=2, l2=0.05, max_iter=1).fit(WORDS, LABELS, warm_start=best)
    assert again.objective_ == pytest.approx(best.objective_, rel=1e-6)

"""Tests of token vectors, which are attributes with values: equal numbers in dicts give equal losses and models."""

from __future__ import annotations

import copy
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tagwise as tw
from tagwise import _core, estimators
from tagwise.dataset import encode
from tagwise.dataset.layout import NamedLayout, transfer_weights

Sentences = list[list[str]]


def corpus(
    labels: int, size: int, n: int = 40, seed: int = 0
) -> tuple[Sentences, list[np.ndarray], list[list[str]]]:
    """Return words, vectors without zeros, and labels that depend on them. The first sentence has every label."""
    rng = np.random.default_rng(seed)
    centres = rng.normal(size=(labels, size))
    words, arrays, y = [], [], []
    for s in range(n):
        T = labels + 2 if s == 0 else int(rng.integers(1, 9))
        gold = np.arange(T) % labels if s == 0 else rng.integers(0, labels, T)
        noise = rng.normal(size=(T, size)) + 1e-3
        arrays.append((centres[gold] + noise).astype(np.float32))
        words.append([f"w{int(k)}" for k in rng.integers(0, 12, T)])
        y.append([f"L{k}" for k in gold])
    return words, arrays, y


def dicts(
    words: Sentences | None, arrays: list[np.ndarray], scale: float = 1.0
) -> list[list[dict[str, Any]]]:
    """Return the words and vectors as attributes: {"word[0]=w1": 1, "vector[0]": 0.3, ...}."""
    out = []
    for s, rows in enumerate(arrays):
        numbers = [{f"vector[{j}]": float(np.float32(scale) * x) for j, x in enumerate(row)} for row in rows]
        named = [{} if words is None else {f"word[0]={w}": 1.0} for w in (words[s] if words else rows)]
        out.append([{**a, **b} for a, b in zip(named, numbers, strict=True)])
    return out


def listed(words: Sentences) -> list[list[list[str]]]:
    """Return words as lists of attributes."""
    return [[[f"word[0]={w}"] for w in sentence] for sentence in words]


def prepared(X: Any, y: Any, names: list[str], **more: Any) -> tuple[Any, Any, Any]:
    """Return dataset, layout and vocabulary of a training set."""
    vocabulary, data = encode.build(X, **more)
    data = encode.with_labels(data, y, names)
    return data, _core.Layout.build(data, len(vocabulary), len(names)), vocabulary


#: All row widths, and sizes that fill registers or do not.
SHAPES = [(2, 1), (3, 13), (16, 6), (17, 7), (33, 5), (50, 8), (70, 12), (259, 7)]


@pytest.mark.parametrize(
    ("loss", "labels", "size", "with_attributes"),
    [
        *(("log", *shape, bool(i % 2)) for i, shape in enumerate(SHAPES)),
        *((loss, 3, 13, with_attributes) for loss in _core.LOSSES for with_attributes in (False, True)),
    ],
)
def test_losses_and_gradients_equal_those_of_dicts(
    loss: str, labels: int, size: int, with_attributes: bool
) -> None:
    """Losses and gradients agree for every row width, with and without words, and for all ways of summing."""
    words, arrays, y = corpus(labels, size, n=20)
    names = [f"L{k}" for k in range(labels)]
    X = tw.Vectors.of(listed(words), arrays) if with_attributes else arrays
    data, layout, vocabulary = prepared(X, y, names)
    other, plain, texts = prepared(dicts(words if with_attributes else None, arrays), y, names)
    assert data.vectors is not None
    assert other.vectors is None
    assert len(layout) == len(plain)
    rng = np.random.default_rng(1)
    w = rng.normal(size=len(layout)) * 0.1
    v = transfer_weights(NamedLayout(layout, vocabulary, names), w, NamedLayout(plain, texts, names))
    for code_path in ("", "log", "wide", "plain"):
        before = _core.force(code_path)
        try:
            g, h = np.zeros(len(w)), np.zeros(len(w))
            value = _core.Objective(data, layout, loss=loss).evaluate(w, g, 1)
            assert value == pytest.approx(
                _core.Objective(other, plain, loss=loss).evaluate(v, h, 1), rel=1e-5
            )
        finally:
            _core.force(before)
        back = transfer_weights(NamedLayout(plain, texts, names), h, NamedLayout(layout, vocabulary, names))
        np.testing.assert_allclose(g, back, rtol=2e-4, atol=2e-4 * np.abs(back).max())


LEARNERS: dict[str, dict[str, Any]] = {
    **{f"crf-{loss}": {"loss": loss, "optimizer": "lbfgs", "max_iter": 8} for loss in _core.LOSSES},
    "perceptron": {"max_iter": 3},
    "mira": {"max_iter": 2},
    "pa": {"max_iter": 2},
    "arow": {"max_iter": 2},
    "hmsvm": {},
    "memm": {"max_iter": 8},
    "boosting": {"max_iter": 15, "step": "bound"},
    "boosting-joint": {
        "max_iter": 2
    },  # steps in single precision: few enough rounds that rounding errors stay small
}


@pytest.mark.parametrize("name", LEARNERS)
@pytest.mark.parametrize("with_attributes", [False, True])
def test_learners_train_like_dicts(name: str, with_attributes: bool, tmp_path: Path) -> None:
    """Weights by name, predictions and files are those of equal numbers in dicts."""
    words, arrays, y = corpus(4, 9)
    kind = estimators.LEARNERS[name.split("-")[0]]
    X = (
        tw.Vectors.of(listed(words), arrays, scale=0.5)
        if with_attributes
        else [tw.Vectors(a, scale=0.5) for a in arrays]
    )
    tagger = kind(**LEARNERS[name]).fit(X, y)
    same = dicts(words if with_attributes else None, arrays, 0.5)
    other = kind(**LEARNERS[name]).fit(same, y)
    new = tw.Vectors.of(listed(words), arrays) if with_attributes else arrays
    assert tagger.predict(new) == other.predict(same)
    if name not in ("memm",):
        a, b = tagger.model_, other.model_
        back = transfer_weights(
            NamedLayout(a.scorer.layout, a.vocabulary, a.labels),
            a.scorer.weights,
            NamedLayout(b.scorer.layout, b.vocabulary, b.labels),
        )
        np.testing.assert_allclose(
            back, b.scorer.weights, rtol=2e-3, atol=2e-3 * np.abs(b.scorer.weights).max()
        )
    tagger.save(tmp_path / "m.tagwise")
    for copied in (
        tw.load(tmp_path / "m.tagwise"),
        pickle.loads(pickle.dumps(tagger)),
        copy.deepcopy(tagger),
    ):
        assert copied.model_.recipe.dense == tagger.model_.recipe.dense
        assert copied.predict(new) == tagger.predict(new)
    again = tmp_path / "again.tagwise"
    tw.load(tmp_path / "m.tagwise").save(again)
    assert again.read_bytes() == (tmp_path / "m.tagwise").read_bytes()


def test_results_do_not_depend_on_threads() -> None:
    """Weights are equal to the bit."""
    words, arrays, y = corpus(17, 20, n=300)
    X = tw.Vectors.of(words, arrays)
    one, two = (
        tw.CRF(features="word[0]", max_iter=5, n_jobs=n).fit(X, y).model_.scorer.weights for n in (1, 2)
    )
    assert np.array_equal(one, two)


def test_all_prediction_methods_accept_vectors() -> None:
    """All prediction methods of a model accept vectors."""
    words, arrays, y = corpus(3, 5)
    X = tw.Vectors.of(words, arrays)
    tagger = tw.CRF(features="word[0]", max_iter=5).fit(X, y, dev=X, dev_y=y)
    assert all(np.allclose(p.sum(axis=1), 1, atol=1e-5) for p in tagger.predict_marginals(X))
    assert [paths[0][0] for paths in tagger.predict_kbest(X, 2)] == tagger.predict(X)
    assert tagger.evaluate(X, y).accuracy > 0.8
    assert [c.labels for c in tagger.predict_confidence(X)] == tagger.predict(X)
    assert len(tagger.sequence_probability(X, y)) == len(y)
    texts = {vote.feature for decision in tagger.explain(X[1]) for vote in decision.votes}
    assert any("vector[" in text for text in texts)
    grown = tw.CRF(features="word[0]", max_iter=3).fit(X, y, warm_start=tagger)
    assert grown.model_.recipe.dense == tagger.model_.recipe.dense


def test_scale_is_a_number_or_root_mean_square() -> None:
    """The scale is a number, or 1 over the root mean square. The model keeps it and rejects any other."""
    _, arrays, y = corpus(3, 5)
    own = tw.CRF(max_iter=3).fit([tw.Vectors(a, scale="auto") for a in arrays], y)
    rms = float(np.sqrt(np.mean(np.concatenate(arrays).astype(np.float64) ** 2)))
    assert own.model_.recipe.dense.scale == pytest.approx(1 / rms, rel=1e-6)  # type: ignore[union-attr]
    scaled = tw.CRF(max_iter=3).fit([a / np.float32(rms) for a in arrays], y)
    np.testing.assert_allclose(own.model_.scorer.weights, scaled.model_.scorer.weights, rtol=1e-3, atol=1e-3)
    assert own.predict(arrays) == own.predict([tw.Vectors(a) for a in arrays])
    with pytest.raises(tw.exceptions.CorpusError, match=r"the scale 3\.0, those of training"):
        own.predict([tw.Vectors(a, scale=3.0) for a in arrays])
    for scale in (0, -1.0, float("nan"), float("inf"), "unit", True):
        with pytest.raises(tw.exceptions.ParameterError, match="expected a number > 0, or 'auto'"):
            tw.CRF().fit([tw.Vectors(a, scale=scale) for a in arrays], y)


def test_array_types_become_float32() -> None:
    """float64, integers, slices and lists of rows become float32. Tensors are detached."""

    class Tensor:
        """The interface of a torch tensor."""

        ndim = 2

        def __init__(self, values: Any) -> None:
            self.values = values

        def detach(self) -> Tensor:
            return self

        cpu = float = detach

        def numpy(self) -> Any:
            return self.values

    _, arrays, y = corpus(3, 4)
    tagger = tw.CRF(max_iter=3).fit(arrays, y)
    expected = tagger.predict(arrays)
    assert tagger.predict([a.astype(np.float64) for a in arrays]) == expected
    assert tagger.predict([np.asfortranarray(a) for a in arrays]) == expected
    assert tagger.predict([np.repeat(a, 2, axis=1)[:, ::2] for a in arrays]) == expected
    assert tagger.predict([Tensor(a) for a in arrays]) == expected
    assert tagger.predict([tw.Vectors(a.tolist()) for a in arrays]) == expected
    assert tagger.predict([]) == []
    whole = np.concatenate(arrays)
    combined = tw.Vectors.of([[()] * len(a) for a in arrays], whole)
    assert tagger.predict(combined) == expected


def test_invalid_vectors_are_rejected() -> None:
    """The error names the sentence, the problem and the remedy."""
    words, arrays, y = corpus(3, 4)
    tagger = tw.CRF(max_iter=2).fit(arrays, y)
    mixed = tw.CRF(features="word[0]", max_iter=2).fit(tw.Vectors.of(words, arrays), y)
    for call, message in (
        (
            lambda: tagger.predict([arrays[0], words[1]]),
            "sentence 1 has no vectors, unlike the sentences before",
        ),
        (lambda: tagger.predict([a[:, :3] for a in arrays]), "have 3 numbers, those of training 4"),
        (
            lambda: tagger.predict([arrays[0], arrays[1][:, :3]]),
            "sentence 1 has vectors of 3 numbers, sentence 0 of 4",
        ),
        (
            lambda: mixed.predict(words),
            r"trained on vectors of 4 numbers per token, X has none\. Pass .*tagwise\.Vectors",
        ),
        (
            lambda: (
                tw.CRF(features="word[0]", max_iter=2).fit(words, y).predict(tw.Vectors.of(words, arrays))
            ),
            "X has vectors, but the model was trained without",
        ),
        (lambda: tw.Vectors.of(words, arrays[:-1]), "39 arrays of vectors for 40 sentences"),
        (lambda: tw.Vectors.of(words, np.ones((3, 4))), "3 vectors for .* tokens"),
        (
            lambda: tagger.predict(tw.Vectors.of(words, [a[:-1] for a in arrays])),
            "sentence 0 has 5 tokens and 4 vectors",
        ),
        (
            lambda: tw.Vectors(np.ones(3)),
            r"an array \[tokens, numbers\], found one of float64 with the shape \(3,\)",
        ),
        (lambda: tw.Vectors(np.ones((3, 0))), r"the shape \(3, 0\)"),
        (lambda: tw.Vectors([["a"]]), "found one of <U1"),
        (
            lambda: tagger.predict([*arrays[:2], np.full((2, 4), np.nan)]),
            "sentence 2, token 0: its vector contains numbers that are not finite",
        ),
    ):
        with pytest.raises(tw.exceptions.CorpusError, match=message):
            call()


def test_hmm_rejects_vectors() -> None:
    """Its observations are symbols, not numbers."""
    words, arrays, y = corpus(3, 4)
    with pytest.raises(tw.exceptions.ParameterError, match="HMM does not support vectors"):
        tw.HMM().fit(tw.Vectors.of(words, arrays), y)


def test_vectors_combine_with_sums_of_features(tmp_path: Path) -> None:
    """Vectors can be combined with a sum of features as with any recipe. Copies and files keep them."""
    words, arrays, y = corpus(3, 4)
    X = tw.Vectors.of(words, arrays, scale=0.5)
    tagger = tw.CRF(features=tw.Features("word[0]") + own_features, max_iter=3).fit(X, y)
    assert tagger.model_.recipe.dense is not None
    assert pickle.loads(pickle.dumps(tagger)).predict(X) == tagger.predict(X)
    tagger.save(tmp_path / "m.tagwise")
    loaded = tw.load(tmp_path / "m.tagwise", functions={"own_features": own_features})
    assert loaded.predict(X) == tagger.predict(X)


def own_features(sentence: Any) -> list[list[str]]:
    """A feature function that a model stores by name."""
    return [["own=" + word[-1]] for word in sentence]

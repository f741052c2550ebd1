"""Tests of rules in inexact searches (narrow beams, hypothesised history, documents) and in local models."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

import tagwise as tw
from tagwise import _core
from tagwise.decoding.lookback import DocumentState
from tagwise.decoding.plan import Query

from . import valid_paths
from .constrained import BIO, OWN, OWN_RULE, TEST, X, Y, fitted, left, own_step, path_scores
from .reference import history as twin
from .reference import scores as chain_scores
from .valid_paths import Held


def first_order(tagger: tw.Tagger, words: list[str]) -> Any:
    """Return node, edge, start and end scores of a sentence, from the weights of the model's features."""
    model = tagger.model_
    layout, w, L = model.scorer.layout, model.scorer.weights.astype(float), len(model.labels)
    a = layout.arrays()
    ptr, ids, _ = model.encode([words]).node()
    node = np.zeros((len(words), L))
    for t, (begin, end) in enumerate(pairwise(ptr.astype(int))):
        for attribute in ids[begin:end]:
            for k in range(int(a["node_ptr"][attribute]), int(a["node_ptr"][attribute + 1])):
                node[t, a["node_label"][k]] += w[k]
    edge, start, end_ = np.zeros(L * L), np.zeros(L), np.zeros(L)
    at = layout.n_node
    for place, names in ((edge, "edges"), (start, "starts"), (end_, "ends")):
        place[a[names]] = w[at : at + len(a[names])]
        at += len(a[names])
    return chain_scores(node, edge.reshape(L, L), start, end_)


@pytest.mark.parametrize("name", ["crf", "perceptron", "hmm"])
def test_full_list_has_the_scores_of_the_weights(name: str) -> None:
    """The full list has the scores of the weights. The other tests rely on it."""
    tagger = fitted(name)
    index = {label: i for i, label in enumerate(tagger.classes_)}
    for words in TEST:
        s = first_order(tagger, words)
        for path, h in path_scores(name, False, tuple(words)).items():
            local = twin.local_score(s)
            assert h == pytest.approx(twin.total(local, tuple(index[y] for y in path)), abs=1e-4)


def step_rule(tagger: tw.Tagger, local: twin.Local, rule: Any, T: int) -> twin.Local:
    """Return a local score that is minus infinity if `rule(t, T, before, label)` is False."""
    labels = tagger.classes_

    def held(t: int, path: tuple[int, ...], y: int) -> float:
        before = labels[path[-1]] if path else None
        return local(t, path, y) if rule(t, T, before, labels[y]) else -np.inf

    return held


@pytest.mark.parametrize("name", ["crf", "perceptron", "mira"])
@pytest.mark.parametrize("width", [1, 2, 4, None])
def test_beam_keeps_the_best_valid_prefixes(name: str, width: int | None) -> None:
    """The beam keeps the best prefixes that violate no rule so far. The default width is 8."""
    tagger = fitted(name)
    X = [["bay", "the", "ann", "lee"], ["ann", "lee", "the"], ["the", "big", "bay", "bay"], ["bo"]]
    found = tagger.predict(X, decoder="beam", beam=width, constraints=OWN)
    for words, path in zip(X, found):
        local = step_rule(tagger, twin.local_score(first_order(tagger, words)), own_step, len(words))
        kept = twin.beam(local, len(words), len(tagger.classes_), width or 8)
        ids = tuple(tagger.classes_.index(y) for y in path)
        assert twin.total(local, ids) == pytest.approx(kept[0][0], abs=1e-5)


def test_default_beam_width_is_eight() -> None:
    """Many labels and strong transitions make beams of seven and nine prefixes end differently."""
    rng = np.random.default_rng(0)
    names = [f"L{i}" for i in range(20)]
    words = [[f"w{rng.integers(9)}" for _ in range(6)] for _ in range(60)]
    tagger = tw.CRF(features="S1", max_iter=0, all_pairs=True).fit(
        words, [rng.choice(names, 6).tolist() for _ in words]
    )
    layout = tagger.model_.scorer.layout
    weights = rng.normal(size=len(layout)).astype(np.float32)
    weights[layout.n_node :] *= 4
    model = replace(tagger.model_, scorer=_core.Scorer(layout, weights))
    found = {width: model.predict(words, Query(decoder="beam", beam=width)) for width in (None, 7, 8, 9)}
    assert found[None] == found[8]
    assert found[7] != found[8] != found[9]


def test_local_models_are_normalised_over_valid_successors() -> None:
    """Under forbidden transitions each step of an MEMM is a choice among the labels that may follow."""
    tagger = fitted("memm")
    labels = tagger.classes_
    for words in TEST:
        s = first_order(tagger, words)
        T, path_scores = len(words), {}
        for path in valid_paths.every(labels, T):
            if not BIO(path):
                continue
            ids, h = [labels.index(y) for y in path], 0.0
            for t, y in enumerate(ids):
                row = s.node[t] + (s.start if t == 0 else s.edge[ids[t - 1]]) + (s.end if t == T - 1 else 0.0)
                ok = [t == 0 or z[0] != "I" or path[t - 1][1:] == z[1:] for z in labels]
                h += row[y] - np.log(np.exp(row[ok]).sum())
            path_scores[path] = h
        held = Held(path_scores, valid_paths.anything)
        held.check_best(tagger.predict([words], constraints="bio")[0])
        held.check_list(tagger.predict_kbest([words], 700, constraints="bio")[0], 700)
        held.check_list(tagger.predict_kbest([words], 5, probability=True, constraints="bio")[0], 5, True)
        table = held.marginals(labels, T)
        np.testing.assert_allclose(tagger.predict_marginals([words], constraints="bio")[0], table, atol=2e-5)


def far_local(tagger: tw.Tagger, words: list[str], earlier: list[tuple[str, int]]) -> twin.Local:
    """Return the local score of a model with history (1, 2) and documents, from its weights."""
    model, L = tagger.model_, len(tagger.classes_)
    assert model.lookback is not None
    tables = model.lookback.weights.astype(float).reshape(-1, L, L)
    repeated = tables[1] if model.lookback.document else None
    return twin.local_score(first_order(tagger, words), {2: tables[0]}, repeated, words, earlier)


@pytest.mark.parametrize("document", [False, True])
@pytest.mark.parametrize("own", [False, True])
@pytest.mark.parametrize("variant", ["whole", "memory"])
def test_history_and_documents_use_constrained_labels(document: bool, own: bool, variant: str) -> None:
    """A cell follows its best valid prefix.

    Later sentences of a document use the constrained labels of earlier ones.
    """
    corpus = tw.Corpus(
        [
            tw.Sentence({"word": x, "label": y}, "label", doc=str(i) if i % 4 == 0 else None)
            for i, (x, y) in enumerate(zip(X, Y))
        ]
    )
    more: dict[str, Any] = {"constraints": OWN, "dictionary": 2} if own else {}
    tagger = tw.MIRA(features="S1", max_iter=2, lookback=tw.Lookback(1, 2, document=document), **more).fit(
        corpus
    )
    seen = valid_paths.counted(X, Y, 2) if own else {}
    labels = tagger.classes_
    words = [["ann", "new", "lee", "the"], ["new", "lee", "ann", "new"], ["the", "new", "lee", "new"]]
    test = tw.Corpus([tw.Sentence({"word": x}, doc="0" if i == 0 else None) for i, x in enumerate(words)])
    allowed: list[Any] = [None, [{"O", "B-P"}, None, None, {"O", "I-Q"}], None]
    how: dict[str, Any] = {} if own else {"constraints": OWN}
    if variant == "whole":
        found = tagger.predict(test, allowed=allowed, **how)
    else:
        document_state, found = DocumentState(), []
        for i in range(len(test)):
            found += tagger.predict(
                test[i : i + 1], allowed=allowed[i : i + 1], document_state=document_state, **how
            )
    earlier: list[tuple[str, int]] = []
    for x, sets, path in zip(words, allowed, found):
        assert left(OWN_RULE, x, labels, sets, seen)(tuple(path))
        at = [seen.get(w) for w in x] if sets is None else [s or seen.get(w) for s, w in zip(sets, x)]

        def valid_step(t: int, T: int, before: str | None, label: str, at: Any = at) -> bool:
            return (at[t] is None or label in at[t]) and own_step(t, T, before, label)

        local = step_rule(tagger, far_local(tagger, x, earlier), valid_step, len(x))
        best = twin.decode(local, len(x), len(labels), 1)[0]
        ids = tuple(labels.index(y) for y in path)
        assert twin.total(local, ids) == pytest.approx(best[0], abs=1e-5)
        earlier += list(zip(x, ids)) if document else []

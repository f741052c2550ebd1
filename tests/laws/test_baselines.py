"""Tests of HMM and MEMM against the reference implementations: path scores, unknown words, losses, decoders, files."""

from __future__ import annotations

import itertools
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tagwise as tw
from tagwise import _core
from tagwise.dataset.layout import step_layout

from .online import native
from .reference import chain, generative, scores
from .reference.model import score_sentence
from .strategies import Problem, problems, reals, weights

WORDS = ["an", "Be", "cat", "12", "dim"]
Tokens = list[list[tuple[str, int]]]


def sentences(words: list[str], labels: int = 3) -> st.SearchStrategy[Tokens]:
    token = st.tuples(st.sampled_from(words), st.integers(0, labels - 1))
    return st.lists(st.lists(token, min_size=1, max_size=4), min_size=1, max_size=4)


def parts(data: Tokens) -> tuple[list[list[str]], list[list[str]]]:
    return [[w for w, _ in s] for s in data], [[f"y{y}" for _, y in s] for s in data]


def all_paths(tagger: tw.Tagger, sentence: list[str]) -> dict[tuple[str, ...], float]:
    """Return the score of every label sequence, through the k-best decoder."""
    n = len(tagger.classes_) ** len(sentence)
    return {tuple(path): score for path, score in tagger.predict_kbest([sentence], n)[0]}


@pytest.mark.parametrize("smoothing", [0.3, "witten_bell"])
@pytest.mark.parametrize("start_end", [True, False])
@given(data=sentences(WORDS), new=st.lists(st.sampled_from([*WORDS, "new"]), min_size=1, max_size=3))
def test_hmm_scores_are_log_probabilities(
    smoothing: str | float, start_end: bool, data: Tokens, new: list[str]
) -> None:
    X, y = parts(data)
    tagger = tw.HMM(smoothing=smoothing, unknown_words="one", rare=2, start_end=start_end).fit(X, y)
    seen = Counter(w for s in X for w in s)
    kinds = {w: i + 1 for i, w in enumerate(sorted(w for w in seen if seen[w] >= 2))}  # 0: unknown
    labels = list(tagger.classes_)
    coded = [tuple(labels.index(label) for label in s) for s in y]
    words = [[kinds.get(w, 0) for w in s] for s in X]
    n = generative.hmm_counts(words, coded, len(labels), len(kinds) + 1)
    if not start_end:
        n = (n[0], n[1][:, :-1], np.zeros(0))

    def smooth(a: np.ndarray) -> np.ndarray:
        return generative.witten_bell(a) if isinstance(smoothing, str) else generative.additive(a, smoothing)

    emit, move = smooth(n[0]), smooth(n[1])
    if start_end:
        s = generative.hmm_scores([kinds.get(w, 0) for w in new], emit, move, smooth(n[2]))
    else:
        s = scores(np.log(emit[:, [kinds.get(w, 0) for w in new]]).T, np.log(move))
    for path, value in all_paths(tagger, new).items():
        expected = chain.score(s, tuple(labels.index(label) for label in path))
        assert value == pytest.approx(expected, abs=1e-4)


@pytest.mark.parametrize("unknown", ["shape", "suffix"])
@given(data=sentences(["abb", "cbb", "Abb", "ab1", "xing", "Bing"]))
def test_unknown_words_score_as_their_class(unknown: str, data: Tokens) -> None:
    """A new word scores like a rare one of its class. Classes are kinds that share the probability with words."""
    rare = [("going", 0), ("doing", 1), ("Oslo", 1)]
    X, y = parts([*data, rare])
    tagger = tw.HMM(unknown_words=unknown, rare=2, smoothing=0.1).fit(X, y)
    assert all_paths(tagger, ["doing"]) == pytest.approx(all_paths(tagger, ["going"]), abs=1e-5)
    assert all_paths(tagger, ["swing"]) == pytest.approx(all_paths(tagger, ["going"]), abs=1e-5)
    new = "qq" if unknown == "shape" else "Paslo"  # lower case, or capital and -slo
    known = "going" if unknown == "shape" else "Oslo"
    assert all_paths(tagger, [new]) == pytest.approx(all_paths(tagger, [known]), abs=1e-5)
    strange, seen = all_paths(tagger, ["?!"]), all_paths(tagger, ["going"])
    assert strange[("y0",)] < seen[("y0",)]  # both labels emitted -ing
    assert strange[("y1",)] < seen[("y1",)]


@pytest.mark.parametrize("smoothing", [0.5, "witten_bell"])
@given(p=problems(max_sentences=4), at=st.integers(0, 100))
def test_overlapping_emissions_add_up(smoothing: str | float, p: Problem, at: int) -> None:
    A, L, _ = p.shape
    X = [[{f"a{a}": float(v) for a, v in enumerate(x) if v} for x in s] for s in p.X]
    tagger = tw.HMM(features="attributes", overlapping=True, smoothing=smoothing)
    tagger.fit(X, [[f"y{y}" for y in path] for path in p.y])
    labels = [int(name[1:]) for name in tagger.classes_]
    present = [a for a in range(A) if any(x[:, a].any() for x in p.X)]  # the vocabulary's attributes
    emit = np.zeros((L, len(present)))
    move, start = np.zeros((L, L + 1)), np.zeros(L)
    for x, path in zip(p.X, p.y):
        _, m, s = generative.hmm_counts([[0] * len(path)], [path], L, 1)
        move, start = move + m, start + s
        for row, y in zip(x, path):
            emit[y] += row[present]
    move = move[np.ix_(labels, [*labels, L])]

    def smooth(n: np.ndarray) -> np.ndarray:
        return generative.witten_bell(n) if isinstance(smoothing, str) else generative.additive(n, smoothing)

    pick = at % len(p.X)
    emitted = smooth(emit[labels]) if present else np.ones((len(labels), 0))
    s = generative.overlapping_scores(p.X[pick][:, present], emitted, smooth(move), smooth(start[labels]))
    names = list(tagger.classes_)
    n = len(names) ** len(X[pick])
    for path, value in tagger.predict_kbest([X[pick]], n)[0]:
        assert value == pytest.approx(chain.score(s, tuple(names.index(y) for y in path)), abs=1e-4)


@given(problems(values=reals(2.0)), st.data())
def test_memm_loss_equals_the_loss_of_its_steps(p: Problem, draw: st.DataObject) -> None:
    """Loss and gradient of the unrolled steps match the reference implementation, in the model's layout."""
    w = draw.draw(weights(p.shape))
    n = native(p)
    full = np.zeros(p.shape.size)
    full[n.at] = w[n.at]  # unobserved features do not exist
    steps = n.data.steps(n.layout.n_attributes, p.shape.labels)
    objective = _core.Objective(steps, step_layout(n.layout))
    gradient = np.zeros(len(n.layout))
    value = objective.evaluate(full[n.at], gradient)
    expected, expected_gradient = 0.0, np.zeros(p.shape.size)
    for x, y in zip(p.X, p.y):
        v, g = generative.memm_loss(score_sentence(full, x, p.shape), y)
        expected += v
        expected_gradient += np.concatenate([(x.T @ g.node).ravel(), g.edge.ravel(), g.start, g.end])
    assert value == pytest.approx(expected, rel=1e-5, abs=1e-5)
    assert np.allclose(gradient, expected_gradient[n.at], atol=1e-4)


@given(problems(values=reals(2.0), edge_attributes=False), st.booleans(), st.data())
def test_local_models_decode_like_the_reference(p: Problem, conjoined: bool, draw: st.DataObject) -> None:
    """Best path, k best, marginals and log Z of a locally normalised chain match, including edge attributes."""
    p = p._replace(shape=p.shape._replace(edge_attributes=conjoined))
    w = draw.draw(weights(p.shape))
    n = native(p)
    full = np.zeros(p.shape.size)
    full[n.at] = w[n.at].astype(np.float32)
    scorer = _core.Scorer(n.layout, full[n.at].astype(np.float32), local=True)
    best, (marginals, log_z) = scorer.viterbi(n.data), scorer.marginals(n.data)
    assert np.allclose(log_z, 0.0, atol=1e-5)
    begin = 0
    counts, ranked, labels = scorer.kbest(n.data, p.shape.labels**4)
    place = path_at = 0
    for i, x in enumerate(p.X):
        local = generative.memm_scores(score_sentence(full, x, p.shape))
        T = len(x)
        top = chain.score(local, best[begin : begin + T].tolist())
        paths = list(itertools.product(range(p.shape.labels), repeat=T))
        assert top == pytest.approx(max(chain.score(local, y) for y in paths), abs=1e-4)
        node, _ = chain.marginals(local)
        assert np.allclose(marginals[begin : begin + T], node, atol=1e-4)
        assert counts[i] == len(paths)
        for _ in range(counts[i]):
            y = labels[path_at : path_at + T].tolist()
            assert ranked[place] == pytest.approx(chain.score(local, y), abs=1e-4)
            place, path_at = place + 1, path_at + T
        begin += T


def test_unsupported_features_are_rejected() -> None:
    X, y = [["a", "b"]], [["x", "y"]]
    with pytest.raises(tw.exceptions.ParameterError, match="overlapping"):
        tw.HMM(features="S2").fit(X, y)
    edges = "word[0]\nedge: word[0]\n"
    with pytest.raises(tw.exceptions.ParameterError, match="edge"):
        tw.HMM(features=edges).fit(X, y)
    with pytest.raises(tw.exceptions.ParameterError, match="edge"):
        tw.MEMM(features=edges).fit(X, y)


def test_label_bias() -> None:
    """A MEMM cannot leave the more frequent first label (Lafferty, McCallum and Pereira 2001)."""
    X = [list("rib")] * 3 + [list("rob")]
    y = [["i1", "i2", "i3"]] * 3 + [["o1", "o2", "o3"]]
    settings_ = {"features": "S1", "l2": 0.001, "max_iter": 200}
    assert tw.CRF(**settings_).fit(X, y).predict([list("rob")]) == [["o1", "o2", "o3"]]
    assert tw.MEMM(**settings_).fit(X, y).predict([list("rob")])[0][0] == "i1"


def test_memm_stochastic_start_depends_on_the_sentences() -> None:
    """Its steps are tokens, but stochastic epochs start at 200 sentences. Below that, seeds have no effect."""
    X, Y = [["a", "b", "c"]] * 120 + [["b", "a", "b"]] * 60, [["X", "Y", "X"]] * 120 + [["Y", "X", "X"]] * 60

    def weights(n: int, seed: int) -> bytes:
        tagger = tw.MEMM(features="word[0]\n", random_state=seed, max_iter=8).fit(X * n, Y * n)
        return bytes(tagger.model_.scorer.weights.tobytes())

    assert weights(1, 0) == weights(1, 1)
    assert weights(2, 0) != weights(2, 1)

"""Tests of sample_weight of every learner: a weight of 2 repeats a sentence, a weight of 0 leaves it out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np
import pytest

import tagwise as tw
from tagwise.base.exceptions import ParameterError
from tagwise.base.parameters import checked_parameters
from tagwise.features import Inputs
from tagwise.learners.problem import Problem

WORD = "word[0]\n"
WINDOW = "word[0]\nword[-1] & word[0]\nword[0] & word[1]\n"  # enough to distinguish the sentences
EDGE = "word[0]\nedge: word[-1]\n"
RULES = {"scheme": "IOB2", "once": ["A"]}


def drawn(n: int, seed: int = 87) -> tuple[list[list[str]], list[list[str]]]:
    """Return sentences of four words with at most one chunk."""
    rng = np.random.default_rng(seed)
    X, Y = [], []
    for length in rng.integers(2, 5, n):
        X.append([str(w) for w in rng.choice(list("abcd"), length)])
        begin, end = sorted(rng.integers(0, length + 1, 2))
        Y.append(["B-A" if t == begin else "I-A" if begin < t < end else "O" for t in range(length)])
        Y[-1] = Y[-1] if end > begin else ["O"] * int(length)
    return X, Y


X, Y = drawn(20)
N, KEPT = 20, range(17)
#: The last three sentences have weight 0. The others have all of their features.
COUNTS = np.array([2, 1, 3, 1, 1, 2, 1, 4, 1, 3, 1, 1, 1, 2, 1, 5, 1, 0, 0, 0])
REAL = np.array([2.5, 1, 3, 0.5, 1, 2, 0.1, 4, 1, 3, 0.3, 1, 1, 2, 1, 5, 0.7, 0, 1.5, 0])
TWICE = [i for i, n in enumerate(COUNTS) for _ in range(n)]
PROBES = [*X[:4], list("dcba")]


def take(rows: Sequence[Any], which: Sequence[int]) -> list[Any]:
    return [rows[int(i)] for i in which]


def test_kept_sentences_have_all_features() -> None:
    """The kept sentences have all features, so leaving out the others does not change the layout."""
    for tagger in (tw.CRF(features=EDGE), tw.CRF(features=WORD, order=3), tw.Perceptron(features=WORD)):
        tagger.set_params(max_iter=1)
        every, kept, twice = (
            tagger.fit(take(X, which), take(Y, which)).model_ for which in (range(N), KEPT, TWICE)
        )
        assert every.n_features == kept.n_features == twice.n_features
        assert every.labels == kept.labels == twice.labels
        assert sorted(every.vocabulary.texts()) == sorted(kept.vocabulary.texts())


STEEP: dict[str, Any] = {"features": WORD, "l2": 0.3, "tol": 1e-9, "max_iter": 400, "n_jobs": 1}


def crf(**more: Any) -> tw.Tagger:
    return tw.CRF(**{**STEEP, **more})


def blurred(sentences: list[list[str]]) -> list[list[Any]]:
    """Return partial labels: every third token may have any label, another third one of two."""
    out: list[list[Any]] = []
    for sentence in sentences:
        out.append([None if t % 3 == 2 else ({y, "O"} if t % 3 == 1 else y) for t, y in enumerate(sentence)])
    return out


#: Learners whose optimum, or count, does not depend on the order of the sentences.
BAGS: dict[str, Callable[[], tw.Tagger]] = {
    **{f"crf {loss}": lambda loss=loss: crf(loss=loss) for loss in ("log", "exp", "pointwise_log", "pointwise_exp")},
    "crf cg": lambda: crf(optimizer="cg", max_iter=1000),
    "crf l1": lambda: crf(l1=0.2),
    "crf order 2": lambda: crf(order=2),
    "crf order 3": lambda: crf(order=3),
    **{f"crf {loss} pi": lambda loss=loss: crf(loss=loss, pi=0.6) for loss in ("log", "exp", "pointwise_log")},
    **{f"crf {loss} pieces": lambda loss=loss: crf(loss=loss, max_length=2) for loss in ("log", "pointwise_exp")},
    "crf pi pieces": lambda: crf(pi=0.6, max_length=3),
    "crf order 2 pi pieces": lambda: crf(order=2, pi=0.6, max_length=3),
    "crf partial": lambda: crf(partial=True),
    "crf partial pi": lambda: crf(partial=True, pi=0.6),
    "crf partial pieces": lambda: crf(partial=True, max_length=2),
    "crf constraints": lambda: crf(constraints="IOB2"),
    "crf constraints order 2": lambda: crf(constraints="IOB2", order=2),
    "crf once": lambda: crf(constraints=RULES),
    "crf once exp": lambda: crf(constraints=RULES, loss="exp"),
    "crf dictionary": lambda: crf(dictionary=1),
    "crf edges": lambda: crf(features=EDGE),
    "crf edges pointwise": lambda: crf(features=EDGE, loss="pointwise_log"),
    "crf class weight": lambda: crf(class_weight=4.5),
    "crf class weight edges": lambda: crf(class_weight=4.5, features=EDGE),
    "memm": lambda: tw.MEMM(**STEEP),
    "memm l1": lambda: tw.MEMM(**STEEP, l1=0.2),
    "memm without ends": lambda: tw.MEMM(**STEEP, start_end=False),
    **{
        f"hmm {smoothing} {overlapping} {ends}": lambda s=smoothing, o=overlapping, e=ends: tw.HMM(
            features=WORD, smoothing=s, overlapping=o, start_end=e
        )
        for smoothing in (0.1, "witten_bell")
        for overlapping, ends in ((False, True), (True, True), (False, False))
    },
    **{
        f"svm {slack} {rescale} {kernel}": lambda s=slack, r=rescale, k=kernel: tw.HMSVM(
            features=WINDOW, slack=s, rescale=r, kernel=k, C=0.2, tol=1e-5, max_iter=2000
        )
        for slack in ("instance", "sequence")
        for rescale in (None, "margin")
        for kernel in ("linear", "poly")
    },
    "svm limits": lambda: tw.HMSVM(features=WINDOW, C=0.2, tol=1e-5, max_iter=2000, constraints="IOB2", dictionary=1),
    **{
        f"boosting {name}": lambda more=more: tw.Boosting(
            **{
                "features": WORD,
                "max_iter": 25,
                "epsilon": 0.01,
                "bound": "tight",
                "features_per_round": 1,
                "max_length": None,
                **more,
            }
        )
        for name, more in {
            "tight": {},
            "line search": {"step": "line_search"},
            "pi": {"pi": 0.6},
            "pieces": {"max_length": 2},
            "pi pieces": {"pi": 0.6, "max_length": 3},
            "exact": {"bound": "exact", "max_iter": 6},
        }.items()
    },
}  # fmt: skip


def gold_of(tagger: tw.Tagger) -> list[list[Any]]:
    return blurred(Y) if getattr(tagger, "partial", False) else Y


@cache
def fitted(name: str, kind: str) -> tw.Tagger:
    """Fit a learner on all sentences (with weights), on the kept ones, or on each repeated by its weight."""
    tagger = BAGS[name]()
    gold = gold_of(tagger)
    which, weight = {
        "even": (range(N), None),
        "weighted": (range(N), COUNTS),
        "repeated": (TWICE, None),
        "real": (range(N), REAL),
        "left out": (KEPT, COUNTS[:17]),
    }[kind]
    return tagger.fit(take(X, which), take(gold, which), sample_weight=weight)


def scores(tagger: tw.Tagger) -> dict[tuple[int, tuple[str, ...]], float]:
    """Return the score of every path of the probes."""
    return {
        (i, tuple(labels)): score
        for i, ranked in enumerate(tagger.predict_kbest(PROBES, 100))
        for labels, score in ranked
    }


def same(a: tw.Tagger, b: tw.Tagger, atol: float = 2e-2, scale: float = 1.0) -> None:
    ours, theirs = scores(a), scores(b)
    assert ours.keys() == theirs.keys()
    np.testing.assert_allclose(
        list(ours.values()), [scale * theirs[path] for path in ours], atol=atol, rtol=1e-3
    )


def apart(a: tw.Tagger, b: tw.Tagger) -> float:
    ours, theirs = scores(a), scores(b)
    return max(abs(ours[path] - theirs[path]) for path in ours.keys() & theirs.keys())


@pytest.mark.parametrize("name", BAGS)
def test_weights_equal_repetition_and_omission(name: str) -> None:
    """The objective and the score of every path agree, and the weights have an effect."""
    weighted = fitted(name, "weighted")
    for kind in ("repeated", "left out"):
        other = fitted(name, kind)
        assert weighted.objective_ == pytest.approx(other.objective_, rel=1e-4)
        same(weighted, other)
    assert apart(weighted, fitted(name, "even")) > 0.05


@pytest.mark.parametrize("name", [name for name in BAGS if name.startswith(("crf", "memm"))])
def test_weights_and_penalties_scale_together(name: str) -> None:
    """Weights, l1 and l2 times c give c times the objective and the same optimum."""
    tagger = BAGS[name]()
    c = 0.25
    penalties = {key: c * getattr(tagger, key) for key in ("l1", "l2")}
    tagger.set_params(**penalties).fit(X, gold_of(tagger), sample_weight=c * REAL)
    real = fitted(name, "real")
    assert tagger.objective_ == pytest.approx(c * real.objective_, rel=1e-4)
    same(tagger, real)
    assert apart(real, fitted(name, "even")) > 0.05


@pytest.mark.parametrize(
    "name", ["svm instance None linear", "svm sequence margin poly", "boosting tight", "boosting pi"]
)
def test_c_compensates_the_scale_of_the_weights(name: str) -> None:
    """C / c compensates for weights times c. Boosting depends only on relative weights."""
    tagger = BAGS[name]()
    if isinstance(tagger, tw.HMSVM):
        tagger.set_params(C=0.05)
    same(tagger.fit(X, Y, sample_weight=4.0 * REAL), fitted(name, "real"), atol=5e-2)


def test_additive_smoothing_has_the_scale_of_the_weights() -> None:
    for overlapping in (False, True):
        small, large = (
            tw.HMM(features=WORD, smoothing=0.2 * c, overlapping=overlapping).fit(
                X, Y, sample_weight=c * REAL
            )
            for c in (1.0, 8.0)
        )
        same(small, large, atol=1e-5)
        assert large.objective_ == pytest.approx(8.0 * small.objective_, rel=1e-9)


def test_stochastic_descent_reaches_the_weighted_optimum() -> None:
    """A fifth of the sentences has nearly all the weight. Unweighted descent ends far from the weighted optimum."""
    weight = np.where(np.arange(N) % 5 == 2, 12.0, 0.05)
    best = crf().fit(X, Y, sample_weight=weight)
    descent = crf(optimizer="sgd", max_iter=30, tol=0.0)
    assert descent.fit(X, Y, sample_weight=weight).objective_ < 1.06 * best.objective_
    elsewhere = descent.fit(X, Y).model_.scorer.weights.astype(np.float64)
    task = descent._task(Inputs.of(X), Y, checked_parameters(descent))
    objective = Problem(task.data, task.layout, sample_weight=weight).objective()
    value, _ = objective.value(elsewhere, np.zeros_like(elsewhere))
    assert value + 0.3 * elsewhere @ elsewhere > 2.0 * best.objective_


@pytest.mark.parametrize("loss", ["log", "exp", "pointwise_log", "pointwise_exp"])
def test_stochastic_start_uses_the_weights(loss: str) -> None:
    """The stochastic start of L-BFGS, always on the log loss, uses the weights of the objective."""
    tagger = crf(loss=loss)
    task = tagger._task(Inputs.of(X), Y, checked_parameters(tagger))
    w = 0.1 * np.random.default_rng(0).standard_normal(len(task.layout))
    problem = Problem(task.data, task.layout, loss, REAL)
    for name in (loss, "log"):
        descent = problem.descent(name)
        descent.set(w)
        met = descent.run(descent.order(0, 0), 0.0, 0.0, 0.0)
        want = Problem(task.data, task.layout, name, REAL).objective().value(w, np.zeros_like(w))[0]
        assert met == pytest.approx(want, rel=1e-5)


# -- sentence by sentence ---------------------------------------------------------------------------------

ONLINE: dict[str, Callable[..., tw.Tagger]] = {
    **{
        f"perceptron {name}": lambda more=more, **kw: tw.Perceptron(**{"features": WORD, **more, **kw})
        for name, more in {
            "online": {},
            "batch": {"mode": "batch"},
            "shards": {"parts": 2},
            "edges": {"features": EDGE},
            "constraints": {"constraints": RULES},
            "dictionary": {"dictionary": 1, "mode": "batch"},
            "lookback": {"lookback": (1, 3)},
            "lookback exact": {"lookback": (2, 2), "constraints": "IOB2"},
            "kernel": {"kernel": "poly"},
            "kernel limits": {"kernel": "rbf", "constraints": "IOB2", "dictionary": 1},
        }.items()
    },
    **{
        f"mira {name}": lambda more=more, **kw: tw.MIRA(**{"features": WORD, **more, **kw})
        for name, more in {
            "1": {"k": 1},
            "4": {"k": 4},
            "C": {"k": 4, "C": 0.05},
            "augment": {"k": 1, "augment": True},
            "lookback": {"k": 2, "lookback": (1, 2)},
            "shards": {"k": 2, "parts": 2},
            "limits": {"constraints": RULES, "dictionary": 1},
        }.items()
    },
    **{
        f"pa {variant}": lambda v=variant, **kw: tw.PassiveAggressive(features=WORD, variant=v, C=0.1, **kw)
        for variant in (1, 2)
    },
    "arow": lambda **kw: tw.AROW(features=WORD, **kw),
    "arow shards": lambda **kw: tw.AROW(features=WORD, r=0.5, parts=2, **kw),
}  # fmt: skip
PLAIN: dict[str, Any] = {"shuffle": False, "average": False, "max_iter": 3}


@pytest.mark.parametrize("name", ONLINE)
def test_online_learners_ignore_zero_weight_sentences(name: str) -> None:
    """Scores are equal to the bit to those without the sentences. A perceptron with weights of 2 doubles its scores."""
    scale = 2.0 if name.startswith("perceptron") else 1.0
    weight = np.where(np.arange(N) < 17, scale, 0.0)
    got = ONLINE[name](**PLAIN).fit(X, Y, sample_weight=weight)
    without = ONLINE[name](**PLAIN).fit(take(X, KEPT), take(Y, KEPT))
    ours, theirs = scores(got), scores(without)
    assert ours == pytest.approx({path: scale * score for path, score in theirs.items()}, rel=1e-6, abs=1e-9)
    everybody = ONLINE[name](**PLAIN).fit(X, Y)
    assert apart(everybody, without) > 0.01


@pytest.mark.parametrize("name", ["perceptron batch", "perceptron dictionary"])
def test_batch_perceptron_treats_weights_as_repetitions(name: str) -> None:
    """Averages agree too, since every epoch is one step."""
    for average in (False, True):
        more = {**PLAIN, "average": average}
        weighted = ONLINE[name](**more).fit(X, Y, sample_weight=COUNTS)
        repeated = ONLINE[name](**more).fit(take(X, TWICE), take(Y, TWICE))
        assert scores(weighted) == pytest.approx(scores(repeated), rel=1e-5)
        assert apart(weighted, ONLINE[name](**more).fit(X, Y)) > 0.5


def test_documents_of_zero_weight_are_ignored() -> None:
    """A document without weight is left out. Labels found in it affect no other document."""
    bounds = [0, 6, 11, 17, N]

    def corpus(documents: int) -> tw.Corpus:
        sentences = [
            tw.Sentence({"word": X[i], "label": Y[i]}, "label", doc=str(i) if i in bounds else None)
            for i in range(bounds[documents])
        ]
        return tw.Corpus(sentences)

    for learner in (tw.Perceptron, tw.MIRA):
        more = {"features": WORD, "lookback": tw.Lookback(document=True), **PLAIN}
        weight = np.where(np.arange(N) < 17, 1.0, 0.0)
        got = learner(**more).fit(corpus(4), sample_weight=weight)
        without, everybody = learner(**more).fit(corpus(3)), learner(**more).fit(corpus(4))
        ours, theirs, others = (
            [ranked[0][1] for ranked in tagger.predict_kbest(corpus(4), 1)]
            for tagger in (got, without, everybody)
        )
        assert ours == pytest.approx(theirs, rel=1e-6)
        assert ours != pytest.approx(others, rel=1e-3)


def test_partial_fit_uses_the_weights() -> None:
    """partial_fit leaves out sentences of weight 0 and doubles those of weight 2, in the first call and later."""
    more = {"features": WORD, "all_pairs": True, **PLAIN}
    first, then = (take(X, KEPT[:8]), take(Y, KEPT[:8])), (take(X, range(8, N)), take(Y, range(8, N)))
    weight = np.where(np.arange(8, N) < 17, 2.0, 0.0)
    got = (
        tw.Perceptron(**more)
        .partial_fit(*first, sample_weight=[2] * 8)
        .partial_fit(*then, sample_weight=weight)
    )
    want = tw.Perceptron(**more).partial_fit(*first).partial_fit(take(X, range(8, 17)), take(Y, range(8, 17)))
    assert scores(got) == pytest.approx({path: 2 * score for path, score in scores(want).items()})
    for bad in ([1.0], [], [-1.0] * 12, [np.nan] * 12):
        with pytest.raises(
            ParameterError, match=r"^sample_weight needs 12 finite numbers >= 0, one per sentence, "
        ):
            got.partial_fit(*then, sample_weight=bad)


# -- valid weights ----------------------------------------------------------------------------------------

EVERY: dict[str, Callable[[], tw.Tagger]] = {
    **{name: make for name, make in BAGS.items() if not name.startswith("svm")},
    **{name: (lambda make=make: make(**PLAIN)) for name, make in ONLINE.items()},
    "svm": lambda: tw.HMSVM(features=WORD),
    "svm kernel": lambda: tw.HMSVM(features=WORD, kernel="poly"),
    "sgd": lambda: crf(optimizer="sgd", max_iter=5),
}  # fmt: skip
BAD: dict[str, tuple[Any, str]] = {
    "too few": ([1.0] * 19, "found 19"),
    "too many": ([1.0] * 21, "found 21"),
    "none": ([], "found 0"),
    "one": ([1.0], "found 1"),
    "a number": (1.0, "found a single number"),
    "a table": ([[1.0]] * 20, "found 20x1"),
    "below zero": ([1.0] * 19 + [-1.0], "but sentence 19 has -1"),
    "no number": ([1.0, np.nan] + [1.0] * 18, "but sentence 1 has nan"),
    "endless": ([np.inf] + [1.0] * 19, "but sentence 0 has inf"),
    "beyond": ([1e39] + [1.0] * 19, "but sentence 0 has 1e+39"),  # infinite in single precision
    "text": (["heavy"] * 20, "found list of 20"),
}


@pytest.mark.parametrize("name", EVERY)
def test_invalid_weights_are_rejected(name: str) -> None:
    """Every learner raises the same error: it expects one finite number >= 0 per sentence."""
    tagger = EVERY[name]()
    gold = gold_of(tagger)
    for weight, why in BAD.values():
        with pytest.raises(ParameterError) as caught:
            tagger.fit(X, gold, sample_weight=weight)
        assert str(caught.value).startswith(
            "sample_weight needs 20 finite numbers >= 0, one per sentence, " + why
        )


@pytest.mark.parametrize("name", EVERY)
def test_all_zero_weights_leave_the_model_at_zero(name: str) -> None:
    """No weight moves, all labels are equally probable, and the reported values are finite."""
    tagger = EVERY[name]()
    tagger.fit(X, gold_of(tagger), sample_weight=np.zeros(N))
    assert np.isfinite(tagger.objective_)
    if name.startswith("hmm"):
        np.testing.assert_allclose(np.array(tagger.predict_marginals([["a", "b"]])), 1 / 3, rtol=1e-5)
    else:
        assert tagger.n_nonzero_ == 0
        for ranked in tagger.predict_kbest(PROBES, 100):
            assert len({score for _, score in ranked}) == 1


@pytest.mark.parametrize("name", ["crf log", "memm", "hmm 0.1 False True", "svm", "boosting tight", "mira 4"])
def test_weights_of_any_array_type(name: str) -> None:
    """Lists, tuples, integers, single precision and strided arrays give the same model."""
    tagger = EVERY[name]()
    if hasattr(tagger, "max_iter"):
        tagger.set_params(max_iter=15)
    want = scores(tagger.fit(X, Y, sample_weight=COUNTS.astype(np.float64)))
    spread = np.repeat(COUNTS.astype(np.float32), 2)
    for form in (COUNTS.tolist(), tuple(COUNTS.tolist()), COUNTS, COUNTS.astype(np.uint8), spread[::2]):
        assert scores(tagger.fit(X, Y, sample_weight=form)) == want
    even = scores(tagger.fit(X, Y))
    assert scores(tagger.fit(X, Y, sample_weight=np.ones(N, dtype=bool))) == even != want
    given = REAL.copy()
    tagger.fit(X, Y, sample_weight=given)
    np.testing.assert_array_equal(given, REAL)

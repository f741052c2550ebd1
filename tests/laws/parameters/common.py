"""Rows that several learners share: features, threads, logging, rules, stopping."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import tagwise as tw
from tagwise import _core
from tagwise.decoding import paths
from tagwise.decoding.plan import Plan
from tagwise.features import Recipe
from tagwise.learners import gradient

from .rows import Bench, bits, mask, names, places, problem, row, tokens

ONLINE = ("perceptron", "mira", "pa", "arow")
LIMITED = ("crf", *ONLINE, "hmsvm")
BATCH = ("crf", "memm")
ALL = (*LIMITED, "memm", "boosting", "hmm")

P = problem(5, [4, 2, 3, 5, 1, 4])
#: Few iterations for every learner.
SHORT = {"max_iter": 3, "every": 2}

X = [["The", "dog", "barks"], ["a", "Dog"], ["the", "cat"], ["dog", "eats", "the", "cat"]]
Y = [["D", "N", "V"], ["D", "N"], ["D", "N"], ["N", "V", "D", "N"]]


def short(b: Bench, **params: Any) -> dict[str, Any]:
    more = {"overlapping": True, "features": "attributes"} if b.kind is tw.HMM else {}
    return {**b.some(**SHORT), **more, **params}


@row("features", *ALL)
def features(b: Bench) -> None:
    """The attributes are those of the given recipe, and the model's metadata names it."""
    for recipe, wanted in (
        ("word[0].lower", {f"word[0].lower={w.lower()}" for sentence in X for w in sentence}),
        ("S1", {f"word[0]={w}" for sentence in X for w in sentence}),
    ):
        tagger = b.kind(**short(b, features=recipe)).fit(X, Y)
        kept = set(tagger.model_.vocabulary.texts())
        assert (
            kept <= wanted if b.kind is tw.Boosting else kept == wanted
        )  # a boosted model has only the chosen features
        assert tagger.model_.meta["params"]["features"] == tagger.model_.recipe.name
    given = b.kind(**short(b, features=lambda sentence: [[f"len={len(w)}"] for w in sentence])).fit(X, Y)
    kept, wanted = set(given.model_.vocabulary.texts()), {"len=1", "len=3", "len=4", "len=5"}
    assert kept <= wanted if b.kind is tw.Boosting else kept == wanted
    assert kept


@row("start_end", *(name for name in ALL if name != "hmm"))
def start_end(b: Bench) -> None:
    """Features of first and last labels exist or not. The others stay."""
    found = {}
    for flag in (True, False):
        layout = b.fit(P, start_end=flag, **short(b)).model_.scorer.layout.arrays()
        if b.kind is tw.Boosting:
            chosen = b.kind(start_end=flag, max_iter=60, epsilon=0.0).fit(tokens(P), names(P)).rounds_
            assert any(r.kind in ("start", "end") for r in chosen) is flag
            continue
        found[flag] = {name: len(layout[name]) for name in ("starts", "ends", "edges")}
    if found:
        every = b.kind is tw.HMSVM
        gold = {"starts": {y[0] for y in P.y}, "ends": {y[-1] for y in P.y}}
        assert found[False] == {"starts": 0, "ends": 0, "edges": found[True]["edges"]}
        for end in ("starts", "ends"):
            assert found[True][end] == (P.shape.labels if every else len(gold[end]))


@row("min_count", *(name for name in ALL if name != "hmm"))
def min_count(b: Bench) -> None:
    """Attributes seen fewer than min_count times are dropped, and no others."""
    seen = {"often": 3, "twice": 2, "once": 1}
    sentences = [[["often", "twice", "once"]], [["often", "twice"]], [["often"]]]
    labels = [["x"], ["y"], ["x"]]
    for least in (1, 2, 3):
        tagger = b.kind(**short(b, min_count=least, **b.some(all_pairs=True))).fit(sentences, labels)
        kept = {name for name, n in seen.items() if n >= least}
        if b.kind is tw.Boosting:
            chosen = (
                tw.Boosting(min_count=least, max_iter=50, epsilon=0.0, features_per_round=1)
                .fit(sentences, labels)
                .rounds_
            )
            assert {r.attribute for r in chosen if r.kind == "node"} <= kept
            if least == 1:
                assert "once" in {r.attribute for r in chosen}
        else:
            assert set(tagger.model_.vocabulary.texts()) == kept


@row("all_pairs", *(name for name in ALL if name not in ("hmm", "boosting")))
def all_pairs(b: Bench) -> None:
    """The features are all combinations of attributes, labels, pairs, start and end, or those of the gold paths."""
    every, seen = (b.fit(P, all_pairs=flag, **short(b)) for flag in (True, False))
    assert sorted(places(every, P)) == list(range(P.shape.size))
    assert sorted(places(seen, P)) == np.flatnonzero(mask(P)).tolist()
    assert mask(P).sum() < P.shape.size


@row("all_pairs", "boosting")
def all_pairs_of_boosting(b: Bench) -> None:
    """A feature that no gold path has may be chosen only with all_pairs=True."""
    words, labels = [["a", "b"], ["b"], ["a", "a"]], [["x", "y"], ["y"], ["x", "x"]]
    unseen = {("node", "word[0]=a", "y"), ("node", "word[0]=b", "x")}
    for flag in (True, False):
        tagger = tw.Boosting(
            features="S1", all_pairs=flag, max_iter=40, epsilon=0.0, max_step=0.5, features_per_round=1
        )
        chosen = {(r.kind, r.attribute, r.label) for r in tagger.fit(words, labels).rounds_}
        assert bool(chosen & unseen) is flag
        assert tagger.model_.meta["metrics"]["features"] == (2 * 2 + 4 + 2 + 2 if flag else 2 + 2 + 2 + 2)


@row("n_jobs", *ALL)
def n_jobs(b: Bench) -> None:
    """The bits are equal for any number of threads, and encoding, training and search receive the number."""
    runs = [b.fit(P, n_jobs=jobs, **short(b)) for jobs in (1, 2, 3, None)]
    assert len({bits(tagger) for tagger in runs}) == 1
    thread_counts: dict[str, set[Any]] = {"encode": set(), "search": set(), "train": set()}
    encode, best, value = Recipe.encode, paths.best, gradient.Evaluation.__init__

    def encoding(self: Recipe, X: Any, vocabulary: Any, n_jobs: int | None = None, *more: Any) -> Any:
        thread_counts["encode"].add(n_jobs)
        return encode(self, X, vocabulary, n_jobs, *more)

    def searching(plan: Plan) -> Any:
        thread_counts["search"].add(plan.n_jobs)
        return best(plan)

    def evaluating(self: Any, objective: Any, l2: float, n_jobs: int, *more: Any) -> None:
        thread_counts["train"].add(n_jobs)
        value(self, objective, l2, n_jobs, *more)

    b.monkeypatch.setattr(Recipe, "encode", encoding)
    b.monkeypatch.setattr(paths, "best", searching)
    b.monkeypatch.setattr(gradient.Evaluation, "__init__", evaluating)
    for name in ("Svm", "Boosting"):
        made = getattr(_core, name)

        def making(*args: Any, n_jobs: int = 0, made: Any = made, **keywords: Any) -> Any:
            thread_counts["train"].add(n_jobs)
            return made(*args, n_jobs=n_jobs, **keywords)

        b.monkeypatch.setattr(_core, name, making)
    trains = b.kind.name in (*BATCH, "hmsvm", "boosting")
    for given, native in ((2, 2), (None, 0)):
        for found in thread_counts.values():
            found.clear()
        dev = {"dev": tokens(P)[:2], "dev_y": names(P)[:2]}
        tagger = b.fit(P, n_jobs=given, keywords=dev, **short(b))
        assert thread_counts == {
            "encode": {given},
            "search": {native},
            "train": {native} if trains else set(),
        }
        tagger.predict(tokens(P))
        assert thread_counts["encode"] == {given}
        assert thread_counts["search"] == {native}


@row("verbose", *ALL)
def verbose(b: Bench) -> None:
    """With 1 each iteration logs a line, with its dev score if any. With 0 nothing is logged."""
    dev = {"dev": tokens(P)[:2], "dev_y": names(P)[:2]}
    b.fit(P, verbose=0, keywords=dev, **short(b))
    b.fit(P, **short(b))
    assert b.logged() == []
    for keywords in ({}, dev):
        tagger = b.fit(P, verbose=1, keywords=keywords, **short(b))
        lines = b.logged()
        for line, entry in zip(lines, tagger.history_, strict=True):
            assert line.startswith(f"iteration {entry['iteration']}: objective {entry['objective']:.4f}, ")
            score = entry.get("dev_score")
            assert (f"dev {score:.4f}" in line) if score is not None else ("dev" not in line)
    if hasattr(b.kind, "partial_fit"):
        b.kind(verbose=1).partial_fit(tokens(P), names(P), max_iter=2)
        assert [line.partition(":")[0] for line in b.logged()] == ["iteration 1", "iteration 2"]


# -- rules ------------------------------------------------------------------------------------------------

BIO_X = [["a", "b", "b"], ["c", "a", "b"], ["c"], ["a", "b", "b", "b"]]
BIO_Y = [["B-p", "I-p", "I-p"], ["O", "B-p", "I-p"], ["O"], ["B-p", "I-p", "I-p", "I-p"]]


def with_and_without_kernel(b: Bench) -> list[dict[str, Any]]:
    """Return the settings with explicit weights, and with support tokens if the learner has them."""
    return [{}, {"kernel": "poly"}] if b.has("kernel") else [{}]


@row("constraints", *(name for name in LIMITED if name != "crf"))
def constraints(b: Bench) -> None:
    """Invalid paths are not rivals in training, and are never predicted."""
    every = set(itertools.product(("O", "B-p", "I-p"), repeat=2))
    unlawful = {("O", "I-p"), ("I-p", "O"), ("I-p", "B-p"), ("I-p", "I-p")}
    for more in with_and_without_kernel(b):
        fitted = {
            rules: b.kind(**short(b, features="S1", constraints=rules, **more)).fit(BIO_X, BIO_Y)
            for rules in ("bio", None)
        }
        # I-p, the most frequent label, cannot be predicted at the beginning
        assert bits(fitted["bio"]) != bits(fitted[None])
        for rules, tagger in fitted.items():
            paths = {tuple(path) for path, _ in tagger.predict_kbest([["b", "b"]], 9)[0]}
            assert paths == (every - unlawful if rules else every)


WORDS = [["a", "b"], ["a", "c"], ["b", "a"], ["c"]]
SURE = [["x", "y"], ["x", "z"], ["y", "x"], ["z"]]


@row("dictionary", *LIMITED)
def dictionary(b: Bench) -> None:
    """A number is the minimum count. A `Dictionary` has the share of labels too."""
    assert_counts(b)
    assert_share(b)


def assert_counts(b: Bench) -> None:
    """Words seen at least this often take only labels seen with them, in training too. Others take any."""
    times = {"a": 3, "b": 2, "c": 2}
    for least, more in itertools.product((1, 2, 3, 4, None), with_and_without_kernel(b)):
        tagger = b.kind(**short(b, features="S1", dictionary=least, **more)).fit(WORDS, SURE)
        if least is not None:
            by_object = b.kind(**short(b, features="S1", dictionary=tw.Dictionary(least), **more))
            assert bits(by_object.fit(WORDS, SURE)) == bits(tagger)
        paths = {tuple(path) for path, _ in tagger.predict_kbest([["a", "b"]], 9)[0]}
        known = [least is not None and times[word] >= least for word in ("a", "b")]
        wanted = itertools.product("x" if known[0] else "xyz", "y" if known[1] else "xyz")
        assert paths == set(wanted)
        # if every word has one label, the loss is 0
        first = tagger.history_[0]["objective"] if tagger.history_ else tagger.objective_
        if least is not None and least <= 2:
            assert first == pytest.approx(0.0, abs=1e-6)
        else:
            assert first > 0.1


def assert_share(b: Bench) -> None:
    """Labels below this share of a word's tokens are dropped. A label at the share and the gold label stay."""
    words, labels = [["a", "a"], ["a", "a"], ["b"]], [["x", "x"], ["x", "y"], ["z"]]
    for share, wanted in ((0.0, "xy"), (0.25, "xy"), (0.26, "x"), (0.75, "x"), (0.76, "xyz"), (1.0, "xyz")):
        params = {"dictionary": tw.Dictionary(2, share=share)}
        tagger = b.kind(**short(b, features="S1", **params)).fit(words, labels)
        assert {path[0] for path, _ in tagger.predict_kbest([["a"]], 9)[0]} == set(wanted)


# -- stopping ---------------------------------------------------------------------------------------------


def curve(b: Bench, n: int = 40) -> list[float]:
    """Return the objectives of the start and of n iterations, with all stopping rules off.

    Conjugate gradients have no certificates, which would end training instead of the window.
    """
    first = b.fit(P, optimizer="cg", l2=0.01, tol=0.0, max_iter=0).objective_
    rest = b.fit(P, optimizer="cg", l2=0.01, tol=0.0, max_iter=n)
    return [first, *(entry["objective"] for entry in rest.history_)]


@row("max_iter", *BATCH)
def max_iter(b: Bench) -> None:
    """Training makes at most max_iter iterations. With 0 it returns the initial weights."""
    for n in (1, 2, 5):
        tagger = b.fit(P, max_iter=n, tol=0.0)
        assert [entry["iteration"] for entry in tagger.history_] == list(range(1, n + 1))
        assert tagger.stopped_ == f"max_iter={n} reached"
    assert b.fit(P, max_iter=0).n_nonzero_ == 0


def first_level(values: list[float], tol: float, window: int) -> int:
    """Return the first iteration that meets the window rule."""
    return next(k for k in range(window, len(values)) if values[k - window] - values[k] <= tol * values[k])


@row("tol", *BATCH)
def tol(b: Bench) -> None:
    """Training stops at the first iteration that meets the window rule, and never with tol=0."""
    values = curve(b)
    ends = []
    for given in (0.1, 0.01, 0.001):
        tagger = b.fit(P, optimizer="cg", l2=0.01, tol=given, window=2)
        ends.append(len(tagger.history_))
        assert ends[-1] == first_level(values, given, 2)
        assert tagger.stopped_ == f"tol={given:g}: improved by less than {given:g} over window=2 iterations"
    assert ends[0] < ends[1] < ends[2]
    assert len(values) > ends[2] + 1


@row("window", *BATCH)
def window(b: Bench) -> None:
    """The last value is compared with the value `window` iterations before."""
    values = curve(b)
    ends = [
        len(b.fit(P, optimizer="cg", l2=0.01, tol=0.01, window=given).history_) for given in (1, 2, 5, 10)
    ]
    assert ends == [first_level(values, 0.01, given) for given in (1, 2, 5, 10)]
    assert ends == sorted(set(ends))


def patience_of(scores: list[float], patience: int) -> int:
    """Return the iteration at which patience ends training, given unlimited iterations."""
    best, at = -1.0, 0
    for k, score in enumerate(scores, start=1):
        if score > best:
            best, at = score, k
        if patience and k - at >= patience:
            return k
    return len(scores)


#: Dev sentences with labels drawn independently of P.
DEV = problem(11, [3, 4, 2, 5])


@row("patience", *(name for name in ALL if name != "hmm"))
def patience(b: Bench) -> None:
    """Training stops after `patience` dev scores without a better one, never with 0 or without dev."""
    long = b.some(max_iter=15, every=1, tol=0.0, epsilon=0.0)
    dev = {"dev": tokens(DEV), "dev_y": names(DEV)}
    free = b.fit(P, patience=0, keywords=dev, **long)
    scores = [entry["dev_score"] for entry in free.history_]
    assert len(scores) >= 12
    ends = set()
    for given in (1, 2, 4):
        tagger = b.fit(P, patience=given, keywords=dev, **long)
        assert len(tagger.history_) == patience_of(scores, given)
        if len(tagger.history_) < len(scores):
            assert tagger.stopped_.startswith(f"patience={given}, kept iteration {tagger.best_iteration_} of")
        ends.add(len(tagger.history_))
        assert len(b.fit(P, patience=given, **long).history_) == len(scores)
    assert len(ends) == 3


# -- metric -----------------------------------------------------------------------------------------------


def metrics_of(gold: list[list[str]], found: list[list[str]]) -> dict[str, float]:
    """Return every metric of labels without spans, by its definition."""
    pairs = [pair for g, p in zip(gold, found, strict=True) for pair in zip(g, p, strict=True)]
    names = sorted({label for pair in pairs for label in pair})
    right = {y: sum(pair == (y, y) for pair in pairs) for y in names}
    support = {y: sum(g == y for g, _ in pairs) for y in names}
    f1 = {y: 2 * right[y] / (support[y] + sum(p == y for _, p in pairs)) for y in names}
    accuracy = sum(right.values()) / len(pairs)
    return {
        "f1": accuracy,
        "accuracy": accuracy,
        "sequence_accuracy": sum(g == p for g, p in zip(gold, found)) / len(gold),
        "f1_macro": sum(f1.values()) / len(names),
        "f1_weighted": sum(f1[y] * support[y] for y in names) / len(pairs),
    }


@row("scoring", *ALL)
def scoring(b: Bench) -> None:
    """`score`, dev scores and `metric_` use the named metric. None takes the one of the training labels."""
    plain = [[y.replace("-", "") for y in path] for path in names(DEV)]
    gold = [[y.replace("-", "") for y in path] for path in names(P)]
    values = {}
    for given in (None, "f1", "accuracy", "sequence_accuracy", "f1_macro", "f1_weighted"):
        tagger = b.kind(**short(b, scoring=given, **b.some(patience=0)))
        tagger.fit(tokens(P), gold, dev=tokens(DEV), dev_y=plain)
        assert tagger.metric_ == (given or "accuracy")
        assert tagger.model_.meta["metric"] == tagger.metric_
        wanted = metrics_of(plain, tagger.predict(tokens(DEV)))
        values[given] = tagger.score(tokens(DEV), plain)
        assert values[given] == pytest.approx(wanted[given or "accuracy"])
        kept = next(e for e in tagger.history_ if e["iteration"] == tagger.best_iteration_)
        assert kept["dev_score"] == pytest.approx(values[given])
    assert len(set(values.values())) >= 3
    spans = b.fit(P, **short(b))
    assert spans.metric_ == "f1"
    assert spans.score(tokens(P)[:1], [["O"] * len(P.y[0])]) == 0.0  # F1, also of a corpus without spans

"""Tests of rules in training: losses by counting valid paths, steps by reference learners over the valid paths."""

from __future__ import annotations

import functools
import pickle
from collections.abc import Callable
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import pytest

import tagwise as tw
from tagwise import _core
from tagwise.base.cached import cached
from tagwise.learners import gradient, problem

from . import valid_paths
from .constrained import OWN, OWN_RULE, X, Y, own_step
from .reference import mira, svm
from .valid_paths import Held, Path, Rule

Make = Callable[..., tw.Tagger]

# -- nothing to learn ----------------------------------------------------------------------------------------


class Forced(NamedTuple):
    """Sentences whose rules allow only the gold path."""

    X: list[list[str]]
    y: list[list[str]]
    limits: dict[str, Any]


ABC = (("A", "B"), ("B", "C"))
FORCED = {
    "transitions": Forced(
        [["v", "v", "v"]] * 3, [["A", "B", "C"]] * 3,
        {"constraints": {"forbidden": [(a, b) for a in "ABC" for b in "ABC" if (a, b) not in ABC]}},
    ),
    "required": Forced(
        [["v", "v", "v"]] * 3, [["A", "B", "C"]] * 3,
        {"constraints": {"required": {"A": "B", "B": ["C"], "C": [None]}}},
    ),
    "start": Forced(
        [["v"], ["v", "v"], ["v"]], [["A"], ["A", "B"], ["A"]],
        {"constraints": {"forbidden": [(None, "B"), ("A", "A")]}},
    ),
    "end": Forced(
        [["v"], ["v", "v"], ["v"]], [["B"], ["A", "B"], ["B"]],
        {"constraints": {"forbidden": [("A", None), ("B", "B")]}},
    ),
    "dictionary": Forced(
        [["a", "b"], ["b", "a", "a"], ["b"]], [["A", "B"], ["B", "A", "A"], ["B"]], {"dictionary": 1},
    ),
    "once": Forced(
        [["v", "v", "v"], ["v", "v"], ["v", "v", "v"]],
        [["A", "B", "B"], ["A", "B"], ["A", "B", "B"]],
        {"constraints": {"forbidden": [(None, "B"), ("A", "A")], "once": ["A"]}},
    ),
}  # fmt: skip
CRF: dict[str, Any] = {"features": "S1", "l2": 0.0, "max_iter": 8}
ONLINE: dict[str, Any] = {"features": "S1", "max_iter": 3}
LOSSES = _core.LOSSES
LEARNERS: dict[str, Make] = {
    **{f"crf-{loss}": functools.partial(tw.CRF, **CRF, loss=loss) for loss in LOSSES},
    **{f"crf-{name}": functools.partial(tw.CRF, **CRF, optimizer=name) for name in ("sgd", "cg", "lbfgs", "owlqn")},
    **{f"crf-{order}": functools.partial(tw.CRF, **CRF, order=order) for order in (2, 3)},
    "perceptron": functools.partial(tw.Perceptron, **ONLINE),
    "perceptron-last": functools.partial(tw.Perceptron, **ONLINE, average=False),
    "perceptron-batch": functools.partial(tw.Perceptron, **ONLINE, mode="batch"),
    "perceptron-shards": functools.partial(tw.Perceptron, **ONLINE, parts=2),
    "mira": functools.partial(tw.MIRA, **ONLINE),
    "mira-augment": functools.partial(tw.MIRA, **ONLINE, augment=True),
    "pa": functools.partial(tw.PassiveAggressive, **ONLINE),
    "arow": functools.partial(tw.AROW, **ONLINE),
    "history-perceptron": functools.partial(tw.Perceptron, **ONLINE, lookback=(1, 2)),
    "history-mira": functools.partial(tw.MIRA, **ONLINE, lookback=(2, 3)),
    "kernel-perceptron": functools.partial(tw.Perceptron, **ONLINE, kernel="poly"),
    "kernel-rows": functools.partial(tw.Perceptron, **ONLINE, kernel="rbf"),
    "hmsvm": functools.partial(tw.HMSVM, features="S1"),
    "hmsvm-sequence": functools.partial(tw.HMSVM, features="S1", slack="sequence"),
    "hmsvm-margin": functools.partial(tw.HMSVM, features="S1", rescale="margin"),
    "kernel-hmsvm": functools.partial(tw.HMSVM, features="S1", kernel="rbf"),
}  # fmt: skip
#: Learners that reject labels that occur once.
NOT_ONCE = ("crf-pointwise_log", "crf-pointwise_exp", "crf-sgd", "crf-2", "crf-3", "kernel", "hmsvm")


def moved(tagger: tw.Tagger) -> bool:
    """Return whether training has changed any weight or kept any support token."""
    model = tagger.model_
    far = model.lookback is not None and bool(model.lookback.weights.any())
    return bool(np.abs(model.scorer.weights).max() > 1e-6) or far or getattr(tagger, "n_support_", 0) > 0


@pytest.mark.parametrize("kind", FORCED)
@pytest.mark.parametrize("name", LEARNERS)
def test_no_weight_moves_if_only_the_gold_path_is_valid(name: str, kind: str) -> None:
    """No weight moves, the loss is 0, and predictions are right. Without the rules weights do move."""
    words, gold, limits = FORCED[kind]
    if kind == "once" and name.startswith(NOT_ONCE):
        with pytest.raises(
            tw.exceptions.ParameterError, match=r"the constraint `once`.*predict\(X, constraints="
        ):
            LEARNERS[name](**limits).fit(words, gold)
        return
    tagger = LEARNERS[name](**limits).fit(words, gold, dev=words, dev_y=gold)
    assert not moved(tagger)
    each = sum(map(len, gold)) if name == "crf-pointwise_exp" else 0.0  # a token adds at least 1 / p
    assert tagger.objective_ == pytest.approx(each, abs=1e-5)
    assert all(entry["dev_score"] == 1.0 for entry in tagger.history_)
    assert tagger.predict(words) == gold
    assert moved(LEARNERS[name]().fit(words, gold))


@pytest.mark.parametrize("kind", [kind for kind in FORCED if kind != "once"])
@pytest.mark.parametrize("loss", LOSSES)
def test_stochastic_start_uses_the_constraints(kind: str, loss: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """L-BFGS starts from a few stochastic epochs. If these ignored a rule, it would start away from zero."""
    monkeypatch.setattr(problem, "WORTH_WARMING", 1)
    words, gold, limits = FORCED[kind]
    common: dict[str, Any] = {"features": "S1", "l2": 0.0, "loss": loss, "max_iter": gradient.WARMUP + 1}
    assert not moved(tw.CRF(**common, **limits).fit(words, gold))
    assert moved(tw.CRF(**common).fit(words, gold))


@pytest.mark.parametrize("kind", FORCED)
def test_partial_fit_uses_the_constraints(kind: str) -> None:
    """`partial_fit` keeps the rules, in the first call and in the second."""
    words, gold, limits = FORCED[kind]
    for make in (tw.Perceptron, tw.MIRA, tw.PassiveAggressive, tw.AROW):
        tagger = make(features="S1", **limits)
        for _ in range(2):
            tagger.partial_fit(words, gold)
            assert not moved(tagger)


# -- losses by counting --------------------------------------------------------------------------------------

# One word of four tokens has a label on a quarter of them, and a gold path contains that label.
SHARE = {"dictionary": tw.Dictionary(2, share=0.4)}
LIMITS: dict[str, tuple[dict[str, Any], Rule, Any]] = {
    "none": ({}, valid_paths.anything, None),
    "bio": ({"constraints": "bio"}, valid_paths.of_scheme("IOB2"), None),
    "auto": ({"constraints": "auto"}, valid_paths.of_scheme("IOB2"), None),
    "own": ({"constraints": OWN}, OWN_RULE, None),
    "dictionary": ({"dictionary": 3}, valid_paths.anything, (3, 0.0)),
    "share": (SHARE, valid_paths.anything, (2, 0.4)),
    "both": ({"constraints": OWN, **SHARE}, OWN_RULE, (2, 0.4)),
    "once": ({"constraints": {"once": ["P"]}}, valid_paths.single("P"), None),
    "once-both": (
        {"constraints": {**OWN, "once": ["P", "Q"]}, "dictionary": 3},
        valid_paths.both(OWN_RULE, valid_paths.single("P", "Q")),
        (3, 0.0),
    ),
}


@functools.cache
def trained_on(limits: str) -> list[Rule]:
    """Return the rule of each training sentence. The dictionary is ignored for words without the gold label."""
    _, rule, counts = LIMITS[limits]
    seen = {} if counts is None else valid_paths.counted(X, Y, *counts)
    known = [[seen.get(w) for w in words] for words in X]
    known = [[s if s and y in s else None for s, y in zip(sets, gold)] for sets, gold in zip(known, Y)]
    return [functools.cache(valid_paths.both(rule, valid_paths.within(sets))) for sets in known]


def test_constraints_leave_different_numbers_of_paths() -> None:
    """Each rule leaves a different number of paths, and all gold paths are valid."""
    labels = ("O", "B-P", "I-P", "B-Q", "I-Q")
    counts = {}
    for name in LIMITS:
        rules = trained_on(name)
        assert all(rule(tuple(gold)) for rule, gold in zip(rules, Y))
        counts[name] = [sum(map(rule, valid_paths.every(labels, len(x)))) for rule, x in zip(rules, X)]
    assert len({tuple(n) for n in counts.values()}) == len(LIMITS) - 1  # auto is bio
    assert valid_paths.counted(X, Y, *LIMITS["share"][2])["lee"] != valid_paths.counted(X, Y, 2)["lee"]


def loss_of(loss: str, held: Held, gold: Path, labels: Any) -> float:
    """Return one sentence's loss from the probabilities of the valid paths."""
    if loss == "log":
        return float(-np.log(held.p[gold]))
    if loss == "exp":
        return 1.0 / held.p[gold] - 1.0
    table = held.marginals(labels, len(gold))
    p = np.array([table[t, labels.index(y)] for t, y in enumerate(gold)])
    return float(-np.log(p).sum() if loss == "pointwise_log" else (1.0 / p).sum())


CRFS: dict[str, dict[str, Any]] = {
    **{loss: {"loss": loss} for loss in LOSSES},
    "order-2": {"order": 2}, "order-3": {"order": 3}, "sgd": {"optimizer": "sgd"},
}  # fmt: skip
SUMS = [
    (name, limits)
    for name in CRFS
    for limits in LIMITS
    if not limits.startswith("once") or name in ("log", "exp")
]


@pytest.mark.parametrize(("name", "limits"), SUMS)
def test_loss_sums_over_valid_paths(name: str, limits: str) -> None:
    """The loss matches a count of valid paths at weights of 0, and all valid paths' scores after some iterations."""
    loss = CRFS[name].get("loss", "log")
    weight = np.linspace(0.5, 2.0, len(X))
    for iterations in (0, 3):
        made = tw.CRF(features="S1", l2=0.1, max_iter=iterations, **CRFS[name], **LIMITS[limits][0])
        tagger = made.fit(X, Y, sample_weight=weight)
        labels, total = list(tagger.classes_), 0.0
        for words, gold, rule, w in zip(X, Y, trained_on(limits), weight):
            if iterations:
                path_scores = valid_paths.path_scores(tagger.model_, words)
            else:
                path_scores = dict.fromkeys(valid_paths.every(labels, len(words)), 0.0)
            total += w * loss_of(loss, Held(path_scores, rule), tuple(gold), labels)
        squares = float(np.sum(tagger.model_.scorer.weights.astype(float) ** 2))
        if tagger.model_.lookback is not None:
            squares += float(np.sum(tagger.model_.lookback.weights.astype(float) ** 2))
        assert iterations == 0 or squares > 0.01
        assert tagger.objective_ == pytest.approx(total + 0.1 * squares, rel=2e-5)


@pytest.mark.parametrize("loss", ["log", "exp"])
@pytest.mark.parametrize("limits", ["own", "both"])
def test_pieces_keep_the_constraints_of_their_sentence(loss: str, limits: str) -> None:
    """In pieces of two tokens, start and end rules hold only at the true ends: by counting, at weights of 0."""
    tagger = tw.CRF(features="S1", l2=0.0, max_iter=0, max_length=2, loss=loss, **LIMITS[limits][0]).fit(X, Y)
    seen = valid_paths.counted(X, Y, *LIMITS[limits][2]) if LIMITS[limits][2] else {}
    labels, total = tagger.classes_, 0.0
    for words, gold in zip(X, Y):
        n = len(words)
        parts = -(-n // 2)
        for a, b in pairwise([n * i // parts for i in range(parts + 1)]):

            def step(
                t: int, before: str | None, y: str, first: int = a, gold: Any = gold, words: Any = words
            ) -> bool:
                known = seen.get(words[t])
                befores = (
                    labels if t == first > 0 else [before]
                )  # the label before is in another piece: any that fits
                restricts = known is not None and gold[t] in known
                return (not restricts or y in known) and any(own_step(t, len(words), z, y) for z in befores)

            paths = valid_paths.every(labels, b - a)
            count = sum(all(step(a + i, p[i - 1] if i else None, y) for i, y in enumerate(p)) for p in paths)
            total += np.log(count) if loss == "log" else count - 1
    assert tagger.objective_ == pytest.approx(total, rel=1e-5)


@pytest.mark.parametrize("name", ["log", "order-2", "order-3"])
@pytest.mark.parametrize("limits", ["own", "both"])
def test_optimum_matches_expected_counts_over_valid_paths(name: str, limits: str) -> None:
    """At the optimum 2 l2 w = feature counts of the gold paths - expected counts over the valid paths."""
    l2 = 0.2
    params = {**CRFS[name], **LIMITS[limits][0]}
    tagger = tw.CRF(features="S1", l2=l2, tol=0.0, max_iter=60, **params).fit(X, Y)
    reference_model = ReferenceModel(tagger)
    want = np.zeros(len(reference_model))
    for i, (words, gold, rule) in enumerate(zip(X, Y, trained_on(limits))):
        held = Held(valid_paths.path_scores(tagger.model_, words), rule)
        want += reference_model.features(i, tuple(gold))
        for path, p in held.p.items():
            want -= p * reference_model.features(i, path)
    np.testing.assert_allclose(2 * l2 * reference_model.weights, want, atol=2e-3)
    assert np.abs(want).max() > 0.1


# -- steps against valid paths -------------------------------------------------------------------------------


class ReferenceModel:
    """Feature counts of a tagger's paths: attributes, transitions, start and end, labels two back."""

    def __init__(self, tagger: tw.Tagger) -> None:
        model = tagger.model_
        self.labels, layout = list(model.labels), model.scorer.layout
        self.arrays, self.L, self.n_node = layout.arrays(), len(model.labels), layout.n_node
        ptr, ids, _ = model.encode(X).node()
        self.ptr, self.ids = ptr.astype(int), ids.astype(int)
        self.offsets = [0, *np.cumsum([len(words) for words in X]).tolist()]
        self.first = len(layout)
        self.far = model.lookback is not None and not model.lookback.tuples
        self.weights = model.scorer.weights.astype(float)
        if self.far and model.lookback is not None:
            self.weights = np.concatenate([self.weights, model.lookback.weights.astype(float)])

    def __len__(self) -> int:
        return self.first + self.far * self.L**2

    @property
    @cached
    def place(self) -> dict[tuple[Any, ...], int]:
        """Return the index of each feature: (attribute, label), (label, label), start, end, (label, two back)."""
        a, L = self.arrays, self.L
        owner = np.repeat(np.arange(len(a["node_ptr"]) - 1), np.diff(a["node_ptr"].astype(int)))
        names: list[tuple[Any, ...]] = [("node", int(o), int(y)) for o, y in zip(owner, a["node_label"])]
        names += [("edge", int(e) // L, int(e) % L) for e in a["edges"]]
        names += [("start", int(y)) for y in a["starts"]] + [("end", int(y)) for y in a["ends"]]
        names += [("far", y, z) for y in range(L) for z in range(L)] if self.far else []
        return {name: k for k, name in enumerate(names)}

    def features(self, i: int, path: Path) -> np.ndarray:
        """Return S(x_i, path)."""
        ids = [self.labels.index(y) for y in path]
        names: list[tuple[Any, ...]] = [("start", ids[0]), ("end", ids[-1])]
        names += [("edge", a, b) for a, b in pairwise(ids)] + [("far", a, b) for a, b in zip(ids, ids[2:])]
        for t, y in enumerate(ids):
            token = self.offsets[i] + t
            names += [("node", a, y) for a in self.ids[self.ptr[token] : self.ptr[token + 1]].tolist()]
        out = np.zeros(len(self))
        for name in names:
            if name in self.place:
                out[self.place[name]] += 1
        return out

    def table(self, i: int, rule: Rule) -> tuple[list[Path], np.ndarray]:
        """Return the valid paths of a sentence in tie-breaking order, and their features [paths, size]."""
        paths = [path for path in valid_paths.every(self.labels, len(X[i])) if rule(path)]
        paths.sort(key=lambda path: [self.labels.index(y) for y in reversed(path)])
        return paths, np.array([self.features(i, path) for path in paths])


def wrong(gold: Path, path: Path) -> float:
    """Return the number of wrong labels."""
    return float(sum(a != b for a, b in zip(gold, path)))


def steps(
    reference_model: ReferenceModel, rules: list[Rule], epochs: int, kind: str
) -> tuple[np.ndarray, np.ndarray]:
    """Return last and averaged weights of an online learner over the valid paths."""
    w, total, variance = (
        np.zeros(len(reference_model)),
        np.zeros(len(reference_model)),
        np.ones(len(reference_model)),
    )
    tables = [reference_model.table(i, rule) for i, rule in enumerate(rules)]
    for _ in range(epochs):
        for (paths, features), gold in zip(tables, map(tuple, Y)):
            right = features[paths.index(gold)]
            ranked = np.argsort(-(features @ w).round(9), kind="stable")
            if kind == "mira":
                top = [j for j in ranked[:4] if paths[j] != gold]
                d = right - features[top]
                cost = np.array([wrong(gold, paths[j]) for j in top])
                w = mira.closest(w, d, cost) if len(top) else w
            elif paths[ranked[0]] != gold:
                d, shortfall = right - features[ranked[0]], wrong(gold, paths[ranked[0]])
                shortfall -= w @ (right - features[ranked[0]])
                if kind == "perceptron":
                    w = w + d
                elif kind == "pa":
                    w = w + min(1.0, max(0.0, shortfall) / (d @ d)) * d
                else:
                    alpha = max(0.0, shortfall) / (1.0 + d**2 @ variance)
                    w, variance = w + alpha * variance * d, 1 / (1 / variance + d**2)
            total += w
    return w, total / (epochs * len(X))


STEPS: dict[str, tuple[Make, str]] = {
    "perceptron": (tw.Perceptron, "perceptron"), "mira": (tw.MIRA, "mira"), "pa": (tw.PassiveAggressive, "pa"),
    "arow": (tw.AROW, "arow"),
    "history-perceptron": (functools.partial(tw.Perceptron, lookback=(2, 2)), "perceptron"),
    "history-mira": (functools.partial(tw.MIRA, lookback=(2, 2)), "mira"),
}  # fmt: skip


@pytest.mark.parametrize("limits", ["own", "share", "both", "once", "once-both"])
@pytest.mark.parametrize("name", STEPS)
def test_steps_are_against_valid_paths(name: str, limits: str) -> None:
    """The weights match a learner over the valid paths, and differ from a learner over all paths."""
    make, kind = STEPS[name]
    common: dict[str, Any] = {"features": "S1", "max_iter": 2, "shuffle": False, "all_pairs": True}
    for average in (False, True):
        tagger = make(**common, average=average, **LIMITS[limits][0]).fit(X, Y)
        reference_model = ReferenceModel(tagger)
        want = steps(reference_model, trained_on(limits), 2, kind)[average]
        np.testing.assert_allclose(reference_model.weights, want, atol=2e-4)
    free = ReferenceModel(make(**common).fit(X, Y))
    assert (name, limits) == ("perceptron", "once") or np.abs(
        free.weights - reference_model.weights
    ).max() > 1e-3


@pytest.mark.parametrize("limits", ["own", "both"])
def test_kernel_perceptron_steps_like_the_primal(limits: str) -> None:
    """With the linear kernel every path of every sentence has the score of the reference weights."""
    common: dict[str, Any] = {"features": "S1", "max_iter": 2, "shuffle": False, "all_pairs": True}
    primal = ReferenceModel(tw.Perceptron(**common).fit(X, Y))
    want = steps(primal, trained_on(limits), 2, "perceptron")[1]
    dual = tw.Perceptron(**common, **LIMITS[limits][0], kernel="linear").fit(X, Y)
    scores_agree(dual, primal, want)
    free = tw.Perceptron(**common, kernel="linear").fit(X, Y)
    with pytest.raises(AssertionError):
        scores_agree(free, primal, want)


def scores_agree(
    tagger: tw.Tagger, reference_model: ReferenceModel, w: np.ndarray, atol: float = 1e-4
) -> None:
    """All paths of the shorter sentences have the scores of these weights."""
    for i, words in enumerate(X):
        if len(words) < 4:
            path_scores = valid_paths.path_scores(tagger.model_, words)
            want = [w @ reference_model.features(i, path) for path in path_scores]
            np.testing.assert_allclose(list(path_scores.values()), want, atol=atol)


@pytest.mark.parametrize("limits", ["own", "both"])
@pytest.mark.parametrize("slack", ["instance", "sequence"])
def test_svm_margins_are_against_valid_paths(limits: str, slack: str) -> None:
    """The Hidden Markov SVM solves the program over valid wrong paths, with explicit weights and with a kernel."""
    common: dict[str, Any] = {
        "features": "S1",
        "C": 0.3,
        "slack": "instance" if slack == "instance" else ("sequence", 200),
        "tol": 1e-5,
        "max_iter": 400,
    }
    made = tw.HMSVM(**common, **LIMITS[limits][0]).fit(X, Y)
    reference_model = ReferenceModel(made)
    d, sentence = [], []
    for i, (gold, rule) in enumerate(zip(map(tuple, Y), trained_on(limits))):
        paths, features = reference_model.table(i, rule)
        right = features[paths.index(gold)]
        d += [right - row for path, row in zip(paths, features) if path != gold]
        sentence += [i] * (len(paths) - 1)
    rows, of = np.array(d), np.array(sentence)
    alpha = svm._dual(rows @ rows.T / 4, np.ones(len(rows)), of, 0.3, slack)
    want = alpha @ rows / 2
    shortfall = np.maximum(0.0, 1.0 - rows @ want / 2)
    xi = shortfall.sum() if slack == "sequence" else sum(shortfall[of == i].max() for i in set(sentence))
    assert made.objective_ == pytest.approx(want @ want / 2 + 0.3 * xi, rel=1e-3)
    np.testing.assert_allclose(reference_model.weights, want, atol=0.02)
    kernel = tw.HMSVM(**common, **LIMITS[limits][0], kernel=tw.Poly(degree=1, coef=0.0)).fit(X, Y)
    scores_agree(kernel, reference_model, want, atol=0.05)
    assert kernel.objective_ == pytest.approx(made.objective_, rel=1e-3)
    for free in (
        tw.HMSVM(**common).fit(X, Y),
        tw.HMSVM(**common, kernel=tw.Poly(degree=1, coef=0.0)).fit(X, Y),
    ):
        assert free.objective_ > 1.02 * made.objective_  # more paths mean more margin constraints


# -- gold labels outside of the rules ------------------------------------------------------------------------

BEYOND = "its gold labels are outside what the constraints allow; correct the sentence or relax"
OUTSIDE: dict[str, tuple[Any, list[str], str]] = {
    "scheme": ("bio", ["O", "I-P"], "its gold labels are not valid IOB2"),
    "transition": ({"forbidden": [("O", "I-P")]}, ["O", "I-P"], BEYOND),
    "start": ({"forbidden": [(None, "O")]}, ["O", "I-P"], BEYOND),
    "end": ({"required": {"O": ["O"]}}, ["B-P", "O"], BEYOND),
    "once": ({"once": ["P"]}, ["B-P", "B-P"], "a label that may occur once has two spans in its gold labels"),
}


@pytest.mark.parametrize(
    ("name", "kind"),
    [(name, kind) for name in LEARNERS for kind in OUTSIDE if kind != "once" or not name.startswith(NOT_ONCE)],
)  # fmt: skip
def test_gold_labels_outside_the_constraints_are_reported(name: str, kind: str) -> None:
    """The error names the sentence, and its line if the corpus has lines. Training stops."""
    given, bad, message = OUTSIDE[kind]
    words, gold = [["ann", "lee"], ["ann"], ["the", "lee"]], [["B-P", "I-P"], ["B-P"], bad]
    tagger = LEARNERS[name](constraints=given)
    corpus = tw.Corpus(
        [tw.Sentence({"word": x, "label": y}, "label", line=n) for x, y, n in zip(words, gold, (1, 4, 6))]
    )
    calls = [tagger.fit]
    if isinstance(tagger, (tw.MIRA, tw.PassiveAggressive, tw.AROW)) and not name.startswith("history"):
        calls.append(tagger.partial_fit)
    for call in calls:
        with pytest.raises(tw.exceptions.TrainingError, match=f"^sentence 2: {message}") as raised:
            call(words, gold)
        assert raised.value.sentence == 2
        with pytest.raises(
            tw.exceptions.TrainingError, match=rf"^sentence 2 \(line 6\): {message}"
        ) as raised:
            call(corpus)
        assert pickle.loads(pickle.dumps(raised.value)).sentence == 2


@pytest.mark.parametrize("name", ["CRF", "MIRA"])
def test_sentence_number_comes_from_the_error_not_its_text(name: str) -> None:
    """The number comes from the error's attribute, never from its text."""
    corpus = tw.Corpus([tw.Sentence({"word": ["ann", "ran"], "label": ["P", "O"]}, "label", line=7)])
    error = tw.exceptions.TrainingError("sentence 0: as the callback words it")

    def fail(_: Any) -> None:
        raise error

    with pytest.raises(tw.exceptions.TrainingError) as raised:
        getattr(tw, name)(features="S1").fit(corpus, callbacks=[fail])
    assert str(raised.value) == "sentence 0: as the callback words it"
    assert raised.value.sentence is None


def test_auto_warns_about_converted_sentences(caplog: pytest.LogCaptureFixture) -> None:
    """The warning gives their number and the position of the first. The model is that of the corrected labels."""
    words = [["ann", "lee"], ["ann"], ["the", "lee"], ["lee", "the"]]
    gold = [["B-P", "I-P"], ["B-P"], ["O", "I-P"], ["I-P", "O"]]
    right = [*gold[:2], ["O", "B-P"], ["B-P", "O"]]
    corpus = tw.Corpus(
        [tw.Sentence({"word": x, "label": y}, "label", line=n) for x, y, n in zip(words, gold, (1, 4, 6, 9))]
    )
    want = tw.MIRA(features="S1", constraints="bio").fit(words, right)
    assert not caplog.messages
    for call, first in (((words, gold), "sentence 2"), ((corpus,), "sentence 2 (line 6)")):
        caplog.clear()
        tagger = tw.MIRA(features="S1", constraints="auto").fit(*call)
        assert caplog.messages == [
            f"2 sentences are not valid IOB2 and are read as conlleval does. The first is {first}"
        ]
        np.testing.assert_array_equal(tagger.model_.scorer.weights, want.model_.scorer.weights)


@pytest.mark.parametrize("limit", [{"constraints": "bio"}, {"dictionary": 2}])
def test_partial_labels_reject_constraints(limit: dict[str, Any]) -> None:
    """Rules with partial labels raise an error."""
    name = next(iter(limit))
    with pytest.raises(tw.exceptions.ParameterError, match=f"partially labelled corpus requires {name}=None"):
        tw.CRF(features="S1", partial=True, **limit).fit([["ann", "lee"]], [["B-P", None]])

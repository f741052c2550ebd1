"""Rules hold in every way of predicting, for every kind of model: each answer against all lawful paths, one by one."""

from __future__ import annotations

import functools
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import pytest

import tagwise as tw
from tagwise import schemes
from tagwise.constraints import Constraints
from tagwise.history import Memory

from . import lawful
from .lawful import Held, Path, Rule
from .reference import history as twin
from .reference import scores as chain_scores

# A sentence never begins with a Q and never ends inside a P; a Q has two tokens or more; there is one P at most.
X = [
    ["ann", "the", "big", "bay"],
    ["ann", "lee", "the"],
    ["the", "big", "bay", "the"],
    ["bo", "the"],
    ["the", "ann", "lee", "bay"],
    ["the", "bay"],
    ["lee"],
    ["bo", "lee", "big", "bay"],
]
Y = [
    ["B-P", "O", "B-Q", "I-Q"],
    ["B-P", "I-P", "O"],
    ["O", "B-Q", "I-Q", "O"],
    ["B-P", "O"],
    ["O", "B-P", "I-P", "O"],
    ["O", "O"],
    ["O"],
    ["B-P", "I-P", "B-Q", "I-Q"],
]
TEST = [["bay", "ann", "lee", "big"], ["bo", "the", "bo"], ["new", "ann"], ["bay"]]


class Case(NamedTuple):
    """What a user declares, the same said aloud, and whether it is about labels that occur once."""

    given: Any
    rule: Rule
    once: bool = False


BIO = functools.cache(lawful.of_scheme("IOB2"))
OWN: dict[str, Any] = {
    "scheme": "bio",
    "forbidden": [(None, "B-Q"), ("I-P", None)],
    "required": {"B-Q": ["I-Q"]},
}
OWN_RULE = lawful.both(BIO, lawful.none((None, "B-Q"), ("I-P", None)), lawful.followed("B-Q", "I-Q"))
RULES = {
    "none": Case(False, lawful.anything),
    "scheme": Case("bio", BIO),
    "auto": Case("auto", BIO),
    "pair": Case({"forbidden": [("O", "O"), ("I-P", "B-P")]}, lawful.none(("O", "O"), ("I-P", "B-P"))),
    "start": Case({"forbidden": [(None, "B-P"), (None, "I-Q")]}, lawful.none((None, "B-P"), (None, "I-Q"))),
    "end": Case({"forbidden": [("O", None)]}, lawful.never("O", None)),
    "required": Case(
        {"required": {"B-P": ["I-P", None], "O": "O"}},
        lawful.both(lawful.followed("B-P", "I-P", None), lawful.followed("O", "O")),
    ),
    "all": Case(OWN, OWN_RULE),
    "once": Case({"once": ["P"]}, lawful.single("P"), True),
    "once-all": Case({**OWN, "once": ["P", "Q"]}, lawful.both(OWN_RULE, lawful.single("P", "Q")), True),
}  # fmt: skip


class Kind(NamedTuple):
    """A learner and what its models offer: probabilities, chunks, whole lists with labels that occur once, a beam."""

    make: Any
    limits: bool = True  # takes constraints= and dictionary=
    probability: bool = True
    chunks: bool = True
    first: bool = True  # a chain of first order with explicit weights
    beam: bool = True
    local: bool = False


FAST: dict[str, Any] = {"features": "S1", "max_iter": 4}
ONLINE: dict[str, Any] = {"features": "S1", "epochs": 2}
KINDS = {
    "crf": Kind(lambda **p: tw.CRF(**FAST, **p)),
    "crf-pointwise": Kind(lambda **p: tw.CRF(**FAST, loss="pointwise_exp", **p)),
    "crf-edges": Kind(lambda **p: tw.CRF(features="word[0]\nedge: word[-1]", max_iter=4, **p), beam=False),
    "crf-2": Kind(lambda **p: tw.CRF(**FAST, order=2, **p), chunks=False, first=False),
    "crf-3": Kind(lambda **p: tw.CRF(**FAST, order=3, **p), chunks=False, first=False),
    "perceptron": Kind(lambda **p: tw.Perceptron(**ONLINE, **p)),
    "mira": Kind(lambda **p: tw.MIRA(**ONLINE, **p)),
    "pa": Kind(lambda **p: tw.PassiveAggressive(**ONLINE, **p)),
    "arow": Kind(lambda **p: tw.AROW(**ONLINE, **p)),
    "hmsvm": Kind(lambda **p: tw.HMSVM(features="S1", max_epochs=2, **p)),
    "history-2": Kind(lambda **p: tw.MIRA(**ONLINE, history=(2, 2), **p), True, False, False, False),
    "history-3": Kind(lambda **p: tw.Perceptron(**ONLINE, history=(3, 3), **p), True, False, False, False),
    "kernel": Kind(
        lambda **p: tw.Perceptron(**ONLINE, kernel="poly", **p), True, False, False, False, beam=False
    ),
    "kernel-svm": Kind(
        lambda **p: tw.HMSVM(features="S1", max_epochs=2, kernel="rbf", **p),
        True, False, False, False, beam=False,
    ),
    "hmm": Kind(lambda **p: tw.HMM(rare=1, **p), False),
    "boosting": Kind(lambda **p: tw.Boosting(features="S1", rounds=20, **p), False),
    "memm": Kind(lambda **p: tw.MEMM(**FAST, **p), False, beam=False, local=True),
}  # fmt: skip
RULES = {name: case._replace(rule=functools.cache(case.rule)) for name, case in RULES.items()}
LIMITED = [name for name, kind in KINDS.items() if kind.limits]


@functools.cache
def fitted(name: str, own: bool = False) -> tw.Tagger:
    """A tagger of each kind, with no rule or with constraints and a dictionary of its own."""
    more: dict[str, Any] = {"constraints": OWN, "dictionary": 2, "dictionary_share": 0.4} if own else {}
    return KINDS[name].make(**more).fit(X, Y)  # type: ignore[no-any-return]


@functools.cache
def held_by(name: str, own: bool, words: tuple[str, ...], rule: Rule) -> Held:
    return Held(ways(name, own, words), rule)


@functools.cache
def ways(name: str, own: bool, words: tuple[str, ...]) -> dict[Path, float]:
    return lawful.ways(fitted(name, own).model_, words)


def check(name: str, own: bool, rules: list[Rule], once: bool, X: list[list[str]], **how: Any) -> None:
    """Every answer of a tagger on X is the one of the paths that the rules leave."""
    kind, tagger = KINDS[name], fitted(name, own)
    held = [Held(ways(name, own, tuple(words)), rule) for words, rule in zip(X, rules)]
    decoders: list[dict[str, Any]] = [{}, *([{"decoder": "beam", "beam": 700}] if kind.beam else [])]
    if once and name.startswith("kernel"):
        with pytest.raises(tw.ParameterError, match="searched by Viterbi"):
            tagger.predict(X, **how)
        return
    for decoder in decoders:
        for h, path in zip(held, tagger.predict(X, **decoder, **how)):
            h.check_best(path)
    if once and not kind.first:
        for ask in (tagger.predict_kbest, tagger.predict_marginals, tagger.predict_confidence):
            with pytest.raises(tw.ParameterError, match=r"occur once|no probabilities"):
                ask(X, **how)
        return
    for k in (1, 3, 700):
        for h, found in zip(held, tagger.predict_kbest(X, k, **how)):
            h.check_list(found, k)
    if kind.probability:
        check_probabilities(tagger, held, once, kind.chunks, X, **how)
        return
    for ask in (
        tagger.predict_marginals,
        tagger.predict_confidence,
        functools.partial(tagger.predict, decoder="pointwise"),
        functools.partial(tagger.predict_kbest, probability=True),
    ):
        with pytest.raises(tw.ParameterError, match="no probabilities"):
            ask(X, **how)


def check_probabilities(
    tagger: tw.Tagger, held: list[Held], once: bool, chunks: bool, X: list[list[str]], **how: Any
) -> None:
    labels = tagger.classes_
    tables = [h.marginals(labels, len(words)) for h, words in zip(held, X)]
    for found, table in zip(tagger.predict_marginals(X, **how), tables):
        np.testing.assert_allclose(found, table, atol=2e-5)
        assert not found[table == 0.0].any()
    for h, ranked in zip(held, tagger.predict_kbest(X, 3, probability=True, **how)):
        h.check_list(ranked, 3, chance=True)
    if once:
        with pytest.raises(tw.ParameterError, match="occur once"):
            tagger.predict(X, decoder="pointwise", **how)
    else:
        for path, table in zip(tagger.predict(X, decoder="pointwise", **how), tables):
            for y, row in zip(path, table):
                assert row[labels.index(y)] >= row.max() - 2e-5
    kinds = {label[2:] for label in labels if label != "O"}
    wanted = [
        [(kind, a, b) for kind in kinds for a in range(len(words)) for b in range(a + 1, len(words) + 1)]
        for words in X
    ]
    for c, h, table in zip(tagger.predict_confidence(X, **how), held, tables):
        h.check_best(c.labels)
        assert c.probability == pytest.approx(h.p[tuple(c.labels)], abs=2e-5)
        at = [labels.index(y) for y in c.labels]
        np.testing.assert_allclose(c.tokens, table[range(len(at)), at], atol=2e-5)
        logs = np.log(np.where(table > 0, table, 1.0))
        np.testing.assert_allclose(c.entropy, -(table * logs).sum(axis=1), atol=1e-4)
        if chunks and not tagger.model_.scorer.local:
            assert [tuple(span) for span, _ in c.chunks] == lawful.pieces(tuple(c.labels))
            for span, p in c.chunks:
                assert p == pytest.approx(h.chunks[tuple(span)], abs=2e-5)
        else:
            assert c.chunks == [] or tagger.model_.scorer.local
    if not chunks:
        with pytest.raises(tw.ParameterError, match="first order"):
            tagger.chunk_probability(X, wanted, **how)
    elif not tagger.model_.scorer.local:
        found = tagger.chunk_probability(X, wanted, **how)
        for h, spans, ps in zip(held, wanted, found):
            np.testing.assert_allclose(ps, [h.chunks[tuple(span)] for span in spans], atol=2e-5)
    if "allowed" not in how:  # a sequence's probability takes its labels in place of it
        for words, h in zip(X[2:], held[2:]):
            paths = lawful.every(labels, len(words))[::3]
            p = tagger.sequence_probability([words] * len(paths), paths, **how)
            np.testing.assert_allclose(p, [h.p.get(path, 0.0) for path in paths], atol=2e-5)
        words, h = X[2], held[2]
        part = [{"O", "B-P"}, None]
        p = tagger.sequence_probability([words], [part], **how)
        assert p[0] == pytest.approx(h.chance(lawful.within(part)), abs=2e-5)


ALLOWED: list[Any] = [
    [{"O", "I-Q"}, None, ["I-P", "O", "B-Q"], None],
    None,
    [None, "B-P"],
    [("O", "B-P", "I-Q")],
]


def allows(allowed: list[Any]) -> list[Rule]:
    """The same said aloud."""
    return [
        lawful.anything if sets is None else lawful.within([{s} if isinstance(s, str) else s for s in sets])
        for sets in allowed
    ]


#: A step of a local model is normalised over the labels that may follow: its transitions have a test of their own.
LOCAL = ("none", "start", "end", "once")
CALLS = [(name, rule) for name in KINDS for rule in (LOCAL if KINDS[name].local else RULES)]


@pytest.mark.parametrize(("name", "rule"), CALLS)
def test_rules_given_with_the_call(name: str, rule: str) -> None:
    """`constraints=` of a call, with and without `allowed=`: whatever a model answers is of the lawful paths."""
    case = RULES[rule]
    check(name, False, [case.rule] * len(TEST), case.once, TEST, constraints=case.given)
    held = [lawful.both(case.rule, other) for other in allows(ALLOWED)]
    able = [i for i, h in enumerate(held) if any(map(h, lawful.every(fitted(name).classes_, len(TEST[i]))))]
    assert 2 in able
    assert len(able) >= 3
    rules, words, allowed = ([part[i] for i in able] for part in (held, TEST, ALLOWED))
    check(name, False, rules, case.once, words, constraints=case.given, allowed=allowed)


# -- rules of the model's own ---------------------------------------------------------------------------------

# big is B-Q throughout: it may not begin a sentence, so the dictionary leaves the last two no path.
WORDS = [["new", "lee", "bay", "new"], ["ann", "new", "bay"], ["new", "ann"], ["big"], ["big", "the"]]
OTHERS: list[Any] = [
    [None, {"O", "I-P"}, None, {"B-P", "O"}],
    None,
    [None, "B-P"],
    ["O"],
    [{"O", "B-P"}, None],
]
SEEN = lawful.counted(X, Y, 2, 0.4)


def speaks(words: list[str], allowed: Any = None, seen: dict[str, set[str]] = SEEN) -> Rule:
    """Known words have one of their labels, where nothing else is said of a token."""
    sets = allowed or [None] * len(words)
    return lawful.within([seen.get(word) if names is None else None for word, names in zip(words, sets)])


def left(
    rule: Rule, words: list[str], labels: tuple[str, ...], allowed: Any = None, seen: Any = SEEN
) -> Rule:
    """The rule, what is allowed, and the dictionary; without the dictionary where that leaves no path."""
    other = lawful.both(rule, *allows([allowed]))
    whole = lawful.both(other, speaks(words, allowed, seen))
    return whole if any(map(whole, lawful.every(labels, len(words)))) else other


def test_words_of_the_laws_below() -> None:
    """They ask what they are meant to ask."""
    assert SEEN["bay"] == {"I-Q", "O"}
    assert SEEN["lee"] == {"I-P"}  # three of four tokens; the fourth is too rare
    assert "new" not in SEEN
    labels = fitted("crf").classes_
    for words, possible in zip(WORDS, [True, True, True, False, False]):
        rule = lawful.both(OWN_RULE, speaks(words))
        assert any(map(rule, lawful.every(labels, len(words)))) == possible


@pytest.mark.parametrize("name", LIMITED)
def test_rules_of_the_models_own(name: str) -> None:
    """Constraints and dictionary of training hold in every answer; `constraints=` of a call stands in their place,
    False switches them off, and the dictionary stays; what is allowed at a token goes before the dictionary there."""
    labels, pair = fitted(name).classes_, RULES["pair"]
    check(name, True, [left(OWN_RULE, w, labels) for w in WORDS], False, WORDS)
    check(name, True, [left(lawful.anything, w, labels) for w in WORDS], False, WORDS, constraints=False)
    check(name, True, [left(pair.rule, w, labels) for w in WORDS], False, WORDS, constraints=pair.given)
    held = [left(OWN_RULE, words, labels, allowed) for words, allowed in zip(WORDS, OTHERS)]
    check(name, True, held, False, WORDS, allowed=OTHERS)


@functools.cache
def once_fitted(name: str) -> tw.Tagger:
    more = {"constraints": {"scheme": "auto", "once": ["P"]}, "dictionary": 2}
    return KINDS[name].make(**more).fit(X, Y)  # type: ignore[no-any-return]


@pytest.mark.parametrize("name", ["crf", "perceptron", "mira", "pa", "arow", "history-2"])
def test_the_dictionary_gives_way_to_labels_that_occur_once(name: str) -> None:
    """bo is B-P throughout: a sentence with two of them goes without the dictionary, one with one does not."""
    tagger, words = once_fitted(name), [["bo", "the", "bo"], ["bo", "new", "the"], ["ann", "ann"]]
    seen = lawful.counted(X, Y, 2)
    assert seen["bo"] == {"B-P"}
    rule = lawful.both(BIO, lawful.single("P"))
    for x, path in zip(words, tagger.predict(words)):
        Held(lawful.ways(tagger.model_, x), left(rule, x, tagger.classes_, None, seen)).check_best(path)
        (alone,) = tagger.predict([x])
        assert alone == path
    assert tagger.predict([["bo", "new", "the"]])[0][0] == "B-P"
    assert [len(y) for y in tagger.predict([[], ["bo", "bo"]])] == [0, 2]


def test_what_does_not_go_together_is_refused() -> None:
    """Labels that occur once with documents, in decoding and training; a dictionary of tokens without words."""
    corpus = tw.Corpus([tw.Sentence({"word": x, "label": y}, "label", doc="0") for x, y in zip(X, Y)])
    rule: dict[str, Any] = {"constraints": {"once": ["P"]}}
    tagger = tw.MIRA(features="S1", epochs=1, document=True).fit(corpus)
    with pytest.raises(tw.ParameterError, match="occur once do not go with document features"):
        tagger.predict(corpus, **rule)
    with pytest.raises(ValueError, match="occur once do not go with document features"):
        tw.MIRA(features="S1", epochs=1, document=True, **rule).fit(corpus)
    given = [[["w=ann"], ["w=lee"]]]
    with pytest.raises(
        tw.CorpusError, match="sentence 0 holds attributes, but a tag dictionary needs its words"
    ):
        tw.CRF(dictionary=1).fit(given, [["B-P", "I-P"]])


def test_learners_without_limits_say_so() -> None:
    """What takes no constraints of its own names the parameter."""
    for make in (tw.HMM, tw.MEMM, tw.Boosting):
        for limit in ({"constraints": "bio"}, {"dictionary": 2}, {"dictionary_share": 0.5}):
            with pytest.raises(tw.ParameterError, match=next(iter(limit))):
                make(**limit)


# -- local models, narrow beams, hypothesised history, documents ---------------------------------------------


def first_order(tagger: tw.Tagger, words: list[str]) -> Any:
    """Node, edge, start and end scores of a sentence, from the weights of the model's features."""
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
def test_the_list_of_all_paths_has_the_scores_of_the_weights(name: str) -> None:
    """What the other laws are measured against."""
    tagger = fitted(name)
    index = {label: i for i, label in enumerate(tagger.classes_)}
    for words in TEST:
        s = first_order(tagger, words)
        for path, h in ways(name, False, tuple(words)).items():
            local = twin.local_score(s)
            assert h == pytest.approx(twin.total(local, tuple(index[y] for y in path)), abs=1e-4)


def step_rule(tagger: tw.Tagger, local: twin.Local, rule: Any, T: int) -> twin.Local:
    """A local score that is minus infinity where `rule(t, T, before, label)` says no."""
    labels = tagger.classes_

    def held(t: int, path: tuple[int, ...], y: int) -> float:
        before = labels[path[-1]] if path else None
        return local(t, path, y) if rule(t, T, before, labels[y]) else -np.inf

    return held


def own_step(t: int, T: int, before: str | None, label: str) -> bool:
    """`OWN_RULE` read from left to right."""
    if label[0] == "I" and (before is None or before == "O" or before[2:] != label[2:]):
        return False
    if before == "B-Q" and label != "I-Q":
        return False
    if before is None and label == "B-Q":
        return False
    return t < T - 1 or label not in ("I-P", "B-Q")


@pytest.mark.parametrize("name", ["crf", "perceptron", "mira"])
@pytest.mark.parametrize("width", [1, 2, 4, None])
def test_a_narrow_beam_keeps_lawful_prefixes(name: str, width: int | None) -> None:
    """At each token the best prefixes that break no rule so far; a width that is not given is 8."""
    tagger = fitted(name)
    X = [["bay", "the", "ann", "lee"], ["ann", "lee", "the"], ["the", "big", "bay", "bay"], ["bo"]]
    found = tagger.predict(X, decoder="beam", beam=width, constraints=OWN)
    for words, path in zip(X, found):
        local = step_rule(tagger, twin.local_score(first_order(tagger, words)), own_step, len(words))
        kept = twin.beam(local, len(words), len(tagger.classes_), width or 8)
        ids = tuple(tagger.classes_.index(y) for y in path)
        assert twin.total(local, ids) == pytest.approx(kept[0][0], abs=1e-5)


def test_a_local_model_is_normalised_over_what_may_follow() -> None:
    """Steps of an MEMM under forbidden transitions: each is a choice among the labels that may follow."""
    tagger = fitted("memm")
    labels = tagger.classes_
    for words in TEST:
        s = first_order(tagger, words)
        T, ways = len(words), {}
        for path in lawful.every(labels, T):
            if not BIO(path):
                continue
            ids, h = [labels.index(y) for y in path], 0.0
            for t, y in enumerate(ids):
                row = s.node[t] + (s.start if t == 0 else s.edge[ids[t - 1]]) + (s.end if t == T - 1 else 0.0)
                ok = [t == 0 or z[0] != "I" or path[t - 1][1:] == z[1:] for z in labels]
                h += row[y] - np.log(np.exp(row[ok]).sum())
            ways[path] = h
        held = Held(ways, lawful.anything)
        held.check_best(tagger.predict([words], constraints="bio")[0])
        held.check_list(tagger.predict_kbest([words], 700, constraints="bio")[0], 700)
        held.check_list(tagger.predict_kbest([words], 5, probability=True, constraints="bio")[0], 5, True)
        table = held.marginals(labels, T)
        np.testing.assert_allclose(tagger.predict_marginals([words], constraints="bio")[0], table, atol=2e-5)


def far_local(tagger: tw.Tagger, words: list[str], earlier: list[tuple[str, int]]) -> twin.Local:
    """The local score of a model with history (1, 2) and documents, from its weights."""
    model, L = tagger.model_, len(tagger.classes_)
    assert model.history is not None
    tables = model.history.weights.astype(float).reshape(-1, L, L)
    repeated = tables[1] if model.history.document else None
    return twin.local_score(first_order(tagger, words), {2: tables[0]}, repeated, words, earlier)


@pytest.mark.parametrize("document", [False, True])
@pytest.mark.parametrize("own", [False, True])
@pytest.mark.parametrize("way", ["whole", "memory"])
def test_hypothesised_history_and_documents(document: bool, own: bool, way: str) -> None:
    """A cell follows its best lawful prefix; later sentences of a document see what the rules made of earlier ones."""
    corpus = tw.Corpus(
        [
            tw.Sentence({"word": x, "label": y}, "label", doc=str(i) if i % 4 == 0 else None)
            for i, (x, y) in enumerate(zip(X, Y))
        ]
    )
    more: dict[str, Any] = {"constraints": OWN, "dictionary": 2} if own else {}
    tagger = tw.MIRA(features="S1", epochs=2, history=(1, 2), document=document, **more).fit(corpus)
    seen = lawful.counted(X, Y, 2) if own else {}
    labels = tagger.classes_
    words = [["ann", "new", "lee", "the"], ["new", "lee", "ann", "new"], ["the", "new", "lee", "new"]]
    test = tw.Corpus([tw.Sentence({"word": x}, doc="0" if i == 0 else None) for i, x in enumerate(words)])
    allowed: list[Any] = [None, [{"O", "B-P"}, None, None, {"O", "I-Q"}], None]
    how: dict[str, Any] = {} if own else {"constraints": OWN}
    if way == "whole":
        found = tagger.predict(test, allowed=allowed, **how)
    else:
        memory, found = Memory(), []
        for i in range(len(test)):
            found += tagger.predict(test[i : i + 1], allowed=allowed[i : i + 1], memory=memory, **how)
    earlier: list[tuple[str, int]] = []
    for x, sets, path in zip(words, allowed, found):
        assert left(OWN_RULE, x, labels, sets, seen)(tuple(path))
        at = [seen.get(w) for w in x] if sets is None else [s or seen.get(w) for s, w in zip(sets, x)]

        def lawful_step(t: int, T: int, before: str | None, label: str, at: Any = at) -> bool:
            return (at[t] is None or label in at[t]) and own_step(t, T, before, label)

        local = step_rule(tagger, far_local(tagger, x, earlier), lawful_step, len(x))
        best = twin.decode(local, len(x), len(labels), 1)[0]
        ids = tuple(labels.index(y) for y in path)
        assert twin.total(local, ids) == pytest.approx(best[0], abs=1e-5)
        earlier += list(zip(x, ids)) if document else []


# -- what cannot be had --------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", KINDS)
def test_rules_that_leave_no_path_name_the_sentence(name: str) -> None:
    """allowed= against constraints, in every way of predicting: an error, and never a label outside of them."""
    kind, tagger = KINDS[name], fitted(name)
    words = [["ann", "the"], ["ann", "the"], ["bo"]]
    how: dict[str, Any] = {"allowed": [None, ["O", "I-P"], None], "constraints": "bio"}
    asks: list[Any] = [tagger.predict, tagger.predict_kbest]
    if kind.beam:
        asks.append(functools.partial(tagger.predict, decoder="beam"))
    if kind.probability:
        asks += [
            tagger.predict_marginals,
            tagger.predict_confidence,
            functools.partial(tagger.predict, decoder="pointwise"),
            functools.partial(tagger.predict_kbest, probability=True),
        ]
    for ask in asks:
        with pytest.raises(
            ValueError, match=r"sentence 1: no label sequence is allowed.*relax the constraints"
        ):
            ask(words, **how)
    if kind.first:
        with pytest.raises(ValueError, match="sentence 1: no label sequence is allowed"):
            tagger.predict(words, allowed=how["allowed"], constraints={"scheme": "bio", "once": ["P"]})


@pytest.mark.parametrize("scheme", schemes.SCHEMES)
def test_rules_of_a_scheme_are_its_grammar(scheme: str) -> None:
    """Start, pairs and end of a scheme take a sequence exactly where its grammar does."""
    labels = ["O", *(f"{tag}-{kind}" for kind in ("P", "Q") for tag in scheme.rstrip("12") if tag != "O")]
    for given in (scheme, scheme.lower(), {"scheme": scheme}):
        rules, rule = Constraints.parse(given).rules(labels), lawful.of_scheme(scheme)
        for length in (1, 2, 3):
            for path in lawful.every(labels, length):
                ids = [labels.index(y) for y in path]
                taken = (
                    rules.start[ids[0]]
                    and rules.end[ids[-1]]
                    and all(rules.pairs[a, b] for a, b in pairwise(ids))
                )
                assert bool(taken) == rule(path), path

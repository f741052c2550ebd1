"""Rules hold in every way of predicting, for every kind of model: each answer against all lawful paths, one by one."""

from __future__ import annotations

import functools
from dataclasses import replace
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
TEST = [["bay", "ann", "lee", "big"], ["lee", "bo", "lee"], ["new", "ann"], ["bay"], ["bo", "the", "bo"]]


class Case(NamedTuple):
    """What a user declares, the same said aloud, and whether it is about labels that occur once."""

    given: Any
    rule: Rule
    once: bool = False


BIO = lawful.of_scheme("IOB2")
OWN: dict[str, Any] = {
    "scheme": "bio",
    "forbidden": [(None, "B-Q"), ("I-P", None)],
    "required": {"B-Q": ["I-Q"]},
}
OWN_RULE = lawful.both(
    BIO, lawful.never(None, "B-Q"), lawful.never("I-P", None), lawful.followed("B-Q", "I-Q")
)
RULES = {
    "none": Case(False, lawful.anything),
    "scheme": Case("bio", BIO),
    "auto": Case("auto", BIO),
    "pair": Case({"forbidden": [("O", "O"), ("I-P", "B-P")]}, lawful.both(lawful.never("O", "O"), lawful.never("I-P", "B-P"))),
    "start": Case({"forbidden": [(None, "B-P"), (None, "I-Q")]}, lawful.both(lawful.never(None, "B-P"), lawful.never(None, "I-Q"))),
    "end": Case({"forbidden": [("O", None)]}, lawful.never("O", None)),
    "required": Case({"required": {"B-P": ["I-P", None], "O": "O"}}, lawful.both(lawful.followed("B-P", "I-P", None), lawful.followed("O", "O"))),
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
    "crf-sgd": Kind(lambda **p: tw.CRF(**FAST, optimizer="sgd", **p)),
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
LIMITED = [name for name, kind in KINDS.items() if kind.limits]


@functools.cache
def fitted(name: str, own: bool = False) -> tw.Tagger:
    """A tagger of each kind, with no rule or with constraints and a dictionary of its own."""
    more: dict[str, Any] = {"constraints": OWN, "dictionary": 2, "dictionary_share": 0.4} if own else {}
    return KINDS[name].make(**more).fit(X, Y)  # type: ignore[no-any-return]


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
                assert p == pytest.approx(h.chunk(*span), abs=2e-5)
        else:
            assert c.chunks == [] or tagger.model_.scorer.local
    if not chunks:
        with pytest.raises(tw.ParameterError, match="first order"):
            tagger.chunk_probability(X, wanted, **how)
    elif not tagger.model_.scorer.local:
        found = tagger.chunk_probability(X, wanted, **how)
        for h, spans, ps in zip(held, wanted, found):
            np.testing.assert_allclose(ps, [h.chunk(*span) for span in spans], atol=2e-5)
    if "allowed" not in how:  # a sequence's probability takes its labels in place of it
        words, h = X[2], held[2]
        paths = lawful.every(labels, len(words))
        p = tagger.sequence_probability([words] * len(paths), paths, **how)
        np.testing.assert_allclose(p, [h.p.get(path, 0.0) for path in paths], atol=2e-5)
        part = [{"O", "B-P"}, None]
        p = tagger.sequence_probability([words], [part], **how)
        assert p[0] == pytest.approx(h.chance(lawful.within(part)), abs=2e-5)


ALLOWED: list[Any] = [
    [{"O", "I-Q"}, None, ["I-P", "O", "B-Q"], None],
    None,
    [None, "B-P"],
    [("O", "B-P", "I-Q")],
    None,
]


def allows(allowed: list[Any]) -> list[Rule]:
    """The same said aloud."""
    return [
        lawful.anything if sets is None else lawful.within([{s} if isinstance(s, str) else s for s in sets])
        for sets in allowed
    ]


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("name", KINDS)
def test_rules_given_with_the_call(name: str, rule: str) -> None:
    """`constraints=` of a call, with and without `allowed=`: whatever a model answers is of the lawful paths."""
    case = RULES[rule]
    if KINDS[name].local and rule not in ("none", "start", "end", "once"):
        pytest.skip("normalised step by step: see the test of local models")
    check(name, False, [case.rule] * len(TEST), case.once, TEST, constraints=case.given)
    held = [lawful.both(case.rule, other) for other in allows(ALLOWED)]
    able = [i for i, h in enumerate(held) if any(map(h, lawful.every(fitted(name).classes_, len(TEST[i]))))]
    assert 2 in able
    assert len(able) >= 4
    rules, words, allowed = ([part[i] for i in able] for part in (held, TEST, ALLOWED))
    check(name, False, rules, case.once, words, constraints=case.given, allowed=allowed)

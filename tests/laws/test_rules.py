"""Tests of rules in all prediction methods, for every kind of model, by enumeration of the valid paths."""

from __future__ import annotations

import functools
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import pytest

import tagwise as tw
from tagwise.corpus import schemes
from tagwise.scores.constraints import Constraints

from . import valid_paths
from .constrained import (
    BIO,
    FAST,
    KINDS,
    OWN,
    OWN_RULE,
    SEEN,
    TEST,
    X,
    Y,
    allows,
    fitted,
    follows_dictionary,
    left,
    path_scores,
)
from .valid_paths import Held, Rule


class Case(NamedTuple):
    """A declared constraint, its rule as a function, and whether it is about labels that occur once."""

    given: Any
    rule: Rule
    once: bool = False


RULES = {
    "none": Case(False, valid_paths.anything),
    "scheme": Case("bio", BIO),
    "auto": Case("auto", BIO),
    "pair": Case({"forbidden": [("O", "O"), ("I-P", "B-P")]}, valid_paths.none(("O", "O"), ("I-P", "B-P"))),
    "start": Case({"forbidden": [(None, "B-P"), (None, "I-Q")]}, valid_paths.none((None, "B-P"), (None, "I-Q"))),
    "end": Case({"forbidden": [("O", None)]}, valid_paths.never("O", None)),
    "required": Case(
        {"required": {"B-P": ["I-P", None], "O": "O"}},
        valid_paths.both(valid_paths.followed("B-P", "I-P", None), valid_paths.followed("O", "O")),
    ),
    "required-too": Case(  # required steps do not allow forbidden ones
        {
            "forbidden": [("B-P", "I-P"), ("I-Q", None)],
            "required": {"B-P": ["B-Q", "I-P", None], "I-Q": ["B-P", None]},
        },
        valid_paths.both(valid_paths.followed("B-P", "B-Q", None), valid_paths.followed("I-Q", "B-P")),
    ),
    "all": Case(OWN, OWN_RULE),
    "once": Case({"once": ["P"]}, valid_paths.single("P"), True),
    "once-all": Case({**OWN, "once": ["P", "Q"]}, valid_paths.both(OWN_RULE, valid_paths.single("P", "Q")), True),
}  # fmt: skip


RULES = {name: case._replace(rule=functools.cache(case.rule)) for name, case in RULES.items()}
LIMITED = [name for name, kind in KINDS.items() if kind.limits]


@functools.cache
def held_by(name: str, own: bool, words: tuple[str, ...], rule: Rule) -> Held:
    return Held(path_scores(name, own, words), rule)


def check(name: str, own: bool, rules: list[Rule], once: bool, X: list[list[str]], **how: Any) -> None:
    """Every answer of a tagger on X is that of the valid paths."""
    kind, tagger = KINDS[name], fitted(name, own)
    held = [Held(path_scores(name, own, tuple(words)), rule) for words, rule in zip(X, rules)]
    decoders: list[dict[str, Any]] = [{}, *([{"decoder": "beam", "beam": 700}] if kind.beam else [])]
    if once and name.startswith("kernel"):
        with pytest.raises(tw.exceptions.ParameterError, match="a kernel model supports only"):
            tagger.predict(X, **how)
        return
    for decoder in decoders:
        for h, path in zip(held, tagger.predict(X, **decoder, **how)):
            h.check_best(path)
    if once and not kind.first:
        for method in (tagger.predict_kbest, tagger.predict_marginals, tagger.predict_confidence):
            with pytest.raises(
                tw.exceptions.ParameterError, match=r"the constraint `once`|not probabilities"
            ):
                method(X, **how)
        return
    for k in (3, 700):
        for h, found in zip(held, tagger.predict_kbest(X, k, **how)):
            h.check_list(found, k)
    if kind.probability:
        check_probabilities(tagger, held, once, kind.chunks, X, **how)
        return
    for method in (
        tagger.predict_marginals,
        tagger.predict_confidence,
        functools.partial(tagger.predict_kbest, probability=True),
    ):
        with pytest.raises(tw.exceptions.ParameterError, match="not probabilities"):
            method(X, **how)
    if kind.first:
        check_pointwise(tagger, held, once, X, **how)
        return
    with pytest.raises(tw.exceptions.ParameterError, match="no probabilities"):
        tagger.predict(X, decoder="pointwise", **how)


def check_pointwise(tagger: tw.Tagger, held: list[Held], once: bool, X: list[list[str]], **how: Any) -> None:
    """The decoder takes the label of the largest exp(score) / Z at each token, whether or not it is a probability."""
    labels = tagger.classes_
    if once:
        with pytest.raises(tw.exceptions.ParameterError, match="cannot satisfy the constraint `once`"):
            tagger.predict(X, decoder="pointwise", **how)
        return
    for h, words, path in zip(held, X, tagger.predict(X, decoder="pointwise", **how)):
        for y, row in zip(path, h.marginals(labels, len(words))):
            assert row[labels.index(y)] >= row.max() - 2e-5


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
    check_pointwise(tagger, held, once, X, **how)
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
        if chunks:
            assert [tuple(span) for span, _ in c.chunks] == valid_paths.pieces(tuple(c.labels))
            for span, p in c.chunks:
                assert p == pytest.approx(h.chunks[tuple(span)], abs=2e-5)
        else:
            assert c.chunks == []
    if not chunks:
        with pytest.raises(tw.exceptions.ParameterError, match="first order"):
            tagger.chunk_probability(X, wanted, **how)
    else:
        found = tagger.chunk_probability(X, wanted, **how)
        for h, spans, ps in zip(held, wanted, found):
            np.testing.assert_allclose(ps, [h.chunks[tuple(span)] for span in spans], atol=2e-5)
    if "allowed" not in how:  # the labels of a sequence replace `allowed`
        for words, h in zip(X[2:], held[2:]):
            paths = valid_paths.every(labels, len(words))[::3]
            p = tagger.sequence_probability([words] * len(paths), paths, **how)
            np.testing.assert_allclose(p, [h.p.get(path, 0.0) for path in paths], atol=2e-5)
        words, h = X[2], held[2]
        part = [{"O", "B-P"}, None]
        p = tagger.sequence_probability([words], [part], **how)
        assert p[0] == pytest.approx(h.chance(valid_paths.within(part)), abs=2e-5)


ALLOWED: list[Any] = [
    [{"O", "I-Q"}, None, ["I-P", "O", "B-Q"], None],
    None,
    [None, "B-P"],
    [("O", "B-P", "I-Q")],
]


#: A step of a local model is normalised over the labels that may follow. Its transitions have a test of their own.
LOCAL = ("none", "start", "end", "once")
CALLS = [(name, rule) for name in KINDS for rule in (LOCAL if KINDS[name].local else RULES)]


@pytest.mark.parametrize(("name", "rule"), CALLS)
def test_constraints_of_a_call_restrict_every_result(name: str, rule: str) -> None:
    """Every answer with `constraints=`, with and without `allowed=`, is that of the valid paths."""
    case = RULES[rule]
    check(name, False, [case.rule] * len(TEST), case.once, TEST, constraints=case.given)
    held = [valid_paths.both(case.rule, other) for other in allows(ALLOWED)]
    able = [
        i for i, h in enumerate(held) if any(map(h, valid_paths.every(fitted(name).classes_, len(TEST[i]))))
    ]
    assert 2 in able
    assert len(able) >= 3
    rules, words, allowed = ([part[i] for i in able] for part in (held, TEST, ALLOWED))
    check(name, False, rules, case.once, words, constraints=case.given, allowed=allowed)


@pytest.mark.parametrize("scheme", ["IOB1", "IOE2", "IOBES"])
def test_auto_infers_the_scheme(scheme: str) -> None:
    """The scheme is that of the corpus in training, and that of the model's transitions in a call."""
    spans = [[("P", 0, 2), ("P", 2, 3)], [("P", 1, 3), ("Q", 3, 4)], [("Q", 0, 1)]]
    gold = [schemes.from_spans(found, 4, scheme) for found in spans]
    words = [["ann", "lee", "bo", "the"], ["the", "ann", "lee", "bay"], ["bay", "the", "the", "the"]]
    rule, mixed = valid_paths.of_scheme(scheme), [["lee", "ann", "bay", "bo"], ["bo"], ["the", "lee"]]
    free = tw.CRF(**FAST).fit(words, gold)
    own = tw.CRF(**FAST, constraints="auto").fit(words, gold)
    for tagger, how in ((free, {"constraints": "auto"}), (own, {})):
        for x, found in zip(mixed, tagger.predict_kbest(mixed, 10_000, **how)):
            Held(valid_paths.path_scores(tagger.model_, x), rule).check_list(found, 10_000)


# -- rules of the model --------------------------------------------------------------------------------------

# big is always B-Q, which may not begin a sentence, so the dictionary leaves two sentences no path. The last
# sentence has no path if O may not follow O.
WORDS = [
    ["new", "lee", "bay", "new"],
    ["ann", "new", "bay"],
    ["new", "ann"],
    ["big"],
    ["big", "the"],
    ["the", "the"],
]
OTHERS: list[Any] = [
    [None, {"O", "I-P"}, None, {"B-P", "O"}],
    None,
    [None, "B-P"],
    ["O"],
    [{"O", "B-P"}, None],
    None,
]


def test_words_have_the_properties_used_below() -> None:
    """The words have the properties that the tests below need."""
    assert SEEN["bay"] == {"I-Q", "O"}
    assert SEEN["lee"] == {"I-P"}  # three of four tokens, the fourth label is too rare
    assert "new" not in SEEN
    labels = fitted("crf").classes_
    for words, possible in zip(WORDS, [True, True, True, False, False, True]):
        rule = valid_paths.both(OWN_RULE, follows_dictionary(words))
        assert any(map(rule, valid_paths.every(labels, len(words)))) == possible


@pytest.mark.parametrize("name", LIMITED)
def test_constraints_and_dictionary_of_the_model(name: str) -> None:
    """Constraints and dictionary of training hold in every answer.

    `constraints=` of a call replaces the constraints, False switches them off, and the dictionary stays.
    `allowed` at a token overrides the dictionary there.
    """
    labels, pair = fitted(name).classes_, RULES["pair"]
    check(name, True, [left(OWN_RULE, w, labels) for w in WORDS], False, WORDS)
    check(name, True, [left(valid_paths.anything, w, labels) for w in WORDS], False, WORDS, constraints=False)
    check(name, True, [left(pair.rule, w, labels) for w in WORDS], False, WORDS, constraints=pair.given)
    held = [left(OWN_RULE, words, labels, allowed) for words, allowed in zip(WORDS, OTHERS)]
    check(name, True, held, False, WORDS, allowed=OTHERS)


@functools.cache
def once_fitted(name: str) -> tw.Tagger:
    more = {"constraints": {"scheme": "auto", "once": ["P"]}, "dictionary": 2}
    return KINDS[name].make(**more).fit(X, Y)  # type: ignore[no-any-return]


@pytest.mark.parametrize("name", ["crf", "perceptron", "mira", "pa", "arow", "history-2"])
def test_once_labels_override_the_dictionary(name: str) -> None:
    """bo is always B-P: the dictionary is dropped for a sentence with two of them, not for one with a single one."""
    tagger, words = once_fitted(name), [["bo", "the", "bo"], ["bo", "new", "the"], ["ann", "ann"]]
    seen = valid_paths.counted(X, Y, 2)
    assert seen["bo"] == {"B-P"}
    once = valid_paths.single("P")
    for how, rule in (({}, valid_paths.both(BIO, once)), ({"constraints": {"once": ["P"]}}, once)):
        for x, path in zip(words, tagger.predict(words, **how)):
            Held(
                valid_paths.path_scores(tagger.model_, x), left(rule, x, tagger.classes_, None, seen)
            ).check_best(path)
            (alone,) = tagger.predict([x], **how)
            assert alone == path
    assert tagger.predict([["bo", "new", "the"]])[0][0] == "B-P"
    assert [len(y) for y in tagger.predict([[], ["bo", "bo"]])] == [0, 2]


def test_unsupported_combinations_are_rejected() -> None:
    """Labels that occur once with documents, in decoding and training, and a dictionary without words, are errors."""
    corpus = tw.Corpus([tw.Sentence({"word": x, "label": y}, "label", doc="0") for x, y in zip(X, Y)])
    rule: dict[str, Any] = {"constraints": {"once": ["P"]}}
    tagger = tw.MIRA(features="S1", max_iter=1, lookback=tw.Lookback(document=True)).fit(corpus)
    with pytest.raises(tw.exceptions.ParameterError, match="`once` cannot be combined with document=True"):
        tagger.predict(corpus, **rule)
    with pytest.raises(ValueError, match="occur once do not go with document features"):
        tw.MIRA(features="S1", max_iter=1, lookback=tw.Lookback(document=True), **rule).fit(corpus)
    given = [[["w=ann"], ["w=lee"]]]
    with pytest.raises(
        tw.exceptions.CorpusError, match="sentence 0 contains attributes, but a tag dictionary needs words"
    ):
        tw.CRF(dictionary=1).fit(given, [["B-P", "I-P"]])


def test_learners_without_constraints_raise() -> None:
    """Learners without constraints name the parameter in the error."""
    for make in (tw.HMM, tw.MEMM, tw.Boosting):
        for limit in ({"constraints": "bio"}, {"dictionary": 2}, {"dictionary": tw.Dictionary(1, share=0.5)}):
            with pytest.raises(tw.exceptions.ParameterError, match=next(iter(limit))):
                make(**limit)


# -- contradictory rules -------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", KINDS)
def test_contradicting_constraints_name_the_sentence(name: str) -> None:
    """allowed= that contradicts constraints is an error in every prediction method, and no label violates the rules."""
    kind, tagger = KINDS[name], fitted(name)
    words = [["ann", "the"], ["ann", "the"], ["bo"]]
    how: dict[str, Any] = {"allowed": [None, ["O", "I-P"], None], "constraints": "bio"}
    methods: list[Any] = [tagger.predict, tagger.predict_kbest]
    if kind.beam:
        methods.append(functools.partial(tagger.predict, decoder="beam"))
    if kind.probability:
        methods += [
            tagger.predict_marginals,
            tagger.predict_confidence,
            functools.partial(tagger.predict, decoder="pointwise"),
            functools.partial(tagger.predict_kbest, probability=True),
        ]
    for method in methods:
        with pytest.raises(
            ValueError, match=r"sentence 1: no label sequence is allowed.*relax the constraints"
        ):
            method(words, **how)
    if kind.first:
        with pytest.raises(ValueError, match="sentence 1: no label sequence is allowed"):
            tagger.predict(words, allowed=how["allowed"], constraints={"scheme": "bio", "once": ["P"]})


@pytest.mark.parametrize("scheme", schemes.SCHEMES)
def test_scheme_constraints_equal_its_grammar(scheme: str) -> None:
    """Start, pairs and end of a scheme accept exactly the sequences of its grammar."""
    labels = ["O", *(f"{tag}-{kind}" for kind in ("P", "Q") for tag in scheme.rstrip("12") if tag != "O")]
    for given in (scheme, scheme.lower(), {"scheme": scheme}):
        rules, rule = Constraints.parse(given).rules(labels), valid_paths.of_scheme(scheme)
        for length in (1, 2, 3):
            for path in valid_paths.every(labels, length):
                ids = [labels.index(y) for y in path]
                taken = (
                    rules.start[ids[0]]
                    and rules.end[ids[-1]]
                    and all(rules.pairs[a, b] for a, b in pairwise(ids))
                )
                assert bool(taken) == rule(path), path

"""Arguments of a fitted tagger's methods: predictions, scores, explanations, files."""

from __future__ import annotations

import functools
import itertools
import math
from pathlib import Path as File
from typing import Any

import numpy as np
import pytest

import tagwise as tw
from tagwise.decoding.lookback import DocumentState
from tagwise.evaluation import Report, find_errors
from tagwise.learners.backends import BACKENDS, Backend

from ..parameters.common import P, X, Y
from ..parameters.online import corpus
from ..parameters.rows import NAMES, dense, exact, names, problem, tokens
from ..reference import chain, history, scores
from ..reference.chain import Scores
from ..reference.model import score_sentence
from .rows import fitted, row, short

# -- predictions, against the reference implementation ----------------------------------------------------

NEW = problem(21, [3, 2, 4, 1, 3, 4])
LABELS = NAMES[:3]


@functools.cache
def tagger_of(constrained: bool = False) -> tw.Tagger:
    """Return a briefly trained CRF whose scores the reference implementation can compute."""
    valid_paths = [(1, 2, 2, 0), (0, 1), (1, 2, 0), (0, 0, 1, 2, 2), (1,), (1, 2, 1, 2)]
    gold = [[NAMES[y] for y in path] for path in valid_paths]
    return tw.CRF(all_pairs=True, l2=0.05, max_iter=6, constraints="bio" if constrained else None).fit(
        tokens(P), gold
    )


def lattices(constrained: bool = False, bio: bool | None = None, only: Any = None) -> list[Scores]:
    """Return scores of the new sentences, with rules and allowed labels as minus infinity."""
    w, out = dense(tagger_of(constrained), P), []
    bio = constrained if bio is None else bio
    for i, x in enumerate(exact(NEW)):
        s = score_sentence(w, x, NEW.shape)
        allowed, forbidden = np.ones(s.node.shape, dtype=bool), np.zeros((3, 3), dtype=bool)
        if bio:
            forbidden[0, 2], allowed[0, 2] = True, False  # I-p after O, and at the beginning
        if only is not None:
            for t, labels in enumerate(only[i]):
                if labels is not None:
                    allowed[t] &= [name in labels for name in LABELS]
        out.append(scores(s.node, s.edge, s.start, s.end, allowed, forbidden))
    return out


#: Allowed labels of the first and last token of each new sentence.
ONLY: list[list[Any]] = [
    [["O", "B-p"]] + [None] * (len(x) - 2) + ([["I-p", "B-p"]] if len(x) > 1 else []) for x in NEW.X
]


@functools.cache
def settings() -> list[tuple[dict[str, Any], bool, list[Scores]]]:
    """Return arguments of predictions, whether the model has its own rules, and the expected lattices."""
    return [
        ({}, False, lattices()),
        ({"allowed": ONLY}, False, lattices(only=ONLY)),
        ({"constraints": "bio"}, False, lattices(bio=True)),
        ({}, True, lattices(True)),
        ({"constraints": False}, True, lattices(True, bio=False)),
        ({"constraints": False, "allowed": ONLY}, True, lattices(True, bio=False, only=ONLY)),
        ({"allowed": ONLY}, True, lattices(True, only=ONLY)),
    ]


def named(path: Any) -> list[str]:
    return [NAMES[y] for y in path]


@row("predict", "X", "allowed", "constraints")
@row("predict_kbest", "X", "k", "allowed", "constraints", "probability")
@row("predict_marginals", "X", "allowed", "constraints")
@row("predict_confidence", "X", "allowed", "constraints")
def under_rules(learner: str, _: File) -> None:
    """Viterbi, k-best, marginals and confidence match the reference implementation under the given rules."""
    answers = []
    for arguments, constrained, wanted in settings():
        tagger, new = tagger_of(constrained), tokens(NEW)
        best = tagger.predict(new, **arguments)
        answers.append(best)
        assert best == [named(chain.viterbi(s)) for s in wanted]
        order = [tagger.classes_.index(name) for name in LABELS]
        for p, s in zip(tagger.predict_marginals(new, **arguments), wanted):
            np.testing.assert_allclose(p[:, order], chain.marginals(s)[0], atol=1e-4)
        for k in (1, 4):
            for ranked, sure, s in zip(
                tagger.predict_kbest(new, k, **arguments),
                tagger.predict_kbest(new, k, probability=True, **arguments),
                wanted,
            ):
                ranked_reference = chain.kbest(s, k)
                assert (
                    [path for path, _ in ranked]
                    == [path for path, _ in sure]
                    == [named(y) for _, y in ranked_reference]
                )
                assert [score for _, score in ranked] == pytest.approx(
                    [h for h, _ in ranked_reference], abs=1e-4
                )
                log_z = chain.log_partition(s)
                assert [p for _, p in sure] == pytest.approx(
                    [math.exp(h - log_z) for h, _ in ranked_reference], abs=1e-4
                )
        for found, s in zip(tagger.predict_confidence(new, **arguments), wanted):
            y, p = chain.viterbi(s), chain.marginals(s)[0]
            assert found.labels == named(y)
            assert found.probability == pytest.approx(
                math.exp(chain.score(s, y) - chain.log_partition(s)), abs=1e-4
            )
            np.testing.assert_allclose(found.tokens, p[np.arange(len(y)), list(y)], atol=1e-4)
            safe = np.where(p > 0, p, 1.0)
            np.testing.assert_allclose(found.entropy, -(p * np.log(safe)).sum(axis=1), atol=1e-3)
    assert len({str(answer) for answer in answers}) >= 4  # the rules make a difference here
    assert len(tagger_of().predict_kbest(tokens(NEW))[0]) == 5


@row("predict", "decoder", "beam")
def decoders(learner: str, _: File) -> None:
    """Decoders give the best path, the most probable label of each token, or the best path of a beam of that width."""
    tagger, wanted, new = tagger_of(), lattices(), tokens(NEW)
    found = {name: tagger.predict(new, decoder=name) for name in ("viterbi", "pointwise")}
    assert found["viterbi"] == tagger.predict(new) == [named(chain.viterbi(s)) for s in wanted]
    assert found["pointwise"] == [named(chain.pointwise(s)) for s in wanted]
    assert found["pointwise"] != found["viterbi"]
    answers = set()
    for width in (1, 2, 3, 9):
        beams = tagger.predict(new, decoder="beam", beam=width)
        for guess, s in zip(beams, wanted):
            best = history.beam(history.local_score(s), len(s.node), 3, width)[0][1]
            assert guess == named(best)
        answers.add(str(beams))
    assert len(answers) > 1
    with pytest.raises(tw.exceptions.ParameterError, match="decoder"):
        tagger.predict(new, decoder="nonsense")


@row("predict", "min_probability")
def min_probability(learner: str, _: File) -> None:
    """Exactly the spans below the probability are removed. At 0 all stay, above 1 none does."""
    tagger, new = tagger_of(), tokens(NEW)
    sure = tagger.predict_confidence(new)
    known = sorted({p for one in sure for _, p in one.chunks})
    assert len(known) > 3
    assert tagger.predict(new, min_probability=0.0) == tagger.predict(new)
    for least in (known[0], known[len(known) // 2], known[-1], 1.0):
        found = tagger.predict(new, min_probability=least)
        for labels, one in zip(found, sure):
            wanted = [span for span, p in one.chunks if p >= least]
            assert tw.spans.spans(labels) == wanted
            inside = {t for span in wanted for t in range(span.begin, span.end)}
            assert labels == [y if t in inside else "O" for t, y in enumerate(one.labels)]
    assert tagger.predict(new, min_probability=known[-1]) != tagger.predict(new)
    ruled = tagger.predict(new, min_probability=0.0, constraints="bio", allowed=ONLY)
    assert ruled == tagger.predict(new, constraints="bio", allowed=ONLY)
    for wrong in (-0.1, 1.1, math.nan, "0.5", True):
        with pytest.raises(tw.exceptions.ParameterError, match="expected number >= 0 and <= 1"):
            tagger.predict(new, min_probability=wrong)
    with pytest.raises(tw.exceptions.ParameterError, match="leave decoder, beam and document_state out"):
        tagger.predict(new, min_probability=0.5, decoder="pointwise")
    with pytest.raises(tw.exceptions.ParameterError, match="the scores of perceptron are not probabilities"):
        fitted("perceptron").predict(new, min_probability=0.5)
    with pytest.raises(tw.exceptions.ParameterError, match="the labels mark no spans"):
        tw.CRF(features="S1", max_iter=2).fit(X, Y).predict(X, min_probability=0.5)


@row("to", "device")
def device_of_a_tagger(learner: str, file: File) -> None:
    """The engine of that name scores from then on, with the same weights and rules. Unknown names are an error."""
    path = file / "m.tagwise"
    tagger_of(True).save(path)
    tagger, made, cpu = tw.load(path), list[Any](), BACKENDS["cpu"]
    want = tagger.predict(tokens(NEW))

    def scorer(*given: Any) -> Any:
        made.append(cpu.scorer(*given))
        return made[-1]

    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(BACKENDS, "cuda", Backend("cuda", cpu.objective, scorer))
        assert tagger.to("cuda") is tagger
    assert tagger.model_.scorer is made[0]
    assert tagger.device == "cuda"
    assert tagger.predict(tokens(NEW)) == want
    assert tagger.to("cpu").predict(tokens(NEW)) == want
    assert tagger.model_.scorer is not made[0]
    with pytest.raises(tw.exceptions.ParameterError, match="device='abacus'"):
        tagger.to("abacus")
    with pytest.raises(tw.exceptions.ParameterError, match=r"does not support order > 1\. Use device='cpu'"):
        tw.CRF(features="S1", order=2, max_iter=1).fit(X, Y).to("cuda")


@row("choose_threshold", "X", "y", "precision", "beta")
def choose_threshold(learner: str, _: File) -> None:
    """The threshold has the best F-beta, or the highest recall among those with the given precision."""
    tagger, new = tagger_of(), tokens(NEW)
    gold = [[LABELS[y] for y in path] for path in NEW.y]
    known = sorted({p for one in tagger.predict_confidence(new) for _, p in one.chunks})
    reports = {p: tw.evaluate(gold, tagger.predict(new, min_probability=p)) for p in known}

    def f(report: Report, beta: float) -> float:
        below = beta**2 * report.precision + report.recall
        return (1 + beta**2) * report.precision * report.recall / below if below else 0.0

    answers = set()
    for beta in (0.05, 1.0, 9.0):
        found = tagger.choose_threshold(new, gold, beta=beta)
        best = max(f(report, beta) for report in reports.values())
        assert found.f(beta) == pytest.approx(best)
        report = reports[found.min_probability]
        assert (found.precision, found.recall) == pytest.approx((report.precision, report.recall))
        answers.add(found.min_probability)
    assert tagger.choose_threshold(new, gold) == tagger.choose_threshold(new, gold, beta=1.0)
    most = max(report.precision for report in reports.values())
    for precision in (0.01, most):
        found = tagger.choose_threshold(new, gold, precision=precision)
        able = [report for report in reports.values() if report.precision >= precision]
        assert found.recall == pytest.approx(max(report.recall for report in able))
        assert found.precision >= precision
        answers.add(found.min_probability)
    assert len(answers) > 1
    whole = tw.Corpus.from_lists([["a", "b"]], [["B-p", "O"]])
    words = tw.CRF(features="S1", max_iter=5).fit(whole)
    assert words.choose_threshold(whole) == words.choose_threshold([["a", "b"]], [["B-p", "O"]])
    for odd in ({"precision": 0.0}, {"precision": 1.5}, {"beta": 0.0}, {"beta": math.inf}):
        with pytest.raises(tw.exceptions.ParameterError, match=f"{next(iter(odd))}="):
            tagger.choose_threshold(new, gold, **odd)
    if most < 1.0:
        with pytest.raises(tw.exceptions.ParameterError, match="no threshold has a precision of 1"):
            tagger.choose_threshold(new, gold, precision=1.0)


@row("predict", "document_state")
@row("predict_kbest", "document_state")
def document_state(learner: str, _: File) -> None:
    """Batches of a document that share a state get the labels of the whole document."""
    train = corpus()
    tagger = tw.Perceptron(features="S1", lookback=tw.Lookback(document=True), max_iter=8, shuffle=False).fit(
        train
    )
    together = train[:1] + train[1:]
    whole, ranked = tagger.predict(together), tagger.predict_kbest(together, 2)
    one, two = DocumentState(), DocumentState()
    assert [tagger.predict(train[i : i + 1], document_state=one)[0] for i in range(len(train))] == whole
    assert [
        tagger.predict_kbest(train[i : i + 1], 2, document_state=two)[0] for i in range(len(train))
    ] == ranked
    forgotten = [tagger.predict_kbest(train[i : i + 1], 2)[0] for i in range(len(train))]
    assert forgotten != ranked


@row("sequence_probability", "X", "y", "constraints")
def sequence_probability(learner: str, _: File) -> None:
    """The result is P(y | x) over the paths that the rules allow. Sets of labels sum their probabilities."""
    for arguments, constrained, wanted in settings():
        if "allowed" in arguments:
            continue
        tagger = tagger_of(constrained)
        for path in itertools.islice(itertools.product(LABELS, repeat=4), 0, 81, 7):
            given = [list(path[: len(x)]) for x in NEW.X]
            found = tagger.sequence_probability(tokens(NEW), given, **arguments)
            for p, labels, s in zip(found, given, wanted):
                h = chain.score(s, [LABELS.index(name) for name in labels])
                assert p == pytest.approx(math.exp(h - chain.log_partition(s)), abs=1e-4)
        anything = [[None] * len(x) for x in NEW.X]
        assert tagger.sequence_probability(tokens(NEW), anything, **arguments) == pytest.approx(1.0)


@row("chunk_probability", "X", "chunks", "allowed", "constraints")
def chunk_probability(learner: str, _: File) -> None:
    """The probability of a chunk is the total of all paths that contain exactly this chunk, by enumeration."""
    requested = [[("p", 0, 1), ("p", 0, len(x))] for x in NEW.X]
    for arguments, constrained, wanted in settings():
        found = tagger_of(constrained).chunk_probability(tokens(NEW), requested, **arguments)
        for ps, chunks, s in zip(found, requested, wanted):
            log_z = chain.log_partition(s)
            for p, chunk in zip(ps, chunks):
                mass = sum(
                    math.exp(chain.score(s, y) - log_z)
                    for y in itertools.product(range(3), repeat=len(s.node))
                    if chunk in {tuple(span) for span in tw.spans.spans(named(y))}
                )
                assert p == pytest.approx(mass, abs=1e-4)


# -- scores, explanations, files --------------------------------------------------------------------------


@row("explain", "sentence", "token", "against", "top")
def explain(learner: str, _: File) -> None:
    """Every argument is passed on. test_explanations tests the sums of votes."""
    tagger = short(learner, features="S1").fit(X, Y)
    whole = tagger.explain(X[0])
    assert (list(whole.tokens), len(whole)) == (X[0], len(X[0]))
    (one,) = tagger.explain(X[0], token=1)
    assert one.to_dict() == whole[1].to_dict()
    label = tagger.predict([X[0]])[0][1]
    other = next(found for found in tagger.classes_ if found != label)
    (explanation,) = tagger.explain(X[0], token=1, against=other)
    assert explanation.other[1] == other
    few = tagger.explain(X[0], token=1, top=1)
    assert few[0].to_dict() == one.to_dict()
    assert len(str(few).splitlines()) < len(str(tagger.explain(X[0], token=1, top=50)).splitlines())


@row("evaluate", "X", "y", "min_probability")
@row("score", "X", "y")
def evaluate(learner: str, _: File) -> None:
    """The score is the share of correct labels. Labels passed as y override those of the corpus."""
    tagger = short(learner, features="S1").fit(X, Y)
    guess = tagger.predict(X)
    right = sum(a == b for path, other in zip(Y, guess) for a, b in zip(path, other)) / sum(map(len, Y))
    assert tagger.score(X, Y) == tagger.evaluate(X, Y).accuracy == pytest.approx(right)
    whole = tw.Corpus.from_lists(X, Y)
    assert tagger.score(whole) == tagger.score(X, Y)
    assert tagger.score(whole, guess) == tagger.evaluate(whole, guess).score == 1.0
    with pytest.raises(tw.exceptions.ParameterError, match="no labels"):
        tagger.score(X)
    spans = [["B-p" if label == Y[0][0] else "O" for label in path] for path in Y]
    chunker = tw.CRF(features="S1", max_iter=3).fit(X, spans)
    for least in (0.0, 0.6, 1.0):
        kept = chunker.predict(X, min_probability=least)
        assert chunker.evaluate(X, spans, min_probability=least) == tw.evaluate(spans, kept)


@row("errors", "X", "y", "top", "examples", "min_probability")
def errors(learner: str, _: File) -> None:
    """Groups are those of the predictions. `top` and `examples` limit the report, not the groups."""
    tagger = short(learner, features="S1").fit(X, Y)
    other = [list(reversed(path)) for path in Y]
    whole = tw.Corpus.from_lists(X, other)
    found = tagger.errors(X, other)
    assert found == tagger.errors(whole) == find_errors(whole, tagger.predict(X))
    assert tagger.errors(whole, tagger.predict(X)).groups == []
    assert found.groups
    short_report = tagger.errors(whole, top=1, examples=0)
    assert (short_report.groups, short_report.report) == (found.groups, found.report)
    assert str(short_report).count("sentence ") == 0 < str(found).count("sentence ")
    assert ("more kinds" in str(short_report)) == (len(found.groups) > 1)
    spans = [["B-p" if label == Y[0][0] else "O" for label in path] for path in Y]
    chunker = tw.CRF(features="S1", max_iter=3).fit(X, spans)
    for least in (0.0, 0.6, 1.0):
        kept = chunker.predict(X, min_probability=least)
        gold = tw.Corpus.from_lists(X, spans)
        assert chunker.errors(gold, min_probability=least) == find_errors(gold, kept)


@row("inspect", "top")
def inspect(learner: str, _: File) -> None:
    """inspect(top) returns the `top` strongest features of each label, by absolute weight."""
    tagger = tagger_of()
    w, label = dense(tagger, P)[: 4 * 3].reshape(4, 3), LABELS
    for top in (1, 3):
        found = tagger.inspect(top).labels
        for y, name in enumerate(label):
            order = sorted(range(4), key=lambda a: -abs(w[a, y]))[:top]
            assert [text for text, _ in found[name]] == [str(a) for a in order]
            assert [weight for _, weight in found[name]] == pytest.approx([w[a, y] for a in order])
    assert all(len(entries) == 4 for entries in tagger.inspect().labels.values())


@row("save", "path", "prune")
def save(learner: str, folder: File) -> None:
    """A saved file gives the same predictions. With prune=True it omits features of weight zero."""
    tagger = (
        tw.CRF(l1=1.0, l2=0.0, max_iter=50).fit(tokens(P), names(P)) if learner == "crf" else fitted(learner)
    )
    tagger.save(folder / "whole.tagwise")
    tagger.save(str(folder / "pruned.tagwise"), prune=True)
    whole, pruned = (tw.load(folder / f"{name}.tagwise") for name in ("whole", "pruned"))
    assert (whole.n_features_, whole.n_nonzero_) == (tagger.n_features_, tagger.n_nonzero_)
    assert (pruned.n_features_, pruned.n_nonzero_) == (tagger.n_nonzero_, tagger.n_nonzero_)
    if learner == "crf":
        assert tagger.n_nonzero_ < tagger.n_features_
    for other in (whole, pruned):
        assert other.predict_kbest(tokens(NEW), 3) == tagger.predict_kbest(tokens(NEW), 3)


@row("save", "format")
def save_format(learner: str, folder: File) -> None:
    """Export a CRFsuite file with its magic number.

    It gives the same labels if the model is a plain chain of attributes.
    """
    if learner != "crf":
        return
    attributes = [[[f"w={token}"] for token in sentence] for sentence in X]
    tagger = tw.CRF(features="attributes", max_iter=10, start_end=False).fit(attributes, Y)
    tagger.save(folder / "plain")
    tagger.save(folder / "foreign", format="crfsuite")
    assert (folder / "plain").read_bytes()[:4] != b"lCRF"
    assert (folder / "foreign").read_bytes()[:4] == b"lCRF"
    assert tw.load(folder / "foreign").predict(attributes) == tagger.predict(attributes)
    with pytest.raises(
        tw.exceptions.ModelFileError, match=r"format=.nonsense.: expected one of tagwise, crfsuite"
    ):
        tagger.save(folder / "no", format="nonsense")
    assert not (folder / "no").exists()


@row("tag", "texts", "tokenizer", "probability")
def tag(learner: str, _: File) -> None:
    """Spans are character offsets in the given text, by the tokenizer's tokens. Probabilities are added on request."""
    tagger = short(learner, features="S1").fit(X, Y)
    text = " ".join(X[0])
    (one,) = tagger.tag([text])
    assert tagger.tag(text) == one
    assert all(text[span.start : span.end] == span.text for span in one)
    whole = tagger.tag(
        text, tokenizer=lambda given: [given]
    )  # one token: at most one span, which is the text
    assert {(span.start, span.end) for span in whole} <= {(0, len(text))}
    cut = tagger.tag(text, tokenizer=lambda given: given.split())
    assert [span.label for span in cut] == [span.label for span in tagger.tag(text, probability=False)]
    assert all(span.probability is None for span in tagger.tag(text, probability=False))
    sure = [span.probability for span in one]
    assert all((p is not None) == (learner in ("crf", "hmm", "memm")) for p in sure)

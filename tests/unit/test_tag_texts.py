"""`tagger.tag`: raw text in, spans out."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import pytest

import tagwise as tw
from tagwise.estimators import LEARNERS

TEXTS = ["Rosa flew to Lund. Ines didn't, Rosa said!", "", "Oslo", "to  Lund\n\nInes Oslo"]


@functools.cache
def names(learner: str = "crf", **params: Any) -> Any:
    """Return a tagger of names."""
    kinds = {"Rosa": "B-PER", "Ines": "B-PER", "Lund": "B-LOC", "Oslo": "B-LOC"}
    rng = np.random.default_rng(0)
    X = [[str(w) for w in rng.choice([*kinds, "flew", "to", ".", "said"], 6)] for _ in range(60)]
    y = [["O" if rng.random() < 0.1 else kinds.get(w, "O") for w in words] for words in X]
    return LEARNERS[learner](features="word[0]", **params).fit(X, y)


@functools.cache
def parts(**params: Any) -> Any:
    """Return a part-of-speech tagger, whose labels are not chunks."""
    X = [["Rosa", "flew", "."], ["Lund", "said", "!"]] * 5
    return tw.CRF(features="word[0]", **params).fit(X, [["N", "V", "P"]] * 10)


def test_spans_have_the_characters_at_their_offsets() -> None:
    """Each span has the characters at its offsets. Spans are the chunks that `predict` finds after tokenization."""
    tagger = names()
    for text, spans in zip(TEXTS, tagger.tag(TEXTS), strict=True):
        assert all(text[s.start : s.end] == s.text for s in spans)
        found = tw.Tokenizer()(text)
        expected = []
        for sentence in found.sentences:
            chunks = tw.spans.spans(tagger.predict([sentence])[0])
            expected += [(c.type, " ".join(sentence[c.begin : c.end])) for c in chunks]
        assert [(s.label, s.text) for s in spans] == expected
    assert [(s.label, s.text, s.start, s.end) for s in tagger.tag(TEXTS[0])][:2] == [
        ("PER", "Rosa", 0, 4),
        ("LOC", "Lund", 13, 17),
    ]


def test_single_texts_lists_and_iterators_are_accepted() -> None:
    """Accepts a text, a tokenized text, a list of either, or an iterator."""
    tagger = names()
    one = tagger.tag(TEXTS[0])
    assert tagger.tag(tw.Tokenizer()(TEXTS[0])) == one
    assert tagger.tag(iter([TEXTS[0]])) == [one]
    assert tagger.tag([]) == []
    assert tagger.tag("") == tagger.tag(" \n") == []


def test_span_probabilities_are_chunk_probabilities_or_marginals() -> None:
    """The probability of exactly that chunk, or the marginal of a part of speech. None by default."""
    tagger = names()
    (sentence,) = tw.Tokenizer()("Rosa Lund said").sentences
    spans = tagger.tag("Rosa Lund said")
    chunks = [("PER", 0, 1), ("LOC", 1, 2)]
    assert [s.probability for s in spans] == pytest.approx(tagger.chunk_probability([sentence], [chunks])[0])
    assert {s.probability for s in tagger.tag("Rosa Lund said", probability=False)} == {None}
    table = parts().predict_marginals([["Rosa", "flew"]])[0]
    assert [s.probability for s in parts().tag("Rosa flew")] == pytest.approx(table.max(axis=1).tolist())


@pytest.mark.parametrize("learner", sorted(LEARNERS))
def test_every_learner_returns_spans(learner: str) -> None:
    """Spans equal those of `predict`, with probabilities if the learner is probabilistic and None otherwise."""
    tagger = names(learner)
    spans = tagger.tag("Rosa flew to Lund.")
    assert [s.text for s in spans] == ["Rosa", "Lund"]
    sure = [s.probability for s in spans]
    if tagger.probabilistic:
        assert all(0.3 < p <= 1 for p in sure)
    else:
        assert sure == [None, None]


def test_higher_order_models_have_no_chunk_probabilities() -> None:
    """Chunks of a higher-order chain have no probability here, but labels of tokens do."""
    assert {s.probability for s in names(order=2).tag("Rosa Lund")} == {None}
    assert all(0 < s.probability <= 1 for s in parts(order=2).tag("Rosa flew"))


def test_token_labels_become_single_token_spans() -> None:
    """One span per token, with the type of the labels."""
    assert [(s.label, s.text) for s in parts().tag("Rosa flew!")] == [
        ("N", "Rosa"),
        ("V", "flew"),
        ("P", "!"),
    ]
    numbers = tw.CRF(features="word[0]").fit([["a", "b"]] * 3, [[7, 8]] * 3)
    assert [s.label for s in numbers.tag("a b")] == [7, 8]


def test_custom_tokenizers_determine_the_spans() -> None:
    """A custom tokenizer determines the tokens and therefore the possible spans."""
    tagger = names()
    assert [s.text for s in tagger.tag("Rosa,Lund", tokenizer=lambda _: [(0, 4), (5, 9)])] == ["Rosa", "Lund"]
    assert tagger.tag("Rosa,Lund", tokenizer=str.split) == []
    assert [s.text for s in tagger.tag("Rosa-Lund", tokenizer=tw.Tokenizer(hyphens=True))] == ["Rosa", "Lund"]


def test_invalid_texts_and_models_are_rejected() -> None:
    """Arguments that are not text, models that need columns other than words, and unfitted taggers."""
    with pytest.raises(tw.exceptions.CorpusError, match="text 0: expected a string, found list"):
        names().tag([["Rosa", "flew"]])
    with pytest.raises(tw.exceptions.CorpusError, match="expected a list of texts, found int"):
        names().tag(3)
    with pytest.raises(tw.exceptions.NotFittedError):
        tw.CRF().tag("Rosa")
    rows = [{"word": ["a"], "pos": ["N"]}]
    with pytest.raises(tw.exceptions.CorpusError, match="need pos, but X contains only tokens"):
        tw.CRF(features="pos[0]").fit(rows, [["X"]]).tag("a")


def test_tagging_uses_the_tokenizer_of_training() -> None:
    """Training on texts with spans and tagging those texts returns the spans."""
    texts = ["Rosa’s in Lund.", "Ines isn’t in Oslo!"] * 5
    spans = [[(0, 4, "PER"), (10, 14, "LOC")], [(0, 4, "PER"), (14, 18, "LOC")]] * 5
    tagger = tw.CRF(features="word[0]").fit(tw.spans.span_corpus(texts, spans))
    assert [[(s.start, s.end, s.label) for s in found] for found in tagger.tag(texts)] == spans

"""Texts in arrays: results equal those of lists of strings, and every fault of the arrays is reported."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tagwise as tw
from tagwise import _core
from tagwise.base.exceptions import CorpusError
from tagwise.features.inputs import Inputs

SENTENCES = st.lists(st.lists(st.text(max_size=6)))


def texts(sentences: list[list[str]], before: int = 0) -> _core.Texts:
    """Return the arrays of sentences, after unrelated bytes and a token."""
    tokens = [token.encode() for sentence in sentences for token in sentence]
    data = b"x" * before + b"".join(tokens)
    begins = before + np.cumsum([0, *map(len, tokens)])
    cuts = np.cumsum([0, *map(len, sentences)])
    return _core.Texts(np.frombuffer(data, np.uint8), begins.astype(np.int32), cuts.astype(np.int32))


@given(SENTENCES, st.integers(0, 3))
def test_texts_are_a_sequence_of_their_sentences(sentences, before):
    found = texts(sentences, before)
    assert len(found) == len(sentences)
    assert list(found) == sentences
    assert found[1:] == sentences[1:]
    assert found[::-2] == sentences[::-2]
    for i in range(-len(sentences), len(sentences)):
        assert found[i] == sentences[i]
    with pytest.raises(IndexError, match=r"no sentence"):
        found[len(sentences)]


@given(SENTENCES, st.integers(0, 3))
def test_templates_read_texts_like_lists(sentences, before):
    template = _core.Template("word[-1..1]", ["word"])
    results = []
    for given_as in (sentences, texts(sentences, before)):
        vocab = _core.Vocabulary()
        data = _core.encode_tokens(template, vocab, given_as, bare=True)
        results.append((vocab.texts(), data.offsets.tolist(), [a.tolist() for a in data.node()]))
    assert results[0] == results[1]


@pytest.mark.parametrize("features", ["default", "S1", lambda tokens: [{"w": token} for token in tokens]])
@pytest.mark.parametrize("dictionary", [False, True])
def test_models_tag_texts_like_lists(features, dictionary):
    train, _, test = tw.load_corpus("wnut17-ner")
    options = {"dictionary": 1} if dictionary else {}
    tagger = tw.CRF(features=features, max_iter=3, **options).fit(train[:60])
    sentences = [list(tokens) for tokens in test.tokens[:40]]
    found = texts(sentences)
    want, ours = (tagger.model_.predict_numbers(X) for X in (sentences, Inputs(found, found)))
    assert [a.tolist() for a in want] == [a.tolist() for a in ours]


def test_malformed_arrays_are_reported():
    data, good = np.frombuffer(b"abc", np.uint8), np.array([0, 1, 3], np.int32)
    template, cuts = _core.Template("word[0]", ["word"]), np.array([0, 2], np.int32)
    for tokens, sentences in [
        (np.array([0, 4, 3], np.int32), cuts),
        (np.array([2, 1, 3], np.int32), cuts),
        (np.array([-1, 1, 3], np.int32), cuts),
        (good, np.array([0, 3], np.int32)),
        (good, np.array([2, 1], np.int32)),
        (good, np.array([-1, 1], np.int32)),
    ]:
        wrong = _core.Texts(data, tokens, sentences)
        with pytest.raises(ValueError, match="offsets that rise"):
            wrong[0]
        with pytest.raises(ValueError, match="offsets that rise"):
            _core.encode_tokens(template, _core.Vocabulary(), wrong, bare=True)
    with pytest.raises(ValueError, match="tokens is empty"):
        _core.Texts(data, np.zeros(0, np.int32), cuts)
    with pytest.raises(ValueError, match="sentences is empty"):
        _core.Texts(data, good, np.zeros(0, np.int32))
    latin = _core.Texts(np.frombuffer("aé".encode("latin-1"), np.uint8), np.array([0, 1, 2], np.int32), cuts)
    with pytest.raises(CorpusError, match=r"sentence 0, token 1: not UTF-8"):
        latin[0]
    with pytest.raises(CorpusError, match=r"sentence 0, token 1: not UTF-8"):
        _core.encode_tokens(template, _core.Vocabulary(), latin, bare=True)

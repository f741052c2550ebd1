"""Error messages: suggestion of a similar name, location, remedy."""

from __future__ import annotations

import io
from typing import Any

import pytest

import tagwise as tw

Y = [["A", "B"]]


@pytest.mark.parametrize(
    ("features", "words"),
    [
        (
            "word[0].sufix(2)",
            r"^line 1: unknown function \"sufix\" \(did you mean 'suffix'\?\); there are prefix",
        ),
        ("word[0]\nword[0].sufix(2)", r"^line 2: unknown function \"sufix\" \(did you mean 'suffix'\?\)"),
        ("word[0].sufix", r"^line 1: unknown function \"sufix\" \(did you mean 'suffix'\?\)"),
        ("word[0].is_uper?", r"unknown function \"is_uper\" \(did you mean 'is_upper'\?\)"),
        ("word[0].lower(3)", r"^line 1: lower takes no argument; write \.lower$"),
        ("wrod[0]", r"no column \"wrod\" \(did you mean 'word'\?\); the columns are word"),
        ("defalt", r"no feature set 'defalt' \(did you mean 'default'\?\)\. Use S1"),
        ("word[0].zzz", r"unknown function \"zzz\"; there are"),
    ],
)
def test_misspelled_features_get_a_suggestion(features: str, words: str) -> None:
    with pytest.raises(tw.exceptions.TemplateError, match=words):
        tw.CRF(features=features).fit([["a", "b"]], Y)


@pytest.mark.parametrize(
    ("X", "words"),
    [
        ([[3, 4]], r"sentence 0, token 0 \(X\[0\]\[0\]\): 3 is int, expected a string, or .* with str\(\)"),
        ([[], [None, "a"]], r"sentence 1, token 0 \(X\[1\]\[0\]\): None is NoneType, expected a string"),
        ([[b"a", b"b"]], r"b'a' is bytes, expected a string, .*\. Convert it with decode\(\)"),
        ([["a", 3]], r"sentence 0, token 1, .*expected a string, found int; convert it with str\(\)"),
    ],
)
def test_tokens_of_a_wrong_type_are_reported(X: Any, words: str) -> None:
    with pytest.raises(tw.exceptions.CorpusError, match=words):
        tw.CRF(max_iter=1).fit(X, [["A"] * len(x) for x in X])


LINE = '{"tokens": ["a", "b"], "pos": ["N", "V"], "tags": ["A", "B"]}\n'


@pytest.mark.parametrize(
    "columns", [("tokens", "pos", "tags"), ("word", "pos", "label"), ("words", "pos", "labels")]
)
def test_jsonl_keys_name_the_columns(columns: tuple[str, ...]) -> None:
    """Keys in the file's spelling or in the names that sentences use."""
    for label in ("label", columns[-1]):
        corpus = tw.read(io.StringIO(LINE), "jsonl", columns=columns, label=label)
        assert (corpus.columns, corpus.label) == (("word", "pos", "label"), "label")
        assert corpus.labels == Y


def test_missing_keys_are_reported_with_the_existing_ones() -> None:
    with pytest.raises(
        tw.exceptions.CorpusError, match=r":1: 'ner' is missing among tokens, pos, tags\. Write"
    ):
        tw.read(io.StringIO(LINE), "jsonl", columns=("word", "ner"), label="ner")


def test_unknown_label_name_requires_column_names() -> None:
    """Without column names, an unusual label name is not taken for the last column."""
    text = "a DT X\nb NN Y\n"
    with pytest.raises(
        tw.exceptions.CorpusError,
        match=r"no column is named 'ner': the 3 columns of the file have no names\. Name them all, as in "
        r"columns=\('word', 'pos', 'ner'\)\.",
    ):
        tw.read(io.StringIO(text), "conll", label="ner")
    assert tw.read(io.StringIO(text), "conll", label="pos").labels == [["DT", "NN"]]
    assert tw.read(io.StringIO(text), "conll").labels == [["X", "Y"]]


def test_disjoint_label_sets_are_reported(caplog: pytest.LogCaptureFixture) -> None:
    """Reported for scores and dev sets, and not if one label is shared."""
    X = [["a", "b"]]
    tagger = tw.CRF(max_iter=1).fit(X, Y)
    assert tagger.score(X, [["A", "C"]]) in (0.0, 0.5)
    assert caplog.records == []
    assert tagger.score(X, [["U", "V"]]) == 0.0
    tw.CRF(max_iter=1).fit(X, Y, dev=X, dev_y=[["U", "V"]])
    for record, whose in zip(caplog.records, ("these sentences", "dev"), strict=True):
        assert record.getMessage() == (
            f"no label of {whose} (U V) is a label of the model (A B). Check that the label column is the right one"
        )


def spelled(sentence: Any) -> list[list[str]]:
    """Use `tokens`, length and index, as a feature function for corpora or for lists would."""
    by_index = [sentence[t].lower() for t in range(len(sentence))]
    assert [word.lower() for word in sentence] == [word.lower() for word in sentence.tokens] == by_index
    return [[f"w={word}"] for word in by_index]


def test_feature_functions_accept_corpora_and_lists() -> None:
    X = [["The", "dog"], ["a", "Cat"]]
    y = [["D", "N"], ["D", "N"]]
    corpus = tw.Corpus.from_lists(X, y)
    by_corpus, by_lists = (tw.CRF(features=spelled, max_iter=9) for _ in range(2))
    by_corpus.fit(corpus)
    by_lists.fit(X, y)
    tuples = [tuple(x) for x in X]
    for tagger in (by_corpus, by_lists):
        assert tagger.predict(corpus) == tagger.predict(X) == tagger.predict(tuples) == y
    seen: list[Any] = []

    def watching(sentence: Any) -> list[list[str]]:
        seen.append(isinstance(sentence, list))
        return [[word] for word in sentence]

    tw.CRF(features=watching, max_iter=1).fit(X, y)
    assert seen
    assert all(seen)  # lists are passed as lists

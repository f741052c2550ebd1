"""Vocabulary and dataset: growth and lock, attribute lists and feature dicts, min_count, labels."""

from __future__ import annotations

import copy
import pickle
from collections import Counter
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tagwise._core import Layout, Vocabulary, encode_attributes, prune
from tagwise.base.exceptions import CorpusError, ModelFileError, ParameterError
from tagwise.dataset.encode import NO_LABEL, build, collect_labels, encode_labels, with_labels

NAMES = st.text("abc:=é日", min_size=1, max_size=3)
LISTS = st.lists(st.lists(st.lists(NAMES, max_size=4), max_size=4), max_size=4)
NUMBERS = (
    st.floats(-(2.0**100), 2.0**100, allow_nan=False, width=32) | st.integers(-(2**40), 2**40) | st.booleans()
)
DICTS = st.dictionaries(
    NAMES,
    st.recursive(
        NUMBERS | NAMES,
        lambda inner: (
            st.dictionaries(NAMES, inner, max_size=3)
            | st.lists(NAMES, max_size=3)
            | st.sets(NAMES, max_size=3)
        ),
        max_leaves=6,
    ),
    max_size=4,
)


def rows(vocab: Vocabulary, data: Any) -> list[list[tuple[str, float]]]:
    ptr, ids, values = data.node()
    texts = vocab.texts()
    weights = values if len(values) else np.ones(len(ids), dtype=np.float32)
    return [[(texts[i], float(v)) for i, v in zip(ids[a:b], weights[a:b])] for a, b in pairwise(ptr)]


@given(LISTS)
def test_encoded_lists_decode_to_the_input(X: list[list[list[str]]]) -> None:
    vocab = Vocabulary()
    data = encode_attributes(vocab, X)
    assert [[a for a, _ in row] for row in rows(vocab, data)] == [token for s in X for token in s]
    assert data.offsets.tolist() == np.cumsum([0] + [len(s) for s in X]).tolist()
    flat = [a for s in X for token in s for a in token]
    assert vocab.texts() == list(vocab) == list(dict.fromkeys(flat))
    assert vocab.counts().tolist() == [Counter(flat)[a] for a in vocab]
    assert all(vocab.get(a) == i and vocab.text(i) == a and a in vocab for i, a in enumerate(vocab))
    assert vocab.get("unseen") is None
    assert "unseen" not in vocab


@given(LISTS, LISTS)
def test_locked_vocabulary_drops_unknown_attributes(
    X: list[list[list[str]]], Y: list[list[list[str]]]
) -> None:
    vocab = Vocabulary()
    encode_attributes(vocab, X)
    vocab.lock()
    size = len(vocab)
    known = set(vocab)
    found = rows(vocab, encode_attributes(vocab, Y))
    assert [[a for a, _ in row] for row in found] == [
        [a for a in token if a in known] for s in Y for token in s
    ]
    assert len(vocab) == size
    assert vocab.locked


@given(st.lists(st.lists(st.lists(NAMES, max_size=4) | DICTS, max_size=4), max_size=4), st.data())
def test_encoding_does_not_depend_on_threads(X: list[Any], data: Any) -> None:
    vocab = Vocabulary()
    encode_attributes(vocab, X)
    vocab.lock()
    plain = [[["a", "b", "unseen"], ["é"], []], [], [["日"] * 3]] * 100  # enough for a second thread
    at = data.draw(st.integers(0, len(plain)))
    for mixed in (plain[:at] + X + plain[at:], tuple(plain + X), [*plain, [["a", ("b", 2.0)]], *plain]):
        alone, together = (encode_attributes(vocab, mixed, n_jobs=n) for n in (1, 3))
        assert rows(vocab, alone) == rows(vocab, together)
        assert alone.offsets.tolist() == together.offsets.tolist()


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_lone_surrogate_is_reported_among_many_sentences(n_jobs: int) -> None:
    vocab = Vocabulary()
    X = [[["a"], ["b"]]] * 200
    encode_attributes(vocab, X)
    vocab.lock()
    with pytest.raises(CorpusError, match="sentence 150, token 1"):
        encode_attributes(vocab, [*X[:150], [["a"], ["\ud800"]], *X], n_jobs=n_jobs)


@given(LISTS, st.integers(1, 4))
def test_min_count(X: list[list[list[str]]], least: int) -> None:
    counts = Counter(a for s in X for token in s for a in token)
    vocab, data = build(X, min_count=least)
    assert vocab.texts() == [a for a in counts if counts[a] >= least]
    assert [[a for a, _ in row] for row in rows(vocab, data)] == [
        [a for a in token if counts[a] >= least] for s in X for token in s
    ]
    assert all(vocab.get(a) == i for i, a in enumerate(vocab))


@given(st.lists(DICTS, max_size=3))
def test_dicts_follow_python_crfsuite(sentence: list[dict[str, Any]]) -> None:
    pycrfsuite = pytest.importorskip("pycrfsuite")
    expected = pycrfsuite.ItemSequence(sentence).items()
    vocab = Vocabulary()
    found = rows(vocab, encode_attributes(vocab, [sentence]))
    for token, row in zip(expected, found, strict=True):
        assert {a for a, _ in row} == {a for a, v in token.items() if v != 0 or dict(row).get(a)}
        for name, value in token.items():
            if [a for a, _ in row].count(name) == 1:  # items() keeps the last of several
                assert dict(row)[name] == pytest.approx(value, rel=1e-6)


def test_dict_conventions() -> None:
    token = {
        "bias": 1,
        "yes": True,
        "no": False,
        "word": "dog",
        "weight": -2.5,
        "list": ["a", ("b", 3)],
        "set": {"x"},
        "tuple": ("t",),
        "deep": {"er": {"s": "t", "n": 1e-3}},
        "numpy": np.float32(0.5),
        "one": np.bool_(True),
    }
    vocab = Vocabulary()
    assert rows(vocab, encode_attributes(vocab, [[token]])) == [
        [
            ("bias", 1.0),
            ("yes", 1.0),
            ("word:dog", 1.0),
            ("weight", -2.5),
            ("list:a", 1.0),
            ("list:b", 3.0),
            ("set:x", 1.0),
            ("tuple:t", 1.0),
            ("deep:er:s:t", 1.0),
            ("deep:er:n", pytest.approx(1e-3)),
            ("numpy", 0.5),
            ("one", 1.0),
        ]
    ]


def test_all_sequence_types_are_accepted() -> None:
    expected = [[("a", 1.0), ("b", 2.0)], []]
    for X in (
        [[["a", ("b", 2)], []]],
        (((("a"), ("b", 2.0)), ()),),
        iter([iter([["a", ("b", 2)], {}])]),
        [[{"a": 1, "b": 2.0}, set()]],
        [np.array([["a", ("b", 2)], []], dtype=object)],
    ):
        vocab = Vocabulary()
        assert rows(vocab, encode_attributes(vocab, X)) == expected


@pytest.mark.parametrize(
    ("X", "words"),
    [
        ("abc", "expected a list of sentences, found str"),
        ([5], r"sentence 0 \(X\[0\]\): expected a list of tokens, found int"),
        ([[], ["abc"]], r"sentence 1, token 0 \(X\[1\]\[0\]\): .*found the string 'abc'"),
        ([[["a"], [5]]], "sentence 0, token 1 .*neither a string nor a pair"),
        ([[[("a", "b")]]], 'attribute "a": the value'),
        ([[{"a": None}]], 'attribute "a": the value None'),
        ([[{5: "a"}]], "name 5 is not a string"),
        ([[{"a": float("nan")}]], 'attribute "a": the value NaN is not finite'),
        ([[{"a": float("-inf")}]], "not finite"),
        ([[{"a": 1e39}]], "beyond float32"),
        ([[{"a": 10**400}]], "float64"),
        ([[["\ud800"]]], "lone surrogate"),
        ([[{"\ud800": 1}]], "lone surrogate"),
        ([[{"a": "\ud800"}]], 'attribute "a": .*lone surrogate'),
        ([[{"a": b"x"}]], "the value b'x'"),
    ],
)
def test_errors_give_the_position(X: Any, words: str) -> None:
    with pytest.raises(CorpusError, match=words):
        encode_attributes(Vocabulary(), X)


def test_recursive_dicts_are_rejected() -> None:
    loop: dict[str, Any] = {}
    loop["a"] = loop
    with pytest.raises(CorpusError, match="nested"):
        encode_attributes(Vocabulary(), [[loop]])


def test_edge_attributes() -> None:
    vocab = Vocabulary()
    data = encode_attributes(vocab, [[["a"], ["b"]]], edge=[[[], [("e", 2)]]])
    ptr, ids, values = data.edge()
    assert (ptr.tolist(), [vocab.text(i) for i in ids], values.tolist()) == ([0, 0, 1], ["e"], [2.0])
    assert (data.n_attributes, data.n_edge_attributes) == (2, 1)
    for edge in ([[[]]], [], [[[], []], []]):
        with pytest.raises(CorpusError, match="edge and X differ"):
            encode_attributes(Vocabulary(), [[["a"], ["b"]]], edge=edge)
    assert prune(vocab, data, 2).n_edge_attributes == 0


@given(LISTS, LISTS, st.booleans())
def test_vocabularies_survive_pickle(X: list[list[list[str]]], Y: list[list[list[str]]], lock: bool) -> None:
    vocab = Vocabulary()
    encode_attributes(vocab, X)
    if lock:
        vocab.lock()
    for other in (pickle.loads(pickle.dumps(vocab)), copy.deepcopy(vocab)):
        assert other.texts() == vocab.texts()
        assert other.locked == lock
        assert np.array_equal(other.counts(), vocab.counts())
        original = pickle.loads(pickle.dumps(vocab))
        assert np.array_equal(encode_attributes(other, Y).node()[1], encode_attributes(original, Y).node()[1])


def test_inconsistent_arrays_are_refused() -> None:
    vocab = Vocabulary()
    encode_attributes(vocab, [[["a", "b"]]])
    keys, table, text, text_end = vocab.arrays()
    assert Vocabulary.from_arrays(keys, table, text, text_end).texts() == ["a", "b"]
    full = np.zeros_like(table)
    for arrays in (
        (keys[:1], table, text, text_end),
        (keys, table[:3], text, text_end),
        (keys, table, text[:1], text_end),
        (keys, table, text, text_end[::-1].copy()),
        (keys, full, text, text_end),
        (keys, np.full_like(table, 7), text, text_end),
    ):
        with pytest.raises(ModelFileError, match="inconsistent"):
            Vocabulary.from_arrays(*arrays)


def test_prune_needs_counts() -> None:
    vocab, data = build([[["a"]]])
    with pytest.raises(CorpusError, match="another vocabulary"):
        prune(Vocabulary(), data, 2)
    vocab.lock()
    with pytest.raises(CorpusError, match="growing"):
        prune(vocab, data, 2)
    with pytest.raises(ParameterError, match="min_count"):
        build([[["a"]]], min_count=0)


def test_labels_are_collected_encoded_and_checked() -> None:
    y = [["O", "B"], [], ["I"]]
    labels = collect_labels(y)
    assert labels == ["O", "B", "I"]
    assert encode_labels(y, labels).tolist() == [0, 1, 2]
    assert encode_labels(y, ["O"], unknown=True).tolist() == [0, NO_LABEL, NO_LABEL]
    _, data = build([["a", "b"], [], ["c"]], "S1")
    assert with_labels(data, y, labels).gold.tolist() == [0, 1, 2]
    for call, words in [
        (lambda: encode_labels(y, ["O", "B"]), "sentence 2, token 0: the label 'I'"),
        (lambda: with_labels(data, y[:2], labels), "2 label sequences for 3 sentences"),
        (lambda: with_labels(data, [["O"], [], ["I"]], labels), "sentence 0 has 2 tokens and 1 labels"),
        (lambda: collect_labels(["abc"]), "is a string"),
        (lambda: collect_labels([[1]]), "expected a string"),  # type: ignore[list-item]
    ]:
        with pytest.raises(CorpusError, match=words):
            call()


def test_too_many_labels_and_labels_from_an_iterator() -> None:
    """16 bits limit the number of labels. An error about labels of an iterator cannot give a position."""
    assert len(collect_labels([[str(i) for i in range(NO_LABEL - 1)]])) == NO_LABEL - 1
    with pytest.raises(
        CorpusError,
        match=rf"{NO_LABEL} distinct labels, expected at most {NO_LABEL - 1}\. Check that the label column",
    ):
        collect_labels([[str(i) for i in range(NO_LABEL)]])
    with pytest.raises(CorpusError, match="unknown label 'Z'"):
        encode_labels([iter(["O", "Z"])], ["O"])  # type: ignore[list-item]
    assert encode_labels(iter([["O"], ["B"]]), ["B", "O"]).tolist() == [1, 0]


@pytest.mark.parametrize("labels", [3, 256, 257])
def test_edge_attribute_pairs_are_unique_and_sorted(labels: int) -> None:
    """The pairs on gold paths, ascending, however often they occur and however many pairs are possible."""
    rng = np.random.default_rng(labels)
    few = np.unique([0, 1, labels - 2, labels - 1])  # so that pairs are repeated
    gold = [rng.choice(few, 6).tolist() for _ in range(30)]
    X = [[[f"e{rng.integers(3)}"] for _ in path] for path in gold]
    vocab = Vocabulary()
    data = encode_attributes(vocab, X, X).with_gold(np.array(gold, dtype=np.uint16).ravel())
    arrays = Layout.build(data, len(vocab), labels).arrays()
    found = [arrays["pair"][a:b].tolist() for a, b in pairwise(arrays["pair_ptr"].astype(int))]
    expected = [
        sorted(
            {
                a * labels + b
                for tokens, path in zip(X, gold)
                for names, (a, b) in zip(tokens[1:], pairwise(path))
                if name in names
            }
        )
        for name in vocab.texts()
    ]
    assert found == expected
    assert sum(map(len, found)) < 30 * 5


@pytest.mark.parametrize("plain", [True, False])
def test_attribute_ids_follow_first_occurrence(plain: bool) -> None:
    """On one thread and on two, in batches and one by one: ids follow first occurrence, rows follow the tokens."""
    rng = np.random.default_rng(4)
    X: list[list[Any]] = [
        [
            [f"a{rng.integers(40)}", f"é{rng.integers(4000)}"][: rng.integers(3)]
            for _ in range(rng.integers(60))
        ]
        for _ in range(700)
    ]
    if not plain:
        for s in (0, 1, 300, 301, 699):
            X[s] = [{"n": 0.5, "b": False, "w": "x"}, ("t", "a1"), [("p", 2.0), "a2"]]
    numbers: dict[str, int] = {}
    tokens: list[list[tuple[int, float]]] = []
    for sentence in X:
        for token in sentence:
            if isinstance(token, dict):
                token = [("n", 0.5), ("w:x", 1.0)]
            pairs = [a if isinstance(a, tuple) else (a, 1.0) for a in token]
            tokens.append([(numbers.setdefault(name, len(numbers)), value) for name, value in pairs])
    counts = np.bincount([id for row in tokens for id, _ in row])
    for n_jobs in (1, 2):
        vocabulary = Vocabulary()
        data = encode_attributes(vocabulary, X, n_jobs=n_jobs)
        assert vocabulary.texts() == list(numbers)
        assert vocabulary.counts().tolist() == counts.tolist()
        assert data.offsets.tolist() == [0, *np.cumsum([len(sentence) for sentence in X])]
        vocabulary.lock()
        for found in (data, encode_attributes(vocabulary, X, n_jobs=n_jobs)):
            ptr, ids, values = found.sparse()
            assert np.diff(ptr.astype(np.int64)).tolist() == [len(row) for row in tokens]
            assert ids.tolist() == [id for row in tokens for id, _ in row]
            weights = values.tolist() or [1.0] * len(ids)
            assert weights == [value for row in tokens for _, value in row]

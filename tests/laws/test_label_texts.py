"""Tests of natively counted and numbered labels against Python's dicts."""

from __future__ import annotations

from collections import Counter
from itertools import chain
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tagwise._core import count_texts, text_ids
from tagwise.base.exceptions import CorpusError
from tagwise.corpus.labels import texts
from tagwise.dataset.encode import collect_labels, encode_labels
from tagwise.dataset.partial import is_partial


class Text(str):
    """A subclass of str."""


#: Equal labels are one object or several, since a comprehension creates new ones each time.
LABELS = st.text(alphabet="ab\u00e9\U0001f600", max_size=3).map(lambda text: "".join(list(text)))
SENTENCES = st.lists(st.one_of(st.lists(LABELS), st.lists(LABELS).map(tuple)))


@given(SENTENCES, st.booleans())
def test_counts_and_ids_equal_those_of_dicts(y: list[Any], outer: bool) -> None:
    given_y = tuple(y) if outer else y
    counts = Counter(chain.from_iterable(y))
    found = count_texts(given_y)
    assert found is not None
    assert list(found.items()) == list(counts.items())
    names = sorted(counts, reverse=True)
    ids = text_ids(given_y, names)
    assert ids is not None
    assert ids.dtype == np.uint16
    assert [names[i] for i in ids] == list(chain.from_iterable(y))


@given(SENTENCES, st.sampled_from([Text("a"), None, 3, b"a", ("a",), float("nan")]), st.data())
def test_other_objects_fall_back_to_python(y: list[Any], other: Any, data: st.DataObject) -> None:
    rows = [list(row) for row in y] + [["a"]]
    row = rows[data.draw(st.integers(0, len(rows) - 1))]
    row.insert(data.draw(st.integers(0, len(row))), other)
    assert count_texts(rows) is None
    assert text_ids(rows, ["a", "b"]) is None
    assert is_partial(rows) == (not isinstance(other, str))
    if isinstance(other, str):
        assert collect_labels(rows) == collect_labels([[str(x) for x in row] for row in rows])
        assert texts(rows)[1] == "str"


@pytest.mark.parametrize("rows", [iter([["a"]]), "ab", ["ab"], {"a": 1}, [{"a"}], None, 3, [None]])
def test_other_containers_fall_back_to_python(rows: Any) -> None:
    assert count_texts(rows) is None
    assert text_ids(rows, ["a", "b"]) is None


def test_unknown_and_duplicate_labels() -> None:
    assert text_ids([["a", "c"]], ["a", "b"]) is None
    assert text_ids([["a"]], ["a", "a"]) is None
    assert text_ids([["a"]], [3]) is None  # type: ignore[list-item]
    assert encode_labels([["a", "c"]], ["a", "b"], unknown=True).tolist() == [0, 65535]
    with pytest.raises(
        CorpusError,
        match="sentence 1, token 0: the label 'c' is not one of the 2 labels of the training data",
    ):
        encode_labels([["a"], ["c"]], ["a", "b"])


def test_lone_surrogates_are_reported() -> None:
    assert count_texts([["a", "\ud800"]]) is None
    with pytest.raises(CorpusError, match="lone surrogate"):
        collect_labels([["a", "\ud800"]])


def test_more_labels_than_cached_addresses() -> None:
    names = [f"label-{i}" for i in range(5000)]
    y = [[f"label-{i * 7919 % 5000}" for i in range(s, s + 100)] for s in range(0, 20000, 100)]
    ids = text_ids(y, names)
    assert ids is not None
    assert ids.tolist() == [i * 7919 % 5000 for i in range(20000)]
    assert count_texts(y) == dict.fromkeys(chain.from_iterable(y), 4)

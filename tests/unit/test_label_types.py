"""Labels of any one type are preserved by predictions, files and copies. Types do not mix."""

from __future__ import annotations

import copy
import pickle
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tagwise as tw
from tagwise.estimators import LEARNERS
from tagwise.model import Model

from ..cli.options import invoke
from ..corpora import X, Y, quick
from ..golden.names import named

#: The value of each type for each label of the corpus.
TYPES: dict[str, dict[str, Any]] = {
    "int": {"DET": 0, "NOUN": -100, "VERB": 7},
    "float": {"DET": 0.5, "NOUN": -1.0, "VERB": 1e300},
    "bool": {"DET": True, "NOUN": False, "VERB": False},
    "str": {"DET": "0", "NOUN": "-100", "VERB": "7"},
}


def renamed(kind: str) -> list[list[Any]]:
    return [[TYPES[kind][label] for label in sentence] for sentence in Y]


def same(found: list[list[Any]], wanted: list[list[Any]]) -> bool:
    """Return whether values and types are equal."""
    return found == wanted and [[*map(type, y)] for y in found] == [[*map(type, y)] for y in wanted]


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("learner", LEARNERS)
def test_label_types_are_preserved(learner: str, kind: str, tmp_path: Path) -> None:
    """Every prediction method, copies, pickles and files return the type. The weights are those of strings."""
    gold = renamed(kind)
    tagger = quick(learner).fit(X, gold)
    string_tagger = quick(learner).fit(
        X, [[repr(y) if kind != "str" else y for y in sentence] for sentence in gold]
    )
    back = {repr(y) if kind != "str" else y: y for sentence in gold for y in sentence}
    wanted = [[back[text] for text in sentence] for sentence in string_tagger.predict(X)]
    assert named(tagger.model_) == named(string_tagger.model_)
    tagger.save(tmp_path / "m")
    for one in (
        tagger,
        tw.load(tmp_path / "m"),
        pickle.loads(pickle.dumps(tagger)),
        copy.deepcopy(tagger),
        Model.load(tmp_path / "m"),
    ):
        assert same(one.predict(X), wanted)
        if isinstance(one, tw.Tagger):
            assert same([list(one.classes_)], [[back[text] for text in string_tagger.classes_]])
            lists = one.predict_kbest(X, 2)
            assert same([y for paths in lists for y, _ in paths[:1]], wanted)
            assert one.score(X, gold) == string_tagger.score(
                X, [[repr(y) if kind != "str" else y for y in s] for s in gold]
            )
    again = tmp_path / "again"
    tw.load(tmp_path / "m").save(again)
    assert again.read_bytes() == (tmp_path / "m").read_bytes()


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        (np.array([["a", "b"]]), [["a", "b"]]),
        ([np.array([3, 4], dtype=np.int8)], [[3, 4]]),
        ([[np.float32(0.5), np.float32(1.0)]], [[0.5, 1.0]]),
        ([np.array([True, False])], [[True, False]]),
        ([[np.str_("a"), "b"]], [["a", "b"]]),
        (([1, np.int64(2)],), [[1, 2]]),
    ],
    ids=str,
)
def test_numpy_labels_become_python_objects(given: Any, wanted: list[list[Any]]) -> None:
    """NumPy arrays and scalars can be trained on, and predictions are Python objects."""
    assert same(tw.Perceptron(features="S1").fit([["u", "v"]], given).predict([["u", "v"]]), wanted)


@pytest.mark.parametrize(
    ("y", "message"),
    [
        ([["a", "b"], ["a", 1]], r"sentence 1, token 1: the label 1 is int, but 'a' of sentence 0, token 0 is str"),
        ([[1, 2], [1, True]], r"sentence 1, token 1: the label True is bool, but 1 of sentence 0, token 0 is int"),
        ([[1, 2], [1.5, 2]], r"sentence 1, token 0: the label 1.5 is float, but 1 of sentence 0"),
        ([["a", "b"], [b"a", "b"]], r"sentence 1, token 0: the label b'a' is bytes, expected a string, an integer"),
        ([["a", "b"], [object, "b"]], r"sentence 1, token 0: the label <class 'object'> is type"),
        ([[0.5, 1.5], [float("nan"), 0.5]], r"sentence 1, token 0: the label is nan"),
        ([["a", "b"], ["a", np.float64("nan")]], r"sentence 1, token 1: the label is nan"),
        ([1, 2], r"sentence 0 \(y\[0\]\) is int, expected a list of labels"),
        ("ab", r"y is str, expected a list with one list of labels per sentence"),
        (["ab", "ab"], r"sentence 0 \(y\[0\]\) is a string, expected a list of labels"),
    ],
    ids=str,
)  # fmt: skip
@pytest.mark.parametrize("learner", ["crf", "perceptron", "hmm"])
def test_mixed_and_unsupported_types_are_rejected(learner: str, y: Any, message: str) -> None:
    with pytest.raises(tw.exceptions.CorpusError, match=message):
        quick(learner).fit([["u", "v"], ["u", "v"]], y)


def test_label_type_persists_in_dev_sets_and_further_training() -> None:
    """In dev sets, continued training, growing label sets, and scores of lists."""
    ints, texts = renamed("int"), renamed("str")
    for wrong in (
        lambda: tw.CRF(max_iter=1).fit(X, ints, dev=X, dev_y=texts),
        lambda: tw.CRF(max_iter=1).fit(X, texts, warm_start=tw.CRF(max_iter=1).fit(X, ints)),
        lambda: tw.Perceptron().partial_fit(X, ints).partial_fit(X, texts),
        lambda: tw.evaluate(ints, texts),
    ):
        with pytest.raises(tw.exceptions.CorpusError, match="Give labels of one type"):
            wrong()
    grown = tw.Perceptron(max_iter=1).fit(X, ints).partial_fit([["new"]], [[9]])
    assert grown.classes_[-1] == 9
    assert tw.evaluate(ints, ints).accuracy == 1.0


def test_arguments_accept_labels_of_the_trained_type() -> None:
    """Allowed labels, sets of labels, costs, constraints, confidences."""
    ints = renamed("int")
    tagger = tw.CRF(
        features="S1", max_iter=5, class_weight={7: 7.0}, constraints={"forbidden": [(0, 0)], "once": [7]}
    )
    tagger.fit(X, ints)
    assert tagger.predict([["the", "dog"]], allowed=[[7, {-100, 0}]])[0][0] == 7
    assert 0 not in tagger.predict([["the", "the"]], constraints={"forbidden": [(0, 0), (None, 0)]})[0][:1]
    (one,) = tagger.predict_confidence(X[:1])
    assert same([one.labels], tagger.predict(X[:1]))
    (p,) = tagger.sequence_probability(X[:1], [one.labels])
    assert p == pytest.approx(one.probability, rel=1e-4)
    cost_calls: list[Any] = []
    tw.MIRA(max_iter=1, cost=lambda gold, guess: cost_calls.append((gold, guess)) or 1.0).fit(X, ints)
    assert {type(y) for pair in cost_calls for path in pair for y in path} == {int}
    partial = [[{0, -100} if y == 0 else None if y == 7 else y for y in sentence] for sentence in ints]
    assert set(tw.CRF(max_iter=3, partial=True).fit(X, [*partial[:-1], ints[-1]]).classes_) <= {0, -100, 7}
    lists = [[(0, -100) if y == 0 else [y] for y in sentence] for sentence in ints]
    assert set(tw.CRF(max_iter=3).fit(X, [*lists[:-1], ints[-1]]).classes_) == {0, -100, 7}


@pytest.mark.parametrize("kind", TYPES)
def test_explanations_use_labels_of_the_trained_type(kind: str) -> None:
    """All decisions, a token against a label, and a path against another. The votes are those of strings."""
    gold = renamed(kind)
    tagger, string_tagger = (
        quick("crf").fit(X, gold),
        quick("crf").fit(X, [[f"{y}" for y in s] for s in gold]),
    )
    (path,) = tagger.predict(X[:1])
    other = next(y for y in tagger.classes_ if y != path[1])
    for given in ({}, {"token": 1}, {"token": 1, "against": other}, {"against": [other] * len(path)}):
        texts = {name: str(x) if name == "against" else x for name, x in given.items()}
        if isinstance(given.get("against"), list):
            texts["against"] = [str(y) for y in given["against"]]
        found, wanted = (
            tagger.explain(X[0], **given),
            string_tagger.explain(X[0], **texts),
        )
        assert len(found) == len(wanted) > 0
        for one, two in zip(found, wanted):
            assert same([list(one.labels)], [path])
            assert {type(y) for y in one.other} == {type(other)}
            assert (str(one.label), str(one.runner_up), one.title) == (two.label, two.runner_up, two.title)
            assert one.votes == two.votes


def test_command_line_writes_integer_labels(tmp_path: Path) -> None:
    """A model of integer labels tags and evaluates files, whose labels are text."""
    ints = renamed("int")
    model, file = tmp_path / "m", tmp_path / "in.tsv"
    tagger = tw.CRF(features="S1", max_iter=20).fit(X, ints)
    tagger.save(model)
    rows = ["".join(f"{w}\t{y}\n" for w, y in zip(*pair)) + "\n" for pair in zip(X, ints)]
    file.write_text("".join(rows))
    for more in ((), ("--marginals",), ("--nbest", "2")):
        result = invoke("tag", model, file, *more)
        assert result.exit_code == 0, result.stderr
        assert "-100" in result.stdout
    assert invoke("eval", model, file).exit_code == 0
    assert "-100" in invoke("inspect", model).stdout
    assert invoke("errors", model, file).stdout.startswith("0 wrong tokens in 0 of ")
    file.write_text(file.read_text().replace("\t-100\n", "\t7\n", 1))
    assert "7 taken for -100  1 (100 %)" in invoke("errors", model, file).stdout
    explained = invoke("explain", model, " ".join(X[0]), "--token", 1, "--against", "-100")
    assert explained.exit_code == 0, explained.stderr
    assert "against -100 (" in explained.stdout
    refused = invoke("explain", model, " ".join(X[0]), "--token", 1, "--against", "-101")
    assert "the model has no label '-101' (did you mean '-100'?). It has: " in refused.stderr


def test_unknown_label_types_in_files_are_rejected(tmp_path: Path) -> None:
    """The file's schema is checked on writing and on reading."""
    model = tw.CRF(max_iter=1).fit(X, Y).model_
    with pytest.raises(
        tw.exceptions.ModelFileError, match=r"label_type: expected one of str, int.*found 'colour'"
    ):
        replace(model, label_type="colour").save(tmp_path / "m")
    replace(model, label_type="int").save(tmp_path / "m")
    with pytest.raises(
        tw.exceptions.ModelFileError,
        match=r"labels: expected texts of type int, the label_type of the file, found 'NOUN'",
    ):
        tw.load(tmp_path / "m")

"""Tests of round trips: files, pickles and copies of every kind of model keep all parts and behaviour."""

from __future__ import annotations

import bz2
import copy
import gzip
import io
import json
import lzma
import math
import pickle
from collections.abc import Callable
from dataclasses import fields, is_dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tagwise as tw
from tagwise import _core
from tagwise.base.parameters import checked_parameters
from tagwise.decoding.lookback import DocumentState
from tagwise.estimators import LEARNERS
from tagwise.model import Model
from tagwise.model.prune import prune
from tagwise.scores.kernels import KernelScorer

from ..golden import corpus
from ..golden.kinds import EDGES, KINDS, PLAIN, fitted
from ..golden.names import further_back, named

# --- comparisons --------------------------------------------------------------------------------------------


def parts(model: Model) -> dict[str, Any]:
    """Return all parts of a model, field by field, as arrays and plain values."""
    scorer, recipe = model.scorer, model.recipe
    out: dict[str, Any] = {
        "labels": model.labels,
        "meta": json.loads(json.dumps(model.meta)),  # pairs are lists in a file
        "local": scorer.local,
        "weights": scorer.weights,
        "layout": scorer.layout.arrays(),
        "n_attributes": scorer.layout.n_attributes,
        "vocabulary": model.vocabulary.arrays(),
        "locked": model.vocabulary.locked,
        "recipe": [getattr(recipe, name) for name in ("kind", "text", "columns", "token_column", "lists")],
        "functions": recipe.functions,
        "derived_columns": [
            column.to_json() for part in (recipe, *recipe.parts) for column in part.derived_columns
        ],
        "parts": [part.to_json() for part in recipe.parts],
        "arrays": model.arrays,
        "constraints": model.constraints,
        "rules": model.rules,
        "lookback": None,
        "dictionary": None,
        "kernel": None,
    }
    if model.lookback is not None:
        past = model.lookback
        out["lookback"] = (past.m, past.p, past.document, past.tuples, past.weights)
    if model.dictionary is not None:
        out["dictionary"] = (model.dictionary.sets, dict(model.dictionary.of))
    if isinstance(scorer, KernelScorer):
        out["kernel"] = (scorer.kernel, scorer.arrays())
    else:
        out["edge_scores"] = scorer.edge_scores
    return out


def differences(a: Any, b: Any, place: str = "") -> list[str]:
    """Return the places where two structures differ.

    Arrays are compared by type and to the bit, so -0.0 differs from 0.0.
    """
    if isinstance(a, np.ndarray) or isinstance(b, np.ndarray):
        same = isinstance(a, np.ndarray) and isinstance(b, np.ndarray)
        same = same and a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()
        return [] if same else [place]
    if type(a) is not type(b):
        return [f"{place}: {type(a).__name__} and {type(b).__name__}"]
    if isinstance(a, dict):
        if a.keys() != b.keys():
            return [f"{place}: {list(a)} and {list(b)}"]
        return [d for key in a for d in differences(a[key], b[key], f"{place}.{key}")]
    if isinstance(a, (list, tuple)):
        if len(a) != len(b):
            return [f"{place}: {len(a)} and {len(b)} entries"]
        return [d for i, (x, y) in enumerate(zip(a, b)) for d in differences(x, y, f"{place}[{i}]")]
    if is_dataclass(a) and not isinstance(a, type):
        own = [f.name for f in fields(a)]
        return [d for name in own for d in differences(getattr(a, name), getattr(b, name), f"{place}.{name}")]
    if isinstance(a, float) and math.isnan(a) and math.isnan(b):
        return []
    return [] if a == b else [f"{place}: {a!r} and {b!r}"]


def attempt(action: Callable[[], Any]) -> Any:
    """Return the result of an action, or its error as text."""
    try:
        return action()
    except (tw.TagwiseError, ValueError) as error:
        return f"{type(error).__name__}: {error}"


def predictions(tagger: tw.Tagger, X: Any) -> dict[str, Any]:
    """Return the results of all prediction methods of a tagger."""
    lengths = [len(s) for s in corpus.words(corpus.TEST)]
    first, last = tagger.classes_[0], tagger.classes_[-1]
    allowed = [[[last] if t == 0 else [first, last] if t == 1 else None for t in range(n)] for n in lengths]
    found = tagger.predict(X)
    methods: dict[str, Callable[[], Any]] = {
        "pointwise": lambda: tagger.predict(X, decoder="pointwise"),
        "beam": lambda: tagger.predict(X, decoder="beam", beam=2),
        "allowed": lambda: tagger.predict(X, allowed=allowed),
        "free": lambda: tagger.predict_kbest(X, 2, constraints=False),
        "bio": lambda: tagger.predict_kbest(X, 2, constraints="bio"),
        "kbest": lambda: tagger.predict_kbest(X, 5),
        "probability": lambda: tagger.predict_kbest(X, 3, probability=True),
        "document state": lambda: [
            tagger.predict(X[i : i + 1], document_state=document_state) for i in range(len(lengths))
        ],
        "marginals": lambda: tagger.predict_marginals(X),
        "confidence": lambda: tagger.predict_confidence(X),
        "sequence": lambda: tagger.sequence_probability(X, found),
        "chunks": lambda: tagger.chunk_probability(X, [[("PER", 0, 1)], [("LOC", 0, 1)], [], []]),
        "explain": lambda: tagger.inspect(7),
        "rounds": lambda: getattr(tagger, "rounds_", None),
        "support": lambda: getattr(tagger, "n_support_", None),
    }
    document_state = DocumentState()
    out: dict[str, Any] = {name: attempt(method) for name, method in methods.items()}
    out |= {name: getattr(tagger, name) for name in ("classes_", "n_features_", "n_nonzero_")}
    return out | {"predict": found}


def check(tagger: tw.Tagger, other: tw.Tagger, name: str) -> None:
    """Another tagger has the parts and the predictions of this one."""
    assert type(other) is type(tagger)
    assert differences(parts(tagger.model_), parts(other.model_)) == []
    X = KINDS[name].test()
    assert differences(predictions(tagger, X), predictions(other, X)) == []


def replaced(tagger: tw.Tagger, model: Model) -> tw.Tagger:
    """Return the tagger with another model."""
    out = copy.copy(tagger)
    out.model_ = model
    return out


def saved(tagger: Any, path: Path, **options: Any) -> bytes:
    """Return the bytes of the file that a tagger or a model is saved as."""
    tagger.save(path, **options)
    return path.read_bytes()


# --- the table has every part -------------------------------------------------------------------------------


def test_model_kinds_cover_every_part() -> None:
    """Every part occurs in some kind of model, so that a lost part makes a test fail."""
    models = {name: fitted(name).model_ for name in KINDS}
    assert {kind.learner for kind in KINDS.values()} == set(LEARNERS.values())
    has = {name: parts(model) for name, model in models.items()}
    histories = [p["lookback"][:4] for p in has.values() if p["lookback"] is not None]
    settings = {(2, 1, False, True), (3, 1, False, True), (2, 3, False, False), (1, math.inf, False, False)}
    assert settings <= set(histories)
    assert {document for *_, document, _ in histories} == {True, False}
    kernels = {p["kernel"][0].name for p in has.values() if p["kernel"] is not None}
    assert kernels == {"linear", "poly", "rbf", "function"}
    assert {p["recipe"][0] for p in has.values()} == {"template", "function", "sum", "attributes"}
    rules = [p["constraints"] for p in has.values() if p["constraints"] is not None]
    for name in ("scheme", "forbidden", "required", "once"):
        assert any(getattr(rule, name) for rule in rules), name
    for name in ("edges", "starts", "ends", "pair"):
        assert any(p["layout"][name].size for p in has.values()), name
    assert {p["local"] for p in has.values()} == {True, False}
    assert any(p["arrays"] for p in has.values())
    assert any(p["recipe"][4] and any(p["recipe"][4]) for p in has.values())
    assert any(len(p["dictionary"][0]) > 2 for p in has.values() if p["dictionary"] is not None)
    assert any(not p["layout"]["starts"].size for p in has.values())
    for p in has.values():
        if p["lookback"] is not None:
            assert np.count_nonzero(p["lookback"][4]) > 3
        if p["kernel"] is not None:
            assert np.count_nonzero(p["kernel"][1]["beta.value"]) > 3
    assert any(p["kernel"][1]["support.values"].size for p in has.values() if p["kernel"] is not None)
    assert fitted("crf-odd").classes_[0] == ""
    texts = models["crf-attributes"].vocabulary.texts()
    assert "" in texts
    assert max(map(len, texts)) == 240


# --- copies -------------------------------------------------------------------------------------------------

COPIES: dict[str, Callable[[Any], Any]] = {
    **{
        f"pickle {protocol}": lambda x, protocol=protocol: pickle.loads(pickle.dumps(x, protocol))
        for protocol in range(2, pickle.HIGHEST_PROTOCOL + 1)
    },
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
}


@pytest.mark.parametrize("name", KINDS)
def test_pickles_and_copies_keep_every_part(name: str) -> None:
    """A copy of a tagger, or of its model alone, has every part, parameter and training attribute."""
    tagger = fitted(name)
    whole, rest = parts(tagger.model_), {k: v for k, v in vars(tagger).items() if k != "model_"}
    for method, trip in COPIES.items():
        other = trip(tagger)
        assert differences(whole, parts(other.model_)) == [], method
        left = {k: v for k, v in vars(other).items() if k != "model_"}
        assert differences(rest, left) == [], method
        assert differences(whole, parts(trip(tagger.model_))) == [], method
    check(tagger, pickle.loads(pickle.dumps(tagger)), name)


@pytest.mark.parametrize("name", KINDS)
def test_files_keep_every_part(name: str, tmp_path: Path) -> None:
    """A file has every part. Saved again, or by a copy, it has the same bytes."""
    tagger, path = fitted(name), tmp_path / "m.tagwise"
    whole = saved(tagger, path)
    other = tw.load(str(path), functions=corpus.FUNCTIONS)
    check(tagger, other, name)
    for again in (other, other.model_, Model.load(path), tagger.model_, pickle.loads(pickle.dumps(other))):
        assert saved(again, tmp_path / "again") == whole
    for attribute in ("objective_", "best_iteration_", "stopped_"):
        assert differences(getattr(tagger, attribute), getattr(other, attribute)) == []
    # Parameters are compared as checked, functions by name.
    mine, theirs = checked_parameters(tagger), checked_parameters(other)
    if isinstance(mine["features"], tw.Features):  # with its data, which the file's parameters lack
        mine["features"] = tagger.model_.recipe.spec
    elif not callable(mine["features"]):
        mine["features"] = tagger.model_.recipe.name
    if callable(mine.get("kernel")):
        assert theirs["kernel"] is mine["kernel"]
    assert theirs == mine
    assert tagger.model_.meta["params"].keys() == mine.keys() - {"n_jobs", "verbose"}


@pytest.mark.parametrize("name", KINDS)
def test_metadata_and_pruning_change_nothing_else(name: str, tmp_path: Path) -> None:
    """Entries are added to meta and nothing else changes. A pruned model has exactly the nonzero weights, by name."""
    tagger = fitted(name)
    model = tagger.model_.with_meta(note=[1, "ü"], learner="crf")
    before, after = parts(tagger.model_), parts(model)
    assert after.pop("meta") == {**before.pop("meta"), "note": [1, "ü"], "learner": "crf"}
    assert differences(before, after) == []
    model.save(tmp_path / "m")
    assert Model.load(tmp_path / "m").meta == parts(model)["meta"]
    tagger.save(tmp_path / "pruned", prune=True)
    small = tw.load(tmp_path / "pruned", functions=corpus.FUNCTIONS)
    X = KINDS[name].test()
    for one in (small, pickle.loads(pickle.dumps(small))):
        mine, theirs = predictions(tagger, X), predictions(one, X)
        mine.pop("n_features_"), theirs.pop("n_features_")
        assert differences(mine, theirs) == []
    # In memory too, where no file rebuilds the rules.
    bare, _ = prune(tagger.model_)
    assert differences(predictions(small, X), predictions(replaced(tagger, bare), X)) == []
    mine, theirs = parts(tagger.model_), parts(small.model_)
    for part in mine.keys() - {"weights", "layout", "vocabulary", "n_attributes", "arrays"}:
        assert differences(mine[part], theirs[part]) == [], part
    if not isinstance(small.model_.scorer, KernelScorer):
        assert np.all(small.model_.scorer.weights != 0.0)
        past = further_back(tagger.model_)
        kept = {k: w for k, w in named(tagger.model_).items() if w != 0.0 or k in past}
        assert named(small.model_) == kept


@pytest.mark.parametrize("name", KINDS)
def test_clones_train_to_the_same_file(name: str, tmp_path: Path) -> None:
    """A new tagger with the same parameters, a loaded one and a fitted one all train to the same file."""
    tagger, kind = fitted(name), KINDS[name]
    X, y = kind.train()
    clone = type(tagger)(**tagger.get_params())
    assert all(clone.get_params()[key] is value for key, value in tagger.get_params().items())
    assert not hasattr(clone, "model_")
    whole = saved(tagger, tmp_path / "m")
    clone.set_params(n_jobs=2, verbose=0).fit(X, y)
    assert saved(clone, tmp_path / "clone") == whole
    assert saved(clone.fit(X, y), tmp_path / "twice") == whole
    if kind.params.get("features") is not corpus.shapes:  # a loaded tagger has only the function's name
        assert (
            saved(tw.load(tmp_path / "m", functions=corpus.FUNCTIONS).fit(X, y), tmp_path / "loaded") == whole
        )


# --- single cases -------------------------------------------------------------------------------------------


def test_rounds_survive_pruning(tmp_path: Path) -> None:
    """A boosted model whose steps returned a weight to 0 keeps the feature, since its rounds name it."""
    X, y = KINDS["boosting"].train()
    tagger = tw.Boosting(features=PLAIN, max_iter=15, features_per_round=1).fit(X, y)
    model = tagger.model_
    layout = model.scorer.layout
    weights = model.scorer.weights.copy()
    weights[[0, 3]] = 0.0
    tagger.model_ = replace(model, scorer=_core.Scorer(layout, weights))
    tagger.save(tmp_path / "m", prune=True)
    assert tw.load(tmp_path / "m").rounds_ == tagger.rounds_
    # A feature that no round names is removed, and the others are renumbered.
    named = model.arrays["boosting.feature"]
    keep, others = np.ones(len(layout), dtype=np.bool_), named != named[0]
    unnamed = {name: array[others] for name, array in model.arrays.items()}
    keep[named[0]] = False
    tagger.model_ = replace(model, arrays=unnamed)
    expected = tagger.rounds_
    assert 0 < len(expected) == others.sum() < len(named)
    tagger.model_ = prune(tagger.model_, keep)[0]
    assert tagger.rounds_ == expected


def half_cost(gold: list[str], guess: list[str]) -> float:
    """A user-defined cost."""
    return 0.5 * sum(a != b for a, b in zip(gold, guess))


def test_cost_functions_are_saved_by_name(tmp_path: Path) -> None:
    """A model trained with a cost function can be saved. The loaded model resumes training once it has the function."""
    X, y = KINDS["mira"].train()
    tagger = tw.MIRA(features=PLAIN, max_iter=2, cost=half_cost).fit(X, y)
    whole = saved(tagger, tmp_path / "m", state=True)
    other = tw.load(tmp_path / "m")
    with pytest.raises(tw.exceptions.MissingFunctionError, match="half_cost"):
        other.partial_fit(X, y)  # type: ignore[attr-defined]
    other = tw.load(tmp_path / "m", functions={"half_cost": half_cost})
    assert other.cost is half_cost  # type: ignore[attr-defined]
    again = pickle.loads(pickle.dumps(tagger)).partial_fit(X, y)
    np.testing.assert_array_equal(other.partial_fit(X, y).model_.scorer.weights, again.model_.scorer.weights)
    assert (
        saved(tw.MIRA(features=PLAIN, max_iter=2, cost=half_cost).fit(X, y), tmp_path / "n", state=True)
        == whole
    )
    nameless = tw.MIRA(features=PLAIN, max_iter=2, cost=lambda a, b: half_cost(a, b)).fit(X, y)
    nameless.save(tmp_path / "o")
    loaded = tw.load(tmp_path / "o")
    assert loaded.predict(X) == nameless.predict(X) == tagger.predict(X)
    with pytest.raises(tw.exceptions.ParameterError, match="cost='function'"):
        loaded.fit(X, y)


def test_headers_round_trip_any_text(tmp_path: Path) -> None:
    """Labels, columns and entries of meta survive a round trip with any characters."""
    odd = ["", " ", '"', "\\", "é", "e\u0301", "\u00a0", "\U0001f600", "x" * 5000, "_", "|"]
    X = [[f"w{i}"] for i in range(len(odd))]
    tagger = tw.Perceptron(features="word[0]\n", max_iter=3).fit(X, [[label] for label in odd])
    tagger.model_ = tagger.model_.with_meta(**{f"k{text}": text for text in odd})
    tagger.save(tmp_path / "m")
    other = tw.load(tmp_path / "m")
    assert sorted(other.classes_) == sorted(odd)
    assert other.predict(X) == [[label] for label in odd]
    assert other.model_.meta == tagger.model_.meta
    columns = [{"a b": ["x", "y"], 'q"': ["1", "2"]}, {"a b": ["y"], 'q"': ["2"]}]
    crf = tw.CRF(features='"a b"[0]\n', max_iter=3).fit(columns, [["P", "Q"], ["Q"]])
    crf.save(tmp_path / "c")
    assert json.loads(tw.load(tmp_path / "c").model_.file.header)["features"]["columns"] == ["a b"]  # type: ignore[union-attr]
    assert tw.load(tmp_path / "c").predict(columns) == crf.predict(columns)


def test_copies_are_independent() -> None:
    """Changes of a copy do not affect the original, and vice versa."""
    X, y = KINDS["perceptron"].train()
    tagger = tw.Perceptron(features=EDGES, max_iter=2).fit(X, y)
    before = copy.deepcopy(parts(tagger.model_)), copy.deepcopy(tagger.history_), copy.deepcopy(tagger.state_)
    for trip in COPIES.values():
        other = trip(tagger)
        other.set_params(random_state=99).partial_fit([["Nils", "left"]], [["B-NEW", "O"]], max_iter=3)
        other.model_.meta["params"]["seed"] = -1
        assert "B-NEW" in other.classes_
        assert tagger.random_state == 0  # type: ignore[attr-defined]
        now = parts(tagger.model_), tagger.history_, tagger.state_
        assert differences(list(before), list(now)) == []


# --- corpora ------------------------------------------------------------------------------------------------


def sentences(**kinds: bool) -> list[tw.Sentence]:
    """Return sentences with documents, comments, further keys, and characters that are difficult for readers."""
    rows = [
        (
            "d 1",
            ("# newdoc id = d 1", "# text = Zoë\u00a0rained"),
            ["Zoë\u00a0", "it\u2028s", "#"],
            ["N", "V", "_"],
        ),
        (None, ("# sent = 2",), ["\u3000", "e\u0301\U0001f600", '"'], ["D\\", "-", "{"]),
        ("", ("# newdoc",), ["-X-", "1-2", "[0]"], ["B-A", "I-A", "O"]),
        (None, (), ["last"], ["O"]),
    ]
    out = []
    for i, (doc, comments, word, label) in enumerate(rows):
        fields = {"word": word, "lemma": [w + "x" for w in word], "upos": label}
        out.append(
            tw.Sentence(
                {
                    name: fields[name]
                    for name in ("word", "lemma", "upos")
                    if name == "word" or kinds["columns"]
                },
                "upos" if kinds["columns"] else None,
                doc=doc if kinds["documents"] else None,
                comments=comments if kinds["comments"] else (),
                meta={"id": i, "more": {"a": [1, None]}} if kinds["meta"] else None,
            )
        )
    return out


#: Contents of each format, options for writing, options for reading.
FORMATS: dict[str, tuple[dict[str, bool], dict[str, Any], dict[str, Any]]] = {
    "conll": (
        {"columns": True, "documents": True, "comments": True, "meta": False},
        {"comments": True},
        {"columns": ("word", "lemma", "upos"), "label": "upos", "comments": True},
    ),
    "conllu": (
        {"columns": True, "documents": True, "comments": True, "meta": False},
        {}, {"columns": ("word", "lemma", "upos")},
    ),
    "jsonl": ({"columns": True, "documents": True, "comments": True, "meta": True}, {}, {"label": "upos"}),
    "text": ({"columns": False, "documents": False, "comments": False, "meta": False}, {}, {}),
}  # fmt: skip
CHANGES: dict[str, Callable[[bytes], bytes]] = {
    "plain": lambda b: b,
    "BOM": lambda b: b"\xef\xbb\xbf" + b,
    "CRLF": lambda b: b.replace(b"\n", b"\r\n"),
    "CRLF and BOM": lambda b: b"\xef\xbb\xbf" + b.replace(b"\n", b"\r\n"),
    "no last line end": lambda b: b.rstrip(b"\n"),
    "blank lines around": lambda b: b"\n\n" + b + b"\n\n\n",
    "gz": gzip.compress,
    "gz, BOM, CRLF": lambda b: gzip.compress(b"\xef\xbb\xbf" + b.replace(b"\n", b"\r\n")),
    "xz": lzma.compress,
    "bz2": bz2.compress,
    "two gz": lambda b: gzip.compress(b[: len(b) // 2]) + gzip.compress(b[len(b) // 2 :]),
}


@pytest.mark.parametrize("format", FORMATS)
def test_corpora_round_trip_in_every_format(format: str, tmp_path: Path) -> None:
    """Every format restores columns, label, documents, comments and further keys."""
    holds, how, back = FORMATS[format]
    given = tw.Corpus(sentences(**holds))
    out = io.BytesIO()
    tw.write(given, out, format, **how)
    for name, change in CHANGES.items():
        found = tw.read(io.BytesIO(change(out.getvalue())), format, **back)
        assert list(found) == list(given), name
        assert (found.columns, found.label) == (given.columns, given.label), name
        assert found.documents == given.documents, name
    for ending in ("", ".gz", ".xz", ".bz2"):
        path = tmp_path / f"c.{format}{ending}"
        tw.write(given, path, format, **how)
        assert tw.read(path, format, **back) == given
        assert tw.read(str(path), format, **back).source == str(path)
        again = tmp_path / f"again{ending}"
        tw.write(tw.read(path, format, **back), again, format, **how)
        assert again.read_bytes() == path.read_bytes()
    assert (tmp_path / f"c.{format}").read_bytes() == out.getvalue()
    for copied in (pickle.loads(pickle.dumps(given)), copy.deepcopy(given), given[:2] + given[2:]):
        assert copied == given
        assert copied.documents == given.documents


def test_document_boundaries_from_comments_and_marks() -> None:
    """With marks, comments or both, documents begin at the same sentences. Their names need the comments."""
    holds, _, back = FORMATS["conll"]
    given = tw.Corpus(sentences(**holds))
    starts = {(True, True): ["d 1", None, "", None], (True, False): ["", None, "", None]}
    for (documents, comments), wanted in {**starts, (False, True): starts[True, True]}.items():
        out = io.StringIO()
        tw.write(given, out, "conll", documents=documents, comments=comments)
        found = tw.read(io.StringIO(out.getvalue()), "conll", **back)
        assert [s.doc for s in found] == wanted
        assert found.documents == given.documents == [range(2), range(2, 4)]
        assert [s.comments for s in found] == [s.comments if comments else () for s in given]
        lines = out.getvalue().split("\n")
        assert [lines[s.line - 1].split("\t")[0] for s in found] == [s.tokens[0] for s in given]

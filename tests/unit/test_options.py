"""Parameter objects: values, equality, representation, validation, and their form in model files."""

from __future__ import annotations

import copy
import dataclasses
import json
import math
import pickle
from pathlib import Path
from typing import Any

import pytest

import tagwise as tw
from tagwise.base.options import DICTIONARY, KERNEL, LOOKBACK, PARTIAL, Option

X, Y = [["the", "cat"], ["a", "dog"], ["cat"]], [["D", "N"], ["D", "N"], ["N"]]

OPTIONS: dict[str, tuple[Any, Option, str]] = {
    "dictionary": (DICTIONARY, tw.Dictionary(3, share=0.25), "Dictionary(min_count=3, share=0.25)"),
    "partial": (PARTIAL, tw.Partial(separator="/", unknown="?"), "Partial(separator='/', unknown='?')"),
    "lookback": (LOOKBACK, tw.Lookback(2, math.inf, 9, True), "Lookback(m=2, p=inf, pool=9, document=True)"),
    "poly": (
        KERNEL,
        tw.Poly(3, 0.5, 2.0, "rows", cache_mb=8, budget=9),
        "Poly(degree=3, coef=0.5, gamma=2.0, form='rows', cache_mb=8, budget=9)",
    ),
    "rbf": (KERNEL, tw.RBF(0.5, cache_mb=8, budget=9), "RBF(gamma=0.5, cache_mb=8, budget=9)"),
    "linear": (KERNEL, tw.Kernel("linear", cache_mb=8, budget=9), "Kernel(function='linear', cache_mb=8, budget=9)"),
    "function": (KERNEL, tw.Kernel("a:b", cache_mb=8, budget=9), "Kernel(function='a:b', cache_mb=8, budget=9)"),
}  # fmt: skip


@pytest.mark.parametrize("name", OPTIONS)
def test_objects_are_frozen_values(name: str) -> None:
    """They compare by value, cannot be changed, and their repr in one line builds an equal object."""
    _, option, shown = OPTIONS[name]
    assert repr(option) == shown
    assert eval(shown, {**vars(tw), **{k: getattr(tw, k) for k in tw.__all__}, "inf": math.inf}) == option
    assert copy.deepcopy(option) == option == pickle.loads(pickle.dumps(option))
    assert hash(copy.deepcopy(option)) == hash(option)
    first = next(iter(option.FIELDS))
    with pytest.raises(dataclasses.FrozenInstanceError):
        setattr(option, first, 1)


@pytest.mark.parametrize("name", OPTIONS)
def test_every_field_counts_and_survives_a_file(name: str) -> None:
    """Objects that differ in one field are unequal, and JSON keeps every field."""
    domain, option, _ = OPTIONS[name]
    assert domain.convert(json.loads(json.dumps(option.to_json(), allow_nan=False))) == option
    for one in dataclasses.fields(option):  # type: ignore[arg-type]
        if one.name == "p" and isinstance(option, tw.Lookback):
            continue  # `pool` needs the p of this object
        if one.init and one.default is not dataclasses.MISSING:
            assert dataclasses.replace(option, **{one.name: one.default}) != option  # type: ignore[type-var]


def test_invalid_fields_are_rejected_when_the_object_is_made() -> None:
    for make, message in (
        (lambda: tw.Dictionary(0), "Dictionary.min_count=0: expected integer >= 1"),
        (lambda: tw.Dictionary(share=1.5), "Dictionary.share=1.5: expected number >= 0 and <= 1"),
        (lambda: tw.Lookback(4), "Lookback.m=4: expected integer >= 1 and <= 3"),
        (lambda: tw.Lookback(1, 0), "Lookback.p=0: expected integer >= 1, or inf"),
        (lambda: tw.Lookback(pool=1), "Lookback.pool=1: expected integer >= 2"),
        (lambda: tw.Lookback(1, 2, pool=9), "Lookback.pool=9 needs p=inf, found p=2"),
        (lambda: tw.Poly(0), "Poly.degree=0: expected integer >= 1 and <= 64"),
        (lambda: tw.Poly(form="fast"), "Poly.form='fast': expected one of auto, rows, expanded"),
        (lambda: tw.Poly(3, form="expanded"), "Poly.form='expanded' needs degree=1 or 2, found degree=3"),
        (lambda: tw.RBF(0.0), "RBF.gamma=0.0: expected number > 0"),
        (lambda: tw.RBF(budget=0), "RBF.budget=0: expected integer >= 1"),
        (lambda: tw.Kernel("poly"), "Kernel.function='poly': expected a function"),
        (lambda: tw.Kernel(3), "Kernel.function=3: expected a function"),
        (lambda: tw.Partial(unknown=3), "Partial.unknown=3: expected text"),
    ):
        with pytest.raises(tw.exceptions.ParameterError, match=f"^{message.replace('.', '[.]')}"):
            make()


@pytest.mark.parametrize("domain", [DICTIONARY, LOOKBACK, KERNEL, PARTIAL])
def test_empty_text_is_not_a_short_form(domain: Any) -> None:
    """Only on the command line, an empty value means None."""
    with pytest.raises(ValueError, match="expected "):
        domain.convert("")


@pytest.mark.parametrize(
    ("tagger", "message"),
    [
        (tw.MIRA(lookback=(1, 2), parts=2), "lookback requires parts=1, found parts=2"),
        (tw.Perceptron(lookback=(1, 2), mode="batch"), "lookback requires mode='online', found mode='batch'"),
        (tw.CRF(partial=True, constraints="auto"), "requires constraints=None, found constraints='auto'"),
    ],
)
def test_combinations_that_are_not_supported_name_both_parameters(tagger: tw.Tagger, message: str) -> None:
    with pytest.raises(tw.exceptions.ParameterError, match=message):
        tagger.fit(X, Y)


def test_labels_of_a_missing_dev_set_are_an_error() -> None:
    for tagger in (tw.CRF(), tw.MIRA()):
        with pytest.raises(
            tw.exceptions.ParameterError, match="dev_y has the labels of dev, which is missing"
        ):
            tagger.fit(X, Y, dev_y=Y)
    with pytest.raises(tw.exceptions.ParameterError, match="dev_y has the labels of dev, which is missing"):
        tw.MIRA().fit(X, Y).partial_fit(X, Y, dev_y=Y)


def test_unknown_settings_of_a_text_are_named() -> None:
    with pytest.raises(ValueError, match=r"Poly has no parameter 'degre' \(did you mean 'degree'"):
        KERNEL.parse("poly:degre=3")


@pytest.mark.parametrize(
    ("learner", "params"),
    [
        (tw.CRF, {"dictionary": tw.Dictionary(2, share=0.1)}),
        (tw.CRF, {"partial": tw.Partial(separator="/")}),
        (tw.MIRA, {"lookback": tw.Lookback(1, math.inf, pool=4)}),
        (tw.Perceptron, {"kernel": tw.Poly(3, budget=5)}),
        (tw.HMSVM, {"kernel": tw.RBF(0.5)}),
        (tw.HMSVM, {"slack": ("sequence", 9)}),
    ],
)
def test_loaded_taggers_have_the_same_objects(
    learner: type[tw.Tagger], params: dict[str, Any], tmp_path: Path
) -> None:
    learner(features="S1", max_iter=2, **params).fit(X, Y).save(tmp_path / "m")
    loaded = tw.load(tmp_path / "m")
    for name, value in params.items():
        assert getattr(loaded, name) == value
    assert loaded.fit(X, Y).predict(X) == learner(features="S1", max_iter=2, **params).fit(X, Y).predict(X)

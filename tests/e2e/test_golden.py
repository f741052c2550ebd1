"""Golden model files load and predict the same in every version."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tagwise as tw
from tagwise._core import Vocabulary, encode_attributes
from tagwise.estimators import LEARNERS
from tagwise.features import resolve
from tagwise.features.patterns import DIALECTS
from tagwise.features.schema import DERIVED_COLUMN
from tagwise.model import Model, schema

from ..golden import corpus, make
from ..golden.kinds import EVERY
from .files import read

EXPECTED = make.read()
#: SHA-256 of the sentences that the files were trained on.
SENTENCES = "835ceae35ff45cf65dbc95649c69dd4a32a26ce60e55744a925463b68660876a"
#: Optional and required fields of a header.
ALWAYS = {"tagwise", "labels", "features", "n_attributes", "meta"}
HEADER = ALWAYS | {"local", "label_type", "lookback", "constraints", "kernel", "arrays"}


def path_of(name: str) -> Path:
    return make.FOLDER / f"{name}.tagwise"


def test_every_row_has_a_golden_file() -> None:
    """One file for each row, no file without a row, and a small total size."""
    files = {path.stem: path.stat().st_size for path in make.FOLDER.glob("*.tagwise")}
    assert files == {name: entry["bytes"] for name, entry in EXPECTED.items()}
    assert files.keys() >= make.SAVED.keys()
    assert max(files.values()) <= 15_000
    assert sum(files.values()) <= 600_000


def places_with_values(value: Any, place: str = "") -> set[str]:
    """Return every place of a header that has a value: `features.kind=sum`, `lookback.pool`, ..."""
    if isinstance(value, dict):
        inner = {key: inside for key, inside in value.items() if not key.startswith("params")}
        return set().union(
            *(places_with_values(inside, f"{place}.{key}" if place else key) for key, inside in inner.items())
        )
    if isinstance(value, list):
        return {place}.union(*(places_with_values(inside, place) for inside in value))
    return {place, f"{place}={value}"}


def test_golden_files_cover_every_part_of_the_format() -> None:
    """Every value allowed by the schema and every group of arrays. A part without a file could break unnoticed."""
    headers, arrays = zip(*(read(path_of(name)) for name in EXPECTED))
    found = set().union(*(places_with_values(header) for header in headers))
    wanted = {f"label_type={kind}" for kind in schema.LABEL_TYPES if kind != "str"}
    wanted |= {f"features.kind={kind}" for kind in schema.FEATURES.kinds}
    wanted |= {f"features.derived_columns.kind={kind}" for kind in DERIVED_COLUMN.kinds}
    wanted |= {f"kernel.name={name}" for name in schema.KERNEL.kinds}
    wanted |= {f"constraints.{part}" for part in schema.CONSTRAINTS.may}
    wanted |= {f"features.dialect={name}" for name in DIALECTS if name != "wapiti-auto"}  # has no lines
    wanted |= {"features.vectors.size", "features.lists", "features.parts", "lookback.pool", "lookback.p=inf"}
    wanted |= {"lookback.document=True", "lookback.tuples=True", "local=True", "meta.state.steps"}
    assert wanted <= found, wanted - found
    assert {name for group in schema.GROUPS.values() for name in group} <= set().union(*arrays)
    learners = {header["meta"]["learner"] for header in headers}
    assert learners == set(LEARNERS)


@pytest.mark.parametrize("name", EXPECTED)
def test_golden_predictions_are_reproduced(name: str) -> None:
    """Labels, best paths with scores, and marginals equal those at the time of writing."""
    tagger, entry = tw.load(path_of(name), functions=corpus.FUNCTIONS), EXPECTED[name]
    kind = make.ALL[make.SAVED[name][0]]
    X = kind.test()
    assert isinstance(tagger, kind.learner)
    assert list(tagger.classes_) == entry["labels"]
    assert tagger.n_features_ == entry["n_features"]
    assert tagger.predict(X) == entry["predict"]
    for found, wanted in zip(tagger.predict_kbest(X, 3), entry["kbest"], strict=True):
        assert [path for path, _ in found] == [path for path, _ in wanted]
        np.testing.assert_allclose([s for _, s in found], [s for _, s in wanted], rtol=1e-5, atol=1e-6)
    if "marginals" not in entry:
        with pytest.raises(tw.exceptions.ParameterError, match=r"probabilit|marginals"):
            tagger.predict_marginals(X)
        return
    for found, wanted in zip(tagger.predict_marginals(X), entry["marginals"], strict=True):
        np.testing.assert_allclose(found, wanted, atol=1.5e-5)


@pytest.mark.parametrize("name", EXPECTED)
def test_golden_files_round_trip(name: str, tmp_path: Path) -> None:
    """Loading and saving a file keeps its header and all its arrays."""
    _, how = make.SAVED[name]
    tagger = tw.load(path_of(name))
    tagger.save(tmp_path / "m", **({"state": True} if "state" in how else {}))
    (old, arrays), (new, again) = read(path_of(name)), read(tmp_path / "m")
    assert set(old) <= HEADER
    assert set(old) >= ALWAYS
    assert old.pop("tagwise")
    assert new.pop("tagwise") == tw.__version__
    assert {part: new.get(part) for part in old} == old
    assert again.keys() >= arrays.keys()
    for part, array in arrays.items():
        assert again[part].dtype == array.dtype
        np.testing.assert_array_equal(again[part], array, err_msg=part)


@pytest.mark.parametrize("name", EXPECTED)
def test_attribute_keys_equal_those_of_golden_files(name: str) -> None:
    """Encoded training sentences have, text by text, the keys in the file."""
    model = Model.load(path_of(name), functions=corpus.FUNCTIONS)
    kind = make.ALL[make.SAVED[name][0]]
    vocabulary = Vocabulary()
    if kind.view in ("vectors", "vectors and words"):  # numbers in vectors have the keys of their names
        encode_attributes(vocabulary, [[[f"vector[{j}]" for j in range(3)]]])
    if kind.view != "vectors":
        model.recipe.encode(kind.train()[0], vocabulary)
    now = dict(zip(vocabulary.texts(), vocabulary.arrays()[0].tolist()))
    then = dict(zip(model.vocabulary.texts(), model.vocabulary.arrays()[0].tolist()))
    assert len(then) > (2 if kind.view == "vectors" else 5)
    if kind.through in ("crfpp", "wapiti"):
        then.pop("B", then.pop("b", None))  # plain label pairs, a text in their files that no token has
    assert then == {text: now[text] for text in then}


@pytest.mark.parametrize("name", [name for name, (_, how) in make.SAVED.items() if "state" in how])
def test_golden_training_state_can_be_trained_further(name: str) -> None:
    """A file with the training state can be trained further and learns new sentences."""
    tagger: Any = tw.load(path_of(name))
    state = EXPECTED[name]["state"]
    assert tagger.model_.meta["state"] == state
    kept = tagger._state()
    assert (kept["steps"], kept["epochs"]) == (state["steps"], state["epochs"])
    np.testing.assert_allclose(
        kept["weights"] - (kept["sums"] / kept["steps"]), tagger.model_.scorer.weights, rtol=1e-5, atol=1e-6
    )
    if name.startswith("arow"):
        assert min(kept["variance"]) < 2.0 == max(kept["variance"])
    X, y = make.ALL[make.SAVED[name][0]].train()
    tagger.partial_fit([*X, ["Nils"]], [*y, ["NEW"]], max_iter=30)
    assert tagger.predict([["Nils"]]) == [["NEW"]]
    assert tagger.state_["epochs"] == state["epochs"] + 30
    assert tagger.state_["steps"] == state["steps"] + 30 * (len(X) + 1)


# --- keys ---------------------------------------------------------------------------------------------------

TEXTS = {
    "": 0xE173CB3D9EFA2720, "a": 0xA558FB8D9B53BD6B, "w=Oslo": 0xC8ACA679DE828B8A, "word[0]=Oslo": 0xFA346AD9D00D8306,
    "Ä ö:é\t=": 0x2666236B65D6619D, "名" * 30: 0x0FD7E2CBB2F7134D, "long" * 60: 0x06464E7D85E8A05B,
}  # fmt: skip
TEMPLATES = {
    "word[0]=Dr.": 0x73A322E0C3E03DB2, "word[0].suffix(3)=Dr.": 0xFD0E2BE6ED4898C8,
    "word[0].shape=Aa.": 0x9BD01B216834C43D, "word[0].initial=upper": 0xE650424D80193356,
    "word[0].has_upper?": 0x85E57C5451EDF72E, "word[1].suffix(1)=2": 0xD1D67D40F8D160B0,
    "near=McCain's-2": 0xF1ABB9C721F7A668, "first": 0x64B7F5DDBF1F60ED, "word[-1].suffix(1)=.": 0x86AD3644FE68CCF2,
    "word[0].has_digit?": 0xA9209F74D7D54711,
    'word[0].starts_with("M","L")?': 0x1B41B92B7A7379A7,
    "tail='s-2": 0xF8BF1C097C4CA9EE, "word[-2]=Dr.": 0x1A6592CE6B97DFDB, "word[0].is_alnum?": 0xD9F2A0836197C295,
    "word[0].is_lower?": 0x69BAD88BCA3F7225,
    "edge: word[0].short_shape=AaAa'a-0": 0x24962E2CF7CBB497,
    "edge: word[-1].suffix(1)=.": 0xCAFEA9F79E08F37B,
}  # fmt: skip
DIGEST = "d7bde7ebe2a75e790aa0afeabc79ded21e50f5c67378ded7b5239f4326b8b5c2"
SENTENCE = ["Dr.", "McCain's-2", "SAW", "1,234", "Straße", "é", "."]


def keys_of_templates() -> dict[str, int]:
    """Return the keys of all attributes of a sentence under every rule of the language."""
    vocabulary = Vocabulary()
    recipe = resolve(EVERY, ["word"]).learned([SENTENCE, SENTENCE[:3]])
    recipe.encode([SENTENCE], vocabulary)
    return dict(zip(vocabulary.texts(), vocabulary.arrays()[0].tolist()))


def test_keys_of_listed_attributes_are_stable() -> None:
    """Attributes in lists: the key is a hash of the text, equal on every machine and in every version."""
    vocabulary = Vocabulary()
    encode_attributes(vocabulary, [[list(TEXTS)]])
    assert dict(zip(vocabulary.texts(), vocabulary.arrays()[0].tolist())) == TEXTS


def test_keys_of_template_attributes_are_stable() -> None:
    """Attributes of templates: the key is mixed from the rule and its values."""
    found = keys_of_templates()
    assert {text: found[text] for text in TEMPLATES} == TEMPLATES
    assert len(found) == 164
    assert hashlib.sha256(json.dumps(sorted(found.items())).encode()).hexdigest() == DIGEST


# --- the script ---------------------------------------------------------------------------------------------


def test_golden_training_sentences_are_unchanged() -> None:
    """Golden files were trained on these sentences. Changing them makes the files impossible to reproduce."""
    text = corpus.TEXT + corpus.TEST_TEXT
    assert hashlib.sha256(text.encode()).hexdigest() == SENTENCES

"""Model files of CRFsuite, Wapiti and CRF++: reading, byte-identical writing, use like any other model."""

from __future__ import annotations

import math
import struct
from itertools import pairwise, product
from pathlib import Path

import numpy as np
import pytest

import tagwise as tw
from tagwise.base.exceptions import ModelFileError
from tagwise.features.escape import decode_name, encode_name
from tagwise.features.recipe import Recipe
from tagwise.model.formats import crfpp, crfsuite, darts, wapiti
from tagwise.model.formats.chain import FeatureWeights, ForeignModel
from tagwise.model.model import Model

from . import samples

#: Bob Jenkins' hash of names including their NUL.
HASHES = {
    "": 0x8BA9414B, "X": 0xA5D829B7, "a": 0x42B17671, "b": 0xD98F2820, "O": 0xC87780E6, "B-LOC": 0x658F10E4,
    "é": 0x8A4CE77C, "word.lower=rainbow": 0xC6C27365,
}  # fmt: skip


def lcrf() -> bytes:
    """Return the model of two labels and two attributes."""
    codes = np.array([0, 3]), np.array([1, 2])
    state = struct.unpack("<2d", bytes.fromhex("092b5d0cf37fe43f 082b5d0cf37fe43f"))
    moves = struct.unpack("<2d", bytes.fromhex("81aa5fa57850d73f 80aa5fa57850d73f"))
    recipe = Recipe("attributes", "attributes")
    chain = ForeignModel(
        ("X", "Y"),
        ["a", "b"],
        FeatureWeights(codes[0], np.array(state)),
        FeatureWeights(codes[1], np.array(moves)),
        FeatureWeights.none(),
        recipe,
    )
    return crfsuite.write(chain)


def crfpp_model() -> bytes:
    return crfpp.write(crfpp.read_text(samples.CRFPP_TEXT))


SAMPLES = {
    "crfsuite": lcrf,
    "wapiti": lambda: samples.WAPITI,
    "crfpp-text": lambda: samples.CRFPP_TEXT,
    "crfpp": crfpp_model,
}


def test_cqdb_hash_and_table() -> None:
    """lookup3, including names longer than a block. The table has the hash and record offset of each name."""
    n = len(HASHES)
    node = FeatureWeights(np.arange(n), np.ones(n))
    recipe = Recipe("attributes", "attributes")
    data = crfsuite.write(
        ForeignModel(("X",), list(HASHES), node, FeatureWeights.none(), FeatureWeights.none(), recipe)
    )
    begin = struct.unpack_from("<12I", data)[9]
    for i, (name, value) in enumerate(HASHES.items()):
        table, slots = struct.unpack_from("<II", data, begin + 24 + 8 * (value & 255))
        found = dict(struct.iter_unpack("<II", data[begin + table : begin + table + 8 * slots]))
        record = struct.pack("<II", i, len(name.encode()) + 1) + name.encode() + b"\0"
        assert data[begin + found[value] :].startswith(record)


def test_written_bytes_equal_crfsuite() -> None:
    """The rows of an original file at their offsets. All other bytes are 0."""
    data = lcrf()
    assert len(data) == samples.LCRF_SIZE
    for at, row in samples.LCRF_ROWS.items():
        wanted = bytes.fromhex(row)
        assert data[at : at + len(wanted)] == wanted, hex(at)


@pytest.mark.parametrize("format", SAMPLES)
def test_reading_and_writing_is_byte_identical(format: str, tmp_path: Path) -> None:
    """Reading and writing a file is byte-identical, with and without our own format in between."""
    given = tmp_path / "given"
    given.write_bytes(SAMPLES[format]())
    tagger = tw.load(given)
    tagger.save(tmp_path / "again", format=format)
    assert (tmp_path / "again").read_bytes() == given.read_bytes()
    tagger.save(tmp_path / "ours.tagwise")
    tw.load(tmp_path / "ours.tagwise").save(tmp_path / "back", format=format)
    assert (tmp_path / "back").read_bytes() == given.read_bytes()


def test_signalling_nan_is_rejected_without_a_warning(tmp_path: Path) -> None:
    """The last weight of a CRF++ model is a signalling NaN: an error without a warning."""
    path = tmp_path / "m"
    path.write_bytes(crfpp_model()[:-4] + bytes.fromhex("0100a07f"))
    with pytest.raises(ModelFileError, match="nan"):
        tw.load(path)


def test_crfpp_text_models_convert_to_binary() -> None:
    """A text model written as a binary one keeps labels, texts and codes. Weights are rounded to float32."""
    text = crfpp.read_text(samples.CRFPP_TEXT)
    binary = crfpp.read(crfpp.write(text))
    assert binary.labels == text.labels
    assert list(binary.texts) == list(text.texts)
    assert binary.node.codes.tolist() == text.node.codes.tolist()
    assert np.array_equal(binary.node.weights, text.node.weights.astype(np.float32))


def score(
    labels: tuple[str, ...], node: dict, edge: dict, path: tuple[str, ...], rows: list[list[str]]
) -> float:
    total = sum(node.get((name, y), 0.0) for y, row in zip(path, rows) for name in row)
    return total + sum(edge.get(pair, 0.0) for pair in pairwise(path))


def test_wapiti_probabilities_match_enumeration(tmp_path: Path) -> None:
    """Sums over all paths of a sentence, with the weights listed in the file."""
    path = tmp_path / "x.wapiti"
    path.write_bytes(samples.WAPITI)
    tagger = tw.load(path)
    words, tags = ["sheep", "naïve", "sheep"], ["DT", "NN", "x"]
    rows = [["u00:sheep", "u01:_x-1"], ["u00:naïve", "u01:dt"], ["u00:sheep", "u01:nn"]]
    labels = ("N", "V")
    X = [{"word": words, "x1": tags}]
    paths = list(product(labels, repeat=3))
    scores = [score(labels, samples.WAPITI_NODE, samples.WAPITI_EDGE, p, rows) for p in paths]
    best = max(range(len(paths)), key=lambda i: scores[i])
    assert tagger.predict(X) == [list(paths[best])]
    z = sum(map(math.exp, scores))
    for t, y in product(range(3), labels):
        wanted = sum(math.exp(s) for p, s in zip(paths, scores) if p[t] == y) / z
        assert tagger.model_.marginals(X)[0][t][labels.index(y)] == pytest.approx(wanted, abs=1e-6)
    ranked = [(list(paths[i]), scores[i]) for i in sorted(range(8), key=lambda i: -scores[i])]
    found = tagger.model_.kbest(X, 8)[0]
    assert [p for p, _ in found] == [p for p, _ in ranked]
    assert tagger.predict(X, allowed=[["V", None, None]])[0][0] == "V"


def test_crfpp_probabilities_match_enumeration(tmp_path: Path) -> None:
    """Sums over all paths for CRF++, which also has label pairs combined with words."""
    path = tmp_path / "crfpp.model"
    path.write_bytes(crfpp_model())
    tagger = tw.load(path)
    X = [{"word": ["a", "b"], "x1": ["p", "q"]}]
    node = {("a", "N"): 0.5 + 0.75, ("a", "V"): -0.25 + 0.3, ("b", "N"): -0.0625, ("b", "V"): 1.25}
    edge = {("N", "N"): 0.1 + 0.125, ("N", "V"): -0.5, ("V", "N"): -1.5, ("V", "V"): 2.0 + 0.375}
    paths = list(product("NV", repeat=2))
    scores = [node["a", p[0]] + node["b", p[1]] + edge[p] for p in paths]
    z = sum(map(math.exp, scores))
    found = tagger.model_.kbest(X, 4, probability=True)[0]
    wanted = sorted(((math.exp(s) / z, list(p)) for p, s in zip(paths, scores)), reverse=True)
    assert [p for p, _ in found] == [p for _, p in wanted]
    assert [x for _, x in found] == pytest.approx([x for x, _ in wanted], abs=1e-6)


def test_crfsuite_models_support_every_operation(tmp_path: Path) -> None:
    """Its probability is the original's. It can be explained, inspected and constrained like any other."""
    path = tmp_path / "x.crfsuite"
    path.write_bytes(lcrf())
    tagger = tw.load(path)
    assert tagger.model_.marginals([[["a"]]])[0][0][0] == pytest.approx(samples.LCRF_PROBABILITY, abs=1e-6)
    assert tagger.classes_ == ("X", "Y")
    assert tagger.predict([[["a"], ["b"]], [["unknown"]]]) == [["X", "Y"], ["X"]]
    assert tagger.predict([[["a"]]], allowed=[["Y"]]) == [["Y"]]
    assert "a" in str(tagger.inspect())
    assert tagger.explain([["a"], ["b"]])


def test_darts_array_layout_matches_the_original() -> None:
    """Keys are found in order, and the array ends 257 units after the last one in use."""
    keys = sorted([b"B", b"U00:a", b"U00:ab", b"U01:\xff", b"U"])
    values = [7, 0, 3, 12, 5]
    units = darts.built(keys, values)
    assert dict(darts.keys_of(units, 1 << 20)) == dict(zip(keys, values))
    used = np.flatnonzero(units["check"])
    assert len(units) == used[-1] + 1 + 257
    assert units["base"][0] == 1


def test_names_that_are_not_utf8_round_trip() -> None:
    """Bytes survive a round trip, and distinct names stay distinct."""
    names = [
        b"\xff",
        b"a\xc3",
        "\U0010ff80".encode(),
        "\U0010ffff".encode(),
        b"\xf4\x8f\xbe\x80\xff",
        "é".encode(),
    ]
    assert [encode_name(decode_name(name)) for name in names] == names
    assert len({decode_name(name) for name in names}) == len(names)


def test_models_with_names_that_are_not_utf8(tmp_path: Path) -> None:
    """A model with such names can be read, used for tagging, and written back unchanged."""
    chain = ForeignModel(
        (decode_name(b"\xfe"), "Y"),
        [decode_name(b"\xff"), "b"],
        FeatureWeights(np.array([0, 3]), np.array([1.0, 1.0])),
        FeatureWeights.none(),
        FeatureWeights.none(),
        Recipe("attributes", "attributes"),
    )
    data = crfsuite.write(chain)
    (tmp_path / "x").write_bytes(data)
    model = Model.load(tmp_path / "x")
    assert model.predict([[["b"]]]) == [["Y"]]
    assert model.exported("crfsuite") == data


@pytest.mark.parametrize(
    ("params", "format", "message"),
    [
        ({}, "crfsuite", "first and last labels"),
        ({"start_end": False}, "wapiti", "features"),
        ({"start_end": False}, "crfpp", "features"),
        ({"start_end": False, "features": "U00:%x[0,0]\nB01:%x[0,0]"}, "crfsuite", "label pairs"),
        ({"start_end": False}, "crfsuit", "expected one of tagwise, .*did you mean 'crfsuite'"),
    ],
)
def test_inexpressible_models_are_rejected_before_writing(
    params: dict, format: str, message: str, tmp_path: Path
) -> None:
    """The error names it, and no file is written."""
    X, y = [["a", "b"], ["b", "a"]], [["N", "V"], ["V", "N"]]
    tagger = tw.CRF(**{"features": "S1", "max_iter": 3, **params}).fit(X, y)
    with pytest.raises(ModelFileError, match=message):
        tagger.save(tmp_path / "x", format=format)
    assert not (tmp_path / "x").exists()


@pytest.mark.parametrize(
    ("features", "format"),
    [
        ("S1", "crfsuite"),
        ("U00:%x[0,0]\nU01:%x[-1,0]\nB01:%x[0,0]", "crfpp"),
        ("U00:%x[0,0]\nB", "crfpp-text"),
        ('u:%x[0,0]\nu:%t[0,0,"^\\u"]\n*:%m[-1,0,".$"]\nb', "wapiti"),
    ],
)
def test_our_models_predict_equally_in_foreign_formats(features: str, format: str, tmp_path: Path) -> None:
    """A trained model that the format can express makes equal predictions after a round trip."""
    X, y = [["a", "b", "A"], ["b", "a"], ["A"]], [["N", "V", "N"], ["V", "N"], ["P"]]
    tagger = tw.CRF(features=features, start_end=False, max_iter=10).fit(X, y)
    tagger.save(tmp_path / "x", format=format)
    back = tw.load(tmp_path / "x")
    given = X
    if format == "crfsuite":
        given = [tagger.model_.recipe.render(words) for words in X]
    assert back.predict(given) == tagger.predict(X)
    ours = [p for _, p in tagger.model_.kbest(X, 3, probability=True)[0]]
    theirs = [p for _, p in back.model_.kbest(given, 3, probability=True)[0]]
    assert theirs == pytest.approx(ours, abs=1e-6)


DAMAGED = {
    "cut": lambda data: data[:-1],
    "half": lambda data: data[: len(data) // 2],
    "head": lambda data: data[:49],
    "more": lambda data: data + b"x",
}


@pytest.mark.parametrize(
    ("format", "damage"), [pair for pair in product(SAMPLES, DAMAGED) if pair != ("crfsuite", "more")]
)
def test_truncated_and_extended_files_are_rejected(format: str, damage: str, tmp_path: Path) -> None:
    """A truncated file or one with trailing bytes is an error that names the file."""
    path = tmp_path / "x"
    path.write_bytes(DAMAGED[damage](SAMPLES[format]()))
    with pytest.raises(ModelFileError, match=str(path)):
        tw.load(path)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b"#mdl#2", b"#mdl#3"), (b"#mdl#2#9", b"#mdl#2#8"), (b"11=", b"12="), (b"0=0x1p-1", b"1=0x1p-1"),
        (b"9:u00:sheep", b"9:x00:sheep"), (b"6:u01:dt", b"8:u01:_x-1"), (b"6:u01:dt", b"99999999999:u01:dt"),
        (b"#qrk#5", b"#qrk#99999999999999"), (b"1:N,", b"0:,"), (b"0x1p+1", b"nan"), (b"0x1p+1", b"0x1p+999"),
        (b"%x[0,0]", b"%q[0,0]"), (b"\n1:b,", b"\r\n1:b,"),
    ],
)  # fmt: skip
def test_every_wapiti_check_rejects_a_file(old: bytes, new: bytes) -> None:
    """Each check of the format, with a file that only this check rejects."""
    from tagwise.model.formats.chain import parts_of

    assert old in samples.WAPITI
    with pytest.raises(ModelFileError):
        parts_of(wapiti.read(samples.WAPITI.replace(old, new, 1)))


def test_old_wapiti_headers_are_read() -> None:
    """#mdl# without a type is a maxent model, #rdr# without AUTO has none."""
    old = samples.WAPITI.replace(b"#mdl#2#", b"#mdl#").replace(b"/1/0", b"/1")
    assert wapiti.read(old).about["type"] == wapiti.MAXENT


def test_empty_crfsuite_models_are_read() -> None:
    """Training on nothing leaves 4,236 bytes, which can be read but label nothing."""
    none = ForeignModel(
        (),
        [],
        FeatureWeights.none(),
        FeatureWeights.none(),
        FeatureWeights.none(),
        Recipe("attributes", "attributes"),
    )
    data = crfsuite.write(none)
    assert len(data) == 4236
    assert crfsuite.read(data).labels == ()


def test_the_command_converts_models(tmp_path: Path) -> None:
    """A round trip restores the bytes. Options of corpora and formats that are not model formats are refused."""
    from click.testing import CliRunner

    from tagwise.cli.app import cli
    from tagwise.cli.convert import convert

    given, ours, back = (str(tmp_path / name) for name in ("x.crfsuite", "x.tagwise", "y.crfsuite"))
    Path(given).write_bytes(lcrf())
    run = CliRunner().invoke
    assert run(convert, [given, ours]).exit_code == 0
    assert run(convert, [ours, back]).exit_code == 0
    assert Path(back).read_bytes() == lcrf()
    for wrong in ([given, back, "--scheme", "IOB2"], [given, back, "--to", "jsonl"], [given]):
        assert run(convert, wrong).exit_code == 2
    assert cli.load("convert") is convert

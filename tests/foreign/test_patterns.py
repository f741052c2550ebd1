"""Patterns and regular expressions of Wapiti and templates of CRF++: equal to the original programs."""

from __future__ import annotations

import random
import string
import time
from pathlib import Path

import pytest

import tagwise as tw
from tagwise._core import WapitiRegex
from tagwise.base.exceptions import TagwiseError, TemplateError
from tagwise.features.escape import encode_name
from tagwise.features.patterns import Patterns
from tagwise.features.resolve import resolve

CLASSES = {
    "a": str.isalpha,
    "d": str.isdigit,
    "l": str.islower,
    "u": str.isupper,
    "p": lambda c: c in string.punctuation,
    "s": str.isspace,
    "w": str.isalnum,
}


def fits(item: str, text: str) -> bool:
    """Return whether one item of an expression matches the first letter of a text."""
    if not text:
        return False
    if item == ".":
        return True
    if item[0] == "\\" and len(item) > 1 and item[1].lower() in CLASSES:
        return CLASSES[item[1].lower()](text[0]) != item[1].isupper()
    return item[-1] == text[0]


def matched(regex: str, text: str, length: list[int]) -> bool:
    """Match as documented for Wapiti: by recursion, with a count that failures do not reset."""
    if not regex:
        return True
    if regex == "$":
        return not text
    size = 2 if regex[0] == "\\" and len(regex) > 1 else 1
    item, rest = regex[:size], regex[size:]
    if rest[:1] == "*":
        saved, n = length[0], 0
        while True:
            length[0] = saved + n
            if matched(rest[1:], text[n:], length):
                return True
            if not fits(item, text[n:]):
                return False
            n += 1
    if rest[:1] == "?":
        if fits(item, text):
            length[0] += 1
            if matched(rest[1:], text[1:], length):
                return True
            length[0] -= 1
        return matched(rest[1:], text, length)
    length[0] += 1
    return fits(item, text) and matched(rest, text[1:], length)


def search(regex: str, text: str) -> tuple[int, int] | None:
    begins = range(1) if regex.startswith("^") else range(len(text) + 1)
    for begin in begins:
        length = [0]
        if matched(regex.removeprefix("^"), text[begin:], length):
            return begin, length[0]
    return None


def test_random_expressions_match_wapiti() -> None:
    """Positions and lengths of matches, including lengths that are too long."""
    rng, tried = random.Random(5), 0
    while tried < 3000:
        regex = "".join(
            rng.choice(["a", "b", ".", "\\u", "\\D", "\\w", "*", "?", "$", "^", "\\*", "B"])
            for _ in range(rng.randint(1, 6))
        )
        try:
            compiled = WapitiRegex(regex.encode())
        except TemplateError:
            continue
        tried += 1
        for _ in range(5):
            text = "".join(rng.choice("abBX1*^$") for _ in range(rng.randint(0, 6)))
            assert compiled.find(text.encode()) == search(regex, text), (regex, text)


@pytest.mark.parametrize("regex", [rb"\d.*\p", b"a*a*a*b", b".*.*.*.*.*x", b"a*" * 40 + b"b"])
def test_search_time_is_items_times_bytes(regex: bytes) -> None:
    """Search time does not grow with the square of the text."""
    compiled, text = WapitiRegex(regex), b"1" + b"a" * 100_000
    begin = time.process_time()
    assert compiled.find(text) is None
    assert time.process_time() - begin < 0.02 * len(regex)


def test_long_expressions_do_not_overflow_the_stack() -> None:
    """An expression of a hundred thousand items does not overflow the stack."""
    assert WapitiRegex(b"a?" * 100_000).find(b"aab") == (0, 2)
    patterns = Patterns.of("wapiti", 'u:%t[0,0,"' + "a*" * 5_000 + 'b"]')
    assert patterns.node([["aab", "aac"]]) == [["u:true"], ["u:false"]]


def test_tokens_are_encoded_once_per_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rendering time is proportional to the tokens of a sentence."""
    seen: list[str] = []
    monkeypatch.setattr(
        "tagwise.features.patterns.encode_name", lambda text: seen.append(text) or encode_name(text)
    )
    Patterns.of("wapiti", 'u1:%t[0,0,"a"]\nu2:%m[0,0,"b"]').node([["p", "q", "r"]])
    assert sorted(text for text in seen if text in "pqr") == ["p", "q", "r"]


@pytest.mark.parametrize(
    ("pattern", "wanted"),
    [
        ("u:%x[-1,0]", ["u:_x-1", "u:The", "u:DOG"]),
        ("U:%X[1,0]", ["u:dog", "u:b?", "u:_x+1"]),
        ("u:%x[-9,0]", ["u:_x-#", "u:_x-#", "u:_x-#"]),
        ("u:%x[@1,0]/%x[@-1,1]", ["u:The/c"] * 3),
        ("u:%x[@9,0]", ["u:_x+#"] * 3),
        ('u:%t[0,0,"^\\u"]', ["u:true", "u:true", "u:false"]),
        ('u:%m[0,0,"\\u*$"]-', ["u:-", "u:DOG-", "u:-"]),
        ('u:%M[0,0,"^.?.?"]', ["u:th", "u:do", "u:b?"]),
        ('u:%m[0,0,"a?ab"]!', ["u:!", "u:!", "u:!"]),
        ('u:%t[0,0,"\\?"] # a comment', ["u:false", "u:false", "u:true"]),
    ],
)
def test_patterns_of_wapiti(pattern: str, wanted: list[str]) -> None:
    """Commands, offsets from either end, positions outside the sentence, case, comments."""
    columns = [["The", "DOG", "b?"], ["a", "b", "c"]]
    assert [row[0] for row in Patterns.of("wapiti", pattern).node(columns)] == wanted


def test_matches_beyond_the_token_end() -> None:
    """It ends the observation like the byte after the token. Inside the token it is too long."""
    patterns = Patterns.of("wapiti", 'u:%m[0,0,"a?ab"]!')
    assert patterns.node([["ab", "abX"]]) == [["u:ab"], ["u:abX!"]]


def test_label_pair_patterns() -> None:
    """b and * apply from the second token on. The plain b is not an attribute."""
    patterns = Patterns.of("wapiti", "b\n*:%x[0,0]\nb1:%x[0,0]")
    assert patterns.edge([["p", "q"]]) == [[], ["*:q", "b1:q"]]
    assert patterns.node([["p", "q"]]) == [["*:p"], ["*:q"]]
    assert patterns.bare == "b"


@pytest.mark.parametrize(
    "text",
    ["x:%x[0,0]", "u:%q[0,0]", "u:%x[0]", 'u:%t[0,0,"a]', "u:%t[0,0]", 'u:%m[0,0,"*a"]', "u:%x[0,0", "u:100%"],
)  # fmt: skip
def test_invalid_wapiti_patterns_are_reported_by_line(text: str) -> None:
    """The error gives the line number."""
    with pytest.raises(TemplateError, match="line 1"):
        Patterns.of("wapiti", text)


def test_crfpp_templates_match_our_template_reader() -> None:
    """Equal to our own template reader at every token, except for the plain label pair."""
    text = "U00:%x[-2,0]/%x[1,1]\n# comment\nU01:%x[0,1]\nB01:%x[0,0]\nB"
    columns = [["a", "b", "c"], ["x", "y", "z"]]
    patterns = Patterns.of("crfpp", text)
    ours = resolve(text, ["word", "pos"]).render({"word": columns[0], "pos": columns[1]})
    node, edge = patterns.node(columns), patterns.edge(columns)
    assert [sorted([*a, *b]) for a, b in zip(node, edge)][1:] == [sorted(row) for row in ours][1:]
    assert node[0] == ["U00:_B-2/y", "U01:x"]
    with pytest.raises(TemplateError):
        Patterns.of("crfpp", "U:%x[9,0]")


def test_training_with_patterns() -> None:
    """Wapiti patterns are a recipe. Text that CRF++ can read too is a CRF++ template."""
    X, y = [["Ann", "runs"], ["dogs", "run"]], [["P", "V"], ["N", "V"]]
    tagger = tw.CRF(features='u:%t[0,0,"^\\u"]\nu:%X[0,0]\nb').fit(X, y)
    assert tagger.predict(X) == y
    assert tagger.model_.recipe.kind == "patterns"
    assert resolve("U00:%x[0,0]\nB", ["word"]).kind == "template"
    with pytest.raises(TagwiseError, match="column"):
        tw.CRF(features='u:%t[0,3,"a"]').fit(X, y)


def test_loaded_tagger_continues_training_with_its_patterns(tmp_path: Path) -> None:
    """The features come from the file, not from a name that cannot be resolved."""
    X, y = [["Ann", "runs"], ["dogs", "run"]], [["P", "V"], ["N", "V"]]
    tw.CRF(features="u:%X[0,0]\nb", start_end=False).fit(X, y).save(tmp_path / "x", format="wapiti")
    again = tw.load(tmp_path / "x").fit(X, y)
    assert again.predict(X) == y
    assert again.model_.recipe.text == "u:%X[0,0]\nb"
    again.save(tmp_path / "ours")
    assert tw.load(tmp_path / "ours").fit(X, y).model_.recipe == again.model_.recipe

"""Regular expressions over tokens: matches equal those of `re`, and no pattern is slow."""

from __future__ import annotations

import re
import threading
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tagwise._core import TokenRegex
from tagwise.base.exceptions import TemplateError


def matches(pattern: str, text: str, ignore_case: bool = False) -> bool:
    return TokenRegex(pattern, ignore_case).column([text]) == ["1"]


# --- what matches -------------------------------------------------------------------------------------------

ATOMS = [
    *("a", "b", "B", "0", "-", ".", "é", "ß", "٣"),
    *(r"\d", r"\D", r"\w", r"\W", r"\s", r"\.", r"\x61", r"\u00e9", r"\n"),
    *("[ab]", "[^a]", "[a-c0-2]", r"[\d_-]", r"[^\w]", "[]a]", "[^]]", r"[\]\-a]", "[.]"),
]


def patterns() -> st.SearchStrategy[str]:
    """Draw patterns with the same meaning in `re`."""

    def more(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
        grouped = inner.map(lambda p: f"(?:{p})")
        repeats = st.sampled_from(["*", "+", "?", "{2}", "{1,2}", "{0}", "{0,2}", "{1,}", "*?", "+?", "??"])
        return st.one_of(
            st.tuples(inner, inner).map("".join),
            st.tuples(inner, inner).map("|".join).map(lambda p: f"({p})"),
            st.tuples(grouped, repeats).map("".join),
        )

    return st.recursive(st.sampled_from([*ATOMS, ""]), more, max_leaves=8)


TEXTS = st.text(alphabet=list("abcB0129-._é٣ß \n]A"), max_size=6)


@given(patterns(), st.lists(TEXTS, min_size=1, max_size=5))
def test_matches_equal_those_of_re(pattern: str, texts: list[str]) -> None:
    wanted = ["1" if re.fullmatch(pattern, text) else "" for text in texts]
    assert TokenRegex(pattern).column(texts) == wanted, (pattern, texts)


@given(patterns().filter(str.isascii), st.lists(st.text("abcABC019-._", max_size=6), min_size=1, max_size=5))
def test_case_may_be_ignored(pattern: str, texts: list[str]) -> None:
    wanted = ["1" if re.fullmatch(pattern, text, re.IGNORECASE) else "" for text in texts]
    assert TokenRegex(pattern, ignore_case=True).column(texts) == wanted, (pattern, texts)


@pytest.mark.parametrize("pattern", ["^a+$", "a+$", "^a+", "^$", "a|b$", "(?P<x>a)+", r"x\{", r"\ba\b"])
def test_anchors_and_escapes_match_re(pattern: str) -> None:
    for text in ("", "a", "aa", "b", "x{"):
        assert matches(pattern, text) == (re.fullmatch(pattern, text) is not None), text


def test_classes_that_differ_from_re() -> None:
    """The differences stated in the documentation."""
    for pattern, text, ours in ((r"e\w", "e\u0301", True), (r"\w", "²", False), (r"\s", "\x1f", False)):
        assert matches(pattern, text) is ours
        assert (re.fullmatch(pattern, text) is not None) is not ours


def test_objects_that_are_not_valid_text_do_not_match() -> None:
    assert TokenRegex(".*").column(["a", None, 3, b"a", "\ud800", ""]) == ["1", "", "", "", "", "1"]


# --- what is refused ----------------------------------------------------------------------------------------

REFUSED = {
    r"(a)\1": "at character 3: backreferences are not supported", r"a(?=b)": "look-around", r"(?<!a)b": "look-around",
    "*a": "repetition operator missing expression", "é(a": "at character 1: unclosed group", "a)": "unopened group",
    "a)|(b": "unopened group", "[a": "unclosed character class", "[z-a]": "invalid character class range",
    "a{,2}": "repetition quantifier expects a valid decimal", "a{3,2}": "invalid repetition count range",
    r"\u12": "incomplete escape sequence", "(" * 60 + ")" * 60: "nested",
    "a" * 1001: "1001 characters, the limit is 1000", r"(\w{100}){100}": "its automaton takes more than",
    "((((a|b){200}|c){200}|d){200}|e){200}": "its automaton takes more than",
}  # fmt: skip


@pytest.mark.parametrize("pattern", REFUSED, ids=lambda p: p[:20])
def test_irregular_or_large_patterns_are_rejected(pattern: str) -> None:
    begin = time.process_time()
    with pytest.raises(TemplateError, match=re.escape(REFUSED[pattern])) as caught:
        TokenRegex(pattern)
    assert "\n" not in str(caught.value)
    assert time.process_time() - begin < 2.0


# --- time ---------------------------------------------------------------------------------------------------

#: Patterns that take exponential or quadratic time with backtracking, and a text for which they do.
HOSTILE = [
    ("(a+)+b", "a" * 100_000), ("(a|a)*b", "a" * 100_000), ("(a|aa)+b", "a" * 100_000), ("(.*)*=", "x" * 100_000),
    ("(a?){150}a{150}", "a" * 149), ("([ab]*[ab]*)*c", "ab" * 50_000), ("[ab]*a[ab]{150}", "ba" * 20_000 + "b" * 200),
]  # fmt: skip


@pytest.mark.parametrize(("pattern", "text"), HOSTILE)
def test_match_time_is_bounded_for_every_pattern(pattern: str, text: str) -> None:
    begin = time.process_time()
    assert not matches(pattern, text)
    assert time.process_time() - begin < 5.0


def test_threads_share_a_pattern() -> None:
    pattern = "[ab]*a[ab]{6}"
    found = TokenRegex(pattern)
    texts = [f"{i:012b}".replace("0", "a").replace("1", "b") for i in range(400)]
    wanted = ["1" if re.fullmatch(pattern, text) else "" for text in texts]
    seen: list[list[str]] = []
    threads = [threading.Thread(target=lambda: seen.append(found.column(texts))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert seen == [wanted] * 4

"""Regular expressions as automata: `re` is the judge of what matches, and no pattern takes long."""

from __future__ import annotations

import re
import threading
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tagwise.base.exceptions import TemplateError
from tagwise.features import automaton
from tagwise.features.automaton import Automaton

# --- what matches -------------------------------------------------------------------------------------------

ATOMS = [
    *("a", "b", "B", "0", "-", ".", "é", "ß", "٣"),
    *(r"\d", r"\D", r"\w", r"\W", r"\s", r"\.", r"\x61", r"\u00e9", r"\n"),
    *("[ab]", "[^a]", "[a-c0-2]", r"[\d_-]", r"[^\w]", "[]a]", "[^]]", r"[\]\-a]", "[.]"),
]


def patterns() -> st.SearchStrategy[str]:
    """Patterns of the syntax there is."""

    def more(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
        grouped = inner.map(lambda p: f"(?:{p})")
        repeats = st.sampled_from(
            ["*", "+", "?", "{2}", "{1,2}", "{0}", "{,2}", "{1,}", "{,}", "*?", "+?", "??"]
        )
        return st.one_of(
            st.tuples(inner, inner).map("".join),
            st.tuples(inner, inner).map("|".join).map(lambda p: f"({p})"),
            st.tuples(grouped, repeats).map("".join),
        )

    return st.recursive(st.sampled_from([*ATOMS, ""]), more, max_leaves=8)


TEXTS = st.text(alphabet=list("abcB0129-._é٣ß \n]A"), max_size=6)


@settings(max_examples=250, deadline=None)
@given(patterns(), st.lists(TEXTS, min_size=1, max_size=5))
def test_it_matches_what_re_matches(pattern: str, texts: list[str]) -> None:
    found = Automaton(pattern)
    for text in texts:
        assert found.matches(text) == (re.fullmatch(pattern, text) is not None), (pattern, text)


@settings(max_examples=100, deadline=None)
@given(patterns().filter(str.isascii), st.lists(st.text("abcABC019-._", max_size=6), min_size=1, max_size=5))
def test_case_may_be_ignored(pattern: str, texts: list[str]) -> None:
    found = Automaton(pattern, ignore_case=True)
    for text in texts:
        wanted = re.fullmatch(pattern, text, re.IGNORECASE) is not None
        assert found.matches(text) == wanted, (pattern, text)


@pytest.mark.parametrize(
    "pattern", ["^a+$", "a+$", "^a+", "^$", "a|b$", "(?P<x>a)+", "x{", "x{a}", "x{1", "{", "a{}"]
)
def test_ends_and_braces_are_read_as_re_reads_them(pattern: str) -> None:
    for text in ("", "a", "aa", "b", "x{", "x{a}", "x{1", "{", "a{}"):
        assert Automaton(pattern).matches(text) == (re.fullmatch(pattern, text) is not None), text


# --- what is refused ----------------------------------------------------------------------------------------

REFUSED = {
    r"(a)\1": "is not offered",
    r"a(?=b)": "only",
    r"(?<!a)b": "only",
    "(?i)a": "flags are parameters",
    r"\bword\b": "is not offered",
    "a^b": "matched as a whole",
    "a$b": "matched as a whole",
    "*a": "nothing before",
    "{2}a": "nothing before",
    "a**": "repeat of a repeat",
    "a++": "possessive",
    "(a": "not closed",
    "a)": "not opened",
    "[a": "ends too early",
    "a\\": "ends too early",
    "[z-a]": "a range goes",
    r"[a-\d]": "a range goes",
    r"[\d-z]": "a range goes",
    "a{3,2}": "smaller number first",
    "a{201}": "more than 200 times",
    r"\u12": "ends too early",
    r"\uzzzz": "digits of a character",
    r"\UFFFFFFFF": "digits of a character",
    "(?P<1>a)": "a name of a group",
    "(" * 60 + ")" * 60: "more than 50 deep",
    "a" * 1001: "at most 1,000 are taken",
    "(a{200}){6}": "more than 1000 states",
    "(((){200}){200}){200}": "more than 1000 states",
    "((((a|b){200}|c){200}|d){200}|e){200}": "more than 1000 states",
}


@pytest.mark.parametrize("pattern", REFUSED, ids=lambda p: p[:20])
def test_what_is_not_regular_or_too_large_is_refused(pattern: str) -> None:
    with pytest.raises(TemplateError, match=re.escape(REFUSED[pattern])) as caught:
        Automaton(pattern)
    assert "\n" not in str(caught.value)


# --- time and memory ----------------------------------------------------------------------------------------

#: Patterns that search without end by backtracking, and a text that makes them do so.
HOSTILE = [
    ("(a+)+b", "a" * 5000),
    ("(a|a)*b", "a" * 5000),
    ("(a|aa)+b", "a" * 5000),
    ("(.*)*=", "x" * 5000),
    ("(a?){150}a{150}", "a" * 149),
    ("([ab]*[ab]*)*c", "ab" * 2500),
]


class Steps(Automaton):
    """Counts the characters that are looked at by a set of states for the first time."""

    counted = 0

    def _step(self, states: int, c: str) -> int:
        self.counted += 1
        return super()._step(states, c)


@pytest.mark.parametrize(("pattern", "text"), HOSTILE)
def test_no_pattern_looks_at_a_character_twice(pattern: str, text: str) -> None:
    """The work is at most one step a character, whatever the pattern; most steps are remembered."""
    found = Steps(pattern)
    assert not found.matches(text)
    assert found.counted <= len(text)


def test_memory_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sets of states by the thousand: some are forgotten, and the answers stay right."""
    monkeypatch.setattr(automaton, "SETS", 20)
    monkeypatch.setattr(automaton, "REMEMBERED", 50)
    pattern = "[ab]*a[ab]{8}"
    found = Automaton(pattern)
    for number in range(600):
        text = f"{number * 2654435761 % 2**20:020b}".replace("0", "a").replace("1", "b")
        assert found.matches(text) == (re.fullmatch(pattern, text) is not None)
        assert len(found._steps.sets) <= 20 + 1
        assert found._steps.size <= 50


def test_threads_share_an_automaton(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(automaton, "SETS", 10)
    pattern = "[ab]*a[ab]{6}"
    found = Automaton(pattern)
    texts = [f"{i:012b}".replace("0", "a").replace("1", "b") for i in range(400)]
    wanted = [re.fullmatch(pattern, text) is not None for text in texts]
    seen: list[Any] = []
    threads = [
        threading.Thread(target=lambda: seen.append(list(map(found.matches, texts)))) for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert seen == [wanted] * 4

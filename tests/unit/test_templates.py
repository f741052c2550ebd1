"""The template language compared with a reference implementation in Python, and the laws of attribute identity."""

from __future__ import annotations

import itertools
import unicodedata
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tagwise._core import Template, Vocabulary, encode_tokens
from tagwise.base.exceptions import CorpusError, TemplateError
from tagwise.features.resolve import resolve
from tagwise.features.sets import is_crfpp

# --- reference implementation -------------------------------------------------------------------------------


def category(c: str) -> str:
    return unicodedata.category(c)


def shape(text: str) -> str:
    out = ""
    for c in text:
        k = category(c)
        out += (
            "A"
            if k in ("Lu", "Lt")
            else "a"
            if k[0] == "L"
            else "0"
            if k == "Nd"
            else ""
            if k[0] == "M"
            else c
        )
    return out


def initial(text: str) -> str | None:
    k = category(text[0]) if text else "Zs"
    return "lower" if k == "Ll" else "upper" if k in ("Lu", "Lt") else "alnum" if k[0] in "LN" else None


def kinds(text: str) -> list[str]:
    return ["Lu" if category(c) == "Lt" else category(c) for c in text]


FUNCTIONS: dict[str, Callable[[str], str | None]] = {
    "prefix(2)": lambda s: s[:2] if len(s) >= 2 else None,
    "suffix(3)": lambda s: s[-3:] if len(s) >= 3 else None,
    "lower": str.lower,
    "digits": lambda s: "".join("0" if category(c) == "Nd" else c for c in s),
    "shape": shape,
    "short_shape": lambda s: "".join(c for c, _ in itertools.groupby(shape(s))),
    "length": lambda s: str(len(s)),
    "initial": initial,
    "lower.suffix(1)": lambda s: s.lower()[-1:] or None,
}
TESTS: dict[str, Callable[[str], bool]] = {
    "is_capitalized?": lambda s: kinds(s)[:1] == ["Lu"],
    "is_upper?": lambda s: "Lu" in kinds(s) and "Ll" not in kinds(s),
    "is_lower?": lambda s: "Ll" in kinds(s) and "Lu" not in kinds(s),
    "is_title?": lambda s: kinds(s)[:1] == ["Lu"] and "Ll" in kinds(s)[1:] and "Lu" not in kinds(s)[1:],
    "is_digit?": lambda s: bool(s) and set(kinds(s)) == {"Nd"},
    "is_alpha?": lambda s: {k[0] for k in kinds(s)} in ({"L"}, {"L", "M"}),
    "is_alnum?": lambda s: (
        bool(s) and {k[0] for k in kinds(s)} <= set("LMN") and {k[0] for k in kinds(s)} != {"M"}
    ),
    "is_punct?": lambda s: bool(s) and {k[0] for k in kinds(s)} <= set("PS"),
    "is_number?": lambda s: "Nd" in kinds(s) and all(category(c) == "Nd" or c in ".,:/%+-\u2212" for c in s),
    "has_upper?": lambda s: "Lu" in kinds(s),
    "has_digit?": lambda s: "Nd" in kinds(s),
    "has_letter?": lambda s: "L" in {k[0] for k in kinds(s)},
    "has_hyphen?": lambda s: any(c in "-\u2010\u2011" for c in s),
    "has_dot?": lambda s: "." in s,
    "longer_than(2)?": lambda s: len(s) > 2,
    'starts_with("a")?': lambda s: s.startswith("a"),
    'ends_with("s","é")?': lambda s: s.endswith(("s", "é")),
    'contains("a")?': lambda s: "a" in s,
    'one_of("a","b")?': lambda s: s in ("a", "b"),
}

Part = tuple[str, int, str]  # column, offset, function or test or ""


def reference_text(parts: list[Part], pad: bool, sentence: dict[str, list[str]], t: int) -> str | None:
    """Return the text of one template's attribute at a token, or None."""
    shown = []
    for column, offset, function in parts:
        label = f"{column}[{offset}]" + ("." if function else "") + function
        n, at = len(sentence[column]), t + offset
        test = TESTS.get(function)
        if not 0 <= at < n:
            if test or not pad:
                return None
            shown.append(f"{label}=_B{at if at < 0 else at - n + 1:+d}")
        elif test:
            if not test(sentence[column][at]):
                return None
            shown.append(label)
        else:
            value = FUNCTIONS.get(function, lambda s: s)(sentence[column][at])
            if value is None:
                return None
            shown.append(f"{label}={value}")
    return " & ".join(shown)


# Characters that this Python knows. Unassigned ones may be assigned in the core's newer tables.
CHARACTERS = st.characters(exclude_categories=("Cs", "Cn"), max_codepoint=0xFFFF)
TEXTS = st.one_of(
    st.text(CHARACTERS, max_size=6),
    st.text("abAB.-'09éÉßΣσ日ि٣ǅ🙂", max_size=6),
    st.sampled_from(
        ["a", "b", "U.S.", "McCain's", "2010-11", "ΟΔΟΣ", "हिन्दी", "日本語", "مرحبا", "Ǆ", "e\u0301"]
    ),
)
SENTENCES = st.lists(st.tuples(TEXTS, TEXTS), max_size=5).map(
    lambda rows: {"word": [r[0] for r in rows], "pos": [r[1] for r in rows]}
)
OFFSETS = st.one_of(st.integers(-2, 2), st.integers(-7, 7))
PARTS = st.tuples(st.sampled_from(["word", "pos"]), OFFSETS, st.sampled_from(["", *FUNCTIONS, *TESTS]))
RULES = st.tuples(st.lists(PARTS, min_size=1, max_size=3), st.booleans())


def written(rules: list[tuple[list[Part], bool]]) -> str:
    lines = []
    for parts, pad in rules:
        text = " & ".join(f"{c}[{o}]" + ("." if f else "") + f for c, o, f in parts)
        lines.append(("pad: " if pad else "") + text)
    return "\n".join(lines)


@given(st.lists(RULES, min_size=1, max_size=4), SENTENCES)
def test_native_extraction_matches_the_reference(
    rules: list[tuple[list[Part], bool]], sentence: dict[str, list[str]]
) -> None:
    template = Template(written(rules), ["word", "pos"])
    distinct = [rule for i, rule in enumerate(rules) if rule not in rules[:i]]
    expected = [
        [text for parts, pad in distinct if (text := reference_text(parts, pad, sentence, t)) is not None]
        for t in range(len(sentence["word"]))
    ]
    columns = [sentence["word"], sentence["pos"]]
    assert template.render(columns) == expected
    vocab = Vocabulary()
    ptr, ids, values = encode_tokens(template, vocab, [columns]).node()
    texts = vocab.texts()
    assert [sorted(texts[i] for i in ids[a:b]) for a, b in itertools.pairwise(ptr)] == [
        sorted(r) for r in expected
    ]
    assert len(values) == 0


@given(st.lists(RULES, min_size=1, max_size=4), st.lists(SENTENCES, max_size=4))
def test_locked_vocabulary_finds_the_ids_of_the_growing_one(
    rules: list[tuple[list[Part], bool]], corpus: list[dict[str, list[str]]]
) -> None:
    """Encoding again with the locked vocabulary gives equal ids. A partial vocabulary finds the ids it has."""
    template = Template("edge: pos[0]\n" + written(rules), ["word", "pos"])
    X = [(s["word"], s["pos"]) for s in corpus]
    vocab, part = Vocabulary(), Vocabulary()
    grown = encode_tokens(template, vocab, X)
    encode_tokens(template, part, X[: len(X) // 2])
    occurrences = np.concatenate([grown.node()[1], grown.edge()[1]]).astype(np.int64)
    assert np.array_equal(vocab.counts(), np.bincount(occurrences, minlength=len(vocab)))
    vocab.lock()
    part.lock()
    again, partly = encode_tokens(template, vocab, X), encode_tokens(template, part, X)
    for a, b in zip([*grown.node(), *grown.edge()], [*again.node(), *again.edge()]):
        assert np.array_equal(a, b)
    known = set(part.texts())
    texts, fewer = vocab.texts(), part.texts()
    assert [texts[i] for i in grown.node()[1] if texts[i] in known] == [fewer[i] for i in partly.node()[1]]


@settings(max_examples=10)
@given(st.lists(RULES, min_size=1, max_size=6), st.integers(0, 2**32))
def test_extraction_does_not_depend_on_threads(rules: list[tuple[list[Part], bool]], seed: int) -> None:
    words = np.random.default_rng(seed).zipf(1.5, size=20_000) % 5000
    tokens = [f"w{i}" for i in words.tolist()]
    X = [(tokens[i : i + 25], tokens[-25 - i : len(tokens) - i]) for i in range(0, len(tokens), 25)]
    X = [(a, b[: len(a)]) for a, b in X]
    template = Template("edge: word[-1] & word[0]\n" + written(rules), ["word", "pos"])
    results = []
    for jobs in (1, 2, 4):
        vocab = Vocabulary()
        grown = encode_tokens(template, vocab, X, jobs)
        vocab.lock()
        locked = encode_tokens(template, vocab, X, jobs)
        assert all(np.array_equal(a, b) for a, b in zip(grown.node(), locked.node()))
        results.append([*grown.node(), *grown.edge(), *locked.node(), *locked.edge(), *vocab.arrays()])
    for other in results[1:]:
        assert all(np.array_equal(a, b) for a, b in zip(results[0], other))


@given(TEXTS, TEXTS, TEXTS, TEXTS)
def test_one_id_only_for_equal_values(a: str, b: str, c: str, d: str) -> None:
    """Values are separate parts: `x` and `&y` differ from `x&` and `y`."""
    template = Template("word[0] & pos[0]", ["word", "pos"])
    ids = encode_tokens(template, Vocabulary(), [([a, c], [b, d])]).node()[1]
    assert (ids[0] == ids[1]) == ((a, b) == (c, d))


def test_padding_differs_from_equal_text() -> None:
    ids = encode_tokens(Template("pad: word[-1]", ["word"]), Vocabulary(), [(["_B-1", "x"],)]).node()[1]
    assert ids[0] != ids[1]


@given(
    st.lists(st.integers(-9, 9), min_size=1, max_size=3), st.lists(st.integers(1, 9), min_size=1, max_size=3)
)
def test_lists_expand_to_every_combination(offsets: list[int], lengths: list[int]) -> None:
    text = f"word[{','.join(map(str, offsets))}].suffix({','.join(map(str, lengths))}) & word[0]"
    single = "\n".join(f"word[{o}].suffix({n}) & word[0]" for o in offsets for n in lengths)
    sentence = [["abcdefghij", "klmnopqrst", "uvwxyzabcd"]]
    assert Template(text, ["word"]).render(sentence) == Template(single, ["word"]).render(sentence)
    assert len(Template(text, ["word"])) == len(set(itertools.product(offsets, lengths)))


def test_positions_and_named_attributes() -> None:
    template = Template(
        'bias  # "quoted" comment\nfirst & word[0].lower\nlast\npair = word[0] & word[1]\n'
        "tail = word[0].suffix(1..2)\nbig = word[0].is_upper?",
        ["word"],
    )
    assert template.render([["The", "OX"]]) == [
        ["bias", "first & word[0].lower=the", "pair=The|OX", "tail[1]=e", "tail[2]=he"],
        ["bias", "last", "tail[1]=X", "tail[2]=OX", "big"],
    ]


def test_lines_of_one_name_share_attributes() -> None:
    vocab = Vocabulary()
    encode_tokens(Template("near = word[-1]\nnear = word[1]", ["word"]), vocab, [(["a", "b", "a"],)])
    assert vocab.texts() == ["near=b", "near=a"]


def test_marks_combine_and_hold_for_lines_below() -> None:
    template = Template("pad:\nword[-1]\nabsent: word[-2]\nedge absent: word[-1]\nabsent:\nword[1]", ["word"])
    assert template.has_edges
    assert template.render([["a", "b"]]) == [
        ["word[-1]=_B-1", "word[1]=b"],
        ["word[-1]=a", "edge: word[-1]=a"],
    ]


def test_edge_attributes_begin_at_the_second_token() -> None:
    data = encode_tokens(
        Template("edge: bias\nedge: word[0]\nword[0]", ["word"]), Vocabulary(), [(["a", "b"],), ([],)]
    )
    assert data.edge()[0].tolist() == [0, 0, 2]
    assert data.node()[0].tolist() == [0, 1, 2]


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("word", "no offset"), ("wrd[0]", "no column"), ("nothing", "unknown word"),
        ("word[0].foo", "unknown function"), ("word[0].is_upper", "question mark"), ("word[0].lower?", "not a test"),
        ("word[0].is_upper?.lower", "last of its part"), ("word[0].suffix", "needs an argument"),
        ("word[0].suffix(0)", "1 or more"), ("word[0].lower(1)", "takes no argument"), ("word[1..0]", "is empty"),
        ("word[0] word[1]", "unexpected"), ("word[0] &", "end of the line"), ("word[", "whole number"),
        ("word[0", "expected ']'"), ("word[99999]", "between"), ("word[-9999..9999].suffix(1..9)", "more than"),
        ("edge:", "nothing follows"), ("edges: word[0]", "before"), ('word[0].one_of("a)?', "does not end"),
        ("word[0].one_of()?", "a string"), ("$", "unexpected character"),
    ],
)  # fmt: skip
def test_errors_name_line_and_remedy(line: str, words: str) -> None:
    with pytest.raises(TemplateError, match=rf"^line 2: .*{words.replace('?', '.')}"):
        Template("bias\n" + line, ["word", "pos"])


@given(st.text(max_size=40) | st.text('word[-1..2]&.suffix(3)?:="#%xUBedgpa \n', max_size=40))
def test_any_text_compiles_or_is_refused(text: str) -> None:
    try:
        template = Template(text, ["word"])
    except TemplateError:
        return
    assert len(template.render([["a", "b"]])) == 2


def test_malformed_sentences_are_rejected() -> None:
    template = Template("word[0] & pos[0]", ["word", "pos"])
    for sentences, words in [
        ([(["a"], ["b", "c"])], 'column "pos" has 2 tokens, column "word" has 1'),
        ([(["a"],)], "has 1 columns"),
        ([(["a"], ["b"], ["c"])], "more than 2 columns"),
        ([(["a"], [3])], 'token 0, column "pos": expected a string, found int'),
        ([(["a"], ["\ud800"])], "lone surrogate"),
        ([("a", ["b"])], "expected a list of strings, found str"),
        (["ab"], "expected a list of 2 columns, found str"),
        (7, "expected a list of sentences, found int"),
    ]:
        with pytest.raises(CorpusError, match=words):
            encode_tokens(template, Vocabulary(), sentences)  # type: ignore[arg-type]


# --- CRF++ --------------------------------------------------------------------------------------------------

CHUNKING = """# Unigram
U00:%x[-2,0]
U01:%x[-1,0]
U02:%x[0,0]
U05:%x[-1,0]/%x[0,0]
U14:%x[-1,1]/%x[0,1]/%x[1,1]

# Bigram
B
B01:%x[0,1]
"""


def test_crfpp_template_renders_like_crfpp() -> None:
    recipe = resolve(CHUNKING, ["word", "pos"])
    assert recipe.render({"word": ["He", "ran"], "pos": ["PRP", "VBD"]}) == [
        ["U00:_B-2", "U01:_B-1", "U02:He", "U05:_B-1/He", "U14:_B-1/PRP/VBD"],
        ["U00:_B-1", "U01:He", "U02:ran", "U05:He/ran", "U14:PRP/VBD/_B+1", "B01:VBD"],
    ]
    assert recipe.has_edges


def test_crfpp_bag_of_words() -> None:
    vocab = Vocabulary()
    encode_tokens(Template("U:%x[-1,0]\nU:%x[1,0]", ["word"]), vocab, [(["a", "b", "a"],)])
    assert vocab.texts() == ["U:_B-1", "U:b", "U:a", "U:_B+1"]


@pytest.mark.parametrize(
    ("line", "words"), [("U1:%x[0,2]", "column 2"), ("U1:%x[a,0]", "whole numbers"), ("U1:%m", "%x")]
)
def test_crfpp_errors(line: str, words: str) -> None:
    with pytest.raises(TemplateError, match=rf"line 2: .*{words}"):
        Template("U0:%x[0,0]\n" + line, ["word", "pos"])


def test_crfpp_is_recognised() -> None:
    assert is_crfpp(CHUNKING)
    assert not is_crfpp("word[0]")

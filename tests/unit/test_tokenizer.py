"""The tokenizer: laws for any text, and examples of the rules that docs/howto/raw-text.md states."""

from __future__ import annotations

import unicodedata
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tagwise as tw
from tagwise import _core
from tagwise.corpus.text.tokenizer import offsets_of, tokenized

#: Characters that rules inspect, and text of any kind.
PIECES = st.sampled_from(
    [
        *"aA1.,'’-_@#:/()\"!?…$&<3= \n\t\r",
        *(
            "n't",
            "'s",
            "https://",
            "www.",
            "U.S.",
            "Dr.",
            "\n\n",
            ":-)",
            "a@b.org",
            "1,000.5",
            "e\u0301",
            "ß",
        ),
        *(
            "👩\u200d🚀",
            "👍🏽",
            "🇸🇪",
            "🏴\U000e0067\U000e007f",
            "1\ufe0f\u20e3",
            "東京",
            "ひら",
            "カタ",
            "한국",
            "हिन्दी",
        ),
        *(
            "می\u200cخواهم",
            "\u200e",
            "\ufeff",
            "\u00a0",
            "\u2028",
            "\u2029",
            "\u00ad",
            "𝒜",
            "\U0010ffff",
            "\0",
            "。",
            "！",
        ),
    ]
)
TEXTS = st.lists(PIECES, max_size=25).map("".join) | st.text(max_size=60)
OPTIONS = st.builds(tw.Tokenizer, contractions=st.booleans(), hyphens=st.booleans(), sentences=st.booleans())

#: Characters allowed between tokens: separators, controls and format characters by Unicode category.
BLANK = ("Zs", "Zl", "Zp", "Cc", "Cf")


def words(text: str, **options: bool) -> list[str]:
    """Return the tokens of a text."""
    return tw.Tokenizer(**options)(text).tokens  # type: ignore[arg-type]


@given(TEXTS, OPTIONS)
def test_tokens_cover_the_text_except_blanks(text: str, tokenizer: tw.Tokenizer) -> None:
    """Tokens are ordered, disjoint and not empty. Only invisible characters separate them. Offsets round-trip."""
    found = tokenizer(text)
    at = 0
    for token, (begin, end) in zip(found.tokens, found.offsets.tolist(), strict=True):
        assert at <= begin < end <= len(text)
        assert text[begin:end] == token
        assert all(unicodedata.category(c) in BLANK for c in text[at:begin])
        assert not any(c.isspace() for c in token)
        at = end
    assert all(unicodedata.category(c) in BLANK for c in text[at:])
    places = offsets_of(text, found.tokens)
    assert places is not None
    assert places.tolist() == found.offsets.tolist()


@given(TEXTS, OPTIONS)
def test_grapheme_clusters_are_never_split(text: str, tokenizer: tw.Tokenizer) -> None:
    """No token begins with a combining mark, joiner or variation selector that has a base character."""
    for begin, _ in tokenizer(text).offsets.tolist():
        if unicodedata.category(text[begin]) in ("Mn", "Mc", "Me") or text[begin] == "\u200d":
            before = text[begin - 1] if begin else " "
            assert unicodedata.category(before) in BLANK


@given(TEXTS, OPTIONS)
def test_sentences_partition_the_tokens(text: str, tokenizer: tw.Tokenizer) -> None:
    """Sentences are not empty and contain all tokens in order. Without splitting there is one sentence."""
    found = tokenizer(text)
    assert [t for sentence in found.sentences for t in sentence] == found.tokens
    assert all(found.sentences)
    assert tokenizer.sentences or len(found.sentences) == min(1, len(found))


@given(st.lists(TEXTS, max_size=8), OPTIONS, st.sampled_from([1, 2, 3]))
def test_batches_equal_single_texts(texts: list[str], tokenizer: tw.Tokenizer, jobs: int) -> None:
    """Batches equal single calls for any number of texts and threads."""
    for text, found in zip(texts, tokenizer.many(texts, jobs), strict=True):
        alone = tokenizer(text)
        assert found.text == text
        assert found.offsets.tolist() == alone.offsets.tolist()
        assert found.bounds.tolist() == alone.bounds.tolist()


def test_sentence_numbers_continue_across_pieces() -> None:
    """Sentence numbers of later pieces continue those of earlier ones."""
    texts = [f"Text {i} is here. It has {i} ends." for i in range(1000)]
    for i, found in enumerate(tw.Tokenizer().many(texts)):
        assert found.text == texts[i]
        assert found.sentences == [["Text", f"{i}", "is", "here", "."], ["It", "has", f"{i}", "ends", "."]]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Peter flew to London.", "Peter|flew|to|London|."),
        ("He didn't, she's, we’ll; O'Neil", "He|did|n't|,|she|'s|,|we|’ll|;|O'Neil"),
        ("l'homme rock'n'roll dogs' 'quoted'", "l'homme|rock'n'roll|dogs|'|'|quoted|'"),
        ("$1,000.50 at 10:30 on 2024-05-01, 3/4, 50%", "$|1,000.50|at|10:30|on|2024-05-01|,|3/4|,|50|%"),
        ("well-known e-mail --- a–b", "well-known|e-mail|---|a|–|b"),
        ("U.S. e.g. Dr. J. Smith etc. A. Plan I. He", "U.S.|e.g.|Dr.|J.|Smith|etc.|A.|Plan|I|.|He"),
        ("the end.The start example.com v1.2.3", "the|end|.|The|start|example.com|v1.2.3"),
        ("(https://en.wikipedia.org/wiki/A_(b)?c=1#d).", "(|https://en.wikipedia.org/wiki/A_(b)?c=1#d|)|."),
        ("see www.a.org, me.you+x@mail.a.org!", "see|www.a.org|,|me.you+x@mail.a.org|!"),
        ("@me #tag_2 #1 C# a@b :-) =) <3 :))) x:)", "@me|#tag_2|#|1|C|#|a|@|b|:-)|=)|<3|:)))|x|:|)"),
        ("Wait... what?! No!!! (yes)", "Wait|...|what|?!|No|!!!|(|yes|)"),
        ("cafe\u0301 nai\u0308ve", "cafe\u0301|nai\u0308ve"),
        ("👩\u200d🚀👍🏽🇸🇪🇩🇰❤\ufe0f1\ufe0f\u20e3", "👩\u200d🚀|👍🏽|🇸🇪|🇩🇰|❤\ufe0f|1\ufe0f\u20e3"),
        ("東京タワーへ行く。", "東|京|タワー|へ|行|く|。"),
        ("서울에 갔다. Привет, мир!", "서울에|갔다|.|Привет|,|мир|!"),
        ("می\u200cخواهم ١٬٢٣٤ שלום", "می\u200cخواهم|١٬٢٣٤|שלום"),
        ("𝒜𝒷 \U0001d7d9 x\u00a0y\u200bz", "𝒜𝒷|\U0001d7d9|x|y|z"),
        ("AT&T R&D a&b snake_case", "AT&T|R&D|a|&|b|snake_case"),
    ],
)
def test_rules(text: str, expected: str) -> None:
    """An example of each rule."""
    assert words(text) == expected.split("|")


def test_tokenizer_options_are_independent() -> None:
    """Contractions, hyphens, sentences and abbreviations are independent options."""
    assert words("don't Anna's", contractions=False) == ["don't", "Anna's"]
    assert words("well-known 2024-05-01", hyphens=True) == ["well", "-", "known", "2024-05-01"]
    assert len(tw.Tokenizer(sentences=False)("One. Two.").sentences) == 1
    assert tw.Tokenizer(abbreviations=("zzz",))("Zzz. Dr. X").tokens == ["Zzz.", "Dr", ".", "X"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("He went. She stayed! Did they? Yes.", 4),
        ('"Why?" he asked. "No." She left (at 5.) Then it rained.', 4),
        ("Dr. Smith of the U.S. Army met J. Doe.", 1),
        ("It cost 3.50 or so... maybe less. 5 were left.", 2),
        ("你好。再见！「走。」他说", 4), ("A title\n\nA text\nof two lines", 2), ("A title\r\n \r\nA text", 2),
        ("one\u2029two", 2), ("Wait!!! What?! Ok", 3), ("a b c", 1), (" \n\n ", 0),
    ],
)  # fmt: skip
def test_sentences(text: str, expected: int) -> None:
    """Stops with closing punctuation end a sentence unless a lower-case letter follows. Blank lines end one too."""
    assert len(tw.Tokenizer()(text).sentences) == expected


@pytest.mark.parametrize(
    "piece", [".\u0301", ". ", "a-", "http://", "http://-", "@a", "x'", "((", ")", "a.", ":", "\u200d", "'s"]
)
def test_tokenization_time_is_linear(piece: str) -> None:
    """Look-ahead is bounded, so that no text is read repeatedly to its end."""
    text = piece * 200_000
    for tokenizer in (tw.Tokenizer(), tw.Tokenizer(hyphens=True)):
        found = tokenizer(text)
        assert sum((found.offsets[:, 1] - found.offsets[:, 0]).tolist()) == len(text.replace(" ", ""))


# --- custom tokenizers --------------------------------------------------------------------------------------


def test_custom_tokenizers_are_accepted() -> None:
    """It returns tokens, offsets, or sentences of either. Tokens must be pieces of the text."""
    text = "ab cd. ef"
    for own, sentences in (
        (str.split, [["ab", "cd.", "ef"]]),
        (lambda _: [(0, 2), (3, 5)], [["ab", "cd"]]),
        (lambda _: [["ab", "cd", "."], ["ef"]], [["ab", "cd", "."], ["ef"]]),
        (lambda _: [[(0, 2)], [(np.int64(7), np.int64(9))]], [["ab"], ["ef"]]),
        (lambda t: tw.Tokenizer(sentences=False)(t), [["ab", "cd", ".", "ef"]]),
        (lambda _: iter(["ab"]), [["ab"]]),
        (lambda _: [], []),
    ):
        (found,) = tokenized([text], own)
        assert found.sentences == sentences
        assert [text[a:b] for a, b in found.offsets.tolist()] == found.tokens


@pytest.mark.parametrize(
    ("own", "message"),
    [
        (lambda _: ["ab", "xy"], r"text 1, token 1: 'xy' is not in the text from character 2 on \(' cd'\)"),
        (lambda _: ["cd", "ab"], "text 1, token 1: 'ab' is not in the text from character 5 on"),
        (lambda _: [""], "text 1, token 0: '' is not in the text"),
        (lambda _: [(0, 3), (2, 5)], r"text 1, token 1: \(2, 5\) overlaps the previous token"),
        (lambda _: [(0, 9)], "is not inside the text of 5 characters"),
        (lambda _: [3], "text 1, token 0: the tokenizer returned 3, expected a string or a pair"),
        (lambda _: "ab cd", "text 1: the tokenizer returned str, expected a list of tokens"),
        (lambda _: None, "text 1: the tokenizer returned NoneType"),
        (lambda _: tw.Tokenizer()("other"), "text 1: the tokenizer returned the tokens of another text"),
    ],
)
def test_invalid_tokenizer_results_are_reported(own: object, message: str) -> None:
    """The error gives the text, the token, the fault and the remedy."""
    texts = [tw.Tokenizer()("before"), "ab cd"]
    with pytest.raises(tw.exceptions.CorpusError, match=message):
        tokenized(texts, own)  # type: ignore[arg-type]


def test_objects_that_are_not_text_are_rejected() -> None:
    """A single text, objects that are not text, lone surrogates."""
    with pytest.raises(tw.exceptions.CorpusError, match="Put a single text into a list"):
        tw.Tokenizer().many("text")
    with pytest.raises(tw.exceptions.CorpusError, match="text 1: expected a string, found int"):
        tw.Tokenizer().many(["a", 3])  # type: ignore[list-item]
    with pytest.raises(tw.exceptions.CorpusError, match=r"text 1: .*a lone surrogate"):
        tw.Tokenizer().many(["a", "b\ud800"])
    with pytest.raises(
        tw.exceptions.ParameterError, match=r"tokenizer='x' is str, expected a tagwise\.Tokenizer"
    ):
        tokenized(["a"], "x")  # type: ignore[arg-type]
    with pytest.raises(tw.exceptions.CorpusError, match="expected a list of texts, found int"):
        _core.tokenize(3)  # type: ignore[arg-type]


def test_core_arrays_have_consistent_bounds() -> None:
    """Two numbers per token. Bounds of sentences and of texts run from 0 to their counts."""
    places, sentences, texts = _core.tokenize(["a b. C", "", "d"])
    assert places.tolist() == [0, 1, 2, 3, 3, 4, 5, 6, 0, 1]
    assert sentences.tolist() == [0, 3, 4, 5]
    assert texts.tolist() == [0, 2, 2, 3]
    assert all(a <= b for a, b in pairwise(sentences.tolist()))

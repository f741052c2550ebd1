"""Colours of labels: distinguishable on light and dark paper, readable, and the same wherever a label occurs."""

from __future__ import annotations

import itertools
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

import tagwise as tw
from tagwise.base.colours import CALM, OPACITY, PALETTE, SHARED, LabelColours, preferred

Array = NDArray[np.float64]
#: Paper and ink of the report in both themes.
THEMES = {"light": ("#ffffff", "#14181f"), "dark": ("#171b22", "#e8ebf0")}


def channels(colour: str) -> Array:
    """Return red, green and blue from 0 to 255."""
    return np.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)], dtype=np.float64)


def linear(colour: Array) -> Array:
    """Return sRGB channels without their gamma curve, from 0 to 1."""
    c = colour / 255
    return np.where(c <= 0.04045, c / 12.92, ((c + 0.055) / 1.055) ** 2.4)


def contrast(one: Array, other: Array) -> float:
    """Return the contrast ratio of WCAG 2."""
    low, high = sorted(float(linear(c) @ (0.2126, 0.7152, 0.0722)) for c in (one, other))
    return (high + 0.05) / (low + 0.05)


def lab(colour: Array) -> Array:
    """Return CIE L*a*b* with the white point D65."""
    to_xyz = np.array([[0.4125, 0.3576, 0.1804], [0.2127, 0.7152, 0.0722], [0.0193, 0.1192, 0.9503]])
    x = to_xyz @ linear(colour) / (0.95047, 1.0, 1.08883)
    f = np.where(x > 216 / 24389, np.cbrt(x), (24389 / 27 * x + 16) / 116)
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


def difference(one: Array, other: Array) -> float:
    """Return the CIEDE2000 difference of two colours in L*a*b* (Sharma, Wu and Dalal 2005)."""
    middle = (np.hypot(*one[1:]) + np.hypot(*other[1:])) / 2
    stretch = 1.5 - 0.5 * np.sqrt(middle**7 / (middle**7 + 25.0**7))
    chroma = [float(np.hypot(stretch * c[1], c[2])) for c in (one, other)]
    hue = [float(np.degrees(np.arctan2(c[2], stretch * c[1]))) % 360 for c in (one, other)]
    turn = (hue[1] - hue[0] + 180) % 360 - 180
    mean_l, mean_c, mean_h = (one[0] + other[0]) / 2, sum(chroma) / 2, (hue[0] + turn / 2) % 360
    cosines = [np.cos(np.radians(n * mean_h + at)) for n, at in ((1, -30), (2, 0), (3, 6), (4, -63))]
    t = 1 + float(np.dot((-0.17, 0.24, 0.32, -0.20), cosines))
    d_l = (other[0] - one[0]) / (1 + 0.015 * (mean_l - 50) ** 2 / np.sqrt(20 + (mean_l - 50) ** 2))
    d_c = (chroma[1] - chroma[0]) / (1 + 0.045 * mean_c)
    d_h = 2 * np.sqrt(chroma[0] * chroma[1]) * np.sin(np.radians(turn / 2)) / (1 + 0.015 * mean_c * t)
    bend = 30 * np.exp(-(((mean_h - 275) / 25) ** 2))
    cross = -2 * np.sqrt(mean_c**7 / (mean_c**7 + 25.0**7)) * np.sin(np.radians(2 * bend))
    return float(np.sqrt(d_l**2 + d_c**2 + d_h**2 + cross * d_c * d_h))


def test_ciede2000_equals_published_examples() -> None:
    """Pairs 1, 7 and 17 of the test data of Sharma, Wu and Dalal."""
    pairs = (
        ((50, 2.6772, -79.7751), (50, 0, -82.7485), 2.0425),
        ((50, 0, 0), (50, -1, 2), 2.3669),
        ((50, 2.5, 0), (73, 25, -18), 27.1492),
    )
    for one, other, expected in pairs:
        assert difference(np.array(one, float), np.array(other, float)) == pytest.approx(expected, abs=1e-4)


@pytest.mark.parametrize("theme", THEMES)
def test_colours_are_distinguishable_and_readable(theme: str) -> None:
    """Any two colours differ clearly on the paper of the theme, differ from the paper, and text on them is readable."""
    assert len(PALETTE) >= 24
    paper, ink = map(channels, THEMES[theme])
    drawn = [OPACITY * channels(colour) + (1 - OPACITY) * paper for colour in PALETTE]
    assert min(difference(lab(a), lab(b)) for a, b in itertools.combinations(drawn, 2)) >= 12
    assert min(difference(lab(a), lab(paper)) for a in drawn) >= 12
    assert min(contrast(a, ink) for a in drawn) >= 4.5


@pytest.mark.parametrize("theme", THEMES)
def test_calm_colours_are_vivid_but_not_glaring(theme: str) -> None:
    """They have a hue on both papers, differ from the paper more than others, and are used first."""
    paper = channels(THEMES[theme][0])
    for colour in PALETTE[:CALM]:
        drawn = lab(OPACITY * channels(colour) + (1 - OPACITY) * paper)
        assert 12 <= np.hypot(*drawn[1:]) <= 60
        assert difference(drawn, lab(paper)) >= 15
    colours = LabelColours(str(k) for k in range(len(PALETTE)))
    assert {colours.index(label) for label in sorted(map(str, range(len(PALETTE))))[:CALM]} == set(
        range(CALM)
    )


def test_common_label_types_have_calm_colours_that_differ_clearly() -> None:
    for labels in (["PER", "LOC", "ORG", "MISC"], ["person", "location", "corporation", "product"]):
        colours = LabelColours(labels)
        for theme in THEMES:
            paper = channels(THEMES[theme][0])
            drawn = [
                lab(OPACITY * channels(PALETTE[colours.index(label)]) + (1 - OPACITY) * paper)
                for label in labels
            ]
            assert min(difference(a, b) for a, b in itertools.combinations(drawn, 2)) >= 15


@given(st.lists(st.text(), min_size=1, max_size=len(PALETTE), unique=True))
def test_label_colours_differ_and_ignore_order(labels: list[str]) -> None:
    """Up to 24 labels never share a colour, and a set of labels has the same colours in any order."""
    one, other = LabelColours(labels), LabelColours(reversed(labels))
    assert len({one.index(label) for label in labels}) == len(labels)
    assert [one.index(label) for label in labels] == [other.index(label) for label in labels]


@given(st.text(), st.lists(st.text()))
def test_label_keeps_its_colour(label: str, others: list[str]) -> None:
    """The colour of a label is that of its text, and labels that are seen later do not change it."""
    colours = LabelColours([label])
    assert colours.index(label) == preferred(label)
    for other in others:
        colours.index(other)
    assert colours.index(label) == preferred(label)


def test_colours_repeat_if_all_are_used() -> None:
    """With more labels than colours, all colours are used equally often."""
    labels = [str(i) for i in range(3 * len(PALETTE))]
    colours = LabelColours(labels)
    assert Counter(map(colours.index, labels)) == dict.fromkeys(range(len(PALETTE)), 3)


def test_sentences_share_label_colours() -> None:
    """A label has one colour in all sentences of a notebook, whatever other labels a sentence has."""
    one = tw.Sentence({"word": ["Rosa"], "label": ["B-PER"]}, "label")
    both = tw.Sentence({"word": ["Lund", "Rosa"], "label": ["B-LOC", "B-PER"]}, "label")
    assert SHARED.tint("PER") in one._repr_html_()
    assert SHARED.tint("PER") in both._repr_html_()
    assert SHARED.tint("LOC") in both._repr_html_()
    assert SHARED.tint("LOC") != SHARED.tint("PER")

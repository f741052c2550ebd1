"""Corpora with wrong labels: the share given in their name, in the training part only."""

from __future__ import annotations

import itertools

import pytest

import tagwise as tw
from tagwise.apps.compare import resolve_corpora
from tagwise.apps.compare.plan import load_parts, with_noise
from tagwise.base.exceptions import CorpusError, ParameterError
from tagwise.features import Recipe
from tagwise.features.sets import template_text

TRAIN, DEV, TEST = tw.load_corpus("wnut17-ner")


def flat(corpus: tw.Corpus) -> list[str]:
    return [label for sentence in corpus for label in sentence.labels]


def test_noise_changes_the_given_share_of_training_labels() -> None:
    found = resolve_corpora(["wnut17-ner +20% noise", "wnut17-ner"])
    assert list(found) == ["wnut17-ner +20% noise", "wnut17-ner"]
    noise = found["wnut17-ner +20% noise"]
    assert [s.tokens for s in noise.train] == [s.tokens for s in TRAIN]
    assert flat(noise.test) == flat(TEST)
    assert noise.dev is not None
    assert flat(noise.dev) == flat(DEV)
    gold, wrong = flat(TRAIN), flat(noise.train)
    share = sum(a != b for a, b in zip(gold, wrong)) / len(gold)
    assert abs(share - 0.2) < 4 * (0.2 * 0.8 / len(gold)) ** 0.5
    # Wrong labels are uniform over the other labels.
    taken = [b for a, b in zip(gold, wrong) if a == "O" and b != "O"]
    others = sorted(set(gold) - {"O"})
    for label in others:
        assert abs(taken.count(label) / len(taken) - 1 / len(others)) < 0.02
    assert set(wrong) == set(gold)


def test_wrong_labels_are_nested_in_the_noise_level() -> None:
    part = TRAIN[:200]
    gold = flat(part)
    runs = [flat(with_noise(part, share)) for share in (0.0, 0.1, 0.3, 1.0)]
    assert runs[0] == gold
    assert not any(a == b for a, b in zip(runs[-1], gold))
    for less, more in itertools.pairwise(runs):
        assert all(b == a for a, b, g in zip(less, more, gold) if a != g)
    assert flat(with_noise(part, 0.3)) == runs[2] != flat(with_noise(part, 0.3, seed=1))
    alone = tw.Corpus.from_lists([["a", "b"]], [["X", "X"]])
    assert flat(with_noise(alone, 1.0)) == ["X", "X"]


def test_invalid_noise_names_are_rejected() -> None:
    with pytest.raises(ParameterError, match="100 %"):
        load_parts("ewt-pos +101% noise")
    with pytest.raises(CorpusError):
        load_parts("no-such-corpus +10% noise")


def test_attribute_pairs_equal_a_degree_two_kernel() -> None:
    """Tokens that share n attributes of S2 share n (n + 1) / 2 of S2pairs."""
    words = ["Dr.", "walking", "talking", "U.S.", "US", "well-known", "bring", "Ring", "a", "A"]

    def attributes(features: str) -> list[set[str]]:
        return [set(token) for token in Recipe.of_template(template_text(features), ("word",)).render(words)]

    assert template_text("S2pairs").count("\n") == 8 + 28
    plain, pairs = attributes("S2"), attributes("S2pairs")
    seen = set()
    for i in range(len(words)):
        for j in range(len(words)):
            n = len(plain[i] & plain[j])
            assert len(pairs[i] & pairs[j]) == n * (n + 1) // 2
            seen.add(n)
    assert len(seen) > 3

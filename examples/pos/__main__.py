"""Parts of speech of English web text, the bundled ewt-pos: accuracy on all words, and on unseen words."""

from __future__ import annotations

import tagwise as tw
from examples.common import run


def parts(train: int, test: int) -> tuple[tw.Corpus, tw.Corpus]:
    """Return the first sentences of the training and of the test part."""
    learn, _, held = tw.load_corpus("ewt-pos")
    return learn[:train], held[:test]


def tagger() -> tw.Tagger:
    """Return MIRA, which takes a second or two. `tw.CRF()` is slightly better and slower."""
    return tw.MIRA(features="default", max_iter=6)


def unseen(model: tw.Tagger, train: tw.Corpus, test: tw.Corpus) -> float:
    """Return the accuracy on words that do not occur in training."""
    known = {word for words in train.tokens for word in words}
    right = [
        a == b
        for words, gold, guess in zip(test.tokens, test.labels, model.predict(test))
        for w, a, b in zip(words, gold, guess)
        if w not in known
    ]
    return sum(right) / len(right)


if __name__ == "__main__":
    model, sizes = tagger(), (4000, 1000)
    run("Parts of speech", model, parts, sizes)
    print(f"\naccuracy on unseen words: {100 * unseen(model, *parts(*sizes)):.1f}")

"""Phrases of English web text from words alone.

The corpus is the bundled ewt-pos. Its phrases are derived by rule from gold parts of speech, which the tagger does not
get.
"""

from __future__ import annotations

import tagwise as tw
from examples.common import run

NOMINAL = {"DET", "ADJ", "NOUN", "PROPN", "NUM", "PRON"}
VERBAL = {"VERB", "AUX"}
ENDS = {"NOUN", "PROPN", "NUM", "PRON"}


def phrases(tags: list[str]) -> list[str]:
    """Return NP (nominal tags with a noun, name, number or pronoun), VP (verbs and the tags between them) and PP.

    >>> phrases(["DET", "NOUN", "AUX", "ADV", "VERB", "ADP", "PROPN"])
    ['B-NP', 'I-NP', 'B-VP', 'I-VP', 'I-VP', 'B-PP', 'B-NP']
    """
    out, t = ["O"] * len(tags), 0
    while t < len(tags):
        end = t
        if tags[t] in NOMINAL:
            while end < len(tags) and tags[end] in NOMINAL:
                end += 1
            kind = "NP" if set(tags[t:end]) & ENDS else ""
        elif tags[t] in VERBAL:
            while end < len(tags) and (
                tags[end] in VERBAL
                or (tags[end] in ("ADV", "PART") and tags[end + 1 : end + 2] and tags[end + 1] in VERBAL)
            ):
                end += 1
            kind = "VP"
        else:
            end, kind = t + 1, "PP" if tags[t] == "ADP" else ""
        if kind:
            out[t:end] = [f"B-{kind}", *[f"I-{kind}"] * (end - t - 1)]
        t = end
    return out


def chunked(corpus: tw.Corpus) -> tw.Corpus:
    """Return the corpus with phrases as labels."""
    return tw.Corpus(
        [tw.Sentence({"word": s.tokens, "label": phrases(list(s.labels))}, "label") for s in corpus]
    )


def parts(train: int, test: int) -> tuple[tw.Corpus, tw.Corpus]:
    """Return the first sentences of the training and of the test part."""
    learn, _, held = tw.load_corpus("ewt-pos", label="upos")
    return chunked(learn[:train]), chunked(held[:test])


def tagger() -> tw.Tagger:
    """Return a perceptron with the default features."""
    return tw.Perceptron(features="default", max_iter=8, constraints="auto")


if __name__ == "__main__":
    run("Chunks", tagger(), parts, (3000, 1000))

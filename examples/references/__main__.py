"""References of papers to authors, year, title, journal and pages, in three styles, with new names in the test part."""

from __future__ import annotations

import random

import tagwise as tw
from examples.common import Piece, invented, misspelled, run, sentence, two_lists

PEOPLE = two_lists(
    lambda r: invented(
        r,
        "Al Ben Car Dor Fer Gar Hol Ing Jan Kol Lar Mar Nov Ols Pet Ros San Tak Var Wal".split(),
        "a e i o el an".split(),
        "berg dez ek ens er ini ova sen ski son tti walt".split(),
    ),
    80,
    3,
)
WORDS = (
    (
        "learning models of sequences with structured data in noisy channels and networks for robust inference under "
        "limited supervision on large graphs via sampling a study towards efficient methods"
    ).split(),
    (
        "adaptive retrieval from sparse corpora by alignment using contrastive signals across domains without labels "
        "rethinking evaluation through causal probes an analysis beyond static benchmarks"
    ).split(),
)
JOURNALS = (
    "Journal of Machine Learning|Computational Linguistics|Neural Computation|Pattern Recognition|"
    "Annals of Statistics|J. Artif. Intell.",
    "Transactions on Speech|Language Resources and Evaluation|Information Retrieval|Artificial Life Letters|"
    "Data Mining Review|Nat. Lang. Eng.",
)


def person(rng: random.Random, names: list[str], style: int) -> str:
    """Return a name in the style."""
    initials = " ".join(f"{rng.choice('ABCDEFGHJKLMPRST')}." for _ in range(rng.randint(1, 2)))
    name = misspelled(rng, rng.choice(names), 0.05)
    return f"{name}, {initials}" if style else f"{initials} {name}"


def reference(rng: random.Random, names: list[str], words: list[str], journals: list[str]) -> list[Piece]:
    """Return one reference in one of three styles, with some parts missing."""
    style = rng.randrange(3)
    people: list[Piece] = []
    for i in range(rng.randint(1, 3)):
        people += [(rng.choice((",", "&", "and")), None)] if i else []
        people.append((person(rng, names, style), "AUTHOR"))
    year: Piece = (str(rng.randint(1975, 2025)), "YEAR")
    title = " ".join(rng.choice(words) for _ in range(rng.randint(4, 9)))
    title = title.title() if rng.random() < 0.4 else title.capitalize()
    journal: Piece = (rng.choice(journals), "JOURNAL")
    volume: list[Piece] = [(str(rng.randint(1, 60)), "VOLUME")] + (
        [("(", None), (str(rng.randint(1, 12)), "ISSUE"), (")", None)] if rng.random() < 0.5 else []
    )
    first = rng.randint(1, 900)
    pages: Piece = (f"{first}{rng.choice('-–')}{first + rng.randint(3, 40)}", "PAGES")
    if style == 1:
        out = [
            *people,
            ("(", None),
            year,
            (").", None),
            (title, "TITLE"),
            (".", None),
            journal,
            (",", None),
            *volume,
            (",", None),
            pages,
            (".", None),
        ]
    elif style == 2:
        out = [
            (f"[{rng.randint(1, 80)}]", None),
            *people,
            (":", None),
            (title, "TITLE"),
            (".", None),
            journal,
            *volume,
            (":", None),
            pages,
            (",", None),
            year,
        ]
    else:
        out = [
            *people,
            (",", None),
            ("“", None),
            (title, "TITLE"),
            ("”", None),
            (",", None),
            journal,
            (", vol.", None),
            *volume,
            (", pp.", None),
            pages,
            (",", None),
            year,
            (".", None),
        ]
    gone = {label for label in ("VOLUME", "ISSUE", "PAGES", "YEAR") if rng.random() < 0.08}
    return [piece for piece in out if piece[1] not in gone]


def parts(train: int, test: int, seed: int = 0) -> tuple[tw.Corpus, tw.Corpus]:
    """Return references to train on, and references with other people, words and journals."""
    rng = random.Random(seed)
    return tuple(  # type: ignore[return-value]
        tw.Corpus([sentence(reference(rng, PEOPLE[k], WORDS[k], JOURNALS[k].split("|"))) for _ in range(n)])
        for k, n in enumerate((train, test))
    )


def tagger() -> tw.Tagger:
    """Return a CRF. Words two positions away are more informative than the word, which is new."""
    return tw.CRF(features="S3(window=2)", l2=0.3, max_iter=60, constraints="auto")


if __name__ == "__main__":
    run("References", tagger(), parts, (300, 300))

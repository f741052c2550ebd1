"""Invented clinical notes: drugs, doses, problems, denied findings.

Drugs and problems of the test part are new. Only their endings (-olol, -pril, -itis) occur in training.
"""

from __future__ import annotations

import random

import tagwise as tw
from examples.common import Piece, invented, misspelled, run, sentence, two_lists

STEMS = "Ac Bel Cor Dex Fen Gal Lis Met Nor Pra Ral Sim Tri Val Zol".split()


def problems(organs: str) -> list[str]:
    """Return problems: an organ and an ending, some with a preceding word."""
    front = ("", "", "chronic ", "acute ", "mild ", "L ", "recurrent ")
    return [
        before + organ + ending
        for organ in organs.split()
        for ending in "itis opathy algia osis omegaly".split()
        for before in front
    ]


DRUGS = two_lists(
    lambda r: invented(
        r, STEMS, "a o i lo ra".split(), "cillin olol pril sartan statin xaban zepam".split()
    ).lower(),
    40,
    4,
)
PROBLEMS = (problems("gastr nephr card arthr derm"), problems("hepat bronch col neur pancreat"))
DOSES = ("25 mg", "50mg", "0.5 mg", "10 units", "1 g", "500 mg", "5 mL", "81 mg", "2 puffs")
OFTEN = ("BID", "TID", "daily", "q6h", "prn", "once daily", "at bedtime", "QHS", "every 8 hours")
SIGNS = (
    ["chest pain", "fever", "nausea", "dyspnea", "dizziness"],
    ["syncope", "chills", "vomiting", "palpitations", "leg swelling"],
)


def note(rng: random.Random, drugs: list[str], ills: list[str], signs: list[str]) -> list[Piece]:
    """Return one line of a note."""
    who: list[Piece] = [
        (rng.choice(("Pt is a", "Patient:", "This is a", "")), None),
        (f"{rng.randint(18, 92)} {rng.choice(('y/o', 'yo', 'year old'))}", "AGE"),
        (rng.choice(("F", "M", "woman", "man")), None),
    ]
    drug = rng.choice(drugs)
    first, second = (misspelled(rng, rng.choice(ills), 0.08) for _ in range(2))
    one, other = (
        misspelled(rng, rng.choice([d, d, d.capitalize()]), 0.08) for d in (drug, rng.choice(drugs))
    )
    dose: list[Piece] = [(rng.choice(DOSES), "DOSE")] if rng.random() < 0.8 else []
    dose += [(rng.choice(OFTEN), "FREQUENCY")] if rng.random() < 0.75 else []
    kinds: list[list[Piece]] = [
        [
            *who,
            (rng.choice(("with hx of", "w/", "with", "h/o")), None),
            (first, "PROBLEM"),
            (rng.choice(("and", ",")), None),
            (second, "PROBLEM"),
        ],
        [
            (rng.choice(("Started on", "Continue", "cont", "Switched to", "Rx:")), None),
            (one, "DRUG"),
            *dose,
            (rng.choice(("for", "given")), None),
            (first, "PROBLEM"),
        ],
        [
            (rng.choice(("Denies", "No", "Negative for")), None),
            (rng.choice(signs), "DENIED"),
            (rng.choice((",", "or")), None),
            (rng.choice(signs), "DENIED"),
        ],
        [
            (rng.choice(("C/o", "Complains of", "Presents with")), None),
            (rng.choice(signs), "PROBLEM"),
            (f"x {rng.randint(2, 9)} days", None),
        ],
        [
            ("Stop", None),
            (one, "DRUG"),
            (",", None),
            (rng.choice(("start", "begin")), None),
            (other, "DRUG"),
            *dose,
        ],
    ]
    out = rng.choice(kinds) + ([(".", None)] if rng.random() < 0.7 else [])
    return [(text.lower() if rng.random() < 0.1 else text, label) for text, label in out if text]


def parts(train: int, test: int, seed: int = 0) -> tuple[tw.Corpus, tw.Corpus]:
    """Return notes to train on, and notes with other drugs, problems and signs."""
    rng = random.Random(seed)
    return tuple(  # type: ignore[return-value]
        tw.Corpus([sentence(note(rng, DRUGS[k], PROBLEMS[k], SIGNS[k])) for _ in range(n)])
        for k, n in enumerate((train, test))
    )


def tagger() -> tw.Tagger:
    """Return the tagger. Endings distinguish drugs from problems, and neighbours show what is denied."""
    endings = "word[0].lower.suffix(4..6)\nword[-1].lower & word[0].lower.suffix(3)"
    return tw.CRF(features=tw.Features("S3") + endings, l2=0.3, max_iter=60)


if __name__ == "__main__":
    run("Notes", tagger(), parts, (500, 400))

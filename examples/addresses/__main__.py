"""Postal addresses to their parts, as people type them: missing parts, other orders, abbreviations, typing errors.

Streets and towns of the test part do not occur in training.
"""

from __future__ import annotations

import random

import tagwise as tw
from examples.common import Piece, invented, misspelled, run, sentence, two_lists

STARTS = (
    "Ash Bar Brook Clif Dun Elm Fair Green Hart Kings Lang Mill New Oak Pen Rich Stan Thorn West Wil".split()
)
MIDDLES = "er ing le low mer ter".split()
STREET = two_lists(
    lambda r: invented(r, STARTS, MIDDLES, "croft dale gate hurst land mere stone wick".split()), 60, 1
)
TOWN = two_lists(
    lambda r: invented(r, STARTS, MIDDLES, "bury cester field ford ham mouth port ton ville".split()), 60, 2
)
KINDS = [
    "Street St St. Str",
    "Avenue Ave Ave. Av",
    "Road Rd Rd.",
    "Lane Ln",
    "Boulevard Blvd",
    "Court Ct",
    "Way",
]
STATES = "AL CA CO FL GA IL KS MA MI NC NY OH OR PA TX UT VA WA".split()
UNITS = ("Apt", "Apt.", "Unit", "Suite", "Ste", "#", "Floor", "Flat")


def address(rng: random.Random, streets: list[str], towns: list[str]) -> list[Piece]:
    """Return one address in one of a few forms."""
    number = str(rng.randint(1, 9999)) + rng.choice(["", "", "", "", "A", "-" + str(rng.randint(2, 9))])
    way = rng.choice(rng.choice(KINDS).split())
    name = rng.choice(["", "", "", "N ", "South ", "Old "]) + rng.choice(streets)
    if rng.random() < 0.12:
        street: list[Piece] = [
            (f"{rng.choice(['PO Box', 'P.O. Box', 'Box'])} {rng.randint(10, 9999)}", "BOX")
        ]
    elif rng.random() < 0.12:  # the number last, as in many countries
        street = [(f"{misspelled(rng, name, 0.1)} {way}", "STREET"), (number, "NUMBER")]
    else:
        street = [(number, "NUMBER"), (f"{misspelled(rng, name, 0.1)} {way}", "STREET")]
    comma: Piece = (",", None)
    unit: list[Piece] = []
    if rng.random() < 0.35:
        which = rng.choice([str(rng.randint(1, 40)), rng.choice("ABCD"), f"{rng.randint(1, 9)}B"])
        unit = [(f"{rng.choice(UNITS)} {which}", "UNIT")]
    town: list[Piece] = [
        (misspelled(rng, rng.choice(["", "", "", "Port ", "St. "]) + rng.choice(towns), 0.1), "TOWN")
    ]
    state: list[Piece] = [(rng.choice(STATES), "STATE")] if rng.random() < 0.7 else []
    code: list[Piece] = [
        (f"{rng.randint(10000, 99999)}" + rng.choice(["", "", f"-{rng.randint(1000, 9999)}"]), "POSTCODE")
    ]
    if rng.random() < 0.2:
        code = []
    lines = [street + unit] if rng.random() < 0.8 else [unit + street]
    last = town + ([comma] if state and rng.random() < 0.5 else []) + state + code
    if rng.random() < 0.1:
        last = code + town
    out = lines[0] + ([comma] if rng.random() < 0.7 else []) + last
    case = rng.random()
    return [(t.upper() if case < 0.08 else t.lower() if case < 0.2 else t, label) for t, label in out if t]


def parts(train: int, test: int, seed: int = 0) -> tuple[tw.Corpus, tw.Corpus]:
    """Return addresses to train on, and addresses with other streets and towns."""
    rng = random.Random(seed)
    known = [sentence(address(rng, STREET[0], TOWN[0])) for _ in range(train)]
    return tw.Corpus(known), tw.Corpus([sentence(address(rng, STREET[1], TOWN[1])) for _ in range(test)])


def tagger() -> tw.Tagger:
    """Return a CRF over spelling and two neighbours on either side, with well-formed labels."""
    return tw.CRF(features="S3(window=2)", l2=0.3, max_iter=60, constraints="auto")


if __name__ == "__main__":
    run("Addresses", tagger(), parts, (300, 400))

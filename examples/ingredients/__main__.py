"""Lines of a recipe to quantity, unit, name and preparation. The test part has other foods than training."""

from __future__ import annotations

import random

import tagwise as tw
from examples.common import Piece, misspelled, run, sentence

FOODS = (
    "flour|brown sugar|unsalted butter|olive oil|garlic|onion|chicken breasts|basmati rice|heavy cream|"
    "black pepper|baking powder|lemon juice|parsley|tomato paste|ground beef|soy sauce|egg yolks|cheddar cheese|"
    "carrots|red wine vinegar|vanilla extract|potatoes|bay leaves|chicken stock|mushrooms|cinnamon|walnuts|ginger|"
    "coconut milk|kidney beans",
    "almond meal|maple syrup|ghee|sesame oil|shallots|leeks|pork shoulder|quinoa|sour cream|smoked paprika|"
    "cornstarch|lime zest|cilantro|harissa|ground turkey|fish sauce|duck eggs|feta|parsnips|cider vinegar|"
    "cardamom pods|sweet potatoes|thyme sprigs|beef broth|oyster mushrooms|nutmeg|pecans|lemongrass|buttermilk|"
    "black lentils",
)
UNITS = (
    "cup cups tsp tsp. teaspoon tbsp tbsp. tablespoons oz ounce g kg ml lb lbs pinch handful clove cloves can cans "
    "stick slices"
).split()
SIZES = ("large", "small", "medium", "ripe", "fresh", "dried", "frozen", "organic")
WORK = (
    *("chopped", "finely chopped", "minced", "diced", "peeled and sliced", "grated", "at room temperature"),
    *(
        "melted",
        "beaten",
        "drained and rinsed",
        "toasted",
        "thinly sliced",
        "softened",
        "plus more for serving",
    ),
)
NOTES = ("optional", "about 1 bunch", "see note", "to taste", "or more", "divided", "packed")


def amount(rng: random.Random) -> str:
    """Return a number as recipes write it."""
    whole = str(rng.randint(1, 12))
    part = rng.choice(("1/2", "1/4", "3/4", "1/3", "½", "¼"))
    return rng.choice(
        (whole, whole, part, f"{whole} {part}", f"{whole}-{int(whole) + 1}", f"{rng.randint(1, 20) * 25}")
    )


def line(rng: random.Random, foods: list[str]) -> list[Piece]:
    """Return one ingredient."""
    food = misspelled(rng, rng.choice(foods), 0.08)
    out: list[Piece] = []
    if rng.random() < 0.92:
        out.append((amount(rng), "QUANTITY"))
        if rng.random() < 0.7:
            out.append((rng.choice(UNITS), "UNIT"))
            if rng.random() < 0.12:
                out.append(("of", None))
        if rng.random() < 0.1:
            out += [
                ("(", None),
                (f"{rng.randint(4, 28)}-ounce", "COMMENT"),
                (")", None),
                (rng.choice(("can", "jar", "package")), "UNIT"),
            ]
    if rng.random() < 0.15:
        out.append((rng.choice(WORK[:3]), "PREPARATION"))
    name = (rng.choice(SIZES) + " " if rng.random() < 0.25 else "") + food
    out.append((name, "NAME"))
    if rng.random() < 0.08:
        out += [("or", None), (rng.choice(foods), "NAME")]
    if rng.random() < 0.45:
        out += [(",", None), (rng.choice(WORK), "PREPARATION")]
    if rng.random() < 0.2:
        out += [("(", None), (rng.choice(NOTES), "COMMENT"), (")", None)]
    return [
        (t.capitalize() if i == 0 and rng.random() < 0.3 else t, label) for i, (t, label) in enumerate(out)
    ]


def parts(train: int, test: int, seed: int = 0) -> tuple[tw.Corpus, tw.Corpus]:
    """Return lines to train on, and lines with other foods."""
    rng = random.Random(seed)
    known, other = (text.split("|") for text in FOODS)
    return (
        tw.Corpus([sentence(line(rng, known)) for _ in range(train)]),
        tw.Corpus([sentence(line(rng, other)) for _ in range(test)]),
    )


def tagger() -> tw.Tagger:
    """Return MIRA, which learns an ingredient in microseconds."""
    return tw.MIRA(features="S3", max_iter=10, constraints="auto")


if __name__ == "__main__":
    run("Ingredients", tagger(), parts, (500, 400))

"""Schema of features in model files, the JSON of `Recipe.to_json`."""

from __future__ import annotations

from tagwise.base.domains import Choice, Domain, Flag, Integer, ListOf, Real, Record, Text, Variant
from tagwise.features.patterns import DIALECTS
from tagwise.features.vectors import LEAST_SCALE, MOST

_VECTORS: dict[str, Domain] = {
    "vectors": Record({"size": Integer(1, MOST), "scale": Real(LEAST_SCALE, 1.0 / LEAST_SCALE)})
}

#: Derived columns: gazetteers, regular expressions and word classes.
DERIVED_COLUMN = Variant(
    "kind",
    {
        "gazetteer": Record(
            {
                "name": Text(),
                "entries": ListOf(ListOf(Text(), low=1), low=1),
                "ignore_case": Flag(),
                "window": Integer(0, 10),
            }
        ),
        "classes": Record(
            {
                "name": Text(),
                "window": Integer(0, 10),
                "cuts": ListOf(Integer(2)),
                "ignore_case": Flag(),
                "paths": ListOf(Text(), low=2, distinct=True),
                "words": ListOf(ListOf(Text()), low=2),
                "shapes": ListOf(ListOf(Text()), low=2),
            }
        ),
        "regex": Record({"name": Text(), "pattern": Text(), "ignore_case": Flag(), "window": Integer(0, 10)}),
    },
)


def _alone(more: dict[str, Domain]) -> dict[str, Record]:
    """Return the schemas of recipes other than sums, each with additional optional members."""
    return {
        "template": Record(
            {
                "name": Text(),
                "template": Text(),
                "columns": ListOf(Text(), low=1, distinct=True),
                "token_column": Text(),
            },
            {
                "lists": ListOf(ListOf(Text())),
                "derived_columns": ListOf(DERIVED_COLUMN, low=1, high=100),
                **more,
            },
        ),
        "patterns": Record(
            {
                "dialect": Choice(DIALECTS),
                "patterns": Text(),
                "columns": ListOf(Text(), distinct=True),
                "token_column": Text(),
            },
            more,
        ),
        "function": Record({"function": Text(":")}, more),
    }


FEATURES = Variant(
    "kind",
    {
        **_alone(_VECTORS),
        "sum": Record({"parts": ListOf(Variant("kind", _alone({})), low=2, high=100)}, _VECTORS),
        "attributes": Record(may=_VECTORS),
    },
)

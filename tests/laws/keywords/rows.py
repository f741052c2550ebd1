"""The table of rows of arguments, and briefly trained taggers."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path as File
from typing import Any

import tagwise as tw
from tagwise.base.parameters import parameters_of
from tagwise.estimators import LEARNERS

from ..parameters.common import SHORT, P
from ..parameters.rows import names, tokens

Check = Callable[[str, File], None]
ROWS: dict[tuple[str, str], Check] = {}
ONLINE = ("perceptron", "mira", "pa", "arow")


def row(method: str, *keywords: str) -> Callable[[Check], Check]:
    """Register a check of arguments of a method."""

    def declare(check: Check) -> Check:
        for keyword in keywords:
            assert (method, keyword) not in ROWS
            ROWS[method, keyword] = check
        return check

    return declare


def short(learner: str, **params: Any) -> tw.Tagger:
    """Return a tagger with settings for brief training."""
    kind = LEARNERS[learner]
    known = set(parameters_of(kind))
    more = {"overlapping": True, "features": "attributes"} if learner == "hmm" else {}
    return kind(**{name: value for name, value in {**SHORT, **more, **params}.items() if name in known})


def fitted(learner: str, **keywords: Any) -> tw.Tagger:
    return short(learner).fit(tokens(P), names(P), **keywords)

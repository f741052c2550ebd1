"""CRF++ template files, used as they are.

`U05:%x[-1,0]/%x[0,0]` makes an attribute of a token, `B01:%x[0,0]` one of a label pair; `%x[row,column]`
counts tokens from the current one and columns from 0. Outside the sentence a value is `_B-1`, `_B+1`, ...
Lines that begin alike share attributes (`U:%x[-1,0]` and `U:%x[1,0]` make a bag of words). A bare `B` asks
for label bigrams, which every model here has. Any feature specification accepts such text, or its path.

>>> template("U00:%x[-1,0]\\nU01:%x[-1,0]/%x[0,0]\\nB", ["word"]).render(["The", "dog"])[1]
['U00:The', 'U01:The/dog']
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from tagwise.base.exceptions import TemplateError
from tagwise.features.recipe import Recipe
from tagwise.features.resolve import resolve
from tagwise.features.sets import is_crfpp as is_template

__all__ = ["is_template", "read_template", "template"]


def template(text: str, columns: Sequence[str] = ("word",)) -> Recipe:
    """Recipe of a CRF++ template over these columns (without the label column, which CRF++ has last)."""
    if not is_template(text):
        raise TemplateError(
            "not a CRF++ template; expected lines such as U00:%x[-1,0], each beginning with U, B or #"
        )
    return Recipe.of_template(text, columns, "CRF++")


def read_template(path: str | os.PathLike[str], columns: Sequence[str] = ("word",)) -> Recipe:
    """Recipe of a CRF++ template file over these columns."""
    return resolve(Path(path), columns)

"""CRF++ template files, without conversion.

`U05:%x[-1,0]/%x[0,0]` defines an attribute of a token and `B01:%x[0,0]` an attribute of a label pair. In
`%x[row,column]`, rows are relative to the current token and columns count from 0. Values outside the sentence are
`_B-1`, `_B+1`, ... Lines with the same prefix share attributes (`U:%x[-1,0]` and `U:%x[1,0]` make a bag of words). A
bare `B` means label bigrams, which every model has anyway. Feature specifications accept such a text or its path.

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


def template(text: str, columns: Sequence[str] = ("word",)) -> Recipe:
    """Return the recipe of a CRF++ template. `columns` excludes the label column, the last one in files of CRF++."""
    if not is_template(text):
        raise TemplateError(
            "not a CRF++ template, expected lines such as U00:%x[-1,0], each beginning with U, B or #"
        )
    return Recipe.of_template(text, columns, "CRF++")


def read_template(path: str | os.PathLike[str], columns: Sequence[str] = ("word",)) -> Recipe:
    """Return the recipe of a CRF++ template file."""
    return resolve(Path(path), columns)

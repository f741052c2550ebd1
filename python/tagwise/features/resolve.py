"""Resolution of a feature specification to a recipe: named sets, templates, files, functions, sums.

>>> recipe = resolve("word[-1..0] & word[0].suffix(2)", ["word"])
>>> recipe.render(["The", "dog"])[1]
['word[-1]=The & word[0].suffix(2)=og', 'word[0]=dog & word[0].suffix(2)=og']
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tagwise.base.domains import is_text
from tagwise.base.exceptions import CorpusError, ParameterError, TemplateError
from tagwise.base.files.regular import read_regular
from tagwise.features.compiling import derived_names, part_name, terminated
from tagwise.features.derived_columns import DerivedColumn, Features, parse_sum, split_sum
from tagwise.features.inputs import Inputs
from tagwise.features.patterns import is_wapiti
from tagwise.features.recipe import Recipe
from tagwise.features.sets import DEFAULT_COLUMN, SETS, is_crfpp, template_text

#: Maximum size of a template file in bytes.
MOST_TEMPLATE = 1 << 24
#: Lines that are valid in CRF++. A text that both programs accept is read as a CRF++ template.
_CRFPP = re.compile(r"(?:[UB](?:[^%]|%x\[[^@%\]]*\])*|#.*)?")


def resolve(spec: Any, columns: Sequence[str] | None = (DEFAULT_COLUMN,)) -> Recipe:
    r"""Return the recipe of a feature specification.

    Args:
        spec: "S1", "S2", "S3", "S3(window=2)", "pos", "ner", "default" (also None), a template (of tagwise or CRF++),
            patterns of Wapiti, the path of a file of either, a function of a sentence, a Gazetteer, a Regex, a sum of
            these (`Features`, or a string such as "default+gazetteer:cities.txt"), "attributes", or a Recipe.
        columns: Names of the columns, the token first. None if X consists of attributes.

    >>> resolve("word[0].lower\nword[-1].suffix(2)").render(["The", "Dog"])
    [['word[0].lower=the'], ['word[0].lower=dog', 'word[-1].suffix(2)=he']]
    """
    if isinstance(spec, Recipe):
        return spec
    if spec == "attributes" or (columns is None and spec in (None, "default")):
        return Recipe("attributes", "attributes")
    if columns is None:
        raise ParameterError(
            f"features={spec!r} needs tokens, but X contains ready-made attributes. Drop the argument."
        )
    if spec is None:
        spec = "default"
    if not columns:
        raise TemplateError("no columns for features. A corpus needs at least one in addition to its labels.")
    for name in columns:
        if not is_text(name):
            raise CorpusError(f"the name of the column {name!a} is not valid Unicode. Rename it.")
    if isinstance(spec, DerivedColumn) or (isinstance(spec, str) and parse_sum(spec)):
        spec = Features(spec)
    if isinstance(spec, Features):
        return _sum(spec, columns)
    if isinstance(spec, (str, os.PathLike)):
        return _from_text(spec, columns)
    if callable(spec):
        name = getattr(spec, "__qualname__", type(spec).__name__)
        return Recipe("function", name, token_column=columns[0], function=spec)
    raise ParameterError(
        f"features={spec!r} is {type(spec).__name__}, expected {', '.join(SETS)}, a template or a function"
    )


def _of_text(
    text: str, columns: Sequence[str], name: str = "", derived: Sequence[DerivedColumn] = ()
) -> Recipe:
    """Return the recipe of a template (of tagwise or CRF++) or of Wapiti patterns, which may read derived columns."""
    every = [*columns, *derived_names(columns, derived)]
    if is_wapiti(text) and not all(_CRFPP.fullmatch(line.strip()) for line in text.splitlines()):
        return Recipe.of_patterns("wapiti", text, every)
    if is_crfpp(text):
        return Recipe.of_template(text, every, name)
    return Recipe.of_template(text, columns, name, derived)


def _is_template(text: str) -> bool:
    """Return whether a string looks like a template."""
    return re.search(r"[\[\n]", text) is not None or text.strip() in ("bias", "first", "last")


def _is_set(text: str) -> bool:
    """Return whether a string is a named set, with or without parameters."""
    return text.split("(")[0].strip() in SETS


def names_files(text: str) -> bool:
    """Return whether resolving a feature string may read a file: a gazetteer, a template, patterns.

    >>> names_files("default+regex:year=[0-9]{4}"), names_files("word[0]"), names_files("S3(window=2)+pos")
    (False, False, False)
    >>> names_files("default+gazetteer:cities.txt"), names_files("mine.template")
    (True, True)
    """
    if text.strip() == "attributes":
        return False
    parts = split_sum(text) or [text]
    plain = (part for part in parts if not part.startswith(("regex:", "function:")))
    return any(not (_is_template(part) or _is_set(part)) for part in plain)


def _from_text(
    spec: str | os.PathLike[str], columns: Sequence[str], derived: Sequence[DerivedColumn] = ()
) -> Recipe:
    """Return the recipe of a named set over `columns`, or of a template or its file, which may read derived columns."""
    if isinstance(spec, str):
        if _is_template(spec):
            return _of_text(spec, columns, derived=derived)
        if _is_set(spec) or not os.path.exists(spec):
            return Recipe.of_template(template_text(spec, columns), columns, spec.strip())
    path = Path(spec)
    remedy = "Give a UTF-8 text file with a template, or the template itself."
    try:
        text = read_regular(path, MOST_TEMPLATE, TemplateError, remedy).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise TemplateError(f"{path}: cannot read the template ({error}). {remedy}") from error
    try:
        return _of_text(text, columns, path.name, derived)
    except TemplateError as error:
        raise TemplateError(f"{path}: {error}") from None


def _sum(spec: Features, columns: Sequence[str]) -> Recipe:
    """Return the recipe of a sum.

    Templates and derived columns are merged into one template, which runs natively and can read every derived column.
    """
    derived = tuple(dict.fromkeys(part for part in spec.parts if isinstance(part, DerivedColumn)))
    derived_names(columns, derived)
    text, names, others = "", [], []
    for part in spec.parts:
        if isinstance(part, DerivedColumn):
            names.append(part.name)
            continue
        if part == "attributes":
            raise ParameterError("features='attributes' cannot be part of a sum. Remove this part.")
        found = resolve(part, columns) if callable(part) else _from_text(part, columns, derived)
        if found.kind != "template" or is_crfpp(found.text):
            others.append(found)
            continue
        text = terminated(text) + found.text
        names.append(part_name(found.name))
    if names:
        others.insert(0, Recipe.of_template(text, columns, " + ".join(names), derived))
    each = [r for i, r in enumerate(others) if not any(map(r.is_equivalent_to, others[:i]))]
    return each[0] if len(each) == 1 else Recipe.of_parts(each)


def recipe_for(spec: Any, X: Any) -> Recipe:
    """Return the recipe of a feature specification for sentences X, which have columns or ready-made attributes.

    >>> recipe_for("default", [[["w=The"], ["w=dog"]]]).kind
    'attributes'
    """
    inputs = Inputs.of(X)
    if isinstance(spec, (Recipe, Features)) or callable(spec):
        return resolve(spec, inputs.columns)
    return resolve(spec, None if inputs.kind == "attributes" else inputs.columns)

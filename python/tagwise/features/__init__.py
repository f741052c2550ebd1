"""Sentences -> attributes: named sets, templates, any function, or attributes as given."""

from tagwise.features.inputs import Inputs, Kind, columns_of, kind_of
from tagwise.features.recipe import Function, Recipe, file_columns, recipe_for, resolve
from tagwise.features.sets import SETS, template_text

__all__ = [
    "SETS",
    "Function",
    "Inputs",
    "Kind",
    "Recipe",
    "columns_of",
    "file_columns",
    "kind_of",
    "recipe_for",
    "resolve",
    "template_text",
]

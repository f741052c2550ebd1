"""Features: named sets, templates, functions, gazetteers, expressions, word classes, sums, ready-made attributes."""

from tagwise.features.derived_columns import Features, Gazetteer, Regex
from tagwise.features.inputs import Inputs, Kind, columns_of, kind_of
from tagwise.features.recipe import Function, Recipe, file_columns
from tagwise.features.resolve import recipe_for, resolve
from tagwise.features.sets import SETS, template_text
from tagwise.features.vectors import Vectors
from tagwise.features.word_classes import WordClasses

__all__ = [
    "SETS",
    "Features",
    "Function",
    "Gazetteer",
    "Inputs",
    "Kind",
    "Recipe",
    "Regex",
    "Vectors",
    "WordClasses",
    "columns_of",
    "file_columns",
    "kind_of",
    "recipe_for",
    "resolve",
    "template_text",
]

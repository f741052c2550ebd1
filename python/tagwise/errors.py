"""Typed errors. Each message says what was wrong (file, line, sentence, value), what was expected, what to do."""

import sys
from functools import cache
from typing import Any


class TagwiseError(Exception):
    """Anything tagwise raises on purpose."""


class CorpusError(TagwiseError, ValueError):
    """A corpus file or a sentence cannot be read as what it is said to be."""


class TemplateError(TagwiseError, ValueError):
    """A feature template does not parse, or names a column that the corpus does not have."""


class ModelFileError(TagwiseError, ValueError):
    """A model file is damaged, of another version, or not a model file."""


class MissingFunctionError(TagwiseError, RuntimeError):
    """A model needs a function that its file names and that nobody handed over; see `tagwise.load`."""


class TrainingError(TagwiseError, RuntimeError):
    """Training cannot go on: a gold label outside its support, a loss that is not finite."""


class ParameterError(TagwiseError, ValueError):
    """A learner's parameter is unknown or outside its domain."""


class NotFittedError(TagwiseError, AttributeError):
    """A tagger is asked to predict before it was fitted or loaded."""


def not_fitted(message: str) -> NotFittedError:
    """The error of a tagger without a model; scikit-learn's own too, where that is in use.

    Whoever can catch scikit-learn's error has imported it, so nothing is imported here.
    """
    theirs = sys.modules.get("sklearn.exceptions")
    return NotFittedError(message) if theirs is None else _of_both(theirs.NotFittedError)(message)


@cache
def _of_both(theirs: Any) -> type[NotFittedError]:
    def reduced(self: NotFittedError) -> tuple[Any, ...]:
        return (not_fitted, self.args)

    body = {"__doc__": NotFittedError.__doc__, "__module__": __name__, "__reduce__": reduced}
    return type("NotFittedError", (NotFittedError, theirs), body)

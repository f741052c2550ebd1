"""Typed errors. Each message says what was wrong (file, line, sentence, value), what was expected, what to do."""

from __future__ import annotations

import functools
import os
import sys
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
    """A parameter, an argument or an environment variable is unknown or outside its domain."""


class MemoryLimitError(TagwiseError, MemoryError):
    """A call would take more memory than its budget (`TAGWISE_MEMORY`), or more threads than the system starts."""


class TensorError(TagwiseError, ValueError):
    """A tensor has another shape than was expected, or holds what a chain cannot have."""


class NotFittedError(TagwiseError, AttributeError):
    """A tagger is asked to predict before it was fitted or loaded."""


class FileError(TagwiseError, OSError):
    """The system refuses a file. `errno`, `strerror` and `filename` are those of an OSError."""

    kind: type[TagwiseError]
    message: str

    def __str__(self) -> str:
        return self.message

    def __reduce__(self) -> tuple[Any, ...]:
        return refusal, (self.kind, self.message, self.filename, self.errno)


@functools.cache
def _refused(kind: Any, system: Any) -> Any:
    """The class of errors that are of this kind and, at once, what Python calls them (FileNotFoundError, ...).

    The system's class comes first: it is the one that knows how to be made.
    """
    bases = (system, FileError, kind)
    kept = [b for i, b in enumerate(bases) if not any(issubclass(other, b) for other in bases[i + 1 :])]
    names = {
        "__module__": kind.__module__,
        "__doc__": kind.__doc__,
        "__str__": FileError.__str__,
        "kind": kind,
    }
    return type(kind.__name__, tuple(kept), names)


def refusal(kind: type[TagwiseError], message: str, filename: str, errno: int) -> FileError:
    """An error of `kind` that is an OSError too: its subclass by `errno`, with `errno` and `filename` set.

    >>> error = refusal(ModelFileError, "a.tagwise: cannot be opened", "a.tagwise", 2)
    >>> isinstance(error, FileNotFoundError), isinstance(error, ModelFileError), error.errno, error.filename
    (True, True, 2, 'a.tagwise')
    """
    words = os.strerror(errno)
    both: tuple[Any, Any] = (kind, type(OSError(errno, words)))
    made: FileError = _refused(*both)(errno, words, filename)
    made.message = message
    return made


class StoppedError(TagwiseError, RuntimeError):
    """The work was stopped by another thread, such as a request whose deadline has passed."""


class InternalError(TagwiseError, RuntimeError):
    """A defect of tagwise: the native core met what no input may lead to. The message says where; please report it."""


def not_fitted(message: str) -> NotFittedError:
    """The error of a tagger without a model; scikit-learn's own too, where that is in use.

    Whoever can catch scikit-learn's error has imported it, so nothing is imported here.
    """
    theirs = sys.modules.get("sklearn.exceptions")
    return NotFittedError(message) if theirs is None else _of_both(theirs.NotFittedError)(message)


@functools.cache
def _of_both(theirs: Any) -> type[NotFittedError]:
    def reduced(self: NotFittedError) -> tuple[Any, ...]:
        return (not_fitted, self.args)

    body = {"__doc__": NotFittedError.__doc__, "__module__": __name__, "__reduce__": reduced}
    return type("NotFittedError", (NotFittedError, theirs), body)

"""Exceptions. A message names the problem and its place (file, line, sentence, value), then the remedy."""

from __future__ import annotations

import functools
import os
import sys
from typing import Any, TypeVar

Self = TypeVar("Self", bound="TagwiseError")


class TagwiseError(Exception):
    """Base class of all errors that tagwise raises.

    Attributes:
        sentence: number, from 0, of the sentence that cannot be encoded or trained on; None for other errors.
    """

    sentence: int | None = None

    def of_sentence(self: Self, sentence: int) -> Self:
        """Set `sentence` and return the error."""
        self.sentence = sentence
        return self


class CorpusError(TagwiseError, ValueError):
    """A corpus file or a sentence is not in the expected format."""


class TemplateError(TagwiseError, ValueError):
    """A feature template is not valid, or refers to a column that the corpus does not have."""


class ModelFileError(TagwiseError, ValueError):
    """A model file is damaged, of another version, or not a model file."""


class MissingFunctionError(TagwiseError, RuntimeError):
    """A model needs a function that its file names and that was not passed to `tagwise.load`."""


class TrainingError(TagwiseError, RuntimeError):
    """Training cannot continue, for example because a gold label is not allowed or a loss is not finite."""


class ParameterError(TagwiseError, ValueError):
    """A parameter, an argument or an environment variable is unknown or outside its domain."""


class MemoryLimitError(TagwiseError, MemoryError):
    """A call needs more memory than its budget (`TAGWISE_MEMORY`), or more threads than the system can start."""


class TensorError(TagwiseError, ValueError):
    """A tensor has an unexpected shape, or values that a chain cannot have."""


class NotFittedError(TagwiseError, AttributeError):
    """A tagger is used before it was fitted or loaded."""


class FileError(TagwiseError, OSError):
    """The system cannot open, read or write a file. It is an OSError with `errno`, `strerror` and `filename`."""

    kind: type[TagwiseError]
    message: str

    def __str__(self) -> str:
        return self.message

    def __reduce__(self) -> tuple[Any, ...]:
        return file_error, (self.kind, self.message, self.filename, self.errno)


@functools.cache
def _refused(kind: Any, system: Any) -> Any:
    """Return a class that is both of this kind and of the class of Python (FileNotFoundError, ...).

    The class of Python comes first, because its constructor is needed.
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


def file_error(kind: type[TagwiseError], message: str, filename: str, errno: int) -> FileError:
    """Return an error of `kind` that is also the OSError subclass of `errno`, with `errno` and `filename` set.

    >>> error = file_error(ModelFileError, "a.tagwise: cannot be opened", "a.tagwise", 2)
    >>> isinstance(error, FileNotFoundError), isinstance(error, ModelFileError), error.errno, error.filename
    (True, True, 2, 'a.tagwise')
    """
    words = os.strerror(errno)
    both: tuple[Any, Any] = (kind, type(OSError(errno, words)))
    made: FileError = _refused(*both)(errno, words, filename)
    made.message = message
    return made


class StoppedError(TagwiseError, RuntimeError):
    """Another thread stopped the work, for example because the deadline of a request has passed."""


class InternalError(TagwiseError, RuntimeError):
    """A defect of tagwise: the core reached a state that no input should lead to. Please report the message."""


def not_fitted(message: str) -> NotFittedError:
    """Return the error of a tagger without a model, which is also that of scikit-learn if scikit-learn is imported.

    Code that catches the error of scikit-learn has imported it, so it is not imported here.
    """
    theirs = sys.modules.get("sklearn.exceptions")
    return NotFittedError(message) if theirs is None else _of_both(theirs.NotFittedError)(message)


@functools.cache
def _of_both(theirs: Any) -> type[NotFittedError]:
    def reduced(self: NotFittedError) -> tuple[Any, ...]:
        return (not_fitted, self.args)

    body = {"__doc__": NotFittedError.__doc__, "__module__": __name__, "__reduce__": reduced}
    return type("NotFittedError", (NotFittedError, theirs), body)

"""Exceptions. All are subclasses of `tagwise.TagwiseError`.

>>> import tagwise as tw
>>> try:
...     tw.read("missing.txt")
... except tw.exceptions.FileError as error:
...     print(error.filename)
missing.txt
"""

from tagwise.base.exceptions import (
    CorpusError,
    FileError,
    InternalError,
    MemoryLimitError,
    MissingFunctionError,
    ModelFileError,
    NotFittedError,
    ParameterError,
    TagwiseError,
    TemplateError,
    TensorError,
    TrainingError,
)

__all__ = [
    "CorpusError",
    "FileError",
    "InternalError",
    "MemoryLimitError",
    "MissingFunctionError",
    "ModelFileError",
    "NotFittedError",
    "ParameterError",
    "TagwiseError",
    "TemplateError",
    "TensorError",
    "TrainingError",
]

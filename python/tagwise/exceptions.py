"""Exceptions. All are subclasses of `tagwise.TagwiseError`.

>>> import tagwise as tw
>>> try:
...     tw.CRF(l2=-1.0).fit([["a"]], [["DT"]])
... except tw.exceptions.ParameterError as error:
...     print(error)
l2=-1.0: expected a number >= 0
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

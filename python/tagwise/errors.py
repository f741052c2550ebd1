"""Typed errors. Each message says what was wrong (file, line, sentence, value), what was expected, what to do."""


class TagwiseError(Exception):
    """Anything tagwise raises on purpose."""


class CorpusError(TagwiseError, ValueError):
    """A corpus file or a sentence cannot be read as what it is said to be."""


class TemplateError(TagwiseError, ValueError):
    """A feature template does not parse, or names a column that the corpus does not have."""


class ModelFileError(TagwiseError, ValueError):
    """A model file is damaged, of another version, or not a model file."""


class TrainingError(TagwiseError, RuntimeError):
    """Training cannot go on: a gold label outside its support, a loss that is not finite."""


class ParameterError(TagwiseError, ValueError):
    """A learner's parameter is unknown or outside its domain."""


class NotFittedError(TagwiseError, AttributeError):
    """A tagger is asked to predict before it was fitted or loaded."""


class InternalError(TagwiseError, RuntimeError):
    """A defect of tagwise: the native core met what no input may lead to. The message says where; please report it."""

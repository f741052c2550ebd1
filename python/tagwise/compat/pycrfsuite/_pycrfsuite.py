"""Public names of python-crfsuite's extension module."""

from tagwise.compat.pycrfsuite.errors import CRFSuiteError
from tagwise.compat.pycrfsuite.items import ItemSequence
from tagwise.compat.pycrfsuite.tagger import Tagger
from tagwise.compat.pycrfsuite.trainer import BaseTrainer, Trainer

#: Release of CRFsuite whose behaviour is reproduced.
CRFSUITE_VERSION = "0.12.2"

__all__ = ["CRFSUITE_VERSION", "BaseTrainer", "CRFSuiteError", "ItemSequence", "Tagger", "Trainer"]

"""The API of python-crfsuite 0.9.12, implemented by tagwise.

>>> import os, tempfile
>>> path = os.path.join(tempfile.mkdtemp(), "x.crfsuite")
>>> trainer = Trainer(verbose=False)
>>> trainer.append([["a"], ["b"]], ["X", "Y"])
>>> trainer.train(path)
>>> tagger = Tagger()
>>> with tagger.open(path): tagger.tag([["b"], ["a"]])
['Y', 'X']
"""

from tagwise.compat.pycrfsuite._pycrfsuite import (
    CRFSUITE_VERSION,
    BaseTrainer,
    CRFSuiteError,
    ItemSequence,
    Tagger,
    Trainer,
)

__all__ = ["CRFSUITE_VERSION", "BaseTrainer", "CRFSuiteError", "ItemSequence", "Tagger", "Trainer"]

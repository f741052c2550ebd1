"""Fast sequence labelling: train, explain and serve taggers for entities, parts of speech and fields.

>>> import tagwise as tw
>>> train, dev, test = tw.load_corpus("wnut17-ner")
>>> tagger = tw.CRF(features="S2", max_iter=5).fit(train[:200])
>>> len(tagger.predict(test[:3]))
3
"""

import importlib
import importlib.util
import os
import sys
from typing import TYPE_CHECKING

from tagwise._core import __version__
from tagwise.base import extensions

if TYPE_CHECKING:
    import tagwise.exceptions as exceptions
    import tagwise.lattice as lattice
    import tagwise.losses as losses
    import tagwise.plot as plot
    import tagwise.scorers as scorers
    import tagwise.spans as spans
    from tagwise.apps.compare import compare
    from tagwise.apps.pretrained import list_pretrained, pretrained
    from tagwise.base.exceptions import TagwiseError
    from tagwise.base.options import RBF, Dictionary, Kernel, Lookback, Partial, Poly
    from tagwise.corpus.bundled import list_corpora, load_corpus
    from tagwise.corpus.formats import iter_sentences, read, write
    from tagwise.corpus.sentence import Corpus, Sentence
    from tagwise.corpus.text.tokenizer import Tokenizer
    from tagwise.dataset.shards.encode import encode
    from tagwise.dataset.shards.reader import Shards
    from tagwise.estimators import (
        AROW,
        CRF,
        HMM,
        HMSVM,
        MEMM,
        MIRA,
        Boosting,
        PassiveAggressive,
        Perceptron,
        Tagger,
        load,
    )
    from tagwise.estimators.sharded import fit_shards
    from tagwise.evaluation.metrics import evaluate
    from tagwise.features.derived_columns import Features, Gazetteer, Regex
    from tagwise.features.vectors import Vectors
    from tagwise.features.word_classes import WordClasses
    from tagwise.learners.checkpoint import Checkpoint

__all__ = [
    "AROW",
    "CRF",
    "HMM",
    "HMSVM",
    "MEMM",
    "MIRA",
    "RBF",
    "Boosting",
    "Checkpoint",
    "Corpus",
    "Dictionary",
    "Features",
    "Gazetteer",
    "Kernel",
    "Lookback",
    "Partial",
    "PassiveAggressive",
    "Perceptron",
    "Poly",
    "Regex",
    "Sentence",
    "Shards",
    "Tagger",
    "TagwiseError",
    "Tokenizer",
    "Vectors",
    "WordClasses",
    "__version__",
    "compare",
    "encode",
    "evaluate",
    "exceptions",
    "fit_shards",
    "iter_sentences",
    "lattice",
    "list_corpora",
    "list_pretrained",
    "load",
    "load_corpus",
    "losses",
    "plot",
    "pretrained",
    "read",
    "scorers",
    "spans",
    "write",
]

#: Module of each public name, as in the imports for type checkers above. Modules are imported when one of their names
#: is first used, so that `import tagwise` is fast.
_HOMES = {
    "tagwise.apps.compare": "compare",
    "tagwise.apps.pretrained": "list_pretrained pretrained",
    "tagwise.base.exceptions": "TagwiseError",
    "tagwise.corpus.bundled": "list_corpora load_corpus",
    "tagwise.corpus.formats": "iter_sentences read write",
    "tagwise.corpus.sentence": "Corpus Sentence",
    "tagwise.corpus.text.tokenizer": "Tokenizer",
    "tagwise.base.options": "RBF Dictionary Kernel Lookback Partial Poly",
    "tagwise.dataset.shards.encode": "encode",
    "tagwise.dataset.shards.reader": "Shards",
    "tagwise.estimators": "AROW CRF HMM HMSVM MEMM MIRA Boosting PassiveAggressive Perceptron Tagger load",
    "tagwise.estimators.sharded": "fit_shards",
    "tagwise.evaluation.metrics": "evaluate",
    "tagwise.features.derived_columns": "Features Gazetteer Regex",
    "tagwise.features.vectors": "Vectors",
    "tagwise.features.word_classes": "WordClasses",
    "tagwise.learners.checkpoint": "Checkpoint",
}
_HOME = {name: home for home, names in _HOMES.items() for name in names.split()}


if not TYPE_CHECKING:  # else type checkers accept every name

    def __getattr__(name: str) -> object:
        """Import a public name, or a submodule or package that has not been imported yet."""
        if name in _HOME:
            value = globals()[name] = getattr(importlib.import_module(_HOME[name]), name)
            return value
        if not name.startswith("_") and importlib.util.find_spec(f"tagwise.{name}"):
            return importlib.import_module(f"tagwise.{name}")
        message = f"module 'tagwise' has no attribute {name!r}"
        raise AttributeError(
            message, name=name, obj=sys.modules[__name__]
        )  # for the suggestion of a traceback


def __dir__() -> list[str]:
    return list(__all__)


extensions.register("device", "cuda", "tagwise.torch.linear.backend", extra="torch")
extensions.register("shards", "ray", "tagwise.ray.backend", extra="ray")
extensions.register("encoding", "ray", "tagwise.ray.encoding", extra="ray")

if os.environ.get("TAGWISE_CRFSUITE"):
    from tagwise.compat.installing import install_from_environment

    install_from_environment(os.environ["TAGWISE_CRFSUITE"])

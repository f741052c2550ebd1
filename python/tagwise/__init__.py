"""Discriminative label-sequence learning: every classic learner on one fast engine.

>>> import tagwise as tw
>>> train, dev, test = tw.load_corpus("wnut17-ner")
>>> tagger = tw.CRF(features="S2", max_iter=5).fit(train[:200])
>>> len(tagger.predict(test[:3]))
3
"""

import importlib
import importlib.util
import os
from typing import TYPE_CHECKING, Any

from tagwise._core import __version__
from tagwise.base import extensions

if TYPE_CHECKING:
    import tagwise.apps.compare.plots as plot
    from tagwise.apps.compare import compare
    from tagwise.apps.pretrained import TaggerInfo, pretrained, taggers
    from tagwise.base.exceptions import (
        CorpusError,
        FileError,
        MemoryLimitError,
        MissingFunctionError,
        ModelFileError,
        NotFittedError,
        ParameterError,
        TagwiseError,
        TemplateError,
        TrainingError,
    )
    from tagwise.corpus import schemes
    from tagwise.corpus.bundled import corpora, load_corpus
    from tagwise.corpus.conll import iter_conll, read_conll, write_conll
    from tagwise.corpus.conllu import iter_conllu, read_conllu, write_conllu
    from tagwise.corpus.formats import read, write
    from tagwise.corpus.interop import corpus_of, to_series
    from tagwise.corpus.jsonl import iter_jsonl, read_jsonl, write_jsonl
    from tagwise.corpus.pretokenized import iter_text, read_text, write_text
    from tagwise.corpus.sentence import Corpus, Sentence
    from tagwise.corpus.text.raw_text import iter_raw, read_raw, write_raw
    from tagwise.corpus.text.span_jsonl import iter_spans, read_spans, write_spans
    from tagwise.corpus.text.spans import (
        Alignment,
        Misaligned,
        TextSpan,
        labels_to_spans,
        span_corpus,
        spans_to_labels,
    )
    from tagwise.corpus.text.tokenizer import Tokenized, Tokenizer
    from tagwise.dataset.shards.encode import encode
    from tagwise.dataset.shards.reader import Shards
    from tagwise.estimators import (
        AROW,
        CRF,
        HMM,
        HMSVM,
        LEARNERS,
        MEMM,
        MIRA,
        Boosting,
        PassiveAggressive,
        Perceptron,
        Tagger,
        load,
    )
    from tagwise.estimators.documents import spacy_component
    from tagwise.estimators.path import RegularizationPath, regularization_path
    from tagwise.estimators.sharded import fit_shards
    from tagwise.evaluation.metrics import Calibration, Report, calibration, evaluate
    from tagwise.features import Features, Gazetteer, Regex
    from tagwise.features.vectors import Vectors, vectors
    from tagwise.learners.checkpoint import Checkpoint
    from tagwise.model.model import Model
    from tagwise.scores import lattice, losses

__all__ = [
    "AROW",
    "CRF",
    "HMM",
    "HMSVM",
    "LEARNERS",
    "MEMM",
    "MIRA",
    "Alignment",
    "Boosting",
    "Calibration",
    "Checkpoint",
    "Corpus",
    "CorpusError",
    "Features",
    "FileError",
    "Gazetteer",
    "MemoryLimitError",
    "Misaligned",
    "MissingFunctionError",
    "Model",
    "ModelFileError",
    "NotFittedError",
    "ParameterError",
    "PassiveAggressive",
    "Perceptron",
    "Regex",
    "RegularizationPath",
    "Report",
    "Sentence",
    "Shards",
    "Tagger",
    "TaggerInfo",
    "TagwiseError",
    "TemplateError",
    "TextSpan",
    "Tokenized",
    "Tokenizer",
    "TrainingError",
    "Vectors",
    "__version__",
    "calibration",
    "compare",
    "corpora",
    "corpus_of",
    "encode",
    "evaluate",
    "fit_shards",
    "iter_conll",
    "iter_conllu",
    "iter_jsonl",
    "iter_raw",
    "iter_spans",
    "iter_text",
    "labels_to_spans",
    "lattice",
    "load",
    "load_corpus",
    "losses",
    "plot",
    "pretrained",
    "read",
    "read_conll",
    "read_conllu",
    "read_jsonl",
    "read_raw",
    "read_spans",
    "read_text",
    "regularization_path",
    "schemes",
    "spacy_component",
    "span_corpus",
    "spans_to_labels",
    "taggers",
    "to_series",
    "vectors",
    "write",
    "write_conll",
    "write_conllu",
    "write_jsonl",
    "write_raw",
    "write_spans",
    "write_text",
]

#: Module of each public name, as in the imports for type checkers above. Modules are imported when one of their names
#: is first used, so that `import tagwise` is fast.
_HOMES = {
    "tagwise.apps.compare": "compare",
    "tagwise.corpus": "schemes",
    "tagwise.corpus.bundled": "corpora load_corpus",
    "tagwise.corpus.conll": "iter_conll read_conll write_conll",
    "tagwise.corpus.conllu": "iter_conllu read_conllu write_conllu",
    "tagwise.corpus.interop": "corpus_of to_series",
    "tagwise.corpus.formats": "read write",
    "tagwise.corpus.jsonl": "iter_jsonl read_jsonl write_jsonl",
    "tagwise.corpus.text.raw_text": "iter_raw read_raw write_raw",
    "tagwise.corpus.text.span_jsonl": "iter_spans read_spans write_spans",
    "tagwise.corpus.sentence": "Corpus Sentence",
    "tagwise.corpus.text.spans": "Alignment Misaligned TextSpan labels_to_spans span_corpus spans_to_labels",
    "tagwise.corpus.pretokenized": "iter_text read_text write_text",
    "tagwise.corpus.text.tokenizer": "Tokenized Tokenizer",
    "tagwise.base.exceptions": "CorpusError FileError MemoryLimitError MissingFunctionError ModelFileError "
    "NotFittedError ParameterError TagwiseError TemplateError TrainingError",
    "tagwise.estimators": "AROW CRF HMM HMSVM LEARNERS MEMM MIRA Boosting PassiveAggressive Perceptron Tagger load",
    "tagwise.estimators.documents": "spacy_component",
    "tagwise.estimators.path": "RegularizationPath regularization_path",
    "tagwise.estimators.sharded": "fit_shards",
    "tagwise.features": "Features Gazetteer Regex",
    "tagwise.features.vectors": "Vectors vectors",
    "tagwise.learners.checkpoint": "Checkpoint",
    "tagwise.evaluation.metrics": "Calibration Report calibration evaluate",
    "tagwise.model.model": "Model",
    "tagwise.apps.pretrained": "TaggerInfo pretrained taggers",
    "tagwise.scores": "lattice losses",
    "tagwise.dataset.shards.encode": "encode",
    "tagwise.dataset.shards.reader": "Shards",
}
_HOME = {name: home for home, names in _HOMES.items() for name in names.split()}
#: Modules whose public name differs from their place in the package.
_MODULES = {"plot": "tagwise.apps.compare.plots"}


def __getattr__(name: str) -> Any:
    """Import a public name, or a package that has not been imported yet."""
    if name in _MODULES:
        return importlib.import_module(_MODULES[name])
    if name in _HOME:
        home = importlib.import_module(_HOME[name])
        value = globals()[name] = getattr(home, name, None) or importlib.import_module(
            f"{_HOME[name]}.{name}"
        )
        return value
    if not name.startswith("_") and importlib.util.find_spec(f"tagwise.{name}"):
        return importlib.import_module(f"tagwise.{name}")
    raise AttributeError(f"module 'tagwise' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


extensions.register("device", "cuda", "tagwise.torch.linear.backend", extra="torch")
extensions.register("shards", "ray", "tagwise.ray.backend", extra="ray")

if os.environ.get("TAGWISE_CRFSUITE"):
    from tagwise.compat.installing import install_from_environment

    install_from_environment(os.environ["TAGWISE_CRFSUITE"])

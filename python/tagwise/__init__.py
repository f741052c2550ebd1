"""Discriminative label-sequence learning: every classic learner on one fast engine.

>>> import tagwise as tw
>>> train, dev, test = tw.load_corpus("wnut17-ner")
>>> tagger = tw.CRF(features="S2", max_iter=5).fit(train[:200])
>>> len(tagger.predict(test[:3]))
3
"""

import os

import tagwise.plot as plot
from tagwise._core import __version__
from tagwise.compare import compare
from tagwise.compare.table import PAGES, Comparison
from tagwise.corpus import schemes
from tagwise.corpus.bundled import corpora, load_corpus
from tagwise.corpus.conll import iter_conll, read_conll, write_conll
from tagwise.corpus.conllu import iter_conllu, read_conllu, write_conllu
from tagwise.corpus.foreign import to_series
from tagwise.corpus.formats import read, write
from tagwise.corpus.jsonl import iter_jsonl, read_jsonl, write_jsonl
from tagwise.corpus.lines import iter_raw, read_raw, write_raw
from tagwise.corpus.records import iter_spans, read_spans, write_spans
from tagwise.corpus.sentence import Corpus, Sentence
from tagwise.corpus.spans import (
    Alignment,
    Misaligned,
    TextSpan,
    labels_to_spans,
    span_corpus,
    spans_to_labels,
)
from tagwise.corpus.text import iter_text, read_text, write_text
from tagwise.corpus.tokenizer import Tokenized, Tokenizer
from tagwise.errors import (
    CorpusError,
    FileError,
    MissingFunctionError,
    ModelFileError,
    NotFittedError,
    ParameterError,
    TagwiseError,
    TemplateError,
    TrainingError,
)
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
from tagwise.features import Features, Gazetteer, Regex
from tagwise.features.vectors import Vectors, vectors
from tagwise.learners.checkpoint import Checkpoint
from tagwise.metrics import Calibration, Report, calibration, evaluate
from tagwise.model.model import Model
from tagwise.ready.taggers import TaggerInfo, pretrained, taggers
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
    "evaluate",
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


def _page(comparison: Comparison, path: str | os.PathLike[str]) -> None:
    """The page of a comparison, whose drawing is imported once one is asked for."""
    from tagwise.report import write as write_page

    write_page(comparison, path)


PAGES["html"] = _page

if os.environ.get("TAGWISE_CRFSUITE", "0") not in ("", "0"):
    from tagwise.compat.installing import install

    install()

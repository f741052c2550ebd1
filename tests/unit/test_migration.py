"""The migration page names everything of version 0.2 that is gone."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

import pytest

import tagwise as tw

PAGE = (Path(__file__).parents[2] / "docs" / "migrate" / "from-0.2.md").read_text("utf-8")

#: Names of `tagwise` 0.2.
NAMES = """
AROW Alignment Boosting CRF Calibration Checkpoint Corpus CorpusError Features FileError Gazetteer HMM HMSVM LEARNERS
MEMM MIRA Misaligned MissingFunctionError Model ModelFileError NotFittedError ParameterError PassiveAggressive
Perceptron Regex RegularizationPath Report Sentence Shards Tagger TaggerInfo TagwiseError TemplateError TextSpan
Tokenized Tokenizer TrainingError Vectors calibration compare corpora encode evaluate iter_conll iter_conllu iter_jsonl
iter_raw iter_spans iter_text labels_to_spans lattice load load_corpus losses plot pretrained read read_conll
read_conllu read_jsonl read_raw read_spans read_text regularization_path schemes spacy_component span_corpus
spans_to_labels taggers to_series vectors write write_conll write_conllu write_jsonl write_raw write_spans write_text
"""

#: Parameters of version 0.2 that are gone, by the class or function that had them.
PARAMETERS = {
    "AROW": "gamma epochs shards dictionary_share seed",
    "Boosting": "rounds smoothing seed",
    "CRF": "sigma shards cost separator unknown dictionary_share seed",
    "CRF.fit": "backend workers",
    "CRF.predict": "memory",
    "HMM": "delta unknown",
    "HMSVM": "degree coef gamma form cache_mb max_epochs max_paths dictionary_share seed",
    "MEMM": "seed",
    "MIRA": "history pool document epochs shards dictionary_share seed",
    "MIRA.partial_fit": "epochs",
    "PassiveAggressive": "epochs shards dictionary_share seed",
    "Perceptron": "history pool document degree coef gamma form cache_mb budget epochs shards dictionary_share seed",
    "compare": "jobs",
    "encode": "progress",
}

#: Members of taggers and options of commands that are gone.
MEMBERS = "explain_prediction ranks --epochs --history --document --jobs"


def on_page(name: str) -> bool:
    return re.search(rf"(?<![\w-]){re.escape(name)}(?![\w-])", PAGE) is not None


def test_page_names_everything_that_is_gone() -> None:
    gone = {name for name in NAMES.split() if name not in tw.__all__}
    gone |= {parameter for of in PARAMETERS.values() for parameter in of.split()}
    assert sorted(name for name in {*gone, *MEMBERS.split()} if not on_page(name)) == []


@pytest.mark.parametrize("owner", PARAMETERS)
def test_parameters_are_gone(owner: str) -> None:
    """The old names are no aliases."""
    value = tw
    for part in owner.split("."):
        value = getattr(value, part)
    assert not {*PARAMETERS[owner].split()} & {*inspect.signature(value).parameters}  # type: ignore[arg-type]

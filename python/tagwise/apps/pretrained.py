"""Taggers by name: trained from a bundled corpus at first use, kept in the user's cache from then on."""

from __future__ import annotations

import functools
import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tagwise.apps.compare.cache import code_version, default_folder
from tagwise.base.exceptions import ParameterError, TagwiseError
from tagwise.base.parameters import meant
from tagwise.corpus.bundled import corpus_info, files_of, load_corpus
from tagwise.estimators import LEARNERS, Tagger, load
from tagwise.evaluation.metrics import Report
from tagwise.learners.loop import logger

#: The entry of a model's `meta` that says which ready tagger it is.
ENTRY = "pretrained"

Folder = str | os.PathLike[str] | bool


@dataclass(frozen=True)
class TaggerInfo:
    """A tagger that `pretrained` knows: what it labels, and what it is trained from."""

    name: str
    task: str
    corpus: str  # a bundled one
    label: str  # the column of the corpus that is learnt
    learner: str
    params: Mapping[str, Any] = field(default_factory=dict)

    @property
    def licence(self) -> str:
        """What the licence of the corpus asks."""
        return corpus_info(self.corpus).licence

    @property
    def key(self) -> str:
        """A digest of all that decides the model: the code that trains, the corpus, the recipe."""
        content = {
            "code": code_version(),
            "corpus": corpus_digest(self.corpus),
            "label": self.label,
            "learner": self.learner,
            "params": dict(self.params),
        }
        return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()

    def path(self, cache: Folder = True) -> Path | None:
        """Where its model is kept; None where none is to be kept, or the user has no home to keep it in."""
        if cache is False:
            return None
        try:
            folder = default_folder("models") if cache is True else Path(cache)
        except RuntimeError:
            return None
        return folder / f"{self.name}-{self.key[:16]}.tagwise"

    def kept(self, cache: Folder = True) -> Tagger | None:
        """The tagger as it lies in the cache, or None; a warning names a file that is damaged or another model's."""
        path = self.path(cache)
        if path is None or not path.exists():
            return None
        try:
            tagger = load(path)
        except FileNotFoundError:  # somebody cleaned up meanwhile
            return None
        except (TagwiseError, OSError) as error:
            logger.warning("%s; %s is trained again", error, self.name)
            return None
        said = tagger.model_.meta.get(ENTRY)
        if not isinstance(said, dict) or said.get("key") != self.key:
            logger.warning("%s: this is not the model of %s, which is trained again", path, self.name)
            return None
        return tagger

    def train(self, verbose: int = 0) -> Tagger:
        """The tagger, trained now and scored on the test part; its `meta` says what it is and how good."""
        train, dev, test = load_corpus(self.corpus, self.label)
        params = {**self.params, "verbose": verbose}
        tagger = LEARNERS[self.learner](**params)
        tagger.fit(train, dev=dev)
        tagger.set_params(verbose=0)
        entry = {
            "name": self.name,
            "task": self.task,
            "corpus": self.corpus,
            "licence": self.licence,
            "key": self.key,
            "test": scores_of(tagger.evaluate(test)),
        }
        tagger.model_ = tagger.model_.with_meta(**{ENTRY: entry})
        return tagger


def scores_of(report: Report) -> dict[str, float]:
    """The figures of a report that a ready tagger is known by."""
    spans = {"precision": report.precision, "recall": report.recall, "f1": report.f1}
    return {
        "accuracy": report.accuracy,
        "sequence_accuracy": report.sequence_accuracy,
        **(spans if report.chunked else {}),
    }


@functools.cache
def corpus_digest(name: str) -> str:
    """A digest of the files of a bundled corpus."""
    digest = hashlib.sha256()
    for path in files_of(name):
        digest.update(hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()


TAGGERS = {
    info.name: info
    for info in (
        TaggerInfo(
            "en-pos",
            "parts of speech of English text, Penn Treebank tags (NN, VBD, ...)",
            "ewt-pos",
            "xpos",
            "crf",
            {"features": "default", "l2": 0.1, "max_iter": 30},
        ),
        TaggerInfo(
            "en-upos",
            "parts of speech of English text, universal tags (NOUN, VERB, ...)",
            "ewt-pos",
            "upos",
            "crf",
            {"features": "default", "l2": 0.1, "max_iter": 30},
        ),
        TaggerInfo(
            "en-ner",
            "names in English user text: person, location, corporation, product, creative-work, group (IOB2)",
            "wnut17-ner",
            "ner",
            "crf",
            {"features": "default", "l2": 0.1, "max_iter": 25, "class_weight": {"O": 0.1}},
        ),
    )
}


def taggers() -> list[TaggerInfo]:
    """The taggers that `pretrained` knows.

    >>> [info.name for info in taggers()]
    ['en-pos', 'en-upos', 'en-ner']
    """
    return list(TAGGERS.values())


def info_of(name: str) -> TaggerInfo:
    """The ready tagger of a name; a ParameterError lists those there are."""
    if name not in TAGGERS:
        raise ParameterError(
            f"there is no ready tagger {name!r}{meant(name, TAGGERS)}; there are: {', '.join(TAGGERS)}. "
            "A model file of your own is read by tagwise.load"
        )
    return TAGGERS[name]


def pretrained(name: str, *, cache: Folder = True, verbose: int = 0) -> Tagger:
    """A tagger that is ready for use, by its name; `taggers()` lists them.

    It is trained from a bundled corpus at first use, which takes seconds, and kept in the user's cache (the folder
    `models` in that of TAGWISE_CACHE where that is set) under a name that says which code, corpus and parameters made
    it. `tagger.model_.meta["pretrained"]` says what it is, and how good: its scores on the test part of the corpus.

    Args:
        name: one of `taggers()`.
        cache: the folder where models are kept, True for the usual one, False to train now and keep nothing. Where it
            cannot be written to, a warning says so and the tagger is there all the same.
        verbose: 1 shows a line of progress while it is trained, as of any tagger.

    >>> tagger = pretrained("en-ner", cache="models")
    >>> tagger.predict([["Justin", "Bieber", "is", "in", "London"]])
    [['B-person', 'I-person', 'O', 'O', 'B-location']]
    """
    info = info_of(name)
    found = info.kept(cache)
    if found is not None:
        return found
    made, path = info.train(verbose), info.path(cache)
    if path is None:
        if cache is not False:
            logger.warning("there is no folder to keep %s in; set TAGWISE_CACHE to one", name)
        return made
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        made.save(path)
    except OSError as error:
        logger.warning(
            "%s: models cannot be kept there (%s); going on without the cache", path.parent, error.strerror
        )
        return made
    return info.kept(cache) or made

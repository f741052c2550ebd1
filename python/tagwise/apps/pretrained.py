"""Pretrained taggers, which are trained on a bundled corpus at first use and kept in the user's cache."""

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
from tagwise.corpus.listing import Listing
from tagwise.estimators import LEARNERS, Tagger, load
from tagwise.evaluation.metrics import Report
from tagwise.learners.loop import logger

#: Entry of a model's `meta` that describes a pretrained tagger.
ENTRY = "pretrained"

Folder = str | os.PathLike[str] | bool


@dataclass(frozen=True)
class TaggerInfo:
    """Description of a pretrained tagger.

    Args:
        name: Name for `pretrained`.
        task: What it labels, and the label set.
        corpus: Name of the bundled corpus that it is trained on.
        label: Column of the corpus that holds the labels.
        learner: Name of the learner.
        params: Parameters of the learner.

    Attributes:
        licence: Licence of the corpus.
        key: Digest of everything that determines the model.

    >>> import tagwise as tw
    >>> info = tw.list_pretrained()[-1]
    >>> info.name, info.corpus, info.learner
    ('en-ner-demo', 'wnut17-ner', 'crf')
    """

    name: str
    task: str
    corpus: str
    label: str
    learner: str
    params: Mapping[str, Any] = field(default_factory=dict)

    def __repr__(self) -> str:
        return f"<TaggerInfo {self.name}: {self.task}>"

    def _cells(self) -> dict[str, str]:
        """Return the cells of a table of taggers by column."""
        return {
            "name": self.name,
            "task": self.task,
            "corpus": self.corpus,
            "learner": self.learner,
            "licence": self.licence,
        }

    def _repr_html_(self) -> str:
        return Listing([self])._repr_html_()

    @property
    def licence(self) -> str:
        """Licence of the corpus."""
        return corpus_info(self.corpus).licence

    @property
    def key(self) -> str:
        """Digest of everything that determines the model: training code, corpus, learner and parameters."""
        content = {
            "code": code_version(),
            "corpus": corpus_digest(self.corpus),
            "label": self.label,
            "learner": self.learner,
            "params": dict(self.params),
        }
        return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()

    def path(self, cache: Folder = True) -> Path | None:
        """Return the path of the model in the cache.

        Args:
            cache: Folder of models, True for the default one, or False for none.

        Returns:
            The path, whether or not the file exists, or None without a cache folder.
        """
        if cache is False:
            return None
        try:
            folder = default_folder("models") if cache is True else Path(cache)
        except RuntimeError:
            return None
        return folder / f"{self.name}-{self.key[:16]}.tagwise"

    def kept(self, cache: Folder = True) -> Tagger | None:
        """Return the tagger in the cache.

        A file that is damaged or belongs to another model is reported by a warning.

        Args:
            cache: Folder of models, True for the default one, or False for none.

        Returns:
            The tagger, or None if it is not in the cache.
        """
        path = self.path(cache)
        if path is None or not path.exists():
            return None
        try:
            tagger = load(path)
        except FileNotFoundError:  # removed since the check
            return None
        except (TagwiseError, OSError) as error:
            logger.warning("%s. Training %s again", error, self.name)
            return None
        card = tagger.model_.meta.get(ENTRY)
        if not isinstance(card, dict) or card.get("key") != self.key:
            logger.warning(
                "%s: not the model of the pretrained tagger %s. Training it again", path, self.name
            )
            return None
        return tagger

    def train(self, verbose: int = 0) -> Tagger:
        """Train the tagger and score it on the test part of its corpus.

        Args:
            verbose: 1 shows a progress line.

        Returns:
            The tagger, with its description and scores in ``tagger.model_.meta["pretrained"]``.
        """
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
    """Return the scores that describe a pretrained tagger."""
    spans = {"precision": report.precision, "recall": report.recall, "f1": report.f1}
    return {
        "accuracy": report.accuracy,
        "sequence_accuracy": report.sequence_accuracy,
        **(spans if report.chunked else {}),
    }


@functools.cache
def corpus_digest(name: str) -> str:
    """Return a digest of the files of a bundled corpus."""
    digest = hashlib.sha256()
    for path in files_of(name):
        digest.update(hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()


#: Six epochs of stochastic descent take a tenth of the time of thirty iterations of L-BFGS. Scores are up to 0.2 points
#: lower.
_FEW_PASSES = {"features": "default", "l2": 0.1, "optimizer": "sgd", "max_iter": 6}

TAGGERS = {
    info.name: info
    for info in (
        TaggerInfo(
            "en-pos",
            "parts of speech of English text, Penn Treebank tags (NN, VBD, ...)",
            "ewt-pos",
            "xpos",
            "crf",
            _FEW_PASSES,
        ),
        TaggerInfo(
            "en-upos",
            "parts of speech of English text, universal tags (NOUN, VERB, ...)",
            "ewt-pos",
            "upos",
            "crf",
            _FEW_PASSES,
        ),
        TaggerInfo(
            "en-ner-demo",
            "names in English user text: person, location, corporation, product, creative-work, group (IOB2)",
            "wnut17-ner",
            "ner",
            "crf",
            {"features": "default", "l2": 0.1, "max_iter": 25, "class_weight": {"O": 0.1}},
        ),
    )
}


def list_pretrained() -> Listing[TaggerInfo]:
    """List the pretrained taggers.

    Returns:
        A `TaggerInfo` per tagger.

    >>> [info.name for info in list_pretrained()]
    ['en-pos', 'en-upos', 'en-ner-demo']
    """
    return Listing(TAGGERS.values())


def info_of(name: str) -> TaggerInfo:
    """Return the description of a pretrained tagger, or raise a ParameterError that lists all of them."""
    if name not in TAGGERS:
        raise ParameterError(
            f"unknown pretrained tagger {name!r}{meant(name, TAGGERS)}. Use one of {', '.join(TAGGERS)}, or "
            "tagwise.load for a model file"
        )
    return TAGGERS[name]


def pretrained(name: str, *, cache: Folder = True, verbose: int = 0) -> Tagger:
    """Return a pretrained tagger.

    It is trained on a bundled corpus at first use, which takes seconds, and kept in the user's cache: the folder
    ``models`` inside ``TAGWISE_CACHE``, if that variable is set. The file name depends on code, corpus and parameters,
    so a new version of tagwise trains it again. ``tagger.model_.meta["pretrained"]`` has its description and its scores
    on the test part of the corpus.

    Args:
        name: Name of a tagger. `list_pretrained` lists them.
        cache: Folder of models, True for the default one, or False to train now and keep nothing. If the folder cannot
            be written, a warning is logged and the tagger is returned all the same.
        verbose: 1 shows a progress line during training.

    Returns:
        A fitted tagger.

    Raises:
        ParameterError: If there is no pretrained tagger of that name.

    >>> tagger = pretrained("en-ner-demo", cache="models")
    >>> tagger.predict([["Justin", "Bieber", "is", "in", "London"]])
    [['B-person', 'I-person', 'O', 'O', 'B-location']]
    """
    info = info_of(name)
    found = info.kept(cache)
    if found is not None:
        return found
    tagger, path = info.train(verbose), info.path(cache)
    if path is None:
        if cache is not False:
            logger.warning("%s was not saved: there is no cache folder. Set TAGWISE_CACHE to a folder", name)
        return tagger
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        tagger.save(path)
    except OSError as error:
        logger.warning(
            "%s: the model was not saved (%s). Set TAGWISE_CACHE to another folder",
            path.parent,
            error.strerror,
        )
        return tagger
    return info.kept(cache) or tagger

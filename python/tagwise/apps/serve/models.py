"""Served models by name, and reloading of model files."""

from __future__ import annotations

import asyncio
import copy
import json
import logging
import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tagwise.base.exceptions import ParameterError, TagwiseError
from tagwise.corpus import schemes
from tagwise.estimators import Tagger, load

logger = logging.getLogger("tagwise.apps.serve")

Stamp = tuple[int, int, int]


@dataclass(frozen=True)
class Loaded:
    """A version of a model. A batch uses one version from start to end.

    Attributes:
        single_threaded: The tagger with one thread, which is faster for small batches.
        version: 1, and one more for each reload.
        labels: Labels by number. `texts` has their JSON.
        outside: Number of the label O, or -1 if there is none.
        words: Whether the features read words only.
    """

    tagger: Tagger
    single_threaded: Tagger
    chunked: bool
    sure: bool  # whether the model has probabilities
    version: int
    stamp: Stamp | None
    labels: tuple[Any, ...]
    texts: tuple[str, ...]
    outside: int
    words: bool

    @staticmethod
    def of(tagger: Tagger, name: str, version: int = 1, stamp: Stamp | None = None) -> Loaded:
        """Prepare a tagger for serving, or raise a TagwiseError if it cannot be served."""
        model = tagger._fitted()
        for function in model.missing:
            function()
        if model.recipe.kind == "attributes":
            raise ParameterError(
                f"{name}: this model was trained on lists of attributes, but requests have tokens. "
                "Train a model with a feature set: tagwise train --features SET"
            )
        single_threaded = copy.copy(tagger).set_params(n_jobs=1)
        sure = tagger.probabilistic
        labels = model.classes
        return Loaded(
            tagger,
            single_threaded,
            schemes.has_chunks(model.labels),
            sure,
            version,
            stamp,
            labels,
            tuple(json.dumps(label, ensure_ascii=False) for label in labels),
            labels.index("O") if "O" in labels else -1,
            len(model.recipe.columns) < 2,
        )


def stamp_of(path: str) -> Stamp:
    """Return inode, size and modification time of a file, which change with its content."""
    found = os.stat(path)
    return found.st_ino, found.st_size, found.st_mtime_ns


class ServedModel:
    """A served model: name, file if it has one, loaded version, and the error of a failed reload."""

    def __init__(self, name: str, path: str | None, loaded: Loaded) -> None:
        self.name, self.path, self.loaded = name, path, loaded
        self.error: str | None = None
        self.failed: Stamp | None = None  # stamp of a file that could not be read and is not tried again
        self.failures = 0

    def newer(self) -> Loaded | None:
        """Return the model of a file that was replaced, or None if it was not, or cannot be read (see `error`)."""
        if self.path is None:
            return None
        stamp = None
        try:
            stamp = stamp_of(self.path)
            if stamp in (self.loaded.stamp, self.failed):
                return None
            return Loaded.of(load(self.path), self.name, self.loaded.version + 1, stamp)
        except (TagwiseError, OSError) as error:
            message = f"{error}. Version {self.loaded.version} stays loaded"
            if message != self.error:
                self.failures += 1
                logger.error("%s", message)
            self.error, self.failed = message, stamp
            return None

    def replace(self, newer: Loaded) -> None:
        """Use a newer version from the next batch on."""
        self.loaded, self.error, self.failed = newer, None, None
        logger.info("%s: version %d", self.name, newer.version)

    def described(self) -> dict[str, Any]:
        """Return the entry of `/models`."""
        tagger, model = self.loaded.tagger, self.loaded.tagger.model_
        return {
            "name": self.name,
            "version": self.loaded.version,
            "learner": tagger.name,
            "labels": list(tagger.classes_),
            "columns": list(model.recipe.columns),
            "features": tagger.n_features_,
            "probabilities": self.loaded.sure,
            "spans": self.loaded.chunked,
            "error": self.error,
        }


class ModelRegistry:
    """The served models. The first is the default."""

    def __init__(self, models: Iterable[ServedModel]) -> None:
        self.models = {model.name: model for model in models}
        if not self.models:
            raise ParameterError("no model to serve. Give at least one model file")
        self.first = next(iter(self.models.values()))

    @staticmethod
    def read(paths: Iterable[str], ready: Mapping[str, Tagger] | None = None) -> ModelRegistry:
        """Load models from files, given as ``name=path`` or as a path. `ready` are taggers without a file, by name."""
        found: list[ServedModel] = []
        for spec in paths:
            name, path = named(spec)
            if any(name == model.name for model in found) or name in (ready or {}):
                raise ParameterError(
                    f"two models have the name {name!r}. Give one of them another name: NAME={path}"
                )
            stamp = stamp_of(path) if os.path.exists(path) else None
            found.append(ServedModel(name, path, Loaded.of(load(path), path, 1, stamp)))
        found += [ServedModel(name, None, Loaded.of(tagger, name)) for name, tagger in (ready or {}).items()]
        return ModelRegistry(found)

    async def refresh(self) -> None:
        """Reload files that were replaced. They are read in a thread, so that requests are not delayed."""
        for model in self.models.values():
            newer = await asyncio.to_thread(model.newer)
            if newer is not None:
                model.replace(newer)


def named(spec: str) -> tuple[str, str]:
    """Split ``name=path``, or return the stem of a path and the path."""
    found = re.fullmatch(r"([A-Za-z0-9_.-]+)=(.+)", spec)
    if found is not None and not os.path.exists(spec):
        return found[1], found[2]
    return Path(spec).name.split(".")[0] or spec, spec

"""Models by name, and how a replaced file takes the place of the one before it."""

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
    """A model as it was read: what a batch works with from its beginning to its end.

    alone: the same tagger for small batches, which one thread labels sooner than many; version: 1, and one more each
    time that the file was replaced; labels: as people know them, by number, with their JSON in `texts`; outside: the
    number of O, -1 where there is none; words: whether features look at words alone.
    """

    tagger: Tagger
    alone: Tagger
    chunked: bool
    sure: bool  # whether it has probabilities
    version: int
    stamp: Stamp | None
    labels: tuple[Any, ...]
    texts: tuple[str, ...]
    outside: int
    words: bool

    @staticmethod
    def of(tagger: Tagger, what: str, version: int = 1, stamp: Stamp | None = None) -> Loaded:
        """A tagger that can be served; a TagwiseError where it cannot."""
        model = tagger._fitted()
        for function in model.missing:
            function()
        if model.recipe.kind == "attributes":
            raise ParameterError(
                f"{what}: this model was trained on attributes that were given as they are; requests have tokens. "
                "Train it with features=... of tokens"
            )
        alone = copy.copy(tagger).set_params(n_jobs=1)
        sure = tagger.probabilistic
        labels = model.classes
        return Loaded(
            tagger,
            alone,
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
    """What changes when a file does: its number, its length, its time."""
    found = os.stat(path)
    return found.st_ino, found.st_size, found.st_mtime_ns


class Shelved:
    """One model: its name, its file where it has one, what was read of it last, and why that is not the newest."""

    def __init__(self, name: str, path: str | None, loaded: Loaded) -> None:
        self.name, self.path, self.loaded = name, path, loaded
        self.error: str | None = None
        self.failed: Stamp | None = None  # of a file that cannot be read: it is not tried again
        self.reloads = self.failures = 0

    def newer(self) -> Loaded | None:
        """The file's model where it has been replaced; None where not, and where it cannot be read: then `error`."""
        if self.path is None:
            return None
        stamp = None
        try:
            stamp = stamp_of(self.path)
            if stamp in (self.loaded.stamp, self.failed):
                return None
            return Loaded.of(load(self.path), self.name, self.loaded.version + 1, stamp)
        except (TagwiseError, OSError) as error:
            said = f"{error}; version {self.loaded.version} stays"
            if said != self.error:
                self.failures += 1
                logger.error("%s", said)
            self.error, self.failed = said, stamp
            return None

    def take(self, newer: Loaded) -> None:
        """Serve a newer model from the next batch on."""
        self.loaded, self.error, self.failed = newer, None, None
        self.reloads += 1
        logger.info("%s: version %d", self.name, newer.version)

    def described(self) -> dict[str, Any]:
        """For `/models`."""
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


class Shelf:
    """The models that are served; the first is the one of requests that name none."""

    def __init__(self, models: Iterable[Shelved]) -> None:
        self.models = {model.name: model for model in models}
        if not self.models:
            raise ParameterError("no model to serve; name one or more files")
        self.first = next(iter(self.models.values()))

    @staticmethod
    def read(paths: Iterable[str], ready: Mapping[str, Tagger] | None = None) -> Shelf:
        """Models of files, ``name=path`` or a path whose stem is the name; `ready`: taggers that have no file."""
        found: list[Shelved] = []
        for given in paths:
            name, path = named(given)
            if any(name == model.name for model in found) or name in (ready or {}):
                raise ParameterError(f"two models are named {name!r}; name one of them: other={path}")
            stamp = stamp_of(path) if os.path.exists(path) else None
            found.append(Shelved(name, path, Loaded.of(load(path), path, 1, stamp)))
        found += [Shelved(name, None, Loaded.of(tagger, name)) for name, tagger in (ready or {}).items()]
        return Shelf(found)

    async def refresh(self) -> None:
        """Take what has been replaced. Files are read in another thread: requests go on meanwhile."""
        for model in self.models.values():
            newer = await asyncio.to_thread(model.newer)
            if newer is not None:
                model.take(newer)


def named(given: str) -> tuple[str, str]:
    """Name and path of a model as it is typed."""
    found = re.fullmatch(r"([A-Za-z0-9_.-]+)=(.+)", given)
    if found is not None and not os.path.exists(given):
        return found[1], found[2]
    return Path(given).name.split(".")[0] or given, given

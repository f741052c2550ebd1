"""Load, inspect, use and save forged files. Each must work or raise a TagwiseError."""

from __future__ import annotations

import functools
import random
from pathlib import Path
from typing import Any

import tagwise as tw
from tagwise.estimators.boosting import rounds

from ..golden import corpus, make
from .forgery import Forgery
from .mutate import mutate

FILES = sorted(make.FOLDER.glob("*.tagwise"))


@functools.cache
def whole(path: Path) -> Forgery:
    """Return a golden file in parts."""
    return Forgery.of(path)


def draw(seed: int, index: int) -> tuple[Path, Forgery, list[str]]:
    """Return the original, the forged file and the list of changes for a case."""
    rng = random.Random(f"{seed}:{index}")
    path = rng.choice(FILES)
    forged = whole(path).copy()
    return path, forged, mutate(rng, forged)


def use(path: Path, X: Any, index: int) -> str:
    """Load a file and use it in typical ways. Return the step that failed and its error, or "went well"."""
    step = "load"
    try:
        given = corpus.FUNCTIONS if index % 2 else None
        tagger = tw.load(path, functions=given).set_params(n_jobs=1)
        step = "inspect"
        model = tagger.model_
        repr(tagger), model.n_features, model.n_nonzero, model.named_functions, str(tagger.inspect(2))
        rounds(model)
        if index % 4 == 0:
            step = "save"
            tagger.save(path.with_suffix(".again"))
            tw.load(path.with_suffix(".again"))
        step = "predict"
        tagger.predict(X)
        step = "kbest"
        tagger.predict_kbest(X, 2)
        step = "marginals"
        tagger.predict_marginals(X)
    except tw.TagwiseError as error:
        return f"{step}: {type(error).__name__}"
    return "went well"


def trial(seed: int, index: int, folder: Path) -> tuple[str, str]:
    """Forge and use one file. Return the changes and the outcome, which begins with "FOUND" if it is not allowed."""
    original, forged, changes = draw(seed, index)
    description = f"{original.stem}: {'; '.join(changes)}"
    path = forged.write(folder / "forged.tagwise")
    X = make.ALL[make.SAVED[original.stem][0]].test()[:2]
    try:
        return description, use(path, X, index)
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt):
            raise
        return description, f"FOUND {type(error).__name__}: {str(error)[:200]!a}"

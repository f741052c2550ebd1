"""One forged file after the other: loaded, looked at, used, saved. Well, or a TagwiseError."""

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
    """A golden file in parts."""
    return Forgery.of(path)


def draw(seed: int, index: int) -> tuple[Path, Forgery, list[str]]:
    """The forged file of a number: which one it was, what it is, what was done to it."""
    rng = random.Random(f"{seed}:{index}")
    path = rng.choice(FILES)
    forged = whole(path).copy()
    return path, forged, mutate(rng, forged)


def use(path: Path, X: Any, index: int) -> str:
    """Load a file and do with it what people do; the last thing that went well, and how it ended."""
    step = "load"
    try:
        given = corpus.FUNCTIONS if index % 2 else None
        tagger = tw.load(path, functions=given).set_params(n_jobs=1)
        step = "inspect"
        model = tagger.model_
        repr(tagger), model.n_features, model.n_nonzero, model.named_functions, str(tagger.explain(2))
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
    """Make one forged file and use it: what was done to it, and how it ended, "FOUND" first where that may not be."""
    original, forged, deeds = draw(seed, index)
    said = f"{original.stem}: {'; '.join(deeds)}"
    path = forged.write(folder / "forged.tagwise")
    X = make.ALL[make.SAVED[original.stem][0]].test()[:2]
    try:
        return said, use(path, X, index)
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt):
            raise
        return said, f"FOUND {type(error).__name__}: {str(error)[:200]!a}"

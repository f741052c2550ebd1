"""Tagging by Ray Data: a callable for `map_batches`."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from tagwise.errors import CorpusError, ParameterError
from tagwise.model.model import Model


class Tag:
    """Labels the sentences of a batch: one column more, `predicted`.

        dataset.map_batches(tagwise.ray.Tag, fn_constructor_args=["model.tagwise"], concurrency=2, batch_size=1024)

    The model is loaded once an actor, and used where it lies in its file: actors of a machine share its memory.

    Args:
        model: a model file, which every machine sees; or a model that is loaded.
        tokens: the column with the tokens of each sentence, as lists; or, where it holds texts, tokens apart by spaces.
        output: the column to write.
        n_jobs: threads of an actor: as many as the CPUs that it asks for.
        functions: feature functions that the file names, as `tagwise.load` takes them.

    >>> import tagwise as tw, numpy as np
    >>> from tagwise.ray import Tag
    >>> tw.CRF(features="S1", max_iter=5).fit([["a", "b"], ["c"]], [["X", "Y"], ["X"]]).save("tiny.tagwise")
    >>> Tag("tiny.tagwise")({"tokens": np.array(["a b", "c"])})["predicted"].tolist()
    [['X', 'Y'], ['X']]
    """

    def __init__(
        self,
        model: str | os.PathLike[str] | Model,
        tokens: str = "tokens",
        output: str = "predicted",
        n_jobs: int = 1,
        functions: Mapping[str, Callable[..., Any]] | None = None,
    ) -> None:
        name = "the model" if isinstance(model, Model) else os.fspath(model)
        self.model = model if isinstance(model, Model) else Model.load(model, functions=functions, mmap=True)
        self.tokens, self.output, self.n_jobs = tokens, output, n_jobs
        if self.model.recipe.kind == "attributes":
            raise ParameterError(
                f"{name}: this model was trained on attributes that were given as they are; a batch holds "
                "tokens. Predict with tagwise.load(...) and X made as for training."
            )

    def __call__(self, batch: dict[str, Any]) -> dict[str, Any]:
        """The batch, a mapping of columns to arrays, with the labels of each sentence beside them."""
        if self.tokens not in batch:
            raise CorpusError(
                f"a batch has the columns {', '.join(batch)}, and none of the name {self.tokens!r}: say tokens=NAME"
            )
        sentences = [
            given.split() if isinstance(given, str) else [str(token) for token in given]
            for given in batch[self.tokens]
        ]
        found = self.model.predict(sentences, n_jobs=self.n_jobs)
        column = np.empty(len(found), dtype=object)
        for i, labels in enumerate(found):  # of one length or of many: each is a value of its own
            column[i] = labels
        return {**batch, self.output: column}


__all__ = ["Tag"]

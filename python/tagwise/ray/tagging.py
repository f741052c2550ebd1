"""Tagging by Ray Data: a callable for `map_batches`."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tagwise._core import Texts
from tagwise.base.exceptions import CorpusError, ParameterError
from tagwise.decoding.plan import Query
from tagwise.features.inputs import Inputs
from tagwise.model.model import Model


class Tag:
    """Labels the sentences of a batch: one column more, `predicted`.

        dataset.map_batches(
            tagwise.ray.Tag, fn_constructor_args=["model.tagwise"], concurrency=2, batch_size=16384,
            batch_format="pyarrow",
        )

    The model is loaded once an actor, and used where it lies in its file: actors of a machine share its memory. Batches
    are tables of Arrow, whose tokens are read where they lie and whose other columns stay as they are; or mappings of
    columns to arrays, as Ray has them where it is not told (half as fast). Small batches cost more than they tag.

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

    def __call__(self, batch: Any) -> Any:
        """The batch, a table or a mapping of columns to arrays, with the labels of each sentence beside them."""
        table = not isinstance(batch, Mapping)
        names = batch.column_names if table else list(batch)
        if self.tokens not in names:
            raise CorpusError(
                f"a batch has the columns {', '.join(names)}, and none of the name {self.tokens!r}: say tokens=NAME"
            )
        query = Query(n_jobs=self.n_jobs)
        if table:
            found = self.model.predict_numbers(_sentences(batch.column(self.tokens)), query)
            return self._beside(batch, *found)
        given = batch[self.tokens]
        sentences = [_listed(sentence) for sentence in given]
        labels = self.model.predict(sentences, query)
        # Arrays of arrays are nothing that Ray Data can hand on but as pickles: lists are.
        made = batch[self.tokens] if len(given) and isinstance(given[0], str) else _column(sentences)
        return {**batch, self.tokens: made, self.output: _column(labels)}

    def _beside(self, table: Any, path: NDArray[np.uint16], offsets: NDArray[np.uint64]) -> Any:
        """The table with the labels in their column, which may be there already."""
        import pyarrow

        names = pyarrow.array(self.model.typed(list(self.model.labels)))
        values = pyarrow.ListArray.from_arrays(
            pyarrow.array(offsets.astype(np.int32)), names.take(pyarrow.array(path))
        )
        if self.output in table.column_names:
            return table.set_column(table.column_names.index(self.output), self.output, values)
        return table.append_column(self.output, values)


def _sentences(column: Any) -> Inputs:
    """The tokens of each sentence of a column of Arrow: lists of texts are read where they lie."""
    import pyarrow

    kind = column.type
    if pyarrow.types.is_list(kind) and pyarrow.types.is_string(kind.value_type) and not column.null_count:
        lists = column.combine_chunks()
        tokens = lists.flatten()
        if len(tokens) and not tokens.null_count:
            _, begins, data = tokens.buffers()
            begins = np.frombuffer(begins, np.int32)[tokens.offset : tokens.offset + len(tokens) + 1]
            data = np.zeros(0, np.uint8) if data is None else np.frombuffer(data, np.uint8)
            cuts = lists.offsets.to_numpy()
            texts: Any = Texts(data, begins, cuts - cuts[0])
            return Inputs(texts, texts)
    return Inputs.of([_listed(sentence) for sentence in column.to_pylist()])


def _listed(sentence: Any) -> list[str]:
    """The tokens of a value: a text with spaces, a list, an array."""
    if isinstance(sentence, str):
        return sentence.split()
    tokens = sentence.tolist() if isinstance(sentence, np.ndarray) else list(sentence)
    return tokens if all(isinstance(token, str) for token in tokens) else [str(token) for token in tokens]


def _column(values: list[list[Any]]) -> Any:
    """Lists as an array, of one length or of many: each is a value of its own."""
    column = np.empty(len(values), dtype=object)
    for i, value in enumerate(values):
        column[i] = value
    return column


__all__ = ["Tag"]

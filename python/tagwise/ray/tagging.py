"""Tagging with Ray Data: a callable class for `map_batches`."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tagwise._core import Texts
from tagwise.base.exceptions import CorpusError, ParameterError
from tagwise.base.parameters import meant
from tagwise.decoding.plan import Query
from tagwise.features.inputs import Inputs
from tagwise.model.model import Model


class Tag:
    """Tagger for the batches of a Ray dataset. It adds the column `predicted`.

        dataset.map_batches(
            tagwise.ray.Tag, fn_constructor_args=["model.tagwise"], concurrency=2, batch_size=16384,
            batch_format="pyarrow",
        )

    Each actor loads the model once and memory-maps its file, so that the actors of a machine share memory. Batches are
    Arrow tables, whose tokens are read without a copy and whose other columns are passed through, or mappings of
    columns to arrays, the default of Ray, which are about half as fast. Use large batches: the overhead per batch is
    high.

    Args:
        model: Model file that every machine can read, or a loaded model.
        tokens: Column with the tokens of each sentence: lists, or strings with tokens separated by spaces.
        output: Column to write.
        n_jobs: Threads per actor. Set it to the number of CPUs that the actor reserves.
        functions: Feature functions that the model file refers to, as for `tagwise.load`.

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
                f"{name}: this model was trained on precomputed attributes, but batches contain tokens. Predict with "
                "tagwise.load(...) and X prepared as for training."
            )

    def __call__(self, batch: Any) -> Any:
        """Return the batch, a table or a mapping of columns to arrays, with a column of labels added."""
        table = not isinstance(batch, Mapping)
        names = batch.column_names if table else list(batch)
        if self.tokens not in names:
            raise CorpusError(
                f"the batch has no column {self.tokens!r}{meant(self.tokens, names)}. Its columns are "
                f"{', '.join(names)}. Pass the name of the right one, tokens=NAME."
            )
        query = Query(n_jobs=self.n_jobs)
        if table:
            found = self.model.predict_numbers(_sentences(batch.column(self.tokens)), query)
            return self._with_labels(batch, *found)
        column = batch[self.tokens]
        sentences = [_tokens_of(sentence) for sentence in column]
        labels = self.model.predict(sentences, query)
        # Ray Data can pass on arrays of arrays only as pickles, but arrays of lists directly.
        tokens = batch[self.tokens] if len(column) and isinstance(column[0], str) else _column(sentences)
        return {**batch, self.tokens: tokens, self.output: _column(labels)}

    def _with_labels(self, table: Any, path: NDArray[np.uint16], offsets: NDArray[np.uint64]) -> Any:
        """Return the table with the column of labels added or replaced."""
        import pyarrow

        names = pyarrow.array(self.model.typed(list(self.model.labels)))
        values = pyarrow.ListArray.from_arrays(
            pyarrow.array(offsets.astype(np.int32)), names.take(pyarrow.array(path))
        )
        if self.output in table.column_names:
            return table.set_column(table.column_names.index(self.output), self.output, values)
        return table.append_column(self.output, values)


def _sentences(column: Any) -> Inputs:
    """Return the tokens of each sentence of an Arrow column. Lists of strings are not copied."""
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
    return Inputs.of([_tokens_of(sentence) for sentence in column.to_pylist()])


def _tokens_of(sentence: Any) -> list[str]:
    """Return the tokens of a string separated by spaces, a list or an array."""
    if isinstance(sentence, str):
        return sentence.split()
    tokens = sentence.tolist() if isinstance(sentence, np.ndarray) else list(sentence)
    return tokens if all(isinstance(token, str) for token in tokens) else [str(token) for token in tokens]


def _column(values: list[list[Any]]) -> Any:
    """Return an object array with one list per element, also if all lists have the same length."""
    column = np.empty(len(values), dtype=object)
    for i, value in enumerate(values):
        column[i] = value
    return column

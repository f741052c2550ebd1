"""The native core."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

__version__: str
NO_LABEL: int

Csr = tuple[NDArray[np.uint64], NDArray[np.uint32], NDArray[np.float32]]

class Vocabulary:
    """Attribute texts and their ids, in order of first occurrence."""

    def __new__(cls) -> Vocabulary: ...
    def __len__(self) -> int: ...
    def __contains__(self, text: str, /) -> bool: ...
    def __iter__(self) -> Iterator[str]: ...
    @property
    def locked(self) -> bool: ...
    def lock(self) -> None:
        """No attribute is added from here on; counts are dropped."""
    def get(self, text: str) -> int | None:
        """Id of an attribute given by its text, or None; those of templates are searched for one by one."""
    def text(self, id: int) -> str:
        """Text of an attribute."""
    def texts(self) -> list[str]:
        """All texts, in order of their ids."""
    def counts(self) -> NDArray[np.uint32]:
        """Occurrences of each attribute while the vocabulary grew; empty once it is locked."""
    def arrays(self) -> tuple[NDArray[np.uint64], NDArray[np.uint32], NDArray[np.uint8], NDArray[np.uint64]]:
        """The arrays that make it up: keys, table, text, text_end."""
    @staticmethod
    def from_arrays(
        keys: NDArray[np.uint64],
        table: NDArray[np.uint32],
        text: NDArray[np.uint8],
        text_end: NDArray[np.uint64],
        checks: NDArray[np.uint64] | None = None,
        counts: NDArray[np.uint32] | None = None,
    ) -> Vocabulary:
        """A vocabulary from its arrays: locked, or growing on where checks and counts are given."""

class Dataset:
    """Sentences as flat arrays of attribute ids, with gold labels where known."""

    def __len__(self) -> int: ...
    @property
    def n_tokens(self) -> int: ...
    @property
    def n_attributes(self) -> int:
        """Number of node attributes of all tokens together."""
    @property
    def n_edge_attributes(self) -> int:
        """Number of edge attributes of all tokens together."""
    @property
    def offsets(self) -> NDArray[np.uint64]:
        """First token of each sentence, and the number of tokens last: [N + 1]."""
    @property
    def gold(self) -> NDArray[np.uint16]:
        """Gold label ids: [tokens], empty for an unlabelled dataset."""
    def node(self) -> Csr:
        """Node attributes in CSR form: row pointers [tokens + 1], ids, values (empty: all are 1)."""
    def edge(self) -> Csr:
        """Edge attributes in CSR form; no rows where there are none."""
    def with_gold(self, gold: NDArray[np.uint16]) -> Dataset:
        """The same sentences with these gold labels ([tokens]; NO_LABEL marks an unknown one)."""

class Template:
    """Compiled templates over named columns."""

    def __new__(cls, text: str, columns: Sequence[str]) -> Template: ...
    def __len__(self) -> int:
        """Number of rules, ranges expanded: the most attributes a token can have."""
    @property
    def source(self) -> str:
        """The template as it was written."""
    @property
    def columns(self) -> list[str]: ...
    @property
    def used_columns(self) -> list[str]:
        """The columns that some rule looks at."""
    @property
    def has_edges(self) -> bool: ...
    def render(self, columns: Sequence[Sequence[str]]) -> list[list[str]]:
        """Texts of every token's attributes in one sentence given by its columns."""

def encode_tokens(
    template: Template, vocab: Vocabulary, sentences: Iterable[Sequence[Sequence[str]]], n_jobs: int = 1
) -> Dataset:
    """Dataset of sentences given by their columns; a locked vocabulary drops unknown attributes."""

def encode_attributes(
    vocab: Vocabulary,
    sentences: Iterable[Iterable[Iterable[Any] | Mapping[str, Any]]],
    edge: Iterable[Iterable[Iterable[Any] | Mapping[str, Any]]] | None = None,
) -> Dataset:
    """Dataset of attribute lists or feature dicts; `edge` holds edge attributes in the same form."""

def prune(vocab: Vocabulary, dataset: Dataset, min_count: int) -> Dataset:
    """Drop the attributes seen fewer than min_count times, from a growing vocabulary and from its dataset."""

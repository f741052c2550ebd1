"""The native core."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from os import PathLike
from typing import IO, Any, TypeAlias, final, overload

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "BOOSTED",
    "BOUNDS",
    "COSTS",
    "EXPONENTIAL_LOSSES",
    "FORMS",
    "KERNELS",
    "LOSSES",
    "MODEL_FORMAT",
    "NO_GROUP",
    "NO_LABEL",
    "ONCE_LISTS",
    "OUTSIDE",
    "PROGRAM_TOLERANCE",
    "RENORMALIZED",
    "RULES",
    "SEQUENTIAL_LOSSES",
    "SIMD",
    "SLACKS",
    "SUMS",
    "ArrayFile",
    "BigramCounts",
    "Boosting",
    "Chains",
    "ClassExchange",
    "ClassTable",
    "Cost",
    "CrfsuiteInstances",
    "CrfsuiteModel",
    "CrfsuiteOnline",
    "CrfsuiteSequence",
    "CurvaturePairs",
    "Dataset",
    "Dual",
    "Epochs",
    "HistoryOnline",
    "HistoryScorer",
    "Kernel",
    "KernelPerceptron",
    "KernelScorer",
    "KernelSvm",
    "Layout",
    "Limits",
    "LookbackSpec",
    "Margins",
    "ModelFile",
    "Objective",
    "Online",
    "Order",
    "OrderObjective",
    "Rounds",
    "Rule",
    "Scorer",
    "Stochastic",
    "Stop",
    "Svm",
    "Template",
    "Texts",
    "TokenRegex",
    "Vocabulary",
    "WapitiRegex",
    "WordSets",
    "_Launch",
    "__version__",
    "add_ridge",
    "add_scaled",
    "chain_kbest",
    "chain_log_partition",
    "chain_marginals",
    "chain_viterbi",
    "chunk_probabilities",
    "claim",
    "count_texts",
    "crfsuite_model_bytes",
    "dot",
    "dual_bounds",
    "encode_attributes",
    "encode_tokens",
    "encode_words",
    "feasible",
    "force",
    "name_paths",
    "normalized_words",
    "once_kbest",
    "once_marginals",
    "order_marginals",
    "path_counts",
    "prune",
    "row_lists",
    "sequence_cost",
    "small_program",
    "text_ids",
    "tokenize",
    "total_loss",
    "write_arrays",
    "write_model",
]

__version__: str
NO_LABEL: int
# Names of choices, declared only in the core. COSTS includes the default parameters of each cost, KERNELS the names of
# the parameters that each kernel uses.
LOSSES: tuple[str, ...]
SEQUENTIAL_LOSSES: tuple[str, ...]  # functions of log Z - H (the others: of marginals)
EXPONENTIAL_LOSSES: tuple[str, ...]  # grow as e^l: initially out of range, see Objective.log_value
RULES: tuple[str, ...]
COSTS: tuple[tuple[str, tuple[float, ...]], ...]
KERNELS: tuple[tuple[str, tuple[str, ...]], ...]
FORMS: tuple[str, ...]
SLACKS: tuple[str, ...]
BOOSTED: tuple[str, ...]
BOUNDS: tuple[str, ...]
SUMS: tuple[str, ...]
# Marker for labels in no group, and the lengths of k-best lists searched if the search cannot enforce `once` itself.
NO_GROUP: int
ONCE_LISTS: tuple[int, ...]
# Searches in float32 subtract the best score of a position: the first such position, and the interval between two.
RENORMALIZED: tuple[int, int]

_Csr: TypeAlias = tuple[NDArray[np.uint64], NDArray[np.uint32], NDArray[np.float32]]

@final
class Vocabulary:
    """Attribute texts and their ids, in order of first occurrence."""

    def __new__(cls) -> Vocabulary: ...
    def __len__(self) -> int: ...
    def __contains__(self, text: str, /) -> bool: ...
    def __iter__(self) -> Iterator[str]: ...
    @property
    def locked(self) -> bool: ...
    def lock(self) -> None:
        """Stop adding attributes, and drop the counts."""
    def growing(self) -> Vocabulary:
        """A copy to which new attributes can be added. Existing attributes keep their ids."""
    def kept(self, keep: NDArray[np.bool_]) -> Vocabulary:
        """A copy with the attributes that `keep` ([attributes]) marks, in the same order."""
    def get(self, text: str) -> int | None:
        """Id of an attribute by its text, or None. Attributes of templates are found by linear search."""
    def text(self, id: int) -> str:
        """Text of an attribute."""
    def texts(self) -> list[str]:
        """All texts, in order of their ids."""
    def counts(self) -> NDArray[np.uint32]:
        """Occurrences of each attribute while the vocabulary grew. Empty once it is locked."""
    def arrays(self) -> tuple[NDArray[np.uint64], NDArray[np.uint32], NDArray[np.uint8], NDArray[np.uint64]]:
        """Arrays of the vocabulary: keys, table, text, text_end."""
    @staticmethod
    def from_arrays(
        keys: NDArray[np.uint64],
        table: NDArray[np.uint32] | None,
        text: NDArray[np.uint8],
        text_end: NDArray[np.uint64],
        checks: NDArray[np.uint64] | None = None,
        counts: NDArray[np.uint32] | None = None,
    ) -> Vocabulary:
        """Build a vocabulary from its arrays: locked, or growing if checks and counts are passed.

        The table may be None, since it follows from the keys.
        """

@final
class Chains:
    """Node scores [B, T, L], lengths [B] (default: T each), edge scores [L, L], start and end scores [L] of
    a batch of sentences, and their tags [B, T] if log-likelihoods are computed."""

    def __new__(
        cls,
        node: NDArray[np.float32],
        lengths: NDArray[np.int32] | None,
        edge: NDArray[np.float32],
        start: NDArray[np.float32],
        end: NDArray[np.float32],
        tags: NDArray[np.int64] | None = None,
    ) -> Chains: ...
    def values(self, n_jobs: int = 0) -> NDArray[np.float64]:
        """Return log Z of every sentence, or the log-likelihood of its tags if there are tags: [B]."""
    def gradient(
        self,
        weights: NDArray[np.float64] | None,
        node: NDArray[np.float32],
        edge: NDArray[np.float32],
        start: NDArray[np.float32],
        end: NDArray[np.float32],
        n_jobs: int = 0,
    ) -> NDArray[np.float64]:
        """Return the values [B], and write the gradient of their sum, weighted by `weights` (None: 1 per
        sentence), to the arrays passed: with respect to node scores [B, T, L], edge scores [L, L], start and
        end scores [L]."""
    def best(self, paths: NDArray[np.int64], n_jobs: int = 0) -> NDArray[np.float64]:
        """Write the best paths to `paths` [B, T], -1 after the end of a sentence. Return their scores [B]."""

@final
class _Launch:
    """A GPU kernel. `call` is the address of the driver's cuLaunchKernel and `function` the handle of the
    kernel. Both must stay valid while the object exists. Addresses cannot be checked, so only
    `tagwise.torch` may use this class. Every argument is 64 bits wide."""

    def __new__(cls, call: int, function: int) -> _Launch: ...
    def __call__(self, grid: tuple[int, int, int], block: int, stream: int, /, *arguments: int) -> int:
        """Launch blocks of `block` threads on a stream. Return the driver's error code, 0 for success."""

@final
class Dataset:
    """Sentences as flat arrays of attribute ids, with gold labels if known."""

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
    def node(self) -> _Csr:
        """Node attributes in CSR form: row pointers [tokens + 1], ids, values (empty: all are 1)."""
    def edge(self) -> _Csr:
        """Edge attributes in CSR form, without rows if the dataset has none."""
    @staticmethod
    def joined(parts: Iterable[Dataset], folder: str | PathLike[str] | None = None) -> Dataset:
        """Concatenate the sentences of several labelled datasets, without edge attributes, vectors and cuts.

        folder: write the rows to files in this folder, one dataset at a time.
        """
    def cut(self, most: int) -> tuple[Dataset, NDArray[np.uint32]]:
        """Cut sentences of more than `most` tokens into pieces of similar length. Return the dataset and the
        sentence of each piece. Pieces record their cuts: start and end features fire at the true
        ends of sentences only."""
    def steps(self, first: int, labels: int, start_end: bool = True) -> Dataset:
        """Every labelled token as a sentence of its own, with its context as further attributes from `first` on.

        One attribute for each of the `labels` labels as the previous label, one for the first token of a sentence, one
        for the last.
        """
    @property
    def vectors(self) -> tuple[int, int] | None:
        """First attribute and length of the tokens' vectors, or None without vectors."""
    def sparse(self) -> _Csr:
        """Node attributes in CSR form, without those of vectors."""
    def with_vectors(self, first: int, values: NDArray[np.float32], scale: float = 1.0) -> Dataset:
        """These sentences with a vector for every token, `values` [tokens, size] times `scale`.

        Its components are the attributes from `first` on.
        """
    @staticmethod
    def from_arrays(
        offsets: NDArray[np.uint64], gold: NDArray[np.uint16], node: _Csr, edge: _Csr | None = None
    ) -> Dataset:
        """Build a dataset from its arrays: offsets, gold (empty: unlabelled), rows in the form of `node` and `edge`."""
    def with_gold(self, gold: NDArray[np.uint16]) -> Dataset:
        """These sentences with other gold labels ([tokens], NO_LABEL for an unknown label)."""

@final
class Texts:
    """Sentences of tokens in three arrays, like Arrow's lists of strings. A sequence of lists of strings."""

    def __new__(
        cls, data: NDArray[np.uint8], tokens: NDArray[np.int32], sentences: NDArray[np.int32]
    ) -> Texts:
        """`tokens`: start of each in `data`, and the end. `sentences`: first token of each, and the end."""
    def __len__(self) -> int: ...
    @overload
    def __getitem__(self, index: int, /) -> list[str]: ...
    @overload
    def __getitem__(self, index: slice, /) -> list[list[str]]: ...

@final
class Template:
    """Compiled templates over named columns."""

    def __new__(
        cls,
        text: str,
        columns: Sequence[str],
        lists: Sequence[Sequence[str]] | None = None,
        classes: Sequence[tuple[str, int, ClassTable]] = ...,
    ) -> Template:
        """`classes`: name of a derived column, the index of the column with its words, and their classes."""
    def __len__(self) -> int:
        """Number of rules after expanding ranges, which is the maximum number of attributes of a token."""
    @property
    def source(self) -> str:
        """Source text of the template."""
    @property
    def columns(self) -> list[str]: ...
    @property
    def used_columns(self) -> list[str]:
        """Columns that some rule reads."""
    @property
    def has_edges(self) -> bool: ...
    @property
    def is_open(self) -> bool:
        """Whether a list of frequent texts (is_rare, is_frequent) is not learned yet."""
    @property
    def lists(self) -> list[list[str]]:
        """Learned lists of frequent texts, one for each part that uses one. Empty before `learn`."""
    def learn(self, sentences: Iterable[Sequence[Sequence[str]]]) -> Template:
        """Return the template with lists of frequent texts learned from training sentences."""
    def render(self, columns: Sequence[Sequence[str]]) -> list[list[str]]:
        """Texts of every token's attributes in one sentence, which is passed by columns."""

def encode_tokens(
    template: Template,
    vocab: Vocabulary,
    sentences: Iterable[Sequence[Sequence[str]]] | Iterable[Sequence[str]],
    n_jobs: int = 1,
    *,
    bare: bool = False,
) -> Dataset:
    """Dataset of sentences passed by columns. A locked vocabulary drops unknown attributes.

    bare: a sentence is the list of values of the template's only column, not a list of columns.
    """

def encode_words(
    template: Template,
    vocab: Vocabulary,
    sentences: Iterable[Sequence[Sequence[str]]] | Iterable[Sequence[str]],
    words: WordSets,
    column: int,
    n_jobs: int = 1,
    *,
    bare: bool = False,
) -> tuple[Dataset, NDArray[np.uint32]]:
    """Return the dataset of `encode_tokens`, and the number in `words` of each token's text in a column."""

def encode_attributes(
    vocab: Vocabulary,
    sentences: Iterable[Iterable[Iterable[Any] | Mapping[str, Any]]],
    edge: Iterable[Iterable[Iterable[Any] | Mapping[str, Any]]] | None = None,
    n_jobs: int = 1,
) -> Dataset:
    """Dataset of attribute lists or feature dicts. `edge` holds edge attributes in the same form."""

def tokenize(
    texts: Iterable[str],
    abbreviations: Sequence[str] = ...,
    *,
    contractions: bool = True,
    hyphens: bool = False,
    sentences: bool = True,
    n_jobs: int = 1,
) -> tuple[NDArray[np.uint32], NDArray[np.uint64], NDArray[np.uint64]]:
    """Split texts into tokens and sentences.

    Return three arrays: start and end offset (exclusive, in characters) of each token, the first token of each sentence
    followed by the number of tokens, and the first sentence of each text followed by the number of sentences.
    """

def prune(vocab: Vocabulary, dataset: Dataset, min_count: int) -> Dataset:
    """Drop the attributes that occur fewer than min_count times from a growing vocabulary and from its
    dataset."""

MODEL_FORMAT: int
SIMD: str

@final
class Stop:
    """Work that another thread can stop. Inside the `with` block native calls of this thread, and
    `Stop.check`, raise StoppedError after a call of `request`. Blocks do not nest."""

    def __new__(cls) -> Stop: ...
    def __enter__(self) -> Stop: ...
    def __exit__(self, *_exception: object) -> None: ...
    def request(self) -> None:
        """Stop the work, from any thread. Work that begins later stops immediately."""
    @staticmethod
    def check() -> None:
        """Raise StoppedError if the work of this thread has been stopped. For loops in Python."""

@final
class TokenRegex:
    """A regular expression that matches tokens as a whole, in time linear in the token."""

    def __new__(cls, pattern: str, ignore_case: bool = False) -> TokenRegex: ...
    def column(self, tokens: Iterable[object]) -> list[str]:
        """Return "1" for each token that matches, "" for the others and for objects that are not valid text."""

@final
class ClassTable:
    """Words, shapes of unknown words, and the path of the class of each."""

    def __new__(
        cls,
        paths: Sequence[str],
        members: Sequence[Sequence[str]],
        shapes: Sequence[Sequence[str]],
        ignore_case: bool,
    ) -> ClassTable: ...
    def get(self, word: str) -> int | None:
        """Number of the class of a word, or None."""

def normalized_words(words: Sequence[str], ignore_case: bool) -> list[str]:
    """Words as they are counted and looked up: digits become 0, and letters lower case if case is ignored."""

@final
class BigramCounts:
    """Counts of words and bigrams in a stream of sentences."""

    def __new__(cls, *, ignore_case: bool = False) -> BigramCounts: ...
    def add(self, sentences: Iterable[Sequence[str]]) -> None:
        """Count sentences, which are lists of strings."""
    @property
    def n_sentences(self) -> int:
        """Number of sentences that are not empty."""
    @property
    def n_tokens(self) -> int: ...
    @property
    def n_words(self) -> int:
        """Number of distinct words, after normalization."""
    @property
    def n_bigrams(self) -> int:
        """Number of distinct bigrams, including those with the sentence boundary."""
    def n_frequent(self, min_count: int) -> int:
        """Number of words that occur at least `min_count` times."""

@final
class ClassExchange:
    """Assignment of words to classes, improved by exchange."""

    def __new__(cls, counts: BigramCounts, n_classes: int, min_count: int) -> ClassExchange: ...
    def sweep(self, n_jobs: int = 0) -> int:
        """Visit every word once. Return the number of words that moved."""
    @property
    def objective(self) -> float:
        """Objective of the class bigram model."""
    def gain(self, word: int, to: int) -> float:
        """Change of the objective if a word moves to a class."""
    @property
    def words(self) -> list[str]:
        """Words, and shapes of rare words, by falling frequency. Equally frequent ones are in alphabetical order."""
    @property
    def is_shape(self) -> list[bool]:
        """Whether each of `words` is a shape of rare words."""
    @property
    def counts(self) -> NDArray[np.uint32]:
        """Occurrences of the words."""
    @property
    def classes(self) -> NDArray[np.uint32]:
        """Class of each word."""
    def tree(self, n_jobs: int = 0) -> tuple[list[str], list[float]]:
        """Merge the classes into a binary tree.

        Return the path of each class, a string of 0 and 1, and the change of the objective by each merger in order.
        """

@final
class WapitiRegex:
    """A regular expression of Wapiti's patterns, searched in time items x bytes."""

    def __new__(cls, source: bytes) -> WapitiRegex: ...
    def find(self, text: bytes) -> tuple[int, int] | None:
        """Start of the leftmost match and the length that Wapiti counts for it, or None if nothing matches."""

def claim(what: str, bytes: int, remedy: str) -> None:
    """Raise MemoryLimitError if `bytes` exceed the memory budget. The message includes `what` and `remedy`."""

def force(paths: str = "") -> str:
    """For tests: force these code paths (names separated by commas) wherever the core may choose. Return the
    names forced before."""

def path_counts() -> dict[str, int]:
    """For tests: return how often each code path was taken since the last call."""

_Support: TypeAlias = tuple[NDArray[np.bool_], NDArray[np.uint32]]
# Labels that may occur once: group [L], 2^32 - 1 for no group. begins [L + 1, L]: whether a span begins there.
_Groups: TypeAlias = tuple[NDArray[np.uint32], NDArray[np.bool_]]

@final
class Limits:
    """Constraints on the paths of sentences.

    forbidden: edges (label' * L + label). allowed: sets of labels [sets, L] and the set of each token [tokens]. once:
    labels that form at most one span.
    """

    def __new__(
        cls,
        forbidden: NDArray[np.uint32] | None = None,
        allowed: _Support | None = None,
        once: _Groups | None = None,
    ) -> Limits: ...

@final
class Layout:
    """Set of features and the position of each in the weight vector."""

    @staticmethod
    def build(
        dataset: Dataset, n_attributes: int, n_labels: int, *, all_pairs: bool = False, start_end: bool = True
    ) -> Layout:
        """Features of a labelled dataset."""
    @staticmethod
    def from_arrays(n_attributes: int, n_labels: int, arrays: dict[str, Any]) -> Layout:
        """Build a layout from the arrays that `arrays` returns."""
    def united(self, other: Layout) -> tuple[Layout, NDArray[np.int64]]:
        """Return the layout with the features of both, and the position in it of each feature of this one."""
    def narrowed(self, dataset: Dataset) -> tuple[Layout, Dataset, NDArray[np.int64]] | None:
        """Return the part of the layout that these sentences use, the sentences renumbered, and the positions."""
    def arrays(self) -> dict[str, NDArray[Any]]:
        """Arrays of the layout."""
    def __len__(self) -> int:
        """Number of features."""
    @property
    def n_labels(self) -> int: ...
    @property
    def n_attributes(self) -> int: ...
    @property
    def n_node(self) -> int:
        """Number of node features, which come first."""
    @property
    def n_edge(self) -> int: ...

@final
class Objective:
    """Loss and gradient of a training set."""

    def __new__(
        cls,
        dataset: Dataset,
        layout: Layout,
        *,
        loss: str = "log",
        sample_weight: NDArray[np.float64] | None = None,
        limits: Limits | None = None,
        partial: _Support | None = None,
        cost: NDArray[np.float64] | None = None,
        folder: str | PathLike[str] | None = None,
    ) -> Objective:
        """`folder`: keep large arrays in files in this folder."""
    def evaluate(self, w: NDArray[np.float64], gradient: NDArray[np.float64], n_jobs: int = 0) -> float:
        """Return the loss at `w` and write the gradient to `gradient`. Both arrays have one entry per
        feature."""
    def value(
        self, w: NDArray[np.float64], gradient: NDArray[np.float64], n_jobs: int = 0
    ) -> tuple[float, float]:
        """Like `evaluate`: (loss, largest log of e^l or of 1/p, the distance from the safe range)."""
    def log_value(
        self, w: NDArray[np.float64], gradient: NDArray[np.float64], n_jobs: int = 0
    ) -> tuple[float, float]:
        """Like `value`, for log sum_i w_i e^{l_i} in place of the exponential loss."""
    def precise_value(
        self, w: NDArray[np.float64], gradient: NDArray[np.float64], n_jobs: int = 0
    ) -> tuple[float, float]:
        """`value` in double precision."""
    @property
    def paged_bytes(self) -> int:
        """Bytes of large arrays in files."""
    def release(self) -> None:
        """Free the buffers of evaluations, and drop arrays in files from memory."""
    def prefetch(self) -> None:
        """Have the system read arrays in files in the background."""

def total_loss(
    dataset: Dataset,
    layout: Layout,
    w: NDArray[np.float64],
    *,
    loss: str = "log",
    sample_weight: NDArray[np.float64] | None = None,
    limits: Limits | None = None,
    partial: _Support | None = None,
    cost: NDArray[np.float64] | None = None,
    n_jobs: int = 0,
) -> float:
    """Return the loss of a training set at `w` in double precision, without its gradient."""

@final
class Stochastic:
    """Stochastic gradient descent on the loss of a training set."""

    def __new__(
        cls,
        dataset: Dataset,
        layout: Layout,
        *,
        loss: str = "log",
        sample_weight: NDArray[np.float64] | None = None,
        limits: Limits | None = None,
    ) -> Stochastic: ...
    @property
    def n_batches(self) -> int:
        """Number of steps per epoch. A step is a batch of up to sixteen sentences."""
    def set(self, w: NDArray[np.float64]) -> None:
        """Resume from these weights."""
    def weights(self) -> NDArray[np.float64]:
        """Current weights, one per feature."""
    def order(self, seed: int, epoch: int) -> NDArray[np.uint32]:
        """Order of the batches in an epoch."""
    def run(self, order: NDArray[np.uint32], eta: float, l2: float, seen: float) -> float:
        """Take steps over the batches of `order`, starting after `seen` sentences.

        Return the sum of the losses before each step, or NaN if the steps were too long.
        """

@final
class Dual:
    """Dual block ascent on the log loss of a training set with l2 |w|^2."""

    def __new__(
        cls,
        dataset: Dataset,
        layout: Layout,
        l2: float,
        *,
        sample_weight: NDArray[np.float64] | None = None,
        limits: Limits | None = None,
        sweeps: int = 0,
        folder: str | PathLike[str] | None = None,
    ) -> Dual:
        """`sweeps`: number of sweeps of an epoch, each in the order of the sentences, or 0 for any order.

        `folder`: keep large arrays in files in this folder.
        """
    @property
    def paged_bytes(self) -> int:
        """Bytes of large arrays in files."""
    def release(self) -> None:
        """Drop arrays in files from memory."""
    def prefetch(self) -> None:
        """Have the system read arrays in files in the background."""
    def epoch(self, seed: int = 0, n_jobs: int = 0, together: bool | None = None) -> tuple[int, int, float]:
        """Run one epoch of visits.

        Return (tokens visited, visits out of range for float32, sum of the distances that the visits found).
        together: two threads share the visits, and each visit reads the weights after the visit two before it. None:
        use two threads for 512 sentences or more. The result does not depend on n_jobs, bit for bit.
        """
    def primal(self, n_jobs: int = 0) -> float:
        """Primal objective of the current weights in single precision. NaN if a sentence is out of range."""
    def certificate(self, n_jobs: int = 0) -> tuple[float, float]:
        """(primal, a lower bound of all objectives), in double precision.

        The primal is NaN if a sentence is out of range.
        """
    @property
    def epochs(self) -> int:
        """Number of epochs so far."""
    def weights(self) -> NDArray[np.float64]:
        """Current weights, one per feature."""
    def set_weights(self, weights: NDArray[np.float64]) -> None:
        """Replace the weights, one per feature. The dual point is unchanged."""
    def terms(self, n_jobs: int = 0) -> tuple[float, float, float, NDArray[np.float64]]:
        """(loss, divergence, slack, [features] observed minus expected), in double precision, without the penalty.

        divergence: bound of sum s KL(q | p) of the chains q of the certificate, including the error of the loss. slack:
        bound of the rounding error of the array, as a Euclidean norm. The loss is NaN if a sentence is out of range.
        """
    def loss(self, n_jobs: int = 0) -> float:
        """Loss of the current weights in single precision, without the penalty. NaN if a sentence is out of
        range."""
    def state(
        self,
    ) -> tuple[NDArray[np.float32], NDArray[np.float32], NDArray[np.float32], NDArray[np.float64], int]:
        """State from which training resumes bit for bit."""
    def restore(
        self,
        weights: NDArray[np.float32],
        nodes: NDArray[np.float32],
        pairs: NDArray[np.float32],
        blocks: NDArray[np.float64],
        epochs: int,
    ) -> None:
        """Resume from a state."""

@final
class Scorer:
    """Features and weights, ready to label sentences."""

    def __new__(
        cls,
        layout: Layout,
        weights: NDArray[np.float32],
        forbidden: NDArray[np.uint32] | None = None,
        *,
        local: bool = False,
    ) -> Scorer: ...
    @property
    def layout(self) -> Layout: ...
    @property
    def local(self) -> bool:
        """Whether every step is normalised locally, conditional on the previous label."""
    @property
    def weights(self) -> NDArray[np.float32]:
        """Weights of all features."""
    @property
    def edge_scores(self) -> NDArray[np.float64]:
        """Edge scores [L, L], -inf for forbidden edges."""
    def viterbi(
        self, dataset: Dataset, *, allowed: _Support | None = None, n_jobs: int = 0
    ) -> NDArray[np.uint16]:
        """Best path of each sentence, one label id per token: [tokens]."""
    def kbest(
        self, dataset: Dataset, k: int, *, allowed: _Support | None = None, n_jobs: int = 0
    ) -> tuple[NDArray[np.uint32], NDArray[np.float64], NDArray[np.uint16]]:
        """The k best paths of each sentence: the number per sentence [N], their scores, their labels
        concatenated."""
    def marginals(
        self, dataset: Dataset, *, allowed: _Support | None = None, n_jobs: int = 0
    ) -> tuple[NDArray[np.float32], NDArray[np.float64]]:
        """Marginals of each token, [tokens, L], and log Z of each sentence, [N]."""

@final
class ModelFile:
    """An open, verified model file: read into memory, or used in place (`mmap`)."""

    def __new__(cls, file: int, name: str, *, mmap: bool = False) -> ModelFile:
        """Read the model of an open file, from its first byte.

        file: The descriptor of the open file, or its handle on Windows.
        name: Its path, for messages.
        """
    @property
    def header(self) -> str:
        """The JSON header."""
    @property
    def arrays(self) -> list[tuple[str, str]]:
        """Names and types of the arrays."""
    def array(self, name: str) -> NDArray[Any]:
        """A copy of an array."""
    def vocabulary(self) -> Vocabulary:
        """The vocabulary, used in place."""
    def scorer(
        self,
        n_attributes: int,
        n_labels: int,
        forbidden: NDArray[np.uint32] | None = None,
        *,
        local: bool = False,
    ) -> Scorer:
        """The scorer, its arrays used in place."""

@final
class ArrayFile:
    """An open, verified, memory-mapped file of arrays. Arrays are copied on access."""

    def __new__(cls, file: int, name: str) -> ArrayFile:
        """Open the arrays of an open file. See `ModelFile` for the arguments."""
    @property
    def header(self) -> str:
        """The JSON header."""
    @property
    def checksum(self) -> int:
        """Checksum stored in the file."""
    @property
    def arrays(self) -> list[tuple[str, str, int]]:
        """Names, types and lengths of the arrays."""
    def array(self, name: str) -> NDArray[Any]:
        """A copy of an array."""

def write_arrays(stream: IO[bytes], header: str, arrays: dict[str, NDArray[Any]]) -> int:
    """Write one-dimensional arrays (unsigned integers, floats) and a header to a stream. Return the checksum."""

def write_model(
    stream: IO[bytes], header: str, vocabulary: Vocabulary, scorer: Scorer, extra: dict[str, NDArray[Any]]
) -> None:
    """Write a model to an open stream: header, vocabulary, scorer, and further named arrays."""

def row_lists(rows: NDArray[np.int64], lengths: NDArray[np.int32] | None = None) -> list[list[int]]:
    """Return the rows of an array [B, T] as lists, each cut to its length if lengths are passed."""

def count_texts(sentences: object) -> dict[str, int] | None:
    """Count each string, in order of first occurrence. None if `sentences` are not lists or tuples of strings."""

def text_ids(sentences: object, texts: list[str]) -> NDArray[np.uint16] | None:
    """Return the index in `texts` of each string, all sentences concatenated.

    None if `sentences` are not lists or tuples of strings, or if a string is not in `texts`.
    """

def name_paths(path: NDArray[np.uint16], offsets: NDArray[np.uint64], labels: list[str]) -> list[list[str]]:
    """Convert the label ids of all tokens ([tokens]) to one list of labels per sentence. `offsets` [N + 1]
    are the dataset's."""

@final
class CrfsuiteSequence:
    """Attributes of the items of one sequence, in the forms that python-crfsuite accepts, parsed once."""

    @staticmethod
    def read(sequence: Any) -> CrfsuiteSequence | None:
        """Return the sequence, or None if the Python package has to read it."""
    @staticmethod
    def from_pairs(sequence: Sequence[Sequence[tuple[str | bytes, float]]]) -> CrfsuiteSequence:
        """Return the sequence of lists of pairs (name, value)."""
    def __len__(self) -> int: ...

@final
class CrfsuiteModel:
    """An open CRFsuite model file."""

    def __new__(cls, data: bytes) -> CrfsuiteModel:
        """Read a model from the bytes of a file."""
    @staticmethod
    def open(file: int) -> CrfsuiteModel:
        """Read a model into memory from an open file: its descriptor, or its handle on Windows."""
    def data(self) -> bytes:
        """Bytes of the file."""
    @property
    def labels(self) -> list[str]:
        """Labels, by number."""
    def whole(
        self, decode: Callable[[bytes], str]
    ) -> tuple[
        list[str],
        tuple[NDArray[np.int64], NDArray[np.float64]],
        tuple[NDArray[np.int64], NDArray[np.float64]],
    ]:
        """Return the contents of the file after checking all of it.

        Attributes, and codes and weights of state features and transitions in the order of the lists. The callback
        converts the bytes of names that are not plain text.
        """
    def tag(self, sequence: CrfsuiteSequence) -> list[str]:
        """Return the labels of a sequence."""
    def tag_many(
        self, sequences: list[Any], convert: Callable[[Any], Any], n_jobs: int = 0
    ) -> list[list[str]]:
        """Return the labels of sequences. `convert` converts those that Python has to read to lists of pairs."""
    def marginals(self, sequence: CrfsuiteSequence) -> tuple[NDArray[np.float64], float, NDArray[np.float64]]:
        """Node scores [T, L], log Z and marginals [T, L] of a sequence."""
    def edge(self) -> NDArray[np.float64]:
        """Transitions [L, L]."""

def crfsuite_model_bytes(
    labels: list[str],
    attributes: list[str],
    node: tuple[NDArray[np.int64], NDArray[np.float64]],
    edge: tuple[NDArray[np.int64], NDArray[np.float64]],
    raw: Callable[[str], bytes],
) -> bytes:
    """Return a model file in CRFsuite's format. `raw` converts names that are not plain text to bytes."""

@final
class CrfsuiteInstances:
    """Instances appended to a CRFsuite trainer."""

    def __new__(cls) -> CrfsuiteInstances: ...
    def append(self, sequence: Any, labels: Any, group: int) -> bool:
        """Append a sequence and its labels. Return False, with nothing appended, if the Python package has
        to read them."""
    def append_pairs(
        self, sequence: Sequence[Sequence[tuple[str, float]]], labels: Sequence[str], group: int
    ) -> None:
        """Append a sequence of lists of pairs (name, value), and a label for each."""
    @property
    def labels(self) -> list[str]:
        """Labels, by number."""
    def texts(self) -> list[str]:
        """Attributes, by number."""
    def lengths(self, holdout: int, inside: bool) -> NDArray[np.int64]:
        """Number of items of each training sequence, or of each sequence of the holdout group."""
    def features(
        self, holdout: int, least: float, states: bool, transitions: bool
    ) -> tuple[NDArray[np.int64], NDArray[np.int64], int]:
        """Codes of state features and transitions, and the number left out because their sum is below 0."""
    def dataset(self, holdout: int, inside: bool) -> Dataset:
        """Dataset of the training sequences, or of those of the holdout group."""

@final
class CrfsuiteOnline:
    """CRFsuite's training instance by instance."""

    def __new__(
        cls,
        data: CrfsuiteInstances,
        holdout: int,
        node: NDArray[np.int64],
        edge: NDArray[np.int64],
        rule: str,
        numbers: Sequence[float],
    ) -> CrfsuiteOnline:
        """rule: ap, pa (type, c, error_sensitive), arow (gamma, variance) or l2sgd (lambda, t0), with its numbers."""
    def steps(self, order: NDArray[np.int64]) -> float:
        """Take a step for each of these instances, in this order. Return the sum of their losses."""
    def apply_decay(self) -> float:
        """Apply the decay of the steps to the weights. Return the square of their norm."""
    def weights(self) -> NDArray[np.float64]:
        """Weights, state features first."""
    def averaged(self) -> NDArray[np.float64]:
        """Averaged weights w - ws / c."""
    @property
    def rate(self) -> tuple[float, float]:
        """Learning rate of the last step, and number of steps."""

def chain_marginals(
    node: NDArray[np.float64], edge: NDArray[np.float64]
) -> tuple[float, NDArray[np.float64], NDArray[np.float64]]:
    """log Z, node marginals [T, L] and pair marginals [T, L, L] (block t is the step from t-1 to t, block 0
    is zero)."""

def chain_log_partition(node: NDArray[np.float64], edge: NDArray[np.float64]) -> float:
    """log Z alone."""

def chain_viterbi(node: NDArray[np.float64], edge: NDArray[np.float64]) -> tuple[float, NDArray[np.uint16]]:
    """Best path [T] and its score. Ties go to the lower label."""

def dual_bounds(
    w: NDArray[np.float64],
    l2: float,
    loss: float,
    divergence: float,
    slack: float,
    observed: NDArray[np.float64],
) -> tuple[float, float]:
    """(P, D) of weights and a penalty from the terms of all sentences, as `Dual.terms` returns them."""

def dot(a: NDArray[np.float64], b: NDArray[np.float64], n_jobs: int = 0) -> float:
    """Inner product of two vectors."""

def add_scaled(
    a: NDArray[np.float64], step: float, b: NDArray[np.float64], out: NDArray[np.float64], n_jobs: int = 0
) -> None:
    """out = a + step * b."""

def add_ridge(w: NDArray[np.float64], c: float, gradient: NDArray[np.float64], n_jobs: int = 0) -> float:
    """Add 2 c w to the gradient and return c ||w||^2."""

@final
class CurvaturePairs:
    """Limited-memory inverse Hessian."""

    def __new__(
        cls, memory: int, n_jobs: int = 0, scale: NDArray[np.float32] | None = None
    ) -> CurvaturePairs: ...
    def __len__(self) -> int:
        """Number of pairs remembered."""
    def clear(self) -> None:
        """Remove all pairs."""
    def push(
        self,
        w0: NDArray[np.float64],
        w1: NDArray[np.float64],
        g0: NDArray[np.float64],
        g1: NDArray[np.float64],
    ) -> bool:
        """Store the step from (w0, g0) to (w1, g1). Return False, with the step skipped, if its curvature is
        not positive."""
    def direction(self, g: NDArray[np.float64], direction: NDArray[np.float64]) -> float:
        """Write direction = -H g and return the directional derivative g . direction."""
    def gradient_products(self, g: NDArray[np.float64]) -> tuple[list[float], list[float]]:
        """Return the inner products of the changes of the gradient with each other [m * m] and with g [m]."""
    def subtract_steps(self, w: NDArray[np.float64], c: list[float], out: NDArray[np.float64]) -> None:
        """Write out = w - sum_i c_i s_i with the steps s_i."""

def chain_kbest(
    node: NDArray[np.float64], edge: NDArray[np.float64], k: int
) -> list[tuple[float, NDArray[np.uint16]]]:
    """The k best paths of one sentence as (score, labels [T]), best first, or all paths if fewer are
    allowed."""

OUTSIDE: int
PROGRAM_TOLERANCE: float

_Entities: TypeAlias = tuple[NDArray[np.uint16], NDArray[np.uint8]]

@final
class Epochs:
    """Schedule of an online learner's epochs.

    batch: apply the updates of an epoch at its end. shards: number of parts that learn in parallel and are mixed after
    each epoch, or of threads that decode in batch mode.
    """

    def __new__(
        cls,
        *,
        average: bool = True,
        batch: bool = False,
        shuffle: bool = True,
        seed: int = 0,
        shards: int = 1,
    ) -> Epochs: ...

@final
class Cost:
    """Cost of a wrong path: one of COSTS and its parameters, or a function of (gold, guess), lists of label ids.

    entities: the type of each label [L] and the boundary between two labels [L + 1, L]. augment: add the cost to the
    scores while decoding.
    """

    def __new__(
        cls,
        cost: str | Callable[[list[int], list[int]], float],
        numbers: Sequence[float] = ...,
        entities: _Entities | None = None,
        *,
        augment: bool = False,
    ) -> Cost: ...

@final
class Rule:
    """Update rule of an online learner for a wrong guess: one of RULES and its parameters.

    MIRA: k, limit. Passive-aggressive: variant, limit. AROW: gamma, variance. Without a cost, wrong labels are counted.
    """

    def __new__(
        cls,
        kind: str,
        *,
        k: int = 1,
        limit: float | None = None,
        variant: int = 1,
        gamma: float = 1.0,
        variance: float = 1.0,
        cost: Cost | None = None,
    ) -> Rule: ...

@final
class Online:
    """An online learner and its training set."""

    def __new__(
        cls,
        dataset: Dataset,
        layout: Layout,
        rule: Rule,
        *,
        epochs: Epochs | None = None,
        limits: Limits | None = None,
        sample_weight: NDArray[np.float32] | None = None,
    ) -> Online: ...
    def epoch(self, order: NDArray[np.uint32] | None = None) -> dict[str, Any]:
        """Run one pass over the training set, or over the sentences of `order`. Return sums over its steps."""
    def part(self, begin: int, end: int) -> dict[str, Any]:
        """Run the steps `begin..end` of the next epoch and return sums over them. The epoch ends with its
        last step."""
    def weights(self, averaged: bool = True) -> NDArray[np.float64]:
        """Current weights, or their average over all steps, one per feature."""
    @property
    def epochs(self) -> int:
        """Number of epochs so far."""
    @property
    def steps(self) -> float:
        """Number of steps so far: sentences, or epochs in batch mode."""
    def state(self) -> dict[str, Any]:
        """State from which training resumes."""
    def restore(self, state: dict[str, Any]) -> None:
        """Resume from a state returned by `state`, or from weights alone."""

@final
class WordSets:
    """Words of a tag dictionary and a number for each.

    words: their UTF-8, with lone surrogates passed through. of: the number of each, 1 or more.
    """

    def __new__(cls, words: Sequence[bytes], of: Sequence[int]) -> WordSets: ...
    def of(self, sentences: list[Any]) -> NDArray[np.uint32]:
        """Numbers of all tokens of some sentences, concatenated. 0 for unknown words."""

@final
class Margins:
    """Margins of a Hidden Markov SVM, their price, and the search for violated ones."""

    def __new__(
        cls,
        c: float = 1.0,
        *,
        slack: str = "instance",
        rescale: bool = False,
        tolerance: float = 1e-2,
        most: int = 50,
        shuffle: bool = True,
        seed: int = 0,
    ) -> Margins: ...

@final
class Svm:
    """A Hidden Markov SVM with explicit weights, and its training set."""

    def __new__(
        cls,
        dataset: Dataset,
        layout: Layout,
        margins: Margins | None = None,
        *,
        limits: Limits | None = None,
        sample_weight: NDArray[np.float64] | None = None,
        n_jobs: int = 0,
    ) -> Svm: ...
    def epoch(self) -> dict[str, Any]:
        """Run one epoch: decoding, working sets, duality gap. Return the state of training after it."""
    def weights(self) -> NDArray[np.float64]:
        """Weights, one per feature."""
    def alphas(self) -> list[tuple[int, NDArray[np.uint16], float]]:
        """Wrong paths with alpha > 0 as (sentence, labels, alpha)."""
    @property
    def epochs(self) -> int:
        """Number of epochs so far."""
    def state(self) -> dict[str, Any]:
        """State from which training resumes bit for bit after an epoch."""
    def restore(self, state: dict[str, Any]) -> None:
        """Resume from a state of a solver with the same data and options."""

@final
class Kernel:
    """A kernel: one of KERNELS and its numbers, or a function of two blocks of rows (ptr, ids, values) -> [rows, rows].

    form: one of FORMS, in which its values are kept. cache_bytes: memory for them during training.
    """

    def __new__(
        cls,
        kernel: str | Callable[..., NDArray[np.float64]],
        degree: int = 2,
        coef: float = 1.0,
        gamma: float = 1.0,
        *,
        form: str = "auto",
        cache_bytes: int = ...,
    ) -> Kernel: ...

@final
class KernelPerceptron:
    """The dual perceptron and its training set."""

    def __new__(
        cls,
        dataset: Dataset,
        layout: Layout,
        kernel: Kernel,
        *,
        epochs: Epochs | None = None,
        budget: int | None = None,
        limits: Limits | None = None,
        sample_weight: NDArray[np.float32] | None = None,
    ) -> KernelPerceptron: ...
    def epoch(self, order: NDArray[np.uint32] | None = None) -> dict[str, Any]:
        """Run one pass over the training set, or over the sentences of `order`. Return sums over its steps."""
    def weights(self, averaged: bool = True) -> NDArray[np.float64]:
        """Weights of the layout's features, then beta [distinct tokens, L]: current values, or averages."""
    @property
    def epochs(self) -> int:
        """Number of epochs so far."""
    def state(self) -> dict[str, Any]:
        """State from which training resumes bit for bit."""
    def restore(self, state: dict[str, Any]) -> None:
        """Resume from a state of a learner with the same data and options."""
    @property
    def n_support(self) -> int:
        """Number of distinct tokens whose beta is not 0."""
    @property
    def expanded(self) -> bool:
        """Whether the kernel is expanded into products of attributes."""

@final
class KernelSvm:
    """A Hidden Markov SVM with a kernel, and its training set."""

    def __new__(
        cls,
        dataset: Dataset,
        layout: Layout,
        kernel: Kernel,
        margins: Margins | None = None,
        *,
        limits: Limits | None = None,
        sample_weight: NDArray[np.float64] | None = None,
        n_jobs: int = 0,
    ) -> KernelSvm: ...
    def epoch(self) -> dict[str, Any]:
        """Run one epoch: decoding, working sets, duality gap. Return the state of training after it."""
    def weights(self) -> NDArray[np.float64]:
        """Weights of the layout's features, then beta [distinct tokens, L]."""
    def state(self) -> dict[str, Any]:
        """State from which training resumes bit for bit after an epoch."""
    def restore(self, state: dict[str, Any]) -> None:
        """Resume from a state of a solver with the same data and options."""
    @property
    def epochs(self) -> int:
        """Number of epochs so far."""
    @property
    def expanded(self) -> bool:
        """Whether the kernel is expanded into products of attributes."""

@final
class KernelScorer:
    """Support tokens, ready to label sentences. `base` has the transitions, starts and ends."""

    def __new__(cls, base: Scorer, kernel: Kernel, arrays: dict[str, NDArray[Any]]) -> KernelScorer: ...
    @staticmethod
    def of_training(
        base: Scorer, kernel: Kernel, dataset: Dataset, beta: NDArray[np.float64]
    ) -> KernelScorer:
        """Build from the training set and beta [distinct tokens, L] in order of first occurrence."""
    def arrays(self) -> dict[str, NDArray[Any]]:
        """The support tokens and their betas, for a model file."""
    def __len__(self) -> int:
        """Number of support tokens."""
    @property
    def expanded(self) -> bool:
        """Whether the kernel is expanded into products of attributes."""
    def node_scores(self, dataset: Dataset, *, n_jobs: int = 0) -> NDArray[np.float32]:
        """Node scores of each token, starts and ends included: [tokens, L]."""
    def viterbi(
        self, dataset: Dataset, *, allowed: _Support | None = None, n_jobs: int = 0
    ) -> NDArray[np.uint16]:
        """Best path of each sentence, one label id per token: [tokens]."""
    def kbest(
        self, dataset: Dataset, k: int, *, allowed: _Support | None = None, n_jobs: int = 0
    ) -> tuple[NDArray[np.uint32], NDArray[np.float64], NDArray[np.uint16]]:
        """The k best paths of each sentence: the number per sentence [N], their scores, their labels
        concatenated."""

def small_program(
    gram: NDArray[np.float64], b: NDArray[np.float64], limit: float | None = None
) -> NDArray[np.float64]:
    """Return tau that maximises b.tau - 1/2 tau' G tau over tau >= 0, and sum tau <= limit if there is a
    limit."""

def sequence_cost(cost: Cost, gold: NDArray[np.uint16], guess: NDArray[np.uint16]) -> float:
    """Cost of `guess` if `gold` is right, both [T] of label ids. `cost` has the table of their entities."""

@final
class LookbackSpec:
    """Set of features on labels further back: F_2 .. F_far, those of documents, those of label tuples."""

    def __new__(
        cls,
        n_labels: int,
        cell: int = 1,
        far: int = 1,
        *,
        endless: bool = False,
        document: bool = False,
        tuples: bool = False,
    ) -> LookbackSpec: ...
    def __len__(self) -> int:
        """Number of features."""

_Words: TypeAlias = tuple[NDArray[np.uint32], NDArray[np.uint32]]
_Lists: TypeAlias = tuple[NDArray[np.uint32], NDArray[np.float64], NDArray[np.uint16]]

@final
class HistoryScorer:
    """Weights of the terms, ready to label sentences together with a scorer."""

    def __new__(cls, terms: LookbackSpec, weights: NDArray[np.float32]) -> HistoryScorer: ...
    def kbest(
        self,
        scorer: Scorer,
        dataset: Dataset,
        k: int = 1,
        *,
        beam: int | None = None,
        words: _Words | None = None,
        before: tuple[NDArray[np.uint32], NDArray[np.float32]] | None = None,
        allowed: _Support | None = None,
        n_jobs: int = 0,
    ) -> _Lists:
        """The k best paths of each sentence: the number per sentence [N], their scores, their labels concatenated.

        words: the word of each token [tokens] and the first sentence of each document. before: words of the first
        document [n] and how often each label was assigned to them before [n, L].
        """

@final
class HistoryOnline:
    """Perceptron or MIRA with history, and its training set."""

    def __new__(
        cls,
        dataset: Dataset,
        layout: Layout,
        terms: LookbackSpec,
        rule: Rule,
        *,
        words: _Words | None = None,
        epochs: Epochs | None = None,
        limits: Limits | None = None,
        sample_weight: NDArray[np.float32] | None = None,
    ) -> HistoryOnline: ...
    def epoch(self) -> dict[str, Any]:
        """Run one pass over the training set. Return sums over its steps."""
    def weights(self, averaged: bool = True) -> NDArray[np.float64]:
        """Current weights, or their average over all steps, one per feature. Those of the terms come last."""
    @property
    def epochs(self) -> int:
        """Number of epochs so far."""
    def state(self) -> dict[str, Any]:
        """State from which training resumes: one number per feature in each array. Those of the terms come
        last."""
    def restore(self, state: dict[str, Any]) -> None:
        """Resume from a state returned by `state`, or from weights alone."""

def once_kbest(
    scorer: Scorer,
    dataset: Dataset,
    once: _Groups,
    k: int = 1,
    *,
    allowed: _Support | None = None,
    n_jobs: int = 0,
) -> tuple[NDArray[np.uint32], NDArray[np.float64], NDArray[np.uint16]]:
    """The k best paths of each sentence in which every group of labels begins at most one span: the number
    per sentence [N], their scores, their labels concatenated."""

def once_marginals(
    scorer: Scorer, dataset: Dataset, once: _Groups, *, allowed: _Support | None = None, n_jobs: int = 0
) -> tuple[NDArray[np.float32], NDArray[np.float64]]:
    """Marginals over the paths in which every group begins at most one span, [tokens, L], and log Z of each sentence,
    [N]."""

def feasible(
    offsets: NDArray[np.uint64], sets: NDArray[np.bool_], of: NDArray[np.uint32], pairs: NDArray[np.bool_]
) -> NDArray[np.bool_]:
    """Whether each sentence has a path within the label sets of its tokens and the allowed pairs [L, L]:
    [N]."""

def chunk_probabilities(
    scorer: Scorer,
    dataset: Dataset,
    chunks: tuple[NDArray[np.uint32], NDArray[np.uint32], NDArray[np.uint32], NDArray[np.uint16]],
    entities: _Entities,
    *,
    allowed: _Support | None = None,
    once: _Groups | None = None,
    n_jobs: int = 0,
) -> NDArray[np.float64]:
    """Probability of each chunk, [chunks].

    chunks: their sentences, first tokens, end tokens (exclusive) and types. entities: the type of each label [L] and
    the boundary between two labels [L + 1, L], in the form that a cost takes.
    """

@final
class Order:
    """States and features of order 2 or 3 of a training set. Features are the tuples in its gold labels."""

    def __new__(
        cls, dataset: Dataset, layout: Layout, order: int, forbidden: NDArray[np.uint32] | None = None
    ) -> Order: ...
    def __len__(self) -> int:
        """Number of features beyond the first order."""
    @property
    def n_states(self) -> int:
        """Number of states."""
    @property
    def n_arcs(self) -> int:
        """Number of arcs."""
    def dense(self, weights: NDArray[np.float64]) -> NDArray[np.float32]:
        """Weights of the features beyond the first order, in the layout of `LookbackSpec` with tuples."""

@final
class OrderObjective:
    """Log-loss of a chain of order 2 or 3: features of the first order, then those of the tuples."""

    def __new__(
        cls,
        order: Order,
        dataset: Dataset,
        *,
        sample_weight: NDArray[np.float64] | None = None,
        allowed: _Support | None = None,
    ) -> OrderObjective: ...
    def __len__(self) -> int:
        """Number of features."""
    def value(
        self, w: NDArray[np.float64], gradient: NDArray[np.float64], n_jobs: int = 0
    ) -> tuple[float, float]:
        """Return (loss at `w`, 0) and write the gradient. A log loss cannot leave its range, hence the 0."""
    def precise_value(
        self, w: NDArray[np.float64], gradient: NDArray[np.float64], n_jobs: int = 0
    ) -> tuple[float, float]:
        """`value`, which is in double precision already."""

def order_marginals(
    scorer: Scorer,
    history: HistoryScorer,
    dataset: Dataset,
    *,
    allowed: _Support | None = None,
    n_jobs: int = 0,
) -> tuple[NDArray[np.float32], NDArray[np.float64]]:
    """Marginals of each token, [tokens, L], and log Z of each sentence, [N], of a chain of order 2 or 3."""

@final
class Rounds:
    """How boosting chooses features and their steps."""

    def __new__(
        cls,
        bound: str = "loose",
        *,
        line_search: bool = False,
        joint: bool = False,
        smoothing: float = 0.0,
        max_step: float = 10.0,
        candidates: float = 1.0,
        features_per_round: int = 1,
        overlap: bool = False,
        seed: int = 0,
    ) -> Rounds: ...

@final
class Boosting:
    """A boosting run and its training set.

    loss: the boosted loss, one of BOOSTED.
    over: whether the loss sums over the wrong label sequences or over all.
    """

    def __new__(
        cls,
        dataset: Dataset,
        layout: Layout,
        rounds: Rounds | None = None,
        *,
        loss: str = "exp",
        over: str = "wrong",
        sample_weight: NDArray[np.float64] | None = None,
        start: NDArray[np.float64] | None = None,
        n_jobs: int = 0,
    ) -> Boosting: ...
    def run(self, max_rounds: int, seconds: float = ...) -> dict[str, Any]:
        """Run up to `max_rounds` rounds, fewer once `seconds` have passed. Return arrays with one entry per chosen
        feature, and whether more rounds may follow. `raised` is the exception of a signal handler that ended the
        rounds early, or None."""
    def weights(self) -> NDArray[np.float64]:
        """Weights of all features."""
    @property
    def rounds(self) -> int:
        """Number of rounds so far."""
    @property
    def interrupted(self) -> bool:
        """Whether a signal stopped a round halfway. Weights and loss are those before that round, and no
        round can follow."""
    @property
    def log_loss(self) -> float:
        """Logarithm of the exponential loss."""
    @property
    def selection(self) -> tuple[int, int]:
        """Number of gains computed and number of estimates made so far to choose features."""
    def losses(self) -> NDArray[np.float64]:
        """Logarithm of every sentence's loss over all label sequences, [N]: -log P(gold), or of sum_t 1 / p_t(gold)."""
    def slopes(self) -> NDArray[np.float64]:
        """Derivative of the logarithm of the loss with respect to every weight, [features]: the kept sums
        divided by N."""
    def recompute(self) -> None:
        """Compute all sentences and all sums again."""
    def state(self) -> dict[str, Any]:
        """State from which training resumes bit for bit: arrays by name."""
    def restore(self, state: dict[str, Any]) -> None:
        """Resume from a state of a booster with the same data and options."""
    def bounds(self, bound: str) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """The best step of every feature and its bound on Z, under loose, tight or exact: two arrays [features]."""

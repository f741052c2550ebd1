"""A trained model: labels, vocabulary, weights, feature recipe; it predicts, explains itself, and is one file."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

import tagwise._core as _core
from tagwise.decoding import paths as decoding
from tagwise.decoding.paths import Allowed
from tagwise.errors import ModelFileError, ParameterError
from tagwise.features.recipe import Recipe
from tagwise.scores.constraints import Constraints, Dictionary, Rules
from tagwise.scores.kernels import ARRAYS, Kernel, KernelScorer
from tagwise.scores.lookback import History, Memory

if TYPE_CHECKING:
    from rich.console import RenderableType

Path = str | os.PathLike[str]


@dataclass(frozen=True)
class Explanation:
    """Strongest features of each label and strongest transitions; prints itself."""

    labels: dict[str, list[tuple[str, float]]]
    transitions: list[tuple[str, str, float]]

    def __rich__(self) -> RenderableType:
        from rich.console import Group

        from tagwise.terminal import explanation_table, transition_table

        return Group(explanation_table(self.labels), transition_table(self.transitions))

    def __str__(self) -> str:
        from tagwise.terminal import as_text

        return as_text(self.__rich__())


@dataclass(frozen=True)
class Model:
    """What a learner leaves behind. `meta` goes into the file as it is: learner, parameters, metrics.

    `arrays`: what a learner keeps beside its weights, as name.part -> float64 or uint32.
    """

    labels: tuple[str, ...]
    recipe: Recipe
    vocabulary: _core.Vocabulary
    scorer: _core.Scorer | KernelScorer
    meta: dict[str, Any] = field(default_factory=dict)
    history: History | None = None
    constraints: Constraints | None = None
    dictionary: Dictionary | None = None
    arrays: dict[str, NDArray[Any]] = field(default_factory=dict)
    file: _core.ModelFile | None = field(default=None, repr=False, compare=False)  # where it was loaded from

    # --- prediction -------------------------------------------------------------------------------------

    def encode(self, X: Any, n_jobs: int | None = None) -> _core.Dataset:
        """Sentences of any kind as the model's attributes; unknown attributes are dropped."""
        return self.recipe.encode(X, self.vocabulary, n_jobs)

    def predict(
        self,
        X: Any,
        *,
        decoder: str = "viterbi",
        allowed: Allowed | None = None,
        constraints: Any = None,
        beam: int | None = None,
        memory: Memory | None = None,
        n_jobs: int | None = None,
    ) -> list[list[str]]:
        """Labels of each sentence: the best path ("viterbi"), each token's most probable label ("pointwise"), or the
        best path of a beam ("beam")."""
        data = self.encode(X, n_jobs)
        path = decoding.best(
            self,
            X,
            data,
            decoder=decoder,
            allowed=allowed,
            constraints=constraints,
            beam=beam,
            memory=memory,
            n_jobs=n_jobs or 0,
        )
        return _core.name_paths(path, data.offsets, list(self.labels))

    def marginals(
        self,
        X: Any,
        *,
        allowed: Allowed | None = None,
        constraints: Any = None,
        n_jobs: int | None = None,
    ) -> list[NDArray[np.float32]]:
        """p(y_t | x) of every token: one array [T, L] a sentence, columns in the order of `labels`."""
        data = self.encode(X, n_jobs)
        plan = decoding.plan(self, X, data, allowed, constraints)
        p, _ = decoding.marginals(self, data, plan, n_jobs or 0)
        bounds = data.offsets.tolist()
        return [p[begin:end] for begin, end in pairwise(bounds)]

    def kbest(
        self,
        X: Any,
        k: int,
        *,
        probability: bool = False,
        allowed: Allowed | None = None,
        constraints: Any = None,
        memory: Memory | None = None,
        n_jobs: int | None = None,
    ) -> list[list[tuple[list[str], float]]]:
        """The k best paths of each sentence as (labels, score or probability), best first."""
        if k < 1:
            raise ParameterError(f"k={k}; expected 1 or more")
        data, jobs = self.encode(X, n_jobs), n_jobs or 0
        (counts, scores, labels), plan = decoding.kbest(
            self, X, data, k, allowed=allowed, constraints=constraints, memory=memory, n_jobs=jobs
        )
        if probability:
            _, log_z = decoding.marginals(self, data, plan, jobs)
            scores = np.exp(scores - np.repeat(log_z, counts))
        bounds = data.offsets.tolist()
        out: list[list[tuple[list[str], float]]] = []
        path = at = 0
        for (begin, end), count in zip(pairwise(bounds), counts.tolist()):
            best = []
            for _ in range(count):
                ids = labels[at : at + end - begin].tolist()
                best.append(([self.labels[y] for y in ids], float(scores[path])))
                path, at = path + 1, at + end - begin
            out.append(best)
        return out

    @cached_property
    def rules(self) -> Rules | None:
        """The model's own constraints over its labels."""
        return None if self.constraints is None else self.constraints.rules(self.labels)

    # --- looking inside ---------------------------------------------------------------------------------

    @property
    def n_features(self) -> int:
        """Number of features: (attribute, label) and (label, label) pairs with a weight of their own.

        Of a kernel model: (support token, label) and (label, label) pairs.
        """
        more = 0 if self.history is None else self.history.n_features
        return len(self.scorer.layout) + self._n_betas + more

    @property
    def n_nonzero(self) -> int:
        """Number of features whose weight is not zero."""
        more = 0 if self.history is None else int(np.count_nonzero(self.history.weights))
        return int(np.count_nonzero(self.scorer.weights)) + self._n_betas + more

    @property
    def _n_betas(self) -> int:
        return self.scorer.n_betas if isinstance(self.scorer, KernelScorer) else 0

    def explain(self, top: int = 20) -> Explanation:
        """The `top` strongest features of each label, by magnitude, and the strongest transitions."""
        weights, layout = self.scorer.weights, self.scorer.layout
        arrays = layout.arrays()
        node, label = weights[: layout.n_node], arrays["node_label"]
        owner = np.repeat(np.arange(layout.n_attributes), _counts(arrays["node_ptr"]))
        strongest: dict[str, list[tuple[str, float]]] = {}
        for y, name in enumerate(self.labels):
            of = np.flatnonzero((label == y) & (node != 0.0))
            order = of[np.lexsort((of, -np.abs(node[of])))][:top]
            strongest[name] = [(self.vocabulary.text(int(owner[k])), float(node[k])) for k in order]
        edge = weights[layout.n_node : layout.n_node + layout.n_edge]
        pairs = arrays["edges"]
        order = np.argsort(-np.abs(edge), kind="stable")[: max(top, len(self.labels))]
        n = len(self.labels)
        transitions = [
            (self.labels[int(pairs[k]) // n], self.labels[int(pairs[k]) % n], float(edge[k]))
            for k in order
            if edge[k]
        ]
        return Explanation(strongest, transitions)

    # --- files ------------------------------------------------------------------------------------------

    def save(self, path: Path, extra: dict[str, NDArray[Any]] | None = None) -> None:
        """Write the model to one file, atomically; the format is described in docs/model-file.md.

        extra: further arrays (float64 or uint32) that go into the file; `file.array(name)` reads them back.
        """
        header: dict[str, Any] = {
            "tagwise": _core.__version__,
            "labels": list(self.labels),
            "features": self.recipe.to_json(),
            "n_attributes": self.scorer.layout.n_attributes,
            **({"local": True} if self.scorer.local else {}),
            "meta": self.meta,
        }
        if "state" in self.meta and "state.weights" not in (extra or {}):  # a state of training is its arrays
            header["meta"] = {name: x for name, x in self.meta.items() if name != "state"}
        arrays: dict[str, NDArray[Any]] = {}
        if self.history is not None:
            header["history"] = self.history.to_json()
            arrays["history"] = self.history.weights
        if self.constraints is not None:
            header["constraints"] = self.constraints.to_json()
        if self.dictionary is not None:
            arrays |= self.dictionary.arrays()
        own = dict(sorted(self.arrays.items()))  # so that a file that is read is written as it was
        if own:
            header["arrays"] = list(own)
        base = self.scorer
        if isinstance(base, KernelScorer):
            header["kernel"] = base.kernel.to_json()
            arrays |= base.arrays()
            base = base.base
        text = json.dumps(header, ensure_ascii=False, sort_keys=True)
        _core.write_model(os.fspath(path), text, self.vocabulary, base, arrays | own | (extra or {}))

    @staticmethod
    def load(path: Path) -> Model:
        """Open a model file; its arrays are mapped, not read."""
        file = _core.ModelFile(os.fspath(path))
        try:
            header = json.loads(file.header)
            labels = tuple(header["labels"])
            recipe = Recipe.from_json(header["features"])
            n_attributes, meta = int(header["n_attributes"]), dict(header["meta"])
            history = constraints = dictionary = None
            if "history" in header:
                history = History.from_json(header["history"], file.array("history"))
            if "constraints" in header:
                constraints = Constraints.parse(header["constraints"])
            names = [name for name, _ in file.arrays if name.startswith("dictionary.")]
            if names:
                dictionary = Dictionary.from_arrays({name: file.array(name) for name in names}, len(labels))
        except (KeyError, TypeError, ValueError) as error:
            if isinstance(error, ModelFileError) or not isinstance(
                error, (KeyError, TypeError, json.JSONDecodeError)
            ):
                raise
            raise ModelFileError(
                f"{os.fspath(path)}: the header lacks {error}; the file was written by another program or version"
            ) from error
        local = bool(header.get("local", False))
        base = file.scorer(n_attributes, len(labels), _forbidden(constraints, labels), local=local)
        scorer: _core.Scorer | KernelScorer = base
        if "kernel" in header:
            support = {name: file.array(name) for name in ARRAYS}
            scorer = KernelScorer.of_arrays(base, Kernel.from_json(header["kernel"]), support)
        arrays = {name: file.array(name) for name in header.get("arrays", ())}
        return Model(
            labels, recipe, file.vocabulary(), scorer, meta, history, constraints, dictionary, arrays, file
        )

    def with_meta(self, **entries: Any) -> Model:
        """The same model with these entries of `meta` set."""
        return replace(self, meta={**self.meta, **entries})

    def __reduce__(self) -> tuple[Any, ...]:
        layout = self.scorer.layout
        state = (
            self.labels,
            self.recipe,
            self.vocabulary,
            layout.n_attributes,
            layout.arrays(),
            self.scorer.weights,
            self.meta,
            self.scorer.local,
            None if self.history is None else (self.history.to_json(), self.history.weights),
            self.constraints,
            self.dictionary,
            self.arrays,
        )
        if isinstance(self.scorer, KernelScorer):
            return (_rebuild, (*state, self.scorer.kernel, self.scorer.arrays()))
        return (_rebuild, state)


def _rebuild(
    labels: tuple[str, ...],
    recipe: Recipe,
    vocabulary: _core.Vocabulary,
    n_attributes: int,
    arrays: dict[str, Any],
    weights: NDArray[np.float32],
    meta: dict[str, Any],
    local: bool,
    history: tuple[dict[str, Any], NDArray[np.float32]] | None,
    constraints: Constraints | None,
    dictionary: Dictionary | None,
    own: dict[str, NDArray[Any]],
    kernel: Kernel | None = None,
    support: dict[str, Any] | None = None,
) -> Model:
    layout = _core.Layout.from_arrays(n_attributes, len(labels), arrays)
    base = _core.Scorer(layout, weights, _forbidden(constraints, labels), local=local)
    past = None if history is None else History.from_json(*history)
    scorer = base if kernel is None or support is None else KernelScorer.of_arrays(base, kernel, support)
    return Model(labels, recipe, vocabulary, scorer, meta, past, constraints, dictionary, own)


def _forbidden(constraints: Constraints | None, labels: Sequence[str]) -> NDArray[np.uint32] | None:
    return None if constraints is None else constraints.rules(labels).forbidden


def _counts(ptr: NDArray[np.uint64]) -> NDArray[np.int64]:
    """Entries of each row of a sparse matrix, from its row pointers."""
    pointers = ptr.astype(np.int64)
    return pointers[1:] - pointers[:-1]


def transfer(
    old: Model, vocabulary: _core.Vocabulary, layout: _core.Layout, labels: Sequence[str]
) -> NDArray[np.float64]:
    """The old model's weights at the places of a new layout; features that it lacks get 0. For warm starts."""
    if isinstance(old.scorer, KernelScorer):
        raise ParameterError(
            "warm_start: a kernel model has support tokens in place of weights; start from a model without a kernel"
        )
    out = np.zeros(len(layout))
    before, after = old.scorer.layout.arrays(), layout.arrays()
    w = old.scorer.weights.astype(np.float64)
    n_old, n_new = len(old.labels), len(labels)
    label_of = {label: i for i, label in enumerate(old.labels)}
    to_old = np.array([label_of.get(label, -1) for label in labels], dtype=np.int64)
    old_keys, new_keys = old.vocabulary.arrays()[0], vocabulary.arrays()[0]
    if len(old_keys) and len(new_keys):
        order = np.argsort(old_keys, kind="stable")
        at = np.minimum(np.searchsorted(old_keys[order], new_keys), len(old_keys) - 1)
        attribute = np.where(old_keys[order][at] == new_keys, order[at].astype(np.int64), -1)
    else:
        attribute = np.full(len(new_keys), -1, dtype=np.int64)

    def codes(arrays: dict[str, Any], ptr: str, target: str, width: int) -> NDArray[np.int64]:
        owner = np.repeat(np.arange(max(len(arrays[ptr]) - 1, 0), dtype=np.int64), _counts(arrays[ptr]))
        out: NDArray[np.int64] = owner * width + arrays[target].astype(np.int64)
        return out

    def copy(known: NDArray[np.int64], wanted: NDArray[np.int64], source: int, target: int) -> None:
        """Weights of the sorted `known` codes to the places of the `wanted` ones; -1 is nowhere."""
        if len(known) == 0 or len(wanted) == 0:
            return
        place = np.minimum(np.searchsorted(known, wanted), len(known) - 1)
        found = (wanted >= 0) & (known[place] == wanted)
        out[target + np.flatnonzero(found)] = w[source + place[found]]

    def pair(code: NDArray[np.int64]) -> NDArray[np.int64]:
        """A new label pair in the old numbering, or -1."""
        begin, end = to_old[code // n_new], to_old[code % n_new]
        return np.where((begin >= 0) & (end >= 0), begin * n_old + end, -1)

    def conjoin(code: NDArray[np.int64], width_new: int, width_old: int, inner: Any) -> NDArray[np.int64]:
        owner, rest = attribute[code // width_new], inner(code % width_new)
        return np.where((owner >= 0) & (rest >= 0), owner * width_old + rest, -1)

    node_old, node_new = (
        codes(before, "node_ptr", "node_label", n_old),
        codes(after, "node_ptr", "node_label", n_new),
    )
    copy(node_old, conjoin(node_new, n_new, n_old, lambda y: to_old[y]), 0, 0)
    source, target = len(node_old), len(node_new)
    copy(before["edges"].astype(np.int64), pair(after["edges"].astype(np.int64)), source, target)
    source, target = source + len(before["edges"]), target + len(after["edges"])
    for name in ("starts", "ends"):
        copy(before[name].astype(np.int64), to_old[after[name].astype(np.int64)], source, target)
        source, target = source + len(before[name]), target + len(after[name])
    pairs_old, pairs_new = (codes(a, "pair_ptr", "pair", n * n) for a, n in ((before, n_old), (after, n_new)))
    copy(pairs_old, conjoin(pairs_new, n_new * n_new, n_old * n_old, pair), source, target)
    return out

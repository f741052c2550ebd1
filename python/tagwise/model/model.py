"""Trained models: labels, vocabulary, weights and features, with prediction, explanation and files."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

import tagwise._core as _core
from tagwise.base.domains import Flag, Integer, Text, shown
from tagwise.base.exceptions import CorpusError, ModelFileError, ParameterError
from tagwise.base.imports import Functions, MissingFunction
from tagwise.base.parameters import checked, checked_path, meant
from tagwise.base.writing import atomic
from tagwise.corpus.labels import named, single, texts, type_name
from tagwise.corpus.schemes import has_chunks
from tagwise.dataset.layout import NamedLayout, transfer_weights
from tagwise.decoding import paths
from tagwise.decoding.plan import DEFAULT_QUERY, Plan, Query, plan_of
from tagwise.decoding.ranks import Ranks, gold_ranks
from tagwise.evaluation.errors import Errors, find_errors
from tagwise.evaluation.metrics import Report, compared
from tagwise.features.inputs import Inputs
from tagwise.features.recipe import Recipe
from tagwise.model import schema
from tagwise.model.formats.chain import chain_of
from tagwise.model.formats.table import format_by_name
from tagwise.model.inspection import Inspection, strongest_features
from tagwise.model.reading import check_finite, error_prefix, forbidden_of, parts_of
from tagwise.model.runners_up import Detour, RunnersUp
from tagwise.model.votes import Decision, Decisions, SentenceFeatures, votes
from tagwise.scores.constraints import Constraints, Rules
from tagwise.scores.dictionary import TagDictionary
from tagwise.scores.kernels import KernelFunction, KernelScorer
from tagwise.scores.lookback import LookbackWeights
from tagwise.scores.protocols import Scorer, native
from tagwise.scores.scoring import Scoring
from tagwise.scores.voters import Voters

Path = str | os.PathLike[str]


@dataclass(frozen=True)
class Model:
    """Trained model of a tagger, as `tagger.model_` and model files have it.

    Args:
        labels: Labels as str, in the order of their numbers.
        recipe: Features, which turn tokens into attributes.
        vocabulary: Attributes and their ids.
        scorer: Weights and their layout.
        meta: Learner, parameters and metrics of training, which a file stores unchanged.
        lookback: Weights of labels further back than one, or None.
        constraints: Rules for valid label sequences, or None.
        dictionary: Tag dictionary, or None.
        arrays: Further arrays of the learner by name, float64 or uint32.
        file: File that the model was loaded from, or None.
        label_type: Type of the labels in predictions: "str", "int", "float" or "bool".

    >>> import tagwise as tw
    >>> model = tw.CRF(features="S1", max_iter=3).fit([["a", "dog"]], [["DT", "NN"]]).model_
    >>> model.labels, model.predict([["a", "dog"]])
    (('DT', 'NN'), [['DT', 'NN']])
    """

    labels: tuple[str, ...]
    recipe: Recipe
    vocabulary: _core.Vocabulary
    scorer: Scorer
    meta: dict[str, Any] = field(default_factory=dict)
    lookback: LookbackWeights | None = None
    constraints: Constraints | None = None
    dictionary: TagDictionary | None = None
    arrays: dict[str, NDArray[Any]] = field(default_factory=dict)
    file: _core.ModelFile | None = field(
        default=None, repr=False, compare=False
    )  # file that it was loaded from
    label_type: str = (
        "str"  # type of the labels for users, a name of `corpus.labels.TYPES` (here they are str)
    )

    def __repr__(self) -> str:
        from tagwise.base.terminal import brief

        learner = self.meta.get("learner", "model")
        return (
            f"<Model: {learner}, features {brief(self.recipe.name)}, {len(self.labels)} labels, "
            f"{self.n_features:,} weights>"
        )

    def _repr_html_(self) -> str:
        from tagwise.corpus.markup import labels_html, object_html

        rows: list[tuple[str, Any]] = [
            ("labels", labels_html(self.labels)),
            ("weights", f"{self.n_features:,}, {self.n_nonzero:,} of them not zero"),
            *((name, value) for name, value in self.meta.get("params", {}).items()),
        ]
        return object_html(self, rows)

    # --- prediction -------------------------------------------------------------------------------------

    def encode(self, X: Any, n_jobs: int | None = None) -> _core.Dataset:
        """Encode sentences as attributes of the model. Unknown attributes are dropped.

        Args:
            X: Sentences of the kind the model was trained on.
            n_jobs: Number of threads. None uses all cores.

        Returns:
            The encoded dataset.
        """
        X = Inputs.of(X)
        words = None if self.dictionary is None else self.dictionary.words
        data = self.recipe.encode(X, self.vocabulary, n_jobs, words)
        return self.recipe.with_vectors(data, X, self.vocabulary)

    def plan(self, X: Any, query: Query = DEFAULT_QUERY) -> Plan:
        """Encode sentences and attach their scores and constraints, as the input of every search.

        Args:
            X: Sentences of the kind the model was trained on.
            query: Options of the call: decoder, allowed labels, constraints, number of threads.

        Returns:
            A `Plan` for the functions of `tagwise.decoding`.
        """
        X = Inputs.of(X)
        query = replace(query, allowed=self.allowed(query.allowed))
        return plan_of(self.scoring, X, self.encode(X, query.n_jobs), query)

    def predict(self, X: Any, query: Query = DEFAULT_QUERY) -> list[list[Any]]:
        """Predict the labels of each sentence.

        Args:
            X: Sentences of the kind the model was trained on.
            query: Options of the call: decoder, allowed labels, constraints, number of threads.

        Returns:
            One list of labels per sentence, in the type they had in training.
        """
        found = _core.name_paths(*self.predict_numbers(X, query), list(self.labels))
        return found if self.label_type == "str" else [self.typed(labels) for labels in found]

    def predict_numbers(
        self, X: Any, query: Query = DEFAULT_QUERY
    ) -> tuple[NDArray[np.uint16], NDArray[np.uint64]]:
        """Predict label numbers, which is faster than `predict`.

        Args:
            X: Sentences of the kind the model was trained on.
            query: Options of the call: decoder, allowed labels, constraints, number of threads.

        Returns:
            Indices into `labels`, one per token, and the offsets [N + 1] of the sentences.
        """
        plan = self.plan(X, query)
        return paths.best(plan), plan.data.offsets

    def marginals(self, X: Any, query: Query = DEFAULT_QUERY) -> list[NDArray[np.float32]]:
        """Return the probability p(y_t | x) of every label at every token.

        Args:
            X: Sentences of the kind the model was trained on.
            query: Options of the call: decoder, allowed labels, constraints, number of threads.

        Returns:
            One array [T, L] per sentence, with columns in the order of `labels`.
        """
        plan = self.plan(X, query)
        p, _ = paths.marginals(plan)
        return [p[begin:end] for begin, end in pairwise(plan.data.offsets.tolist())]

    def kbest(
        self, X: Any, k: int, query: Query = DEFAULT_QUERY, *, probability: bool = False
    ) -> list[list[tuple[list[Any], float]]]:
        """Return the k best paths of each sentence.

        Args:
            X: Sentences of the kind the model was trained on.
            k: Number of paths.
            query: Options of the call: decoder, allowed labels, constraints, number of threads.
            probability: Return probabilities instead of scores. Only meaningful for CRF, HMM and MEMM.

        Returns:
            For each sentence a list of (labels, score or probability), best first.
        """
        k = checked("k", k, Integer(1))
        probability = checked("probability", probability, Flag())
        plan = self.plan(X, query)
        counts, scores, labels = paths.kbest(plan, k)
        if probability:
            scores = np.exp(scores - np.repeat(paths.marginals(plan)[1], counts))
        out: list[list[tuple[list[Any], float]]] = []
        classes, path, at = self.classes, 0, 0
        for (begin, end), count in zip(pairwise(plan.data.offsets.tolist()), counts.tolist()):
            _core.Stop.check()
            best = []
            for _ in range(count):
                ids = labels[at : at + end - begin].tolist()
                best.append(([classes[y] for y in ids], float(scores[path])))
                path, at = path + 1, at + end - begin
            out.append(best)
        return out

    def ranks(
        self, X: Any, y: Sequence[Sequence[Any]] | None = None, k: int = 100, query: Query = DEFAULT_QUERY
    ) -> Ranks:
        """Return the rank and the margin of the gold label sequence of each sentence.

        The rank is the number of wrong sequences whose score is at least that of the gold one.

        Args:
            X: Labelled corpus, or sentences.
            y: Gold labels, if X has none.
            k: Length of the k-best lists. Ranks of k and above are reported as -1. Raise it if there are many.
            query: Options of the call: constraints, number of threads.

        Returns:
            `Ranks` with one rank and margin per sentence.
        """
        inputs = Inputs.of(X)
        return gold_ranks(self.plan(inputs, query), single(inputs.gold(y))[0], k)

    def evaluate(
        self, X: Any, y: Sequence[Sequence[Any]] | None = None, query: Query = DEFAULT_QUERY
    ) -> Report:
        """Score the predictions on a labelled corpus.

        Args:
            X: Labelled corpus, or sentences.
            y: Gold labels, if X has none.
            query: Options of the call: decoder, allowed labels, constraints, number of threads.

        Returns:
            A `Report` with accuracy, and with precision, recall and F1 by type if the labels mark spans.

        Raises:
            CorpusError: If there are no gold labels, or they differ in length from the sentences.
        """
        inputs = Inputs.of(X)
        predicted, _ = texts(self.predict(inputs, query))
        return compared(single(inputs.gold(y))[0], predicted, has_chunks(self.labels))

    def errors(
        self, X: Any, y: Sequence[Sequence[Any]] | None = None, query: Query = DEFAULT_QUERY
    ) -> Errors:
        """Find the errors on a labelled corpus. See `Tagger.errors`.

        Args:
            X: Labelled corpus, or sentences.
            y: Gold labels, if X has none.
            query: Options of the call: decoder, allowed labels, constraints, number of threads.

        Returns:
            The `Errors` in groups, largest first. They print as a report.

        Raises:
            CorpusError: If there are no gold labels, or they differ in length from the sentences.
        """
        inputs = Inputs.of(X)
        predicted, _ = texts(self.predict(inputs, query))
        return find_errors(inputs.labelled(y), predicted, chunked=has_chunks(self.labels))

    @cached_property
    def classes(self) -> tuple[Any, ...]:
        """Labels, in the type they had in training."""
        return named(self.labels, self.label_type)

    def typed(self, labels: Sequence[str]) -> list[Any]:
        """Convert labels from str to the type they had in training.

        Args:
            labels: Labels as str.

        Returns:
            The labels in their own type.
        """
        return list(named(labels, self.label_type))

    def allowed(self, given: Any) -> Any:
        """Convert the allowed labels of tokens to str.

        Args:
            given: One list per sentence with a label, a collection of labels or None per token. Iterators are read
                once.

        Returns:
            Lists of the same structure, or None if `given` is None.

        Raises:
            ParameterError: If `given` is not a list of lists.
        """
        if given is None:
            return None
        if isinstance(given, (str, bytes, Mapping)) or not isinstance(given, Iterable):
            raise ParameterError(
                "expected one list per sentence with one entry per token (a label, a collection of labels, or None for "
                f"any), found {shown(given)}"
            )
        read = [list(x) if isinstance(x, Iterator) else x for x in given]
        if self.label_type == "str":
            return read
        return [texts([x])[0][0] if isinstance(x, Sequence) else x for x in read]

    @cached_property
    def scoring(self) -> Scoring:
        """Parts of the model that decoding uses."""
        voters = Voters.from_arrays(self.arrays, self.scorer, forbidden_of(self.constraints, self.labels))
        return Scoring(self.labels, self.scorer, self.lookback, self.constraints, self.dictionary, voters)

    @property
    def native(self) -> _core.Scorer:
        """Scorer of the explicit weights on the CPU. Those of a kernel model are its transitions."""
        if isinstance(self.scorer, KernelScorer):
            return self.scorer.base
        return native(self.scorer, forbidden_of(self.constraints, self.labels))

    @property
    def rules(self) -> Rules | None:
        """Constraints of the model in terms of its labels, or None."""
        return self.scoring.rules

    # --- inspection -------------------------------------------------------------------------------------

    @property
    def n_features(self) -> int:
        """Number of features: (attribute, label) and (label, label) pairs with a weight.

        Those of a kernel model are (support token, label) and (label, label) pairs.
        """
        more = 0 if self.lookback is None else self.lookback.n_features
        return len(self.scorer.layout) + self._n_betas + more

    @property
    def n_nonzero(self) -> int:
        """Number of features whose weight is not zero."""
        more = 0 if self.lookback is None else int(np.count_nonzero(self.lookback.weights))
        return int(np.count_nonzero(self.scorer.weights)) + self._n_betas + more

    @property
    def _n_betas(self) -> int:
        return self.scorer.n_betas if isinstance(self.scorer, KernelScorer) else 0

    def attribute_text(self, attribute: int) -> str:
        """Return the text of an attribute for explanations, with word classes named by their members.

        Args:
            attribute: Id of the attribute.

        Returns:
            The text.
        """
        return self.recipe.readable(self.vocabulary.text(attribute))

    def inspect(self, top: int = 20) -> Inspection:
        """Return the strongest features of each label and the strongest transitions.

        Args:
            top: Number of features per label, by magnitude of the weight.

        Returns:
            An `Inspection`, which prints as tables.
        """
        named = NamedLayout(self.scorer.layout, self.vocabulary, self.labels)
        found = strongest_features(named, self.scorer.weights, top)
        known = dict(zip(self.labels, self.classes))
        readable = self.recipe.readable
        return Inspection(
            {known[y]: [(readable(text), w) for text, w in best] for y, best in found.labels.items()},
            [(known[before], known[after], w) for before, after, w in found.transitions],
        )

    def explain(
        self,
        sentence: Any,
        *,
        token: int | None = None,
        against: Any = None,
        probabilistic: bool = False,
        n_jobs: int | None = None,
    ) -> Decisions:
        """Explain the labels of one sentence, each compared with the next best one. See `Tagger.explain`.

        Args:
            sentence: One sentence of the kind the model was trained on.
            token: Index of the token to explain, from 0. None explains all tokens.
            against: Label of the token, or labels of the sentence, to compare with. None takes the best other path.
            probabilistic: Compute probabilities too. Only meaningful for CRF, HMM and MEMM.
            n_jobs: Number of threads. None uses all cores.

        Returns:
            `Decisions` with one decision per token.

        Raises:
            ParameterError: If the model has a kernel or labels further back, or `token` is outside the sentence.
        """
        if isinstance(self.scorer, KernelScorer) or self.lookback is not None:
            what = "kernels" if self.lookback is None else "labels further back (lookback, order)"
            raise ParameterError(
                f"predictions of a model with {what} cannot be explained, since they are not sums over features of "
                "neighbouring labels. Train a model without them"
            )
        if isinstance(sentence, str):
            raise ParameterError("the sentence is a string, expected a list of tokens. Split it into tokens")
        X = Inputs.of([sentence])
        data = self.encode(X, n_jobs)
        T = data.n_tokens
        if not T:
            raise ParameterError(
                "the sentence has no tokens, so there is nothing to explain. Pass at least one token"
            )
        token = checked("token", token, Integer(optional=True))
        if token is not None and not 0 <= token < T:
            raise ParameterError(f"token={token}: expected 0 to {T - 1}, a token of the sentence")
        if against is not None and not _is_label(against):
            if isinstance(against, (bytes, Mapping)) or not isinstance(against, Iterable):
                raise ParameterError(
                    f"against={shown(against)}: expected a label, or one for each token of the sentence"
                )
            against = list(against)
            texts([against])  # rejects entries that are neither labels nor collections of labels
        index = {label: i for i, label in enumerate(self.classes)}
        if against is not None and _is_label(against) and against not in index:
            raise CorpusError(
                f"against={shown(against)} is not a label of the model{meant(str(against), self.labels)}. "
                f"The labels are: {' '.join(self.labels)}"
            )
        words = X.shown(0)
        ((path, score),) = self.kbest(X, 1, Query(n_jobs=n_jobs))[0]
        features = SentenceFeatures(self.native, data)
        chances = self.marginals(X, Query(n_jobs=n_jobs))[0] if probabilistic else None
        ids = [index[y] for y in path]
        places = range(T) if token is None else range(token, token + 1)
        if (
            token is None and against is not None and not _is_label(against)
        ):  # one other path, so one decision
            places = range(next((t for t, y in enumerate(against) if y != path[t]), 0), T)[:1]
        search = self._runners_up(X, data, features, ids) if against is None else None
        out = []
        for t in places:
            if search is not None:
                detour = search(t)
            else:
                other = self._other(X, path, t, against, n_jobs)
                detour = None if other is None else Detour.between(ids, [index[y] for y in other])
            if detour is None:
                continue
            cast = votes(features, self.attribute_text, self.labels, ids, detour, self.scorer.local)
            both: tuple[float, float] | tuple[None, None] = (None, None)
            if chances is not None:
                both = float(chances[t, ids[t]]), float(chances[t, detour.label(ids, t)])
            others = [self.classes[v] for v in detour.labels]
            out.append(Decision(t, words, path, detour.begin, others, score, cast, both[0], both[1]))
        return Decisions(words, path, out)

    def _runners_up(
        self, X: Inputs, data: _core.Dataset, features: SentenceFeatures, path: list[int]
    ) -> Callable[[int], Detour | None] | None:
        """Return a search for the best path with another label at a token, or None for labels that occur once.

        The tag dictionary does not apply at the token itself. If no path with another label follows it elsewhere, it
        does not apply anywhere.
        """
        rules, dictionary = self.rules, self.dictionary
        if rules is not None and rules.once is not None:
            return None
        free = np.ones((len(path), len(self.labels)), dtype=np.bool_)
        pairs = np.zeros((len(self.labels),) * 2)
        if rules is not None:
            free[0] &= rules.start
            free[-1] &= rules.end
            pairs[~rules.pairs] = -np.inf
        local = self.scorer.local

        def runners_up(allowed: NDArray[np.bool_]) -> RunnersUp:
            return RunnersUp(features.scores, lambda t: features.step(t, local) + pairs, allowed, free, path)

        if dictionary is None:
            return runners_up(free).at
        rows = dictionary.sets[X.numbers(dictionary.words, "a model with a tag dictionary")]
        strict = runners_up(free & rows)
        loose = cache(lambda: runners_up(free))
        return lambda t: strict.at(t) or loose().at(t)

    def _other(
        self, X: Inputs, path: list[Any], t: int, against: Any, n_jobs: int | None
    ) -> list[Any] | None:
        """Return the path to compare with at a token, or None if there is none."""
        allowed: list[Any] = [None] * len(path)
        if against is None:
            allowed[t] = [y for y in self.classes if y != path[t]]
            if not allowed[t]:
                return None
        elif _is_label(against):
            allowed[t] = against
        else:
            allowed = list(against)
        try:
            found = self.kbest(X, 1, Query(allowed=[allowed], n_jobs=n_jobs))[0]
        except ValueError as error:
            if against is None and not isinstance(error, CorpusError):
                return None  # the rules allow no other label here
            raise
        return found[0][0]

    # --- files ------------------------------------------------------------------------------------------

    def save(
        self, path: Path, extra: dict[str, NDArray[Any]] | None = None, *, format: str = "tagwise"
    ) -> None:
        """Write the model to one file, atomically. docs/reference/model-file.md describes the format.

        Args:
            path: Path of the file.
            extra: Further arrays (float64 or uint32) to write. `file.array(name)` reads them back.
            format: "tagwise", or that of another program: "crfsuite", "wapiti", "crfpp", "crfpp-text".

        Raises:
            ModelFileError: If a weight is not finite, or the format cannot express a part of the model, which is named.
            FileError: If the file cannot be written.
        """
        path, format = checked_path(path), checked("format", format, Text())
        if format != "tagwise":
            with error_prefix(f"{os.fspath(path)}: not written"):
                data = self.exported(format)
            with atomic(path) as out:
                out.write(data)
            return
        header: dict[str, Any] = {
            "tagwise": _core.__version__,
            "labels": list(self.labels),
            **({"label_type": self.label_type} if self.label_type != "str" else {}),
            "features": self.recipe.to_json(),
            "n_attributes": self.scorer.layout.n_attributes,
            **({"local": True} if self.scorer.local else {}),
            "meta": self.meta,
        }
        if "state" in self.meta and "state.weights" not in (
            extra or {}
        ):  # a state without its arrays is useless
            header["meta"] = {name: x for name, x in self.meta.items() if name != "state"}
        arrays: dict[str, NDArray[Any]] = {}
        if self.lookback is not None:
            header["lookback"] = self.lookback.to_json()
            arrays["lookback"] = self.lookback.weights
        if self.constraints is not None:
            header["constraints"] = self.constraints.to_json()
        if self.dictionary is not None:
            arrays |= self.dictionary.arrays()
        own = dict(sorted(self.arrays.items()))  # so that reading and writing a file reproduces it
        if own:
            header["arrays"] = list(own)
        if isinstance(self.scorer, KernelScorer):
            header["kernel"] = self.scorer.kernel.to_json()
            arrays |= self.scorer.arrays()
        arrays |= own | (extra or {})
        with error_prefix(f"{os.fspath(path)}: not written"):
            text = schema.written(header)
            for name, array in {"weights": self.scorer.weights, **arrays}.items():
                if array.dtype.kind == "f":
                    check_finite(name, array)
        with atomic(path) as out:
            _core.write_model(out, text, self.vocabulary, self.native, arrays)

    def exported(self, format: str) -> bytes:
        """Return the model as the bytes of a file of another program.

        Args:
            format: Name of the format, as in `save`.

        Returns:
            The content of the file.

        Raises:
            ModelFileError: If the format is unknown or cannot express the model.
        """
        chosen = format_by_name(format)
        unsupported = (
            (isinstance(self.scorer, KernelScorer), "a kernel. Train without one, or save as tagwise"),
            (
                self.lookback is not None,
                "features of earlier labels (lookback, order). Train without them, or save as tagwise",
            ),
            (self.constraints is not None, "constraints. Train with constraints=None, or save as tagwise"),
            (self.dictionary is not None, "a tag dictionary. Train without one, or save as tagwise"),
            ("voters.counts" in self.arrays, "several weight vectors that vote. Train with voters=0"),
            (self.label_type != "str", f"labels that are {self.label_type}. Train on strings"),
        )
        for found, what in unsupported:
            if found:
                raise ModelFileError(f"{format} cannot express {what}")
        check_finite("weights", self.scorer.weights)
        known = self.meta.get("foreign", {})
        return chosen.write(
            chain_of(self.labels, self.recipe, self.vocabulary, self.native, self.arrays, known)
        )

    @staticmethod
    def load(
        path: Path,
        *,
        functions: Mapping[str, Callable[..., Any]] | None = None,
        trust: bool = False,
        mmap: bool = False,
    ) -> Model:
        """Load a model file of tagwise, CRFsuite, Wapiti or CRF++.

        The format is detected from the first bytes. Nothing that the file names is imported or called unless `trust` is
        set.

        Args:
            path: Path of the file.
            functions: Functions that the file names (of features, a kernel), by import path ("module:name") or by name.
                Without them such a model can be inspected, and predicting raises MissingFunctionError.
            trust: Import the modules that the file names, which runs their code. Set it to True only if you trust the
                author of the file.
            mmap: Map the file into memory instead of reading it. The file must then not be changed while the model
                exists.

        Returns:
            The model.

        Raises:
            ModelFileError: If the file is damaged or not a model.
            FileError: If the file cannot be read.
        """
        return Model(**parts_of(path, Functions(functions, trust), mmap=mmap))

    @property
    def missing(self) -> tuple[MissingFunction, ...]:
        """Functions that the file names and that were not passed to `load`. Predicting needs them."""
        kernel = self.scorer.kernel.function if isinstance(self.scorer, KernelScorer) else None
        return tuple(
            found for found in (*self.recipe.functions, kernel) if isinstance(found, MissingFunction)
        )

    @property
    def named_functions(self) -> tuple[str, ...]:
        """Import paths of the functions of its features and its kernel, which a file stores."""
        kernel = self.scorer.kernel.to_json() if isinstance(self.scorer, KernelScorer) else {}
        return (*self.recipe.named_functions, *([kernel["function"]] if "function" in kernel else []))

    def with_meta(self, **entries: Any) -> Model:
        """Return a copy with some entries of `meta` replaced.

        Args:
            entries: Names and values.

        Returns:
            The new model. It shares all arrays with this one.
        """
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
            None if self.lookback is None else (self.lookback.to_json(), self.lookback.weights),
            self.constraints,
            self.dictionary,
            self.arrays,
            self.label_type,
        )
        if isinstance(self.scorer, KernelScorer):
            return (_rebuild, (*state, self.scorer.kernel, self.scorer.arrays()))
        return (_rebuild, state)


def _is_label(against: Any) -> bool:
    """Return whether this is one label, of any type, and not a sequence of labels."""
    return type_name(type(against)) is not None


def _rebuild(
    labels: tuple[str, ...],
    recipe: Recipe,
    vocabulary: _core.Vocabulary,
    n_attributes: int,
    arrays: dict[str, Any],
    weights: NDArray[np.float32],
    meta: dict[str, Any],
    local: bool,
    further: tuple[dict[str, Any], NDArray[np.float32]] | None,
    constraints: Constraints | None,
    dictionary: TagDictionary | None,
    own: dict[str, NDArray[Any]],
    label_type: str,
    kernel: KernelFunction | None = None,
    support: dict[str, Any] | None = None,
) -> Model:
    layout = _core.Layout.from_arrays(n_attributes, len(labels), arrays)
    base = _core.Scorer(layout, weights, forbidden_of(constraints, labels), local=local)
    lookback = None if further is None else LookbackWeights.from_json(*further)
    scorer = base if kernel is None or support is None else KernelScorer.of_arrays(base, kernel, support)
    model = Model(labels, recipe, vocabulary, scorer, meta, lookback, constraints, dictionary, own)
    return replace(model, label_type=label_type)


def transfer(
    old: Model, vocabulary: _core.Vocabulary, layout: _core.Layout, labels: Sequence[str]
) -> NDArray[np.float64]:
    """Return the weights of an old model in a new layout, as start weights. New features get 0."""
    check_explicit(old)
    before = NamedLayout(old.scorer.layout, old.vocabulary, old.labels)
    return transfer_weights(before, old.scorer.weights, NamedLayout(layout, vocabulary, labels))


def check_explicit(old: Model) -> None:
    """Raise a ParameterError if a model to start from has no weights of features."""
    if isinstance(old.scorer, KernelScorer):
        raise ParameterError(
            "warm_start: a kernel model has support tokens instead of weights. Start from a model without a kernel"
        )

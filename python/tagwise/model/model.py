"""Trained models: labels, vocabulary, weights and features, with prediction, explanation and files."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

import tagwise._core as _core
from tagwise.base.domains import Text
from tagwise.base.exceptions import ModelFileError, ParameterError
from tagwise.base.imports import Functions, MissingFunction
from tagwise.base.parameters import checked, checked_path
from tagwise.base.writing import atomic
from tagwise.dataset.layout import NamedLayout, transfer_weights
from tagwise.model import schema
from tagwise.model.explaining import explained
from tagwise.model.formats.chain import chain_of
from tagwise.model.formats.table import format_by_name
from tagwise.model.inspection import Inspection, strongest_features
from tagwise.model.predictor import Predictor
from tagwise.model.reading import check_finite, error_prefix, forbidden_of, parts_of
from tagwise.model.votes import Decisions
from tagwise.scores.kernels import KernelScorer
from tagwise.scores.lookback import LookbackWeights

Path = str | os.PathLike[str]


@dataclass(frozen=True)
class Model(Predictor):
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

    def __repr__(self) -> str:
        from tagwise.base.terminal import brief

        learner = self.meta.get("learner", "model")
        return (
            f"<Model: {learner}, features {brief(self.recipe.name)}, {len(self.labels)} labels, "
            f"{self.n_features:,} weights>"
        )

    def _repr_html_(self) -> str:
        from tagwise.base.markup import object_html
        from tagwise.corpus.label_markup import labels_html

        rows: list[tuple[str, Any]] = [
            ("labels", labels_html(self.labels)),
            ("weights", f"{self.n_features:,}, {self.n_nonzero:,} of them not zero"),
            *((name, value) for name, value in self.meta.get("params", {}).items()),
        ]
        return object_html(self, rows)

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
        return explained(self, sentence, token, against, probabilistic, n_jobs)

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
        if "state.weights" not in (extra or {}):  # a state without its arrays is useless
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
        own = ("labels", "recipe", "vocabulary", "meta", "constraints", "dictionary", "arrays", "label_type")
        scorer, lookback = self.scorer, self.lookback
        explicit = (scorer.layout.n_attributes, scorer.layout.arrays(), scorer.weights, scorer.local)
        kernel = (scorer.kernel, scorer.arrays()) if isinstance(scorer, KernelScorer) else None
        further = None if lookback is None else (lookback.to_json(), lookback.weights)
        return _rebuild, ({name: getattr(self, name) for name in own}, explicit, kernel, further)


def _rebuild(own: dict[str, Any], explicit: tuple[Any, ...], kernel: Any, further: Any) -> Model:
    """Return the model of a pickle."""
    n_attributes, arrays, weights, local = explicit
    labels = own["labels"]
    layout = _core.Layout.from_arrays(n_attributes, len(labels), arrays)
    base = _core.Scorer(layout, weights, forbidden_of(own["constraints"], labels), local=local)
    return Model(
        **own,
        scorer=base if kernel is None else KernelScorer.of_arrays(base, *kernel),
        lookback=None if further is None else LookbackWeights.from_json(*further),
    )


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

"""Interface to scikit-learn beyond `fit` and `get_params`. Only these methods import scikit-learn."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from typing_extensions import Self

Item = TypeVar("Item")
#: Arguments of `fit` and `partial_fit` that scikit-learn can pass on.
METADATA = ("sample_weight", "dev", "dev_y")
#: Value of a request that keeps the current setting, as in scikit-learn.
UNCHANGED = "$UNCHANGED$"
#: Whether to pass metadata on, or the name of the metadata to pass.
Request = bool | str | None


class ScikitLearn:
    """Tags, metadata routing and the diagram that pipelines, searches and notebooks of scikit-learn use."""

    _metadata_request: Any  # name that `clone` of scikit-learn reads

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "model_")

    def __sklearn_tags__(self) -> Any:
        from sklearn.utils import InputTags, Tags, TargetTags

        # Not "classifier": scikit-learn would expect one class per sentence and stratify by it.
        return Tags(
            estimator_type=None,
            target_tags=TargetTags(required=True),
            input_tags=InputTags(two_d_array=False),
        )

    def get_metadata_routing(self) -> Any:
        """Return the metadata that a pipeline or a search passes to `fit`, in the form of scikit-learn.

        Returns:
            A `MetadataRequest`. `set_fit_request` changes it.
        """
        from sklearn.utils.metadata_routing import MetadataRequest

        if hasattr(self, "_metadata_request"):
            return self._metadata_request
        request = MetadataRequest(owner=type(self).__name__)
        for method in ("fit", "partial_fit"):
            if hasattr(self, method):
                for name in METADATA:
                    getattr(request, method).add_request(param=name, alias=None)
        return request

    def _request(self, method: str, **wanted: Request) -> Self:
        request = self.get_metadata_routing()
        for name, alias in wanted.items():
            if alias != UNCHANGED:
                getattr(request, method).add_request(param=name, alias=alias)
        self._metadata_request = request
        return self

    def set_fit_request(
        self, *, sample_weight: Request = UNCHANGED, dev: Request = UNCHANGED, dev_y: Request = UNCHANGED
    ) -> Self:
        """Set which metadata scikit-learn passes to `fit`, if its metadata routing is enabled.

        Each is True or False, a str to pass metadata of that name, or None to raise an error if it is given. The
        default keeps the current setting.

        Args:
            sample_weight: Whether to pass weights of sentences.
            dev: Whether to pass the development set. A search cuts metadata that has as many entries as X to each
                fold, so `dev` must have another number of sentences.
            dev_y: Whether to pass the labels of `dev`.

        Returns:
            The tagger itself.
        """
        return self._request("fit", sample_weight=sample_weight, dev=dev, dev_y=dev_y)

    def _repr_html_(self) -> str | None:
        """Return the diagram of scikit-learn, or None if it is not imported or its `display` is not "diagram"."""
        if "sklearn" not in sys.modules:
            return None
        from sklearn import get_config
        from sklearn.utils import estimator_html_repr

        shown: str | None = estimator_html_repr(self) if get_config()["display"] == "diagram" else None
        return shown


class Sequences(list[Item]):
    """List with one entry per sentence that NumPy converts to an array [N] of these entries, whatever their lengths.

    NumPy rejects a plain list of lists of different lengths, and `cross_val_predict` concatenates arrays.

    >>> np.concatenate([Sequences([["DET", "NOUN"]]), Sequences([["VERB"]])]).tolist()
    [['DET', 'NOUN'], ['VERB']]
    """

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[np.object_]:
        out = np.empty(len(self), dtype=np.object_)
        for i, item in enumerate(self):
            out[i] = item
        return out

"""Interface to scikit-learn beyond `fit` and `get_params`. Only these methods import scikit-learn."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from typing_extensions import Self

Item = TypeVar("Item")


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
                getattr(request, method).add_request(param="sample_weight", alias=None)
        return request

    def _request(self, method: str, sample_weight: bool | str | None) -> Self:
        request = self.get_metadata_routing()
        getattr(request, method).add_request(param="sample_weight", alias=sample_weight)
        self._metadata_request = request
        return self

    def set_fit_request(self, *, sample_weight: bool | str | None) -> Self:
        """Set whether scikit-learn passes `sample_weight` to `fit`.

        Args:
            sample_weight: True or False, a str to pass metadata of that name, or None to raise an error if it is given.

        Returns:
            The tagger itself.
        """
        return self._request("fit", sample_weight)

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

"""What scikit-learn asks of an estimator beside `fit` and `get_params`; who uses it has imported it, it is not here."""

from __future__ import annotations

import sys
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

Item = TypeVar("Item")
Requester = TypeVar("Requester", bound="ScikitLearn")


class ScikitLearn:
    """Tags, metadata routing, the diagram: what pipelines, searches and notebooks look for."""

    _metadata_request: Any  # where scikit-learn's `clone` looks for it

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "model_")

    def __sklearn_tags__(self) -> Any:
        from sklearn.utils import InputTags, Tags, TargetTags

        # No "classifier": scikit-learn would look for one class a sentence and stratify by it.
        return Tags(
            estimator_type=None,
            target_tags=TargetTags(required=True),
            input_tags=InputTags(two_d_array=False),
        )

    def get_metadata_routing(self) -> Any:
        """What is to be handed to `fit` by a pipeline or a search; scikit-learn asks, see `set_fit_request`."""
        from sklearn.utils.metadata_routing import MetadataRequest

        if hasattr(self, "_metadata_request"):
            return self._metadata_request
        request = MetadataRequest(owner=type(self).__name__)
        for method in ("fit", "partial_fit"):
            if hasattr(self, method):
                getattr(request, method).add_request(param="sample_weight", alias=None)
        return request

    def _request(self: Requester, method: str, sample_weight: bool | str | None) -> Requester:
        request = self.get_metadata_routing()
        getattr(request, method).add_request(param="sample_weight", alias=sample_weight)
        self._metadata_request = request
        return self

    def set_fit_request(self: Requester, *, sample_weight: bool | str | None) -> Requester:
        """Whether scikit-learn's pipelines and searches hand `sample_weight` to `fit`.

        Args:
            sample_weight: True or False; a text is the name it has there; None is an error where one is given.
        """
        return self._request("fit", sample_weight)

    def _repr_html_(self) -> str | None:
        """scikit-learn's diagram, where that is in use and its `display` is "diagram"; None has the text shown."""
        if "sklearn" not in sys.modules:
            return None
        from sklearn import get_config
        from sklearn.utils import estimator_html_repr

        shown: str | None = estimator_html_repr(self) if get_config()["display"] == "diagram" else None
        return shown


class Sequences(list[Item]):
    """A list with an entry a sentence that is an array [N] of these entries to NumPy, however long they are.

    A plain list of lists of different lengths is none, and `cross_val_predict` joins arrays.

    >>> np.concatenate([Sequences([["DET", "NOUN"]]), Sequences([["VERB"]])]).tolist()
    [['DET', 'NOUN'], ['VERB']]
    """

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[np.object_]:
        out = np.empty(len(self), dtype=np.object_)
        for i, item in enumerate(self):
            out[i] = item
        return out

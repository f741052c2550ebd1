"""A cluster by Ray (`pip install 'tagwise[ray]'`): training with the local engine's bits, encoding, tagging."""

from tagwise.ray.encoding import encode
from tagwise.ray.tagging import Tag

__all__ = ["Tag", "encode"]

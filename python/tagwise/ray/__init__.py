"""Training, encoding and tagging on a Ray cluster (`pip install 'tagwise[ray]'`)."""

from tagwise.ray.tagging import Tag

__all__ = ["Tag"]

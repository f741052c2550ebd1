"""Training on encoded shards."""

from tagwise.estimators.sharded.fit import fit_shards

__all__ = ["fit_shards"]

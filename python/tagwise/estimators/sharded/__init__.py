"""Training on encoded shards: `fit_shards`, a path of its own beside `Tagger.fit`."""

from tagwise.estimators.sharded.fit import fit_shards

__all__ = ["fit_shards"]

"""Corpora as encoded shards on disk: made once by `encode`, mapped when they are read, whatever their size."""

"""Encoded shards on disk, for corpora larger than memory: written once by `encode`, memory-mapped by `Shards`."""

"""Encoded training data: attribute and label ids, feature layouts, sample weights, and shards on disk."""

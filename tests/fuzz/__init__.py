"""Damaged input in large numbers: corpora, templates and model files."""

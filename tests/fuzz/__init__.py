"""Damaged input by the million: corpora, templates and model files."""

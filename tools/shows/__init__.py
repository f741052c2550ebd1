"""Notebooks and shell sessions of the documentation, with their output."""

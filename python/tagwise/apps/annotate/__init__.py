"""Labelling in a browser with a tagger that learns from each accepted sentence: `tagwise annotate`."""

"""Labelling in a browser, with a tagger that learns each sentence as it is accepted: `tagwise annotate`."""

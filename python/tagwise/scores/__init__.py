"""The score interface: scores of labels and label pairs, valid paths, losses."""

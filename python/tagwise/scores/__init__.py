"""The seam: scores of labels and of pairs of labels, what may be a path, losses on them."""

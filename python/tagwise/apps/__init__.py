"""Applications on top of the library: comparisons, the server, the labelling page, ready-made taggers."""

"""Decoding: best paths, k-best lists, marginal probabilities, and confidences."""

"""Sentences as numbers: ids of attributes and labels, and where the weights of their features lie."""

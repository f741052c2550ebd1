"""Model files that are wrong on purpose, with checksums that are right; `python -m tests.forge` makes many of them."""

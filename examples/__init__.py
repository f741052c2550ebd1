"""Programs to copy: `make example NAME=addresses`, or `python -m examples.addresses`."""

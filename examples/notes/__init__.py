"""Notes of a clinic."""

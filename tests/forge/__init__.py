"""Invalid model files with valid checksums. `python -m tests.forge` generates many of them."""

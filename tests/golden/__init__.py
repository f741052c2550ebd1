"""Small model files of every kind, kept as once written, and their predictions."""

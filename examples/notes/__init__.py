"""Clinical notes."""

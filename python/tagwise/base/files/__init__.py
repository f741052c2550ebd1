"""Files that may come from strangers: opened within limits, checked by a checksum and a schema."""

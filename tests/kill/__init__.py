"""Files left behind by a kill at any moment."""

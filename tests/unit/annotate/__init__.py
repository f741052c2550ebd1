"""The engine of `tagwise annotate`, without HTTP."""

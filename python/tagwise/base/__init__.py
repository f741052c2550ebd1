"""Basics of all packages: exceptions, parameters, imports by name, atomic file writing, terminal output."""

"""What everything else rests on: exceptions, parameters, imports by name, atomic file writing, terminal output."""

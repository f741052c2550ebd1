"""Mixed load for a long time: memory, descriptors and threads stay constant."""

"""Linear chains as operators of PyTorch."""

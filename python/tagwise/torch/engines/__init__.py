"""Engines that compute chains: the reference in plain PyTorch, the native core, CUDA kernels."""

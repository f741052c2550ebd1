"""Learners, which compute weights from a dataset and a layout of features."""

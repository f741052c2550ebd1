"""Learners: from a dataset and a layout of features to weights. One file a learner."""

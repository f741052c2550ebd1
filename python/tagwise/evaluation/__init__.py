"""Evaluation of predictions: conlleval's precision, recall and F1, accuracies, calibration, errors, significance."""

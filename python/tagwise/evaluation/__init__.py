"""How good predictions are: conlleval's precision, recall and F1, accuracies, calibration, errors, significance."""

"""Evaluation of predictions: conlleval's precision, recall and F1, accuracies, calibration, errors, significance."""

from tagwise.evaluation.errors import Errors, find_errors
from tagwise.evaluation.metrics import Calibration, Report, Score, calibration, evaluate

__all__ = ["Calibration", "Errors", "Report", "Score", "calibration", "evaluate", "find_errors"]

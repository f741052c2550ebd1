"""Evaluation of predictions: conlleval's precision, recall and F1, accuracies, calibration, errors, significance."""

from tagwise.evaluation.calibration_curve import Calibration, calibration
from tagwise.evaluation.errors import Errors, find_errors
from tagwise.evaluation.metrics import Report, Score, evaluate

__all__ = ["Calibration", "Errors", "Report", "Score", "calibration", "evaluate", "find_errors"]

"""Plots of reports, comparisons and calibrations with matplotlib: ``pip install 'tagwise[plot]'``.

Each function draws into `ax` or into a new figure, and returns the axes.
"""

from tagwise.apps.compare.plots import calibration, confusion, learning_curve, precision_recall

__all__ = ["calibration", "confusion", "learning_curve", "precision_recall"]

"""Scorers for the searches and cross-validation of scikit-learn: ``GridSearchCV(tagger, grid, scoring=tw.scorers.f1)``.

Each scorer is called with a fitted tagger, sentences and gold labels, and returns a fraction that is higher for better
taggers. F1 counts spans if the labels of the tagger mark spans, else labels.

>>> import tagwise as tw
>>> X, y = [["a", "dog"], ["a", "cat"]], [["DT", "NN"], ["DT", "NN"]]
>>> tw.scorers.accuracy(tw.CRF(features="S1").fit(X, y), X, y)
1.0
"""

from tagwise.estimators.scorers import accuracy, f1, f1_macro, f1_weighted, sequence_accuracy

__all__ = ["accuracy", "f1", "f1_macro", "f1_weighted", "sequence_accuracy"]

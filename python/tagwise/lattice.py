"""Scores of one sentence as a lattice, with log Z, marginals and the best path.

>>> import tagwise as tw
>>> tw.lattice.Lattice(node=[[1.0, 0.0], [0.0, 2.0]], edge=[[0.5, 0.0], [0.0, 0.5]]).viterbi()
(3.0, [0, 1])
"""

from tagwise.scores.lattice import Lattice

__all__ = ["Lattice"]

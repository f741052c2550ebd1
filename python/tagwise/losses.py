"""Losses of one sentence as functions of its lattice: value and gradient with respect to the scores.

>>> import tagwise as tw
>>> value, gradient = tw.losses.log_loss(tw.lattice.Lattice(node=[[1.0, 0.0]], edge=[[0.0, 0.0], [0.0, 0.0]]), [0])
>>> round(value, 4), gradient.node.round(4).tolist()
(0.3133, [[-0.2689, 0.2689]])
"""

from tagwise.scores.losses import (
    ScoreGradient,
    exp_loss,
    log_loss,
    loss_curves,
    pointwise_exp_loss,
    pointwise_log_loss,
)

__all__ = [
    "ScoreGradient",
    "exp_loss",
    "log_loss",
    "loss_curves",
    "pointwise_exp_loss",
    "pointwise_log_loss",
]

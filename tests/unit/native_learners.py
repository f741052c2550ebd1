"""Everything in `_core` that trains, with valid arguments."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tagwise import _core
from tests.laws import constructors

from .native_arguments import Made, Targets, f32, given, u32


def pushed(history: _core.CurvaturePairs) -> _core.CurvaturePairs:
    """Return a history with one pair."""
    history.push(np.zeros(4), np.ones(4), np.zeros(4), np.ones(4))
    return history


def resumed(made: Callable[[], Any]) -> tuple[Callable[[], Any], dict[str, Any]]:
    """Return a learner resumed from a state after one epoch. The arguments are its arrays and numbers."""
    first = made()
    first.run(2, 0.01) if isinstance(first, _core.Boosting) else first.epoch()

    def restored(**state: Any) -> Any:
        learner = made()
        learner.restore(state)
        return learner

    return lambda: restored, dict(first.state())


def flat(made: Callable[..., Any]) -> Callable[..., Any]:
    """Return a learner that takes one flat list of options, including its dataset and layout."""
    names = ("layout", "terms", "kind")

    def call(dataset: Any, **options: Any) -> Any:
        first = [options.pop(name) for name in names if name in options]
        return made(dataset, *first, **options)

    return call


def limited(m: Made, learner: str) -> Callable[..., Any]:
    """Return a learner with limits."""
    rule = (_core.Rule("mira"),) if learner == "Online" else ()
    make = getattr(_core, learner)
    return lambda **options: make(m.dataset, m.layout, *rule, limits=_core.Limits(**options))


def batch(m: Made) -> Targets:
    """Return vectors, objectives, stochastic steps and orders."""
    d, layout, w, c = m.dataset, m.layout, m.w, _core
    return {
        "dot": (lambda: c.dot, given(a=w, b=w, n_jobs=1)),
        "add_scaled": (lambda: c.add_scaled, given(a=w, step=1.0, b=w + 1, out=np.zeros_like(w), n_jobs=1)),
        "add_ridge": (lambda: c.add_ridge, given(w=w, c=1.0, gradient=np.zeros_like(w), n_jobs=1)),
        "Stochastic": (
            lambda: flat(constructors.stochastic),
            given(
                dataset=d,
                layout=layout,
                loss="log",
                sample_weight=np.ones(3),
                forbidden=np.zeros(0, u32),
                allowed=m.allowed,
            ),
        ),
        "Dual": (
            lambda: flat(constructors.dual),
            given(
                dataset=d,
                layout=layout,
                l2=1.0,
                sample_weight=np.ones(3),
                forbidden=np.zeros(0, u32),
                allowed=m.allowed,
                sweeps=2,
            ),
        ),
        "Dual.epoch": (lambda: c.Dual(d, layout, 1.0).epoch, given(seed=1, n_jobs=1)),
        "Dual.primal": (lambda: c.Dual(d, layout, 1.0).primal, given(n_jobs=1)),
        "Dual.certificate": (lambda: c.Dual(d, layout, 1.0).certificate, given(n_jobs=1)),
        "Dual.set_weights": (lambda: c.Dual(d, layout, 1.0).set_weights, given(weights=w)),
        "Dual.terms": (lambda: c.Dual(d, layout, 1.0).terms, given(n_jobs=1)),
        "Dual.loss": (lambda: c.Dual(d, layout, 1.0).loss, given(n_jobs=1)),
        "dual_bounds": (
            lambda: c.dual_bounds,
            given(w=w, l2=1.0, loss=1.0, divergence=0.5, slack=0.0, observed=w),
        ),
        "Dual.restore": (
            lambda: c.Dual(d, layout, 1.0).restore,
            given(
                **dict(zip(("weights", "nodes", "pairs", "blocks", "epochs"), c.Dual(d, layout, 1.0).state()))
            ),
        ),
        "Stochastic.set": (lambda: c.Stochastic(d, layout).set, given(w=w)),
        "Stochastic.order": (lambda: c.Stochastic(d, layout).order, given(seed=1, epoch=1)),
        "Stochastic.run": (
            lambda: c.Stochastic(d, layout).run,
            given(order=np.array([0], u32), eta=0.1, l2=0.1, seen=0.0),
        ),
        "Dataset.from_arrays": (
            lambda: c.Dataset.from_arrays,
            given(offsets=d.offsets, gold=d.gold, node=d.node(), edge=None),
        ),
        "Dataset.from_arrays(rows)": (
            lambda: lambda ptr, ids, values: c.Dataset.from_arrays(d.offsets, d.gold, (ptr, ids, values)),
            given(**dict(zip(("ptr", "ids", "values"), d.node()))),
        ),
        "Objective": (
            lambda: flat(constructors.objective),
            given(
                dataset=d,
                layout=layout,
                loss="log",
                sample_weight=np.ones(3),
                forbidden=np.zeros(0, u32),
                allowed=m.allowed,
                partial=m.allowed,
                cost=None,
                once=None,
            ),
        ),
        "Objective(cost)": (
            lambda: c.Objective,
            given(dataset=d, layout=layout, loss="exp", cost=np.ones((3, 3))),
        ),
        "Objective(once)": (
            lambda: flat(constructors.objective),
            given(dataset=d, layout=layout, once=m.once),
        ),
        "Objective.evaluate": (
            lambda: c.Objective(d, layout).evaluate,
            given(w=w, gradient=np.zeros_like(w), n_jobs=1),
        ),
        "Objective.value": (
            lambda: c.Objective(d, layout).value,
            given(w=w, gradient=np.zeros_like(w), n_jobs=1),
        ),
        "Objective.log_value": (
            lambda: c.Objective(d, layout, loss="exp").log_value,
            given(w=w, gradient=np.zeros_like(w), n_jobs=1),
        ),
        "Objective.precise_value": (
            lambda: c.Objective(d, layout).precise_value,
            given(w=w, gradient=np.zeros_like(w), n_jobs=1),
        ),
        "total_loss": (
            lambda: c.total_loss,
            given(dataset=d, layout=layout, w=w, loss="log", sample_weight=np.ones(3), n_jobs=1),
        ),
        "Limits": (
            lambda: limited(m, "Objective"),
            given(forbidden=np.zeros(0, u32), allowed=m.allowed, once=m.once),
        ),
        "Limits(Online)": (
            lambda: limited(m, "Online"),
            given(forbidden=np.zeros(0, u32), allowed=m.allowed, once=m.once),
        ),
        "CurvaturePairs": (
            lambda: c.CurvaturePairs,
            given(memory=3, n_jobs=1, scale=np.ones(len(layout), f32)),
        ),
        "CurvaturePairs.push": (
            lambda: pushed(c.CurvaturePairs(3)).push,
            given(w0=np.zeros(4), w1=np.ones(4), g0=np.zeros(4), g1=np.ones(4)),
        ),
        "CurvaturePairs.direction": (
            lambda: pushed(c.CurvaturePairs(3)).direction,
            given(g=np.ones(4), direction=np.zeros(4)),
        ),
        "CurvaturePairs.gradient_products": (
            lambda: pushed(c.CurvaturePairs(3)).gradient_products,
            given(g=np.ones(4)),
        ),
        "CurvaturePairs.subtract_steps": (
            lambda: pushed(c.CurvaturePairs(3)).subtract_steps,
            given(w=np.ones(4), c=[0.5], out=np.zeros(4)),
        ),
        "Order": (lambda: c.Order, given(dataset=d, layout=layout, order=2, forbidden=np.zeros(0, u32))),
        "Order.dense": (lambda: m.order.dense, given(weights=np.zeros(len(m.order)))),
        "OrderObjective": (
            lambda: c.OrderObjective,
            given(order=m.order, dataset=d, sample_weight=np.ones(3), allowed=m.allowed),
        ),
        "OrderObjective.value": (
            lambda: c.OrderObjective(m.order, d).value,
            given(w=m.w_order, gradient=np.zeros_like(m.w_order), n_jobs=1),
        ),
        "OrderObjective.precise_value": (
            lambda: c.OrderObjective(m.order, d).precise_value,
            given(w=m.w_order, gradient=np.zeros_like(m.w_order), n_jobs=1),
        ),
    }


def learners(m: Made) -> Targets:
    """Return online learners, the SVM and boosting."""
    d, layout, w, c = m.dataset, m.layout, m.w, _core
    return {
        "small_program": (lambda: c.small_program, given(gram=np.eye(2), b=np.ones(2), limit=1.0)),
        "sequence_cost": (
            lambda: c.sequence_cost,
            given(cost=c.Cost("f1", [1.0], m.entities), gold=m.gold, guess=m.gold),
        ),
        "Online": (
            lambda: flat(constructors.online),
            given(
                dataset=d,
                layout=layout,
                kind="mira",
                average=True,
                batch=False,
                k=3,
                limit=1.0,
                variant=1,
                gamma=1.0,
                variance=1.0,
                cost="f1",
                numbers=[1.0],
                entities=m.entities,
                augment=False,
                shuffle=True,
                seed=1,
                shards=2,
                sample_weight=np.ones(3, f32),
                forbidden=np.zeros(0, u32),
                allowed=m.allowed,
                once=m.once,
            ),
        ),
        "Online.part": (lambda: c.Online(d, layout, c.Rule("mira", k=3)).part, given(begin=1, end=3)),
        "Online.epoch": (
            lambda: c.Online(d, layout, c.Rule("mira", k=3)).epoch,
            given(order=np.array([0, 2], u32)),
        ),
        "Online.weights": (lambda: c.Online(d, layout, c.Rule("mira")).weights, given(averaged=True)),
        "Online.restore": (
            lambda: c.Online(d, layout, c.Rule("mira")).restore,
            given(state=c.Online(d, layout, c.Rule("mira")).state()),
        ),
        "Svm": (
            lambda: flat(constructors.svm),
            given(
                dataset=d,
                layout=layout,
                c=1.0,
                slack="instance",
                rescale=True,
                tolerance=0.1,
                most=3,
                shuffle=True,
                seed=1,
                n_jobs=1,
                sample_weight=np.ones(3),
                forbidden=np.zeros(0, u32),
                allowed=m.allowed,
            ),
        ),
        "HistoryOnline": (
            lambda: flat(constructors.history_online),
            given(
                dataset=d,
                layout=layout,
                terms=m.terms,
                kind="mira",
                words=None,
                average=True,
                batch=False,
                k=2,
                limit=1.0,
                cost="accuracy",
                numbers=[],
                entities=m.entities,
                augment=True,
                shuffle=True,
                seed=1,
                shards=1,
                sample_weight=np.ones(3, f32),
                forbidden=np.zeros(0, u32),
                allowed=m.allowed,
                once=None,
            ),
        ),
        "HistoryOnline.weights": (
            lambda: c.HistoryOnline(d, layout, m.terms, c.Rule("mira")).weights,
            given(averaged=True),
        ),
        "HistoryOnline.restore": resumed(lambda: c.HistoryOnline(d, layout, m.terms, c.Rule("mira"))),
        "Svm.restore": resumed(lambda: c.Svm(d, layout)),
        "Boosting.restore": resumed(lambda: c.Boosting(d, layout, c.Rounds("tight"))),
        "Boosting": (
            lambda: flat(constructors.boosting),
            given(
                dataset=d,
                layout=layout,
                bound="tight",
                line_search=True,
                smoothing=0.1,
                max_step=1.0,
                candidates=1.0,
                features_per_round=2,
                overlap=True,
                seed=1,
                n_jobs=1,
                loss="pointwise_exp",
                over="all",
                sample_weight=np.ones(3),
                start=w,
            ),
        ),
        "Epochs": (
            lambda: lambda **options: c.Online(d, layout, c.Rule("mira", k=3), epochs=c.Epochs(**options)),
            given(average=True, batch=False, shuffle=True, seed=1, shards=2),
        ),
        "Rule": (
            lambda: lambda **options: c.Online(d, layout, c.Rule(**options)),
            given(kind="mira", k=3, limit=1.0, variant=1, gamma=1.0, variance=1.0, cost=c.Cost("accuracy")),
        ),
        "Cost": (
            lambda: lambda **options: c.Online(d, layout, c.Rule("mira", cost=c.Cost(**options))),
            given(cost="f1", numbers=[1.0], entities=m.entities, augment=False),
        ),
        "Margins": (
            lambda: lambda **options: c.Svm(d, layout, c.Margins(**options)),
            given(c=1.0, slack="instance", rescale=True, tolerance=0.1, most=3, shuffle=True, seed=1),
        ),
        "Rounds": (
            lambda: lambda **options: c.Boosting(d, layout, c.Rounds(**options)),
            given(
                bound="tight",
                line_search=True,
                smoothing=0.1,
                max_step=1.0,
                candidates=1.0,
                features_per_round=2,
                overlap=True,
                seed=1,
            ),
        ),
        "Boosting.run": (lambda: c.Boosting(d, layout).run, given(max_rounds=3, seconds=0.01)),
        "Boosting.bounds": (lambda: c.Boosting(d, layout, c.Rounds("exact")).bounds, given(bound="tight")),
    }


def kernels(m: Made) -> Targets:
    """Return kernel learners and models."""
    d, bare, base, c = m.dataset, m.bare, m.base, _core
    betas = np.ones(len(c.KernelPerceptron(d, bare, m.kernel).weights(False)) - len(bare))

    def scorer() -> Any:
        return c.KernelScorer.of_training(base, m.kernel, d, betas)

    return {
        "Kernel": (
            lambda: lambda **options: c.KernelPerceptron(d, bare, c.Kernel(**options)),
            given(kernel="poly", degree=2, coef=1.0, gamma=1.0, form="auto", cache_bytes=1 << 10),
        ),
        "KernelPerceptron": (
            lambda: c.KernelPerceptron,
            given(
                dataset=d,
                layout=bare,
                kernel=m.kernel,
                epochs=c.Epochs(seed=1),
                budget=2,
                limits=m.limits,
                sample_weight=np.ones(3, f32),
            ),
        ),
        "KernelPerceptron.weights": (
            lambda: c.KernelPerceptron(d, bare, m.kernel).weights,
            given(averaged=True),
        ),
        "KernelPerceptron.epoch": (
            lambda: c.KernelPerceptron(d, bare, m.kernel).epoch,
            given(order=np.array([0, 1], u32)),
        ),
        "KernelPerceptron.restore": resumed(lambda: c.KernelPerceptron(d, bare, m.kernel)),
        "KernelSvm.restore": resumed(lambda: c.KernelSvm(d, bare, m.kernel)),
        "KernelSvm": (
            lambda: c.KernelSvm,
            given(
                dataset=d,
                layout=bare,
                kernel=m.kernel,
                margins=c.Margins(slack="sequence", most=3),
                limits=m.limits,
                sample_weight=np.ones(3),
                n_jobs=1,
            ),
        ),
        "KernelScorer": (
            lambda: c.KernelScorer,
            given(base=base, kernel=m.kernel, arrays=scorer().arrays()),
        ),
        "KernelScorer.of_training": (
            lambda: c.KernelScorer.of_training,
            given(base=base, kernel=m.kernel, dataset=d, beta=betas),
        ),
        "KernelScorer.node_scores": (lambda: scorer().node_scores, given(dataset=d, n_jobs=1)),
        "KernelScorer.viterbi": (
            lambda: scorer().viterbi,
            given(dataset=d, allowed=m.allowed, n_jobs=1),
        ),
        "KernelScorer.kbest": (
            lambda: scorer().kbest,
            given(dataset=d, k=2, allowed=m.allowed, n_jobs=1),
        ),
    }

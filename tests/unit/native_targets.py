"""Every callable of `_core` with arguments that are right."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from tagwise import _core
from tests.foreign.test_model_files import lcrf
from tests.laws import told

#: A model file, and where to write one.
FILE, OUT = (*sys.argv[2:], "", "")[:2]
f32, f64, u16, u32, u64 = np.float32, np.float64, np.uint16, np.uint32, np.uint64


#: How each is made, and its arguments.
Targets = dict[str, tuple[Callable[[], Callable[..., Any]], dict[str, Any]]]


class Made:
    """Objects that fit each other."""

    def __init__(self) -> None:
        self.template = _core.Template("word[-1..1]", ["word"])
        self.vocabulary = _core.Vocabulary()
        sentences = [[["a", "b", "c"]], [["a"]], [["b", "c"]]]
        self.dataset = _core.encode_tokens(self.template, self.vocabulary, sentences)
        self.gold = np.array([0, 1, 2, 0, 1, 2], u16)
        self.dataset = self.dataset.with_gold(self.gold)
        self.layout = _core.Layout.build(self.dataset, len(self.vocabulary), 3)
        none = {"node_ptr": np.zeros(len(self.vocabulary) + 1, u64), "node_label": np.zeros(0, u16)}
        self.bare = _core.Layout.from_arrays(len(self.vocabulary), 3, self.layout.arrays() | none)
        self.base = _core.Scorer(self.bare, np.zeros(len(self.bare), f32))
        self.weights = np.linspace(-1, 1, len(self.layout)).astype(f32)
        self.scorer = _core.Scorer(self.layout, self.weights)
        self.terms = _core.Terms(3, 2, 1, tuples=True)
        self.history_scorer = _core.HistoryScorer(self.terms, np.zeros(len(self.terms), f32))
        self.order = _core.Order(self.dataset, self.layout, 2)
        self.entities = (np.array([0, 1, 65535], u16), np.zeros((4, 3), np.uint8))
        self.once = (np.array([0, 2**32 - 1, 2**32 - 1], u32), np.ones((4, 3), bool))
        self.allowed = (np.ones((1, 3), bool), np.zeros(6, u32))
        self.kernel = _core.Kernel("poly", 2, 1.0, 1.0)
        self.limits = _core.Limits(np.zeros(0, u32), self.allowed)
        self.w = np.zeros(len(self.layout))
        self.w_order = np.zeros(len(self.layout) + len(self.order))


def given(**arguments: Any) -> dict[str, Any]:
    """Arguments by name."""
    return arguments


def pushed(history: _core.History) -> _core.History:
    """A history of one pair."""
    history.push(np.zeros(4), np.ones(4), np.zeros(4), np.ones(4))
    return history


def resumed(made: Callable[[], Any]) -> tuple[Callable[[], Any], dict[str, Any]]:
    """A learner that goes on from a state after an epoch, whose arrays and numbers are the arguments."""
    first = made()
    first.run(2, 0.01) if isinstance(first, _core.Boosting) else first.epoch()

    def restored(**state: Any) -> Any:
        learner = made()
        learner.restore(state)
        return learner

    return lambda: restored, dict(first.state())


def flat(made: Callable[..., Any]) -> Callable[..., Any]:
    """A learner from one flat list of options, its dataset and layout among them."""
    names = ("layout", "terms", "kind")

    def call(dataset: Any, **options: Any) -> Any:
        first = [options.pop(name) for name in names if name in options]
        return made(dataset, *first, **options)

    return call


def limited(m: Made, learner: str) -> Callable[..., Any]:
    """A learner under limits."""
    rule = (_core.Rule("mira"),) if learner == "Online" else ()
    make = getattr(_core, learner)
    return lambda **told: make(m.dataset, m.layout, *rule, limits=_core.Limits(**told))


def documents(m: Made) -> _core.HistoryScorer:
    """A scorer with features of documents."""
    terms = _core.Terms(3, 1, 2, document=True)
    return _core.HistoryScorer(terms, np.zeros(len(terms), f32))


def decoders(m: Made) -> Targets:
    """Scores to labels."""
    d, c = m.dataset, _core
    shapes = {"node": (2, 4, 3), "edge": (3, 3), "start": (3,), "end": (3,)}
    scores, gradient = ({name: np.zeros(shape, f32) for name, shape in shapes.items()} for _ in range(2))
    lengths = np.array([4, 2], np.int32)
    chains = given(**scores, lengths=lengths, tags=np.zeros((2, 4), np.int64))
    return {
        "force": (lambda: c.force, given(ways="")),
        "taken": (lambda: c.taken, given()),
        "Chains": (lambda: c.Chains, chains),
        "Chains.values": (lambda: c.Chains(**chains).values, given(n_jobs=2)),
        "Chains.gradient": (
            lambda: c.Chains(**chains).gradient,
            given(weights=np.ones(2), **gradient, n_jobs=2),
        ),
        "Chains.best": (lambda: c.Chains(**chains).best, given(paths=np.zeros((2, 4), np.int64), n_jobs=2)),
        "row_lists": (lambda: c.row_lists, given(rows=np.zeros((2, 4), np.int64), lengths=lengths)),
        "chain_marginals": (lambda: c.chain_marginals, given(node=np.zeros((2, 3)), edge=np.zeros((3, 3)))),
        "chain_log_partition": (
            lambda: c.chain_log_partition,
            given(node=np.zeros((2, 3)), edge=np.zeros((3, 3))),
        ),
        "chain_viterbi": (lambda: c.chain_viterbi, given(node=np.zeros((2, 3)), edge=np.zeros((2, 3, 3)))),
        "chain_kbest": (lambda: c.chain_kbest, given(node=np.zeros((2, 3)), edge=np.zeros((3, 3)), k=3)),
        "once_kbest": (
            lambda: c.once_kbest,
            given(scorer=m.scorer, dataset=d, once=m.once, k=2, allowed=m.allowed, n_jobs=1),
        ),
        "once_marginals": (
            lambda: c.once_marginals,
            given(scorer=m.scorer, dataset=d, once=m.once, allowed=m.allowed, n_jobs=1),
        ),
        "feasible": (
            lambda: c.feasible,
            given(offsets=d.offsets, sets=m.allowed[0], of=m.allowed[1], pairs=np.ones((3, 3), bool)),
        ),
        "order_marginals": (
            lambda: c.order_marginals,
            given(scorer=m.scorer, history=m.history_scorer, dataset=d, allowed=m.allowed, n_jobs=1),
        ),
        "chunk_probabilities": (
            lambda: c.chunk_probabilities,
            given(
                scorer=m.scorer,
                dataset=d,
                chunks=(np.array([0], u32), np.array([0], u32), np.array([1], u32), np.array([0], u16)),
                entities=m.entities,
                allowed=m.allowed,
                once=m.once,
                n_jobs=1,
            ),
        ),
        "Scorer": (
            lambda: c.Scorer,
            given(layout=m.layout, weights=m.weights, forbidden=np.array([1], u32), local=False),
        ),
        "Scorer.viterbi": (lambda: m.scorer.viterbi, given(dataset=d, allowed=m.allowed, n_jobs=1)),
        "Scorer.kbest": (lambda: m.scorer.kbest, given(dataset=d, k=2, allowed=m.allowed, n_jobs=1)),
        "Scorer.marginals": (lambda: m.scorer.marginals, given(dataset=d, allowed=m.allowed, n_jobs=1)),
        "Terms": (
            lambda: c.Terms,
            given(n_labels=3, cell=2, far=2, endless=False, document=False, tuples=True),
        ),
        "HistoryScorer": (lambda: c.HistoryScorer, given(terms=m.terms, weights=np.zeros(len(m.terms), f32))),
        "HistoryScorer.kbest": (
            lambda: m.history_scorer.kbest,
            given(
                scorer=m.scorer, dataset=d, k=2, beam=3, words=None, before=None, allowed=m.allowed, n_jobs=1
            ),
        ),
        "HistoryScorer.kbest(words)": (
            lambda: documents(m).kbest,
            given(
                scorer=m.scorer,
                dataset=d,
                k=2,
                words=(np.arange(6, dtype=u32), np.array([0, 1], u32)),
                before=(np.array([0], u32), np.ones((1, 3), f32)),
                n_jobs=1,
            ),
        ),
    }


def datasets(m: Made) -> Targets:
    """Vocabularies, datasets, templates, layouts, files."""
    d, layout, vocab, c = m.dataset, m.layout, m.vocabulary, _core
    keys = dict(zip(("keys", "table", "text", "text_end"), vocab.arrays()))
    return {
        "encode_attributes": (
            lambda: c.encode_attributes,
            given(vocab=c.Vocabulary(), sentences=[[["a"], {"b": 1.0}]], edge=[[["e"], []]], n_jobs=2),
        ),
        "encode_tokens": (
            lambda: c.encode_tokens,
            given(template=m.template, vocab=c.Vocabulary(), sentences=[[["a", "b"]]], n_jobs=2),
        ),
        "encode_words": (
            lambda: c.encode_words,
            given(
                template=m.template,
                vocab=c.Vocabulary(),
                sentences=[[["a", "b"]]],
                words=c.WordSets([b"a"], [1]),
                column=0,
                n_jobs=2,
            ),
        ),
        "tokenize": (
            lambda: c.tokenize,
            given(
                texts=["It's 5."],
                abbreviations=["mr"],
                contractions=True,
                hyphens=True,
                sentences=True,
                n_jobs=2,
            ),
        ),
        "prune": (lambda: c.prune, given(vocab=m.vocabulary, dataset=d, min_count=1)),
        "name_paths": (lambda: c.name_paths, given(path=m.gold, offsets=d.offsets, labels=["x", "y", "z"])),
        "write_model": (
            lambda: c.write_model,
            given(
                stream=io.BytesIO(), header="{}", vocabulary=vocab, scorer=m.scorer, extra={"x": np.ones(2)}
            ),
        ),
        "WordSets": (lambda: c.WordSets, given(words=[b"a", b"b"], of=[1, 2])),
        "WordSets.of": (lambda: c.WordSets([b"a"], [1]).of, given(sentences=[["a", "b"], []])),
        "Vocabulary": (lambda: c.Vocabulary, given()),
        "Vocabulary.kept": (lambda: vocab.kept, given(keep=np.ones(len(vocab), bool))),
        "Vocabulary.get": (lambda: vocab.get, given(text="a")),
        "Vocabulary.text": (lambda: vocab.text, given(id=0)),
        "Vocabulary.from_arrays": (
            lambda: c.Vocabulary.from_arrays,
            given(**keys, checks=np.ones(len(vocab), u64), counts=np.ones(len(vocab), u32)),
        ),
        "Dataset.cut": (lambda: d.cut, given(most=2)),
        "Dataset.steps": (lambda: d.steps, given(first=3, labels=3, start_end=True)),
        "Dataset.with_vectors": (
            lambda: d.with_vectors,
            given(first=2, values=np.ones((6, 2), f32), scale=0.5),
        ),
        "Dataset.with_gold": (lambda: d.with_gold, given(gold=m.gold)),
        "Template": (lambda: c.Template, given(text="word[-1..1]", columns=["word"], lists=[])),
        "Template.learn": (lambda: m.template.learn, given(sentences=[[["a"]]])),
        "Template.render": (lambda: m.template.render, given(columns=[["a", "b"]])),
        "Layout.build": (
            lambda: c.Layout.build,
            given(dataset=d, n_attributes=len(vocab), n_labels=3, all_pairs=True, start_end=True),
        ),
        "Layout.united": (lambda: m.layout.united, given(other=m.bare)),
        "Layout.narrowed": (lambda: m.layout.narrowed, given(dataset=d)),
        "Layout.from_arrays": (
            lambda: c.Layout.from_arrays,
            given(n_attributes=len(vocab), n_labels=3, arrays=layout.arrays()),
        ),
        "ModelFile": (lambda: c.ModelFile, given(path=FILE, mmap=True)),
        "ModelFile.array": (lambda: c.ModelFile(FILE).array, given(name="weights")),
        "ModelFile.scorer": (
            lambda: c.ModelFile(FILE).scorer,
            given(n_attributes=len(vocab), n_labels=3, forbidden=np.array([1], u32), local=False),
        ),
    }


def batch(m: Made) -> Targets:
    """Vectors, objectives, stochastic steps, orders."""
    d, layout, w, c = m.dataset, m.layout, m.w, _core
    return {
        "dot": (lambda: c.dot, given(a=w, b=w, n_jobs=1)),
        "add_scaled": (lambda: c.add_scaled, given(a=w, step=1.0, b=w + 1, out=np.zeros_like(w), n_jobs=1)),
        "add_ridge": (lambda: c.add_ridge, given(w=w, c=1.0, gradient=np.zeros_like(w), n_jobs=1)),
        "Stochastic": (
            lambda: flat(told.stochastic),
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
            lambda: flat(told.dual),
            given(
                dataset=d,
                layout=layout,
                l2=1.0,
                sample_weight=np.ones(3),
                forbidden=np.zeros(0, u32),
                allowed=m.allowed,
            ),
        ),
        "Dual.epoch": (lambda: c.Dual(d, layout, 1.0).epoch, given(seed=1, n_jobs=1)),
        "Dual.primal": (lambda: c.Dual(d, layout, 1.0).primal, given(n_jobs=1)),
        "Dual.certificate": (lambda: c.Dual(d, layout, 1.0).certificate, given(n_jobs=1)),
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
        "Paged": (lambda: c.Paged, given(folder="/tmp")),
        "Objective": (
            lambda: flat(told.objective),
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
            lambda: flat(told.objective),
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
        "Limits": (
            lambda: limited(m, "Objective"),
            given(forbidden=np.zeros(0, u32), allowed=m.allowed, once=m.once),
        ),
        "Limits(Online)": (
            lambda: limited(m, "Online"),
            given(forbidden=np.zeros(0, u32), allowed=m.allowed, once=m.once),
        ),
        "History": (lambda: c.History, given(memory=3, n_jobs=1, scale=np.ones(len(layout), f32))),
        "History.push": (
            lambda: pushed(c.History(3)).push,
            given(w0=np.zeros(4), w1=np.ones(4), g0=np.zeros(4), g1=np.ones(4)),
        ),
        "History.direction": (
            lambda: pushed(c.History(3)).direction,
            given(g=np.ones(4), direction=np.zeros(4)),
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
    }


def learners(m: Made) -> Targets:
    """Online learners, the SVM, boosting."""
    d, layout, w, c = m.dataset, m.layout, m.w, _core
    return {
        "small_program": (lambda: c.small_program, given(gram=np.eye(2), b=np.ones(2), limit=1.0)),
        "sequence_cost": (
            lambda: c.sequence_cost,
            given(cost=c.Cost("f1", [1.0], m.entities), gold=m.gold, guess=m.gold),
        ),
        "Online": (
            lambda: flat(told.online),
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
            lambda: flat(told.svm),
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
            lambda: flat(told.further_back),
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
            lambda: flat(told.boosting),
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
            lambda: lambda **told: c.Online(d, layout, c.Rule("mira", k=3), epochs=c.Epochs(**told)),
            given(average=True, batch=False, shuffle=True, seed=1, shards=2),
        ),
        "Rule": (
            lambda: lambda **told: c.Online(d, layout, c.Rule(**told)),
            given(kind="mira", k=3, limit=1.0, variant=1, gamma=1.0, variance=1.0, cost=c.Cost("accuracy")),
        ),
        "Cost": (
            lambda: lambda **told: c.Online(d, layout, c.Rule("mira", cost=c.Cost(**told))),
            given(cost="f1", numbers=[1.0], entities=m.entities, augment=False),
        ),
        "Margins": (
            lambda: lambda **told: c.Svm(d, layout, c.Margins(**told)),
            given(c=1.0, slack="instance", rescale=True, tolerance=0.1, most=3, shuffle=True, seed=1),
        ),
        "Rounds": (
            lambda: lambda **told: c.Boosting(d, layout, c.Rounds(**told)),
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
        "Boosting.run": (lambda: c.Boosting(d, layout).run, given(most=3, seconds=0.01)),
        "Boosting.bounds": (lambda: c.Boosting(d, layout, c.Rounds("exact")).bounds, given(bound="tight")),
    }


def kernels(m: Made) -> Targets:
    """Kernel learners and models."""
    d, bare, base, c = m.dataset, m.bare, m.base, _core
    betas = np.ones(len(c.KernelPerceptron(d, bare, m.kernel).weights(False)) - len(bare))

    def scorer() -> Any:
        return c.KernelScorer.of_training(base, m.kernel, d, betas)

    return {
        "Kernel": (
            lambda: lambda **told: c.KernelPerceptron(d, bare, c.Kernel(**told)),
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


def crfsuite(m: Made) -> Targets:
    """What the drop-in modules stand on: instances, steps, models and sequences of CRFsuite."""
    c, rows, pairs = _core, [["a", "b"], ["b"]], [[("a", 1.0), ("b", 0.5)], [("b", 2.0)]]
    data = c.CrfsuiteInstances()
    for labels in (["X", "Y"], ["Y", "Y"]):
        data.append(rows, labels, 0)
    node, edge, _ = data.features(-1, 0.0, True, True)
    model, path = lcrf(), f"{FILE}.crfsuite"
    if Path(FILE).is_file():  # named on the command line of native_calls; pytest has arguments of its own
        Path(path).write_bytes(model)
    sequence = c.CrfsuiteSequence.from_pairs(pairs)

    def steps() -> Callable[..., Any]:
        return c.CrfsuiteOnline(data, -1, node, edge, "ap", []).steps

    return {
        "CrfsuiteSequence": (lambda: c.CrfsuiteSequence.read, given(sequence=rows)),
        "CrfsuiteSequence.read": (lambda: c.CrfsuiteSequence.read, given(sequence=rows)),
        "CrfsuiteSequence.from_pairs": (lambda: c.CrfsuiteSequence.from_pairs, given(sequence=pairs)),
        "CrfsuiteModel": (lambda: c.CrfsuiteModel, given(data=model)),
        "CrfsuiteModel.open": (lambda: c.CrfsuiteModel.open, given(path=path)),
        "CrfsuiteModel.tag": (lambda: c.CrfsuiteModel(model).tag, given(sequence=sequence)),
        "CrfsuiteModel.tag_many": (
            lambda: c.CrfsuiteModel(model).tag_many,
            given(sequences=[rows], other=lambda _: pairs, n_jobs=1),
        ),
        "CrfsuiteModel.whole": (lambda: c.CrfsuiteModel(model).whole, given(told=bytes.decode)),
        "crfsuite_written": (
            lambda: c.crfsuite_written,
            given(
                labels=["X", "Y"],
                attributes=["a", "b"],
                node=(node, np.ones(len(node))),
                edge=(edge, np.ones(len(edge))),
                raw=str.encode,
            ),
        ),
        "CrfsuiteModel.marginals": (lambda: c.CrfsuiteModel(model).marginals, given(sequence=sequence)),
        "CrfsuiteInstances": (lambda: c.CrfsuiteInstances, given()),
        "CrfsuiteInstances.append": (
            lambda: c.CrfsuiteInstances().append,
            given(sequence=rows, labels=["X", "Y"], group=0),
        ),
        "CrfsuiteInstances.append_pairs": (
            lambda: c.CrfsuiteInstances().append_pairs,
            given(sequence=pairs, labels=["X", "Y"], group=0),
        ),
        "CrfsuiteInstances.lengths": (lambda: data.lengths, given(holdout=-1, inside=False)),
        "CrfsuiteInstances.features": (
            lambda: data.features,
            given(holdout=-1, least=0.0, states=True, transitions=True),
        ),
        "CrfsuiteInstances.dataset": (lambda: data.dataset, given(holdout=-1, inside=False)),
        "CrfsuiteOnline": (
            lambda: c.CrfsuiteOnline,
            given(data=data, holdout=-1, node=node, edge=edge, rule="arow", numbers=[1.0, 1.0]),
        ),
        "CrfsuiteOnline.steps": (steps, given(order=np.array([0, 1, 0], np.int64))),
    }


def targets(m: Made) -> Targets:
    """All of them."""
    return datasets(m) | batch(m) | learners(m) | kernels(m) | decoders(m) | crfsuite(m)

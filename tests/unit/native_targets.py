"""Every callable of `_core` with valid arguments."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from tagwise import _core
from tests.foreign.test_model_files import lcrf
from tests.laws import constructors

from .native_arguments import Made, Table, Targets, f32, u16, u32, u64

#: A model file, and a path to write one to.
FILE, OUT = (*(sys.argv[2:] if Path(sys.argv[0]).name == "native_calls.py" else ()), "", "")[:2]

ARRAYS = f"{FILE}.arrays"


def opened(path: str) -> int:
    """Return the descriptor of an open file, or -1 if the file cannot be opened."""
    return os.open(path, os.O_RDONLY) if Path(path).is_file() else -1


def documents() -> _core.HistoryScorer:
    """Return a scorer with document features."""
    terms = _core.LookbackSpec(3, 1, 2, document=True)
    return _core.HistoryScorer(terms, np.zeros(len(terms), f32))


def counted() -> _core.BigramCounts:
    """Return the counts of some sentences."""
    counts = _core.BigramCounts()
    counts.add([["a", "b", "c"], ["a", "c"], []])
    return counts


def curvature() -> _core.CurvaturePairs:
    """Return a history with one pair."""
    pairs = _core.CurvaturePairs(3)
    pairs.push(np.zeros(4), np.ones(4), np.zeros(4), np.ones(4))
    return pairs


def restore(t: Table, name: str, made: Callable[[], Any]) -> None:
    """Add `restore` of a learner. The arguments are the arrays and numbers of its state after one epoch."""
    first = made()
    first.run(2, 0.01) if isinstance(first, _core.Boosting) else first.epoch()

    def restored(**state: Any) -> Any:
        learner = made()
        learner.restore(state)
        return learner

    t.call(f"{name}.restore", "", lambda: restored, **first.state())


def flat(made: Callable[..., Any]) -> Callable[[], Callable[..., Any]]:
    """Return a learner that takes one flat list of options, including its dataset and layout."""

    def call(dataset: Any, **options: Any) -> Any:
        first = [options.pop(name) for name in ("layout", "terms", "kind") if name in options]
        return made(dataset, *first, **options)

    return lambda: call


def word_classes(t: Table) -> None:
    """Callables that learn and look up word classes."""
    c, given = _core, t.given
    tables = {"paths": ["0", "1"], "members": [["a"], ["b"]], "shapes": [[], ["Aa"]]}
    t.call("BigramCounts", ignore_case=True)
    t.methods("BigramCounts", counted, add=given(sentences=[["a", "b"], []]), n_frequent=given(min_count=1))
    t.call("ClassExchange", counts=counted(), n_classes=2, min_count=1)
    t.methods(
        "ClassExchange",
        lambda: c.ClassExchange(counted(), 2, 1),
        sweep=given("n_jobs"),
        gain=given(word=1, to=0),
        tree=given("n_jobs"),
    )
    t.call("ClassTable", **tables, ignore_case=False)
    t.methods("ClassTable", lambda: c.ClassTable(**tables, ignore_case=False), get=given(word="a"))
    t.call("normalized_words", words=["a1"], ignore_case=True)


def decoders(t: Table, m: Made) -> None:
    """Callables that decode scores."""
    c, d, given = _core, m.dataset, t.given
    shapes = {"node": (2, 4, 3), "edge": (3, 3), "start": (3,), "end": (3,)}
    scores, gradient = ({name: np.zeros(shape, f32) for name, shape in shapes.items()} for _ in range(2))
    lengths, paths = np.array([4, 2], np.int32), np.zeros((2, 4), np.int64)
    chains = {**scores, "lengths": lengths, "tags": paths}
    one = {"node": np.zeros((2, 3)), "edge": np.zeros((3, 3))}
    t.call("force", paths="")
    t.call("path_counts")
    t.call("Stop")
    t.methods("Stop", c.Stop, request=given())
    t.call("Stop.check")
    t.call("TokenRegex", pattern="a+", ignore_case=True)
    t.methods("TokenRegex", lambda: c.TokenRegex("a+"), column=given(tokens=["a", "b"]))
    t.call("WapitiRegex", source=b"a?b*")
    t.methods("WapitiRegex", lambda: c.WapitiRegex(b"a?b*"), find=given(text=b"aab"))
    t.call("claim", what="this", bytes=1, remedy="stop")
    t.call("Chains", **chains)
    t.methods(
        "Chains",
        lambda: c.Chains(**chains),
        values=given(n_jobs=2),
        gradient=given(weights=np.ones(2), **gradient, n_jobs=2),
        best=given(paths=paths.copy(), n_jobs=2),
    )
    t.call("row_lists", rows=paths, lengths=lengths)
    t.call("chain_marginals", **one)
    t.call("chain_log_partition", **one)
    t.call("chain_viterbi", node=one["node"], edge=np.zeros((2, 3, 3)))
    t.call("chain_kbest", **one, k=3)
    t.call("once_kbest", "scorer dataset once allowed n_jobs", k=2)
    t.call("once_marginals", "scorer dataset once allowed n_jobs")
    t.call("feasible", offsets=d.offsets, sets=m.allowed[0], of=m.allowed[1], pairs=np.ones((3, 3), bool))
    t.call("order_marginals", "scorer dataset allowed n_jobs", history=m.history_scorer)
    chunks = (np.array([0], u32), np.array([0], u32), np.array([1], u32), np.array([0], u16))
    t.call("chunk_probabilities", "scorer dataset entities allowed once n_jobs", chunks=chunks)
    t.call("Scorer", "layout", weights=m.weights, forbidden=np.array([1], u32), local=False)
    t.methods(
        "Scorer",
        lambda: m.scorer,
        viterbi=given("dataset allowed n_jobs"),
        kbest=given("dataset allowed n_jobs", k=2),
        marginals=given("dataset allowed n_jobs"),
    )
    t.call("LookbackSpec", n_labels=3, cell=2, far=2, endless=False, document=False, tuples=True)
    t.call("HistoryScorer", "terms", weights=np.zeros(len(m.terms), f32))
    search = given("scorer dataset allowed n_jobs", k=2, beam=3, words=None, before=None)
    t.methods("HistoryScorer", lambda: m.history_scorer, kbest=search)
    words = (np.arange(6, dtype=u32), np.array([0, 1], u32))
    before = (np.array([0], u32), np.ones((1, 3), f32))
    late = given("scorer dataset n_jobs", k=2, words=words, before=before)
    t.call("HistoryScorer.kbest(words)", "", lambda: documents().kbest, **late)


def datasets(t: Table, m: Made) -> None:
    """Callables of vocabularies, datasets, templates, layouts and files."""
    c, d, layout, vocab, given = _core, m.dataset, m.layout, m.vocabulary, t.given
    n, text = len(vocab), {"template": m.template, "sentences": [["a", "b"]]}
    t.call("encode_attributes", "vocab", sentences=[[["a"], {"b": 1.0}]], edge=[[["e"], []]], n_jobs=2)
    texts = text | {"sentences": [[["a", "b"]]], "n_jobs": 2, "bare": False}
    t.call("encode_tokens", "vocab", **texts)
    t.call("encode_words", "vocab", **texts, words=c.WordSets([b"a"], [1]), column=0)
    switches = {"contractions": True, "hyphens": True, "sentences": True}
    t.call("tokenize", texts=["It's 5."], abbreviations=["mr"], **switches, n_jobs=2)
    t.call("prune", "dataset", vocab=vocab, min_count=1)
    t.call("count_texts", sentences=[["x", "y"], ("z",)])
    t.call("text_ids", sentences=[["x", "y"], ("z",)], texts=["x", "y", "z"])
    t.call("name_paths", path=m.gold, offsets=d.offsets, labels=["x", "y", "z"])
    t.call(
        "write_model", "scorer", stream=io.BytesIO(), header="{}", vocabulary=vocab, extra={"x": np.ones(2)}
    )
    t.call("WordSets", words=[b"a", b"b"], of=[1, 2])
    t.methods("WordSets", lambda: c.WordSets([b"a"], [1]), of=given(sentences=[["a", "b"], []]))
    t.call("Vocabulary")
    t.methods(
        "Vocabulary", lambda: vocab, kept=given(keep=np.ones(n, bool)), get=given(text="a"), text=given(id=0)
    )
    keys = dict(zip(("keys", "table", "text", "text_end"), vocab.arrays()))
    t.call("Vocabulary.from_arrays", **keys, checks=np.ones(n, u64), counts=np.ones(n, u32))
    t.methods(
        "Dataset",
        lambda: d,
        cut=given(most=2),
        steps=given(first=3, labels=3, start_end=True),
        with_vectors=given(first=2, values=np.ones((6, 2), f32), scale=0.5),
        with_gold=given(gold=m.gold),
    )
    t.call("Dataset.joined", parts=[d, d], folder="/tmp")
    t.call("Dataset.from_arrays", offsets=d.offsets, gold=d.gold, node=d.node(), edge=None)
    rows = dict(zip(("ptr", "ids", "values"), d.node()))
    t.call(
        "Dataset.from_arrays(rows)",
        "",
        lambda: lambda ptr, ids, values: c.Dataset.from_arrays(d.offsets, d.gold, (ptr, ids, values)),
        **rows,
    )
    t.call("Template", text="word[-1..1]", columns=["word"], lists=[])
    bounds = {"tokens": np.array([0, 1, 3], np.int32), "sentences": np.array([0, 2], np.int32)}
    t.call("Texts", data=np.frombuffer(b"abc", np.uint8), **bounds)
    t.methods(
        "Template",
        lambda: m.template,
        learn=given(sentences=[[["a"]]]),
        render=given(columns=[["a", "b"]]),
    )
    t.call("Layout.build", "dataset", n_attributes=n, n_labels=3, all_pairs=True, start_end=True)
    t.methods("Layout", lambda: layout, united=given(other=m.bare), narrowed=given("dataset"))
    t.call("Layout.from_arrays", n_attributes=n, n_labels=3, arrays=layout.arrays())
    t.call("write_arrays", stream=io.BytesIO(), header="{}", arrays={"x": np.ones(2)})
    t.call("ArrayFile", file=opened(ARRAYS), name="a")
    t.methods("ArrayFile", lambda: c.ArrayFile(opened(ARRAYS), "a"), array=given(name="x"))
    t.call("ModelFile", file=opened(FILE), name="m", mmap=True)
    t.methods(
        "ModelFile",
        lambda: c.ModelFile(opened(FILE), "m"),
        array=given(name="weights"),
        scorer=given(n_attributes=n, n_labels=3, forbidden=np.array([1], u32), local=False),
    )


def batch(t: Table, m: Made) -> None:
    """Vectors, objectives, stochastic steps and orders."""
    c, d, layout, w, given = _core, m.dataset, m.layout, m.w, t.given
    limits = "dataset layout sample_weight forbidden allowed"
    t.call("dot", "n_jobs", a=w, b=w)
    t.call("add_scaled", "n_jobs", a=w, step=1.0, b=w + 1, out=np.zeros_like(w))
    t.call("add_ridge", "w gradient n_jobs", c=1.0)
    t.call("Stochastic", f"{limits} loss", flat(constructors.stochastic))
    t.methods(
        "Stochastic",
        lambda: c.Stochastic(d, layout),
        set=given("w"),
        order=given("seed", epoch=1),
        run=given(order=np.array([0], u32), eta=0.1, l2=0.1, seen=0.0),
    )
    t.call("Dual", limits, flat(constructors.dual), l2=1.0, sweeps=2)
    state = dict(zip(("weights", "nodes", "pairs", "blocks", "epochs"), c.Dual(d, layout, 1.0).state()))
    t.methods(
        "Dual",
        lambda: c.Dual(d, layout, 1.0),
        epoch=given("seed n_jobs"),
        primal=given("n_jobs"),
        certificate=given("n_jobs"),
        set_weights=given(weights=w),
        terms=given("n_jobs"),
        loss=given("n_jobs"),
        restore=state,
    )
    t.call("dual_bounds", "w", l2=1.0, loss=1.0, divergence=0.5, slack=0.0, observed=w)
    t.call(
        "Objective", f"{limits} loss", flat(constructors.objective), partial=m.allowed, cost=None, once=None
    )
    t.call("Objective(cost)", "dataset layout", lambda: c.Objective, loss="exp", cost=np.ones((3, 3)))
    t.call("Objective(once)", "dataset layout once", flat(constructors.objective))
    point = given("w gradient n_jobs")
    objective = dict.fromkeys(("evaluate", "value", "precise_value"), point)
    t.methods("Objective", lambda: c.Objective(d, layout), **objective)
    t.methods("Objective", lambda: c.Objective(d, layout, loss="exp"), log_value=point)
    t.call("total_loss", "dataset layout w loss sample_weight n_jobs")
    t.options("Limits", lambda x: c.Objective(d, layout, limits=x), "forbidden allowed once")
    t["Limits(Online)"] = (
        lambda: lambda **options: c.Online(d, layout, c.Rule("mira"), limits=c.Limits(**options)),
        given("forbidden allowed once"),
    )
    t.call("CurvaturePairs", "n_jobs", memory=3, scale=np.ones(len(layout), f32))
    t.methods(
        "CurvaturePairs",
        curvature,
        push=given(w0=np.zeros(4), w1=np.ones(4), g0=np.zeros(4), g1=np.ones(4)),
        direction=given(g=np.ones(4), direction=np.zeros(4)),
        gradient_products=given(g=np.ones(4)),
        subtract_steps=given(w=np.ones(4), c=[0.5], out=np.zeros(4)),
    )
    t.call("Order", "dataset layout forbidden", order=2)
    t.methods("Order", lambda: m.order, dense=given(weights=np.zeros(len(m.order))))
    t.call("OrderObjective", "dataset sample_weight allowed", order=m.order)
    point = given("n_jobs", w=m.w_order, gradient=np.zeros_like(m.w_order))
    t.methods("OrderObjective", lambda: c.OrderObjective(m.order, d), value=point, precise_value=point)


def learners(t: Table, m: Made) -> None:
    """Online learners, the SVM and boosting."""
    c, d, layout, given, flags = _core, m.dataset, m.layout, t.given, ("average", "shuffle", "seed")
    single, numbers = np.ones(3, f32), {"limit": 1.0, "variant": 1, "gamma": 1.0, "variance": 1.0}
    t.call("small_program", gram=np.eye(2), b=np.ones(2), limit=1.0)
    t.call("sequence_cost", cost=c.Cost("f1", [1.0], m.entities), gold=m.gold, guess=m.gold)
    online = f"dataset layout entities forbidden allowed {' '.join(flags)}"
    own = {"kind": "mira", "batch": False, "sample_weight": single}
    f1 = {"cost": "f1", "numbers": [1.0], "augment": False}
    t.call("Online", f"{online} once", flat(constructors.online), **own, **numbers, **f1, k=3, shards=2)
    t.methods(
        "Online",
        lambda: c.Online(d, layout, c.Rule("mira", k=3)),
        part=given(begin=1, end=3),
        epoch=given(order=np.array([0, 2], u32)),
        weights=given(averaged=True),
        restore=given(state=c.Online(d, layout, c.Rule("mira")).state()),
    )
    far = {"words": None, "limit": 1.0, "cost": "accuracy", "numbers": [], "augment": True, "once": None}
    t.call("HistoryOnline", f"{online} terms", flat(constructors.history_online), **own, **far, k=2, shards=1)

    def history() -> _core.HistoryOnline:
        return c.HistoryOnline(d, layout, m.terms, c.Rule("mira"))

    t.methods("HistoryOnline", history, weights=given(averaged=True))
    restore(t, "HistoryOnline", history)
    margins = given("shuffle seed", c=1.0, slack="instance", rescale=True, tolerance=0.1, most=3)
    limits = given("dataset layout sample_weight forbidden allowed n_jobs")
    t.call("Svm", "", flat(constructors.svm), **limits, **margins)
    restore(t, "Svm", lambda: c.Svm(d, layout))
    rounds = given("seed", bound="tight", line_search=True, smoothing=0.1, max_step=1.0, candidates=1.0)
    rounds |= {"features_per_round": 2, "overlap": True}
    more = {"loss": "pointwise_exp", "over": "all", "start": m.w}
    t.call("Boosting", "dataset layout sample_weight n_jobs", flat(constructors.boosting), **rounds, **more)
    restore(t, "Boosting", lambda: c.Boosting(d, layout, c.Rounds("tight")))
    t.methods("Boosting", lambda: c.Boosting(d, layout), run=given(max_rounds=3, seconds=0.01))
    t.methods("Boosting", lambda: c.Boosting(d, layout, c.Rounds("exact")), bounds=given(bound="tight"))
    mira = c.Rule("mira", k=3)
    t.options("Epochs", lambda x: c.Online(d, layout, mira, epochs=x), " ".join(flags), batch=False, shards=2)
    t.options("Rule", lambda x: c.Online(d, layout, x), kind="mira", k=3, **numbers, cost=c.Cost("accuracy"))
    t.options("Cost", lambda x: c.Online(d, layout, c.Rule("mira", cost=x)), "entities", **f1)
    t.options("Margins", lambda x: c.Svm(d, layout, x), **margins)
    t.options("Rounds", lambda x: c.Boosting(d, layout, x), **rounds)


def kernels(t: Table, m: Made) -> None:
    """Kernel learners and models."""
    c, d, bare, base, given = _core, m.dataset, m.bare, m.base, t.given

    def perceptron() -> _core.KernelPerceptron:
        return c.KernelPerceptron(d, bare, m.kernel)

    def scorer() -> _core.KernelScorer:
        return c.KernelScorer.of_training(base, m.kernel, d, betas)

    betas = np.ones(len(perceptron().weights(False)) - len(bare))
    spec = {"degree": 2, "coef": 1.0, "gamma": 1.0, "form": "auto", "cache_bytes": 1 << 10}
    t.options("Kernel", lambda x: c.KernelPerceptron(d, bare, x), kernel="poly", **spec)
    common = given("dataset kernel", layout=bare, limits=m.limits)
    single = np.ones(3, f32)
    t.call("KernelPerceptron", **common, epochs=c.Epochs(seed=1), budget=2, sample_weight=single)
    t.methods(
        "KernelPerceptron",
        perceptron,
        weights=given(averaged=True),
        epoch=given(order=np.array([0, 1], u32)),
    )
    restore(t, "KernelPerceptron", perceptron)
    restore(t, "KernelSvm", lambda: c.KernelSvm(d, bare, m.kernel))
    t.call("KernelSvm", "sample_weight n_jobs", **common, margins=c.Margins(slack="sequence", most=3))
    t.call("KernelScorer", "kernel", base=base, arrays=scorer().arrays())
    t.call("KernelScorer.of_training", "kernel dataset", base=base, beta=betas)
    t.methods(
        "KernelScorer",
        scorer,
        node_scores=given("dataset n_jobs"),
        viterbi=given("dataset allowed n_jobs"),
        kbest=given("dataset allowed n_jobs", k=2),
    )


def crfsuite(t: Table) -> None:
    """The basis of the drop-in modules: instances, steps, models and sequences of CRFsuite."""
    c, given = _core, t.given
    rows, pairs = [["a", "b"], ["b"]], [[("a", 1.0), ("b", 0.5)], [("b", 2.0)]]
    data = c.CrfsuiteInstances()
    for labels in (["X", "Y"], ["Y", "Y"]):
        data.append(rows, labels, 0)
    node, edge, _ = data.features(-1, 0.0, True, True)
    model, path = lcrf(), f"{FILE}.crfsuite"
    if Path(FILE).is_file():
        Path(path).write_bytes(model)
    t.call("CrfsuiteSequence", "", lambda: c.CrfsuiteSequence.read, sequence=rows)
    t.call("CrfsuiteSequence.read", sequence=rows)
    t.call("CrfsuiteSequence.from_pairs", sequence=pairs)
    t.call("CrfsuiteModel", data=model)
    t.call("CrfsuiteModel.open", file=opened(path))
    sequence = given(sequence=c.CrfsuiteSequence.from_pairs(pairs))
    t.methods(
        "CrfsuiteModel",
        lambda: c.CrfsuiteModel(model),
        tag=sequence,
        tag_many=given("n_jobs", sequences=[rows], convert=lambda _: pairs),
        whole=given(decode=bytes.decode),
        marginals=sequence,
    )
    weights = {"node": (node, np.ones(len(node))), "edge": (edge, np.ones(len(edge)))}
    t.call("crfsuite_model_bytes", labels=["X", "Y"], attributes=["a", "b"], **weights, raw=str.encode)
    t.call("CrfsuiteInstances")
    t.methods(
        "CrfsuiteInstances",
        c.CrfsuiteInstances,
        append=given(sequence=rows, labels=["X", "Y"], group=0),
        append_pairs=given(sequence=pairs, labels=["X", "Y"], group=0),
    )
    t.methods(
        "CrfsuiteInstances",
        lambda: data,
        lengths=given(holdout=-1, inside=False),
        features=given(holdout=-1, least=0.0, states=True, transitions=True),
        dataset=given(holdout=-1, inside=False),
    )
    t.call("CrfsuiteOnline", data=data, holdout=-1, node=node, edge=edge, rule="arow", numbers=[1.0, 1.0])
    averaged = (data, -1, node, edge, "ap", [])
    t.methods(
        "CrfsuiteOnline",
        lambda: c.CrfsuiteOnline(*averaged),
        steps=given(order=np.array([0, 1, 0], np.int64)),
    )


def targets(m: Made) -> Targets:
    """Return all targets."""
    table = Table(m)
    for add in (datasets, batch, learners, kernels, decoders):
        add(table, m)
    word_classes(table)
    crfsuite(table)
    return table

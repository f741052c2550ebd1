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

from .native_arguments import Made, Targets, f32, given, u16, u32, u64
from .native_learners import batch, kernels, learners

#: A model file, and a path to write one to.
FILE, OUT = (*(sys.argv[2:] if Path(sys.argv[0]).name == "native_calls.py" else ()), "", "")[:2]

ARRAYS = f"{FILE}.arrays"


def opened(path: str) -> int:
    """Return the descriptor of an open file, or -1 if the file cannot be opened."""
    return os.open(path, os.O_RDONLY) if Path(path).is_file() else -1


def documents(m: Made) -> _core.HistoryScorer:
    """Return a scorer with document features."""
    terms = _core.LookbackSpec(3, 1, 2, document=True)
    return _core.HistoryScorer(terms, np.zeros(len(terms), f32))


def counted() -> _core.BigramCounts:
    """Return the counts of some sentences."""
    counts = _core.BigramCounts()
    counts.add([["a", "b", "c"], ["a", "c"], []])
    return counts


def word_classes(m: Made) -> Targets:
    """Return callables that learn and look up word classes."""
    c = _core
    tables = {"paths": ["0", "1"], "members": [["a"], ["b"]], "shapes": [[], ["Aa"]]}
    return {
        "BigramCounts": (lambda: c.BigramCounts, given(ignore_case=True)),
        "BigramCounts.add": (lambda: counted().add, given(sentences=[["a", "b"], []])),
        "BigramCounts.n_frequent": (lambda: counted().n_frequent, given(min_count=1)),
        "ClassExchange": (lambda: c.ClassExchange, given(counts=counted(), n_classes=2, min_count=1)),
        "ClassExchange.sweep": (lambda: c.ClassExchange(counted(), 2, 1).sweep, given(n_jobs=1)),
        "ClassExchange.gain": (lambda: c.ClassExchange(counted(), 2, 1).gain, given(word=1, to=0)),
        "ClassExchange.tree": (lambda: c.ClassExchange(counted(), 2, 1).tree, given(n_jobs=1)),
        "ClassTable": (lambda: c.ClassTable, given(**tables, ignore_case=False)),
        "ClassTable.get": (lambda: c.ClassTable(**tables, ignore_case=False).get, given(word="a")),
        "normalized_words": (lambda: c.normalized_words, given(words=["a1"], ignore_case=True)),
    }


def decoders(m: Made) -> Targets:
    """Return callables that decode scores."""
    d, c = m.dataset, _core
    shapes = {"node": (2, 4, 3), "edge": (3, 3), "start": (3,), "end": (3,)}
    scores, gradient = ({name: np.zeros(shape, f32) for name, shape in shapes.items()} for _ in range(2))
    lengths = np.array([4, 2], np.int32)
    chains = given(**scores, lengths=lengths, tags=np.zeros((2, 4), np.int64))
    return {
        "force": (lambda: c.force, given(paths="")),
        "path_counts": (lambda: c.path_counts, given()),
        "Stop": (lambda: c.Stop, given()),
        "Stop.request": (lambda: c.Stop().request, given()),
        "Stop.check": (lambda: c.Stop.check, given()),
        "TokenRegex": (lambda: c.TokenRegex, given(pattern="a+", ignore_case=True)),
        "TokenRegex.column": (lambda: c.TokenRegex("a+").column, given(tokens=["a", "b"])),
        "WapitiRegex": (lambda: c.WapitiRegex, given(source=b"a?b*")),
        "WapitiRegex.find": (lambda: c.WapitiRegex(b"a?b*").find, given(text=b"aab")),
        "claim": (lambda: c.claim, given(what="this", bytes=1, remedy="stop")),
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
        "LookbackSpec": (
            lambda: c.LookbackSpec,
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
    """Return callables of vocabularies, datasets, templates, layouts and files."""
    d, layout, vocab, c = m.dataset, m.layout, m.vocabulary, _core
    keys = dict(zip(("keys", "table", "text", "text_end"), vocab.arrays()))
    return {
        "encode_attributes": (
            lambda: c.encode_attributes,
            given(vocab=c.Vocabulary(), sentences=[[["a"], {"b": 1.0}]], edge=[[["e"], []]], n_jobs=2),
        ),
        "encode_tokens": (
            lambda: c.encode_tokens,
            given(template=m.template, vocab=c.Vocabulary(), sentences=[[["a", "b"]]], n_jobs=2, bare=False),
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
                bare=False,
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
        "count_texts": (lambda: c.count_texts, given(sentences=[["x", "y"], ("z",)])),
        "text_ids": (lambda: c.text_ids, given(sentences=[["x", "y"], ("z",)], texts=["x", "y", "z"])),
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
        "Dataset.joined": (lambda: c.Dataset.joined, given(parts=[d, d], folder="/tmp")),
        "Dataset.steps": (lambda: d.steps, given(first=3, labels=3, start_end=True)),
        "Dataset.with_vectors": (
            lambda: d.with_vectors,
            given(first=2, values=np.ones((6, 2), f32), scale=0.5),
        ),
        "Dataset.with_gold": (lambda: d.with_gold, given(gold=m.gold)),
        "Template": (lambda: c.Template, given(text="word[-1..1]", columns=["word"], lists=[])),
        "Texts": (
            lambda: c.Texts,
            given(
                data=np.frombuffer(b"abc", np.uint8),
                tokens=np.array([0, 1, 3], np.int32),
                sentences=np.array([0, 2], np.int32),
            ),
        ),
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
        "write_arrays": (
            lambda: c.write_arrays,
            given(stream=io.BytesIO(), header="{}", arrays={"x": np.ones(2)}),
        ),
        "ArrayFile": (lambda: c.ArrayFile, given(file=opened(ARRAYS), name="a")),
        "ArrayFile.array": (lambda: c.ArrayFile(opened(ARRAYS), "a").array, given(name="x")),
        "ModelFile": (lambda: c.ModelFile, given(file=opened(FILE), name="m", mmap=True)),
        "ModelFile.array": (lambda: c.ModelFile(opened(FILE), "m").array, given(name="weights")),
        "ModelFile.scorer": (
            lambda: c.ModelFile(opened(FILE), "m").scorer,
            given(n_attributes=len(vocab), n_labels=3, forbidden=np.array([1], u32), local=False),
        ),
    }


def crfsuite(m: Made) -> Targets:
    """Return the basis of the drop-in modules: instances, steps, models and sequences of CRFsuite."""
    c, rows, pairs = _core, [["a", "b"], ["b"]], [[("a", 1.0), ("b", 0.5)], [("b", 2.0)]]
    data = c.CrfsuiteInstances()
    for labels in (["X", "Y"], ["Y", "Y"]):
        data.append(rows, labels, 0)
    node, edge, _ = data.features(-1, 0.0, True, True)
    model, path = lcrf(), f"{FILE}.crfsuite"
    if Path(FILE).is_file():
        Path(path).write_bytes(model)
    sequence = c.CrfsuiteSequence.from_pairs(pairs)

    def steps() -> Callable[..., Any]:
        return c.CrfsuiteOnline(data, -1, node, edge, "ap", []).steps

    return {
        "CrfsuiteSequence": (lambda: c.CrfsuiteSequence.read, given(sequence=rows)),
        "CrfsuiteSequence.read": (lambda: c.CrfsuiteSequence.read, given(sequence=rows)),
        "CrfsuiteSequence.from_pairs": (lambda: c.CrfsuiteSequence.from_pairs, given(sequence=pairs)),
        "CrfsuiteModel": (lambda: c.CrfsuiteModel, given(data=model)),
        "CrfsuiteModel.open": (lambda: c.CrfsuiteModel.open, given(file=opened(path))),
        "CrfsuiteModel.tag": (lambda: c.CrfsuiteModel(model).tag, given(sequence=sequence)),
        "CrfsuiteModel.tag_many": (
            lambda: c.CrfsuiteModel(model).tag_many,
            given(sequences=[rows], convert=lambda _: pairs, n_jobs=1),
        ),
        "CrfsuiteModel.whole": (lambda: c.CrfsuiteModel(model).whole, given(decode=bytes.decode)),
        "crfsuite_model_bytes": (
            lambda: c.crfsuite_model_bytes,
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
    """Return all targets."""
    return datasets(m) | batch(m) | learners(m) | kernels(m) | decoders(m) | word_classes(m) | crfsuite(m)

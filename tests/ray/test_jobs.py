"""Encoding, tagging and comparing with Ray give the results of a single process, also if workers are killed."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import tagwise as tw
import tagwise.ray
from tagwise.cli import cli
from tagwise.dataset.shards.encode import Piece, cut
from tagwise.ray.encoding import shard_jobs

from .faults import ROOT, WORKS, bytes_below, run_with_kill

pytest.importorskip("ray", reason="ray is not installed: make test-ray")

TRAIN, DEV, TEST = tw.load_corpus("wnut17-ner")


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("model") / "m.tagwise"
    tw.CRF(features="S2", max_iter=3).fit(TRAIN[:200]).save(path)
    return path


def run(*given: Any) -> str:
    done = CliRunner().invoke(cli, [str(each) for each in given], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.output


# --- encoding -----------------------------------------------------------------------------------------------


def test_shards_equal_those_of_one_process(nodes: Any, tmp_path: Path) -> None:
    """Bytes are equal for more shards than one merge takes, and for files of any size, including an empty one."""
    for name, part in (("a", TRAIN[:90]), ("b", TRAIN[90:95]), ("c.conll.gz", TRAIN[95:200])):
        tw.write(part, tmp_path / (name if "." in name else f"{name}.conll"), "conll")
    (tmp_path / "b0.conll").write_text("", "utf-8")
    given: dict[str, Any] = {"features": "S2", "shard_tokens": 270, "columns": ["word", "label"]}
    files = str(tmp_path / "*.conll*")
    here = tw.encode(files, tmp_path / "here", **given)
    assert len(here) > 8
    reported: list[Any] = []
    there = tw.encode(
        files, tmp_path / "there", backend="ray", workers=2, callbacks=[reported.append], **given
    )
    assert bytes_below(there.path) == bytes_below(here.path)
    assert sorted(each.number for each in reported) == list(range(len(here)))
    assert all(each.made for each in reported)
    run(
        *("encode", files, "-o", tmp_path / "there", "-f", "S2", "--shard-tokens", 270, "--backend", "ray"),
        *("--columns", "word,label", "--workers", 1),
    )
    assert bytes_below(there.path) == bytes_below(here.path)


def test_shard_jobs_equal_cut() -> None:
    """The jobs for random files contain the same sentences as `cut` on the concatenated stream."""
    random = np.random.default_rng(0)
    for _ in range(200):
        lengths = [random.integers(1, 9, size=random.integers(0, 7)) for _ in range(random.integers(1, 6))]
        stream = [(str(at), [None] * n) for at, of_file in enumerate(lengths) for n in of_file.tolist()]
        pieces: list[Piece] = list(cut(iter(stream), 10))  # type: ignore[arg-type]
        found = list(shard_jobs(lengths, 10))
        assert [size for *_, sizes in found for size in sizes] == [len(piece.sentences) for piece in pieces]
        starts = np.cumsum([0, *(len(of_file) for of_file in lengths)])
        begin = 0
        for at, skip, k, sizes in found:
            assert (starts[at] + skip, pieces[k].files[0][0]) == (begin, str(at))
            begin += sum(sizes)


def test_errors_of_workers_are_raised(nodes: Any, tmp_path: Path) -> None:
    tw.write(TRAIN[:30], tmp_path / "a.conll", "conll")
    (tmp_path / "b.conll").write_text("word O extra\n\n", "utf-8")
    with pytest.raises(tw.exceptions.CorpusError, match=r"b\.conll:1"):
        tw.encode(tmp_path / "*.conll", tmp_path / "enc", features="S1", backend="ray")


# --- tagging ------------------------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # Ray Data's own
@pytest.mark.parametrize("form", ["default", "pyarrow"])
def test_tag_labels_batches(nodes: Any, model: Path, form: str) -> None:
    """Ray Data returns the labels of `predict` for each row, and tokens stay lists of strings."""
    import pyarrow
    import ray

    sentences = TEST[:120].tokens
    rows = [{"id": i, "tokens": list(tokens)} for i, tokens in enumerate(sentences)]
    data = (
        ray.data.from_items(rows)
        .map_batches(
            tagwise.ray.Tag, fn_constructor_args=[str(model)], concurrency=2, batch_size=32, batch_format=form
        )
        .materialize()
    )
    assert data.schema().types[1:] == [pyarrow.list_(pyarrow.string())] * 2
    found = {row["id"]: list(row["predicted"]) for row in data.take_all()}
    assert [found[i] for i in range(len(rows))] == tw.load(model).predict(sentences)
    with pytest.raises(tw.exceptions.CorpusError, match="text"):
        tagwise.ray.Tag(model)({"text": ["a b"]})


def test_tag_accepts_arrow_tables(model: Path) -> None:
    """Tables can have lists or strings, chunks, slices, no rows and nulls. An existing column is replaced."""
    import pyarrow as pa

    sentences = [["Paris", "sleeps"], [], ["a", "b", "c"], ["d"]]
    expected, tag = tw.load(model).predict(sentences), tagwise.ray.Tag(model)
    whole = pa.table({"tokens": sentences, "id": [1, 2, 3, 4]})
    pieces = pa.concat_tables([whole.slice(0, 1), whole.slice(1, 3)])
    for table in (whole, pieces, tag(whole)):
        found = tag(table)
        assert found.column("predicted").to_pylist() == expected
        assert found.column("id").to_pylist() == [1, 2, 3, 4]
        assert found.column_names == ["tokens", "id", "predicted"]
    assert tag(whole.slice(2, 2)).column("predicted").to_pylist() == expected[2:]
    assert tag(whole.slice(0, 0)).column("predicted").to_pylist() == []
    texts = pa.table({"tokens": [" ".join(sentence) for sentence in sentences]})
    assert tag(texts).column("predicted").to_pylist() == expected
    odd = pa.table({"tokens": [["a", None]]})
    assert tag(odd).column("predicted").to_pylist() == tw.load(model).predict([["a", "None"]])
    with pytest.raises(tw.exceptions.CorpusError, match="text"):
        tag(pa.table({"text": ["a b"]}))


def test_tag_files_into_a_folder(nodes: Any, model: Path, tmp_path: Path) -> None:
    """Files of four formats in nested folders get the labels of single runs. Finished files are not tagged again."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    (tmp_path / "in" / "deep").mkdir(parents=True)
    tw.write(TEST[:20], tmp_path / "in" / "a.conll", "conll")
    tw.write(TEST[20:40], tmp_path / "in" / "deep" / "b.jsonl", "jsonl")
    texts = [" ".join(tokens) for tokens in TEST[40:60].tokens]
    (tmp_path / "in" / "c.txt").write_text("\n".join(texts) + "\n", "utf-8")
    tokens = TEST[60:80].tokens
    pq.write_table(
        pa.table({"n": range(20), "tokens": [list(t) for t in tokens]}), tmp_path / "in" / "d.parquet"
    )
    pattern = tmp_path / "in" / "**" / "*.{conll,jsonl,txt,parquet}"
    out = tmp_path / "out"
    output = run("tag", model, pattern, "-o", f"{out}/", "--backend", "ray", "--workers", 2)
    assert "files: 4 tagged" in output
    local = tmp_path / "local"
    run("tag", model, pattern, "-o", f"{local}/")
    theirs = bytes_below(local)
    assert bytes_below(out) == theirs
    assert {name for name in theirs if ".tagwise" not in name} == {
        "a.conll",
        "deep/b.jsonl",
        "c.txt",
        "d.parquet",
    }
    for name in ("a.conll", "deep/b.jsonl", "c.txt"):
        run("tag", model, tmp_path / "in" / name, "-o", tmp_path / "alone")
        assert (tmp_path / "alone").read_bytes() == theirs[name]
    table = pq.read_table(out / "d.parquet").to_pydict()
    assert (table["n"], table["predicted"]) == (list(range(20)), tw.load(model).predict(tokens))
    (out / "c.txt").write_text("damaged", "utf-8")
    assert "files: 1 tagged, 3 kept " in run("tag", model, pattern, "-o", f"{out}/", "--backend", "ray")
    assert bytes_below(out) == theirs


def test_unreadable_file(nodes: Any, model: Path, tmp_path: Path) -> None:
    tw.write(TEST[:20], tmp_path / "a.conll", "conll")
    (tmp_path / "b.jsonl").write_text("{no", "utf-8")
    given = ["tag", str(model), str(tmp_path / "*.*"), "-o", f"{tmp_path / 'out'}/", "--backend", "ray"]
    stopped = CliRunner().invoke(cli, given)
    assert stopped.exit_code != 0
    assert "b.jsonl" in str(stopped.exception) + stopped.output
    output = run(*given, "--on-error", "skip")
    assert "skipped" in output
    assert "b.jsonl" in output
    assert (tmp_path / "out" / "a.conll").exists()
    assert not (tmp_path / "out" / "b.jsonl").exists()


# --- comparing ----------------------------------------------------------------------------------------------


def test_compare_equals_a_single_process(nodes: Any) -> None:
    """The rows equal those of a single process, except for times and memory."""
    given: dict[str, Any] = {
        "corpus": {"small": (TRAIN[:60], TEST[:30])},
        "features": ["S1", "S2"],
        "params": {"max_iter": 3},
    }
    here, there = (
        tw.compare(["crf", "memm"], **given),
        tw.compare(["crf", "memm"], **given, backend="ray", workers=2),
    )
    shown = ("corpus", "learner", "features", "accuracy", "f1", "nonzero", "iterations")
    rows = [
        sorted(tuple(str(getattr(row, n)) for n in shown) for row in table.rows) for table in (here, there)
    ]
    assert rows[0] == rows[1]
    assert all(row.memory for row in there.rows)
    with pytest.raises(tw.TagwiseError, match="no token"):
        tw.compare(["crf"], **{**given, "corpus": {"empty": (TRAIN[:0], TEST[:5])}}, backend="ray")
    with pytest.raises(tw.exceptions.ParameterError, match="backend"):
        tw.compare(["crf"], **given, backend="nobody")


# --- faults -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["encoding", "tagging"])  # evaluations: in test_training
def test_killed_worker_does_not_change_results(nodes: Any, tmp_path: Path, name: str) -> None:
    """A single kill of `tests.ray.faults`, whose full run is started manually."""
    work = WORKS[name](tmp_path / name, 600)
    expected = work.here()
    killer, lost, same = run_with_kill(work, expected, 0.3, random.Random(3))
    assert same
    assert killer.killed is not None
    assert lost <= 1  # 0 if the worker is killed after its last result


def test_a_killed_driver_resumes(nodes: Any, shards: tw.Shards, tmp_path: Path) -> None:
    """A driver is killed after it has written checkpoints, and --resume gives the model of an undisturbed run."""
    settings = ["--set", "max_iter=8", "--set", "optimizer=lbfgs", "-q"]
    given = ["train", str(shards.path), "-o", str(tmp_path / "m"), *settings, "--checkpoint", "every=1"]
    by_ray = ["--backend", "ray", "--workers", "2", "--address", nodes.address]
    script = f"""
import os, signal, sys
import tagwise.learners.checkpoint as kept
from tagwise.cli import cli
write, times = kept.Checkpointer.write, []
def killed(self, *given):
    write(self, *given)
    times.append(1)
    if len(times) == 3:
        os.kill(os.getpid(), signal.SIGKILL)
kept.Checkpointer.write = killed
cli({[*given, *by_ray]!r})
"""
    env = {**os.environ, "PYTHONPATH": f"{ROOT / 'python'}:{ROOT}"}
    done = subprocess.run([sys.executable, "-c", script], env=env, timeout=600, capture_output=True)
    assert done.returncode == -signal.SIGKILL, done.stderr.decode()
    assert (tmp_path / "m.checkpoint").exists()
    run(*given, "--backend", "ray", "--workers", 3, "--resume")
    undisturbed = tw.fit_shards(tw.CRF(max_iter=8, optimizer="lbfgs"), shards)
    assert (
        tw.load(tmp_path / "m").model_.scorer.weights.tobytes() == undisturbed.model_.scorer.weights.tobytes()
    )
